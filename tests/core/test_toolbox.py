"""A toolbox that changes while conversations go on: what is pushed stands where the model takes it."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import MESSAGES, NAMES, RESPONSES, Form, Json, everywhere, search, tools

from loadpoint import PolicyError, Tool, Toolbox
from loadpoint._ledger import InProcessLedger
from loadpoint._session import Session
from loadpoint.emulator import Move

TOOL = NAMES[5]
NEW = "weather_now"


def weather(name: str = NEW, about: str = "Says what the weather is now") -> Tool:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    return Tool(name, about, schema, server="weather")


def boxed(form: Form, policy: Json | None = None, box: Toolbox | None = None, **given: Any) -> Any:
    """A conversation of a client with a toolbox, which the caller's own tools stand beside."""
    talk: Any = form.talk(policy, **given)
    talk.box = box if box is not None else Toolbox([weather("weather_history", "Says what it was")])
    talk.session = talk.fresh(toolbox=talk.box, ledger=InProcessLedger())
    return talk


@everywhere
def test_the_tools_of_the_box_are_sent_found_and_called(form: Form) -> None:
    talk = boxed(form)
    talk.user("what was the weather")
    reply = talk.send(Move(calls=[search("weather_history")]), Move(calls=[("weather_history", {"city": "Rome"})]))
    assert talk.calls(reply) == [("weather_history", {"city": "Rome"})]
    assert [tool.name for tool in talk.report.loaded] == ["weather_history"]


@everywhere
def test_a_tool_that_is_pushed_stands_at_the_load_point(form: Form) -> None:
    talk = boxed(form)
    talk.load(TOOL)
    before = talk.in_context()
    assert talk.box.add(weather()) == (NEW,)
    talk.user("and now the weather")
    reply = talk.send(Move(calls=[(NEW, {"city": "Rome"})]))
    assert talk.calls(reply) == [(NEW, {"city": "Rome"})]
    assert len(talk.replies) == len(talk.reports), "no search was needed"
    assert talk.in_context() == (before if form.keeps else [*before, NEW])
    assert talk.report.prefix.stable is form.keeps
    if form.frozen:
        return  # the next load tells of it: see test_frozen.py
    assert NEW in talk.callable()
    assert (NEW, "added") in [(tool.name, tool.why) for tool in talk.report.loaded]
    start = len(talk.bodies)
    for at in range(2):
        if at == 0:
            talk.answer(reply)
        else:
            talk.user("more")
        talk.send(Move(text="ok"))
        assert talk.report.prefix.stable, "pushed once"
    assert not judge.check(talk.bodies[start - 1 :], mode="native")
    assert json.dumps(talk.body).count(json.dumps(NEW)) >= 1


@everywhere
def test_a_conversation_that_begins_after_a_push_is_not_told_of_it(form: Form) -> None:
    talk = boxed(form)
    talk.box.add(weather())
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert NEW not in talk.callable(), "it is deferred like any other"
    talk.user("again")
    talk.send(Move(text="hi"))
    assert NEW not in talk.callable()
    assert talk.report.prefix.stable


@everywhere
def test_what_is_too_large_to_push_is_found_by_a_search(form: Form) -> None:
    talk = boxed(form, box=Toolbox([], form.talk().policy.replace(load_tokens=200)))
    talk.load(TOOL)
    many = [weather(f"weather_{at}", "Says what the weather is on another day") for at in range(30)]
    assert talk.box.add(*many) == ()
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable
    assert "weather_3" not in talk.callable()
    talk.user("more")
    reply = talk.send(Move(calls=[search("weather_3")]), Move(calls=[("weather_3", {"city": "Rome"})]))
    assert talk.calls(reply) == [("weather_3", {"city": "Rome"})]


@everywhere
def test_a_tool_that_is_removed_is_taken_back_and_may_return(form: Form) -> None:
    talk = boxed(form)
    talk.box.add(weather(), load=False)
    talk.user("go")
    talk.answer(talk.send(Move(calls=[search(NEW)]), Move(calls=[(NEW, {"city": "Rome"})])))
    talk.send(Move(text="sunny"))
    talk.box.remove(NEW)
    talk.user("again")
    reply = talk.send(Move(calls=[(NEW, {"city": "Rome"})]), Move(text="it is gone"))
    assert talk.calls(reply) == [], "what nobody can answer is not asked of the caller"
    talk.box.add(weather(), load=True)
    talk.user("is it back")
    reply = talk.send(Move(calls=[(NEW, {"city": "Rome"})]))
    assert talk.calls(reply) == [(NEW, {"city": "Rome"})]
    assert NEW in talk.callable()


@everywhere
def test_a_new_definition_is_sent_once_more(form: Form) -> None:
    talk = boxed(form)
    talk.box.add(weather())
    talk.user("go")
    talk.answer(talk.send(Move(calls=[search(NEW)]), Move(calls=[(NEW, {"city": "Rome"})])))
    talk.send(Move(text="sunny"))
    talk.box.add(weather(about="Says what the weather is now, in detail"))
    talk.user("again")
    talk.send(Move(text="ok"))
    assert NEW in talk.callable()
    assert ("in detail" in json.dumps(talk.body)) is not form.frozen, "the next load tells of it"
    assert talk.report.prefix.stable is (form.by_value or form.frozen)
    talk.user("once more")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


@everywhere
def test_a_push_that_no_record_knows_of_is_found_by_a_search(form: Form) -> None:
    talk = boxed(form)
    talk.load(TOOL)
    talk.box.add(weather())
    talk.session = talk.fresh(toolbox=talk.box, ledger=InProcessLedger())
    talk.user("another process")
    talk.send(Move(text="ok"))
    assert TOOL in talk.callable() or form.strategy == "native"
    assert talk.report.prefix.broke == "unknown_predecessor"


@pytest.mark.parametrize("load_point", ["tool_addition", "tool_reference"])
def test_a_thread_that_the_server_keeps_gets_what_is_pushed(load_point: str) -> None:
    form = Form(MESSAGES, "native", stream=False, model="claude-opus-5")
    headers = {"anthropic-beta": "message-threads-2026-08-12"}
    talk = boxed(form, {"load_point": load_point}, headers=headers)
    talk.extra["thread"] = {"type": "create"}
    talk.user("go")
    reply = talk.send(Move(text="hello"))
    talk.box.add(weather())
    talk.extra = {"tools": None, "thread": {"type": "continue", "previous_message_id": reply["id"]}}
    talk.visible = []
    talk.user("the weather")
    reply = talk.send(Move(calls=[(NEW, {"city": "Rome"})]))
    assert talk.calls(reply) == [(NEW, {"city": "Rome"})]
    assert "tools" not in talk.body
    assert NEW in json.dumps(talk.body["messages"]), "by value: the server does not declare it"


def test_a_held_response_gets_what_is_pushed() -> None:
    talk = boxed(Form(RESPONSES, "native", stream=False))
    talk.user("go")
    reply = talk.send(Move(text="hello"))
    talk.box.add(weather())
    talk.extra["previous_response_id"] = reply["id"]
    talk.visible = []
    talk.user("the weather")
    reply = talk.send(Move(calls=[(NEW, {"city": "Rome"})]))
    assert talk.calls(reply) == [(NEW, {"city": "Rome"})]
    assert talk.report.prefix.stable


@everywhere
def test_a_client_that_defers_nothing_still_sends_the_box(form: Form) -> None:
    for headers, policy in (({"x-loadpoint": "off"}, {}), ({}, {"strategy": "eager"})):
        talk = boxed(form, policy, names=NAMES[:2])
        talk.user("hello")
        talk.send(Move(text="hi"), headers=dict(headers))
        assert "weather_history" in talk.in_context()
    alone = boxed(form, {"strategy": "eager"}, names=())
    alone.extra["tools"] = None
    alone.user("hello")
    alone.send(Move(text="hi"))
    assert alone.in_context() == ["weather_history"]


def test_the_callers_own_tool_wins() -> None:
    talk = boxed(Form(MESSAGES, "eager", stream=False), box=Toolbox([Tool(TOOL, "another")]))
    talk.user("hello")
    talk.send(Move(text="hi"))
    (sent,) = [tool for tool in talk.body["tools"] if tool["name"] == TOOL]
    assert sent["description"] != "another"


def test_definitions_of_a_dialect_are_sent_as_they_were_given() -> None:
    given = {**tools(MESSAGES, [NEW])[0], "input_examples": [{"id": 1}]}
    talk = boxed(Form(MESSAGES, "eager", stream=False), box=Toolbox([given]), names=())
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert talk.body["tools"] == [given]
    talk = boxed(Form(RESPONSES, "eager", stream=False), box=Toolbox([given]), names=())
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert talk.body["tools"][0]["parameters"] == given["input_schema"]


def test_updates_of_a_server_add_replace_and_remove() -> None:
    box = Toolbox([weather("weather_history"), Tool("other")])
    listed = [
        {"name": "weather_now", "description": "now", "inputSchema": {"type": "object"}},
        {"name": "weather_soon", "description": "soon", "inputSchema": {"type": "object"}},
    ]
    assert box.update("weather", listed) == ("weather_now", "weather_soon")
    assert [tool.name for tool in box.tools] == ["other", "weather_now", "weather_soon"]
    assert all(tool.server == "weather" for tool in box.tools[1:])
    assert box.update("weather", [{**listed[0], "description": "changed"}]) == ()
    assert [(tool.name, tool.description) for tool in box.tools] == [("other", ""), ("weather_now", "changed")]
    assert box.pushed(0) == ("weather_now",)
    assert box.update("weather", []) == ()
    with pytest.raises(PolicyError, match="other"):
        box.update("weather", [Tool("other")])
    assert [tool.name for tool in box.tools] == ["other"]


def test_bad_input_changes_nothing() -> None:
    box = Toolbox([weather()])
    for bad in ([object()], [weather("a"), weather("a")], [None]):
        with pytest.raises(PolicyError, match="Toolbox"):
            box.add(*bad)
        with pytest.raises(PolicyError, match="Toolbox"):
            box.update("weather", bad)
    with pytest.raises(PolicyError, match="no_such"):
        box.remove(NEW, "no_such")
    assert [tool.name for tool in box.tools] == [NEW]
    assert box.generation == 0
    with pytest.raises(PolicyError, match="toolbox"):
        Session([], Form(MESSAGES, "native", stream=False).talk().policy, toolbox="tools")  # type: ignore[arg-type]


def test_many_threads_may_change_it() -> None:
    box = Toolbox()
    run = [threading.Thread(target=lambda at=at: box.add(weather(f"weather_{at}"))) for at in range(20)]
    for thread in run:
        thread.start()
    for thread in run:
        thread.join()
    assert {tool.name for tool in box.tools} == {f"weather_{at}" for at in range(20)}
    assert set(box.pushed(0)) == {f"weather_{at}" for at in range(20)}
    assert box.search("weather_7")[0].name == "weather_7"
