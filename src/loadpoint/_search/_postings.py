"""Which tools hold which term, and with what weight: built from raw words, resolved when a term is asked for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import log

from .._tool import Tool
from ._fields import description_words, name_words, parameter_words
from ._text import Terms

NAME, PARAMETER, DESCRIPTION, PARAMETER_TEXT = 7.0, 0.75, 1.0, 0.5
"""Weights of a term by where it stands; a term's weight in a tool is their sum."""

K1, B = 1.5, 0.6
"""BM25: how soon further weight stops counting, and how much long definitions are held down."""

_CACHED = 150_000
"""Tools in all resolved terms that are kept: some 15 MB."""


class Postings:
    """An inverted index over the words of tool definitions; immutable once built, apart from a bounded cache."""

    __slots__ = ("_cache", "_cached", "_count", "_fields", "_norms", "_words", "memo", "name_terms")

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, str]) -> None:
        self.memo = Terms()
        self._count = len(tools)
        by_name: defaultdict[str, list[int]] = defaultdict(list)
        by_parameter: defaultdict[str, list[int]] = defaultdict(list)
        by_description: defaultdict[str, list[int]] = defaultdict(list)
        by_text: defaultdict[str, list[int]] = defaultdict(list)
        lengths: list[float] = []
        for place, tool in enumerate(tools):
            named, described = name_words(tool, servers.get(tool.name, "")), description_words(tool)
            parameters, texts = parameter_words(tool)
            for word in named:
                by_name[word].append(place)
            for word in described:
                by_description[word].append(place)
            for word in parameters:
                by_parameter[word].append(place)
            for word in texts:
                by_text[word].append(place)
            lengths.append(
                len(named) * NAME
                + len(described) * DESCRIPTION
                + len(parameters) * PARAMETER
                + len(texts) * PARAMETER_TEXT
            )
        self._fields = (
            (by_name, NAME),
            (by_description, DESCRIPTION),
            (by_parameter, PARAMETER),
            (by_text, PARAMETER_TEXT),
        )
        mean = sum(lengths) / len(lengths) if lengths else 1.0
        self._norms = [K1 * (1 - B + B * length / (mean or 1.0)) for length in lengths]
        self._words = self._vocabulary()
        self.name_terms = sorted(
            {term for word in by_name for term in self.memo[word] if 3 < len(term) < 24 and term.isalpha()}
        )
        self._cache: dict[str, dict[int, float]] = {}
        self._cached = 0

    def _vocabulary(self) -> dict[str, list[str]]:
        """Term -> the raw words that hold it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        memo = self.memo
        for word in sorted({word for field, _ in self._fields for word in field}):
            for term in memo[word]:
                found[term].append(word)
        return dict(found)

    def __contains__(self, term: object) -> bool:
        """Whether any tool holds the term."""
        return term in self._words

    def size(self, term: str) -> int:
        """About how many tools hold the term (at most; a tool with two forms of a word counts twice)."""
        return sum(len(field.get(word, ())) for word in self._words.get(term, ()) for field, _ in self._fields)

    def holders_of_all(self, terms: Sequence[str]) -> list[int]:
        """The places of the tools that hold every one of `terms`, in order; none for no terms."""
        if not terms or not all(term in self for term in terms):
            return []
        rarest, *others = (self.gains(term) for term in sorted(terms, key=self.size))
        return sorted(place for place in rarest if all(place in held for held in others))

    def gains(self, term: str) -> dict[int, float]:
        """Place of a tool -> what it gains by holding the term: BM25 over the weighted fields."""
        known = self._cache.get(term)
        if known is not None:
            return known
        weights: dict[int, float] = {}
        for word in self._words.get(term, ()):
            for field, weight in self._fields:
                for place in field.get(word, ()):
                    weights[place] = weights.get(place, 0.0) + weight
        factor = self.rarity(len(weights)) * (K1 + 1)
        norms = self._norms
        found = {place: factor * weight / (weight + norms[place]) for place, weight in weights.items()}
        if self._cached + len(found) > _CACHED:
            self._cache, self._cached = {}, 0
        self._cache[term] = found
        self._cached += len(found)
        return found

    def rarity(self, holders: int) -> float:
        """The inverse document frequency of a term that `holders` tools hold; never negative."""
        return log(1 + (self._count - holders + 0.5) / (min(holders, self._count) + 0.5))
