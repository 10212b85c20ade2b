"""What a dialect is to the emulator, and the registry: a new API shape is a new file with one entry here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .._json import Json
from ._answer import Piece, RejectedError, Segments
from ._cache import Bill, Part
from ._ids import Ids
from ._rules import Broken, RuleBook, Violation
from ._script import Called, Move, Shown

if TYPE_CHECKING:
    from ._memory import Memory


@dataclass(slots=True, kw_only=True)
class Asked:
    """One request of a dialect: its parsed `body`, the `endpoint` it went to, lower-case `headers`, and its `ids`."""

    endpoint: str
    host: str
    path: str
    headers: Mapping[str, str]
    body: Json
    book: RuleBook
    memory: Memory
    ids: Ids
    number: int = 0
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    repeated: Json = field(default_factory=dict[str, Any])
    """Fields that a request repeats although the service holds them."""
    held: Json | None = None
    """The body that the service holds and this request continues."""

    @property
    def model(self) -> str:
        """The model's name, or "" where the request has none."""
        model = self.body.get("model")
        return model if isinstance(model, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request as the model gets it: the parts for the cache, and the neutral views for the script."""

    parts: Sequence[Part]
    shown: tuple[Shown, ...] = ()
    deferred: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    history: tuple[Called, ...] = ()
    texts: tuple[str, ...] = ()
    choice: str = "auto"
    allowed: frozenset[str] | None = None
    scope: tuple[str, ...] = ()
    search: str | None = None
    """The name by which the script calls the search of this request, where the wire gives it none."""
    explicit_only: bool = False

    @property
    def segments(self) -> Segments:
        """Its tokens by segment."""
        count = {"tools": 0, "system": 0, "messages": 0}
        for part in self.parts:
            if part.segment != "settings":
                count[part.segment] += part.tokens
        return Segments(**count)


@dataclass(frozen=True, slots=True)
class Played:
    """A move as the dialect's reply: the whole JSON, its pieces for a stream, and what is billed in the end."""

    reply: Json
    bill: Bill
    pieces: tuple[Piece, ...] = ()
    output_tokens: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Dialect(Protocol):
    """One API shape, as pure functions over JSON (the state they need is in `Asked.memory`)."""

    name: str
    without_body: frozenset[str]
    """The endpoints whose requests need no body."""

    def route(self, method: str, path: str) -> str | None:
        """The endpoint that the dialect serves there, or None."""
        ...

    def request_id(self, ids: Ids) -> tuple[str, str]:
        """The header that carries the request id, and a new id."""
        ...

    def error(self, status: int, message: str, violation: Violation | None, request_id: str) -> Json:
        """An error body."""
        ...

    def stream_error(self, message: str, sent: Sequence[Piece], request_id: str) -> tuple[Piece, ...]:
        """What ends a stream with an error after the pieces that were `sent`."""
        ...

    def resolve(self, asked: Asked) -> None:
        """Completes the body with what the server holds. Raises `RejectedError`."""
        ...

    def check(self, asked: Asked) -> Iterable[Broken]:
        """Every rule that the request breaks, the most fundamental first."""
        ...

    def prompt(self, asked: Asked) -> Prompt:
        """What the model gets."""
        ...

    def count(self, asked: Asked, prompt: Prompt) -> Json | Played | None:
        """The reply of an endpoint that runs no model (`Played` where it is streamed), or None where the model runs."""
        ...

    def play(self, asked: Asked, move: Move, bill: Bill) -> Played:
        """The reply that `move` makes."""
        ...


def dialects() -> tuple[Dialect, ...]:
    """The dialects that the emulator serves."""
    from ._chat import Chat
    from ._messages import Messages
    from ._responses import Responses

    return (Chat(), Messages(), Responses())


__all__ = ["Asked", "Dialect", "Played", "Prompt", "RejectedError", "dialects"]
