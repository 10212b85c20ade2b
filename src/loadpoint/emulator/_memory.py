"""What a service remembers between requests: what it issued, and the conversations that it holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._json import Json


@dataclass(slots=True)
class Held:
    """A conversation that the server holds, up to one of its replies."""

    body: Json
    continued: bool = False


@dataclass(slots=True)
class Memory:
    """The state of one emulator.

    `issued` maps the id of a call to the thinking blocks that came with it, `bound` a thinking signature to the digest
    of the prompt that it was made for, `held` a reply id to its conversation.
    """

    issued: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    bound: dict[str, str] = field(default_factory=dict[str, str])
    held: dict[str, Held] = field(default_factory=dict[str, Held])
