"""AWS event-stream messages, in which Bedrock sends the events of a reply stream.

A message is: total length, header length (4 bytes each, big endian), CRC-32 of those 8 bytes, headers, payload, CRC-32
of everything before it. A header is: length of the name (1 byte), name, type (1 byte; 7 is a string), length of the
value (2 bytes), value. An event's payload is `{"bytes": base64 of the event's JSON}`.
Source: the encoding page of the Amazon Transcribe and Bedrock runtime references ("event stream encoding").
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Sequence

from loadpoint._json import as_object, dumps
from loadpoint._sse import frame, parse

_PRELUDE = 12
_STRING = 7
_HEADERS = ((":event-type", "chunk"), (":content-type", "application/json"), (":message-type", "event"))


class EventStream:
    """One round's event-stream messages as server-sent events, and back."""

    def __init__(self) -> None:
        self.ended = False
        self._buffer = bytearray()
        self._aside: list[bytes] = []

    def read(self, chunk: bytes) -> bytes:
        """The events in `chunk`; messages that carry no event (exceptions) are kept for the caller as they are."""
        self._buffer += chunk
        events: list[bytes] = []
        while len(self._buffer) >= _PRELUDE:
            length = int.from_bytes(self._buffer[:4])
            if len(self._buffer) < length or length < _PRELUDE + 4:
                break
            message = bytes(self._buffer[:length])
            del self._buffer[:length]
            data = _event(message)
            if data is None:
                self._aside.append(message)
            else:
                events.append(data)
        return b"".join(events)

    def show(self, frames: Sequence[bytes]) -> bytes:
        """The frames as event-stream messages, then what was kept."""
        shown = [message(parse(sse).data) for sse in _separate(frames)]
        aside, self._aside = self._aside, []
        return b"".join([*shown, *aside])


def _event(message: bytes) -> bytes | None:
    header_length = int.from_bytes(message[4:8])
    body = message[_PRELUDE + header_length : -4]
    if b"\x0d:message-type\x07\x00\x05event" not in message[_PRELUDE : _PRELUDE + header_length]:
        return None
    try:
        payload = as_object(json.loads(body)) or {}
        data = base64.b64decode(payload["bytes"]).decode()
        event = as_object(json.loads(data)) or {}
    except (ValueError, KeyError, TypeError):
        return None
    name = event.get("type")
    return frame(data, name if isinstance(name, str) else None)


def _separate(frames: Sequence[bytes]) -> list[bytes]:
    """One event per item, without comments and other blocks that have no data."""
    blocks = b"".join(frames).replace(b"\r\n", b"\n").split(b"\n\n")
    return [block for block in blocks if block.startswith(b"data:") or b"\ndata:" in block]


def message(data: str) -> bytes:
    """One event (its JSON text) as an event-stream message."""
    payload = dumps({"bytes": base64.b64encode(data.encode()).decode()}).encode()
    headers = b"".join(
        bytes([len(name)]) + name.encode() + bytes([_STRING]) + struct.pack(">H", len(value)) + value.encode()
        for name, value in _HEADERS
    )
    prelude = struct.pack(">II", _PRELUDE + len(headers) + len(payload) + 4, len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))
