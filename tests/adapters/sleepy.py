"""A ledger that answers once the event loop has turned: on the loop itself it would wait in vain."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from loadpoint import InProcessLedger


class SleepyLedger:
    """Remembers in the process. `turn` has the event loop run a function soon."""

    def __init__(self, turn: Callable[[Callable[[], None]], Any]) -> None:
        self._turn = turn
        self._kept = InProcessLedger()
        self.log: list[str] = []
        """Each operation, with a mark if the loop stood still meanwhile."""

    def _asleep(self, name: str) -> None:
        turned = threading.Event()
        self._turn(turned.set)
        self.log.append(name if turned.wait(2) else f"{name}: the loop stood still")

    def find(self, key: str) -> Sequence[Any]:
        self._asleep("find")
        return self._kept.find(key)

    def add(self, key: str, record: Any) -> None:
        self._asleep("add")
        self._kept.add(key, record)

    def close(self) -> None:
        self._kept.close()
