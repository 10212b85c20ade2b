"""Rounds that were paid for in a call that then failed: kept for a while, so that a retry does not pay twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ._json import Json

SECONDS = 300.0
_MOST = 256


@dataclass(frozen=True, slots=True)
class PaidRound:
    """One finished round: its reply, for streams its events as they came, and the provider's request id."""

    reply: Json
    events: tuple[bytes, ...]
    request_id: str | None


class PaidRounds:
    """Paid rounds under the digest of the caller's request, for five minutes, handed out once."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, tuple[float, tuple[PaidRound, ...]]] = {}
        self._lock = threading.Lock()

    def keep(self, key: Callable[[], str], rounds: Sequence[PaidRound]) -> None:
        """Keep the rounds of a failed call."""
        now = self._clock()
        name = key()
        with self._lock:
            self._kept = {k: entry for k, entry in self._kept.items() if now - entry[0] < SECONDS}
            while len(self._kept) >= _MOST:
                del self._kept[next(iter(self._kept))]
            self._kept[name] = (now, tuple(rounds))

    def take(self, key: Callable[[], str]) -> list[PaidRound]:
        """The rounds kept for this request, which are then forgotten; digests nothing while nothing is kept."""
        if not self._kept:
            return []
        name = key()
        with self._lock:
            found = self._kept.pop(name, None)
        return list(found[1]) if found is not None and self._clock() - found[0] < SECONDS else []
