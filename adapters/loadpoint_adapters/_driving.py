"""Who drives: while an adapter sends the rounds of a call, another one of ours below it stands aside."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
_above: ContextVar[bool] = ContextVar("loadpoint_driving", default=False)


def driven_above() -> bool:
    """Whether this code runs inside a request of an adapter: what it sends has been decided there."""
    return _above.get()


@contextmanager
def driving() -> Generator[None, None, None]:
    """Everything sent in this block is the caller's own round."""
    token = _above.set(True)
    try:
        yield
    finally:
        _above.reset(token)


def alone(send: Callable[P, T]) -> Callable[P, T]:
    """`send`, with nobody of ours below it: what it sends are rounds already."""

    @functools.wraps(send)
    def sending(*args: P.args, **given: P.kwargs) -> T:
        with driving():
            return send(*args, **given)

    return sending


def alone_async(send: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The same for a coroutine function."""

    @functools.wraps(send)
    async def sending(*args: P.args, **given: P.kwargs) -> T:
        with driving():
            return await send(*args, **given)

    return sending
