"""The provider data itself: every entry has its source, date and grade, and holds nothing that is not read."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from loadpoint import _models
from loadpoint._capability import Limits

FOLDER = Path(_models.__file__).with_name("_providers")
RULES = "rules"  # has a shape and a test of its own
FILES = sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != RULES)
GRADES = {"documented", "recorded", "reported", "inferred", "unverified"}
POINTS = {
    "tool_reference",
    "tool_addition",
    "tool_search",
    "additional_tools",
    "hosted_search",
    "system_tools",
    "gateway_search",
}
CONDITIONS = {"dialects", "endpoints", "families", "tiers", "from", "below", "match", "except"}
PROVENANCE = {"source", "date", "grade"}
KEYS = {
    "load_point": {"name", "declare", "betas", "by_choice", "choosable"},
    "denied": {"reason"},
    "trait": {"forced_choice", "binds_thinking"},
    "limits": set(Limits.__dataclass_fields__),
    "cache": {"minimum", "block", "breakpoints", "automatic", "lookback", "ttl", "read", "write"},
    "price": {"usd"},
    "threshold": {"strategy", "read", "write", "tokens", "per_context"},
}
INDEX = _models.table("index")
ROWS = [
    pytest.param(kind, row, id=f"{file}-{kind}-{number}")
    for file in FILES
    if file != "index"
    for kind, rows in _models.table(file).items()
    for number, row in enumerate(rows)
]


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_every_entry_has_its_provenance_and_nothing_that_is_not_read(kind, row):
    assert kind in KEYS
    assert row["grade"] in GRADES
    assert date.fromisoformat(row["date"]) <= date(2100, 1, 1)
    assert row["source"].startswith(("https://", "tests/"))
    assert set(row) <= KEYS[kind] | CONDITIONS | PROVENANCE


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_conditions_name_things_that_exist(kind, row):
    assert set(row.get("dialects", [])) <= set(INDEX["dialect"])
    assert set(row.get("endpoints", [])) <= {each["name"] for each in INDEX["endpoint"]}
    assert set(row.get("families", [])) <= {each["name"] for each in INDEX["family"]}
    for bound in ("from", "below"):
        if bound in row:
            assert re.fullmatch(r"\d+(\.\d+)?", row[bound])
    if kind == "load_point":
        assert row["name"] in POINTS
        assert row["name"] in INDEX["form"]
        assert row["grade"] != "unverified", "what nobody has shown is not support"
        assert row["endpoints"], "support is a matter of model and endpoint"


def test_every_form_has_patterns_that_compile():
    assert set(INDEX["form"]) == POINTS
    for name, form in INDEX["form"].items():
        assert form["refused"], name
        for pattern in [*form["refused"], *form.get("undeclared", [])]:
            assert re.compile(pattern).search("") is None, f"{name}: {pattern} matches anything"


def test_patterns_stay_quick_on_long_messages():
    # Providers echo whole schemas in their messages; a pattern may not take more than linear time with them.
    message = "tool_reference defer_loading " * 4000
    for form in INDEX["form"].values():
        for pattern in [*form["refused"], *form.get("undeclared", [])]:
            re.search(pattern, message, re.IGNORECASE | re.DOTALL)


def test_the_index_is_consistent():
    endpoints = [each["name"] for each in INDEX["endpoint"]]
    assert len(endpoints) == len(set(endpoints))
    for each in INDEX["endpoint"]:
        assert each.get("file", "index") in FILES
        for pattern in each["hosts"]:
            assert pattern == pattern.lower()
            assert not pattern.startswith("*") or pattern[1] in ".-", "a pattern may not match the end of any name"
    for family in INDEX["family"]:
        assert {family["file"], family["prices"]} <= set(FILES)
        assert set(family.get("home", {})) <= set(INDEX["dialect"])
        assert set(family.get("home", {}).values()) <= set(endpoints)
        assert "major" in re.compile(family["pattern"]).groupindex
    for alias in INDEX["alias"]:
        assert alias["family"] in {family["name"] for family in INDEX["family"]}
    for dialect in INDEX["dialect"].values():
        assert dialect["home"] in endpoints
        assert set(dialect["denied"]) - {"for_every_model"} == {"reason", *PROVENANCE}
        assert set(dialect["limits"]) <= set(Limits.__dataclass_fields__)


@pytest.mark.parametrize(
    ("kind", "row"), [each for each in ROWS if each.values[0] == "price"]
)  # a price list is wrong in ways that can be seen
def test_prices_are_plausible(kind, row):
    usd = row["usd"]
    assert set(usd) <= {"input", "cached", "written", "output"}
    assert 0 < usd["input"] < 200
    assert usd["output"] >= usd["input"]
    assert usd["input"] / 50 < usd.get("cached", usd["input"]) <= usd["input"]
    assert usd["input"] <= usd.get("written", usd["input"]) <= usd["input"] * 2.01
