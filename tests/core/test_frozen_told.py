"""What a load behind a bridge tells: what is near the best, and once more what no text of the conversation tells."""

from __future__ import annotations

import json

import pytest
from tests.bench import judge
from tests.core.conversation import LOADS, Form, tools
from tests.core.test_frozen import TOOL, answers_of, frozen, raw

from loadpoint import InProcessLedger, Toolbox
from loadpoint.emulator import Move


@pytest.mark.requirement("N14")
@frozen
def test_a_query_loads_what_is_near_the_best_and_names_a_few_more(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    talk.send(raw(talk, (LOADS, {"query": "archive one parcel"})), Move(text="ok"))
    assert talk.report.loaded[0].name == "parcel_archive"
    assert len(talk.report.loaded) <= 4
    (text,) = talk.results().values()
    assert "Also found, not loaded: " in json.dumps(text)


@pytest.mark.requirement("P17")
@frozen
def test_what_is_loaded_but_told_nowhere_is_told_again(form: Form) -> None:
    """The record of the search is lost; the call that is left says that the tool was loaded, not how it is used."""
    talk = form.talk()
    talk.load(TOOL)
    talk.restart()
    talk.user("again")
    talk.send(raw(talk, (LOADS, {"query": TOOL})), Move(text="ok"))
    assert json.dumps(talk.body).count(f"## {TOOL}") == 1
    talk.user("once more")
    talk.send(raw(talk, (LOADS, {"query": TOOL})), Move(text="ok"))
    assert json.dumps(talk.body).count(f"## {TOOL}") == 1, "it stands there now"
    assert not judge.check(talk.bodies[-3:], mode="frozen")


@pytest.mark.requirement("P17")
@frozen
def test_what_another_strategy_has_loaded_is_told_when_it_is_asked_for(form: Form) -> None:
    talk = form.talk()
    ledger = InProcessLedger()
    talk.policy = talk.policy.replace(strategy="resend")
    talk.restart(ledger=ledger)
    talk.load(TOOL)
    talk.policy = talk.policy.replace(strategy="frozen")
    talk.restart(ledger=ledger)
    for said in ("go", "again"):
        talk.user(said)
        talk.send(raw(talk, (LOADS, {"query": TOOL})), Move(text="ok"))
        assert json.dumps(talk.body).count(f"## {TOOL}") == 1


@frozen
def test_what_was_confirmed_before_the_record_was_lost_is_told_without_a_challenge(form: Form) -> None:
    talk = form.talk({"confirm": "model"})
    talk.user("go")
    confirmed = (LOADS, {"tools": [TOOL], "confirm": True})
    talk.answer(talk.send(raw(talk, confirmed), Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    talk.restart()
    talk.user("again")
    talk.send(raw(talk, (LOADS, {"query": TOOL})), Move(text="ok"))
    assert "confirmRequired" not in json.dumps(talk.body[talk.key])
    assert json.dumps(talk.body).count(f"## {TOOL}") == 1


@pytest.mark.requirement("N14")
@frozen
def test_an_application_that_answers_itself_loads_what_is_near_the_best_too(form: Form) -> None:
    box = Toolbox(tools(form.dialect))
    talk = form.talk({"discovery": "caller"})
    talk.user("go")
    text = json.dumps(answers_of(talk, talk.send(raw(talk, (LOADS, {"query": "archive one parcel"}))), box))
    assert 1 <= text.count("Parameters (JSON Schema)") <= 4
    assert "Also found, not loaded: " in text
