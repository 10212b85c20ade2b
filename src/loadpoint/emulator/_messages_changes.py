"""What the dialect `anthropic.messages` rejects about system messages in a conversation, and their tool changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._json import Json, as_list, as_object, canonical, digest, dumps, objects
from ._dialect import Asked
from ._messages_prompt import CHANGES, blocks_of, is_compaction, is_search_tool, marker
from ._rules import Broken, broken


def check(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """Where system messages may stand, and what changes of the tools they may carry."""
    for at, message in enumerate(messages):
        system = message.get("role") == "system"
        if system:
            yield from _place(at, messages, asked)
        for index, block in enumerate(blocks_of(message.get("content"))):
            if system and block.get("type") in CHANGES:
                yield from _change(at, index, block, messages, asked)
            if is_compaction(block) and asked.memory.compacted.get(_named(block), _changed(block)) != _changed(block):
                yield broken("messages.compaction_tool_changes_mismatch", at=at, block=index)
    yield from _amount(messages, asked)


def remember(asked: Asked, reply: Json) -> None:
    """Keeps what the compactions of a reply say of the tools: they have to come back with the same."""
    for block in filter(is_compaction, objects(reply.get("content"))):
        asked.memory.compacted[_named(block)] = _changed(block)


def _named(block: Json) -> str:
    return digest(str(block.get("content")), str(block.get("encrypted_content")))


def _changed(block: Json) -> str:
    return canonical(block.get("tool_changes") or [])


def betas(asked: Asked) -> set[str]:
    """The beta headers of a request (in the body on Bedrock and Vertex)."""
    named = {part.strip() for part in asked.headers.get("anthropic-beta", "").split(",")}
    return named | {str(part) for part in as_list(asked.body.get("anthropic_beta"))}


def declared(body: Json) -> set[str]:
    """The names in the list of tools."""
    return {str(tool.get("name")) for tool in objects(body.get("tools"))}


def _place(at: int, messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    message = messages[at]
    if asked.book["messages.system_role_unsupported"].applies_to(asked.model):
        yield broken("messages.system_role_unsupported")
    before = next((item for item in reversed(messages[:at]) if item.get("role") != "system"), None)
    after = next((item for item in messages[at + 1 :] if item.get("role") != "system"), None)
    if after is not None and after.get("role") != "assistant":
        yield broken("messages.system_role_position")
    kinds = [str(block.get("type")) for block in blocks_of(message.get("content"))]
    changes = bool(set(CHANGES) & set(kinds))
    if before is not None and before.get("role") == "assistant":
        tail = blocks_of(before.get("content"))[-1:]
        if not tail or not str(tail[0].get("type")).endswith("tool_result"):
            yield broken("messages.system_role_after", at=at)
        elif changes:
            yield broken("messages.tool_change_after_pause", at=at)
    if changes and message.get("clear_at") is not None:
        yield broken("messages.tool_change_clear_at", at=at)


def _change(at: int, index: int, block: Json, messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    book, kind = asked.book, str(block.get("type"))
    if book["messages.tool_change_unsupported"].applies_to(asked.model):
        yield broken("messages.tool_change_unsupported", at=at, block=index)
    tool = as_object(block.get("tool")) or {}
    form = str(tool.get("type"))
    needed: list[str] | None = book.value("messages.tool_change_shape", kind).get(form)
    missing = [name for name in needed or () if tool.get(name) is None]
    if needed is None or missing:
        where = "type" if needed is None else missing[0]
        yield broken("messages.tool_change_shape", at=at, block=index, type=kind, name=where)
        return
    by_value = form == "tool_definition"
    headers = book.value("messages.tool_change_header", "by_value" if by_value else "by_reference")
    if not betas(asked) & set(headers):
        yield broken("messages.tool_change_header", at=at, block=index, type=kind)
    earlier = {**messages[at], "content": blocks_of(messages[at].get("content"))[:index]}
    if by_value:
        yield from _definition(at, index, block, [*messages[:at], earlier], asked)
    else:
        yield from _reference(tool, [*messages[:at], earlier], asked)


def _reference(tool: Json, before: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    servers = {str(server.get("name")) for server in objects(asked.body.get("mcp_servers"))}
    if tool.get("type") == "tool_reference":
        known = declared(asked.body) | {str(added.get("name")) for added in _definitions(before)}
        if str(tool.get("name")) not in known:
            yield broken("messages.tool_change_unknown", name=tool.get("name"))
    elif str(tool.get("server_name")) not in servers:
        yield broken("messages.tool_change_unknown", name=tool.get("name") or tool.get("server_name"))


def _definition(at: int, index: int, block: Json, before: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """A tool that is defined where it is added."""
    given = as_object((as_object(block.get("tool")) or {}).get("definition")) or {}
    book, name, kind = asked.book, str(given.get("name")), str(given.get("type") or "custom")
    yield broken("messages.inline_platform", at=at, block=index)
    if kind == "mcp_toolset" and book.value("messages.inline_mcp_header", "beta") not in betas(asked):
        yield broken("messages.inline_mcp_header", at=at, block=index)
    if kind.startswith(tuple(book.value("messages.inline_type", "prefixes"))):
        yield broken("messages.inline_type", at=at, block=index, type=kind)
    others = [*objects(asked.body.get("tools")), *_definitions(before)]
    held = {str(other.get("type") or "custom") for other in others if str(other.get("name")) == name}
    if held - {kind}:
        yield broken("messages.tool_name_conflict", name=name)
    if marker(given) is not None:
        if marker(block) is not None:
            yield broken("messages.tool_change_two_markers", at=at, block=index)
        if given.get("defer_loading") is True:
            yield broken("messages.defer_with_cache_control", name=name)
    if is_search_tool(given) and "bm25" in name:
        yield broken("messages.bm25_on_bedrock")


def _amount(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """How much may be defined after the first message of the user, and how much in all the model may be shown."""
    given = list(_definitions(messages))
    size = sum(map(_size, given))
    limits = asked.book["messages.available_tools_limit"].values
    if len(given) > limits["tools"] or size > limits["bytes"]:
        yield broken("messages.available_tools_limit")
    shown = [tool for tool in objects(asked.body.get("tools")) if tool.get("defer_loading") is not True]
    if size + sum(map(_size, shown)) > asked.book.value("messages.rendered_tools_limit", "bytes"):
        yield broken("messages.rendered_tools_limit")


def _size(definition: Json) -> int:
    return len(dumps(definition).encode("utf-8", "surrogatepass"))


def _definitions(messages: Sequence[Json]) -> Iterator[Json]:
    """The tools that system messages define by value."""
    for message in messages:
        for block in blocks_of(message.get("content")) if message.get("role") == "system" else []:
            definition = as_object((as_object(block.get("tool")) or {}).get("definition"))
            if definition is not None:
                yield definition
