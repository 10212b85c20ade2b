"""The README's example runs as it stands, without a key."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def figures(text: str) -> list[float]:
    found = re.search(r"saved ([\d,]+) of ([\d,]+) tool tokens \(estimate\), (\d+) extra round", text)
    assert found is not None
    return [float(figure.replace(",", "")) for figure in found.groups()]


def test_the_example_runs_as_it_stands(repo: Path, tmp_path: Path):
    text = (repo / "README.md").read_text(encoding="utf-8")
    example = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert example is not None
    lines = [line for line in example[1].splitlines() if line.strip()]
    assert len(lines) <= 10
    command = [sys.executable, "-c", example[1]]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert "slack__post_message" in run.stdout
    shown, got = (figures(text) for text in (example[1], run.stdout))
    assert got == pytest.approx(shown, rel=0.01)  # what a reader is shown is what the reader gets


def test_the_example_of_an_agent_runs(repo: Path, tmp_path: Path):
    command = [sys.executable, str(repo / "examples/agent_loop.py")]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("saved ") >= 3
