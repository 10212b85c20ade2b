"""The Responses API through the real SDK: replies, typed streams, helpers, searches, additions, custom tools."""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any

import openai
import pydantic
import pytest
from openai.types.responses import Response, ResponseInputItem, ResponseStreamEvent
from tests.emulator.support import (
    STRING,
    Json,
    added,
    chat_client,
    client_search,
    function,
    given,
    late,
    namespace,
    user,
)

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move

MODEL = "gpt-5.4"
POST = function("post", properties={"channel": STRING, "text": STRING})
ARGUMENTS = {"channel": "#releases", "text": 'say "hi" — ünïcode'}
MOVE = Move(thinking="Which tool? Slack's.", text="I will post that.", calls=[("post", ARGUMENTS), ("ping", {})])
REQUEST: Json = {
    "model": MODEL,
    "input": "post it",
    "tools": [POST, function("ping")],
    "reasoning": {"effort": "low", "summary": "auto"},
}
LATE = late("late", "Does it late", properties={"id": STRING})
CRM = namespace("crm", late("lookup", properties={"id": STRING}), late("merge"), function("list"))
HOSTED: Json = {"type": "tool_search"}


def create(server: Emulator, *items: Any, **extra: Any) -> Any:
    return chat_client(server).responses.create(model=extra.pop("model", MODEL), input=list(items), **extra)


def events(server: Emulator, **request_: Any) -> list[Any]:
    return list(chat_client(server).responses.create(**{**REQUEST, **request_}, stream=True))


def replayed(reply: Any) -> list[Any]:
    """What a client sends back of a reply."""
    return [item.model_dump(exclude_none=True) for item in reply.output]


def check(reply: Any) -> None:
    assert [item.type for item in reply.output] == ["reasoning", "message", "function_call", "function_call"]
    assert reply.output[0].summary[0].text == MOVE.thinking
    assert reply.output_text == "I will post that."
    assert json.loads(reply.output[2].arguments) == ARGUMENTS
    assert reply.output[2].namespace is None
    assert reply.status == "completed"


def test_a_response():
    server = Emulator([MOVE])
    raw = chat_client(server).responses.with_raw_response.create(**REQUEST)
    reply = raw.parse()
    check(reply)
    exchange = server.exchanges[0]
    assert (exchange.dialect, exchange.endpoint, exchange.path) == ("openai.responses", "create", "/v1/responses")
    assert exchange.reply == json.loads(raw.text)
    assert raw.headers["x-request-id"] == reply._request_id
    assert reply.usage.input_tokens == exchange.input_tokens == exchange.tokens.total
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens
    assert reply.usage.output_tokens_details.reasoning_tokens > 0
    prefixes = [item.id.partition("_")[0] for item in reply.output]
    assert prefixes == ["rs", "msg", "fc", "fc"]
    assert all(item.call_id.startswith("call_") for item in reply.output[2:])


def test_the_types_of_the_sdk_hold_everything_without_a_warning():
    """The SDK builds its models without validating; here they are validated."""
    stated: Any = pydantic.TypeAdapter(ResponseStreamEvent)
    server = Emulator([MOVE, MOVE, Move(calls=[("tool_search", {"paths": ["crm"]}), ("lookup", {"id": "7"})])])
    create(server, user("post it"), **{key: REQUEST[key] for key in ("tools", "reasoning")})
    found = create(server, user("find"), tools=[CRM, HOSTED])
    streamed = events(server)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for exchange in server.exchanges:
            Response.model_validate(exchange.reply).model_dump()
        for event in streamed:
            stated.validate_python(event.model_dump())
        for item in found.output:
            assert type(item).__name__.startswith("Response"), type(item)
            assert not set(item.model_extra or {})


def test_events_are_numbered_and_placed():
    streamed = events(Emulator([MOVE]))
    assert [event.sequence_number for event in streamed] == list(range(len(streamed)))
    kinds = [event.type for event in streamed]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-1] == "response.completed"
    opened = [event.item for event in streamed if event.type == "response.output_item.added"]
    closed = [event.item for event in streamed if event.type == "response.output_item.done"]
    assert [item.id for item in opened] == [item.id for item in closed]
    assert [item.status for item in opened[1:]] == ["in_progress"] * 3
    assert streamed[-1].response.output == closed
    check(streamed[-1].response)
    assert kinds.count("response.output_text.delta") > 1
    assert kinds.count("response.function_call_arguments.delta") > 3
    assert kinds.count("response.reasoning_summary_text.done") == 1
    for event in streamed:
        if hasattr(event, "item_id"):
            assert event.item_id == closed[event.output_index].id
    deltas = "".join(event.delta for event in streamed if event.type == "response.output_text.delta")
    assert deltas == "I will post that."
    assert streamed[0].response.usage is None
    filled = [event for event in streamed if "obfuscation" in (event.model_extra or {})]
    assert len(filled) == sum(kind.endswith(".delta") for kind in kinds)
    assert not [
        event for event in events(Emulator([MOVE]), stream_options={"include_obfuscation": False}) if event.model_extra
    ]


def test_the_stream_helper_and_parse():
    class Weather(pydantic.BaseModel):
        city: str

    server = Emulator([MOVE, Move(text='{"city": "Bern"}'), Move(text='{"city": "Bern"}')])
    client = chat_client(server)
    with client.responses.stream(**REQUEST) as stream:
        seen = [event.type for event in stream]
        check(stream.get_final_response())
    assert seen.count("response.output_text.delta") > 1
    assert client.responses.parse(model=MODEL, input="where", text_format=Weather).output_parsed == Weather(city="Bern")
    with client.responses.stream(model=MODEL, input="where", text_format=Weather) as stream:
        assert stream.get_final_response().output_parsed == Weather(city="Bern")


def test_asynchronously_and_over_a_socket():
    server = Emulator([MOVE] * 3)

    async def run() -> None:
        http = emulator.http_client("openai", server, asynchronous=True)
        client: Any = openai.AsyncOpenAI(api_key="k", http_client=http)
        check(await client.responses.create(**REQUEST))
        async with client.responses.stream(**REQUEST) as stream:
            check(await stream.get_final_response())

    asyncio.run(run())
    with emulator.serve(server) as running:
        client: Any = openai.OpenAI(api_key="k", base_url=running.url + "/v1")
        reply = client.responses.create(**REQUEST)
        check(reply)
        check(client.responses.retrieve(reply.id))
        client.responses.delete(reply.id)


def test_azure_sends_to_the_same_dialect():
    server = Emulator([MOVE])
    client: Any = openai.AzureOpenAI(
        api_key="k",
        api_version="2025-04-01-preview",
        azure_endpoint="https://mine.openai.azure.com",
        http_client=emulator.http_client("openai", server),
    )
    check(client.responses.create(**REQUEST))
    assert server.exchanges[0].path == "/openai/responses"


def test_a_hosted_search_answers_in_one_response_and_is_billed_as_two_passes():
    server = Emulator([Move(calls=[("tool_search", {"paths": ["crm", "late"]}), ("lookup", {"id": "7"})])])
    reply = create(server, user("find"), tools=[CRM, LATE, function("ping"), HOSTED])
    search, output, call = reply.output
    assert (search.type, search.execution, search.call_id) == ("tool_search_call", "server", None)
    assert search.arguments == {"paths": ["crm", "late"]}
    assert (output.type, output.execution, output.call_id) == ("tool_search_output", "server", None)
    assert [tool.name for tool in output.tools] == ["crm", "late"]
    assert [tool.name for tool in output.tools[0].tools] == ["lookup", "merge"]
    assert output.tools[1].defer_loading is True
    assert (call.name, call.namespace) == ("lookup", "crm")
    exchange = server.exchanges[0]
    assert reply.usage.input_tokens == exchange.input_tokens > 2 * exchange.tokens.total
    assert reply.tools[-1].model_dump(exclude_unset=True) == {
        "type": "tool_search",
        "description": None,
        "parameters": None,
    }
    server.reset([Move(text="ok")])
    create(server, user("find"), *replayed(reply), given(call.call_id), tools=[CRM, LATE, function("ping"), HOSTED])
    assert server.exchanges[0].loaded == ("lookup", "merge", "late")


def test_a_search_for_nothing_known_finds_nothing():
    server = Emulator([Move(calls=[("tool_search", {"paths": ["gone"]})])])
    assert create(server, user("find"), tools=[LATE, HOSTED]).output[1].tools == []


def test_a_deferred_tool_called_without_a_search_carries_its_namespace():
    server = Emulator([Move(calls=[("late", {"id": "7"}), ("crm.merge", {}), ("list", {}), ("unknown", {})])])
    reply = create(server, user("do"), tools=[LATE, CRM, HOSTED])
    placed = [(call.name, call.namespace) for call in reply.output]
    assert placed == [("late", "late"), ("merge", "crm"), ("list", "crm"), ("unknown", None)]


def test_the_clients_search():
    server = Emulator([Move.call("tool_search", {"query": "orders"}), Move.call("late", {"id": "42"}), Move(text="ok")])
    tools: Any = [client_search(), function("ping")]
    first = create(server, user("where?"), tools=tools)
    search = first.output[0]
    assert (search.type, search.execution, search.arguments) == ("tool_search_call", "client", {"query": "orders"})
    assert search.call_id.startswith("call_")
    found = {"type": "tool_search_output", "call_id": search.call_id, "tools": [LATE], "execution": "client"}
    history = [user("where?"), *replayed(first), found]
    second = create(server, *history, tools=tools)
    call = second.output[0]
    assert (call.name, call.namespace) == ("late", "late")
    third = create(server, *history, *replayed(second), given(call.call_id))
    assert third.output_text == "ok"
    assert [exchange.loaded for exchange in server.exchanges] == [(), ("late",), ("late",)]


@pytest.mark.parametrize("changing", [False, True])
def test_a_call_id_may_change_within_the_stream(changing: bool):
    server = Emulator([Move.call("tool_search", {"query": "x"}, changing_call_ids=changing)] * 2)
    streamed = events(server, tools=[client_search()])
    first, done = (event.item for event in streamed if event.type.startswith("response.output_item"))
    assert (first.arguments, done.arguments) == ({}, {"query": "x"})
    assert (first.call_id != done.call_id) is changing
    assert streamed[-1].response.output[0].call_id == done.call_id
    with chat_client(server).responses.stream(**{**REQUEST, "tools": [client_search()]}) as stream:
        if changing:  # the helper of openai 3.57 takes no other identity
            with pytest.raises(RuntimeError, match="identity changed"):
                stream.until_done()
        else:
            assert stream.get_final_response().output[0].arguments == {"query": "x"}


def test_additional_tools_are_called_without_a_namespace():
    server = Emulator([Move(calls=[("fresh", {}), ("lookup", {})])])
    reply = create(server, user("hi"), added(function("fresh"), namespace("crm", function("lookup"))), model="gpt-4o")
    assert [(call.name, call.namespace) for call in reply.output] == [("fresh", None), ("lookup", "crm")]
    assert server.exchanges[0].loaded == ("fresh", "lookup")


def test_deferral_in_additional_tools_is_dropped_without_a_word():
    server = Emulator([Move.call("late", {})], rules="all")
    call = create(server, user("hi"), added(LATE, {"type": "tool_search"})).output[0]
    assert (call.name, call.namespace) == ("late", None)
    assert server.exchanges[0].loaded == ("late",)


def test_custom_tools():
    sql: Json = {"type": "custom", "name": "sql", "description": "Runs SQL"}
    server = Emulator([Move(calls=[("sql", "SELECT 1;"), ("sql", {"input": "SELECT 2;"})])] * 2)
    reply = create(server, user("count"), tools=[sql])
    assert [(item.type, item.input, item.id[:4]) for item in reply.output] == [
        ("custom_tool_call", "SELECT 1;", "ctc_"),
        ("custom_tool_call", "SELECT 2;", "ctc_"),
    ]
    streamed = events(server, tools=[sql])
    deltas = [event.delta for event in streamed if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(deltas) == "SELECT 1;SELECT 2;"
    deferred = Emulator([Move.call("sql", "SELECT 1;")])
    call = create(deferred, user("count"), tools=[{**sql, "defer_loading": True}, HOSTED]).output[0]
    assert call.namespace == "sql"


def test_other_ends():
    long = Move(text="Once upon", calls=[("ping", "{")], stop="max_tokens")
    server = Emulator([long, long, Move(stop="content_filter"), Move(refusal="I will not."), Move(stop="failed")])
    reply = create(server, user("go"))
    assert (reply.status, reply.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert [item.status for item in reply.output] == ["completed", "incomplete"]
    assert events(server)[-1].type == "response.incomplete"
    assert create(server, user("go")).incomplete_details.reason == "content_filter"
    refused = events(server)
    assert refused[-1].response.output[0].content[0].refusal == "I will not."
    assert [event.type for event in refused].count("response.refusal.done") == 1
    failed = events(server)[-1]
    assert (failed.type, failed.response.error.code) == ("response.failed", "server_error")


def test_faults():
    server = Emulator([Move.fault(429), Move(text="long " * 40, cut_events=6, stream_error="Overloaded")])
    client = chat_client(server).with_options(max_retries=0)
    with pytest.raises(openai.RateLimitError):
        client.responses.create(model=MODEL, input="hi")
    raw = client.responses.with_streaming_response.create(model=MODEL, input="hi", stream=True)
    with raw as answer:
        lines = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    assert [line["type"] for line in lines[-2:]] == ["error", "response.failed"]
    assert [line["sequence_number"] for line in lines] == list(range(len(lines)))
    with pytest.raises(openai.APIError, match="Overloaded"):
        events(Emulator([Move(text="x" * 99, cut_events=6, stream_error="Overloaded")]))


def test_overrides_and_verbatim_items():
    item = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}
    future = {"type": "future_item", "id": "fi_1"}
    move = Move(text="so", before=[item], blocks=[future], message={"service_tier": "flex"}, usage={"input_tokens": 7})
    server = Emulator([move] * 2)
    reply = create(server, user("hi"))
    assert [entry.type for entry in reply.output] == ["web_search_call", "message", "future_item"]
    assert (reply.service_tier, reply.usage.input_tokens) == ("flex", 7)
    assert events(server)[-1].response.output[2].type == "future_item"


def test_the_input_types_of_the_sdk_take_what_is_replayed():
    sent: Any = pydantic.TypeAdapter(list[ResponseInputItem])
    server = Emulator([Move(thinking="Hm.", calls=[("tool_search", {"paths": ["late"]}), ("late", {})])])
    reply = create(server, user("go"), tools=[LATE, HOSTED])
    kinds = [type(item).__name__ for item in sent.validate_python(replayed(reply))]
    assert kinds[-1] == "ResponseFunctionToolCall"
