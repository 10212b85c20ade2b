"""Web sockets of the Responses API: what is sent over one is no request that could be changed, which is said.

A socket is opened past `request()`; `_prepare_options`, the SDK's hook for the options of whatever it sends, sees it.
"""

# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

import functools
import logging
from typing import Any
from urllib.parse import urlsplit

log = logging.getLogger("loadpoint")
REASON = "a web socket is no request: what is sent over it is the caller's own, with every tool"


def members(base: type[Any], *, asynchronous: bool) -> dict[str, Any]:
    """What a wrapped client's class has beside that of `base`: the hook, which notes a socket for responses."""

    @functools.wraps(base._prepare_options)
    def prepare(self: Any, options: Any) -> Any:
        _note(self, options)
        return base._prepare_options(self, options)

    @functools.wraps(base._prepare_options)
    async def prepare_async(self: Any, options: Any) -> Any:
        _note(self, options)
        return await base._prepare_options(self, options)

    return {"_prepare_options": prepare_async if asynchronous else prepare}


def _note(client: Any, options: Any) -> None:
    address = str(options.url)
    if address.startswith(("ws:", "wss:")) and urlsplit(address).path.endswith("/responses"):
        log.info("responses.connect: %s", REASON)
        client._loadpoint.session.noted(REASON)
