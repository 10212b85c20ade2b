"""The words of a tool's definition, weighted by where they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from .._tool import Tool
from ._text import Terms, words

NAME, SERVER, DESCRIPTION, PARAMETER, PARAMETER_TEXT, ENUM = 6.0, 1.0, 1.0, 0.75, 0.5, 0.25
"""Weights of one occurrence."""

REPEATS = 2.0
"""How much of the description weight one term can gather: a description stuffed with a word does not win by it."""

_TEXT, _DEPTH, _PROPERTIES, _ENUMS = 1_000, 3, 60, 24
"""Bounds of what is read: characters of a description, schema levels, properties in all, enum values of one schema."""


def definition_words(tool: Tool, server: str, memo: Terms) -> dict[str, float]:
    """Term -> weight for one tool; `server` is "" if unknown. Reads any schema, however broken."""
    counted: dict[str, float] = {}
    for word in words(tool.description[:_TEXT]):
        for term in memo[word]:
            counted[term] = min(counted.get(term, 0.0) + DESCRIPTION, REPEATS)
    for word in words(tool.name):
        for term in memo[word]:
            counted[term] = counted.get(term, 0.0) + NAME
    for word in words(server):
        for term in memo[word]:
            counted[term] = counted.get(term, 0.0) + SERVER
    _schema_words(tool.parameters, memo, counted)
    return counted


def _schema_words(schema: Mapping[str, Any], memo: Terms, counted: dict[str, float]) -> None:
    found: dict[str, float] = {}
    waiting: list[tuple[object, int]] = [(schema, 0)]
    seen = 0
    for node, depth in waiting:
        if not isinstance(node, Mapping):
            continue
        part = cast("Mapping[str, object]", node)
        if depth < _DEPTH:
            waiting.extend((part[key], depth + 1) for key in ("items", "additionalProperties") if key in part)
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            for name, inner in cast("Mapping[object, object]", properties).items():
                if seen >= _PROPERTIES:
                    break
                seen += 1
                _count(str(name), PARAMETER, memo, found)
                if isinstance(inner, Mapping):
                    _text_of(cast("Mapping[str, object]", inner), memo, found)
                if depth < _DEPTH:
                    waiting.append((inner, depth + 1))
    for term, weight in found.items():
        counted[term] = counted.get(term, 0.0) + min(weight, 1.0)


def _text_of(part: Mapping[str, object], memo: Terms, found: dict[str, float]) -> None:
    text = part.get("description")
    if isinstance(text, str):
        _count(text[:160], PARAMETER_TEXT, memo, found)
    values = part.get("enum")
    if isinstance(values, (list, tuple)):
        for value in cast("list[object]", values)[:_ENUMS]:
            if isinstance(value, str):
                _count(value[:60], ENUM, memo, found)


def _count(text: str, weight: float, memo: Terms, found: dict[str, float]) -> None:
    for word in words(text):
        for term in memo[word]:
            found[term] = found.get(term, 0.0) + weight
