"""`ToolIndex`: exact names first, then the words of the definitions. Plain Python, built once per registry content."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from .._tool import Tool
from ._match import Match
from ._names import behind_paths, ends, infer_servers, looks_like_name, whole_name, written_names
from ._postings import Postings
from ._query import Wanted, near, understood
from ._text import words

_EXACT = 1_000.0
_FLOOR, _FLOOR_OF_WORDS, _LONG = 0.4, 0.9, 8
"""The best tool must score the first of these, or the second divided by the number of things asked for if that is
less, times the rarity of all that is asked; below it nothing fits and nothing is returned. Queries of more than `_LONG`
things tell a story, and need half of that. Calibrated on queries put to tool sets that cannot serve them."""

_TAIL = 0.25
"""What scores less than this share of the best is no answer but noise: it would be loaded and paid for."""

_BROAD = 3_000
"""Tools that the rarer words of a query may bring in; the remaining, common words only rank what is there already."""

_CANDIDATES = 200
_ALIKE = 6
"""Tools of several servers that one bare name may mean; more are no name but a word."""

_NAME_LENGTH = 4_000


class ToolIndex:
    """Searches tool definitions by name, by server and by words. Deterministic; never raises for any query.

    Exact and namespaced names come first, in the order they were written; then weighted BM25. Ties keep the registry's
    order. Of several tools with one name the first counts. `tools` are the tools that are searched.
    """

    __slots__ = ("_names", "_positions", "_postings", "tools")

    def __init__(self, tools: Sequence[Tool]) -> None:
        first: dict[str, Tool] = {}
        for tool in tools:
            first.setdefault(tool.name, tool)
        self.tools: tuple[Tool, ...] = tuple(first.values())
        self._positions = {name: place for place, name in enumerate(first)}
        self._names: dict[str, list[int]] = {}
        for place, name in enumerate(first):
            self._names.setdefault(whole_name(name), []).append(place)
        self._postings = Postings(self.tools, infer_servers(self.tools))

    def position(self, name: str) -> int:
        """The place of a tool in the registry's order, from 0; -1 for a name that is not in it."""
        return self._positions.get(name, -1)

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` tools that fit `query`, best first; empty when nothing fits."""
        if limit < 1 or not self.tools:
            return []
        named, complete = self._named(query)
        if complete:
            return named[:limit]
        seen = {match.name for match in named}
        found = [match for match in self._worded(query, limit + len(named)) if match.name not in seen]
        return (named + found)[:limit]

    def _named(self, query: str) -> tuple[list[Match], bool]:
        """The tools that `query` names, and whether it names nothing else."""
        text = query[:_NAME_LENGTH].strip()
        whole = self._exact(text)
        if whole:
            return [Match(self.tools[place].name, _EXACT, "exact name") for place in whole], True
        pieces, only = written_names(text)
        hits: dict[int, str] = {}
        missed = False
        for piece in pieces:
            identifier = only or looks_like_name(piece)
            found = self._exact(piece) if identifier or len(pieces) == 1 else []
            why = "exact name"
            if not found and identifier:
                found, why = self._bare(piece), "exact name without its prefix"
                found = found if len(found) <= _ALIKE else []
            missed = missed or not found
            for place in found:
                hits.setdefault(place, why)
        named = enumerate(hits.items())
        matches = [Match(self.tools[place].name, _EXACT - order, why) for order, (place, why) in named]
        return matches, bool(matches) and not missed

    def _exact(self, written: str) -> list[int]:
        return self._names.get(whole_name(written), [])

    def _bare(self, written: str) -> list[int]:
        """The tools whose name ends or begins, at a separator, with what is written; else one at the end of a path."""
        terms = [term for word in words(written) for term in self._postings.memo[word][:1]]
        key = whole_name(written)
        found = [place for place in self._postings.holders_of_all(terms) if key in ends(self.tools[place].name)]
        for rest in behind_paths(written) if not found else ():
            found = found or self._names.get(rest, [])
        return found

    def _worded(self, query: str, limit: int) -> list[Match]:
        postings = self._postings
        wanted = [
            want if want.terms else Wanted(want.word, near(want.word, postings.name_terms))
            for want in understood(query, postings.memo, postings)
        ]
        scores = self._scores(wanted)
        best = _best(scores, limit)
        if not best or scores[best[0]] < self._floor(wanted):
            return []
        near_best = [place for place in best if scores[place] >= scores[best[0]] * _TAIL]
        return [Match(self.tools[place].name, scores[place], self._why(place, wanted)) for place in near_best]

    def _floor(self, wanted: Sequence[Wanted]) -> float:
        asked = sum(self._worth(want) for want in wanted)
        return asked * min(_FLOOR, _FLOOR_OF_WORDS / len(wanted)) / (2.0 if len(wanted) > _LONG else 1.0)

    def _scores(self, wanted: Sequence[Wanted]) -> dict[int, float]:
        """Place -> score. The rarest words bring tools in, until enough are there; the others add to those only."""
        sizes = {want.word: sum(map(self._postings.size, (term for term, _ in want.terms[:1]))) for want in wanted}
        scores: dict[int, float] = {}
        late: list[Wanted] = []
        spent = 0
        for want in sorted(wanted, key=lambda want: sizes[want.word]):
            if spent and spent + sizes[want.word] > _BROAD:
                late.append(want)
                continue
            spent += sizes[want.word]
            spent += self._bring(want, scores, _BROAD - spent)
        if late:
            candidates = _best(scores, _CANDIDATES)
            for want in late:
                gains = [(self._postings.gains(term), factor) for term, factor in self._factors(want)]
                for place in candidates:
                    scores[place] += max((held.get(place, 0.0) * factor for held, factor in gains), default=0.0)
        return scores

    def _bring(self, want: Wanted, scores: dict[int, float], room: int) -> int:
        """Adds what one wanted thing gives; of the terms that stand for it the best counts, not their sum."""
        factors = self._factors(want)
        if not factors:
            return 0
        main = self._postings.gains(factors[0][0])
        for place, gain in main.items():
            scores[place] = scores.get(place, 0.0) + gain * factors[0][1]
        extra = 0
        given: dict[int, float] = {}
        for term, factor in factors[1:]:
            held = self._postings.gains(term)
            extra += len(held)
            few = extra <= room
            for place, gain in held.items() if few else ((place, held[place]) for place in scores if place in held):
                if place not in main and gain * factor > given.get(place, 0.0):
                    given[place] = gain * factor
        for place, gain in given.items():
            scores[place] = scores.get(place, 0.0) + gain
        return min(extra, max(room, 0))

    def _factors(self, want: Wanted) -> list[tuple[str, float]]:
        """The terms of `want` with what each counts: a stand-in is worth no more than the word it stands for."""
        worth = self._worth(want)
        rarity, gains = self._postings.rarity, self._postings.gains
        return [(term, share * min(1.0, worth / (rarity(len(gains(term))) or 1.0))) for term, share in want.terms]

    def _worth(self, want: Wanted) -> float:
        """How rare what is wanted is: the rarity of its main term; of something unknown, the greatest."""
        if not want.terms or want.terms[0][1] < 1.0:
            return self._postings.rarity(0)
        return self._postings.rarity(len(self._postings.gains(want.terms[0][0])))

    def _why(self, place: int, wanted: Sequence[Wanted]) -> str:
        held = [want.word for want in wanted if any(place in self._postings.gains(term) for term, _ in want.terms)]
        return "words: " + ", ".join(held[:8])


def _best(scores: dict[int, float], limit: int) -> list[int]:
    """The places of the `limit` highest scores, best first; ties in the registry's order."""
    least = min(nlargest(limit, scores.values()), default=0.0)
    return sorted((place for place, score in scores.items() if score >= least), key=lambda p: (-scores[p], p))[:limit]
