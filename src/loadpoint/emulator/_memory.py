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
class Stored:
    """A response that the server keeps: the `reply`, the items that were `sent` for it, and its whole `context`.

    `waiting` is true for a background response until somebody looks at it.
    """

    reply: Json
    sent: list[Json]
    context: list[Json]
    waiting: bool = False


@dataclass(slots=True)
class Talk:
    """A conversation object: what it says of itself, and its items."""

    record: Json
    items: list[Json] = field(default_factory=list[Json])


@dataclass(slots=True)
class Memory:
    """The state of one emulator.

    `issued` maps the id of a call to the thinking blocks that came with it, `bound` a thinking signature to the digest
    of the prompt that it was made for, `held` a reply id to its conversation, `compacted` a compaction to its changes
    of the tools. Of the Responses API: `responses` and `talks` (conversation objects) by id, `items` every stored item
    by id, `reasons` the id of an item to that of the reasoning item that it came with.
    """

    issued: dict[str, list[Json]] = field(default_factory=dict[str, list[Json]])
    bound: dict[str, str] = field(default_factory=dict[str, str])
    held: dict[str, Held] = field(default_factory=dict[str, Held])
    compacted: dict[str, str] = field(default_factory=dict[str, str])
    responses: dict[str, Stored] = field(default_factory=dict[str, Stored])
    talks: dict[str, Talk] = field(default_factory=dict[str, Talk])
    items: dict[str, Json] = field(default_factory=dict[str, Json])
    reasons: dict[str, str] = field(default_factory=dict[str, str])
