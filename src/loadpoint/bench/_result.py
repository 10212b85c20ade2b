"""The outcome of a run: one entry per measured session, what it costs, and what can be said of them side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._json import Json
from ._run import Case
from .measure import Measured, usd


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
    def label(self) -> str:
        """What was measured, in few words: the strategy, or the load point of a native form that was asked for."""
        policy = self.case.policy
        if policy is not None and policy.load_point is not None:
            return policy.load_point
        return self.strategy if self.taken == self.strategy else f"{self.strategy} ({self.taken})"

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
                "passes": measured.passes,
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
            f"{entry.case.dialect} {entry.case.model} {entry.label} {entry.session} ({entry.size} tools): {problem}"
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


def group_of(entry: Entry) -> tuple[str, str, str, int]:
    """What two entries have in common whose costs may be compared: dialect, model, session, number of tools."""
    return entry.case.dialect, entry.case.model, entry.case.plan.name, entry.size


def _verdicts(entries: Sequence[Entry]) -> list[str]:
    """One line per dialect, session and size: which strategy costs least, and where deferral loses."""
    lines: list[str] = []
    for first in entries:
        group = [item for item in entries if group_of(item) == group_of(first) and item.case.marked]
        priced = [(cost, item) for item in group if (cost := item.cost) is not None and item.strategy != "auto"]
        if not group or first is not group[0] or len(priced) < 2:
            continue
        cost, best = min(priced, key=lambda pair: pair[0])
        dearest, worst = max(priced, key=lambda pair: pair[0])
        line = (
            f"{first.case.dialect}, {first.case.model}, {first.case.plan.name}, {first.size:,} tools: "
            f"{best.label} costs least ({cost / dearest:.0%} of {worst.label})"
        )
        eager = next((price for price, item in priced if item.strategy == "eager"), None)
        losing = [item.label for price, item in priced if eager is not None and price > eager]
        lines.append(line + (f"; dearer than eager: {', '.join(losing)}" if losing else ""))
    return lines
