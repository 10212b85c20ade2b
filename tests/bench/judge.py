"""The independent judge: do captured request bodies of one conversation keep the provider's cached prefix?

Knows JSON and the shape of three APIs, and imports nothing of the project: what it says does not depend on what the
project believes about itself. Bodies are compared as the text in which they were sent, without their cache markers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

MODES = ("eager", "native", "resend", "frozen")


@dataclass(frozen=True)
class Violation:
    """Request `at` (0 is the first) does not continue the one before it; `reason` says in which way."""

    at: int
    reason: str
    detail: str = ""


def check(bodies: Sequence[dict[str, Any]], mode: str = "native") -> list[Violation]:
    """Every way in which a request is no continuation of its predecessor; empty if the prefix always holds.

    `eager`, `native`, `frozen`: the tools in the model's context never change, deferred ones are only appended.
    `resend`: the list of tools may grow at its end (`breaks` counts how often).
    """
    if mode not in MODES:
        raise ValueError(f"mode: {mode!r}; allowed: {MODES}")
    return [found for at, (old, new) in enumerate(pairwise(bodies), 1) for found in _compare(at, old, new, mode)]


def breaks(bodies: Sequence[dict[str, Any]]) -> int:
    """How many requests have another list of tools in context than the request before them."""
    return sum(_tools(old)[0] != _tools(new)[0] for old, new in pairwise(bodies))


def _compare(at: int, old: dict[str, Any], new: dict[str, Any], mode: str) -> Iterator[Violation]:
    for key in ("model", "system", "instructions"):
        if _text(old.get(key)) != _text(new.get(key)):
            yield Violation(at, f"{key}_changed")
    (shown, deferred), (shown_now, deferred_now) = _tools(old), _tools(new)
    if shown_now[: len(shown)] != shown:
        kept = sorted(shown_now) == sorted(shown)
        yield Violation(at, "tools_reordered" if kept else "tools_changed", _first(shown, shown_now))
    elif len(shown_now) > len(shown) and mode != "resend":
        yield Violation(at, "tools_grew", shown_now[len(shown)][:80])
    if deferred_now[: len(deferred)] != deferred:
        yield Violation(at, "deferred_not_appended", _first(deferred, deferred_now))
    for key in ("messages", "input"):
        before, after = _list(old.get(key)), _list(new.get(key))
        if after[: len(before)] != before:
            yield Violation(at, f"{key}_rewritten", _first(before, after))
        elif before and len(after) == len(before):
            yield Violation(at, f"{key}_not_continued")


def _tools(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    entries: list[Any] = body.get("tools") or []
    held = [bool(tool.get("defer_loading") or (tool.get("function") or {}).get("defer_loading")) for tool in entries]
    texts = [_text(tool) for tool in entries]
    pairs = list(zip(texts, held, strict=True))
    return [text for text, off in pairs if not off], [text for text, off in pairs if off]


def _list(value: Any) -> list[str]:
    return [_text(item) for item in (value if isinstance(value, list) else [value] if value else [])]


def _text(value: Any) -> str:
    return json.dumps(_unmarked(value), separators=(",", ":"), ensure_ascii=False)


def _unmarked(value: Any) -> Any:
    """`value` without cache markers; what a tool's schema or arguments call `cache_control` is none."""
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if not isinstance(value, dict):
        return value
    opaque = ("input", "input_schema", "parameters")
    return {
        key: item if key in opaque else _unmarked(item)
        for key, item in value.items()
        if not (key == "cache_control" and (item is None or (isinstance(item, dict) and "type" in item)))
    }


def _first(old: list[str], new: list[str]) -> str:
    at = next((at for at, text in enumerate(old) if at >= len(new) or new[at] != text), len(old))
    return f"entry {at}: {old[at][:60]} -> {new[at][:60] if at < len(new) else 'nothing'}"
