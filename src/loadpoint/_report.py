"""`CallReport`: what one logical call did, what it saved, what it cost, and whether the prefix held."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from ._json import Json


@dataclass(frozen=True, slots=True)
class LoadedTool:
    """A tool that is loaded: `when` is the index of the assistant turn that proves it, `why` search|call|forced."""

    name: str
    when: int
    why: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tool tokens of the last request: `sent` in context, `eager` what sending everything would be, `saved`.

    `context` is the whole last request (the figure to compact by). `exact` says whether a real tokenizer counted.
    """

    sent: int = 0
    eager: int = 0
    saved: int = 0
    context: int = 0
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Round:
    """One HTTP request: the provider's request id, its milliseconds, its own usage object, its cost in USD if known."""

    request_id: str | None
    ms: float
    usage: Json
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """Whether the prompt prefix held: `predicted` from the requests, `billed` from usage (tokens read from cache).

    `predicted` is the number of tokens (estimate) that the first request of this call shares with its predecessor.
    `stable` is None where no predecessor is known. `broke` is the reason, see DESIGN "Prefix proof".
    """

    stable: bool | None = None
    predicted: int | None = None
    billed: int | None = None
    disagrees: bool = False
    broke: str | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """One search of the loader: the query, the names it loaded or found, and whether nothing fitted."""

    query: str
    hits: tuple[str, ...]
    no_match: bool


@dataclass(frozen=True, slots=True)
class CallReport:
    """What one logical call did. JSON-ready through `as_json`; `print` shows at most eight lines."""

    strategy: str
    load_point: str | None
    reason: str
    resident: tuple[str, ...] = ()
    loaded: tuple[LoadedTool, ...] = ()
    deferred: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    rounds: tuple[Round, ...] = ()
    added_rounds: int = 0
    added_ms: float = 0.0
    prefix: Prefix = field(default_factory=Prefix)
    searches: tuple[Search, ...] = ()
    repairs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_json(self) -> Json:
        """The report as a JSON object."""
        result: dict[str, Any] = dataclasses.asdict(self)
        return result

    def __str__(self) -> str:
        approx = "" if self.tokens.exact else " (estimate)"
        plural = "" if self.added_rounds == 1 else "s"
        saved = f"saved {max(self.tokens.saved, 0):,} of {self.tokens.eager:,} tool tokens{approx}"
        if not self.tokens.eager:
            saved = "sent as it came"  # no registry was made, so nobody knows how many there are
        how = f"{self.strategy} by {self.load_point}" if self.load_point else self.strategy
        lines = [
            f"{saved}, {self.added_rounds} extra round{plural}, +{self.added_ms:,.0f} ms",
            f"{how}: {self.reason}",
        ]
        if self.deferred or self.loaded:
            names = ", ".join(tool.name for tool in self.loaded) or "none"
            lines.append(f"{len(self.resident)} resident, {self.deferred} deferred, loaded: {names}")
        lines += [f"search {found.query!r}: {', '.join(found.hits) or 'no match'}" for found in self.searches[:2]]
        if self.prefix.broke and self.prefix.broke != "first_request":
            lines.append(f"prefix broke: {self.prefix.broke}")
        elif self.prefix.stable:
            lines.append(f"prefix stable, {self.prefix.predicted or 0:,} tokens shared")
        lines += [f"warning: {text}" for text in self.warnings[: 8 - len(lines)]]
        from ._catalog import clean_text

        # Names are third parties' words: on a terminal they may move the cursor, or add lines that are not ours.
        return "\n".join(clean_text(line, 2_000) for line in lines[:8])
