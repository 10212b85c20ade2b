"""The ways of the Responses API beside the hidden search, through the SDK: shown, answered by the caller, hosted."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import openai
import pytest
from openai.types.responses import ResponseToolSearchCall, ResponseToolSearchOutputItem
from tests.adapters import response_paths
from tests.adapters.paths import each, entered, settle
from tests.adapters.test_response_paths import TOOL, client, request, served

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
models = pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.2"])
HOSTED = Policy(strategy="native", search="hosted")
WAYS = ["create", "streamed", "helper", "raw", "parse"]
SEARCHED = ["tool_search_call", "tool_search_output", "function_call"]


async def reply_of(api: Any, way: str, given: dict[str, Any]) -> Any:
    """The reply by one of the SDK's ways; a stream is put together by its last event."""
    if way == "streamed":
        async with entered(await settle(api.create(**given, stream=True))) as stream:
            *_, last = [event async for event in each(stream)]
            return last.response
    if way == "helper":
        async with entered(api.stream(**given)) as stream:
            async for _ in each(stream):
                pass
            return await settle(stream.get_final_response())
    if way == "raw":
        return (await settle(api.with_raw_response.create(**given))).parse()
    return await settle((api.parse if way == "parse" else api.create)(**given))


@both
@models
@pytest.mark.parametrize("way", WAYS)
async def test_shown_searches_are_typed_by_the_sdk(way: str, model: str, asynchronous: bool) -> None:
    server = served(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}), Move(text="done"))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), Policy(discovery="shown"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = await reply_of(wrapped.responses, way, request(model))
        assert json.loads(reply.model_dump_json())["output"] == reply.model_dump(mode="json")["output"]
    assert [item.type for item in reply.output] == SEARCHED
    call, output, made = reply.output
    assert isinstance(call, ResponseToolSearchCall)
    assert isinstance(output, ResponseToolSearchOutputItem)
    given: Any = call.arguments
    assert (given["paths"], json.loads(given["call"])) == ([TOOL], {"query": TOOL})
    assert [tool.name for tool in output.tools] == [TOOL]  # type: ignore[union-attr]
    # The SDK's own objects go back in, as its examples do it.
    result = {"type": "function_call_output", "call_id": made.call_id, "output": "ok"}
    again = request(model)
    again["input"] = [{"role": "user", "content": again["input"]}, *reply.output, result]
    last = await settle(wrapped.responses.create(**again))
    assert last.output_text == "done"
    assert not re.search(r"ts[co]_lp", json.dumps(server.exchanges[-1].request))
    assert loadpoint.report(last).prefix.stable


@both
@pytest.mark.parametrize("changing", [False, True])
async def test_a_callers_own_search_bears_a_call_id_that_changes(changing: bool, asynchronous: bool) -> None:
    """The stream helper raises for an item whose call_id changes (3.57): it is shown under the one that counts."""
    server = served(Move.call("find", {"query": TOOL}, changing_call_ids=changing))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), Policy(discovery="caller"))
    reply = await reply_of(wrapped.responses, "helper", request())
    (made,) = (server.exchanges[0].reply or {})["output"]
    assert [item.call_id for item in reply.output] == [made["call_id"]]


@both
@pytest.mark.parametrize("way", WAYS)
async def test_a_hosted_search_is_one_request(way: str, asynchronous: bool) -> None:
    def search(turn: Any) -> Move:
        box = next(wire["name"] for wire in turn.body["tools"] if TOOL in json.dumps(wire.get("tools", [])))
        return Move(calls=[("tool_search", {"paths": [box]}), (TOOL, {"city": "Rome"})])

    server = emulator.Emulator(emulator.Script(search))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), HOSTED)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reply = await reply_of(wrapped.responses, way, request())
        reply.model_dump_json()
    assert [item.type for item in reply.output] == SEARCHED
    assert reply.output[-1].namespace is None
    assert len(server.exchanges) == 1
    assert [tool.name for tool in reply.tools] == [tool["name"] for tool in request()["tools"]]
    assert all(len(wire.get("tools", ())) < 10 for wire in (server.exchanges[0].request or {})["tools"])


def test_a_hosted_search_is_counted_as_it_would_be_sent() -> None:
    server = served()
    plain, wrapped = client(server), loadpoint.wrap(client(server), HOSTED)
    many = plain.responses.input_tokens.count(**request()).input_tokens
    assert wrapped.responses.input_tokens.count(**request()).input_tokens < many / 8


def test_shown_searches_leave_what_is_compacted_and_what_is_stored() -> None:
    server = served(Move.call("find", {"query": TOOL}), Move(text="found"))
    wrapped = loadpoint.wrap(client(server), Policy(discovery="shown"))
    reply = wrapped.responses.create(**request())
    items = [item.model_dump(exclude_unset=True) for item in reply.output]
    assert "tsc_lp" in json.dumps(items)
    wrapped.responses.compact(model="gpt-5.4", input=[{"role": "user", "content": "go"}, *items])
    assert not re.search(r"ts[co]_lp", json.dumps(server.exchanges[-1].request))
    talk = wrapped.conversations.create(items=items)
    assert not re.search(r"ts[co]_lp", json.dumps(server.exchanges[-1].request))
    wrapped.conversations.items.create(talk.id, items=items)
    assert not re.search(r"ts[co]_lp", json.dumps(server.exchanges[-1].request))
    assert len((server.exchanges[-1].request or {})["items"]) == len(items) - 2


@pytest.mark.parametrize("lost", ["tool_search_call", "tool_search_output"])
@models
def test_half_a_search_in_the_history_is_made_whole(model: str, lost: str) -> None:
    """A stream that was cut, or a history whose beginning is gone: the service refuses half a search."""
    tools = request()["tools"]
    call = {"type": "tool_search_call", "execution": "client", "call_id": "call_1", "arguments": {"query": TOOL}}
    output = {"type": "tool_search_output", "call_id": "call_1", "tools": [{**tools[7], "defer_loading": True}]}
    items = [item for item in (call, output) if item["type"] != lost]
    server = served(Move(text="ok"))
    wrapped = loadpoint.wrap(client(server))
    given = {**request(model), "input": [{"role": "user", "content": "go"}, *items, {"role": "user", "content": "now"}]}
    reply = wrapped.responses.create(**given)
    assert reply.output_text == "ok"
    loaded = [tool.name for tool in loadpoint.report(reply).loaded]
    assert loaded == ([] if lost == "tool_search_output" else [TOOL])


def test_an_output_without_its_call_is_the_services_to_refuse() -> None:
    """Nothing of the caller's is dropped, and the error is the SDK's own, naming the call."""
    wrapped = loadpoint.wrap(client(served()))
    given = {**request(), "input": [{"type": "function_call_output", "call_id": "call_9", "output": "x"}]}
    with pytest.raises(openai.BadRequestError, match="call_9"):
        wrapped.responses.create(**given)


def test_a_call_of_a_namespace_gets_it_back() -> None:
    """A history from elsewhere has none, and the service refuses the call without it."""
    (tool,) = response_paths.tools(1)
    find, drop = ({**tool, "name": name} for name in ("find_one", "drop_one"))
    box = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": [find, drop]}
    call = {"type": "function_call", "call_id": "call_1", "name": find["name"], "arguments": "{}"}
    items = [
        {"role": "user", "content": "go"},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": ""},
    ]
    server = served(Move(text="ok"))
    wrapped = loadpoint.wrap(client(server), Policy(resident=("crm.*",)))
    given = {**request(), "input": items, "tools": [*request()["tools"], box]}
    assert wrapped.responses.create(**given).output_text == "ok"
    sent = (server.exchanges[0].request or {})["input"]
    assert [item.get("namespace") for item in sent if item.get("type") == "function_call"] == ["crm"]


def test_the_websocket_is_the_callers_own() -> None:
    """`connect` makes no request: the SDK's own object comes back, and nothing of ours stands between."""
    plain = client(served())
    wrapped = loadpoint.wrap(plain)
    made: Any = wrapped.responses.connect
    assert made.__func__ is plain.responses.connect.__func__
