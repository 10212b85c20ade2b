"""What goes in and out of the sans-IO core: answers, their pieces, and the record of an exchange."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._json import Json, dumps


class ConnectionCutError(Exception):
    """The scripted end of a connection in the middle of a body; the shells turn it into what a client would see."""


class RejectedError(Exception):
    """A request that the service refuses: `status`, the error `body` as the dialect words it, and the `rule` broken."""

    def __init__(self, status: int, body: Json, *, rule: str | None = None, message: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.rule = rule
        self.message = message


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a body and how many seconds the service takes before it sends them."""

    data: bytes
    after: float = 0.0


@dataclass(slots=True)
class Answer:
    """One HTTP response: `status`, `headers` (lower-case names) and the body in pieces.

    `chunks` plays the pieces with their delays and ends with `ConnectionCutError` where the script says so; `achunks`
    is its asynchronous twin. `exchange` is the record that is told how far the client read.
    """

    status: int
    headers: Mapping[str, str]
    pieces: tuple[Piece, ...]
    cut: bool = False
    exchange: Exchange | None = None

    @property
    def chunks(self) -> Generator[bytes, None, None]:
        """The body, piece by piece, sleeping as scripted. Raises `ConnectionCutError` at the end of a cut answer."""
        return self._play()

    def _play(self) -> Generator[bytes, None, None]:
        complete = False
        try:
            for piece in self.pieces:
                if piece.after:
                    time.sleep(piece.after)
                yield piece.data
            complete = True
            if self.cut:
                raise ConnectionCutError
        finally:
            self._ended(complete)

    async def achunks(self) -> AsyncGenerator[bytes, None]:
        """`chunks` for an event loop."""
        import asyncio

        complete = False
        try:
            for piece in self.pieces:
                if piece.after:
                    await asyncio.sleep(piece.after)
                yield piece.data
            complete = True
            if self.cut:
                raise ConnectionCutError
        finally:
            self._ended(complete)

    def _ended(self, complete: bool) -> None:
        if self.exchange is not None:
            self.exchange.delivery = ("cut" if self.cut else "complete") if complete else "closed"


@dataclass(frozen=True, slots=True)
class Segments:
    """Input tokens by segment. Deferred definitions are in none; what a load point adds is in `messages`."""

    tools: int = 0
    system: int = 0
    messages: int = 0

    @property
    def total(self) -> int:
        """All input tokens of the request."""
        return self.tools + self.system + self.messages


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and what became of it.

    `request` is the JSON body (None when it was none), `raw` its bytes; `reply` the JSON reply, merged for streams,
    or the error body. Token figures are as billed: `cached_tokens + written_tokens + uncached_tokens` is the input.
    `common_tokens` is the longest prefix that any earlier request of this key and model had in common with this one,
    whatever the cache rules made of it. `loaded` names the tools whose schemas stand at a load point. `rule` is the
    id of the rule that rejected it, `warnings` those of rules that would have. `delivery` is "pending" until the
    client has read the body ("complete"), or closed it early ("closed"), or the script cut it ("cut").
    """

    number: int
    method: str
    url: str
    path: str
    headers: Mapping[str, str]
    raw: bytes
    dialect: str = ""
    endpoint: str = ""
    request: Json | None = None
    status: int = 0
    reply: Json | None = None
    stream: bool = False
    cached_tokens: int = 0
    written_tokens: int = 0
    uncached_tokens: int = 0
    output_tokens: int = 0
    common_tokens: int = 0
    tokens: Segments = field(default_factory=Segments)
    loaded: tuple[str, ...] = ()
    error: str | None = None
    rule: str | None = None
    warnings: tuple[str, ...] = ()
    delivery: str = "pending"

    @property
    def input_tokens(self) -> int:
        """All input tokens, however they were billed."""
        return self.cached_tokens + self.written_tokens + self.uncached_tokens


def json_piece(body: Any, *, after: float = 0.0) -> tuple[Piece, ...]:
    """A whole JSON body as one piece; half a surrogate pair, which models write, as the escape that JSON has for it."""
    return (Piece(dumps(body).encode("utf-8", "backslashreplace"), after),)


def sse(data: Any, *, event: str | None = None) -> bytes:
    """One server-sent event; `data` is JSON, or text that is sent as it is."""
    text = data if isinstance(data, str) else dumps(data)
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode("utf-8", "backslashreplace")
