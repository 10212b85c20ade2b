"""What a search gives back, the protocol of foreign rankers, and their fusion with the local index."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from .._tool import Tool

if TYPE_CHECKING:
    from ._index import ToolIndex

_RANK_OFFSET = 60
"""The constant of reciprocal rank fusion: how little the difference between the first ranks counts."""


@dataclass(frozen=True, slots=True)
class Match:
    """One tool found by a search: its name, a score that compares within one search only, and why it was found."""

    name: str
    score: float
    why: str


@runtime_checkable
class Ranker(Protocol):
    """An embedding model, a reranker or anything else that orders tools by fitness for a query."""

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        """At most `limit` matches among `tools`, best first; empty if nothing fits."""
        ...


class FusedRanker:
    """A foreign ranker and the local index as one search: exact names first, the rest by reciprocal rank.

    A ranker that raises is reported as a warning and left out of that search; names it invents are dropped.
    """

    __slots__ = ("_index", "_ranker")

    def __init__(self, index: ToolIndex, ranker: Ranker) -> None:
        self._index = index
        self._ranker = ranker

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` matches, best first; empty if neither side finds anything."""
        local = self._index.search(query, limit=max(limit, 10))
        exact = [match for match in local if match.why.startswith("exact")]
        foreign = [] if exact and len(exact) == len(local) else self._foreign(query, max(limit, 10))
        if not foreign:
            return local[:limit]
        scores: dict[str, float] = {}
        reasons: dict[str, list[str]] = {}
        for ranking in (local, foreign):
            for place, match in enumerate(ranking):
                scores[match.name] = scores.get(match.name, 0.0) + 1.0 / (_RANK_OFFSET + place)
                reasons.setdefault(match.name, []).append(match.why)
        for match in exact:
            scores[match.name] += 1.0
        ranked = sorted(scores, key=lambda name: (-scores[name], self._index.position(name)))
        return [Match(name, scores[name], "; ".join(dict.fromkeys(reasons[name]))) for name in ranked[:limit]]

    def _foreign(self, query: str, limit: int) -> list[Match]:
        try:
            found = list(self._ranker.rank(query, self._index.tools, limit))
        except Exception as problem:  # noqa: BLE001 - a plug-in must not cost the user the whole call
            warnings.warn(f"ranker {type(self._ranker).__name__} failed: {problem!r}", RuntimeWarning, stacklevel=3)
            return []
        known = {match.name: match for match in reversed(found) if self._index.position(match.name) >= 0}
        return [match for match in found if known.get(match.name) is match]
