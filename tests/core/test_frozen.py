"""The frozen strategy: the list of tools is written once, and what the caller sees are calls of his own tools."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench import judge
from tests.core.conversation import (
    CALLS,
    CHAT,
    FORMS,
    LOADS,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    form_id,
    search,
    tools,
)
from tests.core.test_conversations import STYLES, play, turns

from loadpoint import InProcessLedger, Tool, Toolbox
from loadpoint.emulator import Move

TOOL = "invoice_export"
FROZEN = [form for form in FORMS if form.frozen]
frozen = pytest.mark.parametrize("form", FROZEN, ids=form_id)


def raw(talk: Conversation, *calls: Any) -> Move:
    """Calls exactly as they are given: past the translation that this loop makes for every other test."""
    return Move(calls=[(f"={name}", *rest) for name, *rest in calls])


def shown_arguments(talk: Conversation, reply: dict[str, Any]) -> list[Any]:
    """The arguments of the visible calls as they stand on the wire."""
    if talk.dialect == CHAT:
        return [call["function"]["arguments"] for call in reply["choices"][0]["message"].get("tool_calls") or []]
    if talk.dialect == RESPONSES:
        return [item["arguments"] for item in reply["output"] if item["type"] == "function_call"]
    return [json.dumps(block["input"]) for block in reply["content"] if block["type"] == "tool_use"]


@frozen
@pytest.mark.requirement("P1", "P2", "P4", "P5", "P6", "P7", "P18")
@pytest.mark.report("BR-072", "BR-204")
def test_twenty_turns_with_twelve_loads_break_nothing(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",), "load_at_most": 1})
    for at in range(12):
        talk.load(NAMES[at * 3], {"id": at})
    for at in range(8):
        talk.user(f"turn {at}")
        talk.answer(talk.send(Move(calls=[(NAMES[at * 3], {"id": at})])))
        talk.send(Move(text="done"))
    assert len([report for report in talk.reports if report.searches]) == 12
    assert {name for _, name, _ in talk.called()} == {LOADS, CALLS}, "the model's own calls come back to it"
    assert not judge.check(talk.bodies, mode="frozen")
    assert [talk.name(tool) for tool in talk.body["tools"]] == ["ToolSearch", CALLS, "ledger_list"]
    assert {report.prefix.stable for report in talk.reports[1:]} == {True}
    assert len(talk.report.loaded) == 12
    assert talk.bare()[0] == 200


@frozen
@settings(max_examples=15)
@given(plan=turns(), more=turns(), styles=st.lists(st.sampled_from(sorted(STYLES)), min_size=1, max_size=4))
def test_a_ledger_that_is_lost_in_the_middle_costs_one_break(
    form: Form, plan: Any, more: Any, styles: list[str]
) -> None:
    talk = form.talk()
    count = iter(range(10_000))
    talk.style = lambda message: STYLES[styles[next(count) % len(styles)]](message)  # noqa: PLW0108
    play(talk, plan)
    lost = len(talk.bodies)
    talk.restart()
    play(talk, more)
    found = judge.check(talk.bodies, mode="frozen")
    assert {broken.at for broken in found} <= {lost}
    assert {broken.reason for broken in found} <= {"messages_rewritten", "input_rewritten", "messages_not_continued",
                                                   "input_not_continued"}  # fmt: skip
    assert talk.bare()[0] == 200


@frozen
@pytest.mark.requirement("P37")
def test_the_callers_arguments_are_the_models_own_bytes(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    inner = '{ "id" : 7,\t"note": "caf\\u00e9 \\"\\\\ \\ud83d\\ude00 { } [ ] \\n" }'
    call = (CALLS, f'{{"tool": "{TOOL}", "params": {inner} }}')
    if form.dialect == MESSAGES and not form.stream:
        call = (CALLS, json.loads(call[1]))
    reply = talk.send(raw(talk, (LOADS, {"tools": [TOOL]})), raw(talk, call))
    (given_,) = shown_arguments(talk, reply)
    assert json.loads(given_) == json.loads(inner)
    if form.dialect != MESSAGES:
        assert given_ == inner
    if form.dialect == MESSAGES and form.stream:
        assert json.dumps(inner)[1:-1].encode() in b"".join(talk.shown)
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert not judge.check(talk.bodies, mode="frozen")


@frozen
@pytest.mark.parametrize("size", [1, 7])
def test_a_bridge_call_is_shown_as_a_start_one_delta_and_a_stop(form: Form, size: int) -> None:
    if not form.stream:
        pytest.skip("of streams")
    talk = form.talk()
    talk.cut = lambda data: [data[at : at + size] for at in range(0, len(data), size)]
    talk.user("go")
    reply = talk.send(Move(text="Now.", calls=[search(TOOL)]), Move(text="Here.", calls=[(TOOL, {"id": 12345})]))
    assert talk.calls(reply) == [(TOOL, {"id": 12345})]
    events = [json.loads(line[6:]) for line in b"".join(talk.shown).decode().split("\n") if line.startswith("data: {")]
    pieces = [text for event in events for text in _pieces(event)]
    assert [json.loads(piece) for piece in pieces] == [{"id": 12345}]
    assert CALLS not in b"".join(talk.shown).decode()


def _pieces(event: dict[str, Any]) -> list[str]:
    if event.get("type") == "response.function_call_arguments.delta":
        return [event["delta"]]
    delta = event.get("delta")
    if isinstance(delta, dict) and delta.get("partial_json"):
        return [delta["partial_json"]]
    found: list[str] = []
    for choice in event.get("choices") or []:
        calls = choice["delta"].get("tool_calls") or []
        found += [call["function"]["arguments"] for call in calls if (call.get("function") or {}).get("arguments")]
    return found


@frozen
@pytest.mark.requirement("P25", "P26", "P27", "P29", "P39")
@pytest.mark.report("BR-198", "BR-201")
def test_a_call_that_fails_a_gate_is_answered_and_reaches_nobody(form: Form) -> None:
    talk = form.talk({"unloaded_call": "refuse"})
    talk.user("go")
    reply = talk.send(
        Move(calls=[(TOOL, {"id": 1})]),
        Move(calls=[search(TOOL)]),
        Move(calls=[(TOOL, {"id": "one"})]),
        Move(calls=[(TOOL, {"id": 1})]),
    )
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    told = json.dumps(talk.body[talk.key])
    assert "is not loaded" in told
    assert "integer" in told
    assert talk.report.added_rounds == 3


@frozen
def test_one_call_that_fails_again_and_again_is_stopped(form: Form) -> None:
    talk = form.talk({"max_rounds": 6})
    talk.user("go")
    bad = Move(calls=[(TOOL, {"id": "one"})])
    reply = talk.send(bad, bad, Move(text="I give up"))
    assert talk.text(reply) == "I give up"
    assert talk.body["tool_choice"] == form.choice("none")["tool_choice"], "after the second one nothing is tried again"
    assert talk.calls(reply) == []


@frozen
@pytest.mark.report("BR-192", "BR-193")
def test_what_can_be_put_right_is_put_right_and_reported(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    encoded = {"tool": TOOL, "params": json.dumps({"id": 5})}
    reply = talk.send(raw(talk, (LOADS, {"tools": [TOOL]})), raw(talk, (CALLS, encoded)))
    assert talk.calls(reply) == [(TOOL, {"id": 5})]
    assert talk.report.repairs
    assert all(TOOL in repair for repair in talk.report.repairs)
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert not judge.check(talk.bodies, mode="frozen"), "the model's own bytes come back"
    assert [tool.name for tool in talk.report.loaded] == [TOOL]


@frozen
def test_valid_calls_go_out_and_invalid_ones_beside_them_are_answered_with_their_results(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("go")
    mixed: list[Any] = [
        (TOOL, {"id": 1}),
        ("photo_list", {"id": "x"}),
        ("ledger_list", {"id": 2}),
        search("parcel_rename"),
    ]
    reply = talk.send(Move(calls=mixed))
    assert sorted(talk.calls(reply)) == sorted([(TOOL, {"id": 1}), ("ledger_list", {"id": 2})])
    assert len(talk.bodies) == 1
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert len(talk.results()) == 4
    assert {TOOL, "parcel_rename"} <= talk.callable()
    assert "photo_list" not in talk.callable()
    assert not judge.check(talk.bodies, mode="frozen")


@frozen
@pytest.mark.report("BR-196", "BR-208")
def test_a_permission_hook_by_name_sees_the_tool_itself(form: Form) -> None:
    denied = {TOOL}
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1}), ("photo_list", {"id": 2})]))
    names = [name for name, _ in talk.calls(reply)]
    assert [name in denied for name in names] == [True, False]
    assert LOADS not in json.dumps(talk.visible)
    assert CALLS not in json.dumps(talk.visible)


@frozen
def test_names_that_the_caller_has_are_left_to_him(form: Form) -> None:
    talk = form.talk(names=(*NAMES, LOADS), policy={"resident": (LOADS,)})
    talk.user("go")
    reply = talk.send(
        raw(talk, ("load_tools2", {"tools": [TOOL]})),
        raw(talk, (LOADS, {"id": 1}), ("call_tool2", {"tool": TOOL, "params": {"id": 2}})),
    )
    assert sorted(talk.calls(reply)) == [(TOOL, {"id": 2}), (LOADS, {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    assert not judge.check(talk.bodies, mode="frozen")


@frozen
def test_what_is_pushed_is_told_with_the_next_load(form: Form) -> None:
    talk: Any = form.talk()
    box = Toolbox([])
    talk.session = talk.fresh(toolbox=box, ledger=InProcessLedger())
    talk.load(TOOL)
    added = {"name": "weather_now", "description": "Says what the weather is now", "input_schema": {"type": "object"}}
    box.add(added)
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert "weather_now" not in json.dumps(talk.body)
    talk.user("go")
    talk.send(Move(calls=[search("photo_list")]), Move(text="ok"))
    assert {"weather_now", "photo_list"} <= talk.callable()
    told = json.dumps(talk.body).count("## weather_now")
    talk.user("more")
    talk.send(Move(calls=[search("parcel_rename")]), Move(text="ok"))
    assert told == json.dumps(talk.body).count("## weather_now") == 1, "told once"
    assert not judge.check(talk.bodies, mode="frozen")


@frozen
@pytest.mark.parametrize("other", ["native", "resend", "eager"])
def test_a_conversation_goes_on_in_another_strategy_and_back(form: Form, other: str) -> None:
    talk = form.talk()
    ledger = InProcessLedger()
    talk.restart(ledger=ledger)
    talk.load(TOOL)
    talk.policy = talk.policy.replace(strategy=other)
    talk.restart(ledger=ledger)
    talk.user("elsewhere")
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert other == "eager" or TOOL in {tool.name for tool in talk.report.loaded}
    assert CALLS not in [call for _, call, _ in talk.called()], "the model is shown calls that it can make itself"
    talk.answer(reply)
    talk.send(Move(text="done"))
    talk.policy = talk.policy.replace(strategy="frozen")
    talk.restart(ledger=ledger)
    talk.user("and back")
    start = len(talk.bodies)
    reply = talk.send(Move(calls=[(TOOL, {"id": 3})]))
    assert talk.calls(reply) == [(TOOL, {"id": 3})]
    assert TOOL not in [name for _, name, _ in talk.called()], "and here that go through the bridge"
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert not judge.check(talk.bodies[start:], mode="frozen")
    assert talk.bare()[0] == 200


@frozen
def test_an_application_that_answers_the_bridge_itself(form: Form) -> None:
    talk = form.talk({"discovery": "caller"})
    box = Toolbox(tools(form.dialect), talk.policy)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]))
    assert [name for name, _ in talk.calls(reply)] == [LOADS]
    talk.visible += answers_of(talk, reply, box)
    reply = talk.send(Move(calls=[(TOOL, {"id": 4})]))
    assert talk.calls(reply) == [(CALLS, {"tool": TOOL, "params": {"id": 4}})]
    (call,) = _wire_calls(talk, reply)
    meant = box.call(call, loaded=[TOOL])
    assert (meant.name, meant.arguments, meant.refusal) == (TOOL, {"id": 4}, None)
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    assert not judge.check(talk.bodies, mode="frozen")


def test_a_bridge_call_that_reaches_nothing_has_its_result() -> None:
    box = Toolbox(tools(CHAT))
    wire = {"id": "call_1", "type": "function"}
    bad = {**wire, "function": {"name": CALLS, "arguments": json.dumps({"tool": TOOL, "params": {"id": "x"}})}}
    called = box.call(bad, loaded=[TOOL])
    assert called.refusal is not None
    assert called.refusal["tool_call_id"] == "call_1"
    assert "integer" in called.refusal["content"]
    direct = {**wire, "function": {"name": TOOL, "arguments": '{"id": 1}'}}
    assert box.call(direct).name == TOOL


def _wire_calls(talk: Conversation, reply: dict[str, Any]) -> list[dict[str, Any]]:
    if talk.dialect == CHAT:
        return list(reply["choices"][0]["message"]["tool_calls"])
    if talk.dialect == RESPONSES:
        return [item for item in reply["output"] if item["type"] == "function_call"]
    return [block for block in reply["content"] if block["type"] == "tool_use"]


def answers_of(talk: Conversation, reply: dict[str, Any], box: Toolbox) -> list[dict[str, Any]]:
    made = [box.answer(call) for call in _wire_calls(talk, reply)]
    return [{"role": "user", "content": made}] if talk.dialect == MESSAGES else made


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_in_a_namespace_is_called_in_it(stream: bool) -> None:
    talk = Form(RESPONSES, "frozen", stream).talk()
    inner = [{**tool, "name": name} for tool, name in zip(tools(RESPONSES), ("send", "fetch"), strict=False)]
    space = {"type": "namespace", "name": "mail", "description": "Mail", "tools": inner}
    talk.extra = {"tools": [*tools(RESPONSES), space]}
    talk.user("go")
    load, call = (LOADS, {"tools": ["mail.send"]}), (CALLS, {"tool": "mail.send", "params": {"id": 1}})
    reply = talk.send(raw(talk, load), raw(talk, call))
    (item,) = [item for item in reply["output"] if item["type"] == "function_call"]
    assert (item["name"], item["namespace"]) == ("send", "mail")
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert [tool.name for tool in talk.report.loaded] == ["mail.send"]
    assert not judge.check(talk.bodies, mode="frozen")
    talk.restart()
    talk.user("again")
    talk.send(Move(text="done"))
    assert '"mail.send' in json.dumps(talk.body["input"]).replace("\\", "")
    assert "namespace" not in json.dumps(talk.body)


@frozen
@pytest.mark.requirement("P38")
def test_the_callers_result_goes_to_the_model_as_it_is(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    talk.answer(reply)
    given_ = talk.visible[-1]
    talk.send(Move(text="done"))
    assert json.dumps(given_) in json.dumps(talk.body)


@frozen
@pytest.mark.requirement("P55")
def test_guidelines_stand_in_the_answer_to_a_load_and_nowhere_before(form: Form) -> None:
    rule = "Ask before a live invoice leaves the house."
    box = Toolbox([Tool(TOOL, "Export one invoice.", guidelines=(rule,))])
    talk = form.talk()
    talk.restart(toolbox=box)
    talk.names = [name for name in NAMES if name != TOOL]
    talk.user("go")
    talk.send(Move(text="hm"))
    assert rule not in json.dumps(talk.body)
    talk.user("load it")
    talk.send(raw(talk, (LOADS, {"tools": [TOOL]})), Move(text="ok"))
    assert rule not in json.dumps([talk.body["tools"], talk.body.get("system"), talk.body.get("instructions")])
    assert rule in json.dumps([*talk.results().values()])
