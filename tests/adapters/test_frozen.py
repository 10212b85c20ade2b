"""The frozen strategy through the SDKs: on every way the caller sees the tool itself, and nothing of the bridge."""

from __future__ import annotations

import json
import operator
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters import paths, response_paths, test_response_paths
from tests.adapters.test_anthropic_paths import runnable, threaded
from tests.adapters.test_paths import CLIENTS, MODELS, request

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move
from loadpoint_adapters.httpx import transport

TOOL = "svc_tool_7"
LOADS, CALLS = "load_tools", "call_tool"
FROZEN = Policy(strategy="frozen")
CHATS = [(path, walk) for path, walks in paths.PATHS.items() for walk in walks]
RESPONSES = [(path, walk) for path, walks in response_paths.PATHS.items() for walk in walks]
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


def loading() -> emulator.Emulator:
    """A model that loads a tool and calls it through the bridge."""
    load = Move.call(LOADS, {"tools": [TOOL]})
    return emulator.Emulator(
        emulator.Script.sequence([load, Move.call(CALLS, {"tool": TOOL, "params": {"city": "Rome"}})])
    )


def client(sdk: str, server: emulator.Emulator, *, asynchronous: bool = False) -> Any:
    http = emulator.http_client(sdk, server, asynchronous=asynchronous)  # type: ignore[arg-type]
    return CLIENTS[sdk, asynchronous](api_key="k", http_client=http)


def judged(server: emulator.Emulator, reported: Any) -> None:
    first, second = (exchange.request or {} for exchange in server.exchanges)
    assert second.get("tools", first["tools"]) == first["tools"], "a request that continues a thread brings none"
    names = [tool.get("name") or tool["function"]["name"] for tool in first["tools"]]
    assert names == [LOADS, CALLS]
    report = loadpoint.report(reported)
    assert (report.strategy, report.added_rounds) == ("frozen", 1)
    assert [search.hits for search in report.searches] == [(TOOL,)]


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize(("path", "walk"), CHATS, ids=[f"{path}-{walk.__name__}" for path, walk in CHATS])
async def test_the_caller_sees_the_tool_itself(path: str, walk: paths.Walk, asynchronous: bool) -> None:
    sdk, _, dotted = path.partition(":")
    server = loading()
    wrapped = loadpoint.wrap(client(sdk, server, asynchronous=asynchronous), FROZEN)
    api = operator.attrgetter(dotted.rpartition(".")[0])(wrapped)
    calls, reported = await walk(api, request(sdk))
    assert calls == paths.WANTED
    judged(server, reported)


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize(("path", "walk"), RESPONSES, ids=[f"{path}-{walk.__name__}" for path, walk in RESPONSES])
async def test_the_caller_of_responses_sees_the_tool_itself(path: str, walk: paths.Walk, asynchronous: bool) -> None:
    server = loading()
    wrapped = loadpoint.wrap(test_response_paths.client(server, asynchronous=asynchronous), FROZEN)
    api = operator.attrgetter(path.partition(":")[2].rpartition(".")[0])(wrapped)
    calls, reported = await walk(api, test_response_paths.request())
    assert calls == paths.WANTED
    judged(server, reported)


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("threads", [False, pytest.param(True, marks=threaded)], ids=["resend", "threads"])
async def test_tool_runners_run_what_was_called_through_the_bridge(
    asynchronous: bool, streamed: bool, threads: bool
) -> None:
    ran: list[str] = []
    load = Move.call(LOADS, {"tools": ["city_weather"]})
    calls = [Move.call(CALLS, {"tool": "city_weather", "params": {"city": city}}) for city in ("Rome", "Oslo")]
    server = emulator.Emulator(emulator.Script.sequence([load, *calls, Move(text="It is sunny.")]))
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), FROZEN)
    body = request("anthropic")
    body["tools"] = [*body["tools"], runnable(ran, asynchronous=asynchronous)]
    options: dict[str, Any] = {"stream": True} if streamed else {}
    if paths.THREADS and not threads:
        options["thread"] = False
    last = await paths.settle(wrapped.beta.messages.tool_runner(**body, **options).until_done())
    assert ran == ["Rome", "Oslo"]
    assert last.content[0].text == "It is sunny."
    sent = [exchange.request or {} for exchange in server.exchanges]
    assert ["thread" in one for one in sent] == [threads] * 4
    assert ["tools" in one for one in sent] == ([True, False, False, False] if threads else [True] * 4)
    assert [exchange.status for exchange in server.exchanges] == [200] * 4


@pytest.mark.report("BR-196")
def test_an_applications_loop_and_its_permissions_work_unchanged() -> None:
    """It dispatches by name, asks for permission by name, and echoes the SDK's own objects."""
    load = Move.call(LOADS, {"tools": [TOOL, "svc_tool_8"]})
    both = [(CALLS, {"tool": name, "params": {"city": "Rome"}}) for name in (TOOL, "svc_tool_8")]
    server = emulator.Emulator(emulator.Script.sequence([load, Move(calls=both), Move(text="done")]))
    wrapped = loadpoint.wrap(client("openai", server), FROZEN)
    asked: list[str] = []
    given = request("openai")
    history: list[Any] = list(given["messages"])
    for _ in range(2):
        reply = wrapped.chat.completions.create(**{**given, "messages": history})
        message = reply.choices[0].message
        history.append(message)
        for call in message.tool_calls or ():
            asked.append(call.function.name)
            denied = call.function.name == "svc_tool_8"
            said = json.dumps({"isError": True, "error": "denied"}) if denied else "sunny"
            history.append({"role": "tool", "tool_call_id": call.id, "content": said})
    assert asked == [TOOL, "svc_tool_8"]
    assert reply.choices[0].message.content == "done"
    assert [tool.name for tool in loadpoint.report(reply).loaded] == [TOOL, "svc_tool_8"]
    bare = openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", emulator.Emulator()))
    history.append({"role": "user", "content": "and without?"})
    assert bare.chat.completions.create(**{**given, "messages": history, "tools": given["tools"][:100]}).choices


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("agrees", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_the_application_is_asked_before_a_load(
    sdk: str, kind: str, agrees: bool, streamed: bool, asynchronous: bool
) -> None:
    asked: list[tuple[str, ...]] = []

    def plain(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return agrees

    async def coroutine(names: tuple[str, ...]) -> bool:
        return plain(names)

    policy = FROZEN.replace(confirm=plain if kind == "plain" else coroutine)
    loaded = agrees and (kind == "plain" or asynchronous)
    server = (
        loading()
        if loaded
        else emulator.Emulator(emulator.Script.sequence([Move.call(LOADS, {"tools": [TOOL]}), Move(text="I may not")]))
    )
    wrapped = loadpoint.wrap(client(sdk, server, asynchronous=asynchronous), policy)
    if sdk == "openai":
        walk = paths.chat_streamed if streamed else paths.chat_create
        calls, _ = await walk(wrapped.chat.completions, request(sdk))
    else:
        walk = paths.streamed if streamed else paths.create
        calls, _ = await walk(wrapped.messages, request(sdk))
    assert calls == (paths.WANTED if loaded else [])
    assert asked == ([] if kind == "coroutine" and not asynchronous else [(TOOL,)])


def test_the_second_way_in_asks_as_well() -> None:
    from loadpoint_adapters.anthropic import middleware

    server = emulator.Emulator(emulator.Script.sequence([Move.call(LOADS, {"tools": [TOOL]}), Move(text="I may not")]))
    inside = middleware(FROZEN.replace(confirm=lambda _: False))
    http = emulator.http_client("anthropic", server)
    api = anthropic.Anthropic(api_key="k", http_client=http, middleware=[inside]).messages
    reply = api.create(**{**request("anthropic"), "model": MODELS["anthropic"]})
    assert [block.type for block in reply.content] == ["text"]


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_by_the_transport_too(sdk: str, streamed: bool, asynchronous: bool) -> None:
    server = loading()
    http: Any = emulator.http_client(sdk, server, asynchronous=asynchronous)  # type: ignore[arg-type]
    http = type(http)(transport=transport(FROZEN, inner=http._transport))
    plain = CLIENTS[sdk, asynchronous](api_key="k", http_client=http)
    api = plain.chat.completions if sdk == "openai" else plain.messages
    reply = await paths.settle(api.create(**request(sdk), stream=streamed))
    if streamed:
        calls = await (paths.chunk_calls if sdk == "openai" else paths.event_calls)(reply)
    else:
        calls = (paths.chat_calls if sdk == "openai" else paths.message_calls)(reply)
    assert calls == paths.WANTED
    judged(server, reply)
