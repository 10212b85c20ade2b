"""The figures that the README promises, on real tools: flat first requests, small bodies, few new tokens."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loadpoint import bench

SIZES = (50, 200, 1000)
FORMS = [("openai.chat", "resend"), ("anthropic.messages", "native"), ("anthropic.messages", "resend")]


@cache
def results(data: Path, catalog_tokens: int | None) -> list[dict[str, Any]]:
    """The short session with every deferring strategy at every size."""
    files = sorted((data / "catalogs").glob("*.json"))
    run = bench.run(files, sizes=SIZES, strategies=("native", "resend"), session="short", catalog_tokens=catalog_tokens)
    found: list[dict[str, Any]] = run.as_json()["results"]
    return [result for result in found if result["session"] == "short"]


def of(data: Path, dialect: str, strategy: str, catalog_tokens: int | None) -> dict[int, dict[str, Any]]:
    """The results of one form by number of tools."""
    rows = [r for r in results(data, catalog_tokens) if (r["dialect"], r["strategy"]) == (dialect, strategy)]
    return {row["tools"]["count"]: row for row in rows}


@pytest.mark.requirement("N38", "N41", "O17")
@pytest.mark.parametrize(("dialect", "strategy"), FORMS)
def test_the_first_request_is_the_same_at_every_size(data: Path, dialect: str, strategy: str):
    rows = of(data, dialect, strategy, 0)
    assert sorted(rows) == list(SIZES)
    tokens = {row["first_request"]["tokens"]["tools"] for row in rows.values()}
    assert len(tokens) == 1
    assert tokens.pop() <= 130


@pytest.mark.requirement("N9")
@pytest.mark.parametrize(("dialect", "strategy"), FORMS)
def test_the_catalog_stays_within_its_budget(data: Path, dialect: str, strategy: str):
    for row in of(data, dialect, strategy, None).values():
        assert row["first_request"]["tokens"]["catalog"] > 0
        assert row["first_request"]["tokens"]["tools"] + row["first_request"]["tokens"]["catalog"] <= 750
        assert row["first_request"]["bytes"] < 10_000


@pytest.mark.parametrize(("dialect", "strategy", "most", "breaks"), [(*FORMS[0], 3800, 2), (*FORMS[1], 2700, 0)])
def test_a_session_sends_few_new_tokens(data: Path, dialect: str, strategy: str, most: int, breaks: int):
    row = of(data, dialect, strategy, None)[200]
    assert row["totals"]["breaks"] == breaks
    assert sum(request["tokens"] - request["common_tokens"] for request in row["requests"]) < most
