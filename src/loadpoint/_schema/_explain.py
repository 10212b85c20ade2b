"""Validation errors in words: what a field expects and what came instead."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._json import as_list, as_object
from ._problem import ROOT, Problem, problem

if TYPE_CHECKING:
    import jsonschema_rs

_LISTED, _WRITTEN_OUT = 12, 4
_OWN_LIMITS = ("BacktrackLimitExceeded", "RegexEngineFailure")
_LIMITS = {
    "minimum": "at least", "maximum": "at most", "exclusiveMinimum": "more than", "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}  # fmt: skip
_COUNTS = {
    "minLength": ("at least", "characters"), "maxLength": ("at most", "characters"), "minItems": ("at least", "items"),
    "maxItems": ("at most", "items"), "minProperties": ("at least", "fields"), "maxProperties": ("at most", "fields"),
}  # fmt: skip


def explained(error: jsonschema_rs.ValidationError) -> list[Problem]:
    """The problems behind one validation error; none where only the validator's own limits were hit."""
    if type(error.kind).__name__ in _OWN_LIMITS:
        return []
    word: str = error.kind.name
    details = error.kind.as_dict()
    path = list(error.instance_path)
    if word == "required":
        return [problem(field_path([*path, str(details.get("property"))]), "a value (required)", "nothing")]
    if word in ("additionalProperties", "unevaluatedProperties"):
        return [_unexpected(path, str(name), error.instance) for name in as_list(details.get("unexpected"))]
    if word in ("anyOf", "oneOf"):
        return _alternatives(error)
    if word == "propertyNames":
        return [problem(field_path(path), "other field names", shown(error.instance))]
    expected = _expected(word, details)
    return [problem(field_path(path), expected, shown(error.instance))] if expected else []


def _unexpected(path: Sequence[str | int], name: str, instance: Any) -> Problem:
    return problem(field_path([*path, name]), "no such field", shown((as_object(instance) or {}).get(name)))


def _expected(word: str, details: dict[str, Any]) -> str:
    if word == "type":
        kinds = [str(kind) for kind in as_list(details.get("types"))]
        return " or ".join(sorted(kinds, key=lambda kind: kind == "null"))
    if word == "enum":
        return f"one of {listed(as_list(details.get('options')))}"
    if word == "const":
        return shown(details.get("expected_value"))
    if word == "pattern":
        return f"text matching {details.get('pattern')}"
    if word in _LIMITS:
        return f"{_LIMITS[word]} {details.get('limit', details.get('multiple_of'))}"
    if word in _COUNTS:
        measure, unit = _COUNTS[word]
        return f"{measure} {details.get('limit')} {unit}"
    plain = {
        "uniqueItems": "items that differ", "contains": "another item that fits", "not": "another value",
        "additionalItems": "fewer items", "unevaluatedItems": "fewer items", "falseSchema": "no value here",
    }  # fmt: skip
    return plain.get(word, "")


def _alternatives(error: jsonschema_rs.ValidationError) -> list[Problem]:
    """No form fits, or two do: the errors of the one that comes closest, or what they expect together."""
    branches = [list(branch) for branch in as_list(error.kind.as_dict().get("context"))]
    path = field_path(error.instance_path)
    deep = [branch for branch in branches if branch and not any(_about_itself(item, error) for item in branch)]
    if deep:
        return [item for inner in min(deep, key=len) for item in explained(inner)]
    parts = (item.expected for branch in branches for inner in branch for item in explained(inner))
    expected = " or ".join(dict.fromkeys(parts)) or "exactly one of its forms"
    return [problem(path, expected, shown(error.instance))]


def _about_itself(inner: jsonschema_rs.ValidationError, outer: jsonschema_rs.ValidationError) -> bool:
    """Whether a branch fails on the value itself being of another kind, rather than on something inside it."""
    return list(inner.instance_path) == list(outer.instance_path) and inner.kind.name in ("type", "enum", "const")


def field_path(parts: Iterable[str | int]) -> str:
    """`a.b[0]` for ["a", "b", 0]; a name for the whole object if there are no parts."""
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or ROOT


def listed(values: Sequence[object]) -> str:
    """`[admin, member]`: strings without quotation marks, at most twelve values."""
    names = [value if isinstance(value, str) and value else shown(value) for value in values[:_LISTED]]
    more = [f"{len(values) - _LISTED} more"] if len(values) > _LISTED else []
    return f"[{', '.join([*names, *more])}]"


def shown(value: object) -> str:
    """A value as JSON text; objects and arrays that are long are named by their kind and size."""
    fields, items = as_object(value) or {}, as_list(value)
    if len(fields) > _WRITTEN_OUT:
        return f"object with {len(fields)} fields"
    if len(items) > _WRITTEN_OUT:
        return f"array with {len(items)} items"
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return type(value).__name__
