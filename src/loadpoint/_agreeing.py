"""Who agrees to a load: the model itself in a second call, or the application. Without a yes nothing is loaded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Protocol

from ._catalog import described
from ._dialect import Outcome
from ._json import dumps, parse_object
from ._tool import Tool

if TYPE_CHECKING:
    from ._json import Json
    from ._plan import Step

log = logging.getLogger("loadpoint")
_ABOUT = 200


class Asking(Protocol):
    """A call that may wait for an answer of the application."""

    @property
    def question(self) -> Awaitable[Any] | None:
        """What the application is being asked; None where nothing waits for it."""
        ...


def ask(confirm: Callable[..., Any], names: Sequence[str]) -> bool | Awaitable[Any]:
    """What the application says to a load of these tools: only a plain True is a yes. Never raises."""
    try:
        said = confirm(tuple(names))
    except Exception as error:  # noqa: BLE001 - an application's own function; a timeout is an error like any other
        return _unanswered(error)
    return said if isawaitable(said) else said is True


async def agreed(call: Asking) -> bool:
    """The answer to the question of a call, in an asynchronous driver."""
    try:
        return call.question is not None and await call.question is True
    except Exception as error:  # noqa: BLE001 - as above
        return _unanswered(error)


def unheard(call: Asking) -> bool:
    """The answer in a synchronous driver, where nobody can wait for one: no."""
    close = getattr(call.question, "close", None)
    if callable(close):
        close()
    log.warning("Policy.confirm is asynchronous, and this client is not: nothing is loaded")
    return False


def _unanswered(error: Exception) -> bool:
    log.warning("Policy.confirm failed, so that nothing is loaded: %s: %s", type(error).__name__, error)
    return False


def declined(step: Step) -> Step:
    """The step without its loads, each answered by a no."""
    answered = tuple((call, _no(outcome) if outcome.names else outcome) for call, outcome in step.answered)
    shown = tuple(replace(search, names=()) for search in step.shown)
    return replace(step, answered=answered, added=(), shown=shown)


def _no(outcome: Outcome) -> Outcome:
    names = ", ".join(outcome.names)
    return Outcome(f"Nothing was loaded: the application did not agree to {names}. Go on without.", failed=True)


def confirms(arguments: str | Json) -> bool:
    """Whether a loader call says that its load is agreed to."""
    given = parse_object(arguments) if isinstance(arguments, str) else arguments
    return (given or {}).get("confirm") is True


def challenge(loader: str, query: str, tools: Sequence[Tool]) -> str:
    """What answers a loader call that has to be made a second time."""
    again = dumps({"query": query, "confirm": True})
    return "\n".join(
        (
            "confirmRequired: true",
            "Nothing has been loaded or activated yet. This search would load:",
            *(f"- {tool.name}: {described(tool, _ABOUT)}" for tool in tools),
            "To confirm makes them callable for the rest of this session.",
            "Do so only where the user has asked for it in so many words; otherwise ask first.",
            f"To confirm, call {loader} with {again}.",
        )
    )
