"""Failed tool results where the wire has no flag for them."""

from __future__ import annotations

from loadpoint._json import dumps, parse_object


def as_failure(text: str) -> str:
    """The text of a failed result that says `text`."""
    return dumps({"isError": True, "error": text})


def is_failure(text: str) -> bool:
    """Whether a result's text is a JSON object that says of itself that it failed: there is no other sign."""
    if not text.lstrip().startswith("{") or "rror" not in text:
        return False
    value = parse_object(text) or {}
    return value.get("isError") is True or value.get("is_error") is True
