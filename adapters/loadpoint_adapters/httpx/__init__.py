"""The generic way in: a transport for httpx and httpx2, under any SDK that takes an HTTP client, and their clients.

`loadpoint.wrap(client)` takes a client of either; `transport(policy)` is for clients that are yet to be made. Neither
library is imported here: the requests bring the one they belong to.
"""

from __future__ import annotations

from ._adapter import HttpClients
from ._transport import Transport, transport

__all__ = ["Transport", "adapter", "transport"]

adapter = HttpClients()
"""Found through the entry points `httpx` and `httpx2` of the group `loadpoint.adapters`."""
