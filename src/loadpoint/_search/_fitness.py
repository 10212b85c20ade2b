"""Whether a tool fits a query at all, and how much of its own name was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, sqrt
from statistics import median

from .._tool import Tool
from ._fields import name_words
from ._query import actions
from ._scoring import Asked, Shares
from ._text import Terms

_WHOLE = 9.0
"""The fitness of a tool that holds every thing that was asked for, word by word."""

_EVERYTHING, _THINGS, _CLOSE, _APART, _NAMED, _LONG, _STRANGE = 1.67, 1.30, 0.5, 1.0, 2.0, 0.42, 3.0
"""What counts how much, see `fitness`. Chosen on queries put to tool sets that can and that cannot serve them."""

_KEPT = 20_000
"""Tools whose names are kept in parts: some 6 MB."""


class OwnNames:
    """The things in each tool's own name, worked out when they are asked for."""

    __slots__ = ("_known", "_memo", "_servers", "_tools")

    def __init__(self, tools: Sequence[Tool], servers: Mapping[str, str], memo: Terms) -> None:
        self._tools = tools
        self._servers = servers
        self._memo = memo
        self._known: dict[int, list[str]] = {}

    def asked_for(self, place: int, stands: Mapping[str, float], otherwise: float) -> float:
        """The share of the things in a tool's own name that a query asks for, or that stand for what it asks, from 0 to
        1. What else the name says, nobody asked for: `delete_project_label` is less likely meant by `delete project`.
        `otherwise` for a name that names no thing, such as `list`.
        """
        things = self._known.get(place)
        if things is None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            things = self._known[place] = self._things(place)
        return sum(stands.get(thing, 0.0) for thing in things) / len(things) if things else otherwise

    def _things(self, place: int) -> list[str]:
        tool, memo = self._tools[place], self._memo
        found: dict[str, None] = {}
        vague = actions()
        for word in sorted(name_words(tool.name, self._servers.get(tool.name, ""))):
            terms = memo[word]
            found.update(dict.fromkeys(terms[:-1] if len(terms) > 1 and word.isascii() else terms))
        return [term for term in found if term not in vague]


def standing(asked: Sequence[Asked]) -> dict[str, float]:
    """Term -> how well it stands for something that was asked, from 0 to 1."""
    stands: dict[str, float] = {}
    for want in asked:
        stands[want.wanted.stem] = 1.0
        for term, share in want.wanted.terms:
            if share > stands.get(term, 0.0):
                stands[term] = share
    return stands


def fitness(shares: Shares, closeness: float, others: Sequence[float], named: float) -> float:
    """How far the best tool fits at all, from 0 to about 7.

    What counts: the share of everything asked that it holds, and of the things that are no actions; how close it is in
    meaning, and how far `others` (the closeness of all that was looked at) are behind; how much of its name was asked
    for; how much was asked, since a long story is never held as a whole. A word that nothing here knows speaks against
    it, the more the fewer there are: among few words it names what is wanted, in a story it is a value to fill in.
    """
    if shares.whole:
        return _WHOLE
    ahead = max(others, default=0.0) - (median(others) if others else 0.0)
    return (
        _EVERYTHING * sqrt(shares.everything)
        + _THINGS * sqrt(shares.things)
        + _CLOSE * closeness
        + _APART * ahead
        + _NAMED * named
        + _LONG * round(log(shares.asked + 1), 6)
        - _STRANGE * shares.strange / max(shares.asked, 1)
    )
