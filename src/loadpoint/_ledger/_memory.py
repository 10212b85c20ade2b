"""The default ledger: in this process, bounded, thread-safe."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from .._json import dumps
from ._record import Record

CANDIDATES = 8
"""How many records one key keeps: more conversations than this with one visible turn share nothing worth keeping."""


class InProcessLedger:
    """Remembers records in memory: at most `max_bytes` of JSON text (default 64 MiB), oldest conversations first out.

    Gone with the process. Safe to use from any thread.
    """

    def __init__(self, max_bytes: int = 64 * 1024 * 1024) -> None:
        self.max_bytes = max_bytes
        self._records: OrderedDict[str, tuple[Record, ...]] = OrderedDict()
        self._sizes: dict[str, int] = {}
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
            kept = tuple(old for old in self._records.get(key, ()) if old.sent_before != record.sent_before)
            self._put(key, (record, *kept)[:CANDIDATES])
            while self._bytes > self.max_bytes and len(self._records) > 1:
                self._drop(next(iter(self._records)))

    def close(self) -> None:
        with self._lock:
            self._records.clear()
            self._sizes.clear()
            self._bytes = 0

    def _put(self, key: str, records: tuple[Record, ...]) -> None:
        if key in self._records:
            self._drop(key)
        # The state is shared by the records of a conversation, so only what a record holds alone is counted.
        size = sum(len(dumps(record.turn)) + len(dumps(record.pending)) + 256 for record in records)
        self._records[key] = records
        self._sizes[key] = size
        self._bytes += size

    def _drop(self, key: str) -> None:
        del self._records[key]
        self._bytes -= self._sizes.pop(key)
