"""Wrapping clients of httpx and httpx2: a client of the same type over the same pool."""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from loadpoint._adapter import SessionFactory, dialects

from . import _compat, _signed
from ._transport import Driven, Driver

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect

T = TypeVar("T")
_BUNDLED = ("anthropic", "httpx", "httpx2", "litellm", "openai")


def bundled() -> tuple[Dialect, ...]:
    """The dialects that come with the package. They need no SDK."""
    from .._dialects.anthropic_messages import AnthropicMessages
    from .._dialects.openai_chat import OpenAIChat
    from .._dialects.openai_responses import OpenAIResponses

    return (OpenAIChat(), OpenAIResponses(), AnthropicMessages())


def speaks() -> tuple[Dialect, ...]:
    """The bundled dialects and those of other people's adapters, one per name."""
    own = bundled()
    names = {dialect.name for dialect in own}
    return (*own, *(each for each in dialects(but=_BUNDLED) if each.name not in names))


@dataclass(slots=True)
class Binding:
    """What ties a wrapped client to us, and to the client it was made from."""

    driver: Driver
    original: Any


class HttpClients:
    """The adapter of both libraries."""

    name = "httpx"

    def __init__(self) -> None:
        self._classes: weakref.WeakKeyDictionary[type[Any], weakref.ref[type[Any]]] = weakref.WeakKeyDictionary()
        self._lock = threading.Lock()

    def dialects(self) -> Sequence[Dialect]:
        """Every bundled dialect: a client of these libraries may speak any."""
        return bundled()

    def matches(self, client: object) -> bool:
        """Whether this is a client of httpx or httpx2."""
        return _compat.is_client(client)

    def wrap(self, client: T, session_factory: SessionFactory) -> T:
        """A client of the same type with the same settings, over the same pool, which closing either of them closes."""
        spoken = speaks()
        made: Any = copy.copy(client)
        # What a client changes as it goes is its own; the rest is only ever replaced.
        given: Any = client
        made.headers = given.headers
        for name in set(made.headers) - set(given.headers):
            del made.headers[name]
        made.cookies = given.cookies
        made.event_hooks = given.event_hooks
        vars(made)["_loadpoint"] = Binding(Driver(session_factory(spoken), spoken), client)
        made.__class__ = self._class(type(client))
        return cast(T, made)

    def unwrap(self, client: T) -> T:
        """The client that was wrapped; a client that is not comes back as it is."""
        binding: Binding | None = vars(client).get("_loadpoint")
        return client if binding is None else cast(T, binding.original)

    def _class(self, base: type[Any]) -> type[Any]:
        """The subclass of `base`, one per base for as long as a client of it lives."""
        with self._lock:
            reference = self._classes.get(base)
            made = reference() if reference is not None else None
            if made is None:
                members: dict[str, Any] = {"__module__": base.__module__, "__qualname__": base.__qualname__}
                members |= {"__doc__": base.__doc__, **_compat.members(base, _driven, _signed_by_body)}
                made = cast("type[Any]", type(base.__name__, (base,), members))
                self._classes[base] = weakref.ref(made)
            return made


def _driven(client: Any, inner: Any) -> Any:
    return Driven(client._loadpoint.driver, inner)  # noqa: SLF001 - ours


def _signed_by_body(request: Any) -> None:
    request.extensions[_signed.EXTENSION] = True
