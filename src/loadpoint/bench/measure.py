"""Figures of captured sessions: tokens in context, bytes, the prefix from request to request, rounds, cost.

The rule of the published tables: **cached is the common prefix with the previous request, if it has at least 1,024
tokens**. Where a provider caches nothing without a marker, a request without one reads and writes nothing. Money is
the list price of the model: cached tokens at the read price, uncached ones at the write price where the provider has
one, output at its own. Time to live, cache blocks and look-back are left out: every request is taken to come in time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .. import _tokens
from .._json import Json
from .._prices import Prices, cache_rule, price
from ._context import SEGMENTS, Part, marked, parts, passes, why_broken

if TYPE_CHECKING:
    from ..emulator import Exchange

MINIMUM = 1_024
RULE = f"cached is the common prefix with the previous request, if it has at least {MINIMUM:,} tokens"
ENCODING_MODEL = "gpt-4o"  # its encoding is o200k_base, which all published figures are counted in


class Counter:
    """Counts tokens of `o200k_base` where the encoding is on this machine, else estimates them; remembers texts."""

    def __init__(self) -> None:
        exact = _tokens.exact(ENCODING_MODEL)
        self.exact = exact is not None
        self._count: Callable[[str], int] = exact or _tokens.estimate
        self._known: dict[str, int] = {}

    @property
    def name(self) -> str:
        """How it counts, in words."""
        return "o200k_base" if self.exact else f"estimate ({_tokens.BYTES_PER_TOKEN} bytes a token)"

    def __call__(self, text: str) -> int:
        """The tokens of `text`."""
        count = self._known.get(text)
        if count is None:
            count = self._known[text] = self._count(text)
        return count


@dataclass(frozen=True, slots=True)
class Sent:
    """One captured request with its place in the session: user turn and round in it (both from 1)."""

    turn: int
    round: int
    exchange: Exchange
    told: str | None = None
    """Why the prefix broke according to the report of the call, if that says so."""


@dataclass(frozen=True, slots=True)
class Row:
    """One request of a session. `common_tokens` is what it shares with the one before; `broke` says why that is not
    the whole of it. `cached`, `uncached` and `written` are input tokens by the rule above.

    A search that the provider runs inside a request makes the model read the prompt once more, and that is billed:
    `passes` counts the readings, `again_cached` and `again_uncached` are the input tokens of all but the first.
    """

    turn: int
    round: int
    tokens: int
    common_tokens: int
    broke: str | None
    cached: int
    uncached: int
    written: int
    output: int
    bytes: int
    passes: int = 1
    again_cached: int = 0
    again_uncached: int = 0

    def as_json(self) -> Json:
        """The published fields."""
        return {
            "turn": self.turn,
            "round": self.round,
            "common_tokens": self.common_tokens,
            "tokens": self.tokens,
            "broke": self.broke,
        }


@dataclass(slots=True)
class Measured:
    """A measured session."""

    first: dict[str, int] = field(default_factory=dict[str, int])
    first_bytes: int = 0
    rows: list[Row] = field(default_factory=list[Row])

    @property
    def breaks(self) -> int:
        """Requests whose prefix is not the whole previous request."""
        return sum(row.broke is not None for row in self.rows)

    @property
    def cached(self) -> int:
        """Billed input tokens read from the cache, in all passes."""
        return sum(row.cached + row.again_cached for row in self.rows)

    @property
    def uncached(self) -> int:
        """All other billed input tokens, in all passes."""
        return sum(row.uncached + row.again_uncached for row in self.rows)

    @property
    def uncached_once(self) -> int:
        """Uncached input tokens with one pass per request, as published comparisons count them."""
        return sum(row.uncached for row in self.rows)

    @property
    def passes(self) -> int:
        """How often the model read a prompt: at least once per request."""
        return sum(row.passes for row in self.rows)

    @property
    def bytes(self) -> int:
        """All bytes uploaded."""
        return sum(row.bytes for row in self.rows)

    def cost(self, prices: Prices) -> float:
        """Money for the session at these prices per token, in their currency."""
        return sum(
            (row.cached + row.again_cached) * prices.cached
            + row.written * prices.written
            + (row.uncached - row.written + row.again_uncached) * prices.input
            + row.output * prices.output
            for row in self.rows
        )


def measure(dialect: str, model: str, sent: Sequence[Sent], count: Counter, *, base_url: str | None = None) -> Measured:
    """The figures of one conversation with a model on an endpoint (None: its provider's own), request by request."""
    rule = cache_rule(model, dialect, base_url)
    result = Measured()
    before: list[Part] | None = None
    for item in sent:
        body = item.exchange.request or {}
        now = parts(dialect, body)
        sizes = [count(part.text) for part in now]
        if before is None:
            result.first = {
                name: sum(n for n, part in zip(sizes, now, strict=True) if part.segment == name) for name in SEGMENTS
            }
            result.first_bytes = len(item.exchange.raw)
        caches = rule.automatic or marked(body)
        row = _row(item, before, now, sum(sizes), caches, count)
        result.rows.append(_with_passes(row, passes(dialect, body, item.exchange.reply or {}), dialect, caches, count))
        before = now
    return result


def _with_passes(row: Row, again: Sequence[Json], dialect: str, caches: bool, count: Counter) -> Row:
    """The row with what is billed for the passes behind searches that the provider ran: each continues the last."""
    read, cached, uncached = row.tokens, 0, 0
    for body in again:
        total = sum(count(part.text) for part in parts(dialect, body))
        known = read if caches and read >= MINIMUM else 0
        cached, uncached, read = cached + known, uncached + total - known, total
    return replace(row, passes=1 + len(again), again_cached=cached, again_uncached=uncached) if again else row


def _row(item: Sent, before: list[Part] | None, now: list[Part], total: int, caches: bool, count: Counter) -> Row:
    common, whole = _common(before, now, count) if before is not None else (0, True)
    cached = common if caches and common >= MINIMUM else 0
    broke = None
    if before is not None and not whole:
        broke = item.told or why_broken(before, now)
    return Row(
        turn=item.turn,
        round=item.round,
        tokens=total,
        common_tokens=common,
        broke=broke,
        cached=cached,
        uncached=total - cached,
        written=total - cached if caches and total >= MINIMUM else 0,
        output=item.exchange.output_tokens,
        bytes=len(item.exchange.raw),
    )


def _common(before: Sequence[Part], now: Sequence[Part], count: Counter) -> tuple[int, bool]:
    """The tokens at the head of both, and whether that is all of `before`."""
    shared = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            same = next(
                (at for at, pair in enumerate(zip(old.text, new.text, strict=False)) if pair[0] != pair[1]), None
            )
            return shared + count(old.text[: same if same is not None else min(len(old.text), len(new.text))]), False
        shared += count(old.text)
    return shared, len(before) <= len(now)


def usd(model: str, dialect: str) -> Prices | None:
    """The list price of the model per token, None if it is not known."""
    return price(model, dialect)
