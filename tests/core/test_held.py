"""Conversations that the server holds: native forms append, rounds are limited, what is not known passes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import MESSAGES, NAMES, Conversation, Form, search

from loadpoint.emulator import Move
from loadpoint.errors import SearchLoopError

TOOL = "invoice_export"
streams = pytest.mark.parametrize("stream", [False, True])


def begun(stream: bool, **policy: Any) -> Conversation:
    talk = Form(MESSAGES, "native", stream).talk(policy, headers={"anthropic-beta": "message-threads-2026-08-12"})
    talk.extra = {"thread": {"type": "create"}}
    return talk


def continued(talk: Conversation, reply: dict[str, Any], *messages: dict[str, Any]) -> None:
    """The next request: only what is new, and whose reply it continues."""
    talk.visible = list(messages)
    talk.extra = {"thread": {"type": "continue", "previous_message_id": reply["id"]}, "tools": None, "system": None}


def result(reply: dict[str, Any]) -> dict[str, Any]:
    blocks = [block for block in reply["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "done"} for block in blocks]
    return {"role": "user", "content": results}


@streams
def test_hidden_rounds_continue_the_thread(stream: bool) -> None:
    talk = begun(stream)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert len(talk.declared(talk.bodies[0])) == len(NAMES), "the server keeps the tools, so that all are declared"
    assert "tools" not in talk.bodies[1]
    continued(talk, reply, result(reply))
    reply = talk.send(Move(text="done"))
    assert talk.text(reply) == "done"
    assert [message["role"] for message in talk.body["messages"]] == ["user"]
    continued(talk, reply, {"role": "user", "content": "again"})
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]


@streams
def test_a_mixed_turn_of_a_thread_is_answered_with_the_callers_results(stream: bool) -> None:
    talk = begun(stream, resident=("ledger_list",))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    continued(talk, reply, result(reply))
    talk.send(Move(text="ok"))
    assert len(talk.results()) == 2


@streams
def test_rounds_of_a_thread_are_limited_too(stream: bool) -> None:
    talk = begun(stream, max_rounds=3)
    talk.user("go")
    reply = talk.send(Move(calls=[search("invoice")]), Move(calls=[search("parcel")]), Move(text="enough"))
    assert talk.text(reply) == "enough"
    assert talk.body["tool_choice"] == {"type": "none"}
    assert "search_limit" in talk.report.warnings
    continued(talk, reply, {"role": "user", "content": "again"})
    with pytest.raises(SearchLoopError):
        talk.send(*[Move(calls=[search(f"thing {at}")]) for at in range(3)])


@streams
def test_a_thread_that_nobody_knows_passes_through_with_the_reason(stream: bool) -> None:
    talk = begun(stream)
    talk.user("go")
    reply = talk.send(Move(text="ok"))
    continued(talk, reply, {"role": "user", "content": "again"})
    talk.restart()
    before = json.dumps(talk.request().body)
    talk.send(Move(text="fine"))
    assert json.dumps(talk.body) == before
    assert "not known" in talk.report.reason


@streams
def test_a_thread_passes_through_whole_where_only_a_resent_list_is_left(stream: bool) -> None:
    talk = Form(MESSAGES, "resend", stream).talk()
    talk.extra = {"thread": {"type": "create"}}
    talk.user("go")
    call = talk.begun()
    assert call.untouched
    assert "holds this conversation" in call.report.reason
