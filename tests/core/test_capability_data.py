"""The provider data itself: every entry has its source, date and grade, and holds nothing that is not read."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from loadpoint import _models, _rows
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
INDEX = _models.table("index")
ROWS: list[Any] = [
    pytest.param(kind, row, id=f"{file}-{kind}-{number}")
    for file in FILES
    if file != "index"
    for kind, rows in _models.table(file).items()
    for number, row in enumerate(rows)
]


@pytest.mark.parametrize("file", [file for file in FILES if file != "index"])
def test_every_file_satisfies_the_schema(file):
    content = _models.table(file)
    assert content
    assert [str(problem) for problem in _rows.problems(content)] == []


@pytest.mark.parametrize(("kind", "row"), ROWS)
def test_every_entry_has_its_provenance(kind, row):
    assert row["grade"] in GRADES
    assert date(2024, 1, 1) <= date.fromisoformat(row["date"]) <= date(2100, 1, 1)
    source = urlsplit(row["source"])
    local = row["source"].startswith("tests/") and kind == "threshold"
    assert local or (source.scheme == "https" and "." in source.netloc and " " not in row["source"])


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
        assert {each.get("file", "index"), each.get("prices", "index")} <= set(FILES)
        for pattern in each["hosts"]:
            assert pattern == pattern.lower()
            assert not pattern.startswith("*") or pattern[1] in ".-", "a pattern may not match the end of any name"
    for family in INDEX["family"]:
        assert {family["file"], family["prices"]} <= set(FILES)
        assert set(family.get("home", {})) <= set(INDEX["dialect"])
        assert set(family.get("home", {}).values()) <= set(endpoints)
        assert "major" in re.compile(family["pattern"]).groupindex
    named = [row["pattern"] for row in INDEX["family"]]
    assert len(named) == len(set(named))
    for alias in INDEX["alias"]:
        assert alias["family"] in {family["name"] for family in INDEX["family"]}
    for dialect in INDEX["dialect"].values():
        assert dialect["home"] in endpoints
        assert set(dialect["denied"]) - {"for_every_model"} == {"reason", "source", "date", "grade"}
        assert set(dialect["limits"]) <= set(Limits.__dataclass_fields__)


@pytest.mark.parametrize(
    ("kind", "row"), [each for each in ROWS if each.values[0] == "price"]
)  # a price list is wrong in ways that can be seen
def test_prices_are_plausible(kind, row):
    usd = row["usd"]
    assert set(usd) <= {"input", "cached", "written", "output"}
    assert 0 < usd["input"] < 200
    assert usd["output"] >= usd["input"]
    assert usd["input"] / 70 < usd.get("cached", usd["input"]) <= usd["input"]
    assert usd["input"] <= usd.get("written", usd["input"]) <= usd["input"] * 2.01


def test_a_refusal_that_takes_load_points_away_names_some_that_are_there():
    for kind, row in (each.values for each in ROWS):
        if kind == "denied" and "load_points" in row:
            assert set(row["load_points"]) <= POINTS


def test_every_host_that_is_known_says_why_where_nothing_is_taken():
    """An endpoint is in the index to be told apart: without any line it would answer like every other."""
    spoken = {place for each in ROWS for place in each.values[1].get("endpoints", ())}
    assert {each["name"] for each in INDEX["endpoint"]} <= spoken
