"""The native forms of Chat Completions through the real openai SDK: Kimi's, Baseten's, and a gateway's own search."""

from __future__ import annotations

import json
import operator
from typing import Any

import openai
import pytest
from tests.adapters import paths
from tests.bench import judge

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move

KIMI = ("https://api.moonshot.ai/v1", "kimi-k3", "system_tools")
BASETEN = ("https://inference.baseten.co/v1", "an-open-model", "tool_reference")
ORQ = ("https://my.orq.ai/v3/router", "openai/gpt-5.4-mini", "gateway_search")
HERE = pytest.mark.parametrize("at", [KIMI, BASETEN], ids=["kimi", "baseten"])
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
EVERY = [(path, walk) for path, walks in paths.PATHS.items() if path.startswith("openai:chat") for walk in walks]
TOOL, OTHER = "svc_tool_7", "svc_tool_80"
Json = dict[str, Any]


def wrapped(server: Emulator, at: tuple[str, str, str], *, asynchronous: bool = False, **policy: Any) -> Any:
    http = emulator.http_client("openai", server, asynchronous=asynchronous)
    made = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    chosen: Json = {} if at is KIMI else {"strategy": "native", "load_point": at[2]}
    return loadpoint.wrap(made(api_key="k", base_url=at[0], http_client=http), Policy(**{**chosen, **policy}))


def request(at: tuple[str, str, str], **more: Any) -> Json:
    return {
        "model": at[1],
        "messages": [{"role": "user", "content": "Do thing 7 in Rome. " + "It has been a long day. " * 200}],
        "tools": paths.chat_tools(120),
        **more,
    }


def search(query: str) -> tuple[str, Json]:
    return ("ToolSearch", {"query": query})


def bodies(server: Emulator) -> list[Json]:
    return server.requests


def roles(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"]]


def loads(body: Json) -> list[str]:
    """The names that the messages of a body load, in order."""
    out: list[str] = []
    for message in body["messages"]:
        out += [tool["function"]["name"] for tool in message.get("tools", ())]
        parts = message.get("content") if isinstance(message.get("content"), list) else []
        out += [part["tool_name"] for part in parts or () if part.get("type") == "tool_reference"]
    return out


def echoed(reply: Any) -> Json:
    message: Json = json.loads(reply.choices[0].message.model_dump_json(exclude_none=True))
    return message


def results(reply: Any, text: str = "done") -> list[Json]:
    calls = reply.choices[0].message.tool_calls or ()
    return [{"role": "tool", "tool_call_id": call.id, "content": text} for call in calls]


@pytest.mark.anyio
@HERE
@BOTH
@pytest.mark.parametrize(("path", "walk"), EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in EVERY])
async def test_the_discovery_stays_hidden(path: str, walk: paths.Walk, at: Any, asynchronous: bool) -> None:
    server = Emulator([Move.call("ToolSearch", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"})])
    client = wrapped(server, at, asynchronous=asynchronous)
    api = operator.attrgetter(path.partition(":")[2].rpartition(".")[0])(client)
    calls, reported = await walk(api, request(at))
    assert calls == paths.WANTED
    first, second = server.exchanges
    assert TOOL in second.loaded
    assert TOOL not in first.loaded
    assert not judge.check(bodies(server))
    report = loadpoint.report(reported)
    assert (report.added_rounds, report.load_point, report.strategy) == (1, at[2], "native")


@HERE
@pytest.mark.requirement("N21")
def test_what_was_loaded_stays_where_it_was_loaded(at: Any) -> None:
    """Three turns, a search in each of the first two: the prefix always holds, and the cache is read."""
    found = [Move(calls=[search(name)], thinking="where") for name in (TOOL, OTHER)]
    used = [Move.call(name, {"city": "Rome"}) for name in (TOOL, OTHER)]
    server = Emulator([found[0], used[0], Move(text="one"), found[1], used[1], Move(text="two"), Move(text="three")])
    client = wrapped(server, at)
    given = request(at)
    for turn in ("first", "second", "third"):
        given["messages"].append({"role": "user", "content": turn})
        reply = client.chat.completions.create(**given)
        while reply.choices[0].message.tool_calls:
            given["messages"] += [echoed(reply), *results(reply)]
            reply = client.chat.completions.create(**given)
        given["messages"].append(echoed(reply))
    assert not judge.check(bodies(server))
    assert [loads(body)[:1] for body in bodies(server)[1:3]] == [[TOOL]] * 2
    assert {TOOL, OTHER} <= set(loads(bodies(server)[-1]))
    assert len(loads(bodies(server)[-1])) == len(set(loads(bodies(server)[-1])))
    assert all(exchange.cached_tokens > 0 for exchange in server.exchanges[1:])
    assert all("content" not in m for body in bodies(server) for m in body["messages"] if "tools" in m)


@HERE
def test_a_mixed_turn_with_parallel_searches(at: Any) -> None:
    """Real calls go out; both answers, and then what they load, stand behind every result of the turn."""
    client = wrapped(
        server := Emulator(
            [
                Move(calls=[search(TOOL), ("resident", {}), search(OTHER), ("resident", {"a": 1})]),
                Move.call(OTHER, {"city": "Rome"}),
                Move(text="done"),
            ]
        ),
        at,
        resident=("resident",),
        load_at_most=1,
    )
    own = {"type": "function", "function": {"name": "resident", "parameters": {"type": "object", "properties": {}}}}
    given = request(at)
    given["tools"] = [*given["tools"], own]
    reply = client.chat.completions.create(**given)
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == ["resident", "resident"]
    note = {"role": "system", "content": "The clock says noon."}
    given["messages"] += [echoed(reply), *results(reply), note, {"role": "user", "content": "go on"}]
    reply = client.chat.completions.create(**given)
    behind = ["tool"] * 4 + ["system"] * (2 if at is KIMI else 0) + ["system", "user"]
    assert roles(bodies(server)[1])[2:] == behind
    assert loads(bodies(server)[1]) == [TOOL, OTHER]
    assert bodies(server)[1]["messages"][-2] == note
    given["messages"] += [echoed(reply), *results(reply)]
    client.chat.completions.create(**given)
    assert not judge.check(bodies(server))


@HERE
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_structured_output_and_strict_tools(at: Any, stream: bool) -> None:
    server = Emulator([Move(text="Let me look.", calls=[search(TOOL)]), Move(text='{"city":"Rome"}')])
    given = request(at, parallel_tool_calls=False)
    api = wrapped(server, at).chat.completions
    if stream:
        with api.stream(**given, response_format=paths.Answer) as events:
            reply = events.get_final_completion()
    else:
        reply = api.parse(**given, response_format=paths.Answer)
    assert reply.choices[0].message.parsed == paths.Answer(city="Rome")
    assert TOOL in loads(bodies(server)[1])
    kept = [*bodies(server)[1]["tools"], *(t for m in bodies(server)[1]["messages"] for t in m.get("tools", ()))]
    assert all(tool["function"].get("strict") for tool in kept if tool["function"]["name"].startswith("svc"))


@HERE
def test_a_demand_is_kept_to_the_last_round(at: Any) -> None:
    """Where the limit leaves no search, the demand stays, in a form that the service takes."""
    server = Emulator([Move(calls=[search(TOOL)]), Move.call(TOOL, {"city": "Rome"})])
    reply = wrapped(server, at, max_rounds=2).chat.completions.create(**request(at, tool_choice="required"))
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == [TOOL]
    last = bodies(server)[-1]
    if at is KIMI:
        assert last["tool_choice"] == "required"
        assert "tools" not in last, "it takes no choice that names tools"
    else:
        assert last["tool_choice"]["allowed_tools"]["mode"] == "required"


def test_a_loaded_tool_can_be_chosen_by_name_where_names_are_taken() -> None:
    server = Emulator([Move(calls=[search(TOOL)]), Move(text="found"), Move.call(TOOL, {"city": "Rome"})])
    client = wrapped(server, BASETEN)
    given = request(BASETEN)
    reply = client.chat.completions.create(**given)
    given["messages"] += [echoed(reply), {"role": "user", "content": "now"}]
    given["tool_choice"] = {"type": "function", "function": {"name": TOOL}}
    reply = client.chat.completions.create(**given)
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == [TOOL]
    assert TOOL in [t["function"]["name"] for t in bodies(server)[-1]["tools"] if "defer_loading" not in t]


@HERE
def test_legacy_functions_go_through_untouched(at: Any) -> None:
    server = Emulator([Move(text="hi")], rules="off")
    function = request(at)["tools"][0]["function"]
    given = {"model": at[1], "messages": request(at)["messages"], "functions": [function]}
    wrapped(server, at).chat.completions.create(**given)
    assert bodies(server) == [given]


def test_what_a_gateway_searches_is_declared_and_nothing_is_hidden() -> None:
    moves = [Move(calls=[("orq_tool_search", {"pattern": "department 7,"}), (TOOL, {"city": "Rome"})])]
    server = Emulator(moves)
    given = request(ORQ)
    reply = wrapped(server, ORQ).chat.completions.create(**given)
    assert [call.function.name for call in reply.choices[0].message.tool_calls] == [TOOL]
    (body,) = bodies(server)
    entry, *tools = body["tools"]
    assert entry == {"type": "orq:tool_search"}
    assert len(tools) == 120
    assert all(tool["defer_loading"] is True and "defer_loading" not in tool["function"] for tool in tools)
    report = loadpoint.report(reply)
    assert (report.strategy, report.load_point, report.added_rounds) == ("native", "gateway_search", 0)


def test_a_gateway_is_used_by_choice_only() -> None:
    server = Emulator([Move(text="hi")])
    reply = wrapped(server, ORQ, strategy="auto", load_point=None).chat.completions.create(**request(ORQ))
    assert loadpoint.report(reply).strategy in ("resend", "eager")


def test_who_brings_the_gateways_search_himself_is_left_alone() -> None:
    server = Emulator([Move(text="hi")])
    own = [{"type": "orq:tool_search"}, *({**tool, "defer_loading": True} for tool in paths.chat_tools(5))]
    given = request(ORQ, tools=own)
    reply = wrapped(server, ORQ).chat.completions.create(**given)
    assert bodies(server) == [given]
    assert "own tool search" in loadpoint.report(reply).reason
