"""The searches that Anthropic runs itself, over names, descriptions, argument names and argument descriptions."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._json import Json, as_object

_WORD = re.compile(r"[A-Za-z][a-z]*|[A-Z]+(?![a-z])|\d+")
_PATTERN_LENGTH, _QUERY_LENGTH, _RESULTS = 200, 500, 5
_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75


def search(name: str, wanted: Mapping[str, Any], tools: Sequence[Json]) -> Json:
    """The content of a `tool_search_tool_result`: references to the deferred `tools` that fit, or an error.

    `name` is that of the search, `wanted` what the model asks it: `pattern` or `query`, and perhaps a `limit`.
    """
    limit = wanted.get("limit")
    limit = limit if isinstance(limit, int) and limit > 0 else _RESULTS
    texts = {str(tool.get("name")): _text(tool) for tool in tools if tool.get("defer_loading") is True}
    if name.endswith("regex"):
        pattern = str(wanted.get("pattern") or "")
        problem = _problem(pattern)
        if problem is not None:
            return _error(problem)
        found = [tool for tool, text in texts.items() if re.search(pattern, text, re.IGNORECASE)]
    else:
        query = str(wanted.get("query") or "")
        if not query or len(query) > _QUERY_LENGTH:
            return _error(f"query must have 1 to {_QUERY_LENGTH} characters")
        found = _ranked(query, texts)
    references = [{"type": "tool_reference", "tool_name": tool} for tool in found[:limit]]
    return {"type": "tool_search_tool_search_result", "tool_references": references}


def _problem(pattern: str) -> str | None:
    if not pattern or len(pattern) > _PATTERN_LENGTH:
        return f"pattern must have 1 to {_PATTERN_LENGTH} characters"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return "regex did not compile"
    return None


def _error(message: str) -> Json:
    return {"type": "tool_search_tool_result_error", "error_code": "invalid_tool_input", "error_message": message}


def _text(tool: Json) -> str:
    properties = as_object((as_object(tool.get("input_schema")) or {}).get("properties")) or {}
    said = [f"{name} {(as_object(inner) or {}).get('description') or ''}" for name, inner in properties.items()]
    return " ".join([str(tool.get("name")), str(tool.get("description") or ""), *said])


def _ranked(query: str, texts: Mapping[str, str]) -> list[str]:
    """The names of the texts that share a word with `query`, by BM25."""
    counted = {name: Counter(word.lower() for word in _WORD.findall(text)) for name, text in texts.items()}
    average = sum(count.total() for count in counted.values()) / max(1, len(counted))
    spread = Counter(word for count in counted.values() for word in count)
    scores: dict[str, float] = {}
    for word in {word.lower() for word in _WORD.findall(query)}:
        rarity = math.log(1 + (len(counted) - spread[word] + 0.5) / (spread[word] + 0.5))
        for name, count in counted.items():
            if word in count:
                length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * count.total() / average
                often = count[word] * (_SATURATION + 1) / (count[word] + _SATURATION * length)
                scores[name] = scores.get(name, 0.0) + rarity * often
    return sorted(scores, key=lambda name: (-scores[name], name))
