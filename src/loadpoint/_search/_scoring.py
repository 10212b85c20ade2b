"""Scores by words: what each tool gains from each thing that a query asks for, within a bounded number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest
from math import log, sqrt

from ._postings import Postings, tempered
from ._query import Wanted, actions
from ._related import Related

_BROAD = 1_500
"""Tools that the rarer words of a query may bring in; the remaining, common words only rank what is there already."""

_BROAD_RELATED = 800
"""The same for all words that stand for others."""

_CANDIDATES, _LATE = 64, 8
"""Tools that common words rank, and how many such words."""


_ALL = 5.0
"""The fitness of a tool that holds every thing that was asked for."""

_HELD, _THINGS, _LONG = 1.67, 1.30, 0.42
"""What the parts of a tool's fitness count, where closeness in meaning counts 1."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing wanted: what it is worth (how rare it is), and its terms, each with what a full hit gives."""

    wanted: Wanted
    worth: float
    terms: tuple[tuple[str, float], ...]


def weighed(wanted: Sequence[Wanted], postings: Postings, table: Related) -> list[Asked]:
    """What each wanted thing is worth in these tools. A stand-in gives no more than the word it stands for."""
    rarity, holders = postings.rarity, postings.holders
    asked: list[Asked] = []
    for want in wanted:
        main = want.terms[0] if want.terms and want.terms[0][1] >= 1.0 else None
        worth = rarity(holders(main[0]) if main else 0) * tempered(table.importance(want.stem))
        terms = [
            (term, share * (worth if share >= 1.0 else min(worth, rarity(holders(term))))) for term, share in want.terms
        ]
        asked.append(Asked(want, worth, tuple(terms)))
    return asked


class Scores:
    """The scores of one query, for the tools that hold the most of it.

    `total` is what a tool would get that holds everything asked for.
    """

    __slots__ = ("_asked", "_given", "_postings", "_used", "by_place", "total")

    def __init__(self, asked: Sequence[Asked], postings: Postings) -> None:
        self._asked = asked
        self._postings = postings
        self._given: list[dict[int, float]] = [{} for _ in asked]
        self._used: list[list[tuple[str, float, dict[int, float]]]] = [[] for _ in asked]
        self.total = sum(want.worth for want in asked)
        late = [*self._bring_mains(asked), *self._bring_related(asked)]
        scores = self._sums()
        chosen = highest(scores, _CANDIDATES)
        self.by_place: dict[int, float] = {place: scores[place] for place in chosen}
        for at, term, factor in late[:_LATE]:
            self._rank_with(at, term, factor, chosen)

    def _sums(self) -> dict[int, float]:
        filled = [given for given in self._given if given]
        scores = dict(filled[0]) if filled else {}
        for given in filled[1:]:
            for place, gain in given.items():
                scores[place] = scores.get(place, 0.0) + gain
        return scores

    def best(self, limit: int) -> list[int]:
        """The places of the `limit` highest scores, best first; ties in the registry's order."""
        return highest(self.by_place, limit)

    def fitness(self, place: int, closeness: float) -> float:
        """How far a tool fits at all, from 0 to 5: what share of everything asked it holds, what share of the
        things that are no actions, how close it is in meaning, and how much was asked, since a long story is never held
        as a whole. Fitted on queries put to tool sets that can and that cannot serve them.
        """
        gains = [given.get(place, 0.0) for given in self._given]
        held = held_things = sum(gains) / (self.total or 1.0)
        things = [at for at, want in enumerate(self._asked) if want.wanted.stem not in actions()]
        if things and all(self._holds(at, place) for at in things):
            return _ALL
        worth = sum(self._asked[at].worth for at in things)
        if worth:
            held_things = sum(gains[at] for at in things) / worth
        asked = round(log(len(gains) + 1), 6)
        return _HELD * sqrt(held) + _THINGS * sqrt(held_things) + closeness + _LONG * asked

    def _holds(self, at: int, place: int) -> bool:
        """Whether a tool holds the very word that was asked (or its right spelling), not one that stands for it."""
        want = self._asked[at]
        least = 0.0 if want.wanted.guessed else want.worth
        return any(factor >= least and place in gains for _, factor, gains in self._used[at])

    def why(self, place: int) -> str:
        """Which of the words asked for a tool holds, or which related word it holds instead, as `asked~held`."""
        held: list[str] = []
        for want, used in zip(self._asked, self._used, strict=True):
            gains = [(gain[place] * factor, term) for term, factor, gain in used if place in gain]
            if gains:
                term = max(gains)[1]
                held.append(want.wanted.word if term == want.wanted.stem else f"{want.wanted.word}~{term}")
        return "words: " + ", ".join(held[:8]) if held else "meaning"

    def _bring_mains(self, asked: Sequence[Asked]) -> list[tuple[int, str, float]]:
        """The rarest words bring tools in, until enough are there; the rest is handed back."""
        size = self._postings.size
        mains = [(at, *want.terms[0]) for at, want in enumerate(asked) if want.terms]
        mains = [main for main in mains if asked[main[0]].wanted.terms[0][1] >= 1.0]
        late: list[tuple[int, str, float]] = []
        spent = 0
        for at, term, factor in sorted(mains, key=lambda main: (size(main[1]), main[0])):
            if spent and spent + size(term) > _BROAD:
                late.append((at, term, factor))
                continue
            spent += size(term)
            gains = self._postings.gains(term)
            self._used[at].append((term, factor, gains))
            self._given[at] = {place: gain * factor for place, gain in gains.items()}
        return late

    def _bring_related(self, asked: Sequence[Asked]) -> list[tuple[int, str, float]]:
        """The same for the words that stand for others, by what they give; of several the best counts, not the sum."""
        size = self._postings.size
        related = [
            (factor, at, term)
            for at, want in enumerate(asked)
            for (term, factor), (_, share) in zip(want.terms, want.wanted.terms, strict=True)
            if share < 1.0
        ]
        related.sort(key=lambda held: (-held[0], held[1], held[2]))
        room = _BROAD_RELATED
        late: list[tuple[int, str, float]] = []
        for factor, at, term in related:
            cost = size(term)
            if cost > room:
                late.append((at, term, factor))
                continue
            room -= cost
            given = self._given[at]
            gains = self._postings.gains(term)
            self._used[at].append((term, factor, gains))
            for place, gain in gains.items():
                if gain * factor > given.get(place, 0.0):
                    given[place] = gain * factor
        return late

    def _rank_with(self, at: int, term: str, factor: float, chosen: Sequence[int]) -> None:
        given, scores = self._given[at], self.by_place
        gains = self._postings.gains_of(term, chosen)
        self._used[at].append((term, factor, gains))
        for place, gain in gains.items():
            more = gain * factor - given.get(place, 0.0)
            if more > 0.0:
                given[place] = gain * factor
                scores[place] += more


def highest(scores: dict[int, float], limit: int) -> list[int]:
    """The places of the `limit` highest scores, best first; ties in the registry's order."""
    if len(scores) > limit:
        least = min(nlargest(limit, scores.values()), default=0.0)
        places = [place for place, score in scores.items() if score >= least]
    else:
        places = list(scores)
    return sorted(places, key=lambda place: (-scores[place], place))[:limit]
