"""Structured output: only the answer's text is shown, and a stream of it is never held longer than it has to be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import CHAT, RESPONSES, Form, everywhere, search

from loadpoint.emulator import Move

TOOL = "invoice_export"
ANSWER = '{"total": 3}'


def structured(form: Form) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"total": {"type": "integer"}},
        "required": ["total"],
        "additionalProperties": False,
    }
    if form.dialect == CHAT:
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "total", "schema": schema}}}
    if form.dialect == RESPONSES:
        return {"text": {"format": {"type": "json_schema", "name": "total", "schema": schema, "strict": True}}}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


@everywhere
def test_only_the_last_rounds_text_is_shown(form: Form) -> None:
    talk = form.talk(extra=structured(form))
    talk.user("go")
    reply = talk.send(Move(text="I look for it.", calls=[search(TOOL)]), Move(text=ANSWER))
    assert talk.text(reply) == ANSWER
    talk.user("again")
    talk.send(Move(text=ANSWER))
    assert "I look for it." in json.dumps(talk.body[talk.key]), "the model keeps what it said"
    assert talk.report.prefix.stable
    assert talk.bare()[0] == 200


@everywhere
def test_text_that_is_the_answer_ends_the_turn_even_beside_a_search(form: Form) -> None:
    """What was released cannot be taken back, so that both ways of replying agree."""
    talk = form.talk(extra=structured(form))
    talk.user("go")
    reply = talk.send(Move(text=ANSWER, calls=[search(TOOL)]))
    assert talk.text(reply) == ANSWER
    assert talk.calls(reply) == []
    assert talk.stop(reply) in ("stop", "end_turn")
    talk.user("again")
    talk.send(Move(text=ANSWER))
    assert len(talk.results()) == 1, "the search was answered with the next message"
    assert TOOL in talk.callable()
    assert talk.bare()[0] == 200


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("strategy", ["native", "resend"])
def test_preamble_and_answer_in_two_blocks_beside_a_search(strategy: str, stream: bool) -> None:
    form = Form("anthropic.messages", strategy, stream)
    talk = form.talk(extra=structured(form))
    talk.user("go")
    first = Move(before=[{"type": "text", "text": "I look first."}], text=ANSWER, calls=[search(TOOL)])
    reply = talk.send(first, Move(text='{"total": 4}'))
    assert talk.text(reply) == '{"total": 4}'


@everywhere
@pytest.mark.parametrize("text", [ANSWER, '  \n {"total": 3}', "[1]", "No."])
def test_a_call_without_a_search_shows_its_text_whole(form: Form, text: str) -> None:
    talk = form.talk(extra=structured(form))
    talk.user("go")
    assert talk.text(talk.send(Move(text=text))) == text


@everywhere
def test_preamble_of_a_round_that_calls_the_callers_tool_is_shown(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)}, extra=structured(form))
    talk.user("go")
    reply = talk.send(Move(text="One moment.", calls=[("ledger_list", {"id": 1})]))
    assert talk.text(reply) == "One moment."
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]


@pytest.mark.parametrize(
    "form", [Form(CHAT, "resend", True), Form("anthropic.messages", "native", True), Form(RESPONSES, "native", True)]
)
def test_the_answer_streams_from_its_first_bracket_on(form: Form) -> None:
    talk = form.talk(extra=structured(form))
    talk.user("go")
    call = talk.begun()
    splice = call.splice()
    talk.moves = [Move(text='{"total": ' + "1" * 60 + "}")]
    _, raw = talk.post(call.body)
    frames = [frame + b"\n\n" for frame in raw.split(b"\n\n") if frame]
    shown = [bool(splice.feed(frame)) for frame in frames]
    texts = [at for at, frame in enumerate(frames) if b"111" in frame and b"response.completed" not in frame]
    assert texts
    assert all(shown[at] for at in texts), "held although it began with a bracket"


@pytest.mark.parametrize(
    "form", [Form(CHAT, "resend", True), Form("anthropic.messages", "native", True), Form(RESPONSES, "native", True)]
)
def test_a_round_that_cannot_search_is_never_held(form: Form) -> None:
    talk = form.talk(extra={**structured(form), **form.choice("none")})
    talk.user("go")
    call = talk.begun()
    splice = call.splice()
    talk.moves = [Move(text="Words and words and words, and no bracket at all in them.")]
    _, raw = talk.post(call.body)
    half = raw[: len(raw) * 3 // 4]
    assert b"Words" in b"".join(splice.feed(half))
