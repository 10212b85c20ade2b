"""Retries inside an open stream: a later round is behind the back of the SDK, whose own retries are over."""

from __future__ import annotations

from typing import Any

MOST = 2
"""Retries of one round. The SDKs whose wire this is default to the same number."""
_LONGEST = 60.0
_FIRST = 0.5
_STATUSES = frozenset({408, 409, 429})


class Patience:
    """How long to wait before a round is sent again; None when it is not."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._taken = 0

    def after(self, error: BaseException) -> float | None:
        """Seconds to wait after an exception; only a request that may not have arrived is sent again."""
        kinds = (self._library.ConnectError, self._library.ConnectTimeout, self._library.PoolTimeout)
        return self._next() if isinstance(error, kinds) else None

    def of(self, response: Any) -> float | None:
        """Seconds to wait after an error response, by the words of the endpoint where it has any."""
        said = response.headers.get("x-should-retry")
        again = response.status_code in _STATUSES or response.status_code >= 500
        if said == "false" or not (again or said == "true"):
            return None
        wanted = _seconds(response.headers)
        if wanted is not None and wanted > _LONGEST:
            return None
        pause = self._next()
        return pause if pause is None or wanted is None else wanted

    def _next(self) -> float | None:
        if self._taken >= MOST:
            return None
        self._taken += 1
        return _FIRST * 2.0 ** (self._taken - 1)


def _seconds(headers: Any) -> float | None:
    """What `retry-after-ms` or `retry-after` ask for, in seconds; None for dates, and where neither is given."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(float(headers[name]) * unit, 0.0)
        except (KeyError, ValueError):
            continue
    return None
