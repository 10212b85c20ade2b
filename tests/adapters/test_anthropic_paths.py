"""The ways through the anthropic SDK that are more than one call: tool runners, threads, counts, batches."""

from __future__ import annotations

import contextlib
from typing import Any

import anthropic
import pytest
from anthropic import beta_async_tool, beta_tool
from tests.adapters import paths
from tests.adapters.paths import each, settle
from tests.adapters.test_paths import client, request, shown

import loadpoint
from loadpoint import emulator
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
threaded = pytest.mark.skipif(not paths.THREADS, reason="this version of the SDK has no threads")
surfaces = pytest.mark.parametrize("surface", ["messages", "beta.messages"])


def working() -> emulator.Emulator:
    """Searches, calls the weather tool, and says what came of it."""
    return emulator.Emulator(
        emulator.Script.sequence(
            [
                Move.call("ToolSearch", {"query": "city_weather"}),
                Move.call("city_weather", {"city": "Rome"}),
                lambda turn: Move(text=f"It is {turn.results[-1].result}."),
            ]
        )
    )


def runnable(ran: list[str], *, asynchronous: bool) -> Any:
    if asynchronous:

        @beta_async_tool
        async def city_weather(city: str) -> str:
            """The weather of a city, of this hour, in a few words.

            Args:
                city: the city's name
            """
            ran.append(city)
            return "sunny"

        return city_weather

    @beta_tool(name="city_weather")
    def weather(city: str) -> str:
        """The weather of a city, of this hour, in a few words.

        Args:
            city: the city's name
        """
        ran.append(city)
        return "sunny"

    return weather


@both
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("threads", [False, pytest.param(True, marks=threaded)], ids=["resend", "threads"])
async def test_tool_runners_run_what_was_found(asynchronous: bool, stream: bool, threads: bool):
    server, ran = working(), list[str]()
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous))
    body = request("anthropic")
    body["tools"] = [*body["tools"], runnable(ran, asynchronous=asynchronous)]
    options: dict[str, Any] = {"stream": True} if stream else {}
    if paths.THREADS and not threads:
        options["thread"] = False
    runner = wrapped.beta.messages.tool_runner(**body, **options)
    last = await settle(runner.until_done())
    assert ran == ["Rome"]
    assert last.content[0].text == "It is sunny."
    assert len(server.exchanges) == 3
    assert shown(server.exchanges[0].request) == ["ToolSearch"]
    assert ["thread" in (exchange.request or {}) for exchange in server.exchanges] == [threads] * 3
    assert [exchange.status for exchange in server.exchanges] == [200] * 3


@both
async def test_each_turn_of_a_runner_is_seen_once(asynchronous: bool):
    server, ran = working(), list[str]()
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous))
    body = request("anthropic")
    body["tools"] = [*body["tools"], runnable(ran, asynchronous=asynchronous)]
    runner = wrapped.beta.messages.tool_runner(**body)
    turns = [turn async for turn in each(runner)]
    assert [[block.type for block in turn.content] for turn in turns] == [["tool_use"], ["text"]]


@both
@surfaces
async def test_counts_are_those_of_what_would_be_sent(surface: str, asynchronous: bool):
    server = emulator.Emulator()
    plain = client("anthropic", server, asynchronous=asynchronous)
    body = request("anthropic")
    del body["max_tokens"]
    counts: list[int] = []
    for one in (plain, loadpoint.wrap(plain)):
        api = one.messages if surface == "messages" else one.beta.messages
        counts.append((await settle(api.count_tokens(**body))).input_tokens)
        raw = await settle(api.with_raw_response.count_tokens(**body))
        counts.append((await settle(raw.parse())).input_tokens)
    assert counts[0] == counts[1]
    assert counts[2] == counts[3] < counts[0] / 5


@both
@surfaces
async def test_batches_keep_their_tools(surface: str, asynchronous: bool):
    server = emulator.Emulator()
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous, max_retries=0))
    api = wrapped.messages if surface == "messages" else wrapped.beta.messages
    entry = {"custom_id": "a", "params": request("anthropic")}
    with contextlib.suppress(anthropic.NotFoundError):  # an emulator without batches records what was asked
        await settle(api.batches.create(requests=[entry]))
    assert server.exchanges[0].request == {"requests": [entry]}


@threaded
@both
async def test_a_thread_goes_on_where_it_was(asynchronous: bool):
    server, ran = working(), list[str]()
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous))
    body = request("anthropic")
    body["tools"] = [*body["tools"], runnable(ran, asynchronous=asynchronous).to_dict()]
    thread = wrapped.beta.messages.thread(**body)
    reply = await settle(thread.send())
    (call,) = (block for block in reply.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sunny"}
    last = await settle(thread.send({"role": "user", "content": [result]}))
    assert last.content[0].text == "It is sunny."
    assert paths.message_calls(reply) == [("city_weather", {"city": "Rome"})]
    assert [exchange.status for exchange in server.exchanges] == [200] * 3
