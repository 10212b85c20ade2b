"""The measuring code behind `loadpoint bench`: real SDKs, the emulator, scripted sessions, figures of what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .._capability import capability
from .._json import Json
from .._policy import Policy
from ._canned import arguments_for
from ._drive import DIALECTS, ECHOES, Chat, Driver, driver_of
from ._plan import LOADS, SESSIONS, Look, Need, Plan, PlannedTurn, Target, plan, targets
from ._player import Player
from ._run import Case, Played, play
from ._toolset import BenchTool, ToolFileError, ToolSet, distribution, embedded, from_files
from .measure import RULE, Counter, Measured, measure, usd

__all__ = [
    "DIALECTS",
    "ECHOES",
    "LOADS",
    "SESSIONS",
    "Bench",
    "BenchTool",
    "Case",
    "Chat",
    "Counter",
    "Driver",
    "Entry",
    "Look",
    "Measured",
    "Need",
    "Plan",
    "PlannedTurn",
    "Played",
    "Player",
    "Progress",
    "Target",
    "ToolFileError",
    "ToolSet",
    "arguments_for",
    "distribution",
    "driver_of",
    "embedded",
    "from_files",
    "measure",
    "plan",
    "play",
    "run",
    "targets",
    "tools",
]

_STRATEGIES = ("eager", "native", "resend", "auto")
MODELS = {"openai.chat": "gpt-5.4", "anthropic.messages": "claude-sonnet-5"}
"""The models named in the requests, unless others are asked for."""

Progress = Callable[[str, int, int], None]
"""Told what is measured now, how many sessions are done, and how many there are."""


def tools(dialect: str = "openai.chat") -> list[Json]:
    """The embedded tools as a request of this dialect takes them: a new list of wire definitions.

    Raises `KeyError` for a dialect that is not in `DIALECTS`.
    """
    driver = driver_of(dialect)
    return [driver.wire(tool) for tool in embedded().tools]


@dataclass(frozen=True, slots=True)
class Entry:
    """One measured session. `size` is the number of registered tools, `marked` says whether the program set cache
    markers (where the API has them), `problems` what went wrong in it.
    """

    case: Case
    size: int
    measured: Measured
    load_point: str | None
    taken: str
    problems: tuple[str, ...]
    searches: int = 0

    @property
    def strategy(self) -> str:
        """The strategy that was asked for."""
        return self.case.policy.strategy if self.case.policy is not None else "eager"

    @property
    def session(self) -> str:
        """The session's name; one without cache markers is told apart."""
        return self.case.plan.name if self.case.marked else f"{self.case.plan.name}-unmarked"

    @property
    def cost(self) -> float | None:
        """List price of the session in USD; None if the data has no price of the model."""
        prices = usd(self.case.model, self.case.dialect)
        return None if prices is None else self.measured.cost(prices)

    def as_json(self) -> Json:
        """The entry of `results`."""
        first, measured = self.measured.first, self.measured
        return {
            "dialect": self.case.dialect,
            "model": self.case.model,
            "strategy": self.strategy,
            "load_point": self.load_point,
            "session": self.session,
            "first_request": {
                "tokens": {**first, "total": sum(first.values())},
                "bytes": measured.first_bytes,
            },
            "requests": [row.as_json() for row in measured.rows],
            "totals": {
                "breaks": measured.breaks,
                "cached_tokens": measured.cached,
                "uncached_tokens": measured.uncached,
                "rounds": len(measured.rows),
                "cost": None if self.cost is None else round(self.cost, 6),
            },
        }


@dataclass(slots=True)
class Bench:
    """The outcome of a run. `counter` names how tokens were counted, `notes` what a reader has to know."""

    count: int
    servers: int
    counter: str
    exact: bool
    entries: list[Entry] = field(default_factory=list[Entry])
    notes: list[str] = field(default_factory=list[str])

    @property
    def failures(self) -> list[str]:
        """What went wrong, one line each; empty for a clean run."""
        return [
            f"{entry.case.dialect} {entry.strategy} {entry.session} ({entry.size} tools): {problem}"
            for entry in self.entries
            for problem in entry.problems
        ]

    @property
    def verdicts(self) -> list[str]:
        """One line per dialect, session and size: which strategy costs least, and where deferral loses."""
        return _verdicts(self.entries)

    def as_json(self) -> Json:
        """The published JSON. Where several sizes were measured each result also has its own `tools`."""
        several = len({entry.size for entry in self.entries}) > 1
        results = [
            {**entry.as_json(), "tools": {"count": entry.size, "servers": _servers(entry)}}
            if several
            else entry.as_json()
            for entry in self.entries
        ]
        return {"schema": 1, "tools": {"count": self.count, "servers": self.servers}, "results": results}


def _servers(entry: Entry) -> int:
    return len({tool.server for tool in entry.case.tools})


def run(  # noqa: PLR0913 - one parameter per option of the command
    tools: Sequence[str | Path] = (),
    *,
    sizes: Sequence[int] = (),
    strategies: Sequence[str] = (),
    dialects: Sequence[str] = (),
    session: str = "both",
    loads: int = 2,
    catalog_tokens: int | None = None,
    models: dict[str, str] | None = None,
    progress: Progress | None = None,
) -> Bench:
    """Measure every chosen strategy, dialect, session and size. Default: all of them, on the embedded tools.

    `tools`: files of MCP `tools/list` answers. `sizes`: numbers of registered tools (default: all of them once).
    `session`: short, long or both. `loads`: how many tools a session loads, up to 6. `models`: model by dialect.
    `progress` is kept informed.

    Raises `ToolFileError` for a file that cannot be used, `ValueError` for an option that cannot.
    """
    sessions = SESSIONS if session == "both" else (session,)
    _allowed("session", [session], (*SESSIONS, "both"))
    _allowed("strategy", strategies, _STRATEGIES)
    _allowed("dialect", dialects, DIALECTS)
    whole = from_files(tools) if tools else embedded()
    found = targets(whole)
    _enough(found, loads, sizes, tools)
    base = Policy() if catalog_tokens is None else Policy(catalog_tokens=catalog_tokens)
    counter = Counter()
    result = Bench(len(whole), whole.servers, counter.name, counter.exact, notes=[RULE])
    kept = [target.tool for target in found[:loads]]
    sets = [whole.sized(size, keep=kept) for size in sizes] or [whole]
    chosen = models or {}
    listed = [
        (case, len(tool_set))
        for tool_set in sets
        for dialect in dialects or DIALECTS
        for name in sessions
        for case in _cases(dialect, chosen, tool_set, plan(name, found, loads), strategies, base)
    ]
    result.notes += _notes(sets, listed, strategies)
    for done, (case, size) in enumerate(listed):
        if progress is not None:
            progress(_label(case, size), done, len(listed))
        result.entries.append(_entry(case, size, counter))
    if progress is not None:
        progress("done", len(listed), len(listed))
    return result


def _enough(found: Sequence[Target], loads: int, sizes: Sequence[int], tools: Sequence[str | Path]) -> None:
    if not 1 <= loads <= max(LOADS):
        raise ValueError(f"loads: {loads}; allowed: 1 to {max(LOADS)}")
    if not found:
        raise ToolFileError(f"{', '.join(map(str, tools))}: no tool has a description: nothing to search for")
    least = min(len(found), loads)
    if any(size < least for size in sizes):
        raise ValueError(f"sizes: {min(sizes)}; allowed: from {least}, the tools that the session needs")


def _allowed(option: str, given: Sequence[str], allowed: Sequence[str]) -> None:
    for value in given:
        if value not in allowed:
            raise ValueError(f"{option}: {value!r}; allowed: {', '.join(allowed)}")


def _cases(
    dialect: str, models: dict[str, str], tool_set: ToolSet, session: Plan, strategies: Sequence[str], base: Policy
) -> Iterator[Case]:
    model = models.get(dialect, MODELS[dialect])
    able = ("eager", *(name for name in capability(model, dialect=dialect).strategies if name != "eager"), "auto")
    for strategy in able:
        if strategies and strategy not in strategies:
            continue
        policy = None if strategy == "eager" else base.replace(strategy=strategy)
        yield Case(dialect=dialect, model=model, policy=policy, tools=tool_set.tools, plan=session)
        if dialect == "anthropic.messages" and strategy == "auto":
            yield Case(dialect=dialect, model=model, policy=policy, tools=tool_set.tools, plan=session, marked=False)


def _label(case: Case, size: int) -> str:
    strategy = case.policy.strategy if case.policy is not None else "eager"
    return f"{case.dialect} {strategy} {case.plan.name}, {size} tools"


def _entry(case: Case, size: int, counter: Counter) -> Entry:
    played = play(case)
    return Entry(
        case=case,
        size=size,
        measured=measure(case.dialect, case.model, played.sent, counter),
        load_point=played.load_point,
        taken=played.strategy,
        problems=tuple(played.problems),
        searches=played.searches,
    )


def _notes(sets: Sequence[ToolSet], listed: Sequence[tuple[Case, int]], strategies: Sequence[str]) -> list[str]:
    """What a reader has to know about these sessions. Raises `ValueError` if there is none to play."""
    if not listed:
        raise ValueError(f"strategy: {', '.join(strategies)}; not possible with these dialects and models")
    notes: list[str] = []
    if any(tool_set.copies for tool_set in sets):
        notes.append("sizes beyond the given tools are filled with renamed copies of them")
    if any(case.dialect == "openai.chat" and size > 128 for case, size in listed):
        notes.append("openai.chat eager beyond 128 functions is measured although the API refuses it")
    return notes


def _beside(one: Entry, other: Entry) -> bool:
    """Whether two entries measure the same work, so that their costs may be compared."""
    return (one.case.dialect, one.size, one.case.plan.name) == (other.case.dialect, other.size, other.case.plan.name)


def _verdicts(entries: Sequence[Entry]) -> list[str]:
    """One line per dialect, session and size: which strategy costs least, and where deferral loses."""
    lines: list[str] = []
    for first in entries:
        group = [item for item in entries if _beside(item, first) and item.case.marked]
        priced = [(cost, item) for item in group if (cost := item.cost) is not None and item.strategy != "auto"]
        if not group or first is not group[0] or len(priced) < 2:
            continue
        cost, best = min(priced, key=lambda pair: pair[0])
        dearest, worst = max(priced, key=lambda pair: pair[0])
        line = (
            f"{first.case.dialect}, {first.case.plan.name}, {first.size:,} tools: {best.strategy} costs least "
            f"({cost / dearest:.0%} of {worst.strategy})"
        )
        eager = next((price for price, item in priced if item.strategy == "eager"), None)
        losing = [item.strategy for price, item in priced if eager is not None and price > eager]
        lines.append(line + (f"; dearer than eager: {', '.join(losing)}" if losing else ""))
    return lines
