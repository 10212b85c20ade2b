"""Searches and real calls in one reply, several searches at once, empty arguments, repeated ids."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, Form, additions, everywhere, search, tools

from loadpoint.emulator import Move


@pytest.mark.requirement("N34", "N16")
@everywhere
def test_a_search_beside_a_real_call_costs_no_round_of_its_own(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("both")
    reply = talk.send(Move(text="Sure.", calls=[search("photo_export"), ("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    assert talk.stop(reply) in ("tool_calls", "tool_use")
    assert len(talk.bodies) == 1
    talk.answer(reply, text="three ledgers")
    reply = talk.send(Move(calls=[("photo_export", {"id": 2})]))
    assert "photo_export" in talk.callable()
    assert len(talk.results()) == 2
    assert talk.calls(reply) == [("photo_export", {"id": 2})]
    talk.answer(reply)
    assert talk.bare()[0] == 200


@everywhere
def test_our_answer_stands_in_the_message_of_the_callers_results(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("both")
    reply = talk.send(Move(calls=[("ledger_list", {"id": 1}), search("photo_export"), ("ledger_list", {"id": 2})]))
    assert [arguments["id"] for _, arguments in talk.calls(reply)] == [1, 2]
    talk.answer(reply)
    talk.send(Move(text="ok"))
    if form.dialect == MESSAGES:
        behind = ["system"] if form.by_value else []
        assert [m["role"] for m in talk.body["messages"]] == ["user", "assistant", "user", *behind]
        assert [b["type"] for b in talk.body["messages"][2]["content"]] == ["tool_result"] * 3
    elif form.dialect == CHAT:
        behind = ["system"] if form.by_value else []
        assert [m["role"] for m in talk.body["messages"]] == ["user", "assistant", "tool", "tool", "tool", *behind]
    else:
        kinds = [item.get("type", item.get("role")) for item in talk.body["input"]]
        loads = kinds.index("additional_tools") if form.model and form.by_value else len(kinds)
        assert all(kind.endswith("_output") for kind in kinds[4:loads]), "what we add stands behind all results"
        assert len(kinds[4:loads]) == 3


@everywhere
def test_several_searches_in_one_reply_are_all_answered_and_share_one_round(form: Form) -> None:
    talk = form.talk()
    talk.user("two things")
    one, two = "invoice_export", "parcel_rename"
    reply = talk.send(Move(calls=[search(one), search(two)]), Move(calls=[(one, {"id": 1}), (two, {"id": 2})]))
    assert [name for name, _ in talk.calls(reply)] == [one, two]
    assert {one, two} <= talk.callable()
    assert talk.report.added_rounds == 1
    assert [found.query for found in talk.report.searches] == [one, two]


@everywhere
def test_the_same_tool_found_twice_in_one_reply_is_loaded_once(form: Form) -> None:
    talk = form.talk({"load_at_most": 1})
    talk.user("go")
    talk.send(Move(calls=[search("invoice_export"), search("invoice_export", max_results=1)]), Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == ["invoice_export"]
    names = talk.in_context() + talk.declared()
    if form.by_value:
        names = [talk.name(tool) for item in talk.body[talk.key] for tool in additions(item)]
    if form.frozen:
        names = [name for name in ("invoice_export",) for _ in range(json.dumps(talk.body).count(f"## {name}"))]
    assert names.count("invoice_export") == 1


@everywhere
def test_parallel_searches_and_a_call_of_what_they_find_in_the_same_reply(form: Form) -> None:
    """The model cannot see the tool yet and calls it all the same: valid arguments go through."""
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search("invoice_export"), ("invoice_export", {"id": 4})]))
    assert talk.calls(reply) == [("invoice_export", {"id": 4})]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert "invoice_export" in talk.callable()


@everywhere
@pytest.mark.parametrize("arguments", ["", "{}", "null", "[]", '{"query": ""}', '{"query": 7}', '{"query": "invo', "{"])
def test_unusable_arguments_of_the_loader_are_told_to_the_model(form: Form, arguments: str) -> None:
    if form.dialect == MESSAGES and not form.stream and arguments not in ("", "{}", '{"query": ""}', '{"query": 7}'):
        pytest.skip("this API always gives an object where the reply is not streamed")
    talk = form.talk()
    talk.user("go")
    given: Any = json.loads(arguments or "{}") if form.dialect == MESSAGES and not form.stream else arguments
    reply = talk.send(Move(calls=[("ToolSearch", given)]), Move(text="I see"))
    assert talk.text(reply) == "I see"
    (result,) = talk.results().values()
    assert ("tools" if form.frozen else "query") in json.dumps(result)
    assert not talk.report.loaded
    talk.user("again")
    talk.send(Move(text="fine"))


@everywhere
def test_a_call_without_arguments_of_a_tool_without_parameters_goes_through(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    free = {"type": "object", "properties": {}}
    listed = tools(form.dialect)
    (listed[0].get("function") or listed[0])["input_schema" if form.dialect == MESSAGES else "parameters"] = free
    talk.extra = {"tools": listed}
    nothing: Any = {} if form.dialect == MESSAGES else ""
    reply = talk.send(Move(calls=[(NAMES[0], nothing)]))
    assert talk.calls(reply) == [(NAMES[0], {})]
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert NAMES[0] in talk.callable()


@everywhere
def test_text_of_a_round_that_searched_stays_with_the_reply(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(text="Let me look. ", calls=[search("invoice_export")]), Move(text="Found it."))
    assert talk.text(reply) == "Let me look. Found it."
    assert b"ToolSearch" not in json.dumps(reply).encode()
    assert talk.stop(reply) in ("stop", "end_turn")


@everywhere
def test_blank_text_beside_a_search_is_not_sent_back(form: Form) -> None:
    """Models emit line breaks before calls; the Messages API refuses blank text blocks in a history."""
    talk = form.talk()
    talk.user("go")
    talk.send(Move(text="\n\n", calls=[search("invoice_export")]), Move(text="Found it."))


@everywhere
def test_a_search_with_no_match_is_answered_in_words(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    talk.send(Move(calls=[search("zzqx vvkw")]), Move(text="there is none"))
    (result,) = talk.results().values()
    assert isinstance(result["content"], str)
    assert "No tool fits" in result["content"]
    assert talk.report.searches[0].no_match
    assert not talk.report.loaded
    assert talk.bare()[0] == 200


@everywhere
def test_a_caller_who_marks_parallel_calls_off_keeps_that_in_every_round(form: Form) -> None:
    off: dict[str, Any] = {"parallel_tool_calls": False}
    if form.dialect == MESSAGES:
        off = {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    talk = form.talk(extra=off)
    talk.user("go")
    talk.send(Move(calls=[search("invoice_export")]), Move(calls=[("invoice_export", {"id": 1})]))
    assert len(talk.bodies) == 2
    for body in talk.bodies:
        assert {key: body[key] for key in off} == off


@pytest.mark.parametrize("stream", [False, True])
def test_a_strict_tool_keeps_its_flag_when_it_is_loaded(stream: bool) -> None:
    talk = Form(CHAT, "resend", stream).talk()
    listed = tools(CHAT)
    for tool in listed:
        tool["function"]["strict"] = True
        tool["function"]["parameters"]["additionalProperties"] = False
    talk.extra = {"tools": listed}
    talk.load("invoice_export")
    (sent,) = [tool for tool in talk.body["tools"] if talk.name(tool) == "invoice_export"]
    assert sent == next(tool for tool in listed if talk.name(tool) == "invoice_export")


@pytest.mark.parametrize("stream", [False, True])
def test_call_ids_that_repeat_within_a_conversation_are_kept_apart(stream: bool) -> None:
    talk = Form(CHAT, "resend", stream).talk()
    for turn, name in enumerate(("invoice_export", "parcel_rename", "photo_list")):
        talk.user(f"turn {turn}")
        search_call = ("ToolSearch", {"query": name}, "call_0")
        reply = talk.send(Move(calls=[search_call]), Move(calls=[(name, {"id": turn}, "call_0")]))
        assert talk.calls(reply) == [(name, {"id": turn})]
        talk.answer(reply)
        talk.send(Move(text="done"))
        assert talk.report.prefix.stable or talk.report.prefix.broke == "tools_grew"
        assert [tool.name for tool in talk.report.loaded][-1] == name
