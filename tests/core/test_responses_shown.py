"""Searches shown as the provider's own items of the Responses API: what the caller sees, and what is sent again."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import ADDS, NAMES, RESPONSES, Conversation, Form, search

import loadpoint
from loadpoint.emulator import Move
from loadpoint_adapters._dialects.openai_responses import OpenAIResponses

TOOL = "invoice_export"
WAYS = (("native", ""), ("native", ADDS), ("resend", ""))
FORMS = [Form(RESPONSES, strategy, stream, model) for strategy, model in WAYS for stream in (False, True)]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda f: f"{f.model or f.strategy}-{'stream' if f.stream else ''}")
natives = pytest.mark.parametrize(
    "form", [form for form in FORMS if form.strategy == "native"], ids=lambda f: f"{f.model or f.strategy}-{f.stream}"
)
PAIR = ["tool_search_call", "tool_search_output"]


def kinds(reply: dict[str, Any]) -> list[str]:
    return [item["type"] for item in reply["output"]]


def canonical(items: list[Any]) -> list[str]:
    return [json.dumps(item, sort_keys=True) for item in items]


@forms
def test_shown_items_stand_behind_their_round_and_before_the_next(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.user("go")
    moves = [Move(text="Looking.", calls=[search(TOOL), search("photo_list")]), Move(calls=[search("zzqx vvkw")])]
    reply = talk.send(*moves, Move(text="Here."))
    assert kinds(reply) == ["message", *PAIR, *PAIR, *PAIR, "message"]
    calls = [item for item in reply["output"] if item["type"] == PAIR[0]]
    assert [json.loads(call["arguments"]["call"])["query"] for call in calls] == [TOOL, "photo_list", "zzqx vvkw"]
    assert [call["id"].removeprefix("tsc_lp").split("_")[:3] for call in calls] == [
        ["0", "1", "3"],
        ["0", "2", "3"],
        ["1", "0", "1"],
    ]
    outputs = [item for item in reply["output"] if item["type"] == PAIR[1]]
    for call, output in zip(calls, outputs, strict=True):
        assert (call["execution"], call["call_id"], output["call_id"]) == ("server", None, None)
        assert call["arguments"]["paths"] == [tool["name"] for tool in output["tools"]]
    assert outputs[2]["tools"] == []
    assert outputs[0]["tools"][0]["defer_loading"] is True
    assert len({item["id"] for item in reply["output"]}) == len(reply["output"])
    assert reply["output"][0]["content"][0]["text"] == "Looking."


@forms
def test_nothing_shown_is_ever_sent(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    assert "tsc_lp" in json.dumps(talk.visible)
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))
    assert TOOL in talk.callable()
    talk.user("off")
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"})
    assert len(talk.in_context()) == len(NAMES)
    sent = json.dumps(talk.bodies)
    assert "tsc_lp" not in sent
    assert "tso_lp" not in sent


@forms
def test_shown_histories_are_valid_after_clean(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.visible = loadpoint.clean(talk.visible)
    assert not re.search(r"ts[co]_lp", json.dumps(talk.visible))
    assert "tool_search" not in json.dumps(talk.visible)
    assert talk.bare()[0] == 200


@forms
def test_with_the_ledger_the_rounds_are_replayed_as_they_were(form: Form) -> None:
    talk = form.talk({"discovery": "shown", "resident": ("ledger_list",)})
    talk.user("go")
    first = Move(text="Looking.", calls=[search(TOOL), ("ledger_list", {"id": 1}), search("zzqx")])
    talk.answer(talk.send(first))
    talk.answer(talk.send(Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


def test_an_id_that_cannot_be_told_apart_is_restored_from_its_names() -> None:
    talk = Form(RESPONSES, "native", False).talk({"discovery": "shown"})
    talk.user("go")
    reply = talk.send(Move(calls=[("ToolSearch", {"query": TOOL}, "call-with-hyphens")]), Move(text="Here."))
    item = next(item for item in reply["output"] if item["type"] == PAIR[0])
    assert item["id"].startswith("tsc_lpx")
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable, "the ledger knows"
    talk.restart()
    talk.user("and again")
    talk.send(Move(text="ok"))
    assert TOOL in talk.callable()
    assert "_lpx" not in json.dumps(talk.body)


@natives
@pytest.mark.parametrize("lost", ["tool_search_call", "tool_search_output"])
def test_half_a_shown_search_is_whole_again_or_gone(form: Form, lost: str) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.visible = [item for item in talk.visible if item.get("type") != lost]
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))
    assert TOOL in talk.callable(), "the call of the tool itself succeeded"
    assert not re.search(r"ts[co]_lp", json.dumps(talk.body))


@natives
def test_references_to_shown_items_leave(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.visible = [
        {"type": "item_reference", "id": item["id"]} if item.get("type") in PAIR else item for item in talk.visible
    ]
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))
    assert "item_reference" not in json.dumps(talk.body)


def test_a_request_without_ours_is_the_same_object() -> None:
    dialect = OpenAIResponses()
    body = {"model": "m", "input": [{"role": "user", "content": "tsc_lp0_1_2_x"}]}
    assert dialect.turned_back(body) is body
    ours: dict[str, Any] = {"type": "tool_search_call", "id": "tsc_lp0_0_1_call_a", "arguments": {}}
    thought: dict[str, Any] = {"type": "reasoning", "id": "rs_1", "summary": []}
    assert dialect.turned_back({**body, "input": [thought, ours]})["input"] == []
    assert dialect.turned_back({"items": [*body["input"], ours]})["items"] == body["input"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/responses", "create"),
        ("/openai/v1/responses/compact?x=1", "batch"),
        ("/conversations", "batch"),
        ("/v1/conversations/conv_1/items", "batch"),
        ("/conversations/conv_1", None),
    ],
)
def test_items_that_are_stored_leave_ours_behind(path: str, kind: str | None) -> None:
    assert OpenAIResponses().operation("POST", path, {}) == kind
    assert OpenAIResponses().operation("GET", path, {}) is None


# ------------------------------------------------------------------------- restored from the shown items alone

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["search", "two", "text and search", "mixed", "call", "two with text", "thought"]),
        st.integers(0, 59),
    ),
    min_size=1,
    max_size=3,
)


def play(talk: Conversation, plan: list[list[tuple[str, int]]]) -> None:
    seen: set[int] = set()
    for at, steps in enumerate(plan):
        talk.user(f"request {at}")
        hidden: list[Move] = []
        for kind, number in steps:
            both = {number, (number + 7) % 60}
            if both & seen or "ledger_list" in (NAMES[n] for n in both):
                continue  # what is callable already is answered in words, which items do not hold
            seen |= both
            text = "Looking. " if "text" in kind else ""
            calls = [search(NAMES[number], max_results=1)]
            if kind.startswith("two"):
                calls.append(search(NAMES[(number + 7) % 60], max_results=1))
            thinking = "where" if kind == "thought" else ""
            if kind in ("mixed", "call"):
                real = ("ledger_list", {"id": at})
                made = [*calls, real] if kind == "mixed" else [real]
                talk.answer(talk.send(*hidden[:3], Move(text=text, calls=made)))
                hidden = []
            else:
                hidden.append(Move(text=text, calls=calls, thinking=thinking))
        talk.send(*hidden[:3], Move(text=f"answer {at}"))


@settings(max_examples=40)
@given(plan=st.lists(STEPS, min_size=1, max_size=3), stream=st.booleans())
def test_items_alone_restore_what_was_sent(plan: Any, stream: bool) -> None:
    """Another process, no ledger: rounds, order, parallel calls, mixed turns and ids come from the items."""
    form = Form(RESPONSES, "native", stream)
    talk = form.talk({"discovery": "shown", "resident": ("ledger_list",), "load_at_most": 1, "max_rounds": 6})
    play(talk, plan)
    sent = canonical(talk.body["input"])
    talk.restart()
    talk.user("another process")
    talk.send(Move(text="ok"))
    assert canonical(talk.body["input"])[: len(sent)] == sent
    talk.visible = loadpoint.clean(talk.visible)
    status, raw = talk.bare()
    assert status == 200, raw


@settings(max_examples=25)
@given(plan=st.lists(STEPS, min_size=1, max_size=3), stream=st.booleans(), strategy=st.sampled_from(WAYS[1:]))
def test_items_alone_restore_what_was_loaded_in_the_other_forms(plan: Any, stream: bool, strategy: Any) -> None:
    form = Form(RESPONSES, strategy[0], stream, strategy[1])
    talk = form.talk({"discovery": "shown", "resident": ("ledger_list",), "load_at_most": 1, "max_rounds": 6})
    play(talk, plan)
    loaded = talk.callable()
    talk.restart()
    talk.user("another process")
    talk.send(Move(text="ok"))
    assert talk.callable() == loaded


@natives
@pytest.mark.parametrize("by", ["reply", "conversation"])
def test_a_conversation_that_the_server_holds_shows_them_too(form: Form, by: str) -> None:
    talk = form.talk({"discovery": "shown"})
    if by == "conversation":
        status, raw = talk.post({}, "/conversations")
        assert status == 200
        talk.extra = {"conversation": json.loads(raw)["id"]}
    talk.user("go")
    for name in (TOOL, "photo_list"):
        reply = talk.send(Move(calls=[search(name, max_results=1)]), Move(calls=[(name, {"id": 1})]))
        assert kinds(reply) == [*PAIR, "function_call"]
        if by == "reply":
            talk.extra = {"previous_response_id": reply["id"]}
        call_id = reply["output"][-1]["call_id"]
        talk.visible = [{"type": "function_call_output", "call_id": call_id, "output": "done"}]
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable
    assert not re.search(r"ts[co]_lp", json.dumps(talk.bodies))


@forms
def test_a_hidden_history_is_not_shown_afterwards_and_the_other_way_round(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.policy = talk.policy.replace(discovery="shown")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.load("photo_list")
    talk.policy = talk.policy.replace(discovery="hidden")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    talk.send(Move(text="ok"))
    assert {TOOL, "photo_list"} <= talk.callable()
    assert talk.report.prefix.stable
    assert not re.search(r"ts[co]_lp", json.dumps(talk.bodies))


@natives
@pytest.mark.parametrize("query", [TOOL, "zzqx vvkw"])
def test_what_a_search_beside_a_call_loads_stands_behind_the_callers_results(form: Form, query: str) -> None:
    """Where it was sent with the record, and where it is restored from the items."""
    orders: list[list[str]] = []
    for known in (True, False):
        talk = form.talk({"discovery": "shown", "resident": ("ledger_list",)})
        talk.user("go")
        talk.answer(talk.send(Move(calls=[search(query), ("ledger_list", {"id": 1})])))
        if not known:
            talk.restart()
        talk.send(Move(text="done"))
        orders.append([str(item.get("type") or item["role"]) for item in talk.body["input"]])
    assert orders[0] == orders[1]
