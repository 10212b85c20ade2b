"""The adapter of the anthropic SDK (2.x): `Anthropic`, `AsyncAnthropic`, and the Bedrock, Vertex, Foundry, AWS, Google
Cloud and Mantle clients; and `middleware`, the second way in.
"""

from __future__ import annotations

from .._seam import Seam
from ._compat import AnthropicCompat
from ._middleware import middleware

__all__ = ["adapter", "middleware"]

adapter = Seam(AnthropicCompat())
"""Found through the entry point `anthropic` of the group `loadpoint.adapters`."""
