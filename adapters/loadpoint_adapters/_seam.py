"""The seam of the Stainless-made SDKs: a subclass of the caller's own client class that overrides `request()`.

Every resource method, raw variant and helper of such an SDK ends in `client.request(cast_to, options)`. The subclass
drives the rounds there: each is a request of its own through the SDK (retries, timeouts, typed errors, signing, other
people's instrumentation), and the caller's SDK parses what the rounds amount to.
"""

from __future__ import annotations

import functools
import inspect
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from loadpoint._adapter import SessionFactory
from loadpoint._driven import Beginner
from loadpoint.errors import UnsupportedClientError

from ._aside import aside
from ._driving import alone, alone_async
from ._exchange import Exchange
from ._response import spliced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadpoint._dialect import Dialect
    from loadpoint._json import Json

    from ._compatibility import Compat

T = TypeVar("T")


@dataclass(slots=True)
class Binding:
    """What ties a wrapped client to us: its session, and the client it was made from (None for copies)."""

    session: Beginner
    original: Any


class Seam:
    """The adapter of one Stainless-made SDK, given what is special about it."""

    def __init__(self, compat: Compat) -> None:
        self.name = compat.sdk
        self.compat = compat
        self._classes: weakref.WeakKeyDictionary[type[Any], weakref.ref[type[Any]]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def dialects(self) -> Sequence[Dialect]:
        """The dialects that this SDK speaks."""
        return self.compat.dialects()

    def matches(self, client: object) -> bool:
        """Whether `client` is a client of this SDK."""
        return self.compat.matches(client)

    def wrap(self, client: T, session_factory: SessionFactory) -> T:
        """A client of the same type over the same connection pool; raises `UnsupportedClientError` by SDK version."""
        reason = self.compat.unsupported()
        if reason is not None:
            raise UnsupportedClientError(reason)
        return self._bound(
            _twin(client, self.compat.pool(client)), Binding(session_factory(self.compat.dialects()), client)
        )

    def unwrap(self, client: T) -> T:
        """The client that was wrapped; for a copy of a wrapped client a plain client with the copy's options."""
        binding = _binding(client)
        if binding is None:
            return client
        return (
            cast(T, binding.original)
            if binding.original is not None
            else _twin(cast(T, _plain(client)), self.compat.pool(client))
        )

    def _bound(self, client: T, binding: Binding) -> T:
        vars(client)["_loadpoint"] = binding
        client.__class__ = self._class(type(client))  # resources look `request` up on the class, so this is enough
        return client

    def _class(self, base: type[Any]) -> type[Any]:
        """The subclass of `base`, one per base for as long as a client of it lives: type identity holds."""
        with self._lock:
            reference = self._classes.get(base)
            made = reference() if reference is not None else None
            if made is None:
                made = self._make_class(base)
                self._classes[base] = weakref.ref(made)
            return made

    def _make_class(self, base: type[Any]) -> type[Any]:
        bind, compat = self._bound, self.compat

        @functools.wraps(base.copy)
        def copy(self: Any, *args: Any, **options: Any) -> Any:
            # made by a client of the caller's class: SDKs ask for the exact type before they hand on credentials
            made = base.copy(_plain(self), *args, **options)
            return bind(made, Binding(self._loadpoint.session, None))

        members: dict[str, Any] = {"__module__": base.__module__, "__qualname__": base.__qualname__}
        members |= {"__doc__": base.__doc__, "copy": copy, "with_options": copy, "_loadpoint_base": base}
        members |= compat.members(base)
        driver = _async_request if compat.asynchronous(base) else _request
        members["request"] = functools.wraps(base.request)(driver(base, compat))
        return cast("type[Any]", type(base.__name__, (base,), members))


def _binding(client: object) -> Binding | None:
    return vars(client).get("_loadpoint") if hasattr(client, "__dict__") else None


def _plain(client: Any) -> Any:
    """The same client (one shared state) seen as its plain class."""
    base: type[Any] | None = getattr(client, "_loadpoint_base", None)
    if base is None:
        return client
    made = object.__new__(base)
    state = cast("dict[str, Any]", vars(client))
    made.__dict__ = {name: value for name, value in state.items() if name != "_loadpoint"}
    return made


def _twin(client: T, pool: object) -> T:
    """A second client with the same options and connection pool, and what a class or a caller has added to it."""
    made = _copied(client, pool)
    for name, value in vars(client).items():
        if _is_cached(client, name) or name == "_loadpoint":
            continue
        if name not in vars(made):
            vars(made)[name] = value
        elif not name.startswith("_") and getattr(value, "_client", None) is not client:
            vars(made)[name] = value  # perhaps changed since construction
    return cast(T, made)


def _copied(client: Any, pool: object) -> Any:
    try:
        return client.copy(http_client=pool)  # named because some classes' copy() makes a new one
    except TypeError:
        # the class has a constructor of its own, which the SDK's copy() cannot call
        made: Any = object.__new__(client.__class__)
        for name, value in client.__dict__.items():
            if getattr(value, "_client", None) is client:
                made.__dict__[name] = value.__class__(made)
            elif not _is_cached(client, name):
                made.__dict__[name] = value
        return made


def _is_cached(client: object, name: str) -> bool:
    """Whether this is a resource, cached under the name of its property: it belongs to this client alone."""
    return hasattr(inspect.getattr_static(type(client), name, None), "__get__")


# The two drivers, side by side. Whatever differs between them beyond `await` is a mistake.


def _request(base: type[Any], compat: Compat) -> Any:
    def request(self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        upstream = alone(functools.partial(base.request, self, stream=stream, stream_cls=stream_cls))
        exchange = Exchange(compat, self, self._loadpoint.session, *compat.prepare(self, options))
        call = exchange.call
        if call is None:
            return upstream(cast_to, exchange.options)
        if not call.exchange:
            return exchange.attach(upstream(cast_to, exchange.once()))
        exchange.options = exchange.options.model_copy()
        parsed = compat.cast_to(self, cast_to, exchange.options)

        def send(body: Json) -> Any:
            while True:
                try:
                    return exchange.received(upstream(parsed, exchange.next(body)))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = exchange.instead(error)

        if call.streaming:
            rounds = exchange.rounds()
            rounds.next(send(call.body))
            response = spliced(rounds, send, asynchronous=False)
        else:
            response = send(call.body)
            read, body = exchange.feed(response)
            while (body := exchange.decided(body)) is not None:
                response = send(body)
                read, body = exchange.feed(response)
            response = exchange.merged(response, read=read)
        if not stream and exchange.whole():
            response.read()
        return exchange.attach(compat.process(self, **exchange.given(parsed, response, stream, stream_cls)))

    return request


def _async_request(base: type[Any], compat: Compat) -> Any:
    async def request(self: Any, cast_to: Any, options: Any, *, stream: bool = False, stream_cls: Any = None) -> Any:
        upstream = alone_async(functools.partial(base.request, self, stream=stream, stream_cls=stream_cls))
        session, given = self._loadpoint.session, await compat.prepare_async(self, options)
        exchange = await aside(session, Exchange, compat, self, session, *given)
        call = exchange.call
        if call is None:
            return await upstream(cast_to, exchange.options)
        if not call.exchange:
            return exchange.attach(await upstream(cast_to, exchange.once()))
        exchange.options = exchange.options.model_copy()
        parsed = compat.cast_to(self, cast_to, exchange.options)

        async def send(body: Json) -> Any:
            while True:
                try:
                    return exchange.received(await upstream(parsed, exchange.next(body)))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = exchange.instead(error)

        if call.streaming:
            rounds = exchange.rounds()
            rounds.next(await send(call.body))
            response = spliced(rounds, send, asynchronous=True)
        else:
            response = await send(call.body)
            read, body = await exchange.feed_async(response)
            while (body := await exchange.decided_async(body)) is not None:
                response = await send(body)
                read, body = await exchange.feed_async(response)
            response = exchange.merged(response, read=read)
        if not stream and exchange.whole():
            await response.aread()
        return exchange.attach(await compat.process(self, **exchange.given(parsed, response, stream, stream_cls)))

    return request
