"""`ToolIndex`: exact names first, then the words of the definitions. Plain Python, built once per registry content."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

from .._tool import Tool
from ._fields import own_name
from ._fitness import OwnNames, fitness, standing
from ._match import Match
from ._names import behind_paths, ends, infer_servers, looks_like_name, whole_name, written_names
from ._postings import Postings
from ._query import Wanted, near, understood
from ._related import related
from ._scoring import Asked, Scores, highest, weighed
from ._text import words

_EXACT = 1_000.0
_RANKED = 32
"""Tools that were found by words and are then ranked by what they mean as well."""

_MEANT, _FEW_TOOLS = 24, 1_000
"""Tools that mean nearly the same join them: this many, where there are not more tools than can be looked at."""

_MEANING = 0.8
"""What the same meaning counts, where the best score by words counts 1."""

_NAMED = 0.15
"""What it counts that all of a tool's own name was asked for, on the same scale."""

_UNNAMED = 0.5
"""The same share for a name that names no thing, such as `list`: neither asked for nor missed."""

_TAIL = 0.3
"""What scores less than this share of the best is no answer but noise: it would be loaded and paid for."""

_ENOUGH, _ENOUGH_MORE, _SMALL = 1.9, 0.2, 100
"""The fitness that the best tool must have, and how much more for every e-fold above so many tools, since among many
tools some fit a little by chance: below it nothing fits and nothing is returned."""

_KEPT = 20_000
"""Tools whose look is kept, to tell copies of one another: some 3 MB."""

_ALIKE = 6
"""Tools of several servers that one bare name may mean; more are no name but a word."""

_NAME_LENGTH = 4_000


class ToolIndex:
    """Searches tool definitions by name, by server and by words. Deterministic; never raises for any query.

    Exact and namespaced names come first, in the order they were written; then weighted BM25. Ties keep the registry's
    order. Of several tools with one name the first counts. `tools` are the tools that are searched.
    """

    __slots__ = ("_looks", "_names", "_own_names", "_positions", "_postings", "_servers", "_table", "tools")

    def __init__(self, tools: Sequence[Tool]) -> None:
        first: dict[str, Tool] = {}
        for tool in tools:
            first.setdefault(tool.name, tool)
        self.tools: tuple[Tool, ...] = tuple(first.values())
        self._positions = {name: place for place, name in enumerate(first)}
        self._names: dict[str, list[int]] = {}
        for place, name in enumerate(first):
            self._names.setdefault(whole_name(name), []).append(place)
        self._table = related()
        self._looks: dict[int, tuple[str, str]] = {}
        self._servers = infer_servers(self.tools)
        self._postings = Postings(self.tools, self._servers, self._table)
        self._own_names = OwnNames(self.tools, self._servers, self._postings.memo)

    def position(self, name: str) -> int:
        """The place of a tool in the registry's order, from 0; -1 for a name that is not in it."""
        return self._positions.get(name, -1)

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` tools that fit `query`, best first; empty when nothing fits."""
        text: object = query
        if limit < 1 or not self.tools or not isinstance(text, str):
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
        asked = self._asked(query)
        scores = Scores(asked, self._postings)
        meanings = self._postings.meanings
        meant = meanings.of(want.wanted.stem for want in asked)
        found = self._varied(scores.best(len(scores.by_place)))
        best, beyond = found[:_RANKED], found[_RANKED:limit]
        if meant and len(self.tools) <= _FEW_TOOLS:
            best += [place for place in meanings.nearest(meant, _MEANT) if place not in scores.by_place]
        top = max(scores.by_place.values(), default=0.0) or 1.0
        close = {place: meanings.closeness(meant, place) if meant else 0.0 for place in best}
        stands, names = standing(asked), self._own_names
        ranked = {
            place: scores.by_place.get(place, 0.0) / top
            + _MEANING * close[place]
            + _NAMED * names.asked_for(place, stands, _UNNAMED)
            for place in best
        }
        order = highest(ranked, len(ranked))
        if not order:
            return []
        first, last = order[0], ranked[order[-1]]
        fit = fitness(scores.shares(first), close[first], list(close.values()), names.asked_for(first, stands, 0.0))
        if fit < self._enough():
            return []
        # Behind those that were ranked twice: how many tools one asks for changes none of the first.
        ranked.update((place, min(scores.by_place[place] / top, last)) for place in beyond)
        least = ranked[first] * _TAIL
        order = self._varied([at for at in (*order, *beyond) if ranked[at] >= least])[:limit]
        return [Match(self.tools[at].name, ranked[at], scores.why(at)) for at in order]

    def _enough(self) -> float:
        return _ENOUGH + _ENOUGH_MORE * round(log(max(len(self.tools), _SMALL) / _SMALL), 6)

    def _varied(self, order: Sequence[int]) -> list[int]:
        """The same order, but of tools that are copies of one another (one own name, one description) the first only;
        the further ones follow behind everything else.
        """
        if len({self.tools[at].description for at in order}) == len(order):
            return list(order)
        seen: set[tuple[str, str]] = set()
        first: list[int] = []
        copies: list[int] = []
        for at in order:
            look = self._looks.get(at) or self._look(at)
            (copies if look in seen else first).append(at)
            seen.add(look)
        return first + copies

    def _look(self, at: int) -> tuple[str, str]:
        tool = self.tools[at]
        if len(self._looks) >= _KEPT:
            self._looks.clear()
        look = (whole_name(own_name(tool.name, self._servers.get(tool.name, ""))), tool.description)
        self._looks[at] = look
        return look

    def closest_servers(self, query: str, limit: int = 3) -> list[str]:
        """The servers whose tools come nearest to `query`, best first, whether or not any tool fits: what to name where
        nothing was found. [] for tools without servers.
        """
        asked = self._asked(str(query))
        scores = Scores(asked, self._postings)
        meant = self._postings.meanings.of(want.wanted.stem for want in asked)
        near_by = scores.best(_RANKED)
        if meant and len(self.tools) <= _FEW_TOOLS:
            near_by = [*near_by, *self._postings.meanings.nearest(meant, _MEANT)]
        sums = {at: scores.by_place.get(at, 0.0) / (scores.total or 1.0) for at in near_by}
        for at in sums if meant else ():
            sums[at] += self._postings.meanings.closeness(meant, at) if meant else 0.0
        servers = (self._servers.get(self.tools[at].name, "") for at in highest(sums, _RANKED))
        return list(dict.fromkeys(server for server in servers if server))[: max(limit, 0)]

    def _asked(self, query: str) -> list[Asked]:
        postings, table = self._postings, self._table
        wanted = [
            want if want.terms else Wanted(want.word, want.stem, near(want.word, postings.name_terms), guessed=True)
            for want in understood(query, postings.memo, postings, table)
        ]
        return weighed(wanted, postings, table)
