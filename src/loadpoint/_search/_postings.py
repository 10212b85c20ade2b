"""Which tools hold which term, and with what weight: built from raw words, resolved when a term is asked for."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt

from .._tool import Tool
from ._fields import description_words, name_words, parameter_words
from ._meaning import Meanings
from ._related import Related
from ._text import Terms, words

NAME, SERVER, DESCRIPTION, PARAMETER, PARAMETER_TEXT = range(5)

WEIGHTS = (10.0, 3.0, 1.0, 0.4, 0.8)
"""What a term counts by where it stands: own name, server, description, parameter names, parameter texts."""

LENGTHS = (0.25, 0.0, 0.8, 0.9, 0.3)
"""How far a field that is longer than the others of its kind is held down, from 0 to 1."""

K1 = 1.5
"""BM25: how soon further weight stops counting."""

_CACHED = 150_000
"""Tools in all resolved terms that are kept: some 15 MB."""

_EXACTLY = 2_000
"""Terms that more tools hold than this are common anyway: how common is read off, not counted."""

_WALK = 8
"""Lists that are this many times longer than the tools of interest are searched for them, not walked."""


class Postings:
    """An inverted index over the words of tool definitions; immutable once built, apart from its memory of answers."""

    __slots__ = (
        "_cache",
        "_cached",
        "_count",
        "_fields",
        "_holders",
        "_sizes",
        "_words",
        "meanings",
        "memo",
        "name_terms",
    )

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, str], table: Related) -> None:
        self.memo = Terms()
        self.meanings = Meanings(tools, servers, self.memo, table)
        self._count = len(tools)
        fields: tuple[defaultdict[str, list[int]], ...] = tuple(defaultdict(list) for _ in WEIGHTS)
        lengths: tuple[list[int], ...] = tuple([] for _ in WEIGHTS)
        each = tuple(zip(fields, lengths, strict=True))
        server_words: dict[str, set[str]] = {}
        for place, tool in enumerate(tools):
            server = servers.get(tool.name, "")
            served = server_words.get(server)
            if served is None:
                served = server_words[server] = set(words(server))
            named = name_words(tool.name, server)
            described = description_words(tool)
            for (holders, sizes), found in zip(each, (named, served, described, *parameter_words(tool)), strict=True):
                sizes.append(len(found))
                for word in found:
                    holders[word].append(place)
        self._fields = tuple(
            (holders, _worth_by_place(sizes, weight, hold))
            for holders, sizes, weight, hold in zip(fields, lengths, WEIGHTS, LENGTHS, strict=True)
        )
        self._words = self._vocabulary()
        self.name_terms = sorted(
            {term for word in fields[NAME] for term in self.memo[word] if 3 < len(term) < 24 and term.isalpha()}
            | {term for word in fields[SERVER] for term in self.memo[word] if 3 < len(term) < 24 and term.isalpha()}
        )
        self._cache: dict[str, dict[int, float]] = {}
        self._cached = 0
        self._sizes: dict[str, int] = {}
        self._holders: dict[str, int] = {}

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
        """About how many tools hold the term: at most this many; one that holds two forms of a word counts twice."""
        known = self._sizes.get(term)
        if known is None:
            words = self._words.get(term, ())
            known = self._sizes[term] = sum(len(field.get(word, ())) for word in words for field, _ in self._fields)
        return known

    def holders(self, term: str) -> int:
        """How many tools hold the term: exactly for the rarer ones, else what the longest list shows at least."""
        known = self._holders.get(term)
        if known is None:
            known = self._holders[term] = self._counted(term)
        return known

    def _counted(self, term: str) -> int:
        lists = [field[word] for word in self._words.get(term, ()) for field, _ in self._fields if word in field]
        if self.size(term) > _EXACTLY:
            return max(map(len, lists))
        every: set[int] = set()
        return len(every.union(*lists))

    def holders_of_all(self, terms: Sequence[str]) -> list[int]:
        """The places of the tools that hold every one of `terms`, in order; none for no terms."""
        if not terms or not all(term in self for term in terms):
            return []
        rarest, *others = (self.gains(term) for term in sorted(terms, key=self.size))
        return sorted(place for place in rarest if all(place in held for held in others))

    def gains(self, term: str) -> dict[int, float]:
        """Place of a tool -> how well it holds the term, from 0 to 1: BM25 over the weighted fields, without rarity."""
        known = self._cache.get(term)
        if known is not None:
            return known
        weights: dict[int, float] = {}
        get = weights.get
        for field, worth in self._fields:
            lists = [field[word] for word in self._words.get(term, ()) if word in field]
            places: Iterable[int] = lists[0] if len(lists) == 1 else sorted({*()}.union(*lists))
            for place in places:
                weights[place] = get(place, 0.0) + worth[place]
        found = {place: weight / (weight + K1) for place, weight in weights.items()}
        if self._cached + len(found) > _CACHED:
            self._cache, self._cached = {}, 0
        self._cache[term] = found
        self._cached += len(found)
        return found

    def gains_of(self, term: str, places: Sequence[int]) -> dict[int, float]:
        """The same for some tools only, without walking a long list of holders."""
        known = self._cache.get(term)
        if known is None and self.size(term) < _WALK * len(places) * len(self._words.get(term, ())):
            known = self.gains(term)
        if known is not None:
            return {place: known[place] for place in places if place in known}
        found: dict[int, float] = {}
        parts = [
            ([field[word] for word in self._words.get(term, ()) if word in field], worth)
            for field, worth in self._fields
        ]
        for place in places:
            weight = 0.0
            for lists, worth in parts:
                if any(_has(holders, place) for holders in lists):
                    weight += worth[place]
            if weight:
                found[place] = weight / (weight + K1)
        return found

    def rarity(self, holders: int) -> float:
        """The inverse document frequency of a term that `holders` tools hold; never negative."""
        # Rounded, because `log` may differ in its last bit between platforms and a tie would be broken by that.
        return round(log(1 + (self._count - holders + 0.5) / (min(holders, self._count) + 0.5)), 6)


def _has(holders: list[int], place: int) -> bool:
    at = bisect_left(holders, place)
    return at < len(holders) and holders[at] == place


def _worth_by_place(lengths: Sequence[int], weight: float, hold: float) -> list[float]:
    """What one term of this field counts, for each tool."""
    said = [length for length in lengths if length]
    mean = sum(said) / len(said) if said else 1.0
    by_length = {length: weight / (1 - hold + hold * length / mean) for length in set(lengths)}
    return [by_length[length] for length in lengths]


def tempered(importance: float) -> float:
    """How far a common word of English counts less than its rarity among the tools says."""
    return sqrt(importance)
