"""Tools that come and go in the middle of a Messages conversation: `tool_addition` and `tool_removal`.

https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages and the types of the anthropic
package (2.14.0), `types/beta/beta_request_tool_addition_block_param.py` and beside it. The blocks stand in a message
with `role: "system"` that follows the user's messages and precedes an assistant turn or ends the request: never first,
never between a call and its result, never right after a paused turn. Several such messages in a row are one group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from loadpoint._dialect import ResultView
from loadpoint._json import Json, as_object, objects

ADDITION, REMOVAL = "tool_addition", "tool_removal"
_KINDS = (ADDITION, REMOVAL)
_PLACEHOLDER = "loadpoint_placeholder"


def added(tools: Iterable[Json]) -> list[Json]:
    """The blocks that add tools by value. Whether `strict` holds in such a definition is unverified; it is kept."""
    return [_block(ADDITION, {"type": "tool_definition", "definition": tool}) for tool in tools]


def referenced(names: Iterable[str], kind: str = ADDITION) -> list[Json]:
    """The blocks that add, or take back, tools by name; the field is `name` here, in a result it is `tool_name`."""
    return [_block(kind, {"type": "tool_reference", "name": name}) for name in names]


def _block(kind: str, tool: Json) -> Json:
    return {"type": kind, "tool": tool}


def message(blocks: Sequence[Json]) -> list[Json]:
    """The message that makes these changes; none for no changes."""
    return [{"role": "system", "content": list(blocks)}] if blocks else []


def is_change(block: Json) -> bool:
    """Whether this block changes the tools."""
    return block.get("type") in _KINDS


def view(block: Json) -> ResultView | None:
    """A change as evidence: the tool that it adds, with its definition if it brings one, or takes back.

    None for a change of a server's tools, which are not ours to defer.
    """
    tool = as_object(block.get("tool")) or {}
    wire = as_object(tool.get("definition")) if tool.get("type") == "tool_definition" else None
    name = (tool if wire is None else wire).get("name")
    if tool.get("type") not in ("tool_reference", "tool_definition") or not isinstance(name, str) or not name:
        return None
    if block.get("type") == REMOVAL:
        return ResultView("", "", search=True, removed=(name,))
    return ResultView("", "", search=True, names=(name,), tools=() if wire is None else (wire,))


def without(wire: Json) -> list[Json]:
    """A system message without its changes of the tools; none where nothing is left of it."""
    content = objects(wire.get("content")) if wire.get("role") == "system" else []
    kept = [block for block in content if not is_change(block)]
    if len(kept) == len(content):
        return [wire]
    return [{**wire, "content": kept}] if kept else []


def by_name(wire: Json) -> list[Json]:
    """A system message with by-value additions as references, for platforms that take no others."""
    return [{**wire, "content": [_by_name(block) for block in objects(wire.get("content"))]}]


def _by_name(block: Json) -> Json:
    seen = view(block) if is_change(block) else None
    return referenced(seen.names)[0] if seen is not None and seen.tools else block


def bare(block: Json) -> Json:
    """A change without the cache marker inside its definition; the same object where there is none."""
    tool = as_object(block.get("tool")) if is_change(block) else None
    wire = as_object(tool.get("definition")) if tool is not None else None
    if tool is None or wire is None or "cache_control" not in wire:
        return block
    return {**block, "tool": {**tool, "definition": unmarked(wire)}}


def unmarked(wire: Json) -> Json:
    """The definition without cache marker and deferral mark."""
    return {key: value for key, value in wire.items() if key not in ("cache_control", "defer_loading")}


def with_placeholder(tools: Sequence[Json]) -> list[Json]:
    """The tools with a deferred one, behind those in context, that is never loaded: no model can see or call it.

    The first change of a conversation whose request declares no deferred tool missed the whole cache where it was
    measured (earendil-works/pi#9116, #9548: a third party's measurement, unverified). The documented case, a list
    without any resident tool, cannot arise: the loader is one. A deferred tool costs no tokens, so it stands here from
    the first request on. An entry that has its name is the caller's: then another one is taken.
    """
    taken = {tool.get("name") for tool in tools}
    name = _PLACEHOLDER
    while name in taken:
        name += "_"
    tool: Json = {"name": name, "description": "Not in use.", "input_schema": {"type": "object", "properties": {}}}
    shown = [entry for entry in tools if entry.get("defer_loading") is not True]
    return [*shown, {**tool, "defer_loading": True}, *(entry for entry in tools if entry.get("defer_loading") is True)]


def defined(messages: Iterable[Json]) -> dict[str, Json]:
    """The definitions that system messages carry by value, the last of each name, without those taken back."""
    out: dict[str, Json] = {}
    for wire in messages:
        for seen in _views(wire):
            for name in seen.removed:
                out.pop(name, None)
            out.update(zip(seen.names, seen.tools, strict=False))
    return out


def _views(wire: Json) -> Iterator[ResultView]:
    for block in objects(wire.get("content")) if wire.get("role") == "system" else []:
        seen = view(block) if is_change(block) else None
        if seen is not None:
            yield seen


def nameable(body: Json) -> Json:
    """A request whose list has the tools that its `tool_choice` and its results name; the same object where it does.

    Whether these may name what stands in a message only is not documented. A deferred declaration beside it leaves the
    cached prefix alone, and repeats the definition, which is no change. Results name tools where another form had found
    again what this one had added.
    """
    tools, messages = objects(body.get("tools")), objects(body.get("messages"))
    chosen = as_object(body.get("tool_choice")) or {}
    names = [*_referred(messages), *([str(chosen.get("name"))] if chosen.get("type") == "tool" else [])]
    missing = dict.fromkeys(name for name in names if all(tool.get("name") != name for tool in tools))
    known = defined(messages) if missing and tools else {}
    late = [{**unmarked(known[name]), "defer_loading": True} for name in missing if name in known]
    return {**body, "tools": [*tools, *late]} if late else body


def _referred(messages: Iterable[Json]) -> Iterator[str]:
    """The names that results refer to."""
    for wire in messages:
        for block in objects(wire.get("content")) if wire.get("role") == "user" else []:
            for part in objects(block.get("content")) if block.get("type") == "tool_result" else []:
                if part.get("type") == "tool_reference":
                    yield str(part.get("tool_name"))


def with_residents(body: Json, names: Collection[str]) -> Json:
    """A request that has at least one tool in context: without the loader all may stand in messages."""
    tools = objects(body.get("tools"))
    if any(tool.get("defer_loading") is not True for tool in tools):
        return body
    known = defined(objects(body.get("messages")))
    shown = [unmarked(known[name]) for name in names if name in known]
    return {**body, "tools": [*shown, *tools]}
