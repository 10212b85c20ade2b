"""Which argument names a schema speaks of: what tells a tool's own field from a wrapper that a model put around it."""

from __future__ import annotations

from collections.abc import Mapping

from .._json import as_list, as_object
from .._schema._repair import target

_MOST = 2_000
"""Subschemas that are looked at: references can go round in circles."""

_LISTS = ("allOf", "anyOf", "oneOf")
_PARTS = ("then", "else", "if")


def known_fields(schema: Mapping[str, object]) -> frozenset[str] | None:
    """The names of the top-level fields that `schema` declares anywhere; None where it declares none at all."""
    root = dict(schema)
    names: set[str] = set()
    waiting: list[object] = [root]
    for _ in range(_MOST):
        if not waiting:
            break
        node = as_object(waiting.pop())
        if node is None:
            continue
        names.update(as_object(node.get("properties")) or {})
        for key in _LISTS:
            waiting += as_list(node.get(key))
        waiting += [node.get(key) for key in _PARTS]
        waiting += (as_object(node.get("dependentSchemas")) or {}).values()
        if "$ref" in node:
            waiting.append(target(root, node["$ref"]))
    return frozenset(names) or None


def keyed_freely(schema: Mapping[str, object]) -> bool:
    """Whether the schema describes fields by a pattern or a common schema, so that their names are the caller's."""
    return bool(as_object(schema.get("additionalProperties")) or as_object(schema.get("patternProperties")))


def takes_nothing(schema: Mapping[str, object]) -> bool:
    """Whether the schema says in so many words that there are no fields."""
    open_still = any(key in schema for key in (*_LISTS, *_PARTS, "$ref", "dependentSchemas", "patternProperties"))
    return schema.get("properties") == {} and not open_still and schema.get("additionalProperties", False) is False


def required(schema: Mapping[str, object]) -> list[str]:
    """The names of the top-level fields that have to be there."""
    return [name for name in as_list(schema.get("required")) if isinstance(name, str)]
