"""Responses that continue others by id, and conversations: native forms append, nothing is sent twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import ADDS, RESPONSES, Conversation, Form, form_id, search

from loadpoint import Policy
from loadpoint.emulator import Move

TOOL = "invoice_export"
WAYS = (("native", ""), ("native", ADDS), ("frozen", ""))
FORMS = [Form(RESPONSES, strategy, stream, model) for strategy, model in WAYS for stream in (False, True)]
forms = pytest.mark.parametrize("form", FORMS, ids=form_id)


def continued(talk: Conversation, reply: dict[str, Any], *items: dict[str, Any]) -> None:
    """The next request: what is new, and the id that the caller was shown."""
    talk.visible = list(items)
    talk.extra = {**talk.extra, "previous_response_id": reply["id"]}


def results(reply: dict[str, Any]) -> list[dict[str, Any]]:
    called = [item for item in reply["output"] if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": item["call_id"], "output": "done"} for item in called]


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@forms
def test_what_was_loaded_stays_loaded_in_what_continues_it(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    continued(talk, reply, *results(reply))
    reply = talk.send(Move(text="done"))
    assert talk.body["input"] == talk.visible[:1]
    continued(talk, reply, said("once more, and another"))
    reply = talk.send(Move(calls=[search("photo_list")]), Move(calls=[(TOOL, {"id": 2}), ("photo_list", {"id": 1})]))
    assert [name for name, _ in talk.calls(reply)] == [TOOL, "photo_list"]
    assert not any(item.get("role") == "user" for item in talk.body["input"]), "only what the server lacks"
    assert len({json.dumps(body["tools"]) for body in talk.bodies}) == 1
    assert {TOOL, "photo_list"} <= {tool.name for tool in talk.report.loaded}
    continued(talk, reply, *results(reply))
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable


@forms
def test_a_search_beside_a_real_call_is_answered_with_its_result(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("both")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    continued(talk, reply, *results(reply))
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    kinds = [item["type"] for item in talk.body["input"]]
    assert kinds[:2] == [kinds[0], "function_call_output"]
    assert kinds[2:] == (["additional_tools"] if form.model else [])


@forms
def test_a_waiting_search_is_answered_also_where_no_tools_are_sent(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("both")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1})]))
    continued(talk, reply, *results(reply))
    talk.extra["tools"] = None
    talk.send(Move(text="ok"))
    assert len(talk.results()) == 2


@forms
def test_what_nobody_knows_passes_through_with_the_reason(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(text="ok"))
    talk.restart()
    continued(talk, reply, said("again"))
    before = json.dumps(talk.request().body)
    talk.send(Move(text="fine"))
    assert json.dumps(talk.body) == before
    assert "not known" in talk.report.reason


@pytest.mark.parametrize("stream", [False, True])
def test_where_only_resend_is_left_it_passes_whole_and_under_the_right_id(stream: bool) -> None:
    talk = Form(RESPONSES, "native", stream).talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="found"))
    talk.policy = Policy(strategy="resend")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    continued(talk, reply, said("again"))
    talk.send(Move(text="fine"))
    assert len(talk.body["tools"]) == 60
    assert talk.report.strategy == "eager"
    assert "the server holds" in talk.report.reason


@forms
def test_a_conversation_is_remembered_by_its_name(form: Form) -> None:
    talk = form.talk()
    made = talk.server.handle("POST", "https://api.openai.com/v1/conversations", {"authorization": "Bearer k"}, b"{}")
    name = json.loads(b"".join(made.chunks))["id"]
    talk.extra = {"conversation": {"id": name}}
    talk.visible = [said("go")]
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    talk.visible = results(reply)
    talk.send(Move(text="done"))
    talk.visible = [said("again")]
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert [tool.name for tool in talk.report.loaded][:1] == [TOOL]
    assert all("previous_response_id" not in body for body in talk.bodies)


@forms
def test_rounds_are_limited_there_too(form: Form) -> None:
    talk = form.talk({"max_rounds": 2})
    talk.user("go")
    reply = talk.send(Move(text="hello"))
    continued(talk, reply, said("again"))
    talk.send(Move(calls=[search(TOOL)]), Move(text="enough"))
    assert talk.body["tool_choice"] == "none"
    assert "search_limit" in talk.report.warnings


@forms
def test_a_response_that_is_not_stored_is_known_by_its_items_only(form: Form) -> None:
    talk = form.talk(extra={"store": False, "include": ["reasoning.encrypted_content"]})
    for name in (TOOL, "photo_list"):
        talk.user(f"do {name}")
        first = Move(calls=[search(name)], thinking=f"where is {name}")
        reply = talk.send(first, Move(calls=[(name, {"id": 1})], thinking="there it is"))
        talk.answer(reply)
        talk.send(Move(text="done", thinking="fine"))
        assert talk.report.prefix.stable or talk.report.prefix.broke == "first_request"
    kinds = [item.get("type", item.get("role")) for item in talk.body["input"]]
    ordinary = ("function_call", "function_call_output")
    call, output = ordinary if form.model or form.frozen else ("tool_search_call", "tool_search_output")
    added = ["additional_tools"] if form.model else []
    rounds = ["user", "reasoning", call, output, *added, "reasoning", "function_call", "function_call_output"]
    assert kinds == [*rounds, "reasoning", "message", *rounds]
    sealed = [item["encrypted_content"] for item in talk.body["input"] if item.get("type") == "reasoning"]
    assert len(set(sealed)) == 5
