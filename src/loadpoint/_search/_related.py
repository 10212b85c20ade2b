"""Which English words mean nearly the same, and how common they are: a table of numbers, made once, shipped as data.

`data/README.md` says what it was made of and how; `benchmarks/related_words.py` makes it again. Integers only, so that
every platform and every Python computes the same from it.
"""

from __future__ import annotations

import gzip
import sys
from array import array
from functools import cache
from math import log
from pathlib import Path
from struct import Struct
from typing import Literal

DIMENSIONS = 64
"""Numbers that say what one word means."""

_LANE = Struct(f"<{DIMENSIONS + 1}I")
_OFFSET = 128
"""Lanes hold no signs: each number is written this much higher; the last lane counts how often that was done."""

_FILE = Path(__file__).with_name("data") / "related.gz"
_MAGIC = b"loadpoint related words 1\n"
_COMMON, _RARE, _LEAST = 100.0, 20_000.0, 0.2
"""Places in a list by frequency: up to the first a word says little; from the second on nothing is rarer. What the
commonest word counts, of 1."""


class Related:
    """The table. Words are stems; the commonest have the lowest places."""

    __slots__ = ("_first", "_near", "_places", "_ranks", "_share", "_vectors", "_words")

    def __init__(self, content: bytes) -> None:
        head, _, rest = content.removeprefix(_MAGIC).partition(b"\n")
        count, pairs, text = (int(number) for number in head.split())
        self._words = rest[:text].decode("ascii").split()
        self._places = {word: place for place, word in enumerate(self._words)}
        at = text
        self._ranks, at = _numbers("H", rest, at, count)
        self._first, at = _numbers("I", rest, at, count + 1)
        self._near, at = _numbers("H", rest, at, pairs)
        self._share = rest[at : at + pairs // 2]
        self._vectors = rest[at + pairs // 2 :]

    def __contains__(self, word: object) -> bool:
        """Whether the table has this stem."""
        return word in self._places

    def importance(self, word: str) -> float:
        """From 0.2 for the commonest words of English to 1 for rare ones and for those that are not in the table."""
        place = self._places.get(word)
        return 1.0 if place is None else _importance(self._ranks[place])

    def near(self, word: str) -> list[tuple[str, float]]:
        """The words that may stand for this one, nearest first, with their nearness from 0 to 1; often none."""
        place = self._places.get(word)
        if place is None:
            return []
        span = range(self._first[place], self._first[place + 1])
        return [(self._words[self._near[at]], (self._share[at >> 1] >> 4 * (at & 1) & 15) / 16) for at in span]

    def packed(self, word: str) -> int:
        """What the word means as one integer of lanes; such integers can be added, and multiplied by small ones. 0 for
        a word that is not in the table.
        """
        place = self._places.get(word)
        if place is None:
            return 0
        lanes = bytearray(_LANE.size)
        raw = self._vectors[place * DIMENSIONS : (place + 1) * DIMENSIONS]
        lanes[: DIMENSIONS * 4 : 4] = raw
        lanes[DIMENSIONS * 4] = 1
        return int.from_bytes(lanes, "little")


def unpacked(packed: int) -> list[int]:
    """The signed numbers in a sum of packed words."""
    *lanes, count = _LANE.unpack(packed.to_bytes(_LANE.size, "little"))
    offset = count * _OFFSET
    return [lane - offset for lane in lanes]


_ONES = sum(1 << 32 * lane for lane in range(DIMENSIONS))
_TOPS = _ONES << 31


def signs(packed: int) -> int:
    """One bit per lane of a sum of packed words: whether its number is positive or 0."""
    count = packed >> 32 * DIMENSIONS
    return (packed + ((1 << 31) - _OFFSET * count) * _ONES) & _TOPS


def _numbers(kind: Literal["H", "I"], content: bytes, at: int, count: int) -> tuple[array[int], int]:
    """`count` little-endian numbers from `at` on, and where they end."""
    found: array[int] = array(kind)
    end = at + count * found.itemsize
    found.frombytes(content[at:end])
    if sys.byteorder == "big":
        found.byteswap()
    return found, end


@cache
def _importance(rank: int) -> float:
    place = rank * 4.0  # ranks are stored in steps of four, so that they fit into two bytes
    share = log(1.0 + place / _COMMON) / log(1.0 + _RARE / _COMMON)
    return round(min(1.0, _LEAST + (1.0 - _LEAST) * share), 4)  # rounded: `log` may differ in the last bit


@cache
def related() -> Related:
    """The table that is shipped, read at first use."""
    return Related(gzip.decompress(_FILE.read_bytes()))
