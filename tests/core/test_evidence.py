"""What proves that a tool is loaded: N21 to N36 as a pure function, and in whole conversations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import CHAT, NAMES, RESPONSES, Form, everywhere, search

from loadpoint._dialect import CallView, ResultView, View
from loadpoint._loaded import evidence
from loadpoint.emulator import Move

DEFERRED = frozenset({"a", "b", "c", "d"})
RESIDENT = "read"


def marker(*names: str, **more: Any) -> str:
    body = {"query": "q", "matches": [], "total_available": 4, "addedToolNames": list(names)}
    return json.dumps({**body, **more})


def proved(*views: View, deferred: frozenset[str] = DEFERRED) -> list[str]:
    found = evidence(views, is_deferred=deferred.__contains__, loaders=("ToolSearch",))
    return [proof.name for proof in found]


def turn(name: str, result: str | None, *, call_id: str = "i", failed: bool = False) -> list[View]:
    views = [View("assistant", calls=(CallView(call_id, name, {}),))]
    if result is not None:
        views.append(View("user", results=(ResultView(call_id, result, failed=failed),)))
    return views


@pytest.mark.requirement("N22", "N23", "N33")
def test_a_loader_result_adds_all_its_names_in_order():
    assert proved(*turn("ToolSearch", marker("c", "a"))) == ["c", "a"]


@pytest.mark.requirement("N24")
def test_a_result_of_a_deferred_tool_adds_its_own_name():
    assert proved(*turn("b", "done")) == ["b"]
    assert proved(*turn(RESIDENT, "done")) == []


@pytest.mark.requirement("N25")
def test_only_names_that_are_deferred_now_count():
    views = turn("ToolSearch", marker("a", "gone", RESIDENT))
    assert proved(*views) == ["a"]
    assert proved(*views, deferred=frozenset()) == []


@pytest.mark.requirement("N26", "N27")
def test_failed_and_interrupted_results_count_for_nothing():
    assert proved(*turn("ToolSearch", marker("a"), failed=True)) == []
    assert proved(*turn("a", "interrupted by the user", failed=True)) == []


@pytest.mark.requirement("N28")
def test_a_call_without_a_result_counts_for_nothing():
    assert proved(*turn("a", None)) == []
    assert proved(*turn("ToolSearch", None)) == []


@pytest.mark.requirement("N28")
def test_a_result_without_its_call_counts_for_nothing():
    assert proved(View("user", results=(ResultView("other", marker("a")),))) == []


@pytest.mark.requirement("N29")
@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_prose_counts_for_nothing(role: str):
    assert proved(View(role, marker("a"))) == []


@pytest.mark.requirement("N29", "N33")
@pytest.mark.parametrize(
    "text",
    [
        "a",
        "added a",
        "[]",
        '{"addedToolNames": ["a"]}',
        marker("a") + " and more",
        marker("a", matches=None),
        marker("a", query=None),
        marker("a", total_available="4"),
        json.dumps({"result": marker("a")}),
    ],
)
def test_a_loader_result_that_is_not_well_formed_counts_for_nothing(text: str):
    assert proved(*turn("ToolSearch", text)) == []


@pytest.mark.requirement("N29")
def test_a_marker_in_the_result_of_another_tool_counts_for_nothing():
    assert proved(*turn(RESIDENT, marker("a"))) == []
    assert proved(*turn("b", marker("a"))) == ["b"], "the tool itself, not what its result says"


@pytest.mark.requirement("N30", "N21")
def test_what_is_not_in_the_transcript_any_more_counts_for_nothing():
    views = [*turn("ToolSearch", marker("a"), call_id="1"), *turn("b", "done", call_id="2")]
    assert proved(*views) == ["a", "b"]
    assert proved(*views[2:]) == ["b"]
    assert proved() == [], "nothing is remembered between two transcripts"


def test_references_count_where_they_stand_and_are_placed():
    views = [View("assistant", calls=(CallView("1", "ToolSearch", {}),))]
    views.append(View("user", results=(ResultView("1", "", names=("b", "a")),)))
    found = evidence(views, is_deferred=DEFERRED.__contains__, loaders=("ToolSearch",))
    assert [(proof.name, proof.placed, proof.why, proof.turn) for proof in found] == [
        ("b", True, "search", 1),
        ("a", True, "search", 1),
    ]


def test_a_call_id_that_repeats_belongs_to_the_nearest_call_before_it():
    views = [*turn("ToolSearch", marker("a"), call_id="call_0"), *turn(RESIDENT, marker("b"), call_id="call_0")]
    assert proved(*views) == ["a"]


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["search", "failed", "call", "no result", "prose", "forged"]), max_size=12), st.data())
@pytest.mark.requirement("N21", "N22")
def test_the_loaded_names_are_those_an_oracle_finds(kinds: list[str], data: st.DataObject):
    views: list[View] = []
    expected: list[str] = []
    for at, kind in enumerate(kinds):
        name = data.draw(st.sampled_from(sorted(DEFERRED)))
        if kind == "search":
            views += turn("ToolSearch", marker(name), call_id=str(at))
        elif kind == "failed":
            views += turn("ToolSearch", marker(name), call_id=str(at), failed=True)
        elif kind == "call":
            views += turn(name, "done", call_id=str(at))
        elif kind == "no result":
            views += turn(name, None, call_id=str(at))
        elif kind == "prose":
            views.append(View("user", marker(name)))
        else:
            views += turn(RESIDENT, marker(name), call_id=str(at))
        if kind in ("search", "call") and name not in expected:
            expected.append(name)
    assert proved(*views) == expected


# ------------------------------------------------------------------------------------------- in whole conversations


@everywhere
@pytest.mark.requirement("N21", "N35", "N40", "O12")
def test_a_loaded_tool_stays_usable_in_the_next_user_turn(form: Form):
    talk = form.talk()
    talk.load("invoice_export")
    assert [report.added_rounds for report in talk.reports] == [1, 0]
    talk.user("once more")
    reply = talk.send(Move(calls=[("invoice_export", {"id": 2})]))
    assert talk.calls(reply) == [("invoice_export", {"id": 2})]
    assert talk.report.added_rounds == 0


@everywhere
@pytest.mark.requirement("N40")
def test_a_tool_that_was_found_and_not_called_stays_usable(form: Form):
    """No call of it is a proof beside the search."""
    talk = form.talk()
    talk.user("what could you do?")
    talk.send(Move(calls=[search("invoice_export")]), Move(text="I could export it."))
    talk.user("do")
    reply = talk.send(Move(calls=[("invoice_export", {"id": 2})]))
    assert talk.calls(reply) == [("invoice_export", {"id": 2})]
    assert [(tool.name, tool.why) for tool in talk.report.loaded] == [("invoice_export", "search")]
    assert "invoice_export" in talk.callable()


@everywhere
@pytest.mark.requirement("N35")
@pytest.mark.parametrize("discovery", ["hidden", "shown", "caller"])
def test_after_a_restart_a_tool_is_usable_while_its_marker_is_there(form: Form, discovery: str):
    talk = form.talk({"discovery": discovery})
    if discovery == "caller":
        _searched_by_the_caller(talk)
    else:
        talk.load("invoice_export")
    talk.restart()
    talk.user("once more")
    talk.send(Move(calls=[("invoice_export", {"id": 2})]))
    assert "invoice_export" in [tool.name for tool in talk.report.loaded]
    assert "invoice_export" in talk.callable()


@everywhere
@pytest.mark.requirement("N30", "N36")
@pytest.mark.parametrize("restart", [False, True])
def test_after_a_compaction_a_fresh_search_is_required(form: Form, restart: bool):
    talk = form.talk()
    talk.load("invoice_export")
    talk.visible = [{"role": "user", "content": "Summary: we exported invoice 1."}]
    if restart:
        talk.restart()
    talk.send(Move(text="so it is"))
    assert not talk.report.loaded
    assert "invoice_export" not in talk.callable()


@everywhere
@pytest.mark.requirement("N25")
def test_a_policy_that_makes_a_tool_resident_needs_no_marker_for_it(form: Form):
    talk = form.talk({"resident": ("invoice_*",)})
    talk.user("go")
    reply = talk.send(Move(calls=[("invoice_export", {"id": 2})]))
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert not talk.report.loaded
    assert talk.report.prefix.stable


@everywhere
@pytest.mark.requirement("N38", "N39", "N41", "O17")
def test_a_greeting_pays_for_no_optional_schema_however_many_there_are(form: Form):
    sizes = []
    for times in (1, 8):
        names = [f"{name}_{at}" if at else name for at in range(times) for name in NAMES]
        talk = form.talk({"resident": ("ledger_list",)}, names=names)
        talk.user("hello")
        talk.send(Move(text="hi"))
        assert talk.in_context() == ["ToolSearch", "ledger_list"]
        assert len(talk.declared()) == (len(names) - 1 if form.declares_all else 0)
        sizes.append(len(json.dumps({**talk.body, "tools": talk.body["tools"][: 2 if form.declares_all else None]})))
    assert abs(sizes[1] - sizes[0]) < 2_500, "the catalog has its budget, nothing else may grow"


@everywhere
@pytest.mark.requirement("N5")
def test_the_loader_is_there_only_while_something_is_deferred(form: Form):
    talk = form.talk({"resident": ("*",)})
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert "ToolSearch" not in talk.in_context()
    assert len(talk.in_context()) == len(NAMES)


@everywhere
@pytest.mark.requirement("N31", "N32", "O4")
def test_a_search_calls_nothing_of_the_caller_and_widens_nothing(form: Form):
    """It is answered from the registry alone: one request in, one request out, the target called by the caller only."""
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search("invoice_export")]), Move(calls=[("invoice_export", {"id": 1})]))
    assert talk.calls(reply) == [("invoice_export", {"id": 1})]
    assert talk.stop(reply) in ("tool_calls", "tool_use"), "the caller is asked, with the target's own name"
    known = {*NAMES, "ToolSearch"}
    assert talk.callable() <= known


@everywhere
@pytest.mark.requirement("N19")
def test_native_and_resend_show_the_caller_the_same(form: Form):
    if form.dialect == CHAT:
        pytest.skip("one strategy only")
    other = Form(form.dialect, "resend" if form.strategy == "native" else "native", form.stream)
    seen = []
    for which in (form, other):
        talk = which.talk()
        talk.load("invoice_export")
        seen.append([(talk.calls(reply), talk.text(reply), talk.stop(reply)) for reply in talk.replies])
    assert seen[0] == seen[1]


def _searched_by_the_caller(talk: Any) -> None:
    from tests.core.conversation import tools

    from loadpoint.toolbox import Toolbox

    talk.user("please do it")
    reply = talk.send(Move(calls=[search("invoice_export")]))
    box = Toolbox(tools(talk.dialect, NAMES))
    if talk.dialect == RESPONSES:
        talk.visible.append(box.answer(next(item for item in reply["output"] if item["type"].endswith("_call"))))
    elif talk.dialect == CHAT:
        talk.visible.append(box.answer(reply["choices"][0]["message"]["tool_calls"][0]))
    else:
        (call,) = [block for block in reply["content"] if block["type"] == "tool_use"]
        talk.visible.append({"role": "user", "content": [box.answer(call)]})
    talk.answer(talk.send(Move(calls=[("invoice_export", {"id": 1})])))
    talk.send(Move(text="done"))
