"""Every rule of `openai.responses` rejects through the real SDK, in the service's words; valid neighbours pass."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.emulator.support import (
    Json,
    added,
    body_of,
    chat_client,
    client_search,
    function,
    given,
    late,
    made,
    namespace,
    searched,
    user,
)

from loadpoint.emulator import Emulator, Move
from loadpoint.emulator._rules import book

MODEL = "gpt-5.4"
OLD = "gpt-5.2"
NEWEST = "gpt-6-sol"
PING = function("ping")
LATE = late("late")
HOSTED: Json = {"type": "tool_search"}
CRM = namespace("crm", late("lookup"), function("list"))
HI = [user("hi")]
SQL: Json = {"type": "custom", "name": "sql"}


def says(*items: Any, **extra: Any) -> Json:
    return {"input": [user("hi"), *items], **extra}


def choose(name: str, **extra: Any) -> Json:
    return {"tool_choice": {"type": "function", "name": name}, **extra}


def custom(name: str = "sql", call_id: str = "call_1", **extra: Any) -> Json:
    return {"type": "custom_tool_call", "name": name, "call_id": call_id, "input": "x", **extra}


def custom_output(call_id: str = "call_1") -> Json:
    return {"type": "custom_tool_call_output", "call_id": call_id, "output": "ok"}


STRICT = {**PING, "strict": True}
HALF_STRICT = {**STRICT, "parameters": {"type": "object", "properties": {"a": {}}, "additionalProperties": False}}

BROKEN: list[tuple[str, Json]] = [
    ("responses.input_type", {"input": {"role": "user"}}),
    ("responses.input_type", says(made(), given(output={"a": 1}))),
    ("responses.unknown_parameter", {"input": "hi", "extra_body": {"messages": []}}),
    ("responses.cache_options_unsupported", {"input": "hi", "prompt_cache_options": {"mode": "explicit"}}),
    ("responses.previous_response_not_found", {"input": "hi", "previous_response_id": "resp_0"}),
    ("responses.conversation_not_found", {"input": "hi", "conversation": "conv_0"}),
    ("responses.two_states", {"input": "hi", "conversation": "conv_0", "previous_response_id": "resp_0"}),
    ("responses.tool_type", says(tools=[{"type": "tool"}])),
    ("responses.tool_type", says(tools=[namespace("crm", {"type": "mcp", "server_label": "x"})])),
    ("responses.tool_type", says(tools=[namespace("crm", CRM)])),
    ("responses.tool_field_required", says(tools=[{"type": "function", "parameters": {}}])),
    ("responses.tool_field_required", says(tools=[{"type": "namespace", "name": "crm", "tools": []}])),
    ("responses.unknown_tool_field", says(tools=[{**PING, "function": {}}])),
    ("responses.unknown_tool_field", says(tools=[{**CRM, "defer_loading": True}, HOSTED])),
    ("responses.tool_name_pattern", says(tools=[function("a.b")])),
    ("responses.tool_name_pattern", says(tools=[namespace("crm", function("a b"))])),
    ("responses.tool_name_length", says(tools=[function("t" * 129)])),
    ("responses.tool_parameters", says(tools=[{**PING, "parameters": {"type": "array"}}])),
    ("responses.tool_parameters", says(tools=[{**PING, "parameters": "none"}])),
    ("responses.tool_strict", says(tools=[STRICT])),
    ("responses.tool_strict", says(tools=[HALF_STRICT])),
    ("responses.deferred_without_search", says(tools=[PING, LATE])),
    ("responses.deferred_without_search", says(tools=[CRM])),
    ("responses.deferred_without_search", says(tools=[{"type": "mcp", "server_label": "x", "defer_loading": True}])),
    ("responses.search_without_deferred", says(tools=[PING, HOSTED])),
    ("responses.client_search_description", says(tools=[{**client_search(), "description": None}])),
    ("responses.search_unsupported_model", says(tools=[LATE, HOSTED], model="gpt-5.4-nano-2026-03-17")),
    ("responses.search_unsupported_model", says(tools=[client_search()], model=OLD)),
    ("responses.search_unsupported_model", says(tools=[client_search()], model="gpt-5-nano")),
    ("responses.namespace_functions", says(tools=[namespace("functions", PING)])),
    ("responses.tool_choice_value", says(tools=[PING], tool_choice="any")),
    ("responses.tool_choice_value", says(tools=[LATE, HOSTED], tool_choice={"type": "tool_search"})),
    ("responses.tool_choice_unknown", says(tools=[PING], **choose("pong"))),
    (
        "responses.tool_choice_unknown",
        says(tools=[PING], tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]}),
    ),
    ("responses.tool_choice_added", says(added(PING), **choose("ping"))),
    (
        "responses.tool_choice_added",
        says(
            added(PING),
            tool_choice={"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "ping"}]},
        ),
    ),
    ("responses.tool_choice_without_tools", says(tool_choice="required")),
    ("responses.declared_twice", says(added(PING), tools=[PING])),
    ("responses.item_type", says({"type": "tool_result"})),
    ("responses.item_type", says({"content": "no role"})),
    ("responses.item_field_required", says({"type": "function_call", "name": "ping", "call_id": "call_1"})),
    ("responses.item_field_required", says({"type": "tool_search_output", "call_id": "call_1"})),
    ("responses.unknown_item_field", says({**searched(PING)[0], "created_by": "x"}, searched(PING)[1])),
    ("responses.unknown_item_field", says({**added(PING), "prompt_cache_breakpoint": {"mode": "explicit"}})),
    ("responses.role", says({"role": "tool", "content": "x"})),
    ("responses.role", says({**added(PING), "role": "user"})),
    ("responses.content_part", says({"role": "assistant", "content": [{"type": "input_text", "text": "so"}]})),
    ("responses.content_part", {"input": [user([{"type": "text", "text": "hi"}])]}),
    ("responses.arguments_type", says(made(arguments={}), given())),
    ("responses.item_id", says(made(id="call_1"), given())),
    ("responses.item_id", says({"type": "reasoning", "id": "item_1", "summary": [], "encrypted_content": "x"})),
    ("responses.call_id_length", says(made(call_id="c" * 65), given("c" * 65))),
    ("responses.duplicate_item", says(made(id="fc_1"), given(), made(id="fc_1"), given())),
    ("responses.item_not_found", says({"type": "item_reference", "id": "tsc_0"})),
    ("responses.item_not_found", says({"type": "reasoning", "id": "rs_0", "summary": []})),
    (
        "responses.encrypted_content",
        says({"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABforeign=="}),
    ),
    ("responses.output_orphan", says(given())),
    ("responses.output_orphan", says(made(), custom_output())),
    ("responses.call_unanswered", says(made())),
    ("responses.call_unanswered", says(custom())),
    ("responses.search_unanswered", says(searched(PING)[0])),
    ("responses.search_output_orphan", says(searched(PING)[1])),
    ("responses.search_output_orphan", says(*reversed(searched(PING)))),
    ("responses.output_orphan", says(given(), made())),
    ("responses.call_name_length", says(made("n" * 129), given())),
    ("responses.loaded_type", says(*searched({"type": "web_search_preview"}))),
    ("responses.tool_name_length", says(added(function("t" * 129)))),
    ("responses.unknown_tool_field", says(*searched({**PING, "short_description": "x"}))),
    ("responses.search_without_deferred", says(added(LATE), tools=[HOSTED])),
    ("responses.tool_choice_without_tools", says(**choose("ping"))),
    ("responses.missing_namespace", says(made("late"), given(), tools=[LATE, HOSTED])),
    ("responses.missing_namespace", says(made("lookup"), given(), tools=[CRM, HOSTED])),
    ("responses.missing_namespace", says(*searched(LATE), made("late"), given(), tools=[client_search()])),
]
ELSEWHERE = {
    "responses.no_credential",
    "responses.gateway_all_deferred",  # test_gateway_search.py
    "responses.response_not_found",
    "responses.conversation_item_not_found",
    "responses.cancel_synchronous",
    "responses.forced_redeclared",
    "responses.reasoning_missing",
    "responses.reasoning_alone",
}
ASSUMED: list[tuple[str, Json]] = [
    ("responses.namespace_size", says(tools=[namespace("crm", *[late(f"t{at}") for at in range(10)]), HOSTED])),
    ("responses.model_missing", {"input": "hi", "model": ""}),
    ("responses.input_missing", {"input": []}),
    ("responses.namespace_name", says(tools=[namespace("a b", PING)])),
    ("responses.tool_names_unique", says(tools=[PING, PING])),
    ("responses.search_twice", says(tools=[LATE, HOSTED, HOSTED])),
    ("responses.tool_choice_deferred", says(tools=[LATE, HOSTED], **choose("late"))),
    ("responses.search_arguments", says({**searched(PING)[0], "arguments": "{}"}, searched(PING)[1])),
    ("responses.unknown_namespace", says(made(namespace="ping"), given(), tools=[PING])),
]

VALID: list[Json] = [
    {"input": "hi"},
    {
        "input": [{"type": "message", **user([{"type": "input_text", "text": "hi"}])}],
        "tools": [],
        "tool_choice": "auto",
    },
    says(made(), given(), made(call_id="call_2"), given("call_2")),
    says(made(), {"role": "assistant", "content": "between"}, given(output=[{"type": "input_text", "text": "ok"}])),
    says(custom(), custom_output(), tools=[SQL]),
    says(made("gone"), given(), tools=[PING]),
    says(made("late", namespace="late"), given(), tools=[LATE, HOSTED]),
    says(made("lookup", namespace="crm"), given(), tools=[CRM, HOSTED]),
    says(*searched(LATE), made("late", namespace="late"), given(), tools=[client_search()]),
    says(*searched(LATE), made("late", namespace="late"), given()),
    says(*searched(LATE), made("late"), given(), tools=[function("late")]),
    says(
        *searched(CRM, call_id=None, execution="server"), made("lookup", namespace="crm"), given(), tools=[CRM, HOSTED]
    ),
    says({**searched()[0], "execution": "server", "arguments": {"queries": ["x"]}}, tools=[LATE, HOSTED]),
    says(added(PING), made(namespace="ping"), given()),
    says(added(PING), made(), given()),
    says(added(PING), tools=[PING], model=NEWEST),
    says(added(PING), model=NEWEST, **choose("ping")),
    says(added(PING), model="gpt-4o-mini"),
    says(added(LATE)),
    says(tools=[client_search()]),
    says(tools=[client_search(), PING, LATE], tool_choice="required"),
    says(tools=[namespace("fetch", late("fetch")), HOSTED], model="gpt-5.5-pro"),
    says(
        tools=[{"type": "mcp", "server_label": "x", "server_url": "https://mcp.example", "defer_loading": True}, HOSTED]
    ),
    says(tools=[{**PING, "strict": True, "parameters": {"type": "object", "additionalProperties": False}}]),
    says(tools=[PING, LATE, HOSTED], **choose("ping")),
    says(*searched(LATE), tools=[client_search(), PING], **choose("late")),
    says(model=NEWEST, prompt_cache_options={"mode": "explicit", "ttl": "12h"}),
    says({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}}),
]


def create(server: Emulator, request_: Json) -> Any:
    return chat_client(server).with_options(max_retries=0).responses.create(**{"model": MODEL, **request_})


@pytest.mark.parametrize(("rule", "request_"), BROKEN, ids=[f"{at}-{rule}" for at, (rule, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_an_error_of_the_sdk(rule: str, request_: Json):
    server = Emulator([Move(text="accepted")])
    with pytest.raises(openai.APIStatusError) as caught:
        create(server, request_)
    exchange = server.exchanges[-1]
    assert exchange.rule == rule
    assert caught.value.status_code == book()[rule].status == exchange.status
    assert body_of(caught.value) == (exchange.reply or {})["error"]
    assert "$" not in str(exchange.error).replace("+$", "")
    assert "$" not in str(body_of(caught.value)["param"])
    assert caught.value.code == book()[rule].code


@pytest.mark.parametrize("request_", VALID, ids=range(len(VALID)))
def test_valid_neighbours_pass_even_the_assumed_rules(request_: Json):
    server = Emulator([Move(text="accepted")], rules="all")
    assert create(server, request_).output_text == "accepted"
    assert server.exchanges[-1].warnings == ()


@pytest.mark.parametrize(("rule", "request_"), ASSUMED, ids=[rule for rule, _ in ASSUMED])
def test_assumed_rules_warn_and_reject_only_on_demand(rule: str, request_: Json):
    server = Emulator([Move(text="accepted")])
    create(server, request_)
    assert server.exchanges[-1].warnings == (rule,)
    assert book()[rule].grade == "assumed"
    with pytest.raises(openai.APIStatusError):
        create(Emulator(rules="all"), request_)


def test_the_messages_name_the_item_and_the_tool():
    for request_, param, words in [
        (says(made("late"), given(), tools=[LATE, HOSTED]), "input[1].namespace", "function_call 'late'"),
        (says(tools=[PING, LATE]), "tools", "Deferred tools require tools.tool_search."),
        (says(tools=[PING], **choose("pong")), "tool_choice", "Tool choice 'pong' not found in 'tools' parameter."),
        (says({"type": "x"}), "input[1]", "Supported values are: 'additional_tools', 'apply_patch_call'"),
        (says(tools=[namespace("crm", function("a b"))]), "tools[0].tools[0].name", "does not match pattern"),
        (says(made()), "input", "No tool output found for function call call_1."),
        (says(custom()), "input", "No tool output found for custom tool call call_1."),
        (says(given()), "input", "No tool call found for function call output with call_id call_1."),
    ]:
        with pytest.raises(openai.BadRequestError) as caught:
            create(Emulator(), request_)
        assert (caught.value.param, words in str(caught.value)) == (param, True), str(caught.value)


def test_a_key_is_required():
    server = Emulator()
    assert server.handle("POST", "https://api.openai.com/v1/responses", {}, b'{"model":"m","input":"hi"}').status == 401
    assert server.exchanges[-1].rule == "responses.no_credential"


def test_a_forced_name_that_a_held_item_declares_is_not_redeclared():
    server = Emulator([Move(text="a")])
    first = create(server, says(added(PING), model=NEWEST))
    again = {"input": "and?", "previous_response_id": first.id, "tools": [PING], "model": NEWEST, **choose("ping")}
    with pytest.raises(openai.InternalServerError):
        create(server, again)
    assert server.exchanges[-1].rule == "responses.forced_redeclared"


def test_stored_items_and_their_reasoning_come_back_together():
    server = Emulator([Move.call("ping", thinking="Ping it.")], rules="all")
    first = create(server, says(tools=[PING]))
    reasoning, call = (item.model_dump(exclude_none=True) for item in first.output)
    for items, rule in [
        ([call, given(call["call_id"])], "responses.reasoning_missing"),
        ([reasoning, user("and?")], "responses.reasoning_alone"),
        ([reasoning], "responses.reasoning_alone"),
    ]:
        with pytest.raises(openai.BadRequestError):
            create(server, says(*items, tools=[PING]))
        assert server.exchanges[-1].rule == rule
    loose = {key: value for key, value in call.items() if key != "id"}
    server.reset([Move(text="ok")] * 2)
    create(server, says(loose, given(call["call_id"]), tools=[PING]))


def test_every_rule_of_the_dialect_is_shown_here():
    shown = {rule for rule, _ in [*BROKEN, *ASSUMED]} | ELSEWHERE
    assert {rule.id for rule in book().rules.values() if rule.dialect == "openai.responses"} == shown
