"""`CallReport`: every value of one logical call, told once, printable, JSON-ready."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, Conversation, Form, everywhere, search

from loadpoint import CallReport
from loadpoint.emulator import Move

TOOL = "invoice_export"


@everywhere
@pytest.mark.requirement("N14", "N15", "N40")
def test_a_call_with_a_search_reports_all_of_it(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    report = talk.report
    assert report.strategy == form.strategy
    assert report.load_point == form.load_point
    assert report.reason
    assert report.resident == ("ledger_list",)
    assert report.deferred == len(NAMES) - 1
    assert 1 <= len(report.loaded) <= 4
    assert (report.loaded[0].name, report.loaded[0].why, report.loaded[0].when) == (TOOL, "search", 0)
    assert (report.searches[0].query, report.searches[0].no_match) == (TOOL, False)
    assert report.searches[0].hits[0] == TOOL
    assert len(report.rounds) == 2
    assert report.added_rounds == 1
    assert all(entry.usage for entry in report.rounds)
    assert form.declares_all or all(entry.cost is not None for entry in report.rounds), "nobody knows that one's price"
    assert report.tokens.saved == report.tokens.eager - report.tokens.sent > 0
    assert report.tokens.context > report.tokens.sent
    assert report.prefix.broke == "first_request"


@everywhere
def test_the_estimates_are_near_what_the_provider_counts(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    usage = talk.report.rounds[-1].usage
    counted = usage.get("prompt_tokens") or sum(
        usage.get(key) or 0 for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )
    assert counted / 2 < talk.report.tokens.context < counted * 2


@everywhere
@pytest.mark.parametrize("streamed_ids", ["req_1"])
def test_milliseconds_and_request_ids_are_those_of_the_rounds(form: Form, streamed_ids: str) -> None:
    talk = form.talk()
    talk.user("go")
    call = talk.begun()
    talk.moves = [Move(calls=[search(TOOL)]), Move(text="ok")]
    splice = call.splice() if form.stream else None
    body: Any = call.body
    for at in range(2):
        _, raw = talk.post(body)
        if splice is None:
            body = call.feed(json.loads(raw), request_id=f"{streamed_ids}{at}", ms=10.0 + at)
        else:
            splice.feed(raw)
            body = splice.end(request_id=f"{streamed_ids}{at}", ms=10.0 + at)
            splice.closing()
    assert body is None
    assert [(entry.request_id, entry.ms) for entry in call.report.rounds] == [("req_10", 10.0), ("req_11", 11.0)]
    assert call.report.added_ms == 10.0


@everywhere
def test_the_visible_usage_is_the_sum_of_the_rounds(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    if form.dialect == CHAT and form.stream:
        talk.extra = {"stream_options": {"include_usage": True}}
        pytest.skip("the usage chunk has no choices; test_stream_cuts.py reads it")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    field = "completion_tokens" if form.dialect == CHAT else "output_tokens"
    assert reply["usage"][field] == sum(entry.usage[field] for entry in talk.report.rounds)


@everywhere
@pytest.mark.requirement("O14", "O15", "N42")
def test_an_eager_call_says_what_deferral_would_have_sent(form: Form) -> None:
    talk = form.talk({"strategy": "auto", "threshold_tokens": 1_000_000})
    talk.user("go")
    talk.send(Move(text="ok"))
    report = talk.report
    assert report.strategy == "eager"
    assert "deferral would have sent about" in report.reason
    assert report.reason.count("deferral would have sent") == 1
    assert report.tokens.sent == report.tokens.eager > 0
    assert report.tokens.saved == 0
    assert len(talk.in_context()) == len(NAMES)


@everywhere
@pytest.mark.parametrize("reason", ["off", "no tools", "duplicates"])
def test_what_is_passed_through_is_reported_with_the_reason(form: Form, reason: str) -> None:
    talk = form.talk(names=(*NAMES, NAMES[0]) if reason == "duplicates" else NAMES)
    talk.server.rules = "off"
    if reason == "no tools":
        talk.extra = {"tools": []}
    talk.user("go")
    before = json.dumps(talk.request().body)
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"} if reason == "off" else None)
    assert json.dumps(talk.bodies[0], separators=(", ", ": ")) == before
    if reason == "no tools":
        assert not talk.reports or talk.report.strategy == "eager"
    else:
        assert {"off": "switched off", "duplicates": "duplicate"}[reason] in talk.report.reason


@everywhere
def test_a_report_prints_in_at_most_eight_lines_and_is_json(form: Form) -> None:
    talk = form.talk({"max_rounds": 8, "resident": ("nothing_like_it",)})
    talk.user("go")
    moves = [Move(calls=[search(f"thing {at}")]) for at in range(6)]
    talk.send(*moves, Move(text="ok"))
    text = str(talk.report)
    assert len(text.splitlines()) <= 8
    assert "6 extra rounds" in text
    again = json.loads(json.dumps(talk.report.as_json()))
    assert again["rounds"][0]["usage"] == talk.report.rounds[0].usage
    assert set(again) == set(CallReport.__dataclass_fields__)


@everywhere
def test_a_call_whose_tools_nobody_counted_does_not_print_noughts(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"})
    assert str(talk.report).splitlines()[0].startswith("sent as it came, 0 extra rounds, +")
    assert str(talk.report).splitlines()[1:] == ["eager: switched off for this request"]


@everywhere
@pytest.mark.parametrize("strategy", ["deferred", "eager"])
def test_a_callback_that_raises_does_no_harm(form: Form, strategy: str, caplog: pytest.LogCaptureFixture) -> None:
    def fails(report: CallReport) -> None:
        raise RuntimeError("the callback is broken")

    talk = form.talk({"strategy": "eager"} if strategy == "eager" else None)
    talk.session.on_report = fails
    with caplog.at_level(logging.ERROR):
        talk.user("go")
        assert talk.text(talk.send(Move(text="ok"))) == "ok"
    assert "on_report raised" in caplog.text


@everywhere
def test_every_call_is_reported_once(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    assert len(talk.reports) == 2
    eager = form.talk({"strategy": "eager"})
    eager.user("go")
    eager.send(Move(text="ok"))
    assert len(eager.reports) == 1


@everywhere
def test_a_fault_of_ours_hands_over_the_reply_and_is_reported(
    form: Form, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    talk = form.talk()
    talk.user("go")
    monkeypatch.setattr("loadpoint._engine.Call._step", lambda self, view: 1 / 0)
    reply = talk.send(Move(text="an answer"))
    assert talk.text(reply) == "an answer"
    assert len(talk.reports) == 1
    assert any("fault in loadpoint" in text for text in talk.report.warnings)


@everywhere
def test_a_reply_that_cannot_be_remembered_is_handed_over(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    talk = form.talk()
    talk.user("go")
    monkeypatch.setattr("loadpoint._session.records", lambda call, result: 1 / 0)
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="an answer"))
    assert talk.text(reply) == "an answer"
    assert len(talk.reports) == 1
    assert talk.report.added_rounds == 1


@pytest.mark.parametrize("dialect", [CHAT, MESSAGES])
def test_a_reply_of_an_unknown_shape_is_handed_over(dialect: str) -> None:
    talk = Conversation(dialect)
    talk.user("go")
    call = talk.begun()
    odd = {"id": "x", "odd": True}
    assert call.feed(odd) is None
    assert call.result is odd
    assert len(talk.reports) == 1


@everywhere
def test_instructions_that_name_deferred_tools_are_pointed_out(form: Form) -> None:
    talk = form.talk()
    if form.dialect == MESSAGES:
        talk.extra = {"system": f"Always call {TOOL} first."}
    else:
        talk.visible.append({"role": "system", "content": f"Always call {TOOL} first."})
    talk.user("go")
    talk.send(Move(text="ok"))
    assert any(TOOL in text and "resident" in text for text in talk.report.warnings)
