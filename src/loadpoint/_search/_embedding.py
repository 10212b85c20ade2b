"""`EmbeddingRanker`: a ranker over any embedding model, given as a function from texts to vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from operator import mul

from .._tool import Tool
from ._match import Match

_TEXT = 400
"""Characters of a description that are embedded."""


class EmbeddingRanker:
    """Ranks by the cosine between a query and each tool's name and description. For `FusedRanker` or `Policy.search`.

    `embed` takes texts and returns one vector each, of equal lengths. Tools are embedded once per list of tools, at the
    first query: with a slow model give a `timeout` (seconds) that allows for it. `least` is the cosine below which a
    tool does not fit.
    """

    def __init__(
        self, embed: Callable[[list[str]], Sequence[Sequence[float]]], *, least: float = 0.3, timeout: float = 2.0
    ) -> None:
        self._embed = embed
        self._least = least
        self.timeout = timeout
        self._known: tuple[Sequence[Tool], list[list[float]]] | None = None

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> list[Match]:
        """At most `limit` tools whose cosine is not below `least`, best first; ties in the order of `tools`."""
        known = self._known
        if known is None or known[0] is not tools:
            texts = [f"{tool.name.replace('_', ' ')}: {tool.description[:_TEXT]}" for tool in tools]
            known = self._known = (tools, [_unit(vector) for vector in self._embed(texts)] if texts else [])
        asked = _unit(self._embed([query])[0])
        close = [sum(map(mul, asked, vector)) for vector in known[1]]
        best = sorted((at for at, share in enumerate(close) if share >= self._least), key=lambda at: (-close[at], at))
        return [Match(tools[at].name, close[at], "embedding") for at in best[: max(limit, 0)]]


def _unit(vector: Sequence[float]) -> list[float]:
    numbers = [float(number) for number in vector]
    length = sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]
