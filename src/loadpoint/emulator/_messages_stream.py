"""A Messages reply as the events that stream it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._json import Json, dumps
from ._answer import Piece, sse
from ._chat_stream import steps

_STEP = 14
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


def pieces(reply: Json, raw: Mapping[int, str], usage: Json) -> tuple[Piece, ...]:
    """The server-sent events of `reply`.

    `raw` holds the input text of calls by block index, `usage` what is known when the stream starts; the last event
    carries the cumulative usage of the reply.
    """
    return tuple(Piece(sse(event, event=event["type"])) for event in _events(reply, raw, usage))


def _events(reply: Json, raw: Mapping[int, str], usage: Json) -> Iterator[Json]:
    opened: Json = {"content": [], "stop_reason": None, "stop_details": None, "usage": usage}
    yield {"type": "message_start", "message": {**reply, **opened}}
    for index, block in enumerate(reply["content"]):
        shown, deltas = _block(block, raw.get(index))
        yield {"type": "content_block_start", "index": index, "content_block": shown}
        if index == 0:
            yield {"type": "ping"}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    if not reply["content"]:
        yield {"type": "ping"}
    delta = {key: reply[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    final = {key: value for key, value in reply["usage"].items() if key not in ("cache_creation", "service_tier")}
    yield {"type": "message_delta", "delta": delta, "usage": final}
    yield {"type": "message_stop"}


def _block(block: Json, raw: str | None) -> tuple[Json, list[Json]]:
    """How a block starts, and the deltas that fill it."""
    kind = block.get("type")
    if kind == "text":
        deltas: list[Json] = [{"type": "text_delta", "text": step} for step in steps(block["text"], _STEP)]
        return {**block, "text": ""}, deltas
    if kind == "thinking":
        deltas = [{"type": "thinking_delta", "thinking": step} for step in steps(block["thinking"], _STEP)]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in _CALLS:
        text = dumps(block["input"]) if raw is None else raw
        deltas = [{"type": "input_json_delta", "partial_json": step} for step in ["", *steps(text, _STEP)]]
        return {**block, "input": {}}, deltas
    if kind == "compaction":
        # One delta with all of it: lib/streaming/_beta_messages.py of anthropic 2.14 takes the last one.
        kept = {"content": block.get("content"), "encrypted_content": block.get("encrypted_content")}
        return {**block, "content": None, "encrypted_content": None}, [{"type": "compaction_delta", **kept}]
    return block, []
