"""Histories that a caller has cut, mixed up or doubled: what the bare API takes we send so that it is taken, too."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.core.conversation import Conversation, Form, UpstreamError, search, unstreamed

from loadpoint.emulator import Move

Json = dict[str, Any]
RESIDENT = {"resident": ("ledger_list",)}
SEEDS = 40
_IDS = re.compile(r"(?:call|toolu)_\w{16,}")


def whole(form: Form) -> Conversation:
    """A conversation with a hidden search, and with two turns in which a search stands beside calls of the caller's."""
    talk = form.talk(RESIDENT)
    talk.load("invoice_export")
    talk.user("mixed")
    own = [("ledger_list", {"id": 1}), ("ledger_list", {"id": 2})]
    talk.answer(talk.send(Move(calls=[search("photo_list"), *own])))
    talk.answer(talk.send(Move(calls=[("photo_list", {"id": 3})])))
    talk.send(Move(text="done"))
    talk.user("mixed again")
    talk.answer(talk.send(Move(calls=[own[0], search("event_list")])))
    return talk


def broken(visible: list[Json], dice: random.Random) -> list[Json]:
    """One to three things that happen to histories: something is lost, doubled, or stands elsewhere."""
    out = copy.deepcopy(visible)
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        at = dice.randrange(len(out))
        how = dice.choice(["drop", "drop", "end", "start", "twice", "swap", "part"])
        if how == "drop" and len(out) > 1:
            del out[at]
        elif how == "end":
            del out[at + 1 :]
        elif how == "start":
            del out[:at]
        elif how == "twice":
            out.insert(dice.randrange(len(out)), copy.deepcopy(out[at]))
        elif how == "swap":
            other = dice.randrange(len(out))
            out[at], out[other] = out[other], out[at]
        elif how == "part":
            parts: Any = out[at].get("tool_calls") or out[at].get("content")
            if isinstance(parts, list) and len(parts) > 1:
                del parts[dice.randrange(len(parts))]
    return out


def tried(form: Form, base: Conversation) -> Iterator[tuple[list[Json], int, str]]:
    """Broken histories with the status of the bare request and the error of ours, with the records and without."""
    for seed in range(SEEDS):
        visible = broken(base.visible, random.Random(seed))
        for known in (True, False):
            talk = form.talk(RESIDENT)
            if known:
                talk.session = talk.fresh(ledger=base.session.ledger)
            talk.visible = copy.deepcopy(visible)
            talk.moves = [Move(text="ok")]
            status, _ = talk.post(talk.request().body)
            said = ""
            try:
                talk.send(Move(text="ok"))
            except UpstreamError as error:
                said = str(error)
            yield visible, status, said


@pytest.mark.requirement("N34")
@unstreamed
def test_what_the_bare_api_takes_is_taken_and_other_errors_name_what_is_the_callers(form: Form) -> None:
    found = list(tried(form, whole(form)))
    assert {status for _, status, _ in found} == {200, 400}
    assert [said for _, status, said in found if status == 200 and said] == []
    for visible, _, said in found:
        assert all(one in json.dumps(visible) for one in _IDS.findall(said)), said


@unstreamed
def test_a_turn_whose_results_are_lost_goes_on_when_they_are_given_again(form: Form) -> None:
    """Our results for a mixed turn wait until the caller's own are there, however often he tries without."""
    talk = form.talk(RESIDENT)
    talk.user("mixed")
    reply = talk.send(Move(calls=[("ledger_list", {"id": 1}), search("event_list")]))
    before = list(talk.visible)
    talk.user("never mind")
    with pytest.raises(UpstreamError) as raised:
        talk.send(Move(text="ok"))
    assert all(one in json.dumps(before) for one in _IDS.findall(str(raised.value)))
    talk.visible = before
    talk.answer(reply)
    talk.send(Move(calls=[("event_list", {"id": 1})]))
    assert "event_list" in talk.callable()
