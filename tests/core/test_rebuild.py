"""What happens when the record of hidden rounds is lost: the same bytes in every process, valid, one break."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench import judge
from tests.core.conversation import MESSAGES, NAMES, Conversation, Form, everywhere, search, tools

from loadpoint.emulator import Move

TOOL = "invoice_export"
THINKING = {"thinking": {"type": "adaptive"}}


def said(text: str, form: Form, thinks: bool) -> dict[str, Any]:
    return {"thinking": text} if thinks and form.dialect == MESSAGES else {}


def long(form: Form, *, thinks: bool = False, ledger: Any = None, **given_: Any) -> Conversation:
    """Three user turns with hidden rounds, calls, and text-only turns."""
    extra = dict(THINKING) if thinks and form.dialect == MESSAGES else {}
    talk = form.talk({"resident": ("ledger_list",)}, extra=extra, **given_)
    if ledger is not None:
        talk.restart(ledger=ledger)
    for at, name in enumerate((TOOL, "photo_list", "parcel_rename")):
        talk.user(f"do {name}")
        first = Move(text="Looking. ", calls=[search(name)], **said("where is it", form, thinks))
        talk.answer(talk.send(first, Move(calls=[(name, {"id": at})], **said("there", form, thinks))))
        talk.send(Move(text=f"{name} is done", **said("fine", form, thinks)))
    return talk


@everywhere
@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.requirement("N34", "N35")
def test_two_processes_rebuild_the_same_bytes(form: Form, thinks: bool) -> None:
    talk = long(form, thinks=thinks)
    talk.user("another process")
    bodies = []
    for _ in range(2):
        talk.restart()
        bodies.append(json.dumps(talk.begun().body))
    assert bodies[0] == bodies[1]


@everywhere
@pytest.mark.parametrize("thinks", [False, True])
def test_a_rebuilt_conversation_is_valid_and_breaks_once(form: Form, thinks: bool) -> None:
    talk = long(form, thinks=thinks)
    talk.restart()
    start = len(talk.bodies)
    for at in range(3):
        talk.user(f"turn {at} of another process")
        talk.send(Move(text="ok", **said("hm", form, thinks)))
    assert [report.prefix.broke for report in talk.reports[-3:]] == ["unknown_predecessor", None, None]
    assert not judge.check(talk.bodies[start:], mode="native")
    assert {TOOL, "photo_list", "parcel_rename"} <= (talk.callable() if form.keeps else set(talk.in_context()))


@everywhere
@pytest.mark.parametrize("thinks", [False, True])
def test_the_middle_of_a_conversation_that_is_lost_is_reported(form: Form, thinks: bool) -> None:
    """A ledger that forgets, or another process without it, in the middle of a conversation."""
    talk = long(form, thinks=thinks)
    ours = talk.session
    talk.restart()
    talk.user("elsewhere")
    talk.send(Move(text="ok", **said("hm", form, thinks)))
    talk.session = ours
    talk.user("back")
    talk.send(Move(text="ok", **said("hm", form, thinks)))
    assert talk.report.prefix.stable is False
    assert talk.report.prefix.broke == "rounds_rebuilt"
    talk.user("on")
    talk.send(Move(text="ok", **said("hm", form, thinks)))
    assert talk.report.prefix.stable
    assert len([report for report in talk.reports[-3:] if report.prefix.stable]) == 1


@everywhere
@settings(max_examples=12)
@given(lost=st.sets(st.integers(0, 5), max_size=4), thinks=st.booleans())
def test_a_ledger_that_loses_any_turns_still_gives_valid_requests(form: Form, lost: set[int], thinks: bool) -> None:
    class Forgetful:
        """Forgets the turns with these numbers as soon as they are written."""

        def __init__(self) -> None:
            self.records: dict[str, list[Any]] = {}
            self.writes = 0

        def find(self, key: str) -> list[Any]:
            return self.records.get(key, [])

        def add(self, key: str, record: Any) -> None:
            self.writes += 1
            if self.writes - 1 not in lost:
                self.records.setdefault(key, []).insert(0, record)

        def close(self) -> None:
            pass

    talk = long(form, thinks=thinks, ledger=Forgetful())
    breaks = [report.prefix.broke for report in talk.reports if report.prefix.stable is False]
    grown = [reason for reason in breaks if reason == "tools_grew"]
    # A loss costs one miss, and one more where the next hidden rounds were already sent after the rebuilt ones.
    assert len(breaks) - len(grown) <= 2 * len(lost)
    status, raw = talk.bare()
    assert status == 200, raw


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "binds"), [("claude-opus-5-5", True), ("claude-opus-4-8", False)])
def test_models_that_bind_thinking_are_asked_to_drop_it(model: str, binds: bool, stream: bool) -> None:
    form = Form(MESSAGES, "native", stream)
    talk = long(form, thinks=True, model=model)
    assert "block_binding" not in json.dumps(talk.bodies)
    talk.restart()
    talk.user("another process")
    call = talk.begun()
    asked = call.body["thinking"].get("block_binding") == {"prefix_mismatch_behavior": "drop_block"}
    assert asked is binds
    assert ("thinking-binding-controls-2026-08-01" in (call.headers.get("anthropic-beta") or "")) is binds


@pytest.mark.parametrize("stream", [False, True])
def test_a_history_that_was_never_ours_is_asked_for_nothing_and_stays_as_it_is(stream: bool) -> None:
    form = Form(MESSAGES, "native", stream)
    talk = form.talk(extra=dict(THINKING), model="claude-opus-5-5")
    talk.visible = [
        {"role": "user", "content": "an example"},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": "and now?"},
    ]
    talk.send(Move(text="ok"))
    talk.user("more")
    talk.send(Move(text="ok"))
    assert "block_binding" not in json.dumps(talk.bodies)
    assert talk.report.prefix.stable
    assert not judge.check(talk.bodies)


@everywhere
def test_examples_at_the_start_of_a_history_break_nothing(form: Form) -> None:
    talk = form.talk()
    talk.visible = [
        {"role": "user", "content": "an example"},
        {"role": "assistant", "content": "an answer"},
        {"role": "user", "content": "and now?"},
    ]
    for _ in range(3):
        talk.send(Move(text="ok"))
        talk.user("more")
    assert [report.prefix.broke for report in talk.reports] == ["unknown_predecessor", None, None]


@everywhere
def test_a_branch_continues_from_where_it_leaves(form: Form) -> None:
    talk = long(form)
    at = len(talk.visible)
    talk.user("left")
    talk.send(Move(calls=[search("event_list")]), Move(text="left is done"))
    talk.visible = talk.visible[:at]
    talk.user("right")
    talk.send(Move(text="right is done"))
    assert talk.report.prefix.stable
    assert "event_list" not in talk.callable()
    talk.visible = talk.visible[: at - 4]
    talk.user("an earlier branch")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke in (None, "tools_grew")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strategy", ["native", "resend"])
def test_growing_tools_on_a_model_that_binds_thinking_are_accepted(strategy: str, stream: bool) -> None:
    """Thinking is void once the tools before it change: a resent load, a direct call, a forced choice."""
    form = Form(MESSAGES, strategy, stream)
    talk = long(form, thinks=True, model="claude-opus-5-5")
    talk.user("directly")
    talk.answer(talk.send(Move(calls=[("photo_export", {"id": 1})], thinking="I know it")))
    talk.send(Move(text="ok", thinking="so it is"))
    assert "photo_export" in talk.callable()
    talk.user("and on")
    talk.send(Move(text="ok", thinking="hm"))
    assert talk.report.prefix.stable
    binding = {"prefix_mismatch_behavior": "drop_block"}
    assert talk.body["thinking"].get("block_binding") == (None if form.additive else binding), "nothing became void"


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_before_a_search_that_found_nothing_is_lost_without_an_error(stream: bool) -> None:
    form = Form(MESSAGES, "native", stream)
    talk = form.talk(extra=dict(THINKING), model="claude-opus-5-5")
    talk.user("go")
    talk.send(Move(calls=[search("zzqx vvkw")], thinking="where is it"), Move(text="nowhere", thinking="not there"))
    talk.restart()
    for at in range(2):
        talk.user(f"turn {at}")
        talk.send(Move(text="ok", thinking="hm"))
    assert talk.report.prefix.stable


def called(form: Form) -> Conversation:
    """A conversation in which a tool was called without a search, two turns ago."""
    talk = form.talk()
    talk.user("go " * 40)
    talk.answer(talk.send(Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    more(talk)
    return talk


def more(talk: Conversation) -> None:
    talk.user("more")
    talk.send(Move(text="fine"))


def redefined(talk: Conversation) -> None:
    listed = tools(talk.dialect)
    for tool in listed:
        if talk.name(tool) == TOOL:
            (tool.get("function") or tool)["description"] = "Said in other words"
    talk.extra["tools"] = listed


@everywhere
def test_a_rebuilt_load_of_a_call_stays_when_its_tool_leaves_and_returns(form: Form) -> None:
    """The tool was called, the record of it is lost, and then the caller takes it away and brings it back."""
    talk = called(form)
    talk.restart()
    more(talk)
    start = len(talk.bodies) - 1
    talk.names = [name for name in NAMES if name != TOOL]
    for _ in range(2):
        more(talk)
        assert talk.report.prefix.stable
    talk.names = NAMES
    for _ in range(2):
        more(talk)
        assert TOOL in talk.callable()
        assert talk.report.prefix.stable or not form.additive
    assert not judge.check(talk.bodies[start:], mode="native") or not form.additive


@everywhere
def test_a_called_tool_with_a_new_definition_is_placed_anew_and_rewrites_nothing(form: Form) -> None:
    talk = called(form)
    start = len(talk.bodies) - 1
    redefined(talk)
    for at in range(2):
        more(talk)
        assert talk.report.prefix.stable is (form.keeps or at > 0)
    assert TOOL in talk.callable()
    assert any(TOOL in text for report in talk.reports[-2:] for text in report.warnings)
    assert ("other words" in json.dumps(talk.body)) is (form.strategy != "frozen"), "there a refusal tells it"
    assert not judge.check(talk.bodies[start:], mode="native") or not form.additive


@everywhere
def test_a_rebuilt_load_with_a_new_definition_is_a_break_that_is_told(form: Form) -> None:
    talk = called(form)
    talk.restart()
    more(talk)
    redefined(talk)
    more(talk)
    assert talk.report.prefix.broke == (None if form.strategy == "frozen" else "tool_changed")
    assert any(TOOL in text for text in talk.report.warnings)
    more(talk)
    assert talk.report.prefix.stable
