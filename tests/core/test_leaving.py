"""Leaving: a history made under us is valid without us, and what passes through still loses our own items."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, Conversation, Form, everywhere, search, tools

from loadpoint._plan import Request
from loadpoint.emulator import Move

TOOL = "invoice_export"
SHOWN = [Form(MESSAGES, "native", stream) for stream in (False, True)]
shown = pytest.mark.parametrize("form", SHOWN, ids=["plain", "stream"])


@everywhere
@pytest.mark.parametrize("thinks", [False, True])
@pytest.mark.requirement("N34")
def test_the_bare_provider_takes_the_history_at_every_turn(form: Form, thinks: bool) -> None:
    """With thinking, at every turn that is over: while calls wait, only the last round's thinking may stand there."""
    if thinks and form.dialect == CHAT:
        pytest.skip("no thinking blocks in this API")
    said: dict[str, Any] = {"thinking": "let me see"} if thinks else {}
    extra = {"thinking": {"type": "adaptive"}} if thinks and form.dialect == MESSAGES else {}
    talk = form.talk({"resident": ("ledger_list",)}, extra=extra)
    for name in (TOOL, "photo_list"):
        talk.user(f"do {name}")
        first = Move(text="Looking. ", calls=[search(name)], **said)
        talk.answer(talk.send(first, Move(calls=[(name, {"id": 1}), ("ledger_list", {"id": 2})], **said)))
        if not thinks:
            _accepted(talk)
        talk.answer(talk.send(Move(calls=[search("event"), ("ledger_list", {"id": 3})], **said)))
        _accepted(talk)
        talk.send(Move(text="done", **said))
        _accepted(talk)


def _accepted(talk: Conversation) -> None:
    status, raw = talk.bare()
    assert status == 200, raw


@everywhere
def test_a_request_that_switches_off_sends_what_the_caller_wrote(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.user("without")
    before = json.dumps(talk.request().body)
    assert talk.begun({"x-loadpoint": " OFF "}).untouched
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"})
    assert json.dumps(talk.body) == before
    assert talk.report.strategy == "eager"


@everywhere
def test_a_conversation_that_was_off_for_a_while_comes_back(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.user("without")
    talk.send(Move(text="ok"), headers={"x-loadpoint": "off"})
    talk.user("with")
    talk.send(Move(text="ok"))
    assert talk.report.strategy == form.strategy
    assert TOOL in talk.callable()
    assert talk.report.prefix.broke == "rounds_rebuilt"


@shown
@pytest.mark.parametrize("path", ["/v1/messages/count_tokens", "/v1/messages/batches"])
def test_shown_items_are_turned_back_wherever_messages_go(form: Form, path: str) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    body: dict[str, Any] = {"model": talk.model, "messages": talk.visible, "tools": tools(MESSAGES)}
    if path.endswith("batches"):
        body = {"requests": [{"custom_id": "one", "params": {**body, "max_tokens": 100}}]}
    assert "srvtoolu_lp" in json.dumps(body)
    request = Request("POST", path, json.loads(json.dumps(body)), {}, talk.base, "key")
    call = talk.session.begin(request)
    assert call is not None
    assert not call.exchange
    assert "srvtoolu_lp" not in json.dumps(call.body)
    assert TOOL in json.dumps(call.body)


@shown
def test_counting_counts_what_would_be_sent(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.user("how much is it?")
    body = {"model": talk.model, "messages": talk.visible, "tools": tools(MESSAGES)}
    request = Request("POST", "/v1/messages/count_tokens", json.loads(json.dumps(body)), {}, talk.base, "key")
    counted = talk.session.begin(request)
    sent = talk.begun()
    assert counted.body["messages"] == sent.body["messages"]
    assert counted.body["tools"] == sent.body["tools"]


@shown
def test_text_that_mentions_our_ids_is_left_alone_byte_for_byte(form: Form) -> None:
    talk = form.talk()
    talk.user("what is srvtoolu_lp0_1_2_x?")
    assert talk.begun({"x-loadpoint": "off"}).untouched


@everywhere
@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/models", "/v1/files"])
def test_other_endpoints_are_none_of_ours(form: Form, path: str) -> None:
    talk = form.talk()
    assert talk.session.begin(Request("POST", path, {"input": "x"}, {}, talk.base, "key")) is None
    assert talk.session.begin(Request("GET", talk.path, {}, {}, talk.base, "key")) is None


@pytest.mark.parametrize("stream", [False, True])
def test_several_choices_pass_through_with_the_reason(stream: bool) -> None:
    talk = Form(CHAT, "resend", stream).talk(extra={"n": 2})
    talk.user("go")
    call = talk.begun()
    assert call.untouched
    assert "n > 1" in call.report.reason


@everywhere
def test_a_conversation_that_began_without_us_can_be_taken_over(form: Form) -> None:
    talk = form.talk({"strategy": "eager"})
    talk.user("go")
    talk.answer(talk.send(Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    talk.policy = talk.policy.replace(strategy=form.strategy)
    talk.session = talk.fresh()
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in talk.callable(), "its result is evidence"
    sent = 1 if form.keeps else 2
    assert len(talk.in_context() + talk.declared()) == (len(NAMES) + 1 if form.declares_all else sent)
    assert len(NAMES) == 60


@everywhere
def test_a_conversation_that_began_eager_stays_so(form: Form) -> None:
    """The decision is pinned: a list that grows over the threshold does not turn a running conversation around."""
    talk = form.talk({"strategy": "auto", "threshold_tokens": 2_000}, names=NAMES[:10])
    talk.user("go")
    talk.send(Move(text="ok"))
    talk.names = NAMES
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.strategy == "eager"
    talk.visible = []
    talk.user("anew")
    talk.send(Move(text="ok"))
    assert talk.report.strategy != "eager"


@everywhere
def test_a_conversation_that_loaded_stays_deferred(form: Form) -> None:
    talk = form.talk({"strategy": "auto", "threshold_tokens": 2_000})
    talk.load(TOOL)
    began = talk.reports[0].strategy
    talk.names = (TOOL, "photo_list")
    for fresh in (False, True):
        if fresh:
            talk.restart()
        talk.user("again")
        talk.send(Move(text="ok"))
        assert (talk.report.strategy == began) or fresh
