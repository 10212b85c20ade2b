"""Leaving a server alone for a while after it could not be reached."""

from __future__ import annotations

import threading
import time


class Rest:
    """After a failure nothing is tried for `seconds`; then one operation tries, of at most `attempt` seconds.

    Safe to use from any thread.
    """

    def __init__(self, seconds: float, attempt: float) -> None:
        self.seconds = seconds
        self.attempt = attempt
        self._until = 0.0
        self._cause = ""
        self._lock = threading.Lock()

    def check(self) -> None:
        """Raise `redis.exceptions.ConnectionError` while the server is left alone."""
        with self._lock:
            now = time.monotonic()
            left = self._until - now
            if left <= 0:
                if self._until:  # others wait for what this one finds out
                    self._until = now + self.attempt
                return
        from redis.exceptions import ConnectionError as Unreachable

        raise Unreachable(f"not asked for {left:.1f} s more, after: {self._cause}")

    def failed(self, error: BaseException, *, whole: bool) -> None:
        """Note a failure: `whole` of the server, else of one operation, to which the server has answered."""
        with self._lock:
            self._until = time.monotonic() + self.seconds if whole else 0.0
            self._cause = f"{type(error).__name__}: {error}"

    def worked(self) -> None:
        """Note that the server is there."""
        with self._lock:
            self._until = 0.0
