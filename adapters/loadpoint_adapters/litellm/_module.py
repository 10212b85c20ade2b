"""The wrapped module: litellm as it is, whatever is read or set, but for the functions that are driven."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from loadpoint._carrier import Carrier
from loadpoint._plan import Request

from . import _routes
from ._drivers import driven
from ._wire import Completion, Messages, Responses

if TYPE_CHECKING:
    from loadpoint._driven import Beginner
    from loadpoint._json import Json

    from ._wire import Wire

_MESSAGES: Mapping[str, Any] = {"acreate": Messages(), "create": Messages()}
DRIVEN: Mapping[str, Any] = {
    "completion": Completion(),
    "acompletion": Completion(),
    "responses": Responses(),
    "aresponses": Responses(),
    "anthropic_messages": Messages(),
    "messages": {"anthropic_messages": Messages()},
    "anthropic": {**_MESSAGES, "messages": _MESSAGES},
}
"""What is driven, by where it stands in the module."""
_ALONE = "litellm calls its own functions here, not the wrapped ones, so every tool is sent; call `completion` instead"
PASSED = ("batch_completion", "batch_completion_models", "batch_completion_models_all_responses", "text_completion")
"""What is passed, with this said in the report."""
_RETRIES = ("completion_with_retries", "acompletion_with_retries", "responses_with_retries", "aresponses_with_retries")


class Binding:
    """What ties a wrapped module to us. `tree` says what of it is driven, `made` what has been read of that."""

    def __init__(self, original: ModuleType, session: Beginner, tree: Mapping[str, Any] = DRIVEN) -> None:
        self.original = original
        self.session = session
        self.tree = tree
        self.made: dict[str, tuple[Any, Any]] = {}

    def value(self, name: str) -> Any:
        """The value of an attribute: the module's own, driven where it is a function that is."""
        found = getattr(self.original, name)
        kind = self.tree.get(name)
        if kind is None and not (self.tree is DRIVEN and name in (*PASSED, *_RETRIES)):
            return found
        known = self.made.get(name)
        if known is None or known[0] is not found:
            known = self.made[name] = (found, self._wrapped(found, kind))
        return known[1]

    def _wrapped(self, found: Any, kind: Wire | Mapping[str, Any] | None) -> Any:
        if isinstance(kind, Mapping):
            return Wrapped(Binding(found, self.session, kind)) if isinstance(found, ModuleType) else found
        if not callable(found):
            return found
        if kind is None:
            return passed(found, self.session)
        return driven(found, kind, self.session, _routes.of_call)


def passed(function: Callable[..., Any], session: Beginner) -> Callable[..., Any]:
    """`function` as it is, with a report that says why."""

    def tell(given: Mapping[str, Any]) -> None:
        tools = given.get("tools")
        if isinstance(tools, list) and tools:
            body: Json = {"model": str(given.get("model") or ""), "messages": [], "tools": tools}
            request = Request("POST", Completion.path, body, {}, "", "", Carrier(obstacle=_ALONE))
            call = session.begin(request)
            if call is not None:
                call.feed({})

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def later(*args: Any, **given: Any) -> Any:
            tell(given)
            return await function(*args, **given)

        return later

    @functools.wraps(function)
    def now(*args: Any, **given: Any) -> Any:
        tell(given)
        return function(*args, **given)

    return now


class Wrapped(ModuleType):
    """A module over another one. It has nothing of its own: setting an attribute sets it there."""

    def __init__(self, binding: Binding) -> None:
        super().__init__(binding.original.__name__)
        super().__getattribute__("__dict__")["_loadpoint"] = binding

    def __getattribute__(self, name: str) -> Any:
        binding: Binding = super().__getattribute__("__dict__")["_loadpoint"]
        if name == "_loadpoint":
            return binding
        return super().__getattribute__(name) if name in ("__class__", "__reduce_ex__") else binding.value(name)

    def __setattr__(self, name: str, value: Any) -> None:
        binding: Binding = self._loadpoint
        known = binding.made.get(name)
        if known is not None and value is known[1]:
            value = known[0]  # put back what was read here: the module has its own function, not the driven one
        setattr(binding.original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._loadpoint.original, name)

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError("cannot pickle 'module' object")  # as for any module: copies would be of its whole state

    def __dir__(self) -> list[str]:
        return dir(self._loadpoint.original)

    def __repr__(self) -> str:
        return repr(self._loadpoint.original)


def binding_of(client: object) -> Binding | None:
    """What ties a wrapped module to us; None for any other object."""
    return client._loadpoint if isinstance(client, Wrapped) else None  # noqa: SLF001 - our own
