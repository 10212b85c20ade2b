"""Requests for a reply that the server keeps, by the id under which the caller was shown it.

A stream of several rounds shows the id of the first, before anybody knows that others follow. The server knows the
whole reply by the id of the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._json import Json
from ._sse import Reader

if TYPE_CHECKING:
    from ._plan import Request


class Stored:
    """One request that asks by the id that the server knows, and whose reply has the one that the caller knows."""

    exchange = True
    changed = False
    question = None
    report = None

    def __init__(self, request: Request, shown: str, kept: str, *, streaming: bool) -> None:
        self.body = request.body
        self.headers: Mapping[str, str | None] = {}
        self.renames: Mapping[str, str] = {shown: kept}
        self.streaming = streaming
        self.result: Json = {}
        self._shown, self._kept = shown, kept

    def feed(self, reply: Json, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take the reply; always None: there is no next round."""
        self.changed = reply.get("id") == self._kept
        self.result = {**reply, "id": self._shown} if self.changed else reply
        return None

    def decided(self, agreed: bool) -> Json | None:
        """Always None: nothing is asked."""
        return None

    def rejected(self, status: int, message: str) -> Json | None:
        """Always None: what the server says of the reply is for the caller."""
        return None

    def splice(self) -> StoredSplice:
        """A splice that puts the caller's id into every event."""
        return StoredSplice(self._shown, self._kept)

    def failed(self) -> None:
        """Nothing was paid for."""


class StoredSplice:
    """Shows every event of a stored reply, under the id that the caller knows."""

    def __init__(self, shown: str, kept: str) -> None:
        self._events = Reader()
        # In quotes: inside a text of the model they would be escaped.
        self._shown, self._kept = f'"{shown}"'.encode(), f'"{kept}"'.encode()

    def replayed(self) -> list[bytes]:
        """Nothing was paid for before."""
        return []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that these bytes complete."""
        return [event.raw.replace(self._kept, self._shown) for event in self._events.feed(chunk)]

    def end(self, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Always None: there is no next round."""
        return None

    def decided(self, agreed: bool) -> Json | None:
        """Always None: nothing is asked."""
        return None

    def closing(self) -> list[bytes]:
        """What a cut stream has left of an event."""
        return [rest] if (rest := self._events.rest()) else []
