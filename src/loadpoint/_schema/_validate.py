"""`validate`: arguments against a schema, bounded in time, tolerant of broken schemas, without any fetching.

Why `jsonschema-rs` does the work stands in docs/decisions/0011-schema-validator.md. It is imported at the first call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .._json import Json, as_list, as_object
from ._cost import affordable
from ._explain import explained
from ._problem import ROOT, Problem, problem
from ._repair import repaired, with_nullable

if TYPE_CHECKING:
    import jsonschema_rs

_BACKTRACKS = 50_000
"""Steps of one regex match; beyond it the pattern counts as satisfied."""

_REGEX_BYTES = 4_000_000
_MOST = 50
"""Problems that are collected."""


def validate(schema: Mapping[str, Any], arguments: object) -> list[Problem]:
    """What is wrong with `arguments`; empty if they fit `schema`, or if nothing in the schema can be checked.

    Broken parts of a schema are ignored and the rest is enforced. Formats are not checked, no reference is fetched,
    patterns run under a step limit. Never raises.
    """
    try:
        text = json.dumps(schema, separators=(",", ":"), default=_plain)
        value = _well_formed(json.loads(json.dumps(arguments, default=_plain).encode("ascii")))
    except (TypeError, ValueError, RecursionError):
        return [problem(ROOT, "JSON that is not nested too deeply", type(arguments).__name__)]
    try:
        validator = _compiled(text, references=affordable(text, value))
    except RecursionError:  # a schema nested so deeply says nothing that could be checked
        return []
    if validator is None:
        return []
    try:
        found: list[Problem] = []
        for error in validator.iter_errors(value):
            found.extend(explained(error))
            if len(found) >= _MOST:
                break
    except (ValueError, TypeError, RecursionError):
        return [problem(ROOT, "JSON that is not nested too deeply", type(arguments).__name__)]
    return list(dict.fromkeys(found))[:_MOST]


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise TypeError(type(value).__name__)


def _well_formed(value: object) -> object:
    """`value` with lone surrogates replaced: the validator takes UTF-8 only."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    node = as_object(value)
    if node is not None:
        return {str(_well_formed(key)): _well_formed(item) for key, item in node.items()}
    items = as_list(value)
    return [_well_formed(item) for item in items] if items else value


@lru_cache(maxsize=256)
def _compiled(text: str, *, references: bool) -> jsonschema_rs.Validator | None:
    schema = as_object(_well_formed(json.loads(text)))
    if schema is None:
        return None
    if '"nullable"' in text:
        schema = as_object(with_nullable(schema)) or {}
    whole = _compile(schema) if references else None
    return whole or _compile(repaired(schema, lambda part: _compile(part) is not None, references=references))


def _compile(schema: Json) -> jsonschema_rs.Validator | None:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(
            schema,
            validate_formats=False,
            offline=True,
            pattern_options=jsonschema_rs.FancyRegexOptions(
                backtrack_limit=_BACKTRACKS, size_limit=_REGEX_BYTES, dfa_size_limit=_REGEX_BYTES
            ),
        )
    except (ValueError, TypeError, RecursionError):
        return None
