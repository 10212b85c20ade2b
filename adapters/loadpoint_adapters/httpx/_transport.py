"""The transport, the two drivers behind it, and the transports that it sends by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from loadpoint._agreeing import agreed, unheard

from .._aside import aside, fed
from ._compat import OPTIONS, library, pool, transport_for
from ._trip import Ask, Course, Pause, Read, Send, Trip

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect
    from loadpoint._driven import Beginner
    from loadpoint._ledger import Ledger
    from loadpoint._policy import Policy
    from loadpoint._report import CallReport
    from loadpoint.toolbox import Toolbox


class Driver:
    """Sends requests by other transports, as the session decides."""

    def __init__(self, session: Beginner, dialects: Sequence[Dialect]) -> None:
        self.session = session
        self._dialects = tuple(dialects)

    def send(self, inner: Any, request: Any) -> Any:
        """The response of a synchronous client's request."""

        def run(course: Course) -> Any:
            return _run(inner, course)

        return run(Trip(self.session, self._dialects, request).course(run, asynchronous=False))

    async def send_async(self, inner: Any, request: Any) -> Any:
        """The response of an asynchronous client's request."""

        async def run(course: Course) -> Any:
            return await _run_async(inner, course, self.session)

        trip = await aside(self.session, Trip, self.session, self._dialects, request)
        return await run(trip.course(run, asynchronous=True))


def _next(course: Course, value: Any, error: BaseException | None) -> tuple[Any, bool]:
    """The next step, or what the course comes to, and whether it is over."""
    try:
        return course.send(value) if error is None else course.throw(error), False
    except StopIteration as end:
        return end.value, True


# The two drivers, side by side. Whatever differs between them beyond `await` is a mistake; beside the event loop runs
# what a reply leads to, because a ledger may wait.


def _run(inner: Any, course: Course) -> Any:
    value: Any = None
    error: BaseException | None = None
    while True:
        step, over = _next(course, value, error)
        if over:
            return step
        value, error = None, None
        try:
            if isinstance(step, Send):
                value = inner.handle_request(step.request)
                value.request = step.request
            elif isinstance(step, Read):
                value = None if _was_read(step.response) else _bytes(step.response)
            elif isinstance(step, Ask):
                value = unheard(step.call)
            else:
                time.sleep(step.seconds)
        except BaseException as raised:  # noqa: BLE001 - the course decides, and raises it again
            error = raised


async def _run_async(inner: Any, course: Course, session: Beginner) -> Any:
    step: Any = None
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            if isinstance(step, Read):
                step, over = await fed(session, _next, course, value, error)
            else:
                step, over = _next(course, value, error)
        except BaseException as raised:
            if not isinstance(raised, Exception):
                course.throw(raised)  # cancelled: what was paid for is kept
            raise
        if over:
            return step
        value, error = None, None
        try:
            if isinstance(step, Send):
                value = await inner.handle_async_request(step.request)
                value.request = step.request
            elif isinstance(step, Read):
                value = None if _was_read(step.response) else await _bytes_async(step.response)
            elif isinstance(step, Ask):
                value = await agreed(step.call)
            else:
                await _sleep(step)
        except BaseException as raised:  # noqa: BLE001 - the course decides, and raises it again
            error = raised


def _was_read(response: Any) -> bool:
    """Whether somebody has read this response: a transport that made it of content, or an event hook of its own."""
    try:
        _ = response.content
        return True
    except Exception:  # noqa: BLE001 - `ResponseNotRead` of either library
        return False


def _bytes(response: Any) -> bytes:
    try:
        return b"".join(response.iter_raw())
    finally:
        response.close()


async def _bytes_async(response: Any) -> bytes:
    try:
        return b"".join([chunk async for chunk in response.aiter_raw()])
    finally:
        await response.aclose()


async def _sleep(pause: Pause) -> None:
    import anyio

    await anyio.sleep(pause.seconds)


class Driven:
    """A transport in front of another one, for one request of a wrapped client."""

    def __init__(self, driver: Driver, inner: Any) -> None:
        self._driver = driver
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        """See `Transport.handle_request`."""
        return self._driver.send(self._inner, request)

    async def handle_async_request(self, request: Any) -> Any:
        """See `Transport.handle_async_request`."""
        return await self._driver.send_async(self._inner, request)


class Transport:
    """A transport for clients of httpx and httpx2, synchronous and asynchronous; `transport` makes one.

    Without a transport of the caller's, it sends by those that a client would make for itself, made when they are first
    needed: only a request says which library and which kind of client it comes from.
    """

    def __init__(self, driver: Driver, inner: Any, options: Mapping[str, Any]) -> None:
        self._driver = driver
        self._inner = inner
        self._options = dict(options)
        self._pools: dict[tuple[Any, bool], Any] = {}
        self._lock = threading.Lock()

    def handle_request(self, request: Any) -> Any:
        """The response to a request, after as many rounds as it takes."""
        return self._driver.send(self._by(request, asynchronous=False), request)

    async def handle_async_request(self, request: Any) -> Any:
        """The response to a request of an asynchronous client, after as many rounds as it takes."""
        return await self._driver.send_async(self._by(request, asynchronous=True), request)

    def _by(self, request: Any, *, asynchronous: bool) -> Any:
        if self._inner is not None:
            return self._inner
        module = library(request)
        with self._lock:
            kept = self._pools.get((module, asynchronous))
            if kept is None:
                kept = pool(module, self._options, asynchronous=asynchronous)
                self._pools[module, asynchronous] = kept
        return transport_for(kept, request.url)

    def _taken(self, *, asynchronous: bool) -> list[Any]:
        with self._lock:
            found = [key for key in self._pools if key[1] is asynchronous]
            return [self._pools.pop(key) for key in found]

    def close(self) -> None:
        """Close what a synchronous client has sent by."""
        for kept in [*self._taken(asynchronous=False), *([] if self._inner is None else [self._inner])]:
            kept.close()

    async def aclose(self) -> None:
        """Close what an asynchronous client has sent by."""
        for kept in [*self._taken(asynchronous=True), *([] if self._inner is None else [self._inner])]:
            await kept.aclose()

    def __enter__(self) -> Self:
        if self._inner is not None:
            self._inner.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._inner is not None:
            self._inner.__exit__(*raised)
        for kept in self._taken(asynchronous=False):
            kept.close()

    async def __aenter__(self) -> Self:
        if self._inner is not None:
            await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        if self._inner is not None:
            await self._inner.__aexit__(*raised)
        for kept in self._taken(asynchronous=True):
            await kept.aclose()


def transport(
    policy: Policy | None = None,
    *,
    inner: Any = None,
    toolbox: Toolbox | None = None,
    ledger: Ledger | None = None,
    on_report: Callable[[CallReport], None] | None = None,
    **options: Any,
) -> Any:
    """A `Transport` for the `transport=` of a client of httpx or httpx2, sync or async: it defers tools as `wrap` does.

    `inner` is the transport to send by. Without it the requests go out as from a client that was made with `options`:
    `verify`, `cert`, `trust_env`, `http1`, `http2`, `limits`, `proxy`, `mounts`, `uds`, `local_address`, `retries`,
    `socket_options`. So the proxies of the environment hold, which a client with a `transport=` does not look for.

    The environment variable LOADPOINT is read here. Raises `PolicyError` for a bad setting, `TypeError` for an option
    that is none, or that belongs to `inner`.
    """
    from loadpoint._adapter import session_factory

    from ._adapter import speaks

    unknown = sorted(set(options) - OPTIONS)
    if unknown or (options and inner is not None):
        named = ", ".join(unknown or sorted(options))
        allowed = "none beside inner=, which has its own" if not unknown else ", ".join(sorted(OPTIONS))
        raise TypeError(f"transport: {named} is not usable; allowed: {allowed}")
    dialects = speaks()
    sessions = session_factory(policy, toolbox=toolbox, ledger=ledger, on_report=on_report)
    return Transport(Driver(sessions(dialects), dialects), inner, options)
