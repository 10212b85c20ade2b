"""What a search gives back, the protocol of foreign rankers, and their fusion with the local index."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from .._tool import Tool

if TYPE_CHECKING:
    from ._index import ToolIndex

_RANK_OFFSET = 60
"""The constant of reciprocal rank fusion: how little the difference between the first ranks counts."""

_RANKED, _ADDED = 10, 50
"""Tools that both sides are asked for: places tell little further down, scores more."""

_ABSENT = 0.3
"""The share of the best local score for what the local search does not find, where scores are added."""

_TIMEOUT = 2.0
"""Seconds that a foreign ranker has: a model waits for the search, and the local results are there already."""


@dataclass(frozen=True, slots=True)
class Match:
    """One tool found by a search: its name, a score that compares within one search only, and why it was found."""

    name: str
    score: float
    why: str


@runtime_checkable
class Ranker(Protocol):
    """An embedding model, a reranker or anything else that orders tools by fitness for a query.

    `rank` may be a coroutine function. An attribute `timeout` (seconds) replaces the default of two.
    """

    def rank(
        self, query: str, tools: Sequence[Tool], limit: int
    ) -> Sequence[Match] | Coroutine[Any, Any, Sequence[Match]]:
        """At most `limit` matches among `tools`, best first; empty if nothing fits."""
        ...


RankFunction = Callable[[str, Sequence[Tool], int], Sequence[Match] | Coroutine[Any, Any, Sequence[Match]]]
"""The same as a plain function, or a coroutine function: query, tools, limit to matches."""


class FusedRanker:
    """A foreign ranker and the local index as one search: exact names first, the rest by reciprocal rank.

    A ranker that raises or takes too long is reported as a warning and left out of that search, where the local results
    stand alone; names it invents are dropped. A ranker whose scores are cosines says so by an attribute `weight`, what
    1.0 counts against the best local score: then scores are added, and where it finds nothing, nothing fits. Its
    attribute `alone` is the score that its best tool needs where the local search is silent.
    """

    __slots__ = ("_index", "_rank", "_ranker")

    def __init__(self, index: ToolIndex, ranker: Ranker | RankFunction) -> None:
        self._index = index
        self._ranker = ranker
        self._rank: RankFunction = ranker.rank if isinstance(ranker, Ranker) else ranker

    @property
    def by_rank(self) -> bool:
        """Whether scores come from ranks: they order, and say nothing about how well something fits."""
        return not isinstance(getattr(self._ranker, "weight", None), int | float)

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` matches, best first; empty if neither side finds anything."""
        weight: object = getattr(self._ranker, "weight", None)
        width = max(limit, _ADDED if isinstance(weight, int | float) else _RANKED)
        local = self._index.search(query, limit=width)
        exact = [match for match in local if match.why.startswith("exact")]
        foreign = None if exact and len(exact) == len(local) else self._foreign(query, width)
        if foreign is None or not (foreign or isinstance(weight, int | float)):
            return local[:limit]
        if isinstance(weight, int | float):
            if not local and foreign and foreign[0].score < getattr(self._ranker, "alone", 0.0):
                return []
            scores = _added(local[len(exact) :], foreign, weight)
        else:
            scores = _by_rank(local, foreign)
        scores.update((match.name, match.score + 1_000.0) for match in exact)
        reasons: dict[str, list[str]] = {}
        for match in local:
            reasons.setdefault(match.name, []).append(match.why)
        for match in foreign:  # only a name of the query's is exact
            reasons.setdefault(match.name, []).append(f"ranker: {match.why}")
        ranked = sorted(scores, key=lambda name: (-scores[name], self._index.position(name)))
        return [Match(name, scores[name], "; ".join(dict.fromkeys(reasons[name]))) for name in ranked[:limit]]

    def closest_servers(self, query: str, limit: int = 3) -> list[str]:
        """What the local index says: see `ToolIndex.closest_servers`."""
        return self._index.closest_servers(query, limit)

    def _foreign(self, query: str, limit: int) -> list[Match] | None:
        """What the ranker finds; None if it fails."""
        seconds = getattr(self._ranker, "timeout", _TIMEOUT)
        try:
            found = list(map(_usable, _within(seconds, lambda: self._rank(query, self._index.tools, limit))))
        except Exception as problem:  # noqa: BLE001 - a plug-in must not cost the user the whole call
            name = getattr(self._ranker, "__name__", type(self._ranker).__name__)
            warnings.warn(f"ranker {name} failed: {problem!r}", RuntimeWarning, stacklevel=3)
            return None
        known = {match.name: match for match in reversed(found) if self._index.position(match.name) >= 0}
        return [match for match in found if known.get(match.name) is match]


def _usable(found: object) -> Match:
    number: object = getattr(found, "score", None)
    if (
        not isinstance(found, Match)
        or not isinstance(number, int | float)
        or not all(map(_is_text, (found.name, found.why)))
    ):
        raise TypeError(f"{found!r} is no Match with a name, a score and a reason")
    return found


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _by_rank(*rankings: Sequence[Match]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, match in enumerate(ranking):
            scores[match.name] = scores.get(match.name, 0.0) + 1.0 / (_RANK_OFFSET + place)
    return scores


def _added(local: Sequence[Match], foreign: Sequence[Match], weight: float) -> dict[str, float]:
    """Local scores and `weight` times the foreign ones. Who is absent on one side gets there what is surely too much:
    locally a share of the best, else the last of the foreign scores. Nothing foreign: nothing fits.
    """
    if not foreign:
        return {}
    found = {match.name: match.score for match in local}
    other = {match.name: match.score for match in foreign}
    absent, last = _ABSENT * max(found.values(), default=0.0), min(other.values())
    return {name: found.get(name, absent) + weight * other.get(name, last) for name in (found | other)}


def _within(seconds: float, ask: Callable[[], Sequence[Match] | Coroutine[Any, Any, Sequence[Match]]]) -> list[Match]:
    """What `ask` gives, if it does within `seconds`; raises its error, or `TimeoutError`.

    It runs in a thread of its own: the caller may be within an event loop, and what blocks cannot be stopped otherwise.
    """
    import threading

    box: list[list[Match] | Exception] = []

    def run() -> None:
        try:
            found = ask()
            if not isinstance(found, Sequence):
                import asyncio

                found = asyncio.run(found)
            box.append(list(found))
        except Exception as problem:  # noqa: BLE001 - handed over to the caller's thread
            box.append(problem)

    worker = threading.Thread(target=run, name="loadpoint-ranker", daemon=True)
    worker.start()
    worker.join(seconds)
    if not box:
        raise TimeoutError(f"no answer within {seconds} seconds")
    if isinstance(box[0], Exception):
        raise box[0]
    return box[0]


def named_ranker(name: str) -> Ranker:
    """A new ranker of the entry point group `loadpoint.rankers`. Raises `LookupError`, which names the installed."""
    from importlib.metadata import entry_points

    group = entry_points(group="loadpoint.rankers")
    for point in group:
        if point.name == name:
            ranker: Ranker = point.load()()
            return ranker
    known = ", ".join(sorted(point.name for point in group)) or "none"
    raise LookupError(f"no ranker {name!r} is installed; installed: {known}")
