"""What a query asks for: its content words, each with the index terms that may stand for it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from ._related import Related
from ._text import Terms, fold, stem, terms, words
from ._words import OPPOSITES, STOP_WORDS, SYNONYMS, VAGUE_WORDS, VERBS

_CHARACTERS, _WORDS = 2_000, 48
SYNONYM, RELATED, PART, NEAR = 0.25, 0.8, 0.5, 0.5
"""Shares: what a synonym, the nearest of the related words, a part of a compound and a similar word count, against the
word itself."""


NEAR_AT_MOST = 8
"""Similar words that one unknown word may stand for."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One thing a query asks for: the word as written, and the terms that stand for it, each with its share."""

    word: str
    stem: str
    terms: tuple[tuple[str, float], ...]
    """The first is the word itself, where anything holds it; the others follow by what they count."""
    guessed: bool = False
    """Whether nothing stands for the word as written, so that similar spellings were taken."""


def understood(query: str, memo: Terms, index: Container[str], table: Related) -> list[Wanted]:
    """The content words of `query`; a word that nothing in the index stands for has no terms."""
    raw = [word for word in words(query[:_CHARACTERS]) if len(word) > 1 or not word.isascii() or word.isdigit()]
    content = [word for word in raw if fold(word) not in STOP_WORDS]
    wanted: dict[str, Wanted] = {}
    for word in content:
        for main, stands in _readings(word, memo, index, table):
            if main not in wanted and len(wanted) < _WORDS:
                wanted[main] = Wanted(fold(word), main, stands)
    for left, right in pairwise(raw):
        joined = stem((left + right).lower())
        if len(joined) > 4 and joined in index and joined not in wanted and len(wanted) < _WORDS:
            wanted[joined] = Wanted(f"{left} {right}".lower(), joined, ((joined, 1.0),))
    return list(wanted.values())


Stands = tuple[tuple[str, float], ...]


def _readings(word: str, memo: Terms, index: Container[str], table: Related) -> list[tuple[str, Stands]]:
    """Main term -> the terms that stand for it. A compound that the index knows whole is one thing, not several."""
    found = memo[word] if word in memo else terms(word)
    if len(found) > 1 and found[-1] in index and word.isascii():
        parts = ((part, PART / (len(found) - 1)) for part in found[:-1] if part in index)
        return [(found[-1], ((found[-1], 1.0), *parts))]
    mains = found[:-1] if len(found) > 1 and word.isascii() else found
    return [(main, _standing(main, index, table)) for main in mains]


def _standing(main: str, index: Container[str], table: Related) -> Stands:
    contrary = _opposites().get(main, ())
    near_words = table.near(main)
    stands = {other: near * RELATED for other, near in near_words if other in index and other not in contrary}
    for other in _synonyms().get(main, ()):
        if other in index and stands.get(other, 0.0) < SYNONYM:
            stands[other] = SYNONYM
    ordered = sorted(stands.items(), key=lambda held: (-held[1], held[0]))
    return ((main, 1.0), *ordered) if main in index else tuple(ordered)


@cache
def _opposites() -> dict[str, set[str]]:
    table: dict[str, set[str]] = {}
    for one, other in OPPOSITES:
        table.setdefault(stem(one), set()).add(stem(other))
        table.setdefault(stem(other), set()).add(stem(one))
    return table


@cache
def _synonyms() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for group in SYNONYMS:
        stems = [stem(word) for word in group]
        for word in stems:
            table.setdefault(word, {}).update(dict.fromkeys(other for other in stems if other != word))
    return {word: tuple(others) for word, others in table.items()}


@cache
def actions() -> frozenset[str]:
    """Stems of words that say what to do, or nothing in particular: a tool that shares only these does not fit."""
    return frozenset(stem(word) for word in VERBS | VAGUE_WORDS)


def near(word: str, vocabulary: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Terms of the sorted `vocabulary` that `word` begins, or that differ from it by a slip or two of the keys."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return ()
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    found: dict[str, float] = {}
    start = bisect_left(vocabulary, word)
    for known in vocabulary[start : start + NEAR_AT_MOST]:
        if known.startswith(word):
            found[known] = NEAR * len(word) / len(known)
    root, slips = stem(word), 1 if len(word) < 8 else 2
    for known, distance, _ in extract(root, vocabulary, scorer=OSA.distance, score_cutoff=slips, limit=NEAR_AT_MOST):
        if known[0] == root[0]:
            found.setdefault(known, NEAR * (1 - distance / len(word)))
    return tuple(found.items())
