"""Is `auto` ever the dearest choice? Whole sessions with default settings against sending everything.

    python benchmarks/auto_cost.py [--sizes 20,40,80,200,1000] [--sessions short,long] [--loads 2,6] [--tools FILE ...]

For {4, 40 turns} x {2, 6 loads} x price rows x numbers of tools, both sessions are played with the real SDKs, and their
cost is computed from the captured requests: cached is the common prefix with the previous request, if it has at least
1,024 tokens. Costs are in prices of one uncached input token, output counts five. Exits 1 if `auto` costs more than
`eager` plus 5% anywhere.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
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
        """The cost of `eager` and of `auto`, and what `auto` took."""
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
            raise SystemExit(f"{case.dialect} {case.model} {case.plan.name}: {'; '.join(played.problems)}")
        measured = bench.measure(case.dialect, case.model, played.sent, self.counter)
        return measured, "/".join(sorted({report.strategy for report in played.reports})) or "eager"


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line per combination; 0 if `auto` keeps within the bound everywhere, else 1."""
    options = _options(argv)
    whole = bench.from_files(options.tools) if options.tools else bench.embedded()
    targets = bench.targets(whole)
    costs = Costs(bench.Counter())
    print(f"{len(whole)} tools of {whole.servers} servers, tokens: {costs.counter.name}, bound: eager x {ALLOWED}")
    worst, dearer = 0.0, 0
    for size in map(int, options.sizes.split(",")):
        for loads in map(int, options.loads.split(",")):
            tools = whole.sized(size, keep=[target.tool for target in targets[:loads]])
            for session in options.sessions.split(","):
                for row in ROWS:
                    eager, auto, taken = costs.of(Work(tools, session, loads), row, targets)
                    ratio = auto / eager
                    worst = max(worst, ratio)
                    dearer += ratio > ALLOWED
                    mark = "  DEARER" if ratio > ALLOWED else ""
                    print(
                        f"{size:>5} tools  {loads} loads  {session:<5}  {row.name:<29} {taken:<7}"
                        f"eager {eager:>12,.0f}  auto {auto:>12,.0f}  {ratio:6.1%}{mark}",
                        flush=True,
                    )
    print(f"dearest: {worst:.1%} of eager; beyond the bound: {dearer}")
    return 1 if dearer else 0


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="auto against eager, in money")
    parser.add_argument("--sizes", default="20,40,80,200,1000", help="numbers of tools")
    parser.add_argument("--sessions", default="short,long", help="short: 4 turns, long: 40")
    parser.add_argument("--loads", default="2,6", help="tools that a session needs")
    parser.add_argument("--tools", nargs="*", type=Path, default=[], help="MCP tools/list files; default: embedded")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
