"""A ledger in Redis, shared by the processes of a fleet."""

from __future__ import annotations

import copy
import importlib.util
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from .._json import digest
from ..errors import LoadpointError, PolicyError
from ._link import Link
from ._memory import CANDIDATES
from ._packed import Packed, packed, unpacked, unpacked_state
from ._record import Record, State
from ._rows import read

_SCHEMES = ("redis://", "rediss://", "unix://")
_STATES = 32


class RedisLedger:
    """Remembers records in a Redis server, version 5 or newer, for every process that uses it with the same `tenant`.

    `url` is `redis://`, `rediss://` or `unix://`, or a client of the package `redis` that is ready to use (one of a
    Sentinel or a cluster, say), whose timeouts then hold. Records of one `tenant` are never found by another; its name
    is stored as a digest. `ttl_seconds` is how long a record is kept after it was last written or read (default one
    day; a conversation that goes on later is rebuilt from what the caller shows). A value has at most `max_value_bytes`
    (compressed), a key eight of them. What is stored are parts of conversations and no credentials: protect the server
    as you protect those.

    No operation takes longer than `timeout_seconds` (default half a second; the look-up of a host name comes on top).
    What passes by itself within that time (a reset connection, a server that is starting or changes its role) is tried
    again; after that the server is left alone for `rest_seconds`, in which every operation fails at once. Methods raise
    `redis.exceptions.RedisError`, or `ValueError` for what is there and no record; a wrapped client then goes on
    without the ledger and says so in the report. Making a ledger opens nothing; it raises `LoadpointError` where the
    extra `redis` is missing, and `PolicyError` for a setting that cannot be used.
    """

    def __init__(
        self,
        url: str | Any,
        *,
        tenant: str,
        ttl_seconds: float = 86_400.0,
        timeout_seconds: float = 0.5,
        rest_seconds: float = 10.0,
        max_value_bytes: int = 4 * 1024 * 1024,
    ) -> None:
        _usable(url, tenant)
        bounds: dict[str, object] = {
            "ttl_seconds": ttl_seconds,
            "timeout_seconds": timeout_seconds,
            "rest_seconds": rest_seconds,
            "max_value_bytes": max_value_bytes,
        }
        for name, value in bounds.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.001 <= value < 1e12:
                raise PolicyError(f"RedisLedger.{name}: {value!r} is not usable; allowed: a number above zero")
        if any(importlib.util.find_spec(name) is None for name in ("redis", "tenacity")):
            raise LoadpointError('RedisLedger needs more packages: pip install "loadpoint[redis]"')
        self.ttl_seconds = ttl_seconds
        self.timeout_seconds = timeout_seconds
        self.max_value_bytes = max_value_bytes
        self._link = Link(url, timeout_seconds, rest_seconds)
        self._use(tenant)

    def _use(self, tenant: str) -> None:
        # The braces keep all keys of a tenant on one node of a cluster, where one step can write two of them.
        self._prefix = f"loadpoint:{{{digest(tenant)}}}"
        self._ttl = max(int(self.ttl_seconds * 1000), 1)
        self._last: Packed | None = None
        self._states: OrderedDict[str, State] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> Sequence[Record]:
        return self._link.asked(lambda client, _: self._found(client, f"{self._prefix}:r:{key}"))

    def add(self, key: str, record: Record) -> None:
        made = self._packed(record)
        self._fits(made.value)
        keys = [f"{self._prefix}:r:{key}", f"{self._prefix}:s:{made.name}"]

        def write(client: Any, script: Any) -> None:
            # The state is large, and nearly always there already.
            if not script(keys=keys, args=[made.value, b"", self._ttl], client=client):
                self._fits(state := made.state)
                script(keys=keys, args=[made.value, state, self._ttl], client=client)

        self._link.asked(write)

    def _fits(self, value: bytes) -> None:
        if len(value) > self.max_value_bytes:
            raise ValueError(f"not remembered: {len(value)} bytes, and max_value_bytes is {self.max_value_bytes}")

    def close(self) -> None:
        with self._lock:
            self._last = None
            self._states.clear()
        self._link.close()

    def for_tenant(self, tenant: str) -> RedisLedger:
        """A ledger of another tenant on the same server, with the same settings and connections.

        Closing one closes the connections of all, which the next operation opens again. Raises `PolicyError` for a
        tenant without a name.
        """
        _named(tenant)
        made = copy.copy(self)
        made._use(tenant)  # noqa: SLF001 - one of ours
        return made

    def _packed(self, record: Record) -> Packed:
        """The bytes of a record; it comes once for each of its keys."""
        last = self._last
        if last is None or last.record is not record:
            self._last = last = packed(record)
        return last

    # -- reading -------------------------------------------------------------------------------------------------

    def _found(self, client: Any, name: str) -> list[Record]:
        values: list[bytes] = client.lrange(name, 0, CANDIDATES - 1)
        texts = [each for each in map(unpacked, values) if each is not None]
        if not texts:
            return []
        names = list(dict.fromkeys(state for _, state in texts))
        with self._lock:
            known = {state: self._states[state] for state in names if state in self._states}
        given = self._fetched(client, name, names, [state for state in names if state not in known])
        records: list[Record] = []
        for text, state in texts:
            if state in known or state in given:  # else the server had no room for it
                records.append(read(text, known.get(state) or given[state]))
                known[state] = records[-1].state
        with self._lock:
            self._states.update(known)
            while len(self._states) > _STATES:
                self._states.popitem(last=False)
        return records

    def _fetched(self, client: Any, name: str, names: list[str], missing: list[str]) -> dict[str, str]:
        """The texts of the states that are missing here; what is read is kept for another time to live."""
        from redis.exceptions import RedisError

        pipe = client.pipeline(transaction=False)
        for state in missing:
            pipe.get(f"{self._prefix}:s:{state}")
        for key in (name, *(f"{self._prefix}:s:{state}" for state in names)):
            pipe.pexpire(key, self._ttl)
        replies = pipe.execute(raise_on_error=False)[: len(missing)]  # a server that is only read keeps it no longer
        found: dict[str, str] = {}
        for state, value in zip(missing, replies, strict=True):
            if isinstance(value, RedisError):
                raise value
            text = unpacked_state(value) if value is not None else None
            if text is not None:
                found[state] = text
        return found


def _usable(url: object, tenant: object) -> None:
    if isinstance(url, str):
        if not url.startswith(_SCHEMES):
            raise PolicyError(
                f"RedisLedger.url: not usable; allowed: an address with {', '.join(_SCHEMES)}, or a client"
            )
    elif not callable(getattr(url, "register_script", None)):
        raise PolicyError(f"RedisLedger.url: {type(url).__qualname__} is not usable; allowed: an address, or a client")
    elif getattr(getattr(url, "connection_pool", None), "connection_kwargs", {}).get("decode_responses"):
        raise PolicyError(
            "RedisLedger.url: a client with decode_responses is not usable; allowed: one that gives bytes"
        )
    _named(tenant)


def _named(tenant: object) -> None:
    if not isinstance(tenant, str) or not tenant.strip():
        raise PolicyError(
            f"RedisLedger.tenant: {tenant!r} is not usable; allowed: the name of whose conversations they are"
        )
