"""`bench.run` and the command: the published JSON, the options, the exit codes."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from loadpoint import bench
from loadpoint.cli import _bench_table, main

RESULT = {"dialect", "model", "strategy", "load_point", "session", "first_request", "requests", "totals"}
TOTALS = {"breaks", "cached_tokens", "uncached_tokens", "rounds", "passes", "cost"}


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
    by_name = {
        (entry.case.dialect, entry.case.model, entry.label, entry.session): entry
        for entry in short.entries
        if entry.strategy != "auto" or entry.session == "short-unmarked"
    }
    assert by_name["openai.chat", "gpt-5.4", "resend", "short"].measured.breaks == 2
    for (dialect, model, label, _), entry in by_name.items():
        eager = by_name[dialect, model, "eager", "short"]
        assert entry.cost is not None
        assert eager.cost is not None
        assert label == "eager" or entry.cost < eager.cost / 2
        assert label == "resend" or entry.measured.breaks == 0
    assert by_name["anthropic.messages", "claude-sonnet-5", "auto (native)", "short-unmarked"].measured.cached == 0
    assert any("costs least" in line for line in short.verdicts)


def test_every_form_that_the_data_and_the_dialects_have_is_measured(short: bench.Bench) -> None:
    for dialect, places in bench.PLACES.items():
        for place in places:
            forms = {e.load_point for e in short.entries if e.case.dialect == dialect and e.case.model == place.model}
            before = {name for other in places[: places.index(place)] for name in bench.forms(dialect, other)}
            assert set(bench.forms(dialect, place)) - before <= forms
    known = {"tool_search", "additional_tools", "system_tools", "tool_reference", "tool_addition", "hosted_search"}
    assert set(bench.known_forms()) == known == {entry.load_point for entry in short.entries} - {None}


def test_a_hosted_search_is_billed_for_every_pass(short: bench.Bench) -> None:
    for entry in short.entries:
        measured = entry.measured
        totals = entry.as_json()["totals"]
        assert totals["passes"] == measured.passes
        if entry.load_point != "hosted_search":
            assert measured.passes == len(measured.rows)
            continue
        assert measured.passes >= len(measured.rows) + 2
        assert totals["rounds"] == 7
        assert totals["cached_tokens"] + totals["uncached_tokens"] > sum(row.tokens for row in measured.rows)


def test_a_form_can_be_chosen() -> None:
    result = bench.run(sizes=[40], session="short", forms=["additional_tools", "tool_addition"])
    assert [entry.label for entry in result.entries] == ["tool_addition", "additional_tools"]


def test_a_form_that_was_asked_for_and_not_taken_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    real = bench.ways

    def wrong(*args: Any, **options: Any) -> Any:
        return (replace(way, load_point="system_tools") for way in real(*args, **options) if way.load_point)

    monkeypatch.setattr(bench, "ways", wrong)
    (failure,) = bench.run(sizes=[40], session="short", forms=["tool_search"]).failures
    assert "asked for system_tools, took tool_search" in failure


def test_the_first_request_is_the_same_at_every_size() -> None:
    result = bench.run(sizes=[50, 200, 1_000], session="first", strategies=["native", "resend"], catalog_tokens=0)
    assert result.failures == []
    for ours in {(e.case.dialect, e.label) for e in result.entries if e.label != "hosted_search"}:
        firsts = [entry.measured.first for entry in result.entries if (entry.case.dialect, entry.label) == ours]
        assert all(first == firsts[0] for first in firsts)
        assert firsts[0]["tools"] <= 130
        assert firsts[0]["catalog"] == 0
    assert all(row["tools"]["count"] in {50, 200, 1_000} for row in result.as_json()["results"])


def test_the_default_catalog_keeps_within_its_budget_at_every_size() -> None:
    result = bench.run(sizes=[50, 200, 1_000], session="first", strategies=["native", "resend"])
    for entry in result.entries:
        first = entry.measured.first
        if entry.label == "hosted_search":
            continue
        assert 0 < first["catalog"] <= 620
        assert first["tools"] + first["catalog"] <= 750


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"session": "medium"}, "session: 'medium'; allowed: short, long, first, both"),
        ({"forms": ["slow"]}, "form: 'slow'; allowed: system_tools"),
        ({"generate": -3}, "generate: -3; allowed: 1 to 100,000"),
        ({"generate": 0}, "generate: 0; allowed: 1 to 100,000"),
        ({"generate": 9, "tools": ["x.json"]}, "generate: tools are read from files already"),
        ({"strategies": ["fast"]}, "strategy: 'fast'"),
        ({"dialects": ["smoke.signals"]}, "dialect: 'smoke.signals'"),
        ({"loads": 7}, "loads: 7; allowed: 1 to 6"),
        ({"sizes": [100_001]}, "sizes: 100001; allowed: up to 100,000"),
        ({"sizes": [1]}, "sizes: 1; allowed: from 2"),
        ({"forms": ["tool_search"], "dialects": ["openai.chat"]}, "form: tool_search; not possible"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        bench.run(**options)


def test_progress_is_told() -> None:
    seen: list[tuple[str, int, int]] = []
    bench.run(session="short", strategies=["eager"], progress=lambda *told: seen.append(told))
    assert seen[-1] == ("done", 6, 6)
    assert [done for _, done, _ in seen] == [0, 1, 2, 3, 4, 5, 6]


def test_progress_without_a_terminal_is_a_line_a_minute() -> None:
    now, out = [0.0], io.StringIO()
    lines = _bench_table.Lines(Console(file=out, width=60), clock=lambda: now[0])
    for second in range(0, 200, 10):
        now[0] = second
        lines("openai.responses tool_search long, 256 tools", second, 200)
    assert out.getvalue().splitlines() == [
        f"bench: {second} of 200 sessions after {second} s, now openai.responses tool_search long, 256 tools"
        for second in (60, 120, 180)
    ]


def test_the_page_is_one_file_that_needs_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "bench.html"
    chosen = ["bench", "--session", "short", "--strategy", "native", "--strategy", "eager", "--sizes", "20,60"]
    assert main([*chosen, "--dialect", "openai.responses", "--html", str(target)]) == 0
    assert "tool_search" in capsys.readouterr().out
    text = target.read_text(encoding="utf-8")
    assert "<script" not in text
    assert not re.search(r"(src|href)=|url\(|@import|https?://", text)
    assert "prefers-color-scheme:dark" in text
    plots = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    for plot in plots:
        ET.fromstring(plot)  # noqa: S314 - written a moment ago by ourselves
    figures = re.findall(r"<figure>.*?</figure>", text, re.DOTALL)
    assert len(figures) == 5  # two by number of tools, one by turn, costs of two sizes
    assert all(plot.count("<circle") == 4 * 2 for plot in figures[:2])
    assert figures[3].count("<rect") == 4
    placed = [(float(x), float(y)) for x, y in re.findall(r'cx="([-\d.]+)" cy="([-\d.]+)"', text)]
    assert all(0 < x < 560 and 0 < y < 320 for x, y in placed)


def test_the_command_writes_json_to_standard_output_or_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["bench", "--session", "short", "--form", "tool_search"]
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


def test_an_unknown_dialect_of_tools_lists_the_known_ones() -> None:
    with pytest.raises(KeyError, match=r"'zork'; allowed: .*openai\.chat"):
        bench.tools("zork")


def test_a_target_that_cannot_be_written_is_refused_before_the_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "measured", lambda *_, **__: pytest.fail("sessions ran"))
    assert main(["bench", "--json", str(tmp_path / "none" / "x.json")]) == 2
    assert "--json: " in capsys.readouterr().err


def test_one_server_is_not_servers(capsys: pytest.CaptureFixture[str]) -> None:
    _bench_table.show(bench.Bench(8, 1, "a counter", exact=True))
    assert "8 tools of 1 server;" in capsys.readouterr().out
