"""Scores by words: what each tool gains from each thing that a query asks for, within a bounded number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nlargest

from ._postings import Postings, tempered
from ._query import Wanted, actions
from ._related import Related

_BROAD = 1_500
"""Tools that the rarer words of a query may bring in; the remaining, common words only rank what is there already."""

_BROAD_RELATED = 800
"""The same for all words that stand for others."""

_CANDIDATES, _LATE = 64, 8
"""Tools that common words rank, and how many such words."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One thing wanted: what it is worth (how rare it is), and its terms, each with what a full hit gives."""

    wanted: Wanted
    worth: float
    terms: tuple[tuple[str, float], ...]
    strange: bool
    """Whether neither these tools nor the table of English know the word: most often the name of some product."""


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
        known = bool(want.terms) and not want.guessed
        asked.append(Asked(want, worth, tuple(terms), not (known or want.stem in table or _has_digit(want.stem))))
    return asked


def _has_digit(word: str) -> bool:
    return any(char.isdigit() for char in word)


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of what was asked one tool holds, from 0 to 1. Numbers are left out: they are values to fill in."""

    everything: float
    things: float
    """Of what is no action; of everything, if only actions were asked for."""
    strange: float
    """Of everything, what share is words that nothing here knows."""
    asked: int
    """How many things and actions were asked for."""
    whole: bool
    """Whether it holds every thing in the very words that were asked."""


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

    def shares(self, place: int) -> Shares:
        """What share of the asked a tool holds."""
        gains = [given.get(place, 0.0) for given in self._given]
        counted = [at for at, want in enumerate(self._asked) if not _has_digit(want.wanted.stem)]
        things = [at for at in counted if self._asked[at].wanted.stem not in actions()]
        held = self._share(gains, counted, 0.0)
        whole = bool(things) and all(self._holds(at, place) for at in things)
        strange = sum(want.worth for want in self._asked if want.strange) / (self.total or 1.0)
        return Shares(held, self._share(gains, things, held), strange, len(counted), whole)

    def _share(self, gains: Sequence[float], of: Sequence[int], otherwise: float) -> float:
        worth = sum(self._asked[at].worth for at in of)
        return sum(gains[at] for at in of) / worth if worth else otherwise

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
