"""A Chat Completions reply as the chunks that stream it."""

from __future__ import annotations

from typing import Any

from .._json import Json
from ._answer import Piece, sse

_TEXT_STEP = 12
_ARGUMENT_STEP = 9


def pieces(reply: Json, *, include_usage: bool) -> tuple[Piece, ...]:
    """The server-sent events of `reply`: role, deltas, finish, usage if asked for, [DONE]."""
    envelope = {key: value for key, value in reply.items() if key not in ("choices", "usage")}
    envelope["object"] = "chat.completion.chunk"
    extra = {"usage": None} if include_usage else {}
    events: list[Any] = []
    for choice in reply["choices"]:
        index = choice["index"]
        events += [_choice(envelope, extra, index, delta, None) for delta in _deltas(choice["message"])]
        events.append(_choice(envelope, extra, index, {}, choice["finish_reason"]))
    if include_usage:
        events.append({**envelope, "choices": [], "usage": reply["usage"]})
    return tuple(Piece(sse(event)) for event in [*events, "[DONE]"])


def _choice(envelope: Json, extra: Json, index: int, delta: Json, finish: str | None) -> Json:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {**envelope, "choices": [choice], **extra}


def _deltas(message: Json) -> list[Json]:
    content = message.get("content")
    calls: list[Json] = message.get("tool_calls") or []
    deltas: list[Json] = [{"role": "assistant", "content": None if calls and not content else "", "refusal": None}]
    deltas += [{"content": step} for step in steps(content or "", _TEXT_STEP)]
    deltas += [{"refusal": step} for step in steps(message.get("refusal") or "", _TEXT_STEP)]
    shown = ("role", "content", "refusal", "annotations", "tool_calls")
    deltas += [{key: value} for key, value in message.items() if key not in shown and value is not None]
    for at, call in enumerate(calls):
        function = call["function"]
        opened = {"index": at, "id": call["id"], "type": "function"}
        deltas.append({"tool_calls": [{**opened, "function": {"name": function["name"], "arguments": ""}}]})
        for step in steps(function["arguments"], _ARGUMENT_STEP):
            deltas.append({"tool_calls": [{"index": at, "function": {"arguments": step}}]})
    return deltas


def steps(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters."""
    return [text[at : at + size] for at in range(0, len(text), size)]
