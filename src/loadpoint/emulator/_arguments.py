"""Plausible arguments for a call: what a model would read out of the user's text, shaped by the tool's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._json import as_list, as_object

_QUOTED = re.compile("['\"`\u2018\u201c]([^'\"`\u2019\u201d]+)['\"`\u2019\u201d]")
_CHANNEL = re.compile(r"#[\w-]+")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
_URL = re.compile(r"https?://\S+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_ID = re.compile(r"\b[A-Za-z]*-?\d[\w-]*")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_FORMATS = {
    "date": "2026-11-30",
    "date-time": "2026-11-30T12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com",
    "uuid": "3f2b8c1e-6d4a-4b7f-9a51-0c2d8e7f6a90",
}
_NUMBERED = ("id", "key", "number", "sku")
_CHANNELS = ("channel", "room")
_PROSE = (
    "text",
    "message",
    "body",
    "content",
    "title",
    "name",
    "summary",
    "comment",
    "subject",
    "query",
    "description",
)


def plausible(schema: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Arguments for an object `schema`: every required property, and optional ones that `text` has a value for."""
    properties = as_object(schema.get("properties")) or {}
    required = [str(name) for name in as_list(schema.get("required"))]
    arguments: dict[str, Any] = {}
    for name, described in properties.items():
        inner = _resolved(as_object(described) or {}, schema)
        if name in required or (inner.get("type") == "string" and _said(name, text) is not None):
            arguments[name] = _value(name, inner, schema, text)
    return arguments


def unquoted(text: str) -> str:
    """`text` without what it quotes: that is content, not the request."""
    return _QUOTED.sub(" ", text)


def _said(name: str, text: str) -> str | None:
    """The part of `text` that a property of that name asks for."""
    lowered = name.lower()
    if any(word in lowered for word in _CHANNELS):
        return _first(_CHANNEL, text)
    if "mail" in lowered or lowered in ("to", "recipient"):
        return _first(_EMAIL, text)
    if "url" in lowered or "link" in lowered:
        return _first(_URL, text)
    if "date" in lowered or lowered in ("day", "since", "until"):
        return _first(_DATE, text)
    if lowered in _NUMBERED or lowered.endswith(("_id", "_number", "_key")):
        return _first(_ID, unquoted(text))
    if any(word in lowered for word in _PROSE):
        quoted = _QUOTED.search(text)
        return quoted[1] if quoted else None
    return None


def _first(pattern: re.Pattern[str], text: str) -> str | None:
    found = pattern.search(text)
    return found[0] if found else None


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """`schema` behind its reference and the first alternative that is not null."""
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Any = root
        for step in reference[2:].split("/"):
            target = (as_object(target) or {}).get(step)
        return _resolved(as_object(target) or {}, {}) if target is not None else {}
    for word in ("anyOf", "oneOf"):
        for choice in as_list(schema.get(word)):
            if (as_object(choice) or {}).get("type") != "null":
                return _resolved(as_object(choice) or {}, root)
    kinds = as_list(schema.get("type"))
    if kinds:
        return {**schema, "type": next((item for item in kinds if item != "null"), "null")}
    return schema


def _value(name: str, schema: Mapping[str, Any], root: Mapping[str, Any], text: str) -> Any:
    if "const" in schema:
        return schema["const"]
    options: Sequence[Any] = as_list(schema.get("enum"))
    if options:
        return next((option for option in options if str(option).lower() in text.lower()), options[0])
    if schema.get("default") is not None:
        return schema["default"]
    kind = schema.get("type")
    if kind in ("integer", "number"):
        return _number(schema, text)
    if kind == "boolean":
        return True
    if kind == "array":
        return [_value(name, _resolved(as_object(schema.get("items")) or {}, root), root, text)]
    if kind == "object" or "properties" in schema:
        return plausible({**schema, "$defs": root.get("$defs")}, text)
    return _text(name, schema, text)


def _number(schema: Mapping[str, Any], text: str) -> float | int:
    found = _first(_NUMBER, unquoted(text))
    number = float(found) if found else float(schema.get("minimum", 1))
    number = max(number, float(schema.get("minimum", number)))
    number = min(number, float(schema.get("maximum", number)))
    return int(number) if schema.get("type") == "integer" or number.is_integer() else number


def _text(name: str, schema: Mapping[str, Any], text: str) -> str:
    said = _said(name, text)
    if said is None:
        made = _FORMATS.get(str(schema.get("format")))
        quoted = _QUOTED.search(text)
        said = made or (quoted[1] if quoted else " ".join(text.split()[:8])) or name
    return said[: int(schema.get("maxLength", len(said)))].ljust(int(schema.get("minLength", 0)), "x")
