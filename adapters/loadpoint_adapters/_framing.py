"""How a reply stream stands on the wire: server-sent events, or something that carries them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Framing(Protocol):
    """Translates one round's bytes to server-sent events and the visible events back; one object per round."""

    ended: bool
    """Whether the round's last event has been seen, so that nothing more needs to be read."""

    def read(self, chunk: bytes) -> bytes:
        """The server-sent events (in any cut) that `chunk` carries."""
        ...

    def show(self, frames: Sequence[bytes]) -> bytes:
        """What the caller's SDK reads for these server-sent events (each complete)."""
        ...


class Sse:
    """Plain server-sent events. `last` is the data of the event after which the SDK itself stops reading, if any.

    A gateway may keep the connection open after it; the SDK would not notice, so we must not wait for the end either.
    """

    def __init__(self, last: bytes | None = None) -> None:
        self.ended = False
        self._last = last
        self._tail = b"\n"

    def read(self, chunk: bytes) -> bytes:
        """The chunk itself."""
        if self._last is not None and not self.ended:
            window = self._tail + chunk
            # JSON text holds no bare line break, so this cannot be part of somebody's data
            self.ended = b"\ndata: " + self._last in window or b"\ndata:" + self._last in window
            self._tail = window[-len(self._last) - 8 :]
        return chunk

    def show(self, frames: Sequence[bytes]) -> bytes:
        """The frames, joined."""
        return b"".join(frames)
