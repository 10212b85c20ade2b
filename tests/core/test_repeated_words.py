"""Two conversations of the same visible words are two: neither the rounds nor the settings of one reach the other."""

from __future__ import annotations

import pytest
from tests.bench import judge
from tests.core.conversation import CHAT, Form, search, unstreamed

from loadpoint.emulator import Move


@unstreamed
@pytest.mark.requirement("N34")
def test_each_keeps_its_own_hidden_rounds(form: Form) -> None:
    talk = form.talk({"cache": "caller", "catalog_tokens": 0})
    for query in ("invoice_create", "photo_list"):
        talk.visible = []
        talk.user("hello")
        talk.send(Move(calls=[search(query)]), Move(text="hi"))
        last, at = talk.body, len(talk.bodies)
        talk.user("and")
        talk.send(Move(text="ok"))
        assert talk.report.loaded[0].name == query
        assert not (talk.report.prefix.stable and judge.check([last, talk.bodies[at]], "native"))


def test_each_is_held_against_its_own_settings() -> None:
    talk = Form(CHAT, "resend", stream=False).talk()
    for extra in ({}, {"parallel_tool_calls": False}):
        talk.visible, talk.extra = [], extra
        for said in ("hello", "and"):
            talk.user(said)
            talk.send(Move(text="hi"))
        assert talk.report.prefix.broke is None
