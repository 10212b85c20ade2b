"""The default ledger: in this process, bounded, thread-safe."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from .._json import Json, dumps
from ._record import Record, State

T = TypeVar("T")
CANDIDATES = 8
"""How many records one key keeps: more conversations than this with one visible turn share nothing worth keeping."""


class InProcessLedger:
    """Remembers records in memory: at most `max_bytes` of JSON text (default 64 MiB), oldest conversations first out.

    Gone with the process. Safe to use from any thread.
    """

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._records: OrderedDict[str, tuple[Record, ...]] = OrderedDict()
        self._kept: dict[int, _Used[Record]] = {}
        self._states: dict[int, _Used[State]] = {}
        self._tools: dict[int, _Used[Json]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def bytes_held(self) -> int:
        """The JSON text that is held, in characters."""
        return self._bytes

    def find(self, key: str) -> Sequence[Record]:
        with self._lock:
            records = self._records.get(key, ())
            if records:
                self._records.move_to_end(key)
            return records

    def add(self, key: str, record: Record) -> None:
        with self._lock:
            told = record.sent_before, record.state.system
            kept = tuple(r for r in self._records.get(key, ()) if (r.sent_before, r.state.system) != told)
            self._put(key, (record, *kept)[:CANDIDATES])
            while self._bytes > self.max_bytes and len(self._records) > 1:
                self._drop(next(iter(self._records)))

    def close(self) -> None:
        with self._lock:
            self._records.clear()
            self._kept.clear()
            self._states.clear()
            self._tools.clear()
            self._bytes = 0

    def _put(self, key: str, records: tuple[Record, ...]) -> None:
        old = self._records.pop(key, ())
        self._records[key] = records
        for record in records:
            self._hold(record)
        for record in old:
            self._release(record)

    def _drop(self, key: str) -> None:
        for record in self._records.pop(key):
            self._release(record)

    # A record stands under several keys, the records of a conversation share their state, and conversations share
    # tools: each object is counted once.

    def _hold(self, record: Record) -> None:
        known = self._kept.get(id(record))
        if known is not None:
            known.uses += 1
            return
        size = len(dumps(record.turn)) + len(dumps(record.pending)) + 256
        self._kept[id(record)] = _Used(record, size)
        self._bytes += size
        self._hold_state(record.state)

    def _release(self, record: Record) -> None:
        known = self._kept[id(record)]
        known.uses -= 1
        if not known.uses:
            del self._kept[id(record)]
            self._bytes -= known.size
            self._release_state(record.state)

    def _hold_state(self, state: State) -> None:
        known = self._states.get(id(state))
        if known is not None:
            known.uses += 1
            return
        self._states[id(state)] = _Used(state, len(state.catalog) + 256)
        self._bytes += len(state.catalog) + 256
        for tool in (*state.tools, *state.definitions):
            held = self._tools.get(id(tool))
            if held is not None:
                held.uses += 1
            else:
                self._tools[id(tool)] = held = _Used(tool, len(dumps(tool)))
                self._bytes += held.size

    def _release_state(self, state: State) -> None:
        known = self._states[id(state)]
        known.uses -= 1
        if known.uses:
            return
        del self._states[id(state)]
        self._bytes -= known.size
        for tool in (*state.tools, *state.definitions):
            held = self._tools[id(tool)]
            held.uses -= 1
            if not held.uses:
                del self._tools[id(tool)]
                self._bytes -= held.size


@dataclass(slots=True)
class _Used(Generic[T]):
    """An object that several records hold, how large it is, and how many hold it; alive, so that its id is its own."""

    held: T
    size: int
    uses: int = 1
