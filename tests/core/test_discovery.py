"""Who sees the discovery: hidden, shown or answered by the caller; how each is replayed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench import judge
from tests.core.conversation import (
    CALLS,
    CHAT,
    LOADS,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    everywhere,
    search,
    tools,
)

import loadpoint
from loadpoint.emulator import Move
from loadpoint.toolbox import Toolbox

TOOL = "invoice_export"
SHOWN = [Form(MESSAGES, strategy, stream) for strategy in ("native", "resend") for stream in (False, True)]
shown_forms = pytest.mark.parametrize("form", SHOWN, ids=lambda form: f"{form.strategy}-{form.stream}")


def answered(talk: Conversation, reply: dict[str, Any]) -> None:
    """The caller's own results: the loader by a toolbox, the others by hand."""
    box = Toolbox(tools(talk.dialect, NAMES), talk.policy)
    if talk.dialect == CHAT:
        for call in reply["choices"][0]["message"].get("tool_calls") or []:
            ours = call["function"]["name"] in ("ToolSearch", LOADS)
            by_hand = {"role": "tool", "tool_call_id": call["id"], "content": "done"}
            talk.visible.append(box.answer(call) if ours else by_hand)
        return
    if talk.dialect == RESPONSES:
        for call in [item for item in reply["output"] if item["type"].endswith("_call")]:
            ours = call.get("name", "ToolSearch") in ("ToolSearch", LOADS)
            by_hand = {"type": "function_call_output", "call_id": call["call_id"], "output": "done"}
            talk.visible.append(box.answer(call) if ours else by_hand)
        return
    blocks = [block for block in reply["content"] if block["type"] == "tool_use"]
    results = [
        box.answer(block)
        if block["name"] in ("ToolSearch", LOADS)
        else {"type": "tool_result", "tool_use_id": block["id"], "content": "done"}
        for block in blocks
    ]
    talk.visible.append({"role": "user", "content": results})


@everywhere
def test_hidden_shows_nothing_new(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    assert "ToolSearch" not in json.dumps(talk.replies)
    assert "srvtoolu" not in json.dumps(talk.replies)


@everywhere
@pytest.mark.requirement("N37")
def test_the_caller_sees_an_ordinary_durable_call_and_answers_it(form: Form) -> None:
    talk = form.talk({"discovery": "caller"})
    talk.user("go")
    reply = talk.send(Move(text="Looking.", calls=[search(TOOL)]))
    assert talk.calls(reply) == [(form.loader, {"query": TOOL})]
    answered(talk, reply)
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert TOOL in talk.callable()
    answered(talk, reply)
    talk.send(Move(text="done"))
    assert talk.report.added_rounds == 0
    if form.strategy == "native":
        assert talk.report.prefix.stable
        assert form.by_value or TOOL in talk.declared()


@everywhere
def test_a_caller_that_answers_searches_beside_real_calls(form: Form) -> None:
    talk = form.talk({"discovery": "caller", "resident": ("ledger_list",)})
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1}), search("photo_list")]))
    assert len(talk.calls(reply)) == 3
    answered(talk, reply)
    talk.send(Move(text="ok"))
    assert {TOOL, "photo_list"} <= talk.callable()


@everywhere
def test_a_callers_history_without_its_searches_is_clean_and_valid(form: Form) -> None:
    talk = form.talk({"discovery": "caller"})
    talk.user("go")
    answered(talk, talk.send(Move(text="Looking.", calls=[search(TOOL)])))
    answered(talk, talk.send(Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    talk.visible = loadpoint.clean(talk.visible)
    assert not {"ToolSearch", LOADS, CALLS} & set(re.findall(r"\w+", json.dumps(talk.visible)))
    assert TOOL in json.dumps(talk.visible)
    assert talk.bare()[0] == 200


def test_clean_tells_repeating_ids_of_different_turns_apart() -> None:
    talk = Form(CHAT, "resend", False).talk({"discovery": "caller"})
    talk.user("go")
    answered(talk, talk.send(Move(calls=[("ToolSearch", {"query": TOOL}, "call_0")])))
    answered(talk, talk.send(Move(calls=[(TOOL, {"id": 1}, "call_0")])))
    talk.send(Move(text="done"))
    talk.visible = loadpoint.clean(talk.visible)
    assert [call["function"]["name"] for m in talk.visible for call in m.get("tool_calls", ())] == [TOOL]
    assert talk.bare()[0] == 200


@shown_forms
def test_shown_items_stand_behind_their_round_and_before_the_next(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.user("go")
    moves = [Move(text="Looking.", calls=[search(TOOL), search("photo_list")]), Move(calls=[search("zzqx vvkw")])]
    reply = talk.send(*moves, Move(text="Here."))
    kinds = [block["type"] for block in reply["content"]]
    pair = ["server_tool_use", "tool_search_tool_result"]
    assert kinds == ["text", *pair, *pair, *pair, "text"]
    items = [block for block in reply["content"] if block["type"] == "server_tool_use"]
    assert [item["input"]["query"] for item in items] == [TOOL, "photo_list", "zzqx vvkw"]
    places = [item["id"].removeprefix("srvtoolu_lp").split("_")[:3] for item in items]
    assert places == [["0", "1", "3"], ["0", "2", "3"], ["1", "0", "1"]]
    found = [block["content"]["tool_references"] for block in reply["content"] if block["type"] == pair[1]]
    assert found[2] == []
    assert TOOL in [reference["tool_name"] for reference in found[0]]
    assert reply["content"][0]["text"] == "Looking.", "text keeps its place"


@shown_forms
def test_nothing_shown_is_ever_sent(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))
    talk.session = talk.fresh()
    talk.user("off")
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"})
    assert b"srvtoolu" not in json.dumps(talk.bodies).encode()
    assert len(talk.in_context()) == len(NAMES)


@shown_forms
def test_shown_histories_are_valid_after_clean(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.visible = loadpoint.clean(talk.visible)
    assert "srvtoolu" not in json.dumps(talk.visible)
    assert talk.bare()[0] == 200


def test_an_id_that_cannot_be_told_apart_is_shown_at_random_and_found_in_the_ledger() -> None:
    talk = Form(MESSAGES, "native", False).talk({"discovery": "shown"})
    talk.user("go")
    odd = ("ToolSearch", {"query": TOOL}, "toolu-with-hyphens")
    reply = talk.send(Move(calls=[odd]), Move(text="Here."))
    (item,) = [block["id"] for block in reply["content"] if block["type"] == "server_tool_use"]
    assert item.startswith("srvtoolu_lpx")
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


# ------------------------------------------------------------------------- restored from the shown items alone

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["search", "two", "text and search", "mixed", "call", "two with text"]), st.integers(0, 59)
    ),
    min_size=1,
    max_size=3,
)


def play(talk: Conversation, plan: list[list[tuple[str, int]]]) -> None:
    for at, steps in enumerate(plan):
        talk.user(f"request {at}")
        hidden: list[Move] = []
        asked: set[str] = set()
        for kind, number in steps:
            name, other = NAMES[number], NAMES[(number + 7) % 60]
            if {name, other} & asked or "ledger_list" in (name, other):
                continue  # what is callable already is answered in words, which items do not hold
            asked |= {name, other}
            text = "Looking. " if "text" in kind else ""
            calls = [search(name, max_results=1)]
            if kind.startswith("two"):
                calls.append(search(other, max_results=1))
            if kind in ("mixed", "call"):
                real = ("ledger_list", {"id": at})
                talk.answer(talk.send(*hidden, Move(text=text, calls=[*calls, real] if kind == "mixed" else [real])))
                hidden = []
            else:
                hidden.append(Move(text=text, calls=calls))
        talk.send(*hidden[:3], Move(text=f"answer {at}"))


def _each_once(plan: list[list[tuple[str, int]]]) -> list[list[tuple[str, int]]]:
    seen: set[int] = set()
    out: list[list[tuple[str, int]]] = []
    for steps in plan:
        out.append([])
        for kind, number in steps:
            both = {number, (number + 7) % 60}
            if not both & seen:
                seen |= both
                out[-1].append((kind, number))
    return out


@settings(max_examples=40)
@given(plan=st.lists(STEPS, min_size=1, max_size=3), stream=st.booleans())
def test_items_alone_restore_the_bytes_that_were_sent(plan: Any, stream: bool) -> None:
    """Another process, no ledger: rounds, order, parallel calls and mixed turns come from the items."""
    form = Form(MESSAGES, "native", stream)
    talk = form.talk({"discovery": "shown", "resident": ("ledger_list",), "load_at_most": 1, "max_rounds": 6})
    unique = _each_once(plan)
    play(talk, unique)
    sent = [json.dumps(message) for message in talk.body["messages"]]
    talk.restart()
    talk.user("another process")
    talk.send(Move(text="ok"))
    again = [json.dumps(message) for message in talk.body["messages"]]
    assert again[: len(sent)] == sent
    status, raw = _cleaned(talk).bare()
    assert status == 200, raw


def _cleaned(talk: Conversation) -> Conversation:
    talk.visible = loadpoint.clean(talk.visible)
    return talk


@everywhere
@pytest.mark.parametrize("discovery", ["hidden", "shown", "caller"])
def test_every_way_of_replaying_gives_valid_requests_and_leavable_histories(form: Form, discovery: str) -> None:
    talk = form.talk({"discovery": discovery, "resident": ("ledger_list",)})
    for at, name in enumerate((TOOL, "photo_list", "parcel_rename")):
        talk.user(f"do {name}")
        if discovery == "caller":
            answered(talk, talk.send(Move(text="Looking.", calls=[search(name), ("ledger_list", {"id": 1})])))
        else:
            first = Move(text="Looking.", calls=[search(name), search("event")])
            talk.answer(talk.send(first, Move(calls=[search(f"{name} x"), ("ledger_list", {"id": 1})])))
        answered(talk, talk.send(Move(calls=[(name, {"id": at})])))
        talk.send(Move(text="done"))
    mode = "resend" if form.strategy == "resend" else "native"
    assert not judge.check(talk.bodies, mode=mode)
    talk.restart()
    talk.user("another process")
    talk.send(Move(text="ok"))
    assert {TOOL, "photo_list", "parcel_rename"} <= talk.callable()
    status, raw = _cleaned(talk).bare()
    assert status == 200, raw


@everywhere
def test_a_search_without_its_result_is_no_obstacle(form: Form) -> None:
    """A stream that was cut leaves the call of a shown search alone in the history; the provider asks to drop it."""
    talk = form.talk({"discovery": "shown"})
    if form.dialect != MESSAGES:
        pytest.skip("searches are not shown in this API")
    talk.user("go")
    talk.send(Move(text="Here."))
    talk.visible[-1]["content"].append(
        {"type": "server_tool_use", "id": "srvtoolu_01abc", "name": "tool_search_tool_bm25", "input": {"query": "x"}}
    )
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))


@shown_forms
@pytest.mark.requirement("N19")
def test_foreign_search_items_are_evidence(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    item = {
        "type": "server_tool_use",
        "id": "srvtoolu_01abc",
        "name": "tool_search_tool_regex",
        "input": {"query": "x"},
    }
    found = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": TOOL}],
    }
    result = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_01abc", "content": found}
    talk.visible.append({"role": "assistant", "content": [item, result, {"type": "text", "text": "Found."}]})
    talk.user("use it")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in talk.callable()
    assert talk.report.loaded[0].why == "search"
    assert "srvtoolu" not in json.dumps(talk.body)


@pytest.mark.parametrize("stream", [False, True])
def test_a_conversation_goes_on_with_a_model_that_takes_no_references(stream: bool) -> None:
    """What was sent natively is rendered validly where the list is resent, and the other way round."""
    talk = Form(MESSAGES, "native", stream).talk()
    talk.load(TOOL)
    talk.policy = talk.policy.replace(strategy="resend")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    talk.send(Move(calls=[search("photo_list")]), Move(text="ok"))
    assert "tool_reference" not in json.dumps(talk.body)
    assert {TOOL, "photo_list"} <= set(talk.in_context())
    talk.policy = talk.policy.replace(strategy="native")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("and again")
    talk.send(Move(calls=[search("parcel_rename", max_results=1)]), Move(text="ok"))
    assert "parcel_rename" in talk.declared()
    assert {TOOL, "photo_list", "parcel_rename"} <= talk.callable()
