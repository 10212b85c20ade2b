"""What a run amounts to: figures of both sides from the provider's own usage, what disagrees, and the record of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .. import _models
from .._json import Json, as_list, as_object
from .._report import CallReport
from .._usage import Usage, UsageFields, read
from . import _script
from ._meter import Sent
from ._place import Place, Settings
from ._play import BARE, WRAPPED, Asked, Side
from ._questions import Answer
from ._redact import redacted

SCHEMA = 1
TOLERATED = 1.05
"""The share of the bare side's cost that the wrapped side may have: `auto` is never to cost more than this."""


@dataclass(frozen=True, slots=True)
class Figures:
    """One side in figures: requests that left, those that were answered, tokens, USD (None: unknown), seconds."""

    requests: int
    rounds: int
    usage: Usage
    cost: float | None
    seconds: float

    def as_json(self) -> Json:
        """The figures by name."""
        return {
            "requests": self.requests,
            "rounds": self.rounds,
            "input_tokens": self.usage.input_tokens,
            "cached_tokens": self.usage.cached,
            "written_tokens": self.usage.written,
            "output_tokens": self.usage.output,
            "cost": self.cost,
            "seconds": round(self.seconds, 2),
        }


@dataclass(slots=True, kw_only=True)
class Outcome:
    """A finished or stopped run. `stopped` says why it ended early; `host` is where it went, without credentials."""

    place: Place
    settings: Settings
    fields: UsageFields
    key: str
    host: str
    started: str
    sides: list[Side] = field(default_factory=list[Side])
    sent: list[Sent] = field(default_factory=list[Sent])
    spent: float = 0.0
    stopped: str | None = None
    answers: list[Answer] = field(default_factory=list[Answer])

    @property
    def verified(self) -> bool:
        """Whether both sides ran to their end and nothing disagrees."""
        return self.stopped is None and not self.disagreements

    def figures(self, name: str) -> Figures:
        """The figures of one side ("wrapped", "bare", "probe")."""
        rows = [row for row in self.sent if row.side == name]
        billed = [row for row in rows if row.figures is not None]
        costs = [row.cost for row in billed]
        known = [value for value in costs if value is not None]
        return Figures(
            requests=len(rows),
            rounds=sum(row.status == 200 for row in rows),
            usage=sum((row.figures for row in billed if row.figures), Usage()),
            cost=None if len(known) < len(costs) or not costs else sum(known),
            seconds=next((side.seconds for side in self.sides if side.name == name), 0.0),
        )

    @property
    def wrapped(self) -> Side | None:
        """The wrapped side, None if it never began."""
        return next((side for side in self.sides if side.name == WRAPPED), None)

    @property
    def disagreements(self) -> list[str]:
        """Where a claim of ours and the provider's figures do not go together."""
        found = [told for side in self.sides for asked in side.asked for told in self._of_call(side, asked)]
        if len(self.sides) == 2 and all(side.failure is None for side in self.sides):
            found += self._between(*self.sides)
        return found

    def _of_call(self, side: Side, asked: Asked) -> list[str]:
        rows = [row for row in self.sent if (row.side, row.call) == (side.name, asked.call) and row.figures]
        billed = sum((row.figures for row in rows if row.figures), Usage())
        shown = read(asked.usage, self.fields)
        where = f"{side.name}, turn {asked.turn}"
        found: list[str] = []
        if shown != billed:
            found.append(f"{where}: the reply says {_told(shown)}, the requests were billed {_told(billed)}")
        report = asked.report
        if report is None:
            return found
        prefix = report.prefix
        if len(report.rounds) != len(rows):
            found.append(f"{where}: the report has {len(report.rounds)} rounds, {len(rows)} requests were answered")
        elif rows and rows[0].figures and prefix.billed is not None and prefix.billed != rows[0].figures.cached:
            found.append(
                f"{where}: the report says {prefix.billed:,} tokens were read, the bill {rows[0].figures.cached:,}"
            )
        if prefix.disagrees:
            found.append(
                f"{where}: {prefix.predicted or 0:,} tokens were predicted to be shared, {prefix.billed or 0:,} were "
                "read from the cache"
            )
        return found

    def _between(self, wrapped: Side, bare: Side) -> list[str]:
        found: list[str] = []
        for number, said in enumerate(_script.TURNS, 1):
            if said.expects in bare.called.get(number, []) and said.expects not in wrapped.called.get(number, []):
                found.append(f"turn {number}: the bare client's model called {said.expects}, the wrapped one's did not")
        ours, theirs = self.figures(WRAPPED), self.figures(BARE)
        if ours.cost is not None and theirs.cost is not None and ours.cost > theirs.cost * TOLERATED:
            found.append(f"the wrapped side cost ${ours.cost:.4f}, the bare one ${theirs.cost:.4f}")
        if theirs.usage.cached and not ours.usage.cached:
            found.append("the bare side read from the cache, the wrapped one never did")
        return found

    @property
    def notes(self) -> list[str]:
        """What a reader has to know and that is nobody's mistake."""
        found: list[str] = []
        if self.sent and all(row.cost is None for row in self.sent):
            found.append(
                "no price is known of this model: cost is unknown, the budget was kept with the dearest prices"
            )
        for side in self.sides:
            first = next((row.figures for row in self.sent if row.side == side.name and row.figures), None)
            if first is not None and first.cached:
                found.append(
                    f"{side.name}: its first request read {first.cached:,} tokens that an earlier run had left"
                )
            for number, said in enumerate(_script.TURNS[: side.turns], 1):
                if said.expects and said.expects not in side.called.get(number, []):
                    found.append(f"{side.name}, turn {number}: the model did not call {said.expects}")
        if self.wrapped is not None:
            found += self._of_reports(self.wrapped)
        return found

    @staticmethod
    def _of_reports(side: Side) -> list[str]:
        reports = [asked.report for asked in side.asked if asked.report is not None]
        warnings = [warning for report in reports for warning in report.warnings]
        found = [f"report: {warning}" for warning in dict.fromkeys(warnings)]
        again = [
            asked.turn
            for asked in side.asked
            if asked.report and asked.report.searches and _script.TURNS[asked.turn - 1].follow_up
        ]
        found += [f"wrapped, turn {turn}: the model searched again for a tool that was loaded" for turn in again]
        if reports and not any(report.searches for report in reports):
            found.append(f"the wrapped side loaded nothing ({reports[-1].strategy}): --strategy insists on another way")
        return found

    def as_json(self) -> Json:
        """The record: settings, figures, verdicts, requests by shape and digest, answers. No key, header or prompt."""
        record: Json = {
            "schema": SCHEMA,
            "verified": self.verified,
            "started": self.started,
            "provider": self.place.provider,
            "host": self.host,
            "endpoint": self.settings.endpoint,
            "model": self.place.model,
            "dialect": self.place.dialect,
            "strategy": self.settings.strategy,
            "load_point": self.settings.load_point,
            "max_tokens": self.settings.max_tokens,
            "tools": len(_script.tools()),
            "budget": self.settings.budget,
            "spent": round(self.spent, 6),
            "stopped": self.stopped,
            "sides": {side.name: self._side(side) for side in self.sides},
            "disagreements": self.disagreements,
            "notes": self.notes,
            "open_questions": [answer.as_json() for answer in self.answers],
            "requests": [row.as_json() for row in self.sent],
        }
        cleaned: Json = _clean(record, self.key)
        return cleaned

    def _side(self, side: Side) -> Json:
        return {
            **self.figures(side.name).as_json(),
            "turns": side.turns,
            "called": [name for names in side.called.values() for name in names],
            "calls": [verdict(asked) for asked in side.asked if asked.report is not None],
        }


def verdict(asked: Asked) -> Json:
    """What the report of one call said: strategy, load point, searches, and the prefix as predicted and as billed."""
    report: CallReport | None = asked.report
    if report is None:
        return {}
    return {
        "turn": asked.turn,
        "strategy": report.strategy,
        "load_point": report.load_point,
        "reason": report.reason,
        "rounds": len(report.rounds),
        "searches": [{"query": search.query, "hits": list(search.hits)} for search in report.searches],
        "loaded": [tool.name for tool in report.loaded],
        "stable": report.prefix.stable,
        "predicted": report.prefix.predicted,
        "billed": report.prefix.billed,
        "broke": report.prefix.broke,
        "disagrees": report.prefix.disagrees,
    }


def host_of(client: Any) -> str:
    """The host that a client talks to, without path and credentials."""
    return _models.host(str(client.base_url))


def _told(usage: Usage) -> str:
    return f"{usage.input_tokens:,} in, {usage.cached:,} cached, {usage.written:,} written, {usage.output:,} out"


def _clean(value: Any, key: str) -> Any:
    """`value` with every text redacted: models and providers may repeat anything."""
    if isinstance(value, str):
        return redacted(value, key)
    found = as_object(value)
    if found is not None:
        return {name: _clean(item, key) for name, item in found.items()}
    items = as_list(value)
    return [_clean(item, key) for item in items] if items else value
