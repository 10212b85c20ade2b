"""Records as bytes for stores that are shared over a network: with a version, and smaller where that pays."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from .._json import digest
from ._record import Record
from ._rows import state_name, written

_VERSION = b"1"
_TEXT, _ZLIB = b"j", b"z"
_DIGEST = 16
_WORTH = 512
"""Bytes below which compressing saves less than it costs."""
_MOST = 64 * 1024 * 1024
"""Bytes that a value may have when it is unpacked; no conversation of ours is larger, and a broken one must end."""
TAG = len(_VERSION) + _DIGEST
"""Bytes at the start of a record's value that are equal for records of one point of one conversation."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A record for a store. `value` refers to the state by name; `state` is stored once for all that refer to it."""

    record: Record
    value: bytes
    name: str
    state_text: str

    @property
    def state(self) -> bytes:
        """The bytes of the state."""
        return _VERSION + _squeezed(self.state_text)


def packed(record: Record) -> Packed:
    """The bytes of a record."""
    own, state = written(record)
    name = state_name(state)
    point = digest(record.sent_before, record.state.system)
    value = _VERSION + bytes.fromhex(point) + bytes.fromhex(name) + _squeezed(own)
    return Packed(record, value, name, state)


def unpacked(value: bytes) -> tuple[str, str] | None:
    """The text of a record and the name of its state; None for a version that is not ours.

    Raises `ValueError` for bytes that are none.
    """
    if not value.startswith(_VERSION):
        return None
    start = TAG + _DIGEST
    return _text(value[start:]), value[TAG:start].hex()


def unpacked_state(value: bytes) -> str | None:
    """The text of a state; None and errors as with a record."""
    return _text(value[len(_VERSION) :]) if value.startswith(_VERSION) else None


def _squeezed(text: str) -> bytes:
    raw = text.encode()
    small = zlib.compress(raw, 1) if len(raw) > _WORTH else raw
    return _ZLIB + small if len(small) < len(raw) else _TEXT + raw


def _text(data: bytes) -> str:
    kind, rest = data[:1], data[1:]
    if kind not in (_TEXT, _ZLIB):
        raise ValueError("no value of a ledger")
    if kind == _ZLIB:
        reader = zlib.decompressobj()
        try:
            rest = reader.decompress(rest, _MOST)
        except zlib.error as error:
            raise ValueError(f"no value of a ledger: {error}") from None
        if not reader.eof:
            raise ValueError("no value of a ledger: it is cut, or too large")
    return rest.decode()
