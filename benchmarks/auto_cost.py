"""Is `auto` ever the dearest choice? Whole sessions with default settings against sending everything.

    python benchmarks/auto_cost.py [--sizes 20,40,80,200,1000] [--sessions short,long] [--loads 2,6] [--tools FILE ...]

For {4, 40 turns} x {2, 6 loads} x price rows x numbers of tools, both sessions are played with the real SDKs, and their
cost is computed from the captured requests: cached is the common prefix with the previous request, if it has at least
1,024 tokens. Costs are in prices of one uncached input token, output counts five. Exits 1 if `auto` costs more than
`eager` plus 5% anywhere, or a session fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

from loadpoint import Policy, bench
from loadpoint._prices import Prices

ALLOWED = 1.05
OUTPUT = 5.0


@dataclass(frozen=True)
class Row:
    """One price row, with a dialect and model that are priced like it."""

    name: str
    dialect: str
    model: str
    prices: Prices


ROWS = (
    Row("read 0.1, no write fee", "openai.chat", "gpt-5.4", Prices(1.0, 0.1, 1.0, OUTPUT)),
    Row("read 0.5, no write fee", "openai.chat", "gpt-4o", Prices(1.0, 0.5, 1.0, OUTPUT)),
    Row("read 0.1, write 1.25, native", "anthropic.messages", "claude-sonnet-5", Prices(1.0, 0.1, 1.25, OUTPUT)),
    Row("read 0.1, write 1.25, resend", "anthropic.messages", "claude-opus-4-1", Prices(1.0, 0.1, 1.25, OUTPUT)),
)


class SessionError(Exception):
    """A session that did not come to its end; the message says why."""


@dataclass(frozen=True)
class Work:
    """One session of one set of tools."""

    tools: bench.ToolSet
    session: str
    loads: int


class Costs:
    """Plays sessions and remembers their figures: eager sessions differ in nothing but the model's name."""

    def __init__(self, counter: bench.Counter) -> None:
        self.counter = counter
        self._eager: dict[tuple[str, str, int, int], bench.Measured] = {}

    def of(self, work: Work, row: Row, targets: Sequence[bench.Target]) -> tuple[float, float, str]:
        """The cost of `eager` and of `auto`, and what `auto` took. Raises `SessionError`."""
        case = bench.Case(
            dialect=row.dialect,
            model=row.model,
            policy=None,
            tools=work.tools.tools,
            plan=bench.plan(work.session, targets, work.loads),
        )
        key = (row.dialect, work.session, work.loads, len(work.tools))
        if key not in self._eager:
            self._eager[key] = self._measured(case)[0]
        auto, taken = self._measured(replace(case, policy=Policy()))
        return self._eager[key].cost(row.prices), auto.cost(row.prices), taken

    def _measured(self, case: bench.Case) -> tuple[bench.Measured, str]:
        played = bench.play(case)
        if played.problems:
            raise SessionError("; ".join(played.problems))
        measured = bench.measure(case.dialect, case.model, played.sent, self.counter)
        return measured, "/".join(sorted({report.strategy for report in played.reports})) or "eager"


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line per combination; 0 if `auto` keeps within the bound everywhere, else 1."""
    options = _options(argv)
    whole = bench.from_files(options.tools) if options.tools else bench.embedded()
    targets = bench.targets(whole)
    costs = Costs(bench.Counter())
    print(f"{len(whole)} tools of {whole.servers} servers, tokens: {costs.counter.name}, bound: eager x {ALLOWED}")
    ratios: list[float] = []
    failed = 0
    for size in map(int, options.sizes.split(",")):
        for loads in map(int, options.loads.split(",")):
            tools = whole.sized(size, keep=[target.tool for target in targets[:loads]])
            for session, row in product(options.sessions.split(","), ROWS):
                label = f"{size:>5} tools  {loads} loads  {session:<5}  {row.name:<29}"
                try:
                    eager, auto, taken = costs.of(Work(tools, session, loads), row, targets)
                except SessionError as problem:
                    failed += 1
                    print(f"{label} FAILED: {problem}", flush=True)
                    continue
                ratios.append(auto / eager)
                mark = "  DEARER" if ratios[-1] > ALLOWED else ""
                figures = f"eager {eager:>12,.0f}  auto {auto:>12,.0f}  {ratios[-1]:6.1%}"
                print(f"{label} {taken:<7} {figures}{mark}", flush=True)
    dearer = sum(ratio > ALLOWED for ratio in ratios)
    print(f"dearest: {max(ratios, default=0):.1%} of eager; beyond the bound: {dearer}; failed: {failed}")
    return 1 if dearer or failed else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="auto against eager, in money")
    parser.add_argument("--sizes", default="20,40,80,200,1000", help="numbers of tools")
    parser.add_argument("--sessions", default="short,long", help="short: 4 turns, long: 40")
    parser.add_argument("--loads", default="2,6", help="tools that a session needs")
    parser.add_argument("--tools", nargs="*", type=Path, default=[], help="MCP tools/list files; default: embedded")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
