"""A load point behind which the cache is not read, although the prompt before it has not changed, is left."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conversation import BASETEN, KIMI, MESSAGES, Conversation, Form, everywhere, search

from loadpoint._report import Round
from loadpoint._usage import read_from_cache
from loadpoint.emulator import Move

FORMS = [form for form in everywhere.args[1] if form.strategy == "native"]
native = pytest.mark.parametrize("form", FORMS, ids=str)
NAMES = ("invoice_export", "photo_list", "parcel_rename", "event_list")


def new(form: Form, before: Conversation | None = None) -> Conversation:
    """A conversation with a long beginning; with the client of the one before."""
    talk = form.talk({"cache": "auto", "catalog_tokens": 0}, session=before.session if before else None)
    talk.reports = before.reports if before else talk.reports
    talk.user(f"with {'other' if before else 'many'} words in it " * 900)
    talk.send(Move(text="ok"))
    talk.user("and on")
    talk.send(Move(text="ok"))  # reads from the cache, so that a miss says something
    return talk


def load(talk: Conversation, name: str, *, cached: bool) -> None:
    """A search and what follows; the provider has or has not kept what it read."""
    forget = (lambda: None) if cached else talk.server.forget_caches

    def refuses(_body: Any, _headers: Any) -> None:
        forget()

    talk.refuses = refuses
    talk.user(f"find {name}")
    talk.send(Move(calls=[search(name)]), Move(text="ok"))


def warned(talk: Conversation) -> list[str]:
    return [text for text in talk.report.warnings if "nothing is read from the cache" in text]


@native
@pytest.mark.requirement("N34")
def test_the_second_miss_in_a_row_is_told_and_new_conversations_go_another_way(form: Form):
    first = new(form)
    load(first, NAMES[0], cached=False)
    assert not warned(first)
    load(first, NAMES[1], cached=False)
    assert len(warned(first)) == 1
    load(first, NAMES[2], cached=False)
    assert not warned(first), "once"
    assert first.report.load_point == form.load_point, "what has begun goes on"
    assert first.report.prefix.stable

    other = new(form, first)
    load(other, NAMES[0], cached=True)
    late = form.dialect == MESSAGES and form.load_point == "tool_reference"
    if late:
        assert other.report.load_point == form.load_point
        assert len(other.bodies[-1]["tools"]) > 60, "everything is declared now"
    elif form.model not in ("", KIMI, BASETEN) and other.policy.load_point == form.load_point:
        assert other.report.load_point == form.load_point, "the policy insists"
    else:
        assert other.report.load_point != form.load_point
        assert form.load_point is not None
        assert other.report.strategy == "native" or form.load_point in other.report.reason


@native
@pytest.mark.requirement("N34")
def test_a_cache_that_is_read_in_between_clears_the_doubt(form: Form):
    talk = new(form)
    for name, cached in zip(NAMES, (False, True, False, True), strict=True):
        load(talk, name, cached=cached)
        assert not warned(talk)
    assert talk.session.doubts.of(talk.base, talk.model) == frozenset()


@native
def test_short_prompts_and_unmarked_ones_say_nothing(form: Form):
    talk = form.talk({"catalog_tokens": 0})
    for name in NAMES[:3]:
        load(talk, name, cached=False)
    assert talk.session.doubts.of(talk.base, talk.model) == frozenset()


def test_a_usage_that_does_not_speak_of_the_cache_is_no_miss():
    fields = Form(MESSAGES, "native", stream=False).talk().session.dialects[0].usage_fields
    usage = Round(None, 1.0, {"prompt_tokens": 5_000}).usage
    assert read_from_cache(usage, fields) is None
    assert read_from_cache({**usage, "prompt_tokens_details": {"cached_tokens": 0}}, fields) == 0


@native
def test_where_the_cache_is_never_read_nothing_is_doubted(form: Form):
    """An endpoint that says 0 whatever was sent: the load points have nothing to do with it."""
    talk = form.talk({"cache": "auto", "catalog_tokens": 0})
    talk.user("with many words in it " * 900)
    for name in NAMES[:3]:
        load(talk, name, cached=False)
    assert talk.session.doubts.of(talk.base, talk.model) == frozenset()


@native
def test_a_question_that_takes_its_time_is_no_miss(form: Form):
    talk = new(form)

    def slow(_names: object) -> bool:
        talk.server.forget_caches()
        return True

    talk.session._policy = talk.policy.replace(confirm=slow)
    for name in NAMES[:2]:
        talk.user("find")
        talk.send(Move(calls=[search(name)]), Move(text="ok"))
        assert not warned(talk)
