"""The real SDKs over a wrapped HTTP client, or over the transport: what `wrap` of the SDK's own client gives."""

from __future__ import annotations

import operator
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters import paths
from tests.adapters import test_response_paths as responses
from tests.adapters.paths import settle
from tests.adapters.test_paths import CLIENTS, EVERY, request, searching, shown
from tests.adapters.test_refused_forms import TAG, kept
from tests.adapters.test_refused_forms import searching as refusing

import loadpoint
from loadpoint import emulator
from loadpoint._adapter import reports
from loadpoint_adapters.anthropic import middleware
from loadpoint_adapters.httpx import transport

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
WAYS = ("client", "transport")


def over(way: str, sdk: Any, server: emulator.Emulator, *, asynchronous: bool = False, **options: Any) -> Any:
    """A client of an SDK that nobody has wrapped, over an HTTP client that somebody has."""
    http = emulator.http_client(sdk, server, asynchronous=asynchronous)
    http = loadpoint.wrap(http) if way == "client" else type(http)(transport=transport(inner=http._transport))
    return CLIENTS[sdk, asynchronous](api_key="k", http_client=http, **options)


@both
@pytest.mark.parametrize(("path", "walk"), EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in EVERY])
async def test_every_way_through_the_sdks_works(path: str, walk: paths.Walk, asynchronous: bool):
    sdk, _, dotted = path.partition(":")
    server = searching()
    client = over("client", sdk, server, asynchronous=asynchronous)
    api = operator.attrgetter(dotted.rpartition(".")[0])(client)

    calls, reported = await walk(api, request(sdk))

    assert calls == paths.WANTED
    first, second = server.exchanges
    assert shown(first.request) == ["ToolSearch"]
    assert "svc_tool_7" in shown(second.request) or "svc_tool_7" in second.loaded
    report = loadpoint.report(reported)
    assert report.added_rounds == 1
    assert [search.query for search in report.searches] == ["svc_tool_7"]


@both
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_what_is_sent_and_seen_is_what_wrap_gives(sdk: str, stream: bool, way: str, asynchronous: bool):
    outcomes = []
    for each in ("wrap", way):
        reports._ids.clear()  # every emulator counts its replies from one
        server = searching()
        if each == "wrap":
            http: Any = emulator.http_client(sdk, server, asynchronous=asynchronous)  # type: ignore[arg-type]
            client = loadpoint.wrap(CLIENTS[sdk, asynchronous](api_key="k", http_client=http))
        else:
            client = over(way, sdk, server, asynchronous=asynchronous)
        api = client.chat.completions if sdk == "openai" else client.messages
        reply = await settle(api.create(**request(sdk), stream=stream))
        items = [item.model_dump() async for item in paths.each(reply)] if stream else [reply.model_dump()]
        report = loadpoint.report(reply)
        sent = [(exchange.request, sorted(exchange.loaded)) for exchange in server.exchanges]
        outcomes.append((items, sent, report.strategy, report.load_point, report.tokens, len(report.rounds)))
    assert outcomes[0] == outcomes[1]


@both
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_under_a_wrapped_sdk_client_it_stands_aside(sdk: Any, asynchronous: bool):
    told: list[Any] = []
    for stream in (False, True):
        server = searching()
        http = loadpoint.wrap(emulator.http_client(sdk, server, asynchronous=asynchronous), on_report=told.append)
        client = loadpoint.wrap(CLIENTS[sdk, asynchronous](api_key="k", http_client=http))
        api = client.chat.completions if sdk == "openai" else client.messages
        reply = await settle(api.create(**request(sdk), stream=stream))
        if stream:
            _ = [item async for item in paths.each(reply)]
        assert len(server.exchanges) == 2
        assert loadpoint.report(reply).added_rounds == 1
    assert told == []


@both
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_under_the_middleware_it_stands_aside(stream: bool, asynchronous: bool):
    told: list[Any] = []
    server = searching()
    http = loadpoint.wrap(emulator.http_client("anthropic", server, asynchronous=asynchronous), on_report=told.append)
    client = CLIENTS["anthropic", asynchronous](api_key="k", http_client=http, middleware=[middleware()])
    reply = await settle(client.messages.create(**request("anthropic"), stream=stream))
    if stream:
        _ = [item async for item in paths.each(reply)]
    assert (len(server.exchanges), told) == (2, [])


@both
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_a_second_turn_keeps_the_prefix(sdk: Any, asynchronous: bool):
    server = emulator.Emulator(
        emulator.Script.sequence(
            [
                emulator.Move.call("ToolSearch", {"query": "svc_tool_7"}),
                emulator.Move.call("svc_tool_7", {"city": "Rome"}),
                emulator.Move(text="done"),
            ]
        )
    )
    client = over("client", sdk, server, asynchronous=asynchronous)
    asked = request(sdk)
    if sdk == "openai":
        first = await settle(client.chat.completions.create(**asked))
        result = {"role": "tool", "tool_call_id": first.choices[0].message.tool_calls[0].id, "content": "ok"}
        turn = [first.choices[0].message, result]
        again = await settle(client.chat.completions.create(**{**asked, "messages": [*asked["messages"], *turn]}))
    else:
        first = await settle(client.messages.create(**asked))
        block = {"type": "tool_result", "tool_use_id": first.content[-1].id, "content": "ok"}
        turn = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [block]}]
        again = await settle(client.messages.create(**{**asked, "messages": [*asked["messages"], *turn]}))
    _, second, third = [exchange.request or {} for exchange in server.exchanges]
    assert third["tools"] == second["tools"]
    assert third["messages"][: len(second["messages"])] == second["messages"]
    assert loadpoint.report(again).added_rounds == 0
    assert loadpoint.report(again).prefix.stable


@both
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("way", WAYS)
async def test_an_error_of_ours_is_told_once(sdk: Any, way: str, asynchronous: bool):
    searches = [emulator.Move.call("ToolSearch", {"query": f"thing {i}"}) for i in range(9)]
    server = emulator.Emulator(emulator.Script.sequence(searches))
    client = over(way, sdk, server, asynchronous=asynchronous, max_retries=5)
    api = client.chat.completions if sdk == "openai" else client.messages
    module: Any = openai if sdk == "openai" else anthropic
    with pytest.raises(module.UnprocessableEntityError, match="max_rounds=4") as caught:
        await settle(api.create(**request(sdk)))
    assert len(server.exchanges) == 4  # nothing was tried again
    error = caught.value.response.extensions["loadpoint.error"]
    assert isinstance(error, loadpoint.SearchLoopError)
    assert len(error.rounds) == 4


@both
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_an_error_of_ours_in_an_open_stream_is_raised(sdk: Any, asynchronous: bool):
    searches = [emulator.Move.call("ToolSearch", {"query": f"thing {i}"}) for i in range(9)]
    server = emulator.Emulator(emulator.Script.sequence(searches))
    client = over("client", sdk, server, asynchronous=asynchronous, max_retries=5)
    api = client.chat.completions if sdk == "openai" else client.messages
    stream = await settle(api.create(**request(sdk), stream=True))
    with pytest.raises(loadpoint.SearchLoopError):
        _ = [item async for item in paths.each(stream)]
    assert len(server.exchanges) == 4


@both
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_refused_form_goes_on_in_the_next_one(stream: bool, asynchronous: bool):
    server = refusing("tool_reference", TAG)
    client = over("client", "anthropic", server, asynchronous=asynchronous)
    reply = await settle(client.messages.create(**request("anthropic"), stream=stream))
    if stream:
        _ = [item async for item in paths.each(reply)]
    kept(server, reply)


@both
@pytest.mark.parametrize("model", responses.MODELS)
@pytest.mark.parametrize(
    ("path", "walk"), responses.EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in responses.EVERY]
)
async def test_every_way_through_responses_works(path: str, walk: paths.Walk, model: str, asynchronous: bool):
    server = responses.searching()
    client = over("client", "openai", server, asynchronous=asynchronous)
    api = operator.attrgetter(path.partition(":")[2].rpartition(".")[0])(client)
    calls, reported = await walk(api, responses.request(model))
    assert calls == paths.WANTED
    report = loadpoint.report(reported)
    assert (report.added_rounds, report.load_point) == (1, responses.MODELS[model])
    assert len(server.exchanges) == 2


@both
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_a_stored_response_is_asked_for_by_the_id_that_the_server_knows(stream: bool, asynchronous: bool):
    server = responses.searching()
    client = over("client", "openai", server, asynchronous=asynchronous)
    async with paths.entered(client.responses.stream(**responses.request())) as events:
        assert [event async for event in paths.each(events)]
        reply = await settle(events.get_final_response())
    last = str((server.exchanges[1].reply or {})["id"])
    assert reply.id != last
    found = await settle(client.responses.retrieve(reply.id, stream=stream))
    if stream:
        found = [event async for event in paths.each(found)][-1].response
    assert found.id == reply.id
    assert server.exchanges[2].path.endswith(last)
