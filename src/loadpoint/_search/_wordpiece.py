"""Texts to the numbers that a BERT model reads: the uncased word pieces, in plain Python."""

from __future__ import annotations

import gzip
import re
import unicodedata
from functools import cache
from pathlib import Path

_FILE = Path(__file__).with_name("data") / "wordpieces.gz"
_UNKNOWN, _FIRST, _LAST = 100, 101, 102
_LONGEST = 100
"""Characters of one word; a longer one is unknown to the model."""

_PARTS = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002fa1f]|[^\W_]+|[^\w\s]|_")
"""A Chinese character, a run of letters and digits, or a sign."""


@cache
def _pieces() -> dict[str, int]:
    lines = gzip.decompress(_FILE.read_bytes()).decode("utf-8").split("\n")
    return {line: place for place, line in enumerate(lines) if line}


def numbered(text: str, limit: int) -> list[int]:
    """The places of the word pieces of `text` in the model's list, at most `limit` of them with the two at the ends."""
    found: list[int] = []
    for word in _PARTS.findall(_plain(text[: limit * 24])):
        found += _word(word)
        if len(found) >= limit:
            break
    return [_FIRST, *found[: limit - 2], _LAST]


def _plain(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Marks go for good: within a word they would cut it. Other categories of C are not letters anyway.
    apart = unicodedata.normalize("NFD", text.lower())
    return "".join(char for char in apart if unicodedata.category(char) not in ("Mn", "Cf"))


@cache
def _word(word: str) -> tuple[int, ...]:
    pieces, found, start = _pieces(), list[int](), 0
    if len(word) > _LONGEST:
        return (_UNKNOWN,)
    while start < len(word):
        mark = "##" if start else ""
        for end in range(len(word), start, -1):
            place = pieces.get(mark + word[start:end])
            if place is not None:
                found.append(place)
                start = end
                break
        else:
            return (_UNKNOWN,)
    return tuple(found)
