"""Every error that loadpoint raises itself. Errors of a provider stay the SDK's own classes.

LoadpointError
├── PolicyError               a policy, a tool or a configuration value that cannot be used (also a ValueError)
├── UnsupportedClientError    `wrap` was given something that no adapter knows (also a TypeError)
└── RoundLimitError           the model kept to hidden rounds beyond `Policy.max_rounds`
    └── SearchLoopError       ... and answered even the last, search-free round with the loader
"""

from __future__ import annotations

from typing import Any


class LoadpointError(Exception):
    """The base of every error raised by loadpoint."""


class PolicyError(LoadpointError, ValueError):
    """A value that cannot be used; the message names the field, the value and what is allowed."""


class UnsupportedClientError(LoadpointError, TypeError):
    """`wrap` does not know this object; the message names what is supported and the extra that may be missing."""


class RoundLimitError(LoadpointError):
    """A logical call needed more rounds than `Policy.max_rounds`; nothing that was paid for is lost.

    `rounds` holds the replies of the rounds as the provider sent them (JSON objects), `usage` their usage objects.
    """

    def __init__(self, message: str, *, rounds: tuple[dict[str, Any], ...], usage: tuple[dict[str, Any], ...]) -> None:
        super().__init__(message)
        self.rounds = rounds
        self.usage = usage


class SearchLoopError(RoundLimitError):
    """The model called the loader even in the last round, which did not allow it."""
