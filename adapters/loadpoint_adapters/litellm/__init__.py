"""The adapter of litellm: the module itself, whose functions are driven, and `Router` objects.

litellm is imported by the caller, never here: its import takes seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._adapter import LiteLLM

if TYPE_CHECKING:
    from ._proxy import ProxyHook as ProxyHook

    proxy_hook: ProxyHook

__all__ = ["ProxyHook", "adapter", "proxy_hook"]

adapter = LiteLLM()
"""Found through the entry point `litellm` of the group `loadpoint.adapters`."""


if not TYPE_CHECKING:  # only the Proxy asks for it, which has litellm loaded

    def __getattr__(name: str) -> object:
        if name not in ("ProxyHook", "proxy_hook"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from ._proxy import ProxyHook

        globals().update(ProxyHook=ProxyHook)
        if name == "proxy_hook":
            globals().update(proxy_hook=ProxyHook())
        return globals()[name]
