"""What goes wrong on purpose: statuses, cut and slow streams, bad JSON, refusals, and how the real SDKs take it."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.emulator.support import CHAT_MODEL, CLAUDE, body_of, chat_client, chat_tool, claude_client, tool, user

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move

CHAT: dict[str, Any] = {"model": CHAT_MODEL, "messages": [user("hi")], "tools": [chat_tool("ping")]}
MESSAGES: dict[str, Any] = {"model": CLAUDE, "max_tokens": 99, "messages": [user("hi")], "tools": [tool("ping")]}
LONG = Move(text="a long answer " * 20)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, openai.BadRequestError), (429, openai.RateLimitError), (500, openai.InternalServerError)],
)
def test_statuses_on_chat(status: int, error: type[openai.APIStatusError]):
    server = Emulator([Move.fault(status, "No.")])
    with pytest.raises(error, match=r"No\."):
        chat_client(server).with_options(max_retries=0).chat.completions.create(**CHAT)
    assert server.exchanges[0].error == "No."


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
def test_statuses_on_messages(status: int, kind: str):
    server = Emulator([Move.fault(status)])
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude_client(server).with_options(max_retries=0).messages.create(**MESSAGES)
    assert caught.value.status_code == status
    assert body_of(caught.value)["error"]["type"] == kind


def test_the_sdks_retry_and_play_the_next_move():
    server = Emulator([Move.fault(529), Move.fault(429), Move(text="finally")])
    assert claude_client(server).messages.create(**MESSAGES).content[0].text == "finally"
    assert [exchange.status for exchange in server.exchanges] == [529, 429, 200]
    own = Emulator([Move(status=400, error={"error": {"message": "mine", "code": "c"}})])
    with pytest.raises(openai.BadRequestError, match="mine"):
        chat_client(own).chat.completions.create(**CHAT)


@pytest.mark.parametrize("cut", [{"cut_events": 3}, {"cut_bytes": 700}])
@pytest.mark.parametrize("served", [False, True])
def test_a_cut_stream_ends_in_a_connection_error(cut: dict[str, int], served: bool):
    server = Emulator([LONG.but(**cut)] * 2)
    with emulator.serve(server) as running:
        chat = openai.OpenAI(api_key="k", base_url=running.url + "/v1") if served else chat_client(server)
        claude = anthropic.Anthropic(api_key="k", base_url=running.url) if served else claude_client(server)
        with pytest.raises((httpx2.RemoteProtocolError, openai.APIConnectionError)):
            list(chat.chat.completions.create(**CHAT, stream=True))
        with pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)):
            list(claude.messages.create(**MESSAGES, stream=True))
    assert [exchange.delivery for exchange in server.exchanges] == ["cut", "cut"]


def test_a_cut_stream_asynchronously():
    server = Emulator([LONG.but(cut_events=4)])
    client = anthropic.AsyncAnthropic(
        api_key="k", http_client=emulator.http_client("anthropic", server, asynchronous=True)
    )

    async def run() -> list[str]:
        return [event.type async for event in await client.messages.create(**MESSAGES, stream=True)]

    with pytest.raises((httpx2.RemoteProtocolError, anthropic.APIConnectionError)):
        asyncio.run(run())


def test_an_error_inside_a_stream():
    server = Emulator([LONG.but(cut_events=4, stream_error="Overloaded")] * 2)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded"):
        list(claude_client(server).messages.create(**MESSAGES, stream=True))
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(chat_client(server).chat.completions.create(**CHAT, stream=True))


def test_a_stream_that_the_client_closes():
    server = Emulator([LONG] * 2)
    stream = chat_client(server).chat.completions.create(**CHAT, stream=True)
    next(stream)
    stream.close()
    with claude_client(server).messages.stream(**MESSAGES) as messages:
        next(iter(messages))
    assert [exchange.delivery for exchange in server.exchanges] == ["closed", "closed"]


def test_slow_services_run_into_the_timeout():
    server = Emulator([Move(text="late", delay=5)] * 2)
    with pytest.raises(openai.APITimeoutError):
        chat_client(server).with_options(timeout=0.05, max_retries=0).chat.completions.create(**CHAT)
    paced = Emulator([Move(text="in time", delay=0.01, pace=0.001)])
    assert chat_client(paced).chat.completions.create(**CHAT).choices[0].message.content == "in time"


def test_arguments_that_are_no_json():
    chat = chat_client(Emulator([Move.call("ping", '{"a": 1')] * 2))
    reply = chat.chat.completions.create(**CHAT)
    assert reply.choices[0].message.tool_calls[0].function.arguments == '{"a": 1'
    claude = claude_client(Emulator([Move.call("ping", '{"a": 1')] * 2))
    assert claude.messages.create(**MESSAGES).content[0].input == {"INVALID_JSON": '{"a": 1'}
    deltas = [
        event.delta.partial_json
        for event in claude.messages.create(**MESSAGES, stream=True)
        if event.type == "content_block_delta"
    ]
    assert "".join(deltas) == '{"a": 1'


def test_reasons_to_stop():
    said = {
        "max_tokens": ("length", "max_tokens"),
        "content_filter": ("content_filter", "refusal"),
        "pause_turn": ("stop", "pause_turn"),
        "end": ("stop", "end_turn"),
        "model_context_window_exceeded": (None, "model_context_window_exceeded"),
    }
    for stop, (chat_reason, messages_reason) in said.items():
        server = Emulator([Move(text="so", stop=stop)] * 2)
        assert claude_client(server).messages.create(**MESSAGES).stop_reason == messages_reason
        if chat_reason is not None:
            assert chat_client(server).chat.completions.create(**CHAT).choices[0].finish_reason == chat_reason


def test_a_refusal():
    server = Emulator([Move(refusal="I will not.")] * 3)
    assert chat_client(server).chat.completions.create(**CHAT).choices[0].message.refusal == "I will not."
    with chat_client(server).chat.completions.stream(**CHAT) as stream:
        assert stream.get_final_completion().choices[0].message.refusal == "I will not."
    message = claude_client(server).messages.create(**MESSAGES)
    assert (message.stop_reason, message.stop_details.explanation) == ("refusal", "I will not.")


def test_overrides_of_usage_message_and_headers():
    move = Move(text="so", usage={"prompt_tokens": 7}, message={"reasoning_content": "hm"}, headers={"x-extra": "1"})
    raw = chat_client(Emulator([move])).chat.completions.with_raw_response.create(**CHAT)
    assert raw.headers["x-extra"] == "1"
    assert raw.parse().usage.prompt_tokens == 7
    assert raw.parse().choices[0].message.model_extra == {"reasoning_content": "hm"}


def test_the_end_of_a_script_is_said():
    server = Emulator([Move(text="only")])
    client = chat_client(server)
    client.chat.completions.create(**CHAT)
    with pytest.raises(openai.BadRequestError, match="1 moves and none for request 2"):
        client.chat.completions.create(**CHAT)
