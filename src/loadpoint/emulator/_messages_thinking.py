"""What the dialect `anthropic.messages` rejects about thinking blocks that come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .._json import Json, as_list, as_object
from ._dialect import Asked
from ._messages_prompt import blocks_of, digests
from ._rules import Broken, broken
from ._signature import valid

_KINDS = ("thinking", "redacted_thinking")


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule about thinking that the request breaks."""
    messages = [as_object(message) or {} for message in as_list(asked.body.get("messages"))]
    for at, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message.get("content"))):
            signed = valid(str(block.get("thinking")), str(block.get("signature")))
            if block.get("type") == "thinking" and not signed:
                yield broken("messages.thinking_signature", at=at, block=index)
    yield from _latest_turn(messages, asked)
    yield from _bound(messages, asked)


def _latest_turn(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """The thinking of the assistant turn whose calls are being answered now must be there, whole and unchanged."""
    at = max((at for at, message in enumerate(messages) if message.get("role") == "assistant"), default=-1)
    if at < 0:
        return
    blocks = blocks_of(messages[at].get("content"))
    calls = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    if not calls:
        return
    issued = next((asked.memory.issued[id_] for id_ in calls if id_ in asked.memory.issued), None)
    sent = [(index, block) for index, block in enumerate(blocks) if block.get("type") in _KINDS]
    thinking = as_object(asked.body.get("thinking")) or {}
    enabled = thinking.get("type") in ("enabled", "adaptive")
    if issued and enabled and not sent:
        yield broken("messages.thinking_missing", at=at, type=blocks[0].get("type"))
    elif issued and sent and [block for _, block in sent] != issued:
        yield broken("messages.thinking_modified", at=at, block=sent[0][0])
    elif thinking.get("type") == "enabled" and blocks[0].get("type") not in _KINDS:
        yield broken("messages.thinking_missing", at=at, type=blocks[0].get("type"))


def _bound(messages: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    """Newer models accept a thinking block only behind the prompt that it was made for."""
    binding = as_object((as_object(asked.body.get("thinking")) or {}).get("block_binding")) or {}
    behaviour = binding.get("prefix_mismatch_behavior")
    if behaviour == "drop_block":
        return
    if behaviour != "error" and not asked.book["messages.thinking_bound"].applies_to(asked.model):
        return
    before: list[str] | None = None
    for at, message in enumerate(messages):
        for index, block in enumerate(blocks_of(message.get("content"))):
            bound = asked.memory.bound.get(str(block.get("signature"))) if block.get("type") == "thinking" else None
            if bound is None:
                continue
            before = digests(asked.body) if before is None else before
            if bound != before[at]:
                yield broken("messages.thinking_bound", at=at, block=index)
