"""The adapter of the openai SDK (3.x): `OpenAI`, `AsyncOpenAI`, Azure and every other client class of it."""

from __future__ import annotations

from .._seam import Seam
from ._compat import OpenAICompat

__all__ = ["adapter"]

adapter = Seam(OpenAICompat())
"""Found through the entry point `openai` of the group `loadpoint.adapters`."""
