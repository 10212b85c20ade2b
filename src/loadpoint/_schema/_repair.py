"""Schemas as servers write them, made usable: what is broken is dropped, the rest stays in force."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import unquote

from .._json import Json, as_list, as_object

_ONE = ("not", "if", "then", "else", "items", "additionalProperties", "contains", "propertyNames", "additionalItems",
        "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAP = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
_SILENT = ("$schema", "$id", "id", "$anchor", "$comment", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef",
           "$recursiveRef", "$vocabulary", "title", "description", "default", "examples", "example", "deprecated",
           "readOnly", "writeOnly", "format")  # fmt: skip
"""Keywords without a say in whether arguments fit, or (`$dynamicRef`) ones that no tool needs and many get wrong."""

_DEEPEST = 60
_INDEX = re.compile(r"0|[1-9]\d*")


def with_nullable(schema: object, depth: int = 0) -> object:
    """`schema` with OpenAPI's `nullable: true` written as JSON Schema has it; the same object if it has none."""
    node = as_object(schema)
    if node is None or depth > _DEEPEST:
        return schema
    walked = _walk(node, lambda inner: with_nullable(inner, depth + 1))
    if walked.get("nullable") is not True:
        return walked
    rest = {key: value for key, value in walked.items() if key != "nullable"}
    return {"anyOf": [rest, {"type": "null"}]}


def repaired(schema: Json, works: Callable[[Json], bool], *, references: bool = True) -> Json:
    """`schema` without its broken parts, and without any `$ref` if `references` is false.

    `works` says whether a small schema can be compiled.
    """
    return _repaired(schema, schema if references else {}, works, 0)


def _repaired(node: Json, root: Json, works: Callable[[Json], bool], depth: int) -> Json:
    if depth > _DEEPEST:
        return {}
    kept: Json = {}
    for key, value in _walk(node, lambda inner: _inner(inner, root, works, depth)).items():
        if key == "items" and (items := as_list(value)):  # how drafts before 2020-12 write tuples
            kept.setdefault("prefixItems", [_inner(item, root, works, depth) for item in items])
        elif key == "patternProperties":
            kept[key] = {name: inner for name, inner in (as_object(value) or {}).items() if works({"pattern": name})}
        elif _usable(key, value, root, works):
            kept[key] = value
    return kept


def _usable(key: str, value: object, root: Json, works: Callable[[Json], bool]) -> bool:
    if key in _SILENT:
        return False
    if key in _ONE:
        return isinstance(value, (dict, bool))
    if key in _LIST or key in _MAP:
        return bool(value)
    return resolves(root, value) if key == "$ref" else works({key: value})


def _inner(value: object, root: Json, works: Callable[[Json], bool], depth: int) -> object:
    node = as_object(value)
    if node is not None:
        return _repaired(node, root, works, depth + 1)
    return value if isinstance(value, bool) else {}


def _walk(node: Json, change: Callable[[object], object]) -> Json:
    """A copy of `node` with `change` applied to its subschemas; malformed containers of subschemas become empty."""
    copy: Json = {}
    for key, value in node.items():
        if key in _ONE and isinstance(value, (dict, bool)):
            copy[key] = change(cast(object, value))
        elif key in _LIST:
            copy[key] = [change(item) for item in as_list(value)]
        elif key in _MAP:
            copy[key] = {str(name): change(inner) for name, inner in (as_object(value) or {}).items()}
        else:
            copy[key] = value
    return copy


def resolves(root: Json, reference: object) -> bool:
    """Whether `reference` is a pointer within `root` that leads to a schema."""
    return target(root, reference) is not None


def target(root: Json, reference: object) -> Mapping[str, Any] | bool | None:
    """The schema that a local `$ref` points to; None for anything else."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    node: object = root or None
    for written in unquote(reference[2:]).split("/") if len(reference) > 1 else ():
        step = written.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = cast("dict[str, object]", node).get(step)
        elif isinstance(node, list) and _INDEX.fullmatch(step) and int(step) < len(as_list(cast(object, node))):
            node = as_list(cast(object, node))[int(step)]
        else:
            return None
    if isinstance(node, bool):
        return node
    return as_object(node)
