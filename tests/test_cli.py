"""The command `loadpoint`: exit codes, the missing extra, and where `bench --json` writes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import loadpoint
from loadpoint import cli
from loadpoint.cli import bench


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--help"]) == cli.EXIT_OK
    assert "bench" in capsys.readouterr().out


def test_version(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["--version"]) == cli.EXIT_OK
    assert capsys.readouterr().out == f"loadpoint {loadpoint.__version__}\n"


@pytest.mark.parametrize("arguments", [["bensh"], ["bench", "--toolz", "x"], ["bench", "surplus"]])
def test_unusable_usage_is_2_and_told_on_standard_error(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    assert cli.main(arguments) == cli.EXIT_USAGE
    captured = capsys.readouterr()
    assert arguments[-1] in captured.err or arguments[1] in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (["bench"], ["bench"]),
        (["bench", "--json"], ["bench", "--json", "-"]),
        (["bench", "--json", "-"], ["bench", "--json", "-"]),
        (["bench", "--json", "out.json"], ["bench", "--json", "out.json"]),
        (["bench", "--json", "--tools", "a"], ["bench", "--json", "-", "--tools", "a"]),
        (["lint", "--json", "a"], ["lint", "--json", "a"]),
    ],
)
def test_the_target_of_json_may_be_left_out(given: list[str], understood: list[str]):
    assert bench.with_json_target(given) == understood


@pytest.mark.parametrize("absent", ["typer", "rich"])
def test_without_the_extra_the_command_names_it(absent: str):
    code = f"import sys; sys.modules[{absent!r}] = None\nfrom loadpoint import cli\nsys.exit(cli.main(['--help']))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert run.returncode == cli.EXIT_USAGE
    assert 'pip install "loadpoint[cli]"' in run.stderr
    assert absent in run.stderr
    assert "Traceback" not in run.stderr


def test_tools_that_cannot_be_read_are_unusable_input(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["bench", "--tools", "no-such-file.json"]) == cli.EXIT_USAGE
    assert "no-such-file.json" in capsys.readouterr().err


def test_bench_writes_json_to_standard_output_and_nothing_else(capsys: pytest.CaptureFixture[str]):
    options = ["--sizes", "20", "--strategy", "auto", "--dialect", "openai.chat", "--session", "short", "--json"]
    assert cli.main(["bench", *options]) == cli.EXIT_OK
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert result["schema"] == 1
    assert [entry["strategy"] for entry in result["results"]] == ["auto"]
    assert "failed" not in captured.err


def test_bench_shows_a_table_that_fits_eighty_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["bench", "--sizes", "40", "--dialect", "anthropic.messages", "--session", "short"]) == cli.EXIT_OK
    out = capsys.readouterr().out
    assert "uncached" in out
    assert "eager" in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_the_widest_row_of_a_table_fits_eighty_columns(capsys: pytest.CaptureFixture[str]):
    console = pytest.importorskip("rich.console").Console(width=80)
    from loadpoint import Policy
    from loadpoint import bench as measuring
    from loadpoint.bench.measure import Row
    from loadpoint.cli import _bench_table

    tools = measuring.embedded()
    plan = measuring.plan("long", measuring.targets(tools))
    auto = Policy(strategy="auto")
    case = measuring.Case(dialect="openai.chat", model="gpt-5.4", policy=auto, tools=tools.tools, plan=plan)
    row = Row(1, 1, 9, 9, "tools_grew", 9_876_543, 1_234_567, 0, 9, 9)
    measured = measuring.Measured({"tools": 1_334_308}, 5_600_712, [row] * 99)
    entry = measuring.Entry(case, 3590, measured, None, "resend", ("a problem",))
    _bench_table.show(measuring.Bench(3590, 103, "o200k_base", exact=True, entries=[entry]), console)
    out = capsys.readouterr().out
    assert "…" not in out
    assert f"{entry.cost:.3f}" in out
    assert "1.33M" in out
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("option", "value", "known"),
    [
        ("--strategy", "lazy", "eager, native, resend, frozen, auto"),
        ("--session", "medium", "short, long, first, both"),
        ("--dialect", "openai", "openai.chat, anthropic.messages, openai.responses"),
    ],
)
def test_an_unknown_value_is_unusable_usage_that_lists_the_known_ones(
    option: str, value: str, known: str, capsys: pytest.CaptureFixture[str]
):
    assert cli.main(["bench", option, value]) == cli.EXIT_USAGE
    told = capsys.readouterr().err
    assert f"{option}: {value!r}" in told
    assert f"allowed: {known}\n" in told


@pytest.mark.parametrize("absent", ["uvicorn", "starlette", "openai"])
def test_bench_without_its_extra_names_it(absent: str):
    code = (
        f"import sys; sys.modules[{absent!r}] = None\nfrom loadpoint import cli\n"
        "sys.exit(cli.main(['bench', '--sizes', '20', '--session', 'short', '--dialect', 'openai.chat']))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert "Traceback" not in run.stderr
    if run.returncode != cli.EXIT_OK:  # in process nothing needs the server
        assert run.returncode == cli.EXIT_USAGE
        assert 'pip install "loadpoint[bench]"' in run.stderr
