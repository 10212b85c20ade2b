"""The raw words of a tool's definition, by where they stand. Runs once per tool: it is written for speed."""

from __future__ import annotations

from typing import cast

from .._json import Json, as_list
from .._tool import Tool
from ._text import fold, words

_DESCRIPTION, _PARAMETERS, _TEXT, _VALUE = 400, 400, 80, 40
"""Characters that are read: of a description, of all parameters together, of one parameter's description, of an enum
value. What a tool is for stands at the beginning; a description as long as a manual must not own every word."""

_DEPTH, _PROPERTIES, _ENUMS = 3, 60, 16
"""Schema levels, properties in all, enum values of one schema."""


def name_words(name: str, server: str) -> set[str]:
    """The words of a tool's own name, case kept: `createIssue` splits later."""
    return set(words(own_name(name, server)))


def own_name(name: str, server: str) -> str:
    """`name` without the server in front of it; the whole where nothing would be left."""
    if not server:
        return name
    rest = name.removeprefix("mcp__")
    rest = rest[len(server) :].lstrip("_.-:/ ") if rest.startswith(server) else ""
    return rest or name


def description_words(tool: Tool) -> set[str]:
    """The words of the description in lower case, each once: repeating a word gains nothing."""
    return set(words(_lower(tool.description[:_DESCRIPTION])))


def parameter_words(tool: Tool) -> tuple[set[str], set[str]]:
    """The words of parameter names (case kept), and those of parameter descriptions and enum values (lower case)."""
    parameters = tool.parameters
    if not parameters:
        return set(), set()
    names: list[str] = []
    texts: list[str] = []
    level: list[Json] = [dict(parameters)]
    for _ in range(_DEPTH):
        below: list[Json] = []
        for node in level:
            _read(node, names, texts, below)
        level = below
        if not level or len(names) >= _PROPERTIES:
            break
    named = set(words(" ".join(names[:_PROPERTIES])))
    return named, set(words(_lower(" ".join(texts)[:_PARAMETERS]))) if texts else set()


def _read(node: Json, names: list[str], texts: list[str], below: list[Json]) -> None:
    properties: object = node.get("properties")
    if isinstance(properties, dict):
        for name, inner in cast(Json, properties).items():
            names.append(str(name))
            if not isinstance(inner, dict):
                continue
            part = cast(Json, inner)
            text = part.get("description")
            if isinstance(text, str):
                texts.append(text[:_TEXT])
            if "enum" in part:
                texts.extend([value[:_VALUE] for value in as_list(part["enum"])[:_ENUMS] if isinstance(value, str)])
            if "properties" in part or "items" in part:
                below.append(part)
    items: object = node.get("items")
    if isinstance(items, dict):
        below.append(cast(Json, items))


def _lower(text: str) -> str:
    return text.lower() if text.isascii() else fold(text)
