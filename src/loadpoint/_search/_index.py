"""`ToolIndex`: an inverted index over tool definitions, built once per registry content, in plain Python."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import nsmallest
from math import log

from .._tool import Tool
from ._fields import definition_words
from ._match import Match
from ._names import Names, infer_servers, looks_like_name, written_names
from ._query import Wanted, near, understood
from ._text import Terms, words

_K1 = 1.5
_B = 0.6
_EXACT = 1_000.0
_FLOOR, _FLOOR_OF_WORDS = 0.4, 0.9
"""The best tool must score the first of these, or the second divided by the number of things asked for if that is
less, times the rarity of all that is asked; below it nothing fits and nothing is returned. Calibrated on queries put to
tool sets that cannot serve them: two in three are refused, at a loss of one right answer in a hundred."""


class ToolIndex:
    """Searches tool definitions by name, by server and by words. Deterministic; never raises for any query.

    Exact and namespaced names come first, in the order they were written; then weighted BM25. Ties keep the registry's
    order. Of several tools with one name the first counts. Building takes some 25 microseconds per tool.
    """

    __slots__ = (
        "_docs", "_impacts", "_lengths", "_mean", "_memo", "_names", "_positions", "_vocabulary", "_weights", "tools",
    )  # fmt: skip

    def __init__(self, tools: Sequence[Tool]) -> None:
        first: dict[str, Tool] = {}
        for tool in tools:
            first.setdefault(tool.name, tool)
        self.tools: tuple[Tool, ...] = tuple(first.values())
        self._positions = {name: place for place, name in enumerate(first)}
        self._names = Names(self._positions)
        self._memo = Terms()
        self._docs: dict[str, array[int]] = {}
        self._weights: dict[str, array[float]] = {}
        self._impacts: dict[str, list[float]] = {}
        self._lengths = array("f")
        self._vocabulary: list[str] | None = None
        self._read()

    def position(self, name: str) -> int:
        """The place of a tool in the registry's order, from 0; -1 for a name that is not in it."""
        return self._positions.get(name, -1)

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` tools that fit `query`, best first; empty when nothing fits."""
        if limit < 1 or not self.tools:
            return []
        named, complete = self._named(query, limit)
        if complete:
            return named[:limit]
        seen = {match.name for match in named}
        found = [match for match in self._worded(query, limit + len(named)) if match.name not in seen]
        return (named + found)[:limit]

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        """The same over other tools, so that the index is a `Ranker` too."""
        return ToolIndex(tools).search(query, limit)

    def _read(self) -> None:
        servers = infer_servers(self.tools)
        docs: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
        weights: defaultdict[str, array[float]] = defaultdict(lambda: array("f"))
        for place, tool in enumerate(self.tools):
            counted = definition_words(tool, servers.get(tool.name, ""), self._memo)
            self._lengths.append(sum(counted.values()))
            for term, weight in counted.items():
                docs[term].append(place)
                weights[term].append(weight)
        self._docs = dict(docs)
        self._weights = dict(weights)
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def _named(self, query: str, limit: int) -> tuple[list[Match], bool]:
        """The tools that `query` names, and whether it names nothing else."""
        text = query[:4_000].strip()
        whole = self._names.exact(text)
        if whole:
            return [Match(self.tools[place].name, _EXACT, "exact name") for place in whole], True
        pieces, only = written_names(text)
        names = tuple(self._positions)
        hits: dict[int, str] = {}
        missed = False
        for piece in pieces:
            identifier = only or looks_like_name(piece)
            found = self._names.exact(piece) if identifier or len(pieces) == 1 else []
            why = "exact name"
            if not found and identifier:
                found, why = self._names.bare(piece, names), "exact name without its prefix"
                found = found if len(found) <= limit else []
            missed = missed or not found
            for place in found:
                hits.setdefault(place, why)
        matches = [
            Match(self.tools[place].name, _EXACT - order, why) for order, (place, why) in enumerate(hits.items())
        ]
        return matches, bool(matches) and not missed

    def _worded(self, query: str, limit: int) -> list[Match]:
        wanted = [want if want.terms else self._similar(want) for want in understood(query, self._memo, self._docs)]
        scores: defaultdict[int, float] = defaultdict(float)
        for want in wanted:
            for place, gain in self._gains(want):
                scores[place] += gain
        best = nsmallest(limit, scores, key=lambda place: (-scores[place], place))
        asked = sum(self._worth(want) for want in wanted)
        if not best or scores[best[0]] < asked * min(_FLOOR, _FLOOR_OF_WORDS / len(wanted)):
            return []
        return [Match(self.tools[place].name, scores[place], self._why(place, wanted)) for place in best]

    def _similar(self, want: Wanted) -> Wanted:
        """An unknown word with the words of names that look like it: models misspell and abbreviate."""
        if self._vocabulary is None:
            found = {term for tool in self.tools for word in words(tool.name) for term in self._memo[word]}
            self._vocabulary = sorted(found & self._docs.keys())
        return Wanted(want.word, near(want.word, self._vocabulary))

    def _gains(self, want: Wanted) -> Iterable[tuple[int, float]]:
        """What each tool gains by one wanted thing: the best of the terms that stand for it, not their sum."""
        if len(want.terms) == 1 and want.terms[0][1] == 1.0:
            term = want.terms[0][0]
            return zip(self._docs[term], self._impact(term), strict=True)
        best: dict[int, float] = {}
        worth = self._worth(want)
        for term, share in want.terms:
            factor = share * min(1.0, worth / self._idf(len(self._docs[term])))
            for place, impact in zip(self._docs[term], self._impact(term), strict=True):
                gain = impact * factor
                if gain > best.get(place, 0.0):
                    best[place] = gain
        return best.items()

    def _worth(self, want: Wanted) -> float:
        """How rare what is wanted is: the rarity of its main term, or of anything unknown."""
        if not want.terms or want.terms[0][1] < 1.0:
            return self._idf(0)
        return self._idf(len(self._docs[want.terms[0][0]]))

    def _idf(self, holders: int) -> float:
        return log(1 + (len(self.tools) - holders + 0.5) / (holders + 0.5))

    def _impact(self, term: str) -> list[float]:
        """What each holder of `term` gains by it; computed when a term is first asked for."""
        known = self._impacts.get(term)
        if known is None:
            docs, lengths, mean = self._docs[term], self._lengths, self._mean
            idf = self._idf(len(docs))
            known = [
                idf * weight * (_K1 + 1) / (weight + _K1 * (1 - _B + _B * lengths[place] / mean))
                for place, weight in zip(docs, self._weights[term], strict=True)
            ]
            if len(self._impacts) < 20_000:
                self._impacts[term] = known
        return known

    def _why(self, place: int, wanted: Sequence[Wanted]) -> str:
        held = [want.word for want in wanted if any(place in self._docs[term] for term, _ in want.terms)]
        return "words: " + ", ".join(held[:8])
