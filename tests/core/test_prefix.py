"""The prefix verdict: each reason, what is predicted, and what the bill says against it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import (
    CHAT,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    everywhere,
    search,
    unstreamed,
)

from loadpoint._prefix import against_bill
from loadpoint._report import Prefix
from loadpoint.emulator import Move

TOOL = "invoice_export"


def begun(form: Form, **policy: Any) -> Conversation:
    talk = form.talk({"resident": ("ledger_list",), **policy})
    talk.user("hello")
    talk.send(Move(text="hi"))
    return talk


def verdict(talk: Conversation, text: str = "again") -> Any:
    talk.user(text)
    talk.send(Move(text="ok"))
    return talk.report.prefix


@everywhere
def test_the_first_request_has_no_predecessor(form: Form) -> None:
    found = begun(form).report.prefix
    assert (found.stable, found.predicted, found.broke) == (None, None, "first_request")


@everywhere
@pytest.mark.requirement("N17", "N18")
def test_a_load_is_stable_natively_and_one_break_where_the_list_is_resent(form: Form) -> None:
    talk = begun(form)
    talk.load(TOOL)
    reasons = [report.prefix.broke for report in talk.reports]
    assert reasons == ["first_request", None, None], "within a call the second round is not judged as a predecessor"
    tools_sent = [talk.in_context(body) for body in talk.bodies]
    if form.strategy != "resend":
        assert len({tuple(names) for names in tools_sent}) == 1
    else:
        assert tools_sent[-1] == [*tools_sent[0], TOOL], "appended behind everything"


@everywhere
def test_a_stable_prefix_is_predicted_in_tokens(form: Form) -> None:
    talk = begun(form)
    found = verdict(talk)
    assert found.stable
    assert found.broke is None
    assert found.predicted == talk.reports[0].tokens.context


@everywhere
def test_a_resident_that_came_grows_the_tools(form: Form) -> None:
    talk = begun(form)
    talk.policy = talk.policy.replace(resident=("ledger_list", "photo_list"))
    talk.session = talk.fresh(ledger=talk.session.ledger)
    found = verdict(talk)
    assert (found.stable, found.broke) == ((True, None) if form.keeps else (False, "tools_grew"))
    assert ("photo_list" in talk.callable()) is not form.frozen, "the next load tells of it"
    assert verdict(talk, "once more").stable


@everywhere
def test_a_resident_that_changed_or_left(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list", "photo_list", "event_list")})
    talk.user("hello")
    talk.send(Move(text="hi"))
    talk.names = [name for name in NAMES if name != "ledger_list"]
    found = verdict(talk)
    assert (found.stable, found.broke) == ((True, None) if form.frozen else (False, "tool_changed"))
    assert found.predicted is not None
    assert found.predicted > 0, "what stands before it is still shared"


@everywhere
def test_a_changed_system_prompt(form: Form) -> None:
    talk = form.talk()
    _system(talk, "Be brief.")
    talk.user("hello")
    talk.send(Move(text="hi"))
    _system(talk, "Be very brief.")
    found = verdict(talk)
    assert (found.stable, found.broke) == (False, "system_changed")
    assert verdict(talk, "once more").stable


def _system(talk: Conversation, text: str) -> None:
    if talk.dialect == MESSAGES:
        talk.extra = {"system": text}
    elif talk.visible:
        talk.visible[0] = {"role": "system", "content": text}
    else:
        talk.visible.append({"role": "system", "content": text})


@everywhere
def test_a_history_that_the_caller_rewrote(form: Form) -> None:
    talk = begun(form)
    talk.user("one")
    talk.answer(talk.send(Move(calls=[("ledger_list", {"id": 1})])))
    talk.send(Move(text="done"))
    talk.visible[0] = {"role": "user", "content": "something else at the start"}
    found = verdict(talk)
    assert found.stable is False or found.broke == "unknown_predecessor"
    assert found.broke in ("history_rewritten", "rounds_rebuilt", "unknown_predecessor")


@everywhere
def test_a_conversation_of_unknown_origin(form: Form) -> None:
    talk = begun(form)
    talk.restart()
    found = verdict(talk)
    assert (found.stable, found.broke) == (None, "unknown_predecessor")
    assert verdict(talk, "once more").stable


@pytest.mark.parametrize("stream", [False, True])
def test_another_strategy(stream: bool) -> None:
    talk = begun(Form(MESSAGES, "native", stream))
    talk.policy = talk.policy.replace(strategy="resend")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    found = verdict(talk)
    assert (found.stable, found.broke) == (False, "strategy_changed")


@everywhere
def test_the_catalog_stays_as_it_was_when_the_registry_grows(form: Form) -> None:
    talk = begun(form)
    talk.names = (*NAMES, "parcel_frobnicate")
    found = verdict(talk)
    assert found.stable, "the first text is kept where the ledger knows it"
    talk.user("use it")
    reply = talk.send(Move(calls=[search("parcel_frobnicate")]), Move(calls=[("parcel_frobnicate", {"id": 1})]))
    assert talk.calls(reply) == [("parcel_frobnicate", {"id": 1})]


@pytest.mark.parametrize("stream", [False, True])
def test_the_bill_is_read_and_agrees(stream: bool) -> None:
    talk = Form(MESSAGES, "native", stream).talk({"cache": "auto"})
    for at in range(3):
        talk.user(f"turn {at} " + "with many words in it " * 900)
        talk.send(Move(text="ok"))
    found = talk.report.prefix
    assert found.stable
    assert found.billed is not None
    assert found.billed > 1000
    assert not found.disagrees


@pytest.mark.parametrize("stream", [False, True])
def test_a_bill_without_a_cache_read_disagrees_with_a_stable_prefix(stream: bool) -> None:
    talk = Form(MESSAGES, "native", stream).talk({"cache": "auto"})
    talk.user("hello " + "with many words in it " * 2000)
    talk.send(Move(text="ok"))
    talk.server.forget_caches()
    talk.user("again")
    talk.send(Move(text="ok"))
    found = talk.report.prefix
    assert found.stable
    assert found.billed == 0
    assert found.disagrees
    assert (found.predicted or 0) > 2048, "both numbers are there"


@pytest.mark.parametrize(
    ("stable", "predicted", "cached", "disagrees"),
    [
        (True, 5000, 4096, False),
        (True, 5000, 0, True),
        (True, 1500, 0, False),
        (False, 5000, 0, False),
        (None, None, 0, False),
        (True, 5000, None, False),
        (True, 5000, 9000, False),
    ],
)
def test_only_a_missing_read_of_what_was_large_enough_disagrees(
    stable: bool | None, predicted: int | None, cached: int | None, disagrees: bool
) -> None:
    found = against_bill(Prefix(stable, predicted), cached=cached, minimum=1024, block=128)
    assert found.disagrees is disagrees
    assert found.billed == cached


def test_chat_bills_are_read_too() -> None:
    talk = Form(CHAT, "resend", False).talk()
    for at in range(2):
        talk.user(f"turn {at} " + "with many words in it " * 900)
        talk.send(Move(text="ok"))
    assert (talk.report.prefix.billed or 0) > 1000
    assert talk.report.prefix.stable


@everywhere
@pytest.mark.requirement("N8")
def test_a_catalog_in_the_system_prompt_stays_where_it_was(form: Form) -> None:
    """Instructions that come later in a chat do not take it along."""
    talk = form.talk({"catalog": "system"})
    _system(talk, "Be brief.")
    talk.user("hello")
    talk.send(Move(text="hi"))
    if form.dialect == CHAT:
        talk.visible.append({"role": "developer", "content": "Be very brief from now on."})
    talk.load(TOOL)
    assert not judge.check(talk.bodies, mode=form.strategy)
    for body in talk.bodies:
        system = body["system"] if form.dialect == MESSAGES else body[talk.key][0]["content"]
        assert system[-1]["text"].startswith("# On-demand tools")
        assert json.dumps(body).count("# On-demand tools") == 1


@everywhere
def test_a_system_message_is_never_made_for_the_catalog(form: Form) -> None:
    talk = form.talk({"catalog": "system"})
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert "On-demand" not in json.dumps(talk.body)
    assert "system" not in talk.body
    assert [message["role"] for message in talk.body[talk.key]] == ["user"]


SETTINGS: dict[str, dict[str, Any]] = {
    CHAT: {"response_format": {"type": "json_object"}},
    MESSAGES: {"output_config": {"effort": "low"}},
    RESPONSES: {"text": {"format": {"type": "json_object"}}},
}


@unstreamed
@pytest.mark.requirement("N34")
def test_settings_that_stand_in_the_prompt_break_it_and_others_do_not(form: Form) -> None:
    talk = form.talk()
    for extra, broke in (
        ({}, "first_request"),
        ({"temperature": 0.5}, None),
        (SETTINGS[form.dialect], "settings_changed"),
        (SETTINGS[form.dialect], None),
        ({}, "settings_changed"),
    ):
        talk.user("say it as json")
        talk.extra = extra
        talk.send(Move(text="{}"))
        assert talk.report.prefix.broke == broke


@unstreamed
def test_another_model_reads_no_cache_of_the_first(form: Form) -> None:
    if form.model:
        pytest.skip("its form is that of one model")
    talk = form.talk()
    talk.user("hi")
    talk.send(Move(text="hello"))
    talk.model = {CHAT: "gpt-5.4-mini", MESSAGES: "claude-opus-4-7", RESPONSES: "gpt-5.4-mini"}[form.dialect]
    talk.user("and now?")
    talk.send(Move(text="ok"))
    assert (talk.report.prefix.stable, talk.report.prefix.broke) == (False, "model_changed")
    assert talk.report.prefix.predicted == 0


@pytest.mark.parametrize(
    "extra", [{"tool_choice": {"type": "auto"}}, {"output_config": {}}, {"speed": "standard"}], ids=str
)
def test_a_default_that_is_spelled_out_is_no_change(extra: dict[str, Any]) -> None:
    talk = Form(MESSAGES, "native", stream=False).talk({"cache": "auto"})
    talk.user("many words in it " * 900)
    talk.send(Move(text="ok"))
    talk.extra = extra
    talk.user("b")
    talk.send(Move(text="ok"))
    assert (talk.report.prefix.billed or 0) > 2000
    assert talk.report.prefix.broke is None
