"""A response as the typed events that stream it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._json import Json, objects
from ._answer import Piece, sse
from ._chat_stream import steps
from ._ids import Ids

_TEXT_STEP = 12
_ARGUMENT_STEP = 9
_ENDS = {"completed": "response.completed", "incomplete": "response.incomplete", "failed": "response.failed"}


def pieces(
    reply: Json, *, changed: Mapping[int, str] | None = None, obfuscated: bool = True, after: int = -1
) -> tuple[Piece, ...]:
    """The server-sent events of `reply`, numbered from 0.

    `changed` gives by output index another call_id for `output_item.added`; `obfuscated` adds the filler that hides the
    lengths of deltas; events up to the number `after` are left out (a resumed stream).
    """
    filler = Ids("obfuscation", str(reply.get("id")))
    numbered: list[Json] = []
    for number, event in enumerate(_events(reply, changed or {})):
        full = {**event, "sequence_number": number}
        if obfuscated and "delta" in event:
            full["obfuscation"] = filler.text(max(1, 16 - len(event["delta"])))
        numbered.append(full)
    return tuple(Piece(sse(event, event=event["type"])) for event in numbered if event["sequence_number"] > after)


def _events(reply: Json, changed: Mapping[int, str]) -> Iterator[Json]:
    opened: Json = {**reply, "status": "in_progress", "output": [], "usage": None, "completed_at": None}
    opened |= {"error": None, "incomplete_details": None}
    yield {"type": "response.created", "response": opened}
    yield {"type": "response.in_progress", "response": opened}
    for index, item in enumerate(objects(reply["output"])):
        first, inner = _item(item)
        if index in changed:
            first["call_id"] = changed[index]
        place: Json = {"output_index": index}
        yield {"type": "response.output_item.added", **place, "item": first}
        for event in inner:
            yield {**event, **place, "item_id": str(item.get("id"))}
        yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": _ENDS.get(str(reply.get("status")), "response.completed"), "response": reply}


def _item(item: Json) -> tuple[Json, Iterator[Json]]:
    """How an item starts, and the events that fill it."""
    started = {**item, **({"status": "in_progress"} if "status" in item else {})}
    kind = item.get("type")
    if kind == "message":
        return {**started, "content": []}, _message(item)
    if kind == "reasoning":
        # What stands in `added` may be incomplete: only `done` carries the content that is to be sent back.
        sealed = item.get("encrypted_content")
        begun = {"encrypted_content": sealed[: len(sealed) // 2]} if isinstance(sealed, str) else {}
        return {**started, **begun, "summary": []}, _reasoning(item)
    if kind == "function_call":
        return {**started, "arguments": ""}, _arguments(item)
    if kind == "custom_tool_call":
        return {**started, "input": ""}, _input(item)
    if kind == "tool_search_call":
        return {**started, "arguments": {}}, iter(())
    return started, iter(())


def _message(item: Json) -> Iterator[Json]:
    for at, part in enumerate(objects(item.get("content"))):
        place: Json = {"content_index": at}
        refused = part.get("type") == "refusal"
        field = "refusal" if refused else "text"
        text = str(part.get(field) or "")
        name = "response.refusal" if refused else "response.output_text"
        extra: Json = {} if refused else {"logprobs": []}
        yield {"type": "response.content_part.added", **place, "part": {**part, field: ""}}
        for step in steps(text, _TEXT_STEP):
            yield {"type": f"{name}.delta", **place, "delta": step, **extra}
        yield {"type": f"{name}.done", **place, field: text, **extra}
        yield {"type": "response.content_part.done", **place, "part": part}


def _reasoning(item: Json) -> Iterator[Json]:
    for at, part in enumerate(objects(item.get("summary"))):
        place: Json = {"summary_index": at}
        text = str(part.get("text") or "")
        yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
        for step in steps(text, _TEXT_STEP):
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": step}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": text}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}


def _arguments(item: Json) -> Iterator[Json]:
    for step in steps(item["arguments"], _ARGUMENT_STEP):
        yield {"type": "response.function_call_arguments.delta", "delta": step}
    yield {"type": "response.function_call_arguments.done", "arguments": item["arguments"]}


def _input(item: Json) -> Iterator[Json]:
    for step in steps(item["input"], _ARGUMENT_STEP):
        yield {"type": "response.custom_tool_call_input.delta", "delta": step}
    yield {"type": "response.custom_tool_call_input.done", "input": item["input"]}
