"""`loadpoint search`: what a query finds and why, and labelled queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loadpoint.cli import main


@pytest.fixture
def catalog(tmp_path: Path) -> str:
    tools = [
        {"name": "create_issue", "description": "Create an issue.", "inputSchema": {"type": "object"}},
        {"name": "list_labels", "description": "List labels.", "inputSchema": {"type": "object"}},
    ]
    file = tmp_path / "tracker.json"
    file.write_text(json.dumps({"server": "tracker", "tools": tools}), "utf-8")
    return str(file)


def test_what_is_found_is_told_with_the_reason(catalog: str, capsys: pytest.CaptureFixture[str]):
    assert main(["search", "--catalog", catalog, "new issue"]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "create_issue" in first
    assert "words: " in first


def test_nothing_fits_is_exit_1_and_names_the_server(catalog: str, capsys: pytest.CaptureFixture[str]):
    assert main(["search", "--catalog", catalog, "--json", "bake a cake"]) == 1
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["matches"] == []
    assert answer["closest_servers"] == ["tracker"]


def test_labelled_queries_are_counted(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "labelled.jsonl"
    name = "tracker__create_issue"
    file.write_text(f'{{"query": "{name}", "gold": ["{name}"]}}\n{{"query": "bake a cake", "gold": []}}\n', "utf-8")
    code = main(["search", "--catalog", catalog, "--eval", str(file), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["queries"] == 2
    assert report["false_returns"] == 0.0
    assert (code == 0) == (report["recall"] == 1.0)


@pytest.mark.parametrize(
    "arguments", [["x"], ["--catalog", "CATALOG"], ["--catalog", "CATALOG", "x", "--eval", "nofile"]]
)
def test_usage_is_exit_2(arguments: list[str], catalog: str):
    assert main(["search", *(catalog if part == "CATALOG" else part for part in arguments)]) == 2


def test_an_unreadable_eval_file_is_exit_2(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "bad.jsonl"
    file.write_text('{"query": 1}\n', "utf-8")
    assert main(["search", "--catalog", catalog, "--eval", str(file)]) == 2
    assert "each line must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"[]", b'{"tools":[]}', b'"x"', b'[{"name":1}]', b"\xff\xfe", b"{", None, "folder"]
)
def test_a_catalog_that_cannot_be_used_is_one_line_and_exit_2(
    content: bytes | str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "bad.json"
    if isinstance(content, bytes):
        file.write_bytes(content)
    elif content is not None:
        file.mkdir()
    assert main(["search", "--catalog", str(file), "x"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("loadpoint: --catalog: ")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"query": "a", "gold": []}\n\n{"query": 1}\n', "line 3: each line must be {"),
        ('{"query": "a", "gold": []}\n{', "line 2: is not JSON"),
        ("\n", "no labelled query"),
    ],
)
def test_a_bad_line_of_labels_is_named(
    text: str, told: str, catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "bad.jsonl"
    file.write_text(text, "utf-8")
    assert main(["search", "--catalog", catalog, "--eval", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("loadpoint: --eval: ")
    assert told in error


def test_a_gold_name_counts_without_its_server(catalog: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "labelled.jsonl"
    file.write_text('{"query": "create_issue", "gold": ["create_issue"]}\n', "utf-8")
    assert main(["search", "--catalog", catalog, "--eval", str(file)]) == 0
    assert capsys.readouterr().out.startswith("1 query; recall at 5: 1.0")


def test_the_limit_is_named_with_its_value_and_help_shows_the_line(catalog: str, capsys: pytest.CaptureFixture[str]):
    assert main(["search", "--catalog", catalog, "x", "--limit", "-3"]) == 2
    assert "--limit: -3; allowed: 1 to 50" in capsys.readouterr().err
    assert main(["search", "--help"]) == 0
    assert '"gold": [names]}' in capsys.readouterr().out
