"""Every name of httpx and httpx2 that is not public and that the adapter leans on; each has a test.

`_transport_for_url` and `_build_request_auth` of a client, and its makers of transports, `_init_transport` and
`_init_proxy_transport`. Checked with httpx 0.28.1 and httpx2 2.16.2.
"""

# ruff: noqa: SLF001

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

LIBRARIES = ("httpx", "httpx2")
_OF_TRANSPORTS = frozenset({"uds", "local_address", "retries", "socket_options"})
OPTIONS = _OF_TRANSPORTS | {"verify", "cert", "trust_env", "http1", "http2", "limits", "proxy", "mounts"}
"""The arguments of a client, or of an HTTP transport, that say how requests are sent."""


def library(value: object) -> Any:
    """The module, httpx or httpx2, to which a request, a response or a client belongs."""
    for kind in type(value).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in LIBRARIES:
            return sys.modules[name]
    raise TypeError(f"{type(value).__qualname__} is of neither httpx nor httpx2")


def is_client(value: object) -> bool:
    """Whether this is a client of either library, sync or async."""
    return is_sync(value) or is_async(value)


def is_sync(value: object) -> bool:
    """Whether this is a synchronous client of either library."""
    return any(isinstance(value, kind) for kind in _kinds("Client"))


def is_async(value: object) -> bool:
    """Whether this is an asynchronous client of either library."""
    return any(isinstance(value, kind) for kind in _kinds("AsyncClient"))


def _kinds(name: str) -> list[type[Any]]:
    found = [getattr(sys.modules.get(module), name, None) for module in LIBRARIES]
    return [kind for kind in found if isinstance(kind, type)]


def pool(module: Any, options: Mapping[str, Any], *, asynchronous: bool) -> Any:
    """A client that is only asked for its transports: those that it makes of these arguments and of the environment."""
    kind: Any = module.AsyncClient if asynchronous else module.Client
    made_of: Any = module.AsyncHTTPTransport if asynchronous else module.HTTPTransport
    own = {name: value for name, value in options.items() if name in _OF_TRANSPORTS}
    rest = {name: value for name, value in options.items() if name not in _OF_TRANSPORTS}
    if not own:
        return kind(**rest)

    def init(_: Any, transport: Any = None, **given: Any) -> Any:  # noqa: ARG001 - never given
        return made_of(**given, **own)

    def init_proxy(_: Any, proxy: Any, **given: Any) -> Any:
        return made_of(proxy=proxy, **given, **own)

    return type("Pool", (kind,), {"_init_transport": init, "_init_proxy_transport": init_proxy})(**rest)


def transport_for(client: Any, url: Any) -> Any:
    """The transport by which a client reaches an address."""
    return client._transport_for_url(url)


def _keep(_: object) -> None:
    """Nothing is closed."""


def members(base: type[Any], driven: Callable[[Any, Any], Any], signed: Callable[[Any], None]) -> dict[str, Any]:
    """What a class made from a client's class has of its own.

    `driven(client, transport)` gives what stands in front of a transport; `signed(request)` hears of a request whose
    authentication is computed from its body.
    """

    def transport_for_url(self: Any, url: Any) -> Any:
        return driven(self, base._transport_for_url(self, url))

    def build_request_auth(self: Any, request: Any, *args: Any, **given: Any) -> Any:
        made = base._build_request_auth(self, request, *args, **given)
        if getattr(made, "requires_request_body", False):
            signed(request)
        return made

    made: dict[str, Any] = {"_transport_for_url": transport_for_url, "_build_request_auth": build_request_auth}
    if hasattr(base, "__del__"):  # such a class closes the pool, which is the original client's as well
        made["__del__"] = _keep
    return made
