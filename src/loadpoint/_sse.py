"""Server-sent events: bytes in any cut to events, each with the bytes it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LONGEST_END = 4


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its name (None if unnamed), its data, and its own bytes, terminator included."""

    name: str | None
    data: str
    raw: bytes


class Reader:
    """Cuts a byte stream into events; an incomplete tail is kept until it is completed."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that `chunk` completes."""
        seen = max(len(self._buffer) - _LONGEST_END + 1, 0)  # before this there is no end: a large event comes in many
        self._buffer += chunk
        # One search for all ends: one for each would read a body that comes in one piece to its end at every event.
        while (end := _END.search(self._buffer, seen)) is not None:
            raw = bytes(self._buffer[: end.end()])
            del self._buffer[: end.end()]
            seen = 0
            yield parse(raw)

    def rest(self) -> bytes:
        """What is left of an incomplete event."""
        return bytes(self._buffer)


def parse(raw: bytes) -> Event:
    """The event in one block of bytes."""
    name: str | None = None
    data: list[str] = []
    for line in raw.splitlines():  # of bytes: text would also be cut at U+2028 and its kin, which JSON may contain
        field, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        elif field == "data":
            data.append(value)
    return Event(name, "\n".join(data), raw)


def frame(data: str, name: str | None = None) -> bytes:
    """One event as bytes. Half a surrogate pair, which has no bytes, becomes the escape that JSON writes for it."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data}\n\n".encode("utf-8", "backslashreplace")
