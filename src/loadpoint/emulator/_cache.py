"""Prompt caches, simulated: what of a rendered prompt is read from cache, and what is written to it.

A prompt is a list of `Part`s in the order in which the service serialises it. Three kinds of cache exist, each with
its parameters in `_providers/rules.toml`: `prefix` (automatic, in blocks), `boundary` (automatic, at message ends),
`breakpoints` (only where the caller put a marker).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

from .._json import Json
from ._count import tokens

_REMEMBERED_BRANCHES = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a prompt that is cached as a whole.

    `segment` is "tools", "system", "messages", or "settings" for parameters that void what follows and are no tokens.
    `marker` is the lifetime of the caller's cache marker at its end, `eligible` whether an automatic boundary may
    stand there, `run` a name that makes neighbours of the same name one position.
    """

    segment: str
    text: str
    marker: str | None = None
    eligible: bool = False
    run: str | None = None

    @property
    def tokens(self) -> int:
        """Its length in tokens."""
        return 0 if self.segment == "settings" else tokens(self.text)


@dataclass(frozen=True, slots=True)
class Bill:
    """How the input of one request is billed, in tokens; `written` by lifetime. `common` ignores the cache rules."""

    total: int
    cached: int = 0
    common: int = 0
    written: dict[str, int] = field(default_factory=dict[str, int])

    def again(self, total: int) -> Bill:
        """The bill of two passes: this one, and one over a prompt of `total` tokens that continues its prompt."""
        warm = self.cached + self.writes
        return Bill(self.total + total, self.cached + warm, self.common, self.written)

    @property
    def writes(self) -> int:
        """All written tokens."""
        return sum(self.written.values())

    @property
    def uncached(self) -> int:
        """Input tokens that were neither read nor written."""
        return self.total - self.cached - self.writes


@dataclass(slots=True)
class _Known:
    """What one scope (credential, model, cache key) has seen: which part followed which prefix, and entries."""

    next: dict[bytes, dict[str, None]] = field(default_factory=dict[bytes, dict[str, None]])
    entries: set[bytes] = field(default_factory=set[bytes])


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a part: the digest and the tokens of everything up to it, and its position."""

    part: Part
    digest: bytes
    total: int
    position: int


class PromptCache:
    """The caches of a service. Not thread-safe: the emulator holds its lock."""

    def __init__(self) -> None:
        self._scopes: dict[str, _Known] = {}

    def bill(self, scope: str, row: Json, parts: Sequence[Part], *, explicit_only: bool = False) -> Bill:
        """Read from and write to the cache of `scope` as `row` says; the bill of this request."""
        known = self._scopes.setdefault(scope, _Known())
        ends = _ends(parts)
        total = ends[-1].total if ends else 0
        common = _common(known, ends)
        kind = row["kind"]
        if kind == "prefix":
            usable = common if common >= row["minimum"] else 0
            return Bill(total, usable - usable % row["block"], common)
        writes = _marked(ends) if kind == "breakpoints" or explicit_only else _boundaries(ends)
        cached = _read(known, ends, writes, row)
        written: dict[str, int] = {}
        reached = cached
        for end in writes:
            if end.total < row["minimum"]:
                continue
            known.entries.add(end.digest)
            if end.total > reached:
                lifetime = end.part.marker or row["ttl"]
                written[lifetime] = written.get(lifetime, 0) + end.total - reached
                reached = end.total
        return Bill(total, cached, common, written)


def _ends(parts: Sequence[Part]) -> list[_End]:
    state = blake2b(digest_size=16)
    ends: list[_End] = []
    total = 0
    position = 0
    run: str | None = None
    for part in parts:
        raw = part.text.encode("utf-8", "surrogatepass")
        state.update(len(raw).to_bytes(8, "big") + part.segment.encode() + raw)
        total += part.tokens
        if part.segment != "settings" and not (part.run is not None and part.run == run):
            position += 1
        run = part.run
        ends.append(_End(part, state.copy().digest(), total, position))
    return ends


def _common(known: _Known, ends: Sequence[_End]) -> int:
    """The longest prefix in common with an earlier prompt, in tokens; remembers this prompt."""
    before = b""
    total = 0
    common: int | None = None
    for end in ends:
        following = known.next.setdefault(before, {})
        if common is None and end.part.text not in following:
            shared = max((_shared(end.part.text, text) for text in following), default=0)
            common = total + (tokens(end.part.text[:shared]) if end.part.segment != "settings" else 0)
        following[end.part.text] = None
        if len(following) > _REMEMBERED_BRANCHES:
            del following[next(iter(following))]
        before, total = end.digest, end.total
    return total if common is None else min(common, ends[-1].total)


def _shared(one: str, other: str) -> int:
    """How many characters two texts have in common at their start; by halving, because the texts may be long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _marked(ends: Sequence[_End]) -> list[_End]:
    return [end for end in ends if end.part.marker is not None]


def _boundaries(ends: Sequence[_End]) -> list[_End]:
    """The caller's own breakpoints, and the automatic one at the end of the latest eligible message."""
    latest = next((end for end in reversed(ends) if end.part.eligible), None)
    return [end for end in ends if end.part.marker is not None or end is latest]


def _read(known: _Known, ends: Sequence[_End], looked_from: Sequence[_End], row: Json) -> int:
    """The tokens up to the furthest entry that stands within the lookback of one of this request's breakpoints."""
    best = 0
    for start in looked_from:
        first = start.position - row["lookback"] + 1
        for end in ends:
            if first <= end.position <= start.position and end.total <= start.total and end.digest in known.entries:
                best = max(best, end.total)
    return best
