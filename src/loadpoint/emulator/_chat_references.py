"""Deferred tools on Chat Completions: marks and references where a host takes them, tools that messages carry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from .._json import Json, as_object, objects
from ._dialect import Asked


def function_of(tool: Json) -> Json:
    """The function of a tool entry (empty for other kinds)."""
    return as_object(tool.get("function")) or as_object(tool.get("custom")) or {}


def is_deferred(tool: Json) -> bool:
    """Whether a tool is marked, beside its function or inside it: where Baseten wants the mark is not verified."""
    return tool.get("defer_loading") is True or function_of(tool).get("defer_loading") is True


def references(message: Json) -> list[str]:
    """The names in the `tool_reference` parts of a tool message."""
    if message.get("role") != "tool":
        return []
    parts = [part for part in objects(message.get("content")) if part.get("type") == "tool_reference"]
    return [str(part.get("tool_name")) for part in parts]


def defers(asked: Asked) -> bool:
    """Whether the host takes deferred tools on Chat."""
    return _at(asked, "chat.unknown_tool_field", "deferring_hosts")


def defers_inside(asked: Asked) -> bool:
    """Whether the host takes the mark of a deferred tool inside `function` too."""
    return _at(asked, "chat.unknown_tool_field", "inner_deferring_hosts")


def refers(asked: Asked) -> bool:
    """Whether the host takes references to deferred tools in tool messages."""
    return _at(asked, "chat.content_part", "referring_hosts")


def _at(asked: Asked, rule: str, name: str) -> bool:
    return any(fnmatchcase(asked.host, pattern) for pattern in asked.book.value(rule, name))


def brought_by(messages: Sequence[Json], deferred: Mapping[str, Json]) -> list[list[Json]]:
    """The tools that each message brings: those it carries, and those that it is the first to refer to."""
    left = dict(deferred)
    return [
        [*objects(message.get("tools")), *[left.pop(name) for name in references(message) if name in left]]
        for message in messages
    ]
