"""The two drivers of a logical call, side by side: each round is a call of litellm's own function.

So retries, fallbacks, callbacks, caching and cost tracking are litellm's, once per round.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._aside import aside
from .._driving import alone, alone_async
from ._exchange import Exchange
from ._streams import Rounds, visible

if TYPE_CHECKING:
    from loadpoint._driven import Beginner
    from loadpoint._json import Json

    from ._routes import Place
    from ._wire import Wire

Where: TypeAlias = "Callable[[Mapping[str, Any], str], Place | None]"
"""Where a call with these arguments goes; raises what litellm raises for a model that it does not know."""


def driven(function: Callable[..., Any], wire: Wire, session: Beginner, where: Where) -> Callable[..., Any]:
    """`function`, driven; with its own name and signature, and a coroutine function if it is one."""
    if inspect.iscoroutinefunction(function):
        made = _async_call(alone_async(function), _names(function), wire, session, where)
    else:
        made = _call(alone(function), _names(function), wire, session, where)
    return functools.wraps(function)(made)


def _names(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of the positional arguments."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(each.name for each in found if each.kind in kinds)


def _exchange(
    names: tuple[str, ...], args: tuple[Any, ...], given: dict[str, Any], wire: Wire, session: Beginner, where: Where
) -> Exchange | None:
    """The call, None where it is litellm that has something to say about the arguments."""
    known = names if len(args) <= len(names) else ()
    named = dict(zip(known, args, strict=False))
    if len(named) < len(args) or named.keys() & given.keys():
        return None
    given = {**named, **given}
    try:
        place = where(given, wire.dialect)
    except Exception:  # noqa: BLE001 - litellm raises it again, and better, when it is called
        place = None
    return Exchange(wire, session, given, place)


# Whatever differs between the two beyond `await` is a mistake.


def _call(function: Any, names: tuple[str, ...], wire: Wire, session: Beginner, where: Where) -> Any:
    def call(*args: Any, **given: Any) -> Any:
        exchange = _exchange(names, args, given, wire, session, where)
        if exchange is None:
            return function(*args, **given)
        running = exchange.call
        if running is None or not running.exchange:
            return function(**exchange.once())

        def send(body: Json) -> Any:
            while True:
                try:
                    return function(**exchange.next(body))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = exchange.instead(error)

        if running.streaming:
            rounds = Rounds(exchange)
            return visible(rounds, send(running.body), send, asynchronous=False)
        body = exchange.feed(send(running.body))
        while (body := exchange.decided(body)) is not None:
            body = exchange.feed(send(body))
        return exchange.merged()

    return call


def _async_call(function: Any, names: tuple[str, ...], wire: Wire, session: Beginner, where: Where) -> Any:
    async def call(*args: Any, **given: Any) -> Any:
        exchange = await aside(session, _exchange, names, args, given, wire, session, where)
        if exchange is None:
            return await function(*args, **given)
        running = exchange.call
        if running is None or not running.exchange:
            return await function(**exchange.once())

        async def send(body: Json) -> Any:
            while True:
                try:
                    return await function(**exchange.next(body))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = exchange.instead(error)

        if running.streaming:
            rounds = Rounds(exchange)
            return visible(rounds, await send(running.body), send, asynchronous=True)
        body = await exchange.feed_async(await send(running.body))
        while (body := await exchange.decided_async(body)) is not None:
            body = await exchange.feed_async(await send(body))
        return exchange.merged()

    return call
