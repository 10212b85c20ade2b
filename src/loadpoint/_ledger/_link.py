"""The connection of ledgers in Redis to their server: what is tried again, for how long, and when it is left alone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar, cast

from ._memory import CANDIDATES
from ._packed import TAG
from ._rest import Rest

T = TypeVar("T")
_WAITS = 6
"""Waits on the network that fit into one operation: half of its time is for tries again, an attempt has three of them
(two addresses of a host name, one answer)."""
_RETRY = ("CLUSTERDOWN", "LOADING", "MASTERDOWN", "READONLY", "TRYAGAIN")
"""Answers of a server that is starting or changing its role; scripts wrap them into longer ones."""

# One step, so that processes which write at once leave a list that each of them could have left.
ADD = f"""
if ARGV[2] == '' then
  if redis.call('PEXPIRE', KEYS[2], ARGV[3]) == 0 then return 0 end
else
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end
local point = string.sub(ARGV[1], 1, {TAG})
for _, kept in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if string.sub(kept, 1, {TAG}) == point then redis.call('LREM', KEYS[1], 0, kept) end
end
redis.call('LPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], 0, {CANDIDATES - 1})
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""
"""Puts a record under a key, and its state beside it; 0 where the state is not there and was not given."""


class Link:
    """One server, as it is used by the ledgers of all tenants. Safe to use from any thread.

    `url` is an address, or a client that is not ours to close.
    """

    def __init__(self, url: str | Any, timeout_seconds: float, rest_seconds: float) -> None:
        self._url = url  # with a password in it, perhaps: not for others to read
        self.timeout_seconds = timeout_seconds
        self._rest = Rest(rest_seconds, timeout_seconds)
        self._client: Any = None
        self._script: Any = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections; the next operation opens them again."""
        with self._lock:
            if self._client is not None and isinstance(self._url, str):
                self._client.close()
            self._client = self._script = None

    def asked(self, work: Callable[[Any, Any], T]) -> T:
        """What `work` makes of the client and the script: tried again for a while, and not at all during a rest."""
        import tenacity
        from redis import exceptions

        client, script = self._opened()
        self._rest.check()

        def drop(state: tenacity.RetryCallState) -> None:
            # The name of the server may lead to another one by now: one that can be written to.
            error = state.outcome.exception() if state.outcome is not None else None
            pool = getattr(client, "connection_pool", None)
            if isinstance(error, exceptions.ResponseError) and pool is not None:
                pool.disconnect()

        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(_passing),
            stop=tenacity.stop_before_delay(self.timeout_seconds / 2),
            wait=tenacity.wait_random_exponential(multiplier=0.01, max=0.1),
            before_sleep=drop,
            reraise=True,
        )
        try:
            result = retrying(work, client, script)
        except (exceptions.RedisError, OSError) as error:
            self._rest.failed(error, whole=_unreachable(error))
            raise
        self._rest.worked()
        return result

    def _opened(self) -> tuple[Any, Any]:
        with self._lock:
            if self._client is None:
                client = self._connected()
                self._script = client.register_script(ADD)
                self._client = client
            return self._client, self._script

    def _connected(self) -> Any:
        if not isinstance(self._url, str):
            return self._url
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        wait = self.timeout_seconds / _WAITS
        kind = cast(Any, redis.Redis)  # its own types are not complete
        return kind.from_url(
            self._url,
            socket_timeout=wait,
            socket_connect_timeout=wait,
            retry=Retry(NoBackoff(), 0),  # it is tried again here, within the time of the operation
            protocol=2,
        )


def _passing(error: BaseException) -> bool:
    """Whether an error is one that passes by itself."""
    from redis import exceptions

    refused = (exceptions.AuthenticationError, exceptions.AuthorizationError)
    return _unreachable(error) and not isinstance(error, refused)


def _unreachable(error: BaseException) -> bool:
    """Whether an error says that the server cannot be used at all, not what is wrong with one operation."""
    from redis import exceptions

    lost = (exceptions.ConnectionError, exceptions.TimeoutError, OSError)
    changing = (exceptions.ClusterDownError, exceptions.ReadOnlyError, exceptions.TryAgainError)
    scripted = isinstance(error, exceptions.ResponseError) and any(word in str(error) for word in _RETRY)
    return scripted or isinstance(error, (*lost, *changing))
