"""Field reports about wrappers around SDK clients, each with the right answer."""

from __future__ import annotations

import copy
import json
from typing import Any

import anthropic
import openai
import pytest
from anthropic._response import APIResponse as AnthropicAPIResponse
from openai._legacy_response import LegacyAPIResponse
from openai._response import APIResponse, AsyncAPIResponse
from tests.adapters import paths
from tests.adapters.doubles import Fault, Provider
from tests.adapters.paths import each, entered, settle
from tests.adapters.rig import MODULES, SDKS, rig, said, search, texts
from tests.adapters.test_paths import client, request, searching

import loadpoint
from loadpoint import emulator
from loadpoint._sse import frame
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)


@pytest.mark.report("BR-238")
@both
async def test_raw_streams_keep_the_types_of_the_sdk(asynchronous: bool):
    given = rig("openai", asynchronous=asynchronous)
    raw = await settle(given.api().with_raw_response.create(**given.request(), stream=True))
    assert type(raw) is LegacyAPIResponse
    stream = raw.parse()
    assert type(stream) is (openai.AsyncStream if asynchronous else openai.Stream)
    assert [text async for item in each(stream) for text in texts(item)] == ["hello", "big", "world"]
    async with entered(given.api().with_streaming_response.create(**given.request(), stream=True)) as response:
        assert type(response) is (AsyncAPIResponse if asynchronous else APIResponse)
        assert response.headers["content-type"] == "text/event-stream"


@pytest.mark.report("BR-238")
def test_raw_streams_of_the_other_sdk_too():
    given = rig("anthropic")
    raw = given.api().with_raw_response.create(**given.request(), stream=True)
    assert type(raw) is AnthropicAPIResponse
    assert [text for item in raw.parse() for text in texts(item)] == ["hello", "big", "world"]


@pytest.mark.report("BR-241", "BR-243")
@both
@sdks
async def test_the_target_of_with_is_the_stream_itself(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    async with entered(stream) as target:
        assert target is stream
        assert isinstance(target, MODULES[sdk].AsyncStream if asynchronous else MODULES[sdk].Stream)
        first = await (anext(target) if asynchronous else settle(next(target)))
        rest = [text async for item in each(target) for text in texts(item)]
    assert [*texts(first), *rest] == ["hello", "big", "world"]  # and nothing of the round before


@pytest.mark.report("BR-241")
@both
async def test_the_target_of_a_helper_sees_the_events_of_all_rounds(asynchronous: bool):
    server = searching()
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous))
    manager = wrapped.messages.stream(**request("anthropic"))
    async with entered(manager) as target:
        kinds = [event.type async for event in each(target)]
    assert kinds.count("message_start") == kinds.count("message_stop") == 1
    assert len(server.exchanges) == 2


HOSTED = {
    **said("anthropic"),
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "seven"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {
                "type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "svc_tool_7"}],
            },
        },
        {"type": "tool_use", "id": "toolu_7", "name": "svc_tool_7", "input": {"city": "Rome"}},
    ],
    "stop_reason": "tool_use",
}


def hosted_events(reply: dict[str, Any]) -> list[bytes]:
    """As the service streams it: the query of the hosted search comes in input_json_delta events."""
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {**reply, "content": []}}]
    for index, block in enumerate(reply["content"]):
        called = "input" in block
        start = {**block, "input": {}} if called else block
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        text = json.dumps(block["input"]) if called else ""
        for part in (text[:5], text[5:]) if called else ():
            delta = {"type": "input_json_delta", "partial_json": part}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": reply["usage"]}
    )
    return [frame(json.dumps(event), event["type"]) for event in [*events, {"type": "message_stop"}]]


def hosted(asynchronous: bool) -> tuple[Any, Provider]:
    """A client whose caller uses the provider's own search."""
    provider = Provider(hosted_events, [HOSTED])
    http = provider.async_client() if asynchronous else provider.client()
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    return loadpoint.wrap(kind(api_key="k", http_client=http)), provider


def hosted_request() -> dict[str, Any]:
    body = request("anthropic")
    marked = [{**tool, "defer_loading": True} for tool in body["tools"]]
    return {**body, "tools": [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, *marked]}


@pytest.mark.report("BR-240")
@both
async def test_what_we_know_of_a_stream_does_not_hang_on_the_helpers_events(asynchronous: bool):
    """The helper gives no input_json event for a hosted search; blocks, usage and report are complete all the same."""
    wrapped, provider = hosted(asynchronous)
    async with entered(wrapped.messages.stream(**hosted_request())) as stream:
        reply = await settle(stream.get_final_message())
    assert [block.type for block in reply.content] == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    assert len(provider.requests) == 1
    report = loadpoint.report(stream)
    assert report.rounds[0].usage["input_tokens"] == HOSTED["usage"]["input_tokens"]
    assert report.rounds[0].request_id == "req_0"


def looked_up(at: int, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A reply that searches the web, on the provider's side, and then calls a tool."""
    found = {"type": "web_search_result", "url": "https://x", "title": "x", "encrypted_content": "e", "page_age": None}
    content: list[dict[str, Any]] = [
        {"type": "server_tool_use", "id": f"srvtoolu_{at}", "name": "web_search", "input": {"query": f"q{at}"}},
        {"type": "web_search_tool_result", "tool_use_id": f"srvtoolu_{at}", "content": [found]},
        {"type": "tool_use", "id": f"toolu_{at}", "name": name, "input": given},
    ]
    return {**said("anthropic"), "id": f"msg_{at}", "content": content, "stop_reason": "tool_use"}


@pytest.mark.report("BR-246")
@both
async def test_deltas_belong_to_the_block_of_their_index(asynchronous: bool):
    """A hosted call's input_json_delta is no part of a tool call, also where a hidden call shifts the indices."""
    found = looked_up(2, "svc_tool_7", {"city": "Rome"})
    provider = Provider(hosted_events, [looked_up(1, "ToolSearch", {"query": "svc_tool_7"}), found])
    http = provider.async_client() if asynchronous else provider.client()
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    body = request("anthropic")
    body["tools"] = [{"type": "web_search_20250305", "name": "web_search"}, *body["tools"]]
    stream = await settle(loadpoint.wrap(kind(api_key="k", http_client=http)).messages.create(**body, stream=True))
    starts: dict[int, str] = {}
    inputs: dict[int, str] = {}
    async for event in each(stream):
        if event.type == "content_block_start":
            starts[event.index] = event.content_block.type
        elif event.type == "content_block_delta":
            inputs[event.index] = inputs.get(event.index, "") + event.delta.partial_json
    server = ["server_tool_use", "web_search_tool_result"]
    assert starts == dict(enumerate([*server, *server, "tool_use"]))
    assert inputs == {0: '{"query": "q1"}', 2: '{"query": "q2"}', 4: '{"city": "Rome"}'}
    assert [block["type"] for block in provider.seen[1]["messages"][1]["content"]] == [*server, "tool_use"]


@pytest.mark.report("BR-244")
@both
@pytest.mark.parametrize("walk", [paths.chat_parse, paths.chat_raw_parse, paths.chat_helper])
async def test_helpers_that_demand_strict_tools_do_not_meet_ours(walk: paths.Walk, asynchronous: bool):
    """parse() and stream() raise locally for a tool that is not strict: ours is added below them."""
    server = searching()
    wrapped = loadpoint.wrap(client("openai", server, asynchronous=asynchronous))
    calls, _ = await walk(wrapped.chat.completions, request("openai"))
    assert calls == paths.WANTED
    assert server.exchanges[0].request is not None
    (loader,) = server.exchanges[0].request["tools"]
    assert loader["function"].get("strict") is not True


@pytest.mark.report("BR-244")
def test_helpers_still_refuse_the_callers_own_loose_tools():
    wrapped = loadpoint.wrap(client("openai", searching()))
    body = request("openai")
    body["tools"][0] = copy.deepcopy(body["tools"][0])
    body["tools"][0]["function"]["strict"] = False
    with pytest.raises(ValueError, match="strict"):
        wrapped.chat.completions.parse(**body)


@pytest.mark.report("BR-247")
@both
@sdks
async def test_a_retry_sends_the_same_bytes_again(sdk: str, asynchronous: bool):
    given = rig(sdk, Fault(500), Fault(429), search(sdk), Fault(500), Fault(503), said(sdk), asynchronous=asynchronous)
    body = given.request()
    before = copy.deepcopy(body)
    await settle(given.api().create(**body))
    sent = [asked.content for asked in given.provider.requests]
    assert (len(set(sent[:3])), len(set(sent[3:]))) == (1, 1)
    assert [len(asked["messages"]) for asked in given.provider.seen] == [1, 1, 1, 2, 2, 2]
    assert body == before


@pytest.mark.report("BR-247")
@sdks
def test_the_same_call_twice_sends_the_same_bytes_twice(sdk: str):
    server = emulator.Emulator(emulator.Script.sequence([], then=Move(text="hello")))
    wrapped = loadpoint.wrap(client(sdk, server))
    body = request(sdk)
    for _ in range(2):
        (wrapped.chat.completions if sdk == "openai" else wrapped.messages).create(**body)
    assert server.exchanges[0].raw == server.exchanges[1].raw


@pytest.mark.report("BR-249")
@both
@sdks
async def test_leaving_a_stream_closes_the_providers(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    async with entered(await settle(given.create(stream=True))) as stream:
        async for item in each(stream):
            if texts(item):
                break
        assert stream.response.headers["x-request-id"] == "req_0"
        assert stream.response.request.method == "POST"
    assert [body.closed for body in given.provider.bodies] == [True, True]
    assert stream.response.is_closed


@pytest.mark.report("BR-249")
@both
async def test_a_helpers_response_is_the_http_response(asynchronous: bool):
    given = rig("anthropic", asynchronous=asynchronous)
    async with entered(given.api().stream(**given.request())) as stream:
        assert stream.response.status_code == 200
        assert stream.request_id == "req_0"
    assert all(body.closed for body in given.provider.bodies)


@pytest.mark.report("BR-250")
@both
@sdks
@pytest.mark.parametrize("sentinel", ["omit", "NOT_GIVEN"])
async def test_both_sentinels_mean_absent(sdk: str, asynchronous: bool, sentinel: str):
    absent = getattr(MODULES[sdk], sentinel)
    given = rig(sdk, said(sdk), asynchronous=asynchronous)
    body = {**given.request(), "tools": absent, "tool_choice": absent, "temperature": absent}
    if sdk == "anthropic":
        del body["temperature"]
    await settle(given.api().create(**body))
    assert set(given.session.requests[-1].body) <= {"model", "messages", "max_tokens"}
    assert given.session.calls == []
    given.provider.requests.clear()
    body["tools"] = given.request()["tools"]
    await settle(given.api().create(**body))
    assert set(given.session.requests[-1].body) <= {"model", "messages", "max_tokens", "tools"}


@pytest.mark.report("BR-250")
@both
@sdks
@pytest.mark.parametrize("sentinel", ["omit", "NOT_GIVEN"])
async def test_sentinels_in_the_generic_call_mean_absent_too(sdk: str, asynchronous: bool, sentinel: str):
    absent = getattr(MODULES[sdk], sentinel)
    given = rig(sdk, asynchronous=asynchronous)
    body = {**given.request(), "tool_choice": absent, "metadata": {"user_id": absent}}
    path = "/chat/completions" if sdk == "openai" else "/v1/messages"
    await settle(given.client.post(path, cast_to=object, body=body))
    assert "tool_choice" not in given.session.requests[-1].body
    assert given.session.requests[-1].body["metadata"] == {}
    assert len(given.provider.requests) == 2
