"""Which strategy costs least? The same sessions in every strategy, under the cache prices of each kind of provider.

    python benchmarks/strategies.py [--tools FILE ...] [--sizes 20,120] [--loads 2,6] [--sessions short,long]

Prints Markdown: per dialect what is sent, then the cost of each strategy as a share of sending everything, for models
whose list prices differ in what a cached and a written token costs. Sessions are played with the real SDKs against the
emulator; the rules of counting are those of `loadpoint bench`. Exits 1 if a session fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from loadpoint import Policy, bench
from loadpoint._prices import Prices, price

FORMS = ("eager", "resend", "frozen", "native")
WIRES = {"openai.chat": "gpt-5.4", "openai.responses": "gpt-5.4", "anthropic.messages": "claude-sonnet-5"}
"""The model that each dialect is measured with; only its native form and its markers depend on it."""

PRICED = (
    ("openai.chat", "deepseek-v4"),
    ("openai.chat", "gemini-4-argon"),
    ("openai.chat", "gpt-5.4"),
    ("openai.responses", "gpt-5.4"),
    ("openai.responses", "gpt-6.1-sol"),
    ("anthropic.messages", "claude-sonnet-5"),
    ("anthropic.messages", "claude-opus-5-5"),
    ("openai.chat", "kimi-k2.6"),
    ("openai.chat", "gpt-4.1"),
    ("openai.chat", "gpt-4o"),
    ("openai.chat", "gpt-4-turbo"),
)
"""One model for each price of a cached and of a written token, and the dialect that it is spoken to in."""


@dataclass(frozen=True)
class Session:
    """One kind of session over one number of tools."""

    name: str
    loads: int
    tools: bench.ToolSet

    @property
    def label(self) -> str:
        """For a line of a table."""
        return f"{len(self.tools)} tools, {self.name}, {self.loads} loads"


class Sessions:
    """Plays every session in every form, once."""

    def __init__(self, targets: Sequence[bench.Target], counter: bench.Counter) -> None:
        self.targets, self.counter = targets, counter
        self.failed: list[str] = []
        self._known: dict[tuple[str, str, str], bench.Measured | None] = {}

    def measured(self, dialect: str, form: str, session: Session) -> bench.Measured | None:
        """The figures; None where the dialect has no such form, or the session failed."""
        key = dialect, form, session.label
        if key not in self._known:
            self._known[key] = self._played(dialect, form, session)
        return self._known[key]

    def _played(self, dialect: str, form: str, session: Session) -> bench.Measured | None:
        model = WIRES[dialect]
        if form == "native" and not bench.forms(dialect, bench.Place(model)):
            return None
        case = bench.Case(
            dialect=dialect,
            model=model,
            policy=None if form == "eager" else Policy(strategy=form),
            tools=session.tools.tools,
            plan=bench.plan(session.name, self.targets, session.loads),
            in_body=True,
        )
        played = bench.play(case)
        if played.problems:
            self.failed.append(f"{dialect} {form} {session.label}: {'; '.join(played.problems)}")
            return None
        return bench.measure(dialect, model, played.sent, self.counter)


def sent(sessions: Sessions, dialect: str, played: Sequence[Session]) -> Iterator[str]:
    """The table of what a dialect sends."""
    yield f"`{dialect}`\n"
    yield "| session | strategy | first request | uncached | cached | breaks | rounds |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for session, form in product(played, FORMS):
        found = sessions.measured(dialect, form, session)
        if found is not None:
            first = sum(found.first.values())
            figures = (first, found.uncached, found.cached, found.breaks, len(found.rows))
            yield f"| {session.label} | {form} | {' | '.join(f'{figure:,}' for figure in figures)} |"


def costs(sessions: Sessions, played: Sequence[Session]) -> Iterator[str]:
    """The table of what the sessions cost, model by model; the least of a cell is bold, none where eager is."""
    labels = [f"{session.name}, {session.loads} loads" for session in played]
    yield f"{len(played[0].tools)} tools; resend / frozen / native, in percent of eager\n"
    yield f"| model | a cached token | a written one | {' | '.join(labels)} |"
    yield f"| --- | --- | --- |{' --- |' * len(labels)}"
    for dialect, model in PRICED:
        prices = price(model, dialect)
        if prices is None:
            continue
        rates = f"{prices.cached / prices.input:.2f} | {prices.written / prices.input:.2f}"
        cells = [_shares(sessions, dialect, session, prices) for session in played]
        yield f"| {model} ({dialect.partition('.')[2]}) | {rates} | {' | '.join(cells)} |"


def _shares(sessions: Sessions, dialect: str, session: Session, prices: Prices) -> str:
    found = [sessions.measured(dialect, form, session) for form in FORMS]
    money = [None if item is None else item.cost(prices) for item in found]
    eager, least = money[0], min((cost for cost in money if cost is not None), default=None)
    if eager is None:
        return ""
    shown = ["" if cost is None else f"{100 * cost / eager:.0f}" for cost in money]
    bold = [
        f"**{text}**" if cost is not None and cost == least else text for text, cost in zip(shown, money, strict=True)
    ]
    return " / ".join(text for text in bold[1:] if text)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; 0 if every session came to its end, else 1."""
    options = _options(argv)
    whole = bench.from_files(options.tools) if options.tools else bench.embedded()
    targets = bench.targets(whole)
    sessions = Sessions(targets, bench.Counter())
    print(f"{len(whole):,} tools of {whole.servers} servers, tokens: {sessions.counter.name}; {bench.RULE}.\n")
    played: list[Session] = []
    for size, loads, name in product(_numbers(options.sizes), _numbers(options.loads), options.sessions.split(",")):
        kept = [target.tool for target in targets[:loads]]
        played.append(Session(name, loads, whole.sized(size, keep=kept)))
    for dialect in WIRES:
        print("\n".join(sent(sessions, dialect, played)), end="\n\n", flush=True)
    for size in dict.fromkeys(len(session.tools) for session in played):
        alike = [session for session in played if len(session.tools) == size]
        print("\n".join(costs(sessions, alike)), end="\n\n", flush=True)
    for failure in sessions.failed:
        print(f"failed: {failure}", file=sys.stderr)
    return 1 if sessions.failed else 0


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="every strategy, for the same sessions, in money")
    parser.add_argument("--sizes", default="20,120", help="numbers of tools")
    parser.add_argument("--sessions", default="short,long", help="short: 4 turns, long: 40")
    parser.add_argument("--loads", default="2,6", help="tools that a session needs")
    parser.add_argument("--tools", nargs="*", type=Path, default=[], help="MCP tools/list files; default: embedded")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
