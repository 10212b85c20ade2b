"""What of a captured request stands in the model's context, in the order in which a provider caches it.

Independent of the engine: reads request bodies only. Deferred definitions are out, loaded ones stand where a reference
to them is expanded, cache markers are no content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .._catalog import HEADING
from .._json import Json, as_list, as_object, dumps

TOOLS, SYSTEM, MESSAGES, CATALOG = "tools", "system", "messages", "catalog"
SEGMENTS = (TOOLS, SYSTEM, MESSAGES, CATALOG)


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of context: its segment and its text."""

    segment: str
    text: str


def parts(dialect: str, body: Json) -> list[Part]:
    """The context of a request of that dialect, in order. A catalog is a part of its own, where it stands."""
    if dialect == "anthropic.messages":
        return list(_messages(body))
    if dialect == "openai.chat":
        return list(_chat(body))
    raise ValueError(f"dialect: {dialect!r} is not measured yet")


def _chat(body: Json) -> Iterator[Part]:
    for tool in as_list(body.get("tools")):
        if not _deferred(tool):
            yield from _tool(tool)
    for message in as_list(body.get("messages")):
        role = (as_object(message) or {}).get("role")
        yield from _text(SYSTEM if role in {"system", "developer"} else MESSAGES, dumps(message))


def _messages(body: Json) -> Iterator[Part]:
    listed = as_list(body.get("tools"))
    known = {
        tool["name"]: unmarked({key: value for key, value in tool.items() if key != "defer_loading"}) for tool in listed
    }
    for tool in listed:
        if not _deferred(tool):
            yield from _tool(unmarked(tool))
    system: object = body.get("system")
    for block in [system] if isinstance(system, str) else as_list(system):
        yield from _text(SYSTEM, dumps(unmarked(block)))
    for message in as_list(body.get("messages")):
        yield from _text(MESSAGES, dumps(_expanded(unmarked(message), known)))


def _deferred(tool: Json) -> bool:
    return tool.get("defer_loading") is True or (as_object(tool.get("function")) or {}).get("defer_loading") is True


def _tool(tool: Json) -> Iterator[Part]:
    """A definition; the catalog at the end of the loader's description is taken out of it."""
    inner = as_object(tool.get("function")) or tool
    description: object = inner.get("description")
    if not isinstance(description, str) or HEADING not in description:
        yield Part(TOOLS, dumps(tool))
        return
    own, _, rest = description.partition(HEADING)
    plain = {**inner, "description": own.rstrip()}
    yield Part(TOOLS, dumps({**tool, "function": plain} if "function" in tool else plain))
    yield Part(CATALOG, HEADING + rest)


def _text(segment: str, text: str) -> Iterator[Part]:
    yield Part(CATALOG if segment == SYSTEM and HEADING in text else segment, text)


def _expanded(value: Any, known: Mapping[str, Any]) -> Any:
    """`value` with the definition in the place of every reference to a tool."""
    listed = as_list(value)
    if listed:
        return [_expanded(item, known) for item in listed]
    found = as_object(value)
    if found is None:
        return value
    if found.get("type") == "tool_reference":
        return known.get(str(found.get("tool_name") or found.get("name")), found)
    return {key: item if key == "input" else _expanded(item, known) for key, item in found.items()}


_OPAQUE = frozenset({"input", "input_schema", "parameters"})


def unmarked(value: Any) -> Any:
    """`value` without cache markers; what stands in schemas and arguments stays as it is."""
    listed = as_list(value)
    if listed:
        return [unmarked(item) for item in listed]
    found = as_object(value)
    if found is None:
        return value
    return {key: item if key in _OPAQUE else unmarked(item) for key, item in found.items() if key != "cache_control"}


def marked(body: Json) -> bool:
    """Whether the request carries a cache marker."""
    return bool(unmarked(body) != body)


def why_broken(before: Sequence[Part], now: Sequence[Part]) -> str:
    """In which way `now` does not begin with `before`, in the words of the report."""
    for segment, reason in ((TOOLS, "tool_changed"), (CATALOG, "catalog_changed"), (SYSTEM, "system_changed")):
        old = [part.text for part in before if part.segment == segment]
        new = [part.text for part in now if part.segment == segment]
        if old == new:
            continue
        if segment != TOOLS:
            return reason
        if new[: len(old)] == old:
            return "tools_grew"
        return "tools_reordered" if sorted(new) == sorted(old) else reason
    return "history_rewritten"
