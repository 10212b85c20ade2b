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
_LEADING = ("system", "developer")
_UNREAD = frozenset({"id", "status", "created_by"})


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of context: its segment and its text."""

    segment: str
    text: str


def parts(dialect: str, body: Json) -> list[Part]:
    """The context of a request of that dialect, in order. A catalog is a part of its own, where it stands."""
    readers = {"anthropic.messages": _messages, "openai.chat": _chat, "openai.responses": _responses}
    if dialect not in readers:
        raise ValueError(f"dialect: {dialect!r} is not measured yet")
    return list(readers[dialect](body))


def passes(dialect: str, body: Json, reply: Json) -> list[Json]:
    """The requests that a reply stands for beside its own: one per search that the provider ran in it.

    After each of its searches the model reads the whole prompt again, with what it found. Two searches side by side
    are taken for two in a row.
    """
    key, produced = {
        "anthropic.messages": ("messages", as_list(reply.get("content"))),
        "openai.responses": ("input", as_list(reply.get("output"))),
    }.get(dialect, ("messages", []))
    found: list[Json] = []
    for at, item in enumerate(produced, 1):
        kind = item.get("type")
        if kind == "tool_search_tool_result":
            again = [*as_list(body.get(key)), {"role": "assistant", "content": produced[:at]}]
        elif kind == "tool_search_output" and item.get("execution") != "client":
            again = [*as_list(body.get(key)), *produced[:at]]
        else:
            continue
        found.append({**body, key: again})
    return found


def _chat(body: Json) -> Iterator[Part]:
    listed = as_list(body.get("tools"))
    known = {
        str((as_object(tool.get("function")) or tool).get("name")): _plain(tool) for tool in listed if _deferred(tool)
    }
    for tool in listed:
        if not _deferred(tool):
            yield from _tool(tool)
    leading = True
    for message in as_list(body.get("messages")):
        leading = leading and (as_object(message) or {}).get("role") in _LEADING
        if leading:
            yield from _system(message.get("content"))
        else:
            yield from _text(MESSAGES, dumps(_expanded(message, known)))
        for part in as_list((as_object(message) or {}).get("content")):
            known.pop(str((as_object(part) or {}).get("tool_name")), None)  # a definition stands where it comes first


def _messages(body: Json) -> Iterator[Part]:
    listed = as_list(body.get("tools"))
    known = {tool["name"]: unmarked(_plain(tool)) for tool in listed}
    for tool in listed:
        if not _deferred(tool):
            yield from _tool(unmarked(tool))
    yield from _system(body.get("system"))
    for message in as_list(body.get("messages")):
        yield from _text(MESSAGES, dumps(_expanded(unmarked(message), known)))


def _responses(body: Json) -> Iterator[Part]:
    """As the emulator puts them into context, and the guide to the search says: of a deferred function its name and
    its description stand there from the start, of a namespace its own; ids and states are for the service only.
    """
    for tool in as_list(body.get("tools")):
        if tool.get("type") == "namespace":
            members = [_plain(member) for member in as_list(tool.get("tools")) if not _deferred(member)]
            yield Part(TOOLS, dumps({**tool, "tools": members} if members else _named(tool)))
        elif _deferred(tool):
            yield Part(TOOLS, dumps(_named(tool)))
        else:
            yield from _tool(tool)
    yield from _system(body.get("instructions"))
    given: object = body.get("input")
    leading = not body.get("instructions")
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else as_list(given):
        leading = leading and item.get("role") in _LEADING
        yield from _system(item.get("content")) if leading else _text(MESSAGES, dumps(_item(item)))


def _system(content: object) -> Iterator[Part]:
    """The system prompt: the text alone, whatever an API wraps it in."""
    for block in [content] if isinstance(content, str) else as_list(content):
        text: object = (as_object(block) or {}).get("text", block)
        yield from _text(SYSTEM, dumps(unmarked(text)))


def _item(item: Json) -> Json:
    hidden = _UNREAD | ({"call_id", "execution"} if str(item.get("type")).startswith("tool_search") else set[str]())
    kept = {key: value for key, value in item.items() if key not in hidden and value is not None}
    if item.get("type") in ("tool_search_output", "additional_tools"):
        kept["tools"] = [_whole(tool) for tool in as_list(item.get("tools"))]
    return kept


def _whole(tool: Json) -> Json:
    """A loaded definition, or a namespace of such."""
    members = as_list(tool.get("tools"))
    return _plain({**tool, "tools": [_plain(member) for member in members]} if members else tool)


def _plain(tool: Json) -> Json:
    """The definition without the mark that defers it."""
    inner = as_object(tool.get("function"))
    kept = {key: value for key, value in tool.items() if key != "defer_loading"}
    return kept if inner is None else {**kept, "function": _plain(inner)}


def _named(tool: Json) -> Json:
    return {key: tool[key] for key in ("name", "description") if key in tool}


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
    if found.get("type") == "tool_removal":
        return found
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
