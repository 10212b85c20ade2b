"""The registry: the same tools in any order, of tools or keys, are the same bytes; what cannot be read passes."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, Conversation, Form, everywhere, search, tools

from loadpoint import Policy
from loadpoint._dialect import Dialect
from loadpoint._registry import build
from loadpoint.emulator import Move
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages
from loadpoint_adapters._dialects.openai_chat import OpenAIChat

TOOL = "invoice_export"
DIALECTS: dict[str, Dialect] = {CHAT: OpenAIChat(), MESSAGES: AnthropicMessages()}
both = pytest.mark.parametrize("dialect", [CHAT, MESSAGES])


def permuted(value: Any, rng: random.Random) -> Any:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: permuted(value[key], rng) for key in keys}
    return [permuted(item, rng) for item in value] if isinstance(value, list) else value


@both
@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
@pytest.mark.requirement("N1")
def test_any_order_of_the_same_tools_makes_the_same_request(dialect: str, seed: int) -> None:
    bodies = set()
    for shuffled in (False, True):
        talk = Conversation(dialect, Policy(strategy="resend", resident=("*_list",)))
        listed = tools(dialect)
        if shuffled:
            random.Random(seed).shuffle(listed)
        talk.extra = {"tools": listed}
        talk.user("go")
        bodies.add(json.dumps(talk.begun().body))
    assert len(bodies) == 1


@everywhere
def test_keys_in_another_order_are_the_same_tool(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    rng = random.Random(5)
    for at in range(3):
        talk.extra = {"tools": permuted(tools(form.dialect), rng)}
        if at:
            talk.session._registries.clear()
        talk.load((TOOL, "photo_list", "parcel_rename")[at])
    assert not any("has changed" in text for report in talk.reports for text in report.warnings)
    tools_of_first = talk.bodies[0]["tools"]
    assert json.dumps(talk.body["tools"][: len(tools_of_first)]) == json.dumps(tools_of_first)
    reasons = {report.prefix.broke for report in talk.reports}
    assert reasons <= {"first_request", None}


@everywhere
def test_a_resident_that_comes_stands_behind_everything(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.load(TOOL)
    before = talk.in_context()
    talk.policy = talk.policy.replace(resident=("ledger_list", "event_create"))
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.in_context() == (before if form.keeps else [*before, "event_create"])
    if form.frozen:
        talk.user("once more")
        talk.send(Move(calls=[search("ledger")]), Move(text="ok"))
    assert "event_create" in talk.callable()


@everywhere
def test_a_loaded_tool_that_becomes_resident_can_be_seen(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.load(TOOL)
    talk.policy = talk.policy.replace(resident=("ledger_list", TOOL))
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in (talk.callable() if form.by_value or form.frozen else talk.in_context())
    assert TOOL not in talk.declared()
    assert TOOL in talk.report.resident


@everywhere
def test_a_resident_that_becomes_deferred_stays_where_it_stood(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list", TOOL)})
    talk.user("hello")
    talk.send(Move(text="hi"))
    talk.policy = talk.policy.replace(resident=("ledger_list",))
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert talk.report.prefix.stable


@everywhere
def test_a_resident_that_left_is_gone(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list", "photo_list")})
    talk.user("hello")
    talk.send(Move(text="hi"))
    talk.names = [name for name in NAMES if name != "photo_list"]
    talk.user("again")
    if form.frozen:  # its place in the list stays, and nobody is asked to answer it
        reply = talk.send(Move(calls=[("photo_list", {"id": 1})]), Move(text="ok"))
        assert talk.calls(reply) == []
        assert talk.report.prefix.stable
        return
    talk.send(Move(text="ok"))
    assert "photo_list" not in talk.in_context()


@everywhere
def test_tools_that_come_later_are_found(form: Form) -> None:
    talk = form.talk(names=NAMES[:20])
    talk.user("hello")
    talk.send(Move(text="hi"))
    talk.names = NAMES
    talk.user("go")
    reply = talk.send(Move(calls=[search("photo_export")]), Move(calls=[("photo_export", {"id": 1})]))
    assert talk.calls(reply) == [("photo_export", {"id": 1})]
    assert talk.report.deferred == len(NAMES)


@both
@pytest.mark.parametrize(
    "odd",
    [
        "a string",
        None,
        7,
        {},
        {"type": "function"},
        {"type": "function", "function": {"name": ""}},
        {"name": 5, "input_schema": {}},
        {"type": "function", "function": None},
    ],
)
def test_a_tool_that_cannot_be_read_passes_through_whole(dialect: str, odd: Any) -> None:
    talk = Conversation(dialect, Policy(strategy="resend"))
    talk.extra = {"tools": [*tools(dialect), odd]}
    talk.user("go")
    call = talk.begun()
    assert call.body == talk.request().body
    assert call.untouched
    assert build(DIALECTS[dialect], talk.extra["tools"], Policy()).fault


@both
def test_two_tools_of_one_name_pass_through_and_are_named(dialect: str) -> None:
    found = build(DIALECTS[dialect], tools(dialect, ["a_b", "c_d", "a_b"]), Policy())
    assert found.fault is not None
    assert "a_b" in found.fault
    assert "c_d" not in found.fault


@both
@pytest.mark.parametrize("schema", [None, True, [], "object", {"type": "nonsense"}, {"$ref": "#/nowhere"}])
def test_an_odd_schema_is_no_reason_to_fail(dialect: str, schema: Any) -> None:
    talk = Conversation(dialect, Policy(strategy="resend"))
    talk.server.rules = "off"
    listed = tools(dialect)
    (listed[0].get("function") or listed[0])["parameters" if dialect == CHAT else "input_schema"] = schema
    talk.extra = {"tools": listed}
    talk.user("go")
    reply = talk.send(Move(calls=[search(NAMES[0])]), Move(calls=[(NAMES[0], {"id": 1})]))
    assert talk.calls(reply) == [(NAMES[0], {"id": 1})]


@both
def test_patterns_that_match_nothing_are_pointed_out(dialect: str) -> None:
    policy = Policy(resident=("ledger_list", "no_such_*"), defer=("*", "nor_this"))
    found = build(DIALECTS[dialect], tools(dialect), policy)
    assert len(found.warnings) == 2
    assert "Policy.resident: 'no_such_*'" in found.warnings[0]
    assert "Policy.defer: 'nor_this'" in found.warnings[1]


@both
@pytest.mark.parametrize("marks", [True, False, "true", 1, None])
def test_only_a_literal_true_marks_a_tool_as_deferred(dialect: str, marks: Any) -> None:
    listed = tools(dialect, NAMES[:3])
    listed[1]["defer_loading"] = marks
    found = build(DIALECTS[dialect], listed, Policy(resident=("*",)))
    names = [entry.name for entry in found.deferred]
    assert names == ([NAMES[1]] if marks is True else [])


def test_a_chat_mark_is_read_inside_the_function_too_and_never_sent() -> None:
    listed = tools(CHAT, NAMES)
    listed[1]["function"]["defer_loading"] = True
    listed[2]["defer_loading"] = True
    talk = Conversation(CHAT, Policy(strategy="resend"))
    talk.extra = {"tools": listed}
    talk.user("go")
    talk.send(Move(calls=[search(NAMES[1])]), Move(text="ok"))
    assert "defer_loading" not in json.dumps(talk.bodies)
    assert talk.report.deferred == 2


@everywhere
def test_provider_run_tools_stay_as_they_are(form: Form) -> None:
    talk = form.talk()
    own = {"type": "web_search_20250305", "name": "web_search", "max_uses": 3}
    if form.dialect == CHAT:
        own = {"type": "custom", "custom": {"name": "shell", "description": "Runs a line."}}
    if form.dialect == RESPONSES:
        own = {"type": "web_search", "search_context_size": "low"}
    talk.extra = {"tools": [*tools(form.dialect), own]}
    talk.load(TOOL)
    assert all(own in body["tools"] for body in talk.bodies)


@everywhere
def test_a_name_of_the_loaders_kind_changes_it_for_everybody_alike(form: Form) -> None:
    """The loader's name is a pure function of the registry, so that two processes agree."""
    names = (*NAMES, form.loader, f"{form.loader}2")
    first, other = form.talk(names=names), form.talk(names=names)
    for talk in (first, other):
        talk.user("go")
    assert first.begun().body == other.begun().body
    nameless = form.by_value and not form.model
    assert nameless or f"{form.loader}3" in json.dumps(first.begun().body)


@everywhere
@pytest.mark.requirement("N20", "O20")
def test_one_conversation_goes_the_same_way_in_every_form(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    seen = [(talk.calls(reply), talk.text(reply)) for reply in talk.replies]
    assert seen == [([(TOOL, {"id": 1})], ""), ([], f"{TOOL} is done")]
    assert [report.added_rounds for report in talk.reports] == [1, 0]
    assert talk.report.loaded[0].name == TOOL
