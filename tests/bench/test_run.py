"""`bench.run` and the command: the published JSON, the options, the exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadpoint import bench
from loadpoint.cli import main

RESULT = {"dialect", "model", "strategy", "load_point", "session", "first_request", "requests", "totals"}
TOTALS = {"breaks", "cached_tokens", "uncached_tokens", "rounds", "cost"}


@pytest.fixture(scope="module")
def short() -> bench.Bench:
    return bench.run(session="short")


def test_the_json_has_the_published_fields_and_no_others(short: bench.Bench) -> None:
    data = json.loads(json.dumps(short.as_json()))
    assert set(data) == {"schema", "tools", "results"}
    assert data["schema"] == 1
    assert data["tools"] == {"count": 256, "servers": 20}
    for result in data["results"]:
        assert set(result) == RESULT
        assert set(result["first_request"]) == {"tokens", "bytes"}
        tokens = result["first_request"]["tokens"]
        assert set(tokens) == {"tools", "system", "messages", "catalog", "total"}
        assert tokens["total"] == sum(tokens[name] for name in ("tools", "system", "messages", "catalog"))
        assert set(result["totals"]) == TOTALS
        assert result["totals"]["rounds"] == len(result["requests"])
        assert all(set(row) == {"turn", "round", "common_tokens", "tokens", "broke"} for row in result["requests"])
        assert result["requests"][0]["broke"] is None
        assert result["requests"][0]["common_tokens"] == 0


def test_deferral_keeps_the_prefix_and_eager_is_dearer(short: bench.Bench) -> None:
    assert short.failures == []
    by_name = {(entry.case.dialect, entry.strategy, entry.session): entry for entry in short.entries}
    native = by_name["anthropic.messages", "native", "short"]
    assert native.load_point == "tool_reference"
    assert native.measured.breaks == 0
    assert by_name["openai.chat", "resend", "short"].measured.breaks == 2
    for (dialect, strategy, _), entry in by_name.items():
        eager = by_name[dialect, "eager", "short"]
        assert entry.cost is not None
        assert eager.cost is not None
        assert strategy == "eager" or entry.cost < eager.cost / 2
    assert by_name["anthropic.messages", "auto", "short-unmarked"].measured.cached == 0
    assert any("costs least" in line for line in short.verdicts)


def test_the_first_request_is_the_same_at_every_size() -> None:
    result = bench.run(sizes=[50, 200, 1_000], session="short", strategies=["native", "resend"], catalog_tokens=0)
    assert result.failures == []
    for dialect in ("openai.chat", "anthropic.messages"):
        firsts = [entry.measured.first for entry in result.entries if entry.case.dialect == dialect]
        assert all(first == firsts[0] for first in firsts)
        assert firsts[0]["tools"] <= 130
        assert firsts[0]["catalog"] == 0
    assert all(row["tools"]["count"] in {50, 200, 1_000} for row in result.as_json()["results"])


def test_the_default_catalog_keeps_within_its_budget_at_every_size() -> None:
    result = bench.run(sizes=[50, 200, 1_000], session="short", strategies=["native", "resend"])
    for entry in result.entries:
        first = entry.measured.first
        assert 0 < first["catalog"] <= 620
        assert first["tools"] + first["catalog"] <= 750


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"session": "medium"}, "session: 'medium'; allowed: short, long"),
        ({"strategies": ["fast"]}, "strategy: 'fast'"),
        ({"dialects": ["smoke.signals"]}, "dialect: 'smoke.signals'"),
        ({"loads": 7}, "loads: 7; allowed: 1 to 6"),
        ({"sizes": [1]}, "sizes: 1; allowed: from 2"),
        ({"strategies": ["native"], "dialects": ["openai.chat"]}, "strategy: native; not possible"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        bench.run(**options)


def test_progress_is_told() -> None:
    seen: list[tuple[str, int, int]] = []
    bench.run(session="short", strategies=["eager"], progress=lambda *told: seen.append(told))
    assert seen[-1] == ("done", 2, 2)
    assert [done for _, done, _ in seen] == [0, 1, 2]


def test_the_command_writes_json_to_standard_output_or_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["bench", "--session", "short", "--strategy", "native"]
    assert main([*chosen, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    target = tmp_path / "out.json"
    assert main([*chosen, "--json", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text()) == printed


def test_the_command_takes_a_file_of_tools(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = [
        {"name": f"tool_{n}", "description": f"Does errand number {n} for a person", "inputSchema": {}}
        for n in range(9)
    ]
    (tmp_path / "shop.json").write_text(json.dumps({"tools": tools}))
    assert main(["bench", "--tools", str(tmp_path / "shop.json"), "--session", "short", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tools"] == {"count": 9, "servers": 1}


@pytest.mark.parametrize("arguments", [["--tools", "absent.json"], ["--sizes", "many"], ["--strategy", "fast"]])
def test_unusable_input_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *arguments]) == 2
    assert arguments[1] in capsys.readouterr().err
