"""A ledger in one SQLite file, shared by the threads and processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from ._memory import CANDIDATES
from ._record import Record
from ._rows import read, state_name, written

_SCHEMA = """
CREATE TABLE IF NOT EXISTS loadpoint_state (digest TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS loadpoint_record (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL, state TEXT NOT NULL, body TEXT NOT NULL, written REAL NOT NULL);
CREATE INDEX IF NOT EXISTS loadpoint_record_key ON loadpoint_record (key, id);
"""
_BUSY_SECONDS = 5.0


class SqliteLedger:
    """Remembers records in the SQLite file `path` (made if missing; write-ahead log, so many processes may share it).

    `keep_days` is how long a record is kept (default 30 days); old ones go when new ones are written. The file holds
    parts of conversations and no keys: protect it as you protect those. Methods raise `sqlite3.Error` when the file
    cannot be read or written; a wrapped client then goes on without it and says so in the report. Making a ledger
    opens nothing.
    """

    def __init__(self, path: str | Path, *, keep_days: float = 30.0) -> None:
        self.path = Path(path)
        self.keep_days = keep_days
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._lock = threading.Lock()
        self._writes = 0

    def find(self, key: str) -> Sequence[Record]:
        with self._lock:
            rows = self._opened().execute(
                "SELECT r.body, s.body FROM loadpoint_record r JOIN loadpoint_state s ON s.digest = r.state"
                " WHERE r.key = ? ORDER BY r.id DESC LIMIT ?",
                (key, CANDIDATES),
            )
            found = rows.fetchall()
        return [read(body, state) for body, state in found]

    def add(self, key: str, record: Record) -> None:
        body, state = written(record)
        name = state_name(state)
        with self._lock, self._opened() as connection:
            connection.execute("INSERT OR IGNORE INTO loadpoint_state VALUES (?, ?)", (name, state))
            connection.execute(
                "INSERT INTO loadpoint_record (key, state, body, written) VALUES (?, ?, ?, ?)",
                (key, name, body, time.time()),
            )
            connection.execute(
                "DELETE FROM loadpoint_record WHERE key = ? AND id NOT IN"
                " (SELECT id FROM loadpoint_record WHERE key = ? ORDER BY id DESC LIMIT ?)",
                (key, key, CANDIDATES),
            )
            self._forget(connection)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _forget(self, connection: sqlite3.Connection) -> None:
        self._writes += 1
        if self._writes % 200 == 1:
            oldest = time.time() - self.keep_days * 86_400
            connection.execute("DELETE FROM loadpoint_record WHERE written < ?", (oldest,))
            connection.execute(
                "DELETE FROM loadpoint_state WHERE digest NOT IN (SELECT DISTINCT state FROM loadpoint_record)"
            )

    def _opened(self) -> sqlite3.Connection:
        """The connection of this process, under the lock: one for all threads, or each that ends leaves one open."""
        if self._connection is not None and self._process == os.getpid():
            return self._connection
        self._connection = None  # that of a parent process must not even be closed here
        opened = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, check_same_thread=False)
        try:
            opened.execute("PRAGMA journal_mode = WAL")
            opened.execute("PRAGMA synchronous = NORMAL")
            opened.executescript(_SCHEMA)
        except BaseException:
            opened.close()
            raise
        self._connection, self._process = opened, os.getpid()
        return opened
