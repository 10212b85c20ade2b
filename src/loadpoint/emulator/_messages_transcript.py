"""What the dialect `anthropic.messages` rejects about a transcript: roles, blocks, pairs, references."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from .._json import Json, as_list, as_object
from . import _messages_changes
from ._dialect import Asked
from ._messages_changes import declared
from ._messages_prompt import blocks_of, prompt, references
from ._rules import Broken, RuleBook, broken


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule about `messages` that the request breaks."""
    messages = [as_object(message) or {} for message in as_list(asked.body.get("messages"))]
    if not messages and isinstance(asked.body.get("messages"), list):
        yield broken("messages.empty_list")
        return
    if messages and messages[0].get("role") != "user":
        yield broken("messages.first_role")
    for at, message in enumerate(messages):
        yield from _message(at, message, at == len(messages) - 1, asked.book)
    yield from _messages_changes.check(messages, asked)
    yield from _pairs(messages)
    yield from _server_pairs(messages, asked)
    yield from _references(messages, asked)


def loaded(body: Json) -> tuple[str, ...]:
    """The names of the tools that the transcript loads."""
    return prompt(body).loaded


def _message(at: int, message: Json, last: bool, book: RuleBook) -> Iterator[Broken]:
    role = message.get("role")
    fields = book["messages.unknown_message_field"].values
    if not isinstance(role, str) or role not in fields:
        yield broken("messages.role", at=at)
        return
    for name in message:
        if name not in fields[role]:
            yield broken("messages.unknown_message_field", at=at, name=name)
    content = message.get("content")
    settings_only = role == "system" and message.get("output_config") is not None
    if not content and not settings_only and not (last and role == "assistant" and content is not None):
        yield broken("messages.empty_content", at=at)
    if last and role == "assistant" and _text(content) != _text(content).rstrip():
        yield broken("messages.trailing_whitespace")
    blocks = blocks_of(content) if content else []
    for index, block in enumerate(blocks):
        yield from _block(at, index, role, block, book)
    if role == "assistant" and blocks and blocks[-1].get("type") == "thinking":
        yield broken("messages.thinking_last", at=at)


def _text(content: object) -> str:
    blocks = blocks_of(content)
    return str(blocks[-1].get("text")) if blocks and blocks[-1].get("type") == "text" else ""


def _block(at: int, index: int, role: str, block: Json, book: RuleBook) -> Iterator[Broken]:
    kind = str(block.get("type"))
    expected = book["messages.block_type"].values[role]
    if kind not in expected:
        listed = ", ".join(map(repr, sorted(expected)))
        yield broken("messages.block_type", at=at, block=index, type=kind, expected=listed)
        return
    known = book["messages.unknown_block_field"].values.get(kind)
    thinking = kind in ("thinking", "redacted_thinking")
    for name in block:
        if thinking and name == "cache_control":
            yield broken("messages.cache_control_on_thinking", at=at, block=index, type=kind)
        elif known is not None and name not in known:
            yield broken("messages.unknown_block_field", at=at, block=index, type=kind, name=name)
    if kind == "text" and not str(block.get("text") or "").strip():
        yield broken("messages.blank_text" if block.get("text") else "messages.empty_text")
    if kind in ("tool_use", "server_tool_use"):
        yield from _call(at, index, block, book)
    if kind == "tool_result":
        yield from _result(at, index, block, book)


def _call(at: int, index: int, block: Json, book: RuleBook) -> Iterator[Broken]:
    kind = block["type"]
    rule = "messages.server_tool_use_id" if kind == "server_tool_use" else "messages.tool_use_id"
    if not re.fullmatch(book.value(rule, "pattern"), str(block.get("id"))):
        yield broken(rule, at=at, block=index, type=kind)
    if as_object(block.get("input")) is None:
        yield broken("messages.tool_use_input", at=at, block=index, type=kind)
    caller = as_object(block.get("caller"))
    if caller is not None and caller.get("type") not in book.value("messages.caller", "known"):
        yield broken("messages.caller", at=at, block=index, type=caller.get("type"))


def _result(at: int, index: int, block: Json, book: RuleBook) -> Iterator[Broken]:
    content = block.get("content")
    if content == []:
        yield broken("messages.result_empty_list", at=at, block=index)
    kinds = [str((as_object(item) or {}).get("type")) for item in as_list(content)]
    known = book.value("messages.result_item_type", "known")
    for item, kind in enumerate(kinds):
        if kind not in known:
            listed = ", ".join(map(repr, known))
            yield broken("messages.result_item_type", at=at, block=index, item=item, type=kind, expected=listed)
    if block.get("is_error") is True and set(kinds) - {"text"}:
        yield broken("messages.error_result_not_text", at=at, block=index)
    if "tool_reference" in kinds and set(kinds) != {"tool_reference"}:
        yield broken("messages.result_mixes_reference", at=at, block=index)


def _pairs(messages: Sequence[Json]) -> Iterator[Broken]:
    """Every `tool_use` is answered at the start of the next message, and nothing else is."""
    seen: set[str] = set()
    open_ids: list[str] = []
    for at, message in enumerate(messages):
        blocks = blocks_of(message.get("content"))
        yield from _answers(at, blocks, open_ids)
        open_ids = []
        for index, block in enumerate(blocks):
            if block.get("type") == "tool_use":
                open_ids.append(str(block.get("id")))
                if str(block.get("id")) in seen:
                    yield broken("messages.tool_use_ids_unique", at=at, block=index)
                seen.add(str(block.get("id")))
    if open_ids:
        yield broken("messages.tool_use_unanswered", at=len(messages) - 1, ids=", ".join(open_ids))


def _answers(at: int, blocks: Sequence[Json], open_ids: Sequence[str]) -> Iterator[Broken]:
    """The results in the message after a turn that made the calls `open_ids`."""
    results = [(index, str(block.get("tool_use_id"))) for index, block in enumerate(blocks) if _is_result(block)]
    answered = [id_ for _, id_ in results]
    for index, id_ in results:
        if id_.startswith("srvtoolu_"):
            yield broken("messages.tool_result_for_server_tool", at=at, block=index, id=id_)
        elif id_ not in open_ids:
            yield broken("messages.tool_result_orphan", at=at, block=index, id=id_)
        elif answered.count(id_) > 1:
            yield broken("messages.tool_result_duplicate", at=at, block=index, id=id_)
    missing = [id_ for id_ in open_ids if id_ not in answered]
    if missing:
        yield broken("messages.tool_use_unanswered", at=at - 1, ids=", ".join(missing))
    elif open_ids and [index for index, _ in results] != list(range(len(results))):
        yield broken("messages.tool_result_first", at=at - 1, ids=", ".join(open_ids))


def _is_result(block: Json) -> bool:
    return block.get("type") == "tool_result"


def _server_pairs(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """Results of server tools follow their call; a search without its result is refused.

    A turn that was paused, or whose client calls are being answered, is continued: the result comes with its next part.
    """
    names = declared(asked.body)
    calls: dict[str, tuple[int, str]] = {}
    for at, message in enumerate(messages):
        if _says(message):
            yield from _unanswered(calls)
            calls = {}
        for index, block in enumerate(blocks_of(message.get("content"))):
            kind = str(block.get("type"))
            if kind == "server_tool_use":
                calls[str(block.get("id"))] = (at, str(block.get("name")))
                if str(block.get("name")) not in names:
                    yield broken("messages.server_tool_undeclared", at=at, block=index, name=block.get("name"))
            elif kind.endswith("_tool_result"):
                id_ = str(block.get("tool_use_id"))
                if id_ not in calls and kind != "mcp_tool_result":
                    yield broken("messages.server_result_orphan", at=at, block=index, type=kind, id=id_)
                calls.pop(id_, None)
    yield from _unanswered({id_: call for id_, call in calls.items() if not _pending(messages, call[0])})


def _says(message: Json) -> bool:
    """Whether the user says something, which ends the turn before it."""
    kinds = {str(block.get("type")) for block in blocks_of(message.get("content"))}
    return message.get("role") == "user" and kinds != {"tool_result"}


def _unanswered(calls: Mapping[str, tuple[int, str]]) -> Iterator[Broken]:
    for id_, (at, name) in calls.items():
        if name.startswith("tool_search_tool"):
            yield broken("messages.server_tool_use_unanswered", at=at, name=name, id=id_)


def _pending(messages: Sequence[Json], at: int) -> bool:
    """Whether the service itself still has to run the server tools of this turn.

    So it is with a paused turn, and with one whose client calls are being answered now.
    """
    following = messages[at + 1 :]
    if not following:
        return True
    kinds = {str(block.get("type")) for block in blocks_of(following[0].get("content"))}
    return len(following) == 1 and kinds == {"tool_result"}


def _references(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    book = asked.book
    names = declared(asked.body)
    unsupported = book["messages.reference_unsupported_model"].applies_to(asked.model)
    limit = book.value("messages.reference_name_length", "limit")
    for at, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message.get("content"))):
            if block.get("type") not in ("tool_result", "tool_search_tool_result"):
                continue
            for item, reference in references(block):
                name = reference.get("tool_name")
                place = {"at": at, "block": index, "item": item}
                if unsupported:
                    yield broken("messages.reference_unsupported_model", **place)
                if not isinstance(name, str):
                    yield broken("messages.reference_shape", **place)
                    continue
                if len(name) > limit:
                    yield broken("messages.reference_name_length", **place)
                if name not in names:
                    yield broken("messages.reference_unknown", name=name)
