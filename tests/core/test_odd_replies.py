"""Replies of a shape that nobody expects are handed over as they came, without an error of ours, in every strategy."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, Conversation

from loadpoint import Policy
from loadpoint._schema import validate
from loadpoint._sse import Reader

Json = dict[str, Any]
STRATEGIES = [(CHAT, "eager"), (CHAT, "resend"), (MESSAGES, "eager"), (MESSAGES, "native")]
strategies = pytest.mark.parametrize(("dialect", "strategy"), STRATEGIES)


def nested(depth: int) -> Json:
    value: Json = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def ordinary(dialect: str) -> Json:
    if dialect == CHAT:
        choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
        return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    content = [{"type": "text", "text": "hi"}]
    return {"id": "r", "type": "message", "role": "assistant", "content": content, "stop_reason": "end_turn"}


ODD: dict[str, Json] = {
    "an error with a good status": {"error": {"message": "upstream is overloaded", "code": 502}},
    "no choices": {"id": "r", "choices": []},
    "a choice that is none": {"id": "r", "choices": ["x"]},
    "calls that are none": {
        "id": "r",
        "choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": ["x"]}, "finish_reason": "stop"}],
    },
    "no content": {"id": "r", "type": "message", "content": None},
    "content that is none": {"id": "r", "type": "message", "content": ["x"], "stop_reason": "end_turn"},
}
USAGE: dict[str, Any] = {
    "a word": "many",
    "a list": [1],
    "no number": {"prompt_tokens": float("nan"), "input_tokens": float("nan")},
    "no end": {"prompt_tokens": float("inf"), "input_tokens": float("inf")},
    "too large to multiply": {"prompt_tokens": 10**400, "input_tokens": 10**400},
    "below zero": {"prompt_tokens": -5, "input_tokens": -5},
}


def begun(dialect: str, strategy: str, *, stream: bool = False) -> Any:
    talk = Conversation(dialect, Policy(strategy=strategy), stream=stream)
    talk.user("go")
    return talk.begun()


@strategies
@pytest.mark.parametrize("reply", ODD.values(), ids=ODD)
def test_a_reply_of_another_shape_is_handed_over(dialect: str, strategy: str, reply: Json) -> None:
    call = begun(dialect, strategy)
    assert call.feed(reply) is None
    assert call.result == reply
    assert str(call.report)


@strategies
@pytest.mark.parametrize("usage", USAGE.values(), ids=USAGE)
def test_usage_that_cannot_be_counted_costs_no_reply(dialect: str, strategy: str, usage: Any) -> None:
    call = begun(dialect, strategy)
    reply = {**ordinary(dialect), "usage": usage}
    assert call.feed(reply) is None
    assert call.result is reply
    assert not call.report.rounds[0].cost


@strategies
def test_a_reply_that_is_nested_too_deeply_to_be_written_is_handed_over(dialect: str, strategy: str) -> None:
    call = begun(dialect, strategy)
    reply = {**ordinary(dialect), "extra": nested(100_000)}
    assert call.feed(reply) is None
    assert call.result is reply
    assert call.report.strategy == strategy


@strategies
def test_a_stream_whose_end_cannot_be_read_is_shown(dialect: str, strategy: str) -> None:
    call = begun(dialect, strategy, stream=True)
    splice = call.splice()
    start: Json = {"type": "message_start", "message": {"id": "m", "content": [], "usage": 7}}
    chunk: Json = {"id": "m", "choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}], "usage": "x"}
    events = [chunk, "[DONE]"] if dialect == CHAT else [start, {"type": "message_stop"}]
    raw = "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events).encode()
    shown = splice.feed(raw)
    assert splice.end() is None
    assert b"".join([*shown, *splice.closing()]).endswith(b"[DONE]\n\n" if dialect == CHAT else b'_stop"}\n\n')


@pytest.mark.parametrize("messages", ["go", {"role": "user"}, None, 7])
@strategies
def test_messages_that_are_no_list_are_sent_as_they_are(dialect: str, strategy: str, messages: Any) -> None:
    talk = Conversation(dialect, Policy(strategy=strategy))
    request = talk.request()
    request.body["messages"] = messages
    call = talk.session.begin(request)
    assert call is None or call.body is request.body


def test_a_stream_that_comes_in_one_piece_is_read_in_one_go() -> None:
    event = b'data: {"choices":[{"index":0,"delta":{"content":"abc"}}]}\n\n'
    started = time.perf_counter()
    assert sum(1 for _ in Reader().feed(event * 40_000)) == 40_000
    assert time.perf_counter() - started < 10, "searched to its end at every event, this takes minutes"


def test_a_schema_that_is_nested_too_deeply_raises_nothing() -> None:
    schema: Json = {"type": "object"}
    for _ in range(400):
        schema = {"type": "object", "properties": {"a": schema}}
    # How deep is too deep depends on the version of Python: one that can read the schema finds what is wrong.
    assert [problem.path for problem in validate(schema, {"a": 1})] in ([], ["a"])


def test_a_call_of_a_tool_with_such_a_schema_goes_through_and_is_remembered() -> None:
    talk = Conversation(CHAT, Policy(strategy="resend"))
    talk.user("go")
    request = talk.request()
    schema: Json = {"type": "object"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}
    request.body["tools"][0]["function"]["parameters"] = schema
    call = talk.session.begin(request)
    wanted = {"id": "call_0", "type": "function", "function": {"name": NAMES[0], "arguments": '{"a":{}}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [wanted]}
    assert call.feed({"id": "r", "choices": [{"message": message, "finish_reason": "tool_calls"}]}) is None
    assert not call.faulty


@pytest.mark.parametrize(
    "written", ['{"query": NaN}', '{"query": "event", "max_results": 1e999}', '{"query": -Infinity}']
)
def test_numbers_that_no_request_can_carry_stay_out_of_the_next_one(written: str) -> None:
    call = begun(MESSAGES, "native", stream=True)
    splice = call.splice()
    block = {"type": "tool_use", "id": "toolu_0", "name": "ToolSearch", "input": {}}
    events: list[Json] = [
        {"type": "message_start", "message": {**ordinary(MESSAGES), "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": written}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
        {"type": "message_stop"},
    ]
    splice.feed("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())
    body = splice.end()
    assert json.dumps(body, allow_nan=False)


def test_a_call_that_was_held_when_the_stream_became_unreadable_is_shown() -> None:
    call = begun(CHAT, "resend", stream=True)
    splice = call.splice()
    wanted = {"index": 0, "id": "call_0", "type": "function", "function": {"name": NAMES[0], "arguments": '{"id":1}'}}
    head: Json = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "tool_calls": [wanted]}}]},
        {**head, "choices": [None]},
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]
    shown = splice.feed("".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode())
    assert splice.end() is None
    text = b"".join([*shown, *splice.closing()]).decode()
    assert text.count(NAMES[0]) == 1
