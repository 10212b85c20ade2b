"""A bound on the work of one validation, found before it starts: recursive alternatives can take exponential time."""

from __future__ import annotations

import json
from functools import lru_cache

from .._json import Json, as_list, as_object
from ._repair import target

_MOST = 2_000_000.0
"""Evaluations of a subschema that one validation may take: some 200 ms."""

_IN_PLACE = ("anyOf", "oneOf", "allOf")
_SAME = ("$ref", "not", "if", "then", "else")
_BELOW = ("items", "additionalProperties", "contains", "propertyNames", "additionalItems")


def affordable(text: str, value: object) -> bool:
    """Whether checking `value` against the schema `text` stays within the bound."""
    if '"$ref"' not in text:
        return True
    depth, size = _extent(value)
    return _per_path(text, min(depth, 40)) * size <= _MOST and depth <= 200


def _extent(value: object) -> tuple[int, int]:
    """Nesting depth and number of values."""
    level: list[object] = [value]
    depth = size = 0
    while level and depth <= 200:
        depth += 1
        size += len(level)
        below: list[object] = []
        for item in level:
            below.extend((as_object(item) or {}).values())
            below.extend(as_list(item))
        level = below
    return depth, size


@lru_cache(maxsize=512)
def _per_path(text: str, depth: int) -> float:
    """How often subschemas are evaluated along one path of a value that is `depth` deep, at most."""
    root = as_object(json.loads(text)) or {}
    known: dict[tuple[int, int], float] = {}
    return _evaluations(root, root, depth, known, 0)


def _evaluations(node: object, root: Json, depth: int, known: dict[tuple[int, int], float], nested: int) -> float:
    schema = as_object(node)
    if schema is None or depth < 0:
        return 1.0
    key = (id(schema), depth)
    if key in known:
        return known[key]
    if nested > 200:
        return _MOST
    known[key] = 1.0  # a reference that leads back here without going deeper into the value adds nothing
    total = 1.0
    for word in _IN_PLACE:
        total += sum(_evaluations(item, root, depth, known, nested + 1) for item in as_list(schema.get(word)))
    for word in _SAME:
        if word in schema:
            inner = target(root, schema[word]) if word == "$ref" else schema[word]
            total += _evaluations(inner, root, depth, known, nested + 1)
    for word in _BELOW:
        if word in schema:
            total += _evaluations(schema[word], root, depth - 1, known, nested + 1)
    for word in ("properties", "patternProperties"):
        inners = (as_object(schema.get(word)) or {}).values()
        total += max((_evaluations(inner, root, depth - 1, known, nested + 1) for inner in inners), default=0.0)
    known[key] = min(total, _MOST * 2)
    return known[key]
