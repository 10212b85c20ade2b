"""`loadpoint models`: the table, one model, own lines, JSON, exit codes; in process and as a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loadpoint import _own_models, cli

OWN = """
[[endpoint]]
name = "llm.corp.example"
hosts = ["llm.corp.example"]

[[load_point]]
name = "tool_reference"
dialects = ["anthropic.messages"]
families = ["claude"]
endpoints = ["llm.corp.example"]

[[denied]]
endpoints = ["vertex"]
reason = "our project\x1b[31m has it switched off"
"""


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.main(["models", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_a_model_is_shown_per_dialect_with_limits_cache_price_and_sources(capsys):
    code, out, err = run("gpt-5.4", capsys=capsys)
    assert (code, err) == (cli.EXIT_OK, "")
    chat, responses = out.strip().split("\n\n")
    assert chat.startswith("gpt-5.4, openai.chat, api.openai.com\nstrategies: resend, frozen, eager\n")
    assert "functions 128" in chat
    assert "strategies: native (tool_search, additional_tools), resend, frozen, eager" in responses
    assert "by choice only: hosted_search" in responses
    for block in (chat, responses):
        assert "documented, 2026-11-30, https://developers.openai.com/api/docs/guides/tools-tool-search" in block
        assert "cache: automatic, from 1,024 tokens, blocks of 128" in block
        assert "USD per million tokens: input 2.5, cached 0.25, written 2.5, output 15 (reported, " in block


@pytest.mark.requirement("P58")
def test_every_load_point_says_how_it_is_used_and_where_that_is_written(capsys):
    options = ["--dialect", "anthropic.messages", "--base-url", "https://bedrock-runtime.us-east-1.amazonaws.com"]
    _, out, _ = run("claude-opus-5", *options, capsys=capsys)
    (line,) = [line for line in out.splitlines() if line.startswith("  tool_reference: ")]
    assert "declared when loaded, beta tool-search-tool-2025-10-19 (reported, 2026-08-11, https://github.com/" in line


def test_what_nobody_has_shown_is_in_capitals_and_an_unknown_model_is_a_finding(capsys):
    code, out, err = run("nix-7b", "--dialect", "openai.responses", capsys=capsys)
    assert code == cli.EXIT_FINDINGS
    assert "known: UNVERIFIED" in out
    assert "price: not known" in out
    assert "'nix-7b' is not a model that the data knows" in err
    assert run("claude-opus-5", "--base-url", "https://gw.example", capsys=capsys)[0] == cli.EXIT_OK
    assert "(UNVERIFIED, " in run("glm-5.2", "--dialect", "openai.chat", capsys=capsys)[1]


def test_an_empty_name_is_unusable_usage(capsys):
    assert cli.main(["models", " "]) == cli.EXIT_USAGE
    assert "MODEL" in capsys.readouterr().err


def test_an_unknown_dialect_is_unusable_usage(capsys):
    code, out, err = run("gpt-5.4", "--dialect", "openai", capsys=capsys)
    assert (code, out) == (cli.EXIT_USAGE, "")
    assert "'openai' is not known; allowed: openai.chat, openai.responses, anthropic.messages" in err
    assert run("gpt-5.4", "surplus", capsys=capsys)[0] == cli.EXIT_USAGE


def test_one_model_as_json(capsys):
    code, out, _ = run("claude-sonnet-5-5", "--json", capsys=capsys)
    assert code == cli.EXIT_OK
    found = json.loads(out)
    assert (found["schema"], found["family"], found["version"], found["own"]) == (1, "claude", "5.5", None)
    (entry,) = found["dialects"]
    assert entry["endpoint"] == "api.anthropic.com"
    assert entry["capability"]["load_points"] == ["tool_reference", "tool_addition", "hosted_search"]
    assert entry["capability"]["points"][0]["source"].startswith("https://")
    assert entry["capability"]["refused_choices"] == ["required", "named"]
    assert entry["cache"]["minimum"] == 512
    assert entry["price"]["usd_per_million"] == {"input": 2.0, "cached": 0.1, "written": 2.5, "output": 10.0}
    assert {"source", "date", "grade"} <= entry["price"].keys()


def test_the_table_as_json_holds_every_line(capsys):
    found = json.loads(run("--json", capsys=capsys)[1])
    for row in (*found["load_points"], *found["denied"]):
        assert row["grade"]
        assert row["date"]
        assert row["source"].startswith("https://")
        assert row["yours"] is False
    assert {"claude", "gpt", "kimi", "gemini", "grok"} <= set(found["families"])
    assert {"api.openai.com", "vertex", "vllm"} <= {each["name"] for each in found["endpoints"]}
    only = json.loads(run("--json", "--dialect", "openai.chat", "--base-url", "openrouter.ai", capsys=capsys)[1])
    assert only["load_points"] == []
    assert any("refused on Chat Completions" in row["reason"] for row in only["denied"])
    assert {name for row in only["denied"] for name in row["dialects"]} == {"openai.chat"}


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_fits_the_terminal_and_cuts_nothing(width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, _ = run(capsys=capsys)
    assert code == cli.EXIT_OK
    grids = out.partition("Where none is taken")[0]
    assert max(map(len, grids.splitlines())) <= width
    assert "…" not in out
    for text in ("tool_reference", "system_tools", "gateway_search*", "documented", "openai.responses"):
        assert text in grids
    assert "api.deepseek.com: " in out


def test_own_lines_are_shown_as_such_and_leave_the_environment_as_it_was(tmp_path, capsys, monkeypatch):
    file = tmp_path / "own.toml"
    file.write_text(OWN, encoding="utf-8", newline="\n")
    code, out, err = run("--own", str(file), capsys=capsys)
    assert code == cli.EXIT_USAGE, "TOML has no control characters"
    assert "is not TOML" in err
    file.write_text(OWN.replace("\x1b", "\\u001b"), encoding="utf-8")
    code, out, err = run("--own", str(file), capsys=capsys)
    assert (code, err) == (cli.EXIT_OK, "")
    assert f"lines of your own: {file}" in out
    assert "yours" in out
    assert "\x1b" not in out
    assert "vertex: our project[31m has it switched off [yours]" in out
    assert _own_models.VARIABLE not in os.environ
    monkeypatch.setenv(_own_models.VARIABLE, str(file))
    given = ["claude-opus-5", "--base-url", "https://llm.corp.example", "--dialect", "anthropic.messages"]
    _, out, _ = run(*given, capsys=capsys)
    assert "native (tool_reference)" in out
    assert f"your own line: {file} [[load_point]] row 1" in out
    run("gpt-5.4", "--own", "nowhere.toml", capsys=capsys)
    assert os.environ[_own_models.VARIABLE] == str(file)


def test_a_broken_file_is_unusable_input_that_names_the_line(tmp_path, capsys):
    file = tmp_path / "own.toml"
    file.write_text('[[load_point]]\nname = "tool_serch"\nendpoints = ["vertex"]\n', encoding="utf-8")
    for arguments in ([], ["gpt-5.4"], ["--json"]):
        code, out, err = run(*arguments, "--own", str(file), capsys=capsys)
        assert (code, out) == (cli.EXIT_USAGE, "")
        assert err.startswith(
            f"loadpoint: --own: {file}: [[load_point]] row 1: name = 'tool_serch' is not usable; allowed: "
        )


def program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "loadpoint", "models", *arguments]
    given = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=given)  # noqa: S603


def test_as_a_program(tmp_path: Path):
    shown = program("claude-opus-5", "--json")
    assert shown.returncode == cli.EXIT_OK
    assert json.loads(shown.stdout)["family"] == "claude"
    assert shown.stderr == ""
    assert program("nix-7b").returncode == cli.EXIT_FINDINGS
    assert program("--dialect", "x").returncode == cli.EXIT_USAGE
    missing = program("gpt-5.4", LOADPOINT_MODELS=str(tmp_path / "nowhere.toml"))
    assert missing.returncode == cli.EXIT_USAGE
    assert "nowhere.toml: cannot be read" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_without_the_extra_the_command_names_it():
    code = "import sys; sys.modules['rich'] = None\nfrom loadpoint import cli\nsys.exit(cli.main(['models']))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == cli.EXIT_USAGE
    assert 'pip install "loadpoint[cli]"' in found.stderr


def test_it_works_without_any_sdk():
    block = "import sys\nfor name in ('openai', 'anthropic', 'httpx2', 'tiktoken'): sys.modules[name] = None\n"
    code = f"{block}from loadpoint import cli\nsys.exit(cli.main(['models', 'gpt-5.4']))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == cli.EXIT_OK, found.stderr


def test_usage_errors_name_the_option(capsys):
    code, out, err = run("gpt-5.4", "--own", "nope.toml", capsys=capsys)
    assert (code, out) == (cli.EXIT_USAGE, "")
    assert "--own: nope.toml: " in err
    assert "LOADPOINT_MODELS" not in err
    code, out, err = run("gpt-5.4", "--base-url", "::::", capsys=capsys)
    assert (code, out) == (cli.EXIT_USAGE, "")
    assert "--base-url: '::::'" in err
