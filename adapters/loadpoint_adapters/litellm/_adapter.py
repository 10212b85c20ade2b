"""Wrapping the module and Routers: what is recognised, made, and given back."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from loadpoint._adapter import SessionFactory
from loadpoint.errors import UnsupportedClientError

from . import _compat, _module, _routes
from ._drivers import driven
from ._wire import Completion, Messages, Responses

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect
    from loadpoint._driven import Beginner

T = TypeVar("T")
ROUTED: Mapping[str, Any] = {
    "completion": Completion(),
    "acompletion": Completion(),
    "responses": Responses(),
    "aresponses": Responses(),
    "anthropic_messages": Messages(),
    "aanthropic_messages": Messages(),
}
"""The methods of a Router that are driven."""
_OWN = "_loadpoint"


class LiteLLM:
    """The adapter of litellm."""

    name = "litellm"

    def dialects(self) -> Sequence[Dialect]:
        """The dialects of litellm's functions."""
        from .._dialects.anthropic_messages import AnthropicMessages
        from .._dialects.openai_responses import OpenAIResponses
        from ._chat import LiteLLMChat

        return (LiteLLMChat(), OpenAIResponses(), AnthropicMessages())

    def matches(self, client: object) -> bool:
        """Whether this is the module, or a Router."""
        module = _compat.module()
        return module is not None and (
            client is module or _module.binding_of(client) is not None or _compat.is_router(client)
        )

    def wrap(self, client: T, session_factory: SessionFactory) -> T:
        """The module or a Router, driven; raises `UnsupportedClientError` for a version that cannot be wrapped."""
        reason = _compat.unsupported()
        if reason is not None:
            raise UnsupportedClientError(reason)
        session = session_factory(self.dialects())
        if isinstance(client, ModuleType):
            return cast(T, _module.Wrapped(_module.Binding(client, session)))
        return cast(T, _routed(client, session))

    def unwrap(self, client: T) -> T:
        """The module, or the Router, that was wrapped."""
        binding = _module.binding_of(client)
        if binding is not None:
            return cast(T, binding.original)
        return cast(T, vars(client).get(_OWN, client)) if _compat.is_router(client) else client


def _routed(router: Any, session: Beginner) -> Any:
    """A second facade over the same core. What is driven stands on it, and calls the caller's own Router."""
    made = _compat.twin(router)
    where = functools.partial(_routes.of_router, router)
    for name, wire in ROUTED.items():
        function = getattr(router, name, None)
        if callable(function):
            vars(made)[name] = driven(function, wire, session, where)
    vars(made)[_OWN] = router
    return made
