"""Content blocks of the Messages API: reading them, and keeping ours apart from the caller's.

Block facts: `anthropic/types/*_block_param.py` (2.14.0) and
https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from loadpoint._dialect import CallView, ResultView, View
from loadpoint._json import Json, as_list, as_object, dumps, objects, parse_object

from . import _anthropic_changes as changes

# Tuples: the type of a block in a history may be anything, also what cannot be hashed.
_OF_ONE_ROUND = ("thinking", "text", "tool_use")
_UNMARKABLE = ("thinking", "redacted_thinking")


def content_blocks(content: Any) -> list[Json]:
    """The blocks of a content value; a string is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects(content)


def reference(name: str) -> Json:
    """A reference that the API expands to the tool's definition."""
    return {"type": "tool_reference", "tool_name": name}


def _joined(content: Any) -> str:
    return "".join(str(block.get("text") or "") for block in content_blocks(content) if block.get("type") == "text")


def view(message: Json) -> View:
    """The message as the core sees it."""
    role = str(message.get("role") or "user")
    content = message.get("content")
    if isinstance(content, str):
        return View(role, content)
    texts: list[str] = []
    calls: list[CallView] = []
    results: list[ResultView] = []
    forgets = False
    for block in content_blocks(content):
        kind = block.get("type")
        if kind == "text":
            texts.append(str(block.get("text") or ""))
        elif kind == "tool_use":
            calls.append(call_view(block))
        elif kind == "compaction":
            if isinstance(block.get("content"), str):  # null: it failed, and stands for nothing
                forgets, results = True, _results(block)
        else:
            results += _results(block, system=role == "system")
    return View(role, "".join(texts), tuple(calls), tuple(results), forgets)


def _results(block: Json, *, system: bool = False) -> list[ResultView]:
    """What a block says of tools: a result, or changes, which only system messages and compactions can make."""
    kind = block.get("type")
    if kind == "tool_result":
        return [tool_result(block)]
    if kind == "tool_search_tool_result":
        return [search_result(block)]
    made = objects(block.get("tool_changes")) if kind == "compaction" else [block] if system else []
    return [seen for change in made if changes.is_change(change) and (seen := changes.view(change)) is not None]


def with_calls(wire: Json, change: Callable[[CallView], CallView]) -> Json:
    """A message, or a reply, with other names and arguments in its calls; the same object if none changes."""
    if not isinstance(wire.get("content"), list):
        return wire
    content = as_list(wire["content"])
    made = [_changed(block, change) for block in content]
    return wire if all(new is old for new, old in zip(made, content, strict=True)) else {**wire, "content": made}


def _changed(block: Any, change: Callable[[CallView], CallView]) -> Any:
    wire = as_object(block)
    if wire is None or wire.get("type") != "tool_use":
        return block
    seen = call_view(wire)
    new = change(seen)
    arguments = parse_object(new.arguments) if isinstance(new.arguments, str) else new.arguments
    return block if new == seen or arguments is None else {**wire, "name": new.name, "input": arguments}


def call_view(block: Json) -> CallView:
    """A `tool_use` block as the core sees it."""
    given = block.get("input")
    arguments = given if isinstance(given, str) else as_object(given) or {}
    return CallView(str(block.get("id") or ""), str(block.get("name") or ""), arguments)


def tool_result(block: Json) -> ResultView:
    names = tuple(
        str(part["tool_name"])
        for part in content_blocks(block.get("content"))
        if part.get("type") == "tool_reference" and _is_name(part.get("tool_name"))
    )
    call_id = str(block.get("tool_use_id") or "")
    return ResultView(call_id, _joined(block.get("content")), block.get("is_error") is True, names)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def search_result(block: Json) -> ResultView:
    content = as_object(block.get("content")) or {}
    references = [as_object(item) or {} for item in as_list(content.get("tool_references"))]
    names = tuple(str(item["tool_name"]) for item in references if _is_name(item.get("tool_name")))
    failed = content.get("type") == "tool_search_tool_result_error"
    return ResultView(str(block.get("tool_use_id") or ""), "", failed, names, search=True)


def answered(message: Json, call_id: str, names: Sequence[str]) -> Json:
    """The message with references to `names` as the result of `call_id`."""
    new = [reference(name) for name in names]
    return {**message, "content": [_answered_block(b, call_id, new) for b in content_blocks(message.get("content"))]}


def _answered_block(block: Json, call_id: str, content: list[Json]) -> Json:
    hit = block.get("type") == "tool_result" and block.get("tool_use_id") == call_id
    return {**block, "content": content} if hit else block


def without_calls(content: Sequence[Json], cut: Collection[int]) -> list[Json]:
    """The blocks without the tool calls at these positions (counted among the calls)."""
    out: list[Json] = []
    at = -1
    for block in content:
        at += block.get("type") == "tool_use"
        if block.get("type") != "tool_use" or at not in cut:
            out.append(block)
    return out


def sendable(content: Sequence[Json]) -> list[Json]:
    """The blocks of a reply as a history may hold them.

    The API refuses to take back blank text that it sent itself, and arguments that are no object: where the model wrote
    none, an empty one stands for them, and the result says what was wrong.
    """
    out: list[Json] = []
    for block in content:
        if block.get("type") == "text" and not str(block.get("text") or "").strip():
            continue
        if block.get("type") == "tool_use" and as_object(block.get("input")) is None:
            out.append({**block, "input": {}})
        else:
            out.append(block)
    return out


def never_empty(content: list[Json]) -> list[Json]:
    """The blocks, or an ellipsis where our own call was all there was: the API takes no empty message back."""
    return content or [{"type": "text", "text": "\N{HORIZONTAL ELLIPSIS}"}]


def bare(message: Json) -> Json:
    """The message without cache markers; a string is the text block that it stands for, as for the provider."""
    if isinstance(message.get("content"), str):
        return {**message, "content": [{"type": "text", "text": message["content"]}]}
    return {**message, "content": [_bare_block(block) for block in as_list(message.get("content"))]}


def _bare_block(block: Any) -> Any:
    wire = as_object(block)
    if wire is None:
        return block
    out = {key: value for key, value in changes.bare(wire).items() if key != "cache_control"}
    if isinstance(out.get("content"), list):
        out["content"] = [_bare_block(part) for part in as_list(out["content"])]
    return out


def bare_text(system: Any) -> str:
    """A system prompt as text to hash, without cache markers."""
    return system if isinstance(system, str) else dumps([_bare_block(part) for part in as_list(system)])


def last_marker(messages: Sequence[Json]) -> Json | None:
    """The last cache marker in these messages."""
    for message in reversed(messages):
        for block in reversed(objects(message.get("content"))):
            marker = as_object(block.get("cache_control"))
            if marker is not None:
                return marker
    return None


def with_last_marker(turn: Sequence[Json], marker: Json) -> tuple[Json, ...]:
    """The messages with a cache marker on the last block of the last assistant message that can take one."""
    out = list(turn)
    for at in range(len(out) - 1, -1, -1):
        content = content_blocks(out[at].get("content"))
        for place in range(len(content) - 1, -1, -1):
            if content[place].get("type") not in _UNMARKABLE:
                content[place] = {**content[place], "cache_control": marker}
                out[at] = {**out[at], "content": content}
                return tuple(out)
    return tuple(out)


def has_thinking(message: Json) -> bool:
    """Whether the message holds a block that its provider has signed."""
    return any(block.get("type") in _UNMARKABLE for block in content_blocks(message.get("content")))


def without_thinking(message: Json) -> Json:
    """The message without its thinking; the same object where it has none."""
    content = objects(message.get("content"))
    kept = [block for block in content if block.get("type") not in _UNMARKABLE]
    return message if len(kept) == len(content) else {**message, "content": never_empty(kept)}


def with_last_thinking(message: Json) -> Json:
    """The message with only the last of its thinking blocks.

    A message that stands for several rounds holds the thinking of each. The API wants back the thinking before a tool
    call; that of rounds which are not sent any more is not before anything. One round thinks several times only around
    tools that the provider runs, and such a message is left alone.
    """
    content = objects(message.get("content"))
    places = [at for at, block in enumerate(content) if block.get("type") == "thinking"]
    if not places[1:] or any(block.get("type") not in _OF_ONE_ROUND for block in content):
        return message
    return {**message, "content": [block for at, block in enumerate(content) if at not in places[:-1]]}


def is_marked(body: Json) -> bool:
    """Whether a request has a cache marker anywhere: at its top, on a tool, or on a block of system or messages."""
    if body.get("cache_control") or any(tool.get("cache_control") for tool in objects(body.get("tools"))):
        return True
    contents = [body.get("system"), *(message.get("content") for message in objects(body.get("messages")))]
    blocks = [block for content in contents for block in objects(content)]
    return any(b.get("cache_control") or any(p.get("cache_control") for p in objects(b.get("content"))) for b in blocks)


def with_markers(body: Json) -> Json:
    """A request with a cache marker on the last tool in context and on the last block of the last message."""
    marker: Json = {"type": "ephemeral"}
    out = dict(body)
    tools = objects(body.get("tools"))
    at = max((i for i, tool in enumerate(tools) if tool.get("defer_loading") is not True), default=None)
    if at is not None:
        tools[at] = {**tools[at], "cache_control": marker}
        out["tools"] = tools
    messages = objects(body.get("messages"))
    content = content_blocks(messages[-1].get("content")) if messages else []
    if content and content[-1].get("type") not in _UNMARKABLE and content[-1].get("text") != "":
        content[-1] = {**content[-1], "cache_control": marker}
        out["messages"] = [*messages[:-1], {**messages[-1], "content": content}]
    return out
