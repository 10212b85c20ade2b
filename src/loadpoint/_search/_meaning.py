"""What tools and queries mean, as sums of the vectors of their words: finds what shares no word. Integers only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from math import sqrt
from operator import mul

from .._tool import Tool
from ._fields import description_words, name_words
from ._related import Related, signs, unpacked
from ._text import Terms, words

_SCALE = 32
"""Weights of fields are whole numbers: this much for one word of weight 1."""

_ROWS = 20_000
"""Tools whose numbers are kept once they were worked out: some 12 MB."""

_LONGEST = 400


def _shares(weight: float) -> tuple[int, ...]:
    """What one word of a field counts, by how many words it has: long texts say less per word."""
    return tuple(max(1, int(weight * _SCALE / sqrt(length or 1) + 0.5)) for length in range(_LONGEST + 1))


_NAMED, _SERVED, _DESCRIBED = _shares(1.0), _shares(0.3), _shares(0.8)

Row = tuple[list[int], float]
"""The numbers of a text and their length as a vector."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a query means: its numbers, their length as a vector, and their signs as bits."""

    numbers: list[int]
    length: float
    signs: int


class WordVectors(dict[str, int]):
    """Raw word -> the packed vector of what it means; a memo."""

    __slots__ = ("_memo", "_related")

    def __init__(self, memo: Terms, table: Related) -> None:
        super().__init__()
        self._memo = memo
        self._related = table

    def __missing__(self, word: str) -> int:
        packed = sum(map(self._related.packed, self._memo[word]))
        self[word] = packed
        return packed


class Meanings:
    """What each tool means, worked out when it is asked for: most tools of a large registry never are."""

    __slots__ = ("_rows", "_servers", "_signs", "_table", "_tools", "_vectors")

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, str], memo: Terms, table: Related) -> None:
        self._tools = tools
        self._servers = servers
        self._table = table
        self._vectors = WordVectors(memo, table)
        self._rows: dict[int, Row] = {}
        self._signs: list[int] | None = None

    def _packed(self, place: int) -> int:
        """A tool's own name, its server and the beginning of its description as one sum of vectors."""
        tool, vector = self._tools[place], self._vectors.__getitem__
        server = self._servers.get(tool.name, "")
        packed = 0
        for shares, found in (
            (_NAMED, name_words(tool.name, server)),
            (_SERVED, set(words(server))),
            (_DESCRIBED, description_words(tool)),
        ):
            if found:
                packed += shares[min(len(found), _LONGEST)] * sum(map(vector, found))
        return packed

    def of(self, stems: Iterable[str]) -> Meaning | None:
        """What a query of these stems means; None if none of them is known."""
        packed = sum(map(self._table.packed, stems))
        row = _row(packed)
        return None if row is None else Meaning(*row, signs(packed))

    def nearest(self, query: Meaning, limit: int) -> list[int]:
        """About the `limit` tools that mean the most like the query, by the signs of their numbers only; unordered."""
        if self._signs is None:
            self._signs = [signs(self._packed(place)) for place in range(len(self._tools))]
        apart = [(held ^ query.signs).bit_count() for held in self._signs]
        least = max(nsmallest(limit, apart), default=0)
        return [place for place, bits in enumerate(apart) if bits <= least][: 2 * limit]

    def closeness(self, query: Meaning, place: int) -> float:
        """The cosine between the query and a tool, never below 0."""
        row = self._rows.get(place)
        if row is None:
            if len(self._rows) >= _ROWS:
                self._rows.clear()
            row = self._rows[place] = _row(self._packed(place)) or ([], 0.0)
        if not row[1]:
            return 0.0
        product: int = sum(map(mul, query.numbers, row[0]))
        return max(0.0, product / (query.length * row[1]))


def _row(packed: int) -> Row | None:
    if not packed:
        return None
    numbers = unpacked(packed)
    length = sqrt(sum(map(mul, numbers, numbers)))
    return (numbers, length) if length else None
