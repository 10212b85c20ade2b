"""What is remembered of one reply, so that the next request can be sent as a continuation of the last one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .._json import Json


@dataclass(frozen=True, slots=True)
class State:
    """How the conversation is being sent. Shared by the records of one conversation until it changes."""

    strategy: str
    load_point: str | None
    reason: str
    loader: str
    catalog: str
    tools: tuple[Json, ...]
    """`tools` as sent, in order, loader included."""
    declared: tuple[str, ...]
    """The names in `tools` that are only declared (deferred), not in the model's context."""
    definitions: tuple[Json, ...]
    """The last known definitions (wire form) of every tool that was ever loaded."""
    system: str
    """Digest of the system prompt as sent."""
    loaded: tuple[str, ...] = ()
    """The names loaded so far; a source only where the server holds the conversation and no transcript is sent."""
    tolerant: bool = False
    """Whether the provider was asked to drop thinking that no longer fits; asked once, it is asked always."""
    gone: tuple[str, ...] = ()
    """The tools of which the model has been told that they are gone."""
    pushed: int = 0
    """How many pushes of the toolbox this conversation has seen."""
    model: str = ""
    """The model that the turn is of; "" where it was not noted."""
    settings: str = ""
    """Digest of the caller's settings that stand in the prompt beside all that; "" where it was not noted."""
    calls: str = ""
    """The name of the tool through which others are called; "" where the model calls them itself."""


@dataclass(frozen=True, slots=True)
class Record:
    """One visible assistant turn and the upstream messages that stand for it."""

    chain: str
    """Digest of the visible conversation up to and including this turn."""
    sent_before: str
    """Digest of the upstream messages that were sent before `turn`."""
    turn: tuple[Json, ...]
    """The upstream messages that stand for the visible turn: hidden rounds, then the assistant's last message."""
    pending: tuple[Json, ...]
    """Our results for calls of the last message, waiting for the caller's own results (wire form)."""
    state: State
    reply_id: str | None = None
    """The provider's id of the last round, for conversations that the server holds."""
    context_tokens: int = 0
    """Estimated tokens of the last request plus its reply: what the next request can share at most."""


@runtime_checkable
class Ledger(Protocol):
    """Remembers records under keys. One key may have several records; every method is safe to call from any thread.

    `find` returns the records of a key, newest first, at most a handful. `add` never raises for a full store: it drops
    the oldest. An implementation that cannot be read raises any exception: the call then goes on without it.
    """

    def find(self, key: str) -> Sequence[Record]:
        """The records under `key`, newest first; empty if there are none."""
        ...

    def add(self, key: str, record: Record) -> None:
        """Remember `record` under `key`."""
        ...

    def close(self) -> None:
        """Release what the ledger holds open."""
        ...
