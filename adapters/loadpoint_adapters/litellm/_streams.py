"""Streams of several rounds, of the classes that litellm has: one visible stream, read from the open upstream one."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, cast

from loadpoint._adapter import reports
from loadpoint._agreeing import agreed, unheard
from loadpoint._driven import EXTENSION

from .._aside import aside, fed
from .._driving import driving
from . import _compat

if TYPE_CHECKING:
    from loadpoint._json import Json

    from ._exchange import Exchange


class Rounds:
    """What the two ways of reading share: which upstream stream is open, and whether the call is over."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.call = exchange.running
        self.splice = self.call.splice()
        self.closed = False
        self.done = False
        self.upstream: Any = None
        self._came: dict[bytes, Any] = {}
        self._item: Any = None
        self._replayed = self.splice.replayed()  # before the first round is sent: it may be a later one then

    def opening(self) -> Iterator[Any]:
        """Items for rounds that were paid for before this call."""
        return self._given(self._replayed)

    def shown(self, item: Any) -> Iterator[Any]:
        """What the caller sees of one upstream item."""
        raw = self.exchange.wire.sent(item)
        if len(self._came) > 8:  # closing events wait for the end of the round; others are shown at once
            self._came.pop(next(iter(self._came)))
        self._came[raw] = self._item = item
        return self._given(self.splice.feed(raw))

    def _given(self, frames: list[bytes]) -> Iterator[Any]:
        for raw, made in self.exchange.wire.items(frames):
            if raw in self._came:
                yield self._came[raw]
            elif made is not None:
                if self._item is not None and not isinstance(made, bytes):
                    _compat.note(made, dict(_compat.hidden(self._item)))
                yield made

    def ended(self) -> tuple[list[Any], Json | None]:
        """The closing items and the next body, once the upstream stream has been read."""
        exchange = self.exchange
        frames = self.splice.feed(over) if (over := exchange.wire.over()) else []
        exchange.costs.append(_compat.cost(self._item))
        ms = exchange.elapsed
        body = self.splice.end(request_id=_compat.request_id(self.upstream), ms=ms)
        if self.call.question is not None:
            return [*self._given(frames)], None
        return self._closed(frames, body)

    def decided(self, agreed: bool) -> tuple[list[Any], Json | None]:
        """The same once a question of the call is answered."""
        return self._closed([], self.splice.decided(agreed))

    def _closed(self, frames: list[bytes], body: Json | None) -> tuple[list[Any], Json | None]:
        items = [*self._given([*frames, *self.splice.closing()])]
        if body is None:
            self.done = True
            for item in items[-1:]:
                if len(self.exchange.costs) > 1 and not isinstance(item, bytes):
                    self.exchange.priced(item)
            self._remember()
        return items, body

    def _remember(self) -> None:
        if self.call.report is not None:
            for shown in (getattr(self.call, "visible_id", None), self.call.result.get("id")):
                reports.remember({"id": shown}, self.call.report)

    def leave(self) -> bool:
        """The caller is done with the stream; False if that was known already."""
        if self.closed:
            return False
        self.closed = True
        if not self.done:
            self.call.failed()
        return True


# Generators refer to `Rounds`, never to the stream that holds them: a dropped stream is then closed at once.


def _read(rounds: Rounds, send: Callable[[Json], Any]) -> Generator[Any, None, None]:
    try:
        yield from rounds.opening()
        while True:
            for item in _Quiet(rounds.upstream):
                if rounds.closed:
                    return
                yield from rounds.shown(item)
            items, body = rounds.ended()
            yield from items
            if rounds.call.question is not None:
                items, body = rounds.decided(unheard(rounds.call))
                yield from items
            if body is None or rounds.closed:
                return
            rounds.upstream = send(body)
    finally:
        rounds.leave()
        close(rounds.upstream)


async def _read_async(rounds: Rounds, send: Callable[[Json], Awaitable[Any]]) -> AsyncGenerator[Any, None]:
    try:
        for item in rounds.opening():
            yield item
        while True:
            async for item in _Quiet(rounds.upstream):
                if rounds.closed:
                    return
                for shown in rounds.shown(item):
                    yield shown
            items, body = await fed(rounds.exchange.session, rounds.ended)
            for shown in items:
                yield shown
            if rounds.call.question is not None:
                items, body = await aside(rounds.exchange.session, rounds.decided, await agreed(rounds.call))
                for shown in items:
                    yield shown
            if body is None or rounds.closed:
                return
            rounds.upstream = await send(body)
    finally:
        rounds.leave()
        await aclose(rounds.upstream)


class _Quiet:
    """The items of an upstream stream, with nobody of ours below: some send their request when they are first read."""

    def __init__(self, upstream: Any) -> None:
        self.upstream = upstream
        self.items: Any = None

    def __iter__(self) -> Iterator[Any]:
        self.items = iter(self.upstream)
        return self

    def __next__(self) -> Any:
        with driving():
            return next(self.items)

    def __aiter__(self) -> AsyncIterator[Any]:
        self.items = aiter(self.upstream)
        return self

    async def __anext__(self) -> Any:
        with driving():
            return await anext(self.items)


def close(upstream: Any) -> None:
    """Close an upstream stream, of a class that can be closed."""
    closing = getattr(upstream, "close", None)
    if callable(closing) and not inspect.iscoroutinefunction(closing):
        closing()


async def aclose(upstream: Any) -> None:
    """The same for one that is read asynchronously."""
    closing: Any = getattr(upstream, "aclose", None)
    if closing is not None:
        await closing()
    else:
        close(upstream)


# Weak on both sides: litellm has classes that it makes anew for each call.
_classes: weakref.WeakKeyDictionary[type[Any], weakref.ref[type[Any]]] = weakref.WeakKeyDictionary()


def _class(base: type[Any]) -> type[Any]:
    """The class of the visible stream for one of litellm's: an instance of it, with the same attributes."""
    known = _classes.get(base)
    made = known() if known is not None else None
    if made is None:
        names = {"__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__}
        made = type(base.__name__, (base,), {**_METHODS, **names})
        _classes[base] = weakref.ref(made)
    return made


class _Stream:
    """The methods of a visible stream. `_loadpoint` has its rounds, `_loadpoint_items` what it shows."""

    _loadpoint: Rounds
    _loadpoint_items: Any
    chunks: list[Any]

    def __iter__(self) -> Any:
        return self

    def __aiter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        return _noted(self, next(self._loadpoint_items))

    async def __anext__(self) -> Any:
        return _noted(self, await anext(self._loadpoint_items))

    def close(self) -> None:
        """Close the open upstream stream; no further round is started."""
        self._loadpoint.leave()
        close(self._loadpoint.upstream)

    async def aclose(self) -> None:
        """Close the open upstream stream; no further round is started."""
        self._loadpoint.leave()
        await aclose(self._loadpoint.upstream)

    def __del__(self) -> None:
        rounds = vars(self).get("_loadpoint")
        if rounds is not None:
            rounds.leave()


_METHODS = {name: value for name, value in vars(_Stream).items() if inspect.isfunction(value)}


def _noted(stream: Any, item: Any) -> Any:
    """The item, noted where litellm's streams note theirs: what is read of them afterwards is the visible reply."""
    if "chunks" in vars(stream):
        stream.chunks.append(item)
    kind = str(getattr(getattr(item, "type", None), "value", getattr(item, "type", "")))
    if kind in ("response.completed", "response.incomplete", "response.failed"):
        stream.completed_response = item
    return item


def visible(rounds: Rounds, first: Any, send: Callable[[Json], Any], *, asynchronous: bool) -> Any:
    """The stream that shows all rounds, made like `first`, that of the first round."""
    rounds.upstream = first
    kind: Any = first.__class__
    made: Any = object.__new__(_class(kind))
    state = cast("dict[str, Any]", first.__dict__)
    made.__dict__.update(state)
    if "chunks" in state:
        made.chunks = []
    made.extensions = {EXTENSION: rounds.call}
    made._loadpoint = rounds  # noqa: SLF001 - our own
    made._loadpoint_items = (_read_async if asynchronous else _read)(rounds, send)  # noqa: SLF001 - our own
    return made
