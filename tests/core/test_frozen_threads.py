"""The frozen strategy in conversations whose tools the server keeps: later requests bring neither them nor the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import CALLS, LOADS, MESSAGES, Conversation, Form, search, tools
from tests.core.test_held import continued, result, streams

from loadpoint import SqliteLedger, Toolbox
from loadpoint.emulator import Move

TOOL = "invoice_export"


def begun(stream: bool, *, names: Any = None, **policy: Any) -> Conversation:
    more = {} if names is None else {"names": names}
    headers = {"anthropic-beta": "message-threads-2026-08-12"}
    talk = Form(MESSAGES, "frozen", stream).talk(policy, headers=headers, **more)
    talk.extra = {"thread": {"type": "create"}}
    return talk


def load(talk: Conversation, *names: str) -> Move:
    return Move(calls=[(f"={LOADS}", {"tools": list(names)})])


def call(name: str, params: Any) -> Move:
    return Move(calls=[(f"={CALLS}", {"tool": name, "params": params})])


@streams
@pytest.mark.requirement("P5", "P7")
def test_a_thread_is_begun_with_the_bridge_and_goes_on_without_any_tools(stream: bool) -> None:
    talk = begun(stream, resident=("ledger_list",))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), call(TOOL, {"id": 1}))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert [talk.name(tool) for tool in talk.bodies[0]["tools"]] == ["ToolSearch", CALLS, "ledger_list"]
    continued(talk, reply, result(reply))
    reply = talk.send(call(TOOL, {"id": "x"}), load(talk, "photo_list"), call("photo_list", {"id": 2}))
    assert talk.calls(reply) == [("photo_list", {"id": 2})]
    assert [tool.name for tool in talk.report.loaded] == [TOOL, "photo_list"]
    continued(talk, reply, result(reply))
    reply = talk.send(Move(calls=[("ledger_list", {"id": 3})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 3})]
    assert not any("tools" in body or "system" in body for body in talk.bodies[1:])
    assert all(message["role"] == "user" for body in talk.bodies[1:] for message in body["messages"])


@streams
def test_what_is_not_loaded_in_a_thread_is_refused_and_what_is_unknown_has_its_remedy(stream: bool) -> None:
    talk = begun(stream, unloaded_call="refuse")
    talk.user("go")
    reply = talk.send(Move(text="hello"))
    continued(talk, reply, {"role": "user", "content": "now"})
    reply = talk.send(call(TOOL, {"id": 1}), load(talk, TOOL), call(TOOL, {"id": 1}))
    assert "is not loaded" in json.dumps(talk.bodies[2]["messages"])
    assert talk.calls(reply) == [(TOOL, {"id": 1})]


@streams
def test_a_mixed_turn_of_a_frozen_thread_is_answered_with_the_callers_results(stream: bool) -> None:
    talk = begun(stream, resident=("ledger_list",))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    continued(talk, reply, result(reply))
    reply = talk.send(call(TOOL, {"id": 4}))
    assert len(talk.results(talk.bodies[1])) == 2
    assert talk.calls(reply) == [(TOOL, {"id": 4})]


@pytest.mark.requirement("N35", "N36")
@streams
def test_a_thread_goes_on_in_another_process_with_a_ledger_in_a_file(stream: bool, tmp_path: Any) -> None:
    talk = begun(stream)
    ledger = SqliteLedger(tmp_path / "loads.db")
    talk.restart(ledger=ledger)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="found"))
    ledger.close()
    talk.restart(ledger=SqliteLedger(tmp_path / "loads.db"))
    continued(talk, reply, {"role": "user", "content": "again"})
    reply = talk.send(call(TOOL, {"id": 1}))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    continued(talk, reply, result(reply))
    reply = talk.send(load(talk, "parcel_rename"), call("parcel_rename", {"id": 1}))
    assert talk.calls(reply) == [("parcel_rename", {"id": 1})], "what was never loaded is on record too"
    talk.session.ledger.close()


@streams
def test_a_frozen_thread_that_nobody_knows_passes_through_with_the_reason(stream: bool) -> None:
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
def test_a_thread_hears_of_what_is_pushed_with_the_next_load(stream: bool) -> None:
    talk = begun(stream)
    box = Toolbox([])
    talk.session = talk.fresh(toolbox=box)
    talk.user("go")
    reply = talk.send(Move(text="hi"))
    box.add({"name": "weather_now", "description": "Says what the weather is now", "input_schema": {"type": "object"}})
    continued(talk, reply, {"role": "user", "content": "again"})
    reply = talk.send(load(talk, TOOL), call("weather_now", {}))
    assert talk.calls(reply) == [("weather_now", {})]
    assert "## weather_now" in json.dumps(talk.body["messages"])


@streams
@pytest.mark.parametrize("name", [TOOL, "ledger_list"])
def test_a_tool_that_is_named_in_a_thread_is_loaded_and_called(stream: bool, name: str) -> None:
    talk = begun(stream, resident=("ledger_list",))
    talk.user("go")
    reply = talk.send(Move(text="hi"))
    continued(talk, reply, {"role": "user", "content": "again"})
    talk.extra["tool_choice"] = {"type": "tool", "name": name}
    moves = [load(talk, TOOL), call(TOOL, {"id": 7})] if name == TOOL else [Move(calls=[(f"={name}", {"id": 7})])]
    reply = talk.send(*moves)
    assert talk.calls(reply) == [(name, {"id": 7})]
    named = [body["tool_choice"]["name"] for body in talk.bodies[1:]]
    assert named == ([LOADS, CALLS] if name == TOOL else [name])


def test_a_record_of_a_whole_conversation_holds_no_tools_but_the_loaded_ones() -> None:
    talk = Form(MESSAGES, "frozen", False).talk()
    talk.load(TOOL)
    record = talk.session.begin(talk.request()).plan.transcript.record
    assert [tool["name"] for tool in record.state.definitions] == [TOOL]
    assert len(tools(MESSAGES)) > 1
