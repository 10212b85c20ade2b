"""`EmbeddingRanker`: a ranker over any embedding model, given as a function from texts to vectors."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from math import sqrt
from operator import mul
from typing import Any

from .._tool import Tool
from ._match import Match

_TEXT = 400
"""Characters of a description that are embedded."""

_BATCH = 32
"""Texts that are embedded at a time: what is done stays done, whatever happens to the rest."""

_SEPARATORS = re.compile(r"[_\-./:]+|(?<=[a-z0-9])(?=[A-Z])")

Vector = Sequence[float]


class EmbeddingRanker:
    """Ranks by the cosine between a query and each tool's name and description. For `FusedRanker` or `Policy.search`.

    `embed` takes texts and returns one vector each, of equal lengths. Every text of a tool is embedded once, at the
    first query or by `prepare`. `least` is the cosine below which a tool does not fit, `alone` the one that the best
    needs where no words match, `weight` what a cosine of 1 counts against the best score by words. `timeout` is in
    seconds: until the tools are embedded, which goes on meanwhile, searches stand on words alone.
    """

    def __init__(
        self,
        embed: Callable[[list[str]], Sequence[Vector]],
        *,
        least: float = 0.22,
        alone: float = 0.35,
        weight: float = 6.0,
        timeout: float = 2.0,
    ) -> None:
        self.least = least
        self.alone = alone
        self.weight = float(weight)
        self.timeout = timeout
        self._embed = embed
        self._vectors: dict[str, Vector] = {}
        self._rows: tuple[Sequence[Tool], Any] | None = None
        self._lock = threading.Lock()

    def prepare(self, tools: Sequence[Tool]) -> None:
        """Embed `tools` now, so that the first query need not wait. Tools that were seen before cost nothing."""
        with self._lock:
            if self._rows is not None and self._rows[0] is tools:
                return
            texts = [_text(tool) for tool in tools]
            missing = list(dict.fromkeys(text for text in texts if text not in self._vectors))
            for start in range(0, len(missing), _BATCH):
                batch = missing[start : start + _BATCH]
                self._vectors.update(zip(batch, map(_unit, self._embed(batch)), strict=True))
            self._vectors = {text: self._vectors[text] for text in texts}
            self._rows = (tools, self._packed([self._vectors[text] for text in texts]))

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> list[Match]:
        """At most `limit` tools whose cosine is not below `least`, best first; ties in the order of `tools`."""
        if not tools or not query.strip():
            return []
        self.prepare(tools)
        rows = self._rows
        if rows is None or rows[0] is not tools:  # another thread has just prepared other tools
            rows = (tools, self._packed([_unit(vector) for vector in self._embed([_text(tool) for tool in tools])]))
        close = self._closeness(rows[1], _unit(self._embed([query])[0]))
        best = sorted((at for at, share in enumerate(close) if share >= self.least), key=lambda at: (-close[at], at))
        return [Match(tools[at].name, close[at], "embedding") for at in best[: max(limit, 0)]]

    def _packed(self, vectors: list[Vector]) -> Any:
        """What `_closeness` is given; for a subclass with a faster product."""
        return vectors

    def _closeness(self, rows: Any, asked: Vector) -> list[float]:
        return [sum(map(mul, asked, vector)) for vector in rows]


def _text(tool: Tool) -> str:
    return f"{_SEPARATORS.sub(' ', tool.name)}: {tool.description[:_TEXT]}"


def _unit(vector: Vector) -> Vector:
    numbers = [float(number) for number in vector]
    length = sqrt(sum(number * number for number in numbers)) or 1.0
    return [number / length for number in numbers]
