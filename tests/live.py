"""What the tests of `loadpoint verify` share: an emulator on loopback in the place of the provider, and a fake key."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loadpoint import cli, emulator
from loadpoint.verify import _script

KEY = "sk-test-5f0c2e9a7b1d4836-never-to-be-seen"
ENOUGH = "5"


@dataclass(frozen=True)
class Stand:
    """A provider that the emulator stands in for: the arguments that reach it, and where its key is."""

    provider: str
    dialect: str
    short: str
    endpoint: str
    key: str
    suffix: str = "/v1"
    native: str | None = None

    def arguments(self, url: str, *rest: str, budget: str = ENOUGH) -> list[str]:
        base = ["verify", "--live", self.provider, "--budget", budget, "--base-url", url + self.suffix]
        return [*base, "--endpoint", self.endpoint, "--dialect", self.short, *rest]


MESSAGES = Stand(
    "anthropic", "anthropic.messages", "messages", "api.anthropic.com", "ANTHROPIC_API_KEY", "", "tool_reference"
)
RESPONSES = Stand("openai", "openai.responses", "responses", "api.openai.com", "OPENAI_API_KEY", native="tool_search")
CHAT = Stand("openai", "openai.chat", "chat", "api.openai.com", "OPENAI_API_KEY")
KIMI = Stand("moonshot", "openai.chat", "chat", "api.moonshot.ai", "MOONSHOT_API_KEY", native="system_tools")
STANDS = (MESSAGES, RESPONSES, CHAT, KIMI)


def plan() -> list[list[tuple[str, dict[str, Any], str]]]:
    """The steps of a model that follows the script of the run."""
    made: dict[str, int] = {}
    steps: list[list[tuple[str, dict[str, Any], str]]] = []
    for said in _script.TURNS:
        name = said.expects
        if name is None:
            steps.append([])
            continue
        steps.append([(name, _script.ARGUMENTS[name][made.get(name, 0)], name.replace("_", " "))])
        made[name] = made.get(name, 0) + 1
    return steps


@dataclass
class Ran:
    """What a run left behind: exit code, both outputs, the record, and the log of the emulator."""

    code: int
    out: str
    err: str
    record: dict[str, Any]
    raw: bytes
    server: emulator.Emulator

    @property
    def sides(self) -> dict[str, list[emulator.Exchange]]:
        """The emulator's log by side, told apart by the system prompt that the program sent."""
        found: dict[str, list[emulator.Exchange]] = {"wrapped": [], "bare": [], "probe": []}
        for exchange in self.server.exchanges:
            text = exchange.raw.decode()
            name = next((name for name in found if f"-{name}. You are" in text), "probe")
            found[name].append(exchange)
        return found


@contextmanager
def serving(script: Any = None) -> Iterator[Any]:
    """An emulator on loopback whose model follows the script of the run, unless told otherwise."""
    with emulator.serve(emulator.Emulator(script or emulator.Script.agent(plan()))) as running:
        yield running


def ran(
    stand: Stand, running: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: Sequence[str], budget: str
) -> Ran:
    """Run the command against `running` and keep what it left. Call it with the key in the environment."""
    target = tmp_path / "record.json"
    code = cli.main([*stand.arguments(running.url, *options, budget=budget), "--record", str(target)])
    captured = capsys.readouterr()
    raw = target.read_bytes() if target.exists() else b"{}"
    return Ran(code, captured.out, captured.err, json.loads(raw), raw, running.server)
