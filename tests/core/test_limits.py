"""Rounds: how many there may be, what the last one allows, what is kept of them, and replies that end early."""

from __future__ import annotations

import json

import pytest
from tests.core.conversation import CHAT, MESSAGES, RESPONSES, Form, UpstreamError, everywhere, search

from loadpoint.emulator import Move
from loadpoint.errors import RoundLimitError, SearchLoopError

TOOL = "invoice_export"


@everywhere
def test_the_last_permitted_round_cannot_search(form: Form) -> None:
    talk = form.talk({"max_rounds": 3})
    talk.user("go")
    moves = [Move(calls=[search("invoice")]), Move(calls=[search("parcel")]), Move(text="enough")]
    reply = talk.send(*moves)
    assert talk.text(reply) == "enough"
    none = form.choice("none")["tool_choice"]
    assert [body.get("tool_choice") for body in talk.bodies] == [None, None, none]
    assert talk.bodies[1]["tools"] == talk.bodies[2]["tools"] or form.strategy == "resend" or talk.declared()
    assert "search_limit" in talk.report.warnings
    assert talk.report.added_rounds == 2


@everywhere
def test_two_rounds_are_one_search_and_one_reply(form: Form) -> None:
    talk = form.talk({"max_rounds": 2})
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="found"))
    assert talk.text(reply) == "found"
    assert "search_limit" in talk.report.warnings


@everywhere
def test_one_round_leaves_nothing_to_search_with(form: Form) -> None:
    talk = form.talk({"max_rounds": 1})
    talk.user("go")
    talk.send(Move(text="hello"))
    assert talk.report.strategy == "eager"
    assert "max_rounds" in talk.report.reason
    assert len(talk.in_context()) == 60


@everywhere
def test_one_round_is_enough_where_the_application_answers_the_loader(form: Form) -> None:
    talk = form.talk({"max_rounds": 1, "discovery": "caller"})
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]))
    assert [name for name, _ in talk.calls(reply)] == [form.loader]
    assert "tool_choice" not in talk.body


@everywhere
def test_a_provider_that_searches_on_gets_a_typed_error_with_the_paid_rounds(form: Form) -> None:
    talk = form.talk({"max_rounds": 2})
    talk.user("go")
    with pytest.raises(SearchLoopError) as caught:
        talk.send(Move(calls=[search(TOOL)]), Move(calls=[search("parcel")]))
    assert isinstance(caught.value, RoundLimitError)
    assert len(caught.value.rounds) == len(caught.value.usage) == 2
    assert all(usage for usage in caught.value.usage)
    assert "max_rounds=2" in str(caught.value)


@everywhere
def test_the_same_query_is_answered_once_more_and_then_no_more(form: Form) -> None:
    talk = form.talk({"max_rounds": 8})
    talk.user("go")
    reply = talk.send(*[Move(calls=[search("invoice")])] * 3, Move(text="enough"))
    assert talk.text(reply) == "enough"
    texts = [json.dumps(result) for result in talk.results().values()]
    assert "answered before" in texts[2]
    assert "answered before" not in texts[1]
    assert talk.body["tool_choice"] == form.choice("none")["tool_choice"]
    assert talk.report.added_rounds == 3


@everywhere
def test_an_invalid_call_in_the_last_round_goes_to_the_caller(form: Form) -> None:
    """Nothing can be answered any more: he gets what the bare SDK would give. Through a bridge that is no call."""
    talk = form.talk({"max_rounds": 2})
    talk.user("go")
    reply = talk.send(Move(calls=[search("parcel")]), Move(calls=[(TOOL, {"id": "x"})]))
    assert talk.calls(reply) == ([] if form.frozen else [(TOOL, {"id": "x"})])


@everywhere
def test_a_search_beside_a_real_call_in_the_last_round_is_no_loop(form: Form) -> None:
    talk = form.talk({"max_rounds": 2, "resident": ("ledger_list",)})
    talk.user("go")
    reply = talk.send(Move(calls=[search("parcel")]), Move(calls=[search("photo"), ("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="ok"))


@everywhere
@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "content_filter", "pause_turn"])
def test_a_reply_that_ends_early_is_the_last_and_keeps_its_reason(form: Form, stop: str) -> None:
    reasons = {CHAT: {"max_tokens": "length", "content_filter": "content_filter"}}
    reasons[MESSAGES] = {name: name for name in ("max_tokens", "refusal", "pause_turn")}
    reasons[RESPONSES] = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
    if stop not in reasons[form.dialect]:
        pytest.skip("this API has no such reason")
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(text="I", calls=[("ToolSearch", {"query": TOOL})], stop=stop))
    assert talk.stop(reply) == reasons[form.dialect][stop]
    assert talk.text(reply) == "I"
    assert talk.calls(reply) == []
    assert len(talk.bodies) == 1
    talk.user("go on")
    talk.send(Move(text="fine"))
    assert talk.bare()[0] == 200


@everywhere
def test_a_reply_of_nothing_but_an_unfinished_search_leaves_a_valid_history(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    whole = form.dialect == MESSAGES and not form.stream
    arguments = {"query": ""} if whole else '{"que'
    reply = talk.send(Move(calls=[("ToolSearch", arguments)], stop="max_tokens"))
    assert talk.stop(reply) in ("length", "max_tokens", "max_output_tokens")
    assert talk.calls(reply) == []
    talk.user("go on")
    talk.send(Move(text="fine"))
    # A response without items leaves nothing in the history, so that the next request is the first one once more.
    assert talk.report.prefix.stable or (form.dialect == RESPONSES and talk.report.prefix.broke == "first_request")
    assert talk.bare()[0] == 200


@everywhere
def test_a_failed_later_round_is_raised_and_the_paid_ones_are_not_paid_again(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    with pytest.raises(UpstreamError):
        talk.send(Move(calls=[search(TOOL)]), Move.fault(529))
    paid = len(talk.bodies)
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert len(talk.bodies) == paid + 1
    assert talk.report.added_rounds == 1, "what was paid for is in the report"
    assert len(talk.report.rounds) == 2
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


@everywhere
def test_two_paid_rounds_survive_two_failures(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    with pytest.raises(UpstreamError):
        talk.send(Move(text="One. ", calls=[search(TOOL)]), Move.fault(500))
    with pytest.raises(UpstreamError):
        talk.send(Move(text="Two. ", calls=[search("parcel")]), Move.fault(500))
    reply = talk.send(Move(text="Three."))
    assert talk.text(reply) == "One. Two. Three."
    assert len(talk.report.rounds) == 3


@everywhere
def test_a_call_that_succeeded_never_answers_another(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    with pytest.raises(UpstreamError):
        talk.send(Move(calls=[search(TOOL)]), Move.fault(529))
    talk.send(Move(text="first"))
    talk.visible.pop()
    sent = len(talk.bodies)
    reply = talk.send(Move(text="second"))
    assert talk.text(reply) == "second"
    assert len(talk.bodies) == sent + 1
    assert not talk.results(), "the paid round was handed out once"


@everywhere
def test_another_body_is_not_answered_by_paid_rounds(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    with pytest.raises(UpstreamError):
        talk.send(Move(calls=[search(TOOL)]), Move.fault(529))
    talk.visible = []
    talk.user("something else")
    talk.send(Move(text="ok"))
    assert not talk.results()


@everywhere
def test_a_cut_stream_starts_nothing_and_shows_what_came(form: Form) -> None:
    if not form.stream:
        pytest.skip("streams only")
    talk = form.talk()
    talk.user("go")
    call = talk.begun()
    splice = call.splice()
    talk.moves = [Move(text="Let me see", calls=[search(TOOL)])]
    _, raw = talk.post(call.body)
    out = splice.feed(raw[: len(raw) * 2 // 3])
    assert splice.end() is None
    shown = b"".join([*out, *splice.closing()])
    assert b"ToolSearch" not in shown
    assert b"message_stop" not in shown
    assert b"[DONE]" not in shown


@everywhere
def test_an_error_event_ends_the_stream_as_it_came(form: Form) -> None:
    if not form.stream:
        pytest.skip("streams only")
    talk = form.talk()
    talk.user("go")
    call = talk.begun()
    splice = call.splice()
    talk.moves = [Move(text="Let me see", cut_events=4, stream_error="Overloaded")]
    _, raw = talk.post(call.body)
    out = splice.feed(raw)
    assert splice.end() is None
    assert b"Overloaded" in b"".join([*out, *splice.closing()])
