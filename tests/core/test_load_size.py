"""How much a search loads: what fits about as well as the best, and more in a prompt that is too short to be cached."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, Form, everywhere, search

from loadpoint import Match
from loadpoint.emulator import Move

BEST = "parcel_archive"
LONG, SHORT = ("It was the year of the great flood. " * times for times in (300, 50))


def loaded(form: Form, said: str, **policy: Any) -> list[str]:
    """What one search for one tool loads after the user has said this."""
    talk = form.talk({"catalog_tokens": 0, "cache": "auto", **policy})
    talk.user(said)
    talk.send(Move(calls=[search("archive one parcel")]), Move(text="found"))
    return [tool.name for tool in talk.report.loaded]


def listed(strategy: str) -> dict[str, Any]:
    """Where the list of tools is sent again, only what stands in it outlives the next load: here a catalog does."""
    return {"catalog_tokens": 600} if strategy == "resend" else {}


def forms(name: str) -> pytest.MarkDecorator:
    """`everywhere` without the bridge, whose loads are texts."""
    every: list[Form] = everywhere.args[1]
    return pytest.mark.parametrize(name, [form for form in every if not form.frozen], ids=str)


@forms("form")
@pytest.mark.requirement("N14")
def test_a_short_prompt_takes_more_and_a_long_one_the_nearest_only(form: Form):
    few, many = loaded(form, LONG), loaded(form, SHORT, **listed(form.strategy))
    assert few[0] == many[0] == BEST
    assert set(few) < set(many)
    assert len(few) <= 4 < len(many) <= 12


@forms("form")
def test_the_policy_bounds_what_fills_a_prompt(form: Form):
    assert loaded(form, SHORT, load_at_most=3) == loaded(form, LONG, load_at_most=3)
    assert loaded(form, SHORT, load_at_most=1) == [BEST]


@pytest.mark.parametrize("strategy", ["native", "resend"])
def test_where_nothing_is_cached_nothing_is_filled_up(strategy: str):
    form = Form(MESSAGES, strategy, stream=False)
    assert loaded(form, SHORT, cache="caller", **listed(strategy)) == loaded(form, LONG)
    assert len(loaded(form, SHORT, cache="auto", **listed(strategy))) > len(loaded(form, LONG))


@forms("form")
def test_what_was_asked_about_is_all_that_is_loaded(form: Form):
    talk = form.talk({"cache": "auto", "catalog_tokens": 0, "confirm": "model"})
    talk.user("hello")
    asked = "archive one parcel"
    talk.send(Move(calls=[search(asked)]), Move(calls=[search(asked, confirm=True)]), Move(text="ok"))
    assert 0 < len(talk.report.loaded) <= 4


@forms("form")
def test_searches_side_by_side_fill_a_prompt_once(form: Form):
    talk = form.talk({"cache": "auto", "catalog_tokens": 0, **listed(form.strategy)})
    talk.user("It was the flood. " * 20)
    talk.send(Move(calls=[search("archive one parcel"), search("rename one photo")]), Move(text="ok"))
    assert 5 <= len(talk.report.loaded) <= 16, "12 for the first, the four nearest for the second"


def test_nothing_falls_behind_where_a_ranker_takes_part():
    def rank(_query: str, _tools: Any, _limit: int) -> list[Match]:
        return [Match("parcel_archive", 0.9, "exact, it says"), Match("metric_export", 0.9, "m")]

    talk = Form(CHAT, "resend", stream=False).talk({"cache": "caller", "catalog_tokens": 0, "search": rank})
    talk.user("x")
    talk.send(Move(calls=[search("archive one parcel")]), Move(text="ok"))
    assert len(talk.report.loaded) == 4


@pytest.mark.parametrize("found", [["parcel_archive"], [("parcel_archive", 1.0)], [Match("parcel_archive", 1.0, None)]])  # type: ignore[arg-type]
def test_a_ranker_that_answers_rubbish_leaves_the_local_results(found: Any):
    policy = {"catalog_tokens": 0, "search": lambda *_: found}
    talk = Form(CHAT, "resend", stream=False).talk(policy)
    talk.user("x")
    with pytest.warns(RuntimeWarning, match="is no Match"):
        talk.send(Move(calls=[search("archive one parcel")]), Move(text="ok"))
    assert talk.report.loaded[0].name == "parcel_archive"
