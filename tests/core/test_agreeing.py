"""Who agrees to a load: before somebody has, nothing is loaded, and what nobody agreed to cannot be called."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import Form, everywhere, search

from loadpoint.emulator import Move

TOOL = "invoice_export"


def yes(names: tuple[str, ...]) -> bool:
    assert names == (TOOL,)
    return True


async def later_yes(names: tuple[str, ...]) -> bool:
    return yes(names)


def late(_: tuple[str, ...]) -> bool:
    raise TimeoutError


async def later_late(_: tuple[str, ...]) -> bool:
    raise TimeoutError


async def nothing_said(_: tuple[str, ...]) -> None:
    return None


REFUSALS = [lambda _: False, lambda _: None, lambda _: "yes", late, later_late, nothing_said]


@everywhere
@pytest.mark.parametrize("confirm", [yes, later_yes], ids=["at once", "later"])
def test_what_the_application_agrees_to_is_loaded(form: Form, confirm: Any) -> None:
    talk = form.talk({"confirm": confirm, "load_at_most": 1})
    talk.load(TOOL)
    assert talk.calls(talk.replies[0]) == [(TOOL, {"id": 1})]
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    assert TOOL in talk.callable()


@everywhere
@pytest.mark.parametrize("at", range(len(REFUSALS)))
def test_a_refusal_a_timeout_and_silence_load_nothing(form: Form, at: int) -> None:
    talk = form.talk({"confirm": REFUSALS[at], "load_at_most": 1})
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="I may not"))
    assert talk.text(reply) == "I may not"
    assert "did not agree" in json.dumps(talk.body[talk.key])
    assert not talk.report.loaded
    assert TOOL not in talk.callable()
    talk.user("again")
    talk.send(Move(text="still not"))
    assert TOOL not in talk.callable()
    assert talk.report.prefix.stable


@everywhere
@pytest.mark.requirement("P8", "P9", "P10", "P11", "P12", "P13", "P14", "P15", "P16")
def test_the_model_confirms_in_a_second_call(form: Form) -> None:
    talk = form.talk({"confirm": "model", "load_at_most": 1})
    talk.user("go")
    first = Move(calls=[search(TOOL)])
    again = Move(calls=[search(TOOL, confirm=True)])
    reply = talk.send(first, again, Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    asked = json.dumps(talk.bodies[1][talk.key])
    assert "confirmRequired: true" in asked
    assert "Export one invoice" in asked, "what it would load, by name and description"
    assert "confirm" in asked.partition("To confirm, call")[2]
    assert TOOL not in talk.callable(talk.bodies[1]), "the challenge changes nothing"
    assert TOOL in talk.callable(talk.bodies[2])


@everywhere
def test_a_tool_that_nobody_agreed_to_cannot_be_called(form: Form) -> None:
    """Else the gate would have a way around it: `unloaded_call="load"` is the default."""
    talk = form.talk({"confirm": "model"})
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]), Move(text="I have to load it first"))
    assert talk.calls(reply) == []
    assert not talk.report.loaded


@everywhere
def test_a_load_that_was_agreed_to_is_not_asked_about_again(form: Form) -> None:
    asked: list[tuple[str, ...]] = []

    def once(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return True

    talk = form.talk({"confirm": once, "load_at_most": 1})
    talk.load(TOOL)
    talk.user("more")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert asked == [(TOOL,)]
