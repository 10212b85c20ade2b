"""Conversations that the service holds, and thinking blocks that it wants back as they were."""

from __future__ import annotations

import asyncio
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool
from anthropic.types import ThreadAlreadyContinuedError, ThreadNotFoundError
from tests.emulator.support import CLAUDE, claude_client, deferred, result, tool, turns, user

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move

BETA = "message-threads-2026-08-12"
PING = tool("ping")
ASK: dict[str, Any] = {"model": CLAUDE, "max_tokens": 200, "tools": [PING]}
THINKING = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 2000}


@beta_tool
def ping(host: str) -> str:
    """Ping a host."""
    return f"{host} is up"


def test_the_tool_runner_threads_by_default():
    server = Emulator([Move.call("ping", {"host": "a"}), Move.call("ping", {"host": "b"}), Move(text="all up")])
    runner = claude_client(server).beta.messages.tool_runner(
        model=CLAUDE, max_tokens=200, tools=[ping], messages=[user("ping a and b")]
    )
    assert [message.stop_reason for message in runner] == ["tool_use", "tool_use", "end_turn"]
    sent = server.requests
    threads = [request["thread"]["type"] for request in sent]
    assert threads == ["create", "continue", "continue"]
    assert all("tools" not in request for request in sent[1:])
    assert [len(request["messages"]) for request in sent] == [1, 1, 1]
    totals = [exchange.tokens.total for exchange in server.exchanges]
    assert totals == sorted(totals)
    assert len({exchange.tokens.tools for exchange in server.exchanges}) == 1


def test_the_tool_runner_streamed_and_without_threads():
    server = Emulator([Move.call("ping", {"host": "a"}), Move(text="up")] * 2)
    client = claude_client(server)
    for extra in ({"stream": True}, {"thread": False}):
        runner = client.beta.messages.tool_runner(
            model=CLAUDE, max_tokens=200, tools=[ping], messages=[user("ping a")], **extra
        )
        assert runner.until_done().content[0].text == "up"
    assert ["thread" in request for request in server.requests] == [True, True, False, False]


def test_the_asynchronous_tool_runner():
    @beta_async_tool
    async def aping(host: str) -> str:
        """Ping a host."""
        return f"{host} is up"

    server = Emulator([Move.call("aping", {"host": "a"}), Move(text="up")])
    client: Any = anthropic.AsyncAnthropic(
        api_key="k", http_client=emulator.http_client("anthropic", server, asynchronous=True)
    )

    async def run() -> Any:
        return await client.beta.messages.tool_runner(
            model=CLAUDE, max_tokens=200, tools=[aping], messages=[user("ping a")]
        ).until_done()

    assert asyncio.run(run()).content[0].text == "up"


def threaded(client: Any, previous: str | None, **extra: Any) -> Any:
    thread = {"type": "create"} if previous is None else {"type": "continue", "previous_message_id": previous}
    request: Any = {"model": CLAUDE, "max_tokens": 99, "messages": [user("and?")], "betas": [BETA], **extra}
    return client.beta.messages.create(**request, thread=thread)


def test_a_thread_is_continued_once_and_repeats_nothing():
    server = Emulator([Move(text=str(at)) for at in range(9)])
    client = claude_client(server)
    first = threaded(client, None, system="Be kind.", tools=[PING])
    with pytest.raises(anthropic.BadRequestError, match="tools: must be omitted when"):
        threaded(client, first.id, tools=[PING])
    second = threaded(client, first.id)
    with pytest.raises(ThreadAlreadyContinuedError):
        threaded(client, first.id)
    with pytest.raises(ThreadNotFoundError):
        threaded(client, "msg_unknown")
    assert threaded(client, second.id).content[0].text == "2"
    server.reset()
    with pytest.raises(ThreadNotFoundError):
        threaded(client, second.id)


def test_that_a_thread_keeps_its_model_is_assumed():
    server = Emulator([Move(text=str(at)) for at in range(9)])
    client = claude_client(server)
    first = threaded(client, None)
    threaded(client, first.id, model="claude-sonnet-5")
    assert server.exchanges[-1].warnings == ("messages.thread_fingerprint",)
    server.rules = "all"
    with pytest.raises(anthropic.BadRequestError) as mismatch:
        threaded(client, threaded(client, None).id, model="claude-sonnet-5")
    assert mismatch.value.error_code == "thread_fingerprint_mismatch"


def test_a_failed_continuation_may_be_repeated():
    server = Emulator([Move(text="one"), Move.fault(529), Move(text="two")])
    client = claude_client(server)
    first = threaded(client, None)
    assert threaded(client, first.id).content[0].text == "two"


def test_a_paused_turn_is_resumed_with_nothing():
    server = Emulator([Move(text="Working", stop="pause_turn"), Move(text="done")])
    client = claude_client(server)
    first = threaded(client, None)
    assert first.stop_reason == "pause_turn"
    assert threaded(client, first.id, messages=[]).content[0].text == "done"


def issued(server: Emulator, **extra: Any) -> Any:
    reply = claude_client(server).messages.create(**{**ASK, **THINKING, **extra}, messages=[user("go")])
    return reply.model_dump(mode="json", exclude_none=True)["content"]


def resend(server: Emulator, content: list[Any], **extra: Any) -> Any:
    messages = turns("go", content, [result(content[-1]["id"])])
    return claude_client(server).messages.create(**{**ASK, **THINKING, "messages": messages, **extra})


def test_thinking_comes_back_as_it_was():
    move = Move(thinking="Ping it.", calls=[("ping", {})])
    server = Emulator([move, Move(text="up")])
    content = issued(server)
    assert resend(server, content).content[0].text == "up"


def test_thinking_that_was_changed_dropped_or_swapped_is_refused():
    server = Emulator([Move(thinking=words, calls=[("ping", {})]) for words in ("Ping it.", "Ping it now.")])
    content, other = issued(server), issued(server)
    edited = [{**content[0], "thinking": "Do not."}, content[1]]
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature` in `thinking` block"):
        resend(server, edited)
    with pytest.raises(anthropic.BadRequestError, match="cannot be modified"):
        resend(server, [other[0], content[1]])
    with pytest.raises(anthropic.BadRequestError, match="Expected `thinking` or `redacted_thinking`"):
        resend(server, content[1:])


def test_newer_models_bind_thinking_to_its_prefix():
    move = Move(thinking="Ping it.", calls=[("ping", {})])
    newest: dict[str, Any] = {"model": "claude-opus-5-5", "thinking": {"type": "adaptive"}, "max_tokens": 2000}

    def attempt(tools: list[Any], **extra: Any) -> Any:
        server = Emulator([move, Move(text="up")])
        content = issued(server, **newest)
        return resend(server, content, **{**newest, "tools": tools, **extra})

    assert attempt([PING]).content[0].text == "up"
    assert attempt([PING, deferred("late")]).content[0].text == "up"
    assert attempt([{**PING, "cache_control": {"type": "ephemeral"}}]).content[0].text == "up"
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        attempt([PING, tool("more")])
    with pytest.raises(anthropic.BadRequestError, match="bound to a different conversation"):
        attempt([PING], system="New.")
    assert attempt([PING, tool("more")], model=CLAUDE).content[0].text == "up"
    binding = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert attempt([PING, tool("more")], thinking=binding).content[0].text == "up"
