"""Every rule of `openai.chat` rejects through the real SDK, in the service's words; valid neighbours pass."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.emulator.support import CHAT_MODEL, STRING, body_of, call, chat_client, chat_tool, user

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move
from loadpoint.emulator._rules import book

HI = [user("hi")]
PING = chat_tool("ping")


def strict_tool(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "ping", "parameters": schema, "strict": True}}


def messages(*items: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [user("hi"), *items], "tools": [PING]}


def answer(id_: str = "call_1", content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def asks(*calls: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls), **extra}


BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("chat.model_missing", {"model": "", "messages": HI}),
    ("chat.messages_empty", {"messages": []}),
    ("chat.unknown_parameter", {"messages": HI, "extra_body": {"thread": {"type": "create"}}}),
    ("chat.unknown_message_field", {"messages": [{**user("hi"), "reasoning_content": "x"}]}),
    ("chat.unknown_message_field", {"messages": [{"role": "system", "tools": [PING]}, user("hi")]}),
    ("chat.role", {"messages": [{"role": "robot", "content": "hi"}]}),
    ("chat.content_missing", {"messages": [{"role": "user", "content": None}]}),
    ("chat.content_part", {"messages": [{"role": "user", "content": [{"type": "tool_reference"}]}]}),
    ("chat.tool_calls_unanswered", messages(asks(call()))),
    ("chat.tool_calls_unanswered", messages(asks(call()), user("and?"), answer())),
    ("chat.tool_calls_unanswered", messages(asks(call(), call("call_2")), answer(), user("and?"))),
    ("chat.tool_message_orphan", messages(answer())),
    ("chat.tool_message_orphan", messages({"role": "assistant", "content": "x"}, answer())),
    ("chat.tool_message_id", messages(asks(call()), answer(), answer("call_9"))),
    ("chat.tool_message_id", messages(asks(call()), answer(), answer())),
    ("chat.tool_calls_empty", messages({"role": "assistant", "content": "x", "tool_calls": []})),
    ("chat.tool_call_shape", messages(asks({"id": "call_1", "type": "function", "function": {"name": "ping"}}))),
    ("chat.tool_call_id_length", messages(asks(call("c" * 41)), answer("c" * 41))),
    ("chat.tools_empty", {"messages": HI, "tools": []}),
    ("chat.too_many_tools", {"messages": HI, "tools": [chat_tool(f"t{at}") for at in range(129)]}),
    ("chat.tool_type", {"messages": HI, "tools": [{"type": "tool_search"}]}),
    ("chat.tool_shape", {"messages": HI, "tools": [{"type": "function"}]}),
    ("chat.unknown_tool_field", {"messages": HI, "tools": [{**PING, "defer_loading": True}]}),
    (
        "chat.unknown_tool_field",
        {"messages": HI, "tools": [{"type": "function", "function": {"name": "ping", "defer_loading": True}}]},
    ),
    ("chat.tool_name_pattern", {"messages": HI, "tools": [chat_tool("a.b")]}),
    ("chat.tool_name_length", {"messages": HI, "tools": [chat_tool("t" * 65)]}),
    ("chat.tool_description_length", {"model": "gpt-4o", "messages": HI, "tools": [chat_tool("ping", "d" * 1025)]}),
    ("chat.tool_parameters", {"messages": HI, "tools": [strict_tool({"type": "array"})]}),
    ("chat.tool_strict", {"messages": HI, "tools": [strict_tool({"type": "object", "properties": {}})]}),
    (
        "chat.tool_strict",
        {
            "messages": HI,
            "tools": [strict_tool({"type": "object", "properties": {"a": STRING}, "additionalProperties": False})],
        },
    ),
    ("chat.tool_choice_without_tools", {"messages": HI, "tool_choice": "auto"}),
    ("chat.parallel_without_tools", {"messages": HI, "parallel_tool_calls": False}),
    (
        "chat.tool_choice_unknown",
        {"messages": HI, "tools": [PING], "tool_choice": {"type": "function", "function": {"name": "pong"}}},
    ),
    (
        "chat.tool_choice_unknown",
        {
            "messages": HI,
            "tools": [PING],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "pong"}}]},
            },
        },
    ),
    ("chat.tool_choice_value", {"messages": HI, "tools": [PING], "tool_choice": "any"}),
    ("chat.stream_options", {"messages": HI, "stream_options": {"include_usage": True}}),
    ("chat.system_tools", {"model": "kimi-k3", "messages": [user("hi"), {"role": "system", "tools": []}]}),
    (
        "chat.system_tools",
        {"model": "kimi-k3", "messages": [user("hi"), {"role": "system", "tools": [PING], "content": None}]},
    ),
    (
        "chat.system_tools",
        {"model": "kimi-k3", "messages": [user("hi"), {"role": "system", "tools": [PING], "content": "x"}]},
    ),
    ("chat.unknown_message_field", {"messages": [user("hi"), {"role": "system", "content": "x", "tools": [PING]}]}),
    ("chat.kimi_tool_name", {"model": "kimi-k3", "messages": HI, "tools": [chat_tool("ab")]}),
    ("chat.kimi_tool_name", {"model": "kimi-k3", "messages": [*HI, {"role": "system", "tools": [chat_tool("ab")]}]}),
    ("chat.tool_type", {"model": "kimi-k3", "messages": [*HI, {"role": "system", "tools": [{"type": "web_search"}]}]}),
    (
        "chat.kimi_tool_choice",
        {
            "model": "kimi-k3",
            "messages": HI,
            "tools": [PING],
            "tool_choice": {"type": "function", "function": {"name": "ping"}},
        },
    ),
    ("chat.kimi_tool_choice", {"model": "kimi-k2.6", "messages": HI, "tools": [PING], "tool_choice": "required"}),
    ("chat.content_part", messages(asks(call()), answer(content=[{"type": "tool_reference", "tool_name": "ping"}]))),
    ("chat.unknown_tool_field", {"messages": HI, "tools": [{**PING, "defer_loading": True}]}),
]

VALID: list[dict[str, Any]] = [
    messages(asks(call(), call("call_2")), answer("call_2"), answer(), user("and?")),
    messages({"role": "assistant", "content": "x", "annotations": [], "refusal": None}, user("and?")),
    {"messages": HI, "tools": [chat_tool("t" * 64, "d" * 5000)]},
    {"messages": HI, "tools": [chat_tool(f"t{at}") for at in range(128)]},
    {"messages": HI, "tools": [strict_tool({"type": "object", "properties": {}, "additionalProperties": False})]},
    {"messages": HI, "tools": [PING], "tool_choice": {"type": "function", "function": {"name": "ping"}}},
    {"messages": HI, "tools": [PING], "tool_choice": "none", "parallel_tool_calls": False},
    {"model": "kimi-k3", "messages": [user("hi"), {"role": "system", "tools": [PING]}]},
    {"model": "kimi-k3", "messages": [*HI, {"role": "system", "tools": [PING]}], "tool_choice": "required"},
]


@pytest.mark.parametrize(("rule", "request_"), BROKEN, ids=[f"{at}-{rule}" for at, (rule, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_a_400_of_the_sdk(rule: str, request_: dict[str, Any]):
    server = Emulator([Move(text="accepted")])
    with pytest.raises(openai.APIStatusError) as caught:
        chat_client(server).chat.completions.create(**{"model": CHAT_MODEL, **request_})
    exchange = server.exchanges[-1]
    assert exchange.rule == rule
    assert caught.value.status_code == book()[rule].status == exchange.status
    assert body_of(caught.value)["message"] == exchange.error
    assert "$" not in str(exchange.error).replace("+$", "").replace("}$", "")
    assert caught.value.code == book()[rule].code
    assert caught.value.request_id


@pytest.mark.parametrize("request_", VALID)
def test_valid_neighbours_pass_even_the_assumed_rules(request_: dict[str, Any]):
    server = Emulator([Move(text="accepted")], rules="all")
    reply = chat_client(server).chat.completions.create(**{"model": CHAT_MODEL, **request_})
    assert reply.choices[0].message.content == "accepted"
    assert server.exchanges[-1].warnings == ()


def test_assumed_rules_warn_and_reject_only_on_demand():
    twice = {"model": CHAT_MODEL, "messages": HI, "tools": [PING, PING]}
    server = Emulator([Move(text="accepted")])
    assert chat_client(server).chat.completions.create(**twice).choices[0].message.content == "accepted"
    assert server.exchanges[-1].warnings == ("chat.tool_names_unique",)
    with pytest.raises(openai.BadRequestError, match="must be unique"):
        chat_client(Emulator(rules="all")).chat.completions.create(**twice)


def test_rules_can_be_ignored_or_switched_off():
    many = {"model": CHAT_MODEL, "messages": HI, "tools": [chat_tool(f"t{at}") for at in range(300)]}
    for server in (Emulator([Move(text="ok")], ignore=["chat.too_many_*"]), Emulator([Move(text="ok")], rules="off")):
        chat_client(server).chat.completions.create(**many)
        assert server.exchanges[-1].warnings == ("chat.too_many_tools",)
    with pytest.raises(ValueError, match=r"Emulator\.rules: 'lax'"):
        Emulator(rules="lax")  # type: ignore[arg-type]


def test_compatible_services_have_fields_of_their_own():
    server = Emulator([Move(text="ok")], rules="all")
    client = openai.OpenAI(
        api_key="k",
        base_url="https://api.deepseek.com",
        http_client=emulator.http_client("openai", server),
    )
    history: Any = [user("hi"), {"role": "assistant", "content": "x", "reasoning_content": "hm"}, user("and?")]
    client.chat.completions.create(model="deepseek-v4", messages=history, extra_body={"thinking": {"type": "enabled"}})
    assert server.exchanges[-1].warnings == ()


def test_a_host_that_takes_references_knows_what_they_name():
    gone = answer(content=[{"type": "tool_reference", "tool_name": "gone"}])
    tools = [{**PING, "defer_loading": True}, chat_tool("find")]
    request_ = {**messages(asks(call()), gone), "model": "m", "tools": tools}
    for every in (False, True):
        server = Emulator([Move(text="ok")], rules="all" if every else "strict")
        url, http = "https://inference.baseten.co/v1", emulator.http_client("openai", server)
        client: Any = openai.OpenAI(api_key="k", base_url=url, http_client=http)
        if not every:
            client.chat.completions.create(**request_)
            assert server.exchanges[-1].warnings == ("chat.reference_unknown",)
        else:
            with pytest.raises(openai.BadRequestError, match="Tool reference 'gone' not found"):
                client.chat.completions.create(**request_)


def test_a_gateway_runs_its_own_tools_and_keeps_their_names():
    search = {"type": "orq:tool_search"}
    late = {**chat_tool("pong", "Finds the weather"), "defer_loading": True}
    inside = {**PING, "function": {**PING["function"], "name": "pong", "defer_loading": True}}
    for tools, refused in (
        ([search, PING, late], None),
        ([search, PING, chat_tool("orq_tool_search")], "name of a server tool"),
        ([PING, inside], "Unknown parameter"),
    ):
        move = Move(calls=[("orq_tool_search", {"pattern": "WEATHER"}), ("pong", {})])
        server = Emulator([move, Move(text="ok")])
        url, http = "https://my.orq.ai/v3/router", emulator.http_client("openai", server)
        client: Any = openai.OpenAI(api_key="k", base_url=url, http_client=http)
        if refused:
            with pytest.raises(openai.BadRequestError, match=refused):
                client.chat.completions.create(model="openai/gpt-5.4", messages=HI, tools=tools)
            continue
        reply = client.chat.completions.create(model="openai/gpt-5.4", messages=HI, tools=tools)
        assert [call.function.name for call in reply.choices[0].message.tool_calls] == ["pong"]
        first = client.chat.completions.create(model="openai/gpt-5.4", messages=HI, tools=[search, PING]).usage
        assert reply.usage.prompt_tokens > 2 * first.prompt_tokens, "what was found is read, in a second pass"


def test_a_tool_that_a_system_message_brings_again_is_a_warning():
    again = {"model": "kimi-k3", "messages": [*HI, {"role": "system", "tools": [PING]}], "tools": [PING]}
    server = Emulator([Move(text="ok")])
    chat_client(server).chat.completions.create(**again)
    assert server.exchanges[-1].warnings == ("chat.system_tools_twice",)


def test_a_request_without_a_key_is_a_401():
    answer_ = Emulator().handle("POST", "https://api.openai.com/v1/chat/completions", {}, b'{"model":"m"}')
    assert answer_.status == 401
    server = Emulator()
    with pytest.raises(openai.BadRequestError, match="Missing required parameter: 'messages'"):
        chat_client(server).post("/chat/completions", cast_to=object, body={"model": CHAT_MODEL})


def test_every_rule_of_the_dialect_is_shown_here():
    elsewhere = {"chat.no_credential", "chat.messages_missing", "chat.tool_names_unique", "chat.reference_unknown"}
    elsewhere |= {"chat.server_tool_name", "chat.system_tools_twice"}
    shown = {rule for rule, _ in BROKEN} | elsewhere
    assert {rule.id for rule in book().rules.values() if rule.dialect == "openai.chat"} == shown
