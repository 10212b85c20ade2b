"""The adapter of litellm: the module itself, whose functions are driven, and `Router` objects.

litellm is imported by the caller, never here: its import takes seconds.
"""

from __future__ import annotations

from ._adapter import LiteLLM

__all__ = ["adapter"]

adapter = LiteLLM()
"""Found through the entry point `litellm` of the group `loadpoint.adapters`."""
