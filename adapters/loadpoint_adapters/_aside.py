"""Beside the event loop: what may wait for a ledger's file or server runs in a thread, so that no other task waits."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

T = TypeVar("T")


def waits(session: object) -> bool:
    """Whether what a session does may wait for a file or a server: for any ledger but that in the process."""
    from loadpoint import InProcessLedger

    ledger: object = getattr(session, "ledger", None)
    return ledger is not None and type(ledger) is not InProcessLedger


def asks(session: object) -> bool:
    """Whether the application is asked about loads: by a function of its own, which belongs to the event loop."""
    return callable(getattr(getattr(session, "policy", None), "confirm", None))


async def aside(session: object, function: Callable[..., T], *args: Any) -> T:
    """What `function` gives, called in a thread where the session's ledger may wait, else here.

    It is never left running: a task that is cancelled meanwhile ends once the function has.
    """
    if not waits(session):
        return function(*args)
    call: Callable[[], T] = functools.partial(cast("Any", contextvars.copy_context().run), function, *args)
    import asyncio

    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # another library's
        import anyio.to_thread

        return await anyio.to_thread.run_sync(call)
    running = loop.run_in_executor(None, call)
    cancelled: BaseException | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        running.exception()  # looked at, so that nobody is told that it was not
        raise cancelled
    return running.result()


async def fed(session: object, function: Callable[..., T], *args: Any, left: Callable[[], object] | None = None) -> T:
    """The same for what takes a reply, in which the application may be asked; `left` is for a cancelled task."""
    if asks(session):
        return function(*args)
    try:
        return await aside(session, function, *args)
    except BaseException as error:
        if left is not None and not isinstance(error, Exception):
            left()
        raise
