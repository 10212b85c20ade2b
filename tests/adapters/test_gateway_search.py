"""A gateway's own search through the real SDKs: OpenRouter's on Responses and Messages, Orq's on Responses."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import anthropic
import openai
import pytest
from tests.adapters import paths
from tests.adapters import response_paths as responses

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move

TOOL, OTHER = "svc_tool_7", "svc_tool_80"
POLICY = Policy(load_point="gateway_search", strategy="native")
Json = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A gateway as one SDK reaches it."""

    sdk: Literal["openai", "anthropic"]
    base: str
    entry: str
    key: str
    shows: bool

    @property
    def messages(self) -> bool:
        return self.sdk == "anthropic"


ROUTER = Place("openai", "https://openrouter.ai/api/v1", "openrouter:tool_search", "input", True)
ROUTER_MESSAGES = Place("anthropic", "https://openrouter.ai/api", "openrouter:tool_search", "messages", True)
ORQ = Place("openai", "https://my.orq.ai/v3/router", "orq:tool_search", "input", False)
PLACES = pytest.mark.parametrize("at", [ROUTER, ROUTER_MESSAGES, ORQ], ids=["router", "router-messages", "orq"])
ROUTERS = pytest.mark.parametrize("at", [ROUTER, ROUTER_MESSAGES], ids=["responses", "messages"])
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def client(at: Place, server: Emulator, *, asynchronous: bool = False) -> Any:
    http = emulator.http_client(at.sdk, server, asynchronous=asynchronous)
    plain: Any = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    if at.messages:
        plain = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    return plain(api_key="k", base_url=at.base, http_client=http)


def request(at: Place, **more: Any) -> Json:
    made = paths.message_tools(120) if at.messages else responses.tools(120)
    body: Json = {"model": "vendor/any-model", at.key: [{"role": "user", "content": "Do thing 7."}], "tools": made}
    return {**body, **({"max_tokens": 900} if at.messages else {}), **more}


def api(wrapped: Any, at: Place) -> Any:
    return wrapped.messages if at.messages else wrapped.responses


def searching(at: Place, *more: Move) -> Emulator:
    """A model that finds and calls a tool in one reply, and then goes on so."""
    return Emulator([Move(calls=[(at.entry, {"query": "department 7,"}), (TOOL, {"city": "Rome"})]), *more])


def calls(at: Place, reply: Any) -> list[tuple[str, Json]]:
    if at.messages:
        return [(block.name, block.input) for block in reply.content if block.type == "tool_use"]
    return [(item.name, json.loads(item.arguments)) for item in reply.output if item.type == "function_call"]


def deferred(body: Json) -> list[str]:
    return [tool["name"] for tool in body["tools"] if tool.get("defer_loading") is True]


@pytest.mark.anyio
@pytest.mark.requirement("N17")
@pytest.mark.report("BR-013")
@pytest.mark.filterwarnings("ignore:Pydantic serializer")  # the SDK's stream helper, of an item that it does not know
@PLACES
@BOTH
@STREAMS
async def test_everything_is_declared_and_the_gateway_searches(at: Place, stream: bool, asynchronous: bool) -> None:
    server = searching(at)
    wrapped = loadpoint.wrap(client(at, server, asynchronous=asynchronous), POLICY)
    if stream:
        async with paths.entered(api(wrapped, at).stream(**request(at))) as events:
            assert [event async for event in paths.each(events)]
            final = events.get_final_message if at.messages else events.get_final_response
            reply = await paths.settle(final())
    else:
        reply = await paths.settle(api(wrapped, at).create(**request(at)))
    assert calls(at, reply) == [(TOOL, {"city": "Rome"})]
    (body,) = server.requests
    assert body["tools"][0] == {"type": at.entry}
    assert len(body["tools"]) == 121
    assert len(deferred(body)) == (119 if at.shows else 120)
    report = loadpoint.report(reply)
    assert (report.strategy, report.load_point, report.added_rounds) == ("native", "gateway_search", 0)
    if at is ROUTER:
        assert [item.type for item in reply.output] == [at.entry, "function_call"]


@ROUTERS
def test_a_resident_tool_is_the_one_that_stays(at: Place) -> None:
    server = searching(at)
    wrapped = loadpoint.wrap(client(at, server), POLICY.replace(resident=(OTHER,)))
    api(wrapped, at).create(**request(at))
    (body,) = server.requests
    assert [t["name"] for t in body["tools"][1:] if "defer_loading" not in t] == [OTHER]
    assert len(deferred(body)) == 119


@PLACES
def test_the_list_and_the_history_stay_over_a_conversation(at: Place) -> None:
    """What the gateway leaves in a reply goes back to it; a tool that joins is declared, and the prefix holds."""
    server = searching(at, Move(text="done"), Move(text="again"))
    wrapped = loadpoint.wrap(client(at, server), POLICY)
    given = request(at)
    reply = api(wrapped, at).create(**given)
    given[at.key] += echoed(at, reply)
    reply = api(wrapped, at).create(**given)
    given[at.key] += [*echoed(at, reply), {"role": "user", "content": "and now"}]
    given["tools"] = [*given["tools"], {**given["tools"][0], "name": "parcel_weigh"}]
    reply = api(wrapped, at).create(**given)
    first, second, third = server.requests
    assert first["tools"] == second["tools"] == third["tools"][:-1]
    assert first[at.key] == second[at.key][: len(first[at.key])]
    assert "parcel_weigh" in deferred(third)
    if at is ROUTER:
        assert [item["type"] for item in second["input"][1:]] == [at.entry, "function_call", "function_call_output"]
    assert loadpoint.report(reply).prefix.stable


@PLACES
def test_the_list_is_the_same_in_a_process_that_knows_nothing(at: Place) -> None:
    """Whatever the history shows, in its order stands what was declared from the start, and one tool is shown."""
    server = searching(at, Move(text="done"), Move(text="again"))
    given = request(at)
    reply = api(loadpoint.wrap(client(at, server), POLICY), at).create(**given)
    given[at.key] += echoed(at, reply)
    api(loadpoint.wrap(client(at, server), POLICY), at).create(**given)
    first, second = server.requests
    assert first["tools"] == second["tools"]
    assert TOOL in deferred(first)


def echoed(at: Place, reply: Any) -> list[Json]:
    """The reply as a caller sends it back, with the results of its calls."""
    raw = reply.to_dict(warnings=False)
    if at.messages:
        uses = [block["id"] for block in raw["content"] if block["type"] == "tool_use"]
        results = [{"type": "tool_result", "tool_use_id": id_, "content": "done"} for id_ in uses]
        said: list[Json] = [{"role": "assistant", "content": raw["content"]}]
        return [*said, {"role": "user", "content": results}] if results else said
    ids = [item["call_id"] for item in raw["output"] if item["type"] == "function_call"]
    return [*raw["output"], *({"type": "function_call_output", "call_id": id_, "output": "done"} for id_ in ids)]


@PLACES
def test_it_is_taken_by_choice_only(at: Place) -> None:
    for policy in (Policy(), Policy(strategy="native")):
        server = Emulator([Move(text="hi")])
        reply = api(loadpoint.wrap(client(at, server), policy), at).create(**request(at))
        assert loadpoint.report(reply).load_point is None
        assert at.entry not in json.dumps(server.requests)
    server = Emulator([Move(text="hi")])
    reply = api(loadpoint.wrap(client(at, server), Policy(search="hosted")), at).create(**request(at))
    assert loadpoint.report(reply).load_point == "gateway_search"


@PLACES
def test_who_brings_the_search_himself_is_left_alone(at: Place) -> None:
    server = Emulator([Move(text="hi")])
    first, *rest = request(at)["tools"][:5]
    given = request(at, tools=[{"type": at.entry}, first, *({**tool, "defer_loading": True} for tool in rest)])
    reply = api(loadpoint.wrap(client(at, server), POLICY), at).create(**given)
    assert server.requests == [given]
    assert "own tool search" in loadpoint.report(reply).reason


def test_what_a_gateway_left_does_not_go_to_another_server() -> None:
    server = Emulator([Move(text="hi")])
    http = emulator.http_client("openai", server)
    wrapped = loadpoint.wrap(openai.OpenAI(api_key="k", http_client=http), Policy(strategy="native"))
    left = {"type": ROUTER.entry, "id": "ts_1", "query": "x", "status": "completed"}
    given = request(ROUTER, model="gpt-5.4")
    given["input"] += [left, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "go on"}]
    wrapped.responses.create(**given)
    assert [item.get("type") for item in server.requests[0]["input"]] == [None, None, None]


def test_calls_of_another_form_come_without_their_namespaces() -> None:
    """A conversation that a search of the client's has loaded goes on at a gateway, and the other way round."""
    server = Emulator([Move.call("tool_search", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}), Move(text="done")])
    ledger = loadpoint.InProcessLedger()
    http = emulator.http_client("openai", server)
    plain = openai.OpenAI(api_key="k", http_client=http)
    given = request(ROUTER, model="gpt-5.4")
    reply = loadpoint.wrap(plain, Policy(strategy="native"), ledger=ledger).responses.create(**given)
    given["input"] += echoed(ROUTER, reply)
    loadpoint.wrap(client(ROUTER, server), POLICY, ledger=ledger).responses.create(**given)
    sent = server.requests[-1]["input"]
    assert [item["type"] for item in sent[1:]] == ["function_call", "function_call_output"]
    assert "namespace" not in json.dumps(sent)


def test_a_cache_marker_stands_on_a_tool_and_not_on_the_search() -> None:
    server = Emulator([Move(text="hi")])
    given = request(ROUTER_MESSAGES)
    given["tools"][-1] = {**given["tools"][-1], "cache_control": {"type": "ephemeral"}}
    loadpoint.wrap(client(ROUTER_MESSAGES, server), POLICY).messages.create(**given)
    tools = server.requests[0]["tools"]
    assert [at for at, tool in enumerate(tools) if "cache_control" in tool] == [1]
    assert "defer_loading" not in tools[1]
