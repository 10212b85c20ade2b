"""The reply in a stream, put together independently of the code under test; a stream with holes is an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
MESSAGES, RESPONSES = "anthropic.messages", "openai.responses"


def rebuilt(dialect: str, raw: bytes) -> Json:
    """The reply in a stream, put together independently of the code under test."""
    events = [json.loads(line[6:]) for line in raw.decode().split("\n") if line.startswith("data: {")]
    if dialect == MESSAGES:
        return _message(events)
    if dialect == RESPONSES:
        return _response(events)
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    finish = None
    ids = {event["id"] for event in events}
    assert len(ids) == 1, f"the id changed in the stream: {ids}"
    for event in events:
        for choice in event["choices"]:
            finish = choice.get("finish_reason") or finish
            delta = choice["delta"]
            if delta.get("content") is not None:
                message["content"] = (message["content"] or "") + delta["content"]
            for call in delta.get("tool_calls") or []:
                known = calls.setdefault(
                    call["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                )
                known["id"] = known["id"] or call.get("id") or ""
                known["function"]["name"] += (call.get("function") or {}).get("name") or ""
                known["function"]["arguments"] += (call.get("function") or {}).get("arguments") or ""
    assert sorted(calls) == list(range(len(calls))), "call indices have holes"
    if calls:
        message["tool_calls"] = [calls[at] for at in sorted(calls)]
    return {"id": events[0]["id"], "choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def _message(events: Sequence[Json]) -> Json:
    reply: Json = {}
    blocks: list[Json] = []
    pieces: list[str] = []
    for event in events:
        kind = event["type"]
        if kind == "message_start":
            assert not reply, "a second message_start"
            reply = dict(event["message"])
        elif kind == "content_block_start":
            assert event["index"] == len(blocks), "block indices have holes"
            blocks.append(dict(event["content_block"]))
            pieces.append("")
        elif kind == "content_block_delta":
            delta, at = event["delta"], event["index"]
            pieces[at] += delta.get("partial_json", "")
            for field in {"text", "thinking", "signature"} & set(delta):
                blocks[at][field] += delta[field]
        elif kind == "message_delta":
            reply |= {"stop_reason": event["delta"]["stop_reason"], "usage": event["usage"]}
    for block, piece in zip(blocks, pieces, strict=True):
        if piece:
            block["input"] = json.loads(piece)
    return {**reply, "content": blocks}


def _response(events: Sequence[Json]) -> Json:
    items: dict[int, Json] = {}
    ids: list[str] = []
    for number, event in enumerate(events):
        kind = event["type"]
        assert event["sequence_number"] == number, "sequence numbers have holes"
        if "response" in event:
            ids.append(event["response"]["id"])
        if kind == "response.output_item.added":
            assert event["output_index"] == len(items), "output indices have holes"
            items[event["output_index"]] = event["item"]
        elif "output_index" in event:
            known = items[event["output_index"]]
            assert event.get("item_id", known["id"]) == known["id"] == event.get("item", known)["id"]
            assert known.get("namespace") == event.get("item", known).get("namespace")
            if "item" in event:
                items[event["output_index"]] = event["item"]
    assert len(set(ids)) == 1, f"the id changed in the stream: {ids}"
    assert [event["type"] for event in events].count("response.created") == 1
    reply: Json = events[-1]["response"]
    assert reply["output"] == [items[at] for at in sorted(items)], "the last event tells another story"
    return reply
