"""What an adapter drives: the protocols of one logical call, and where an HTTP response says which call made it."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ._json import Json
    from ._plan import Request
    from ._report import CallReport

EXTENSION = "loadpoint"
"""The key in an HTTP response's `extensions` under which an adapter leaves the call that made it."""


class Spliced(Protocol):
    """One visible stream made of several upstream streams: server-sent events in, server-sent events out."""

    def replayed(self) -> list[bytes]:
        """At the very start, before anything is sent: events of rounds that an earlier attempt has paid for."""
        ...

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events to show for upstream bytes, which may be cut anywhere."""
        ...

    def end(self, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """The upstream stream is over: the next body, or None."""
        ...

    def decided(self, agreed: bool) -> Json | None:
        """After `end` where the call has a `question`: the next body, or None."""
        ...

    def closing(self) -> list[bytes]:
        """After `end`: the events that it made."""
        ...


class Reported(Protocol):
    """Anything that has a report once it is over."""

    @property
    def report(self) -> CallReport | None:
        """The report; None, or what is known so far, while the call still runs."""
        ...


class Driven(Reported, Protocol):
    """One logical call, as an adapter drives it: send `body`, `feed` the reply, until there is no next body."""

    @property
    def body(self) -> Json:
        """The upstream body to send."""
        ...

    @property
    def headers(self) -> Mapping[str, str | None]:
        """Edits for the headers of every upstream request: the value to set, None to remove."""
        ...

    @property
    def renames(self) -> Mapping[str, str]:
        """Ids in the path of every upstream request, and what is sent instead of each."""
        ...

    @property
    def streaming(self) -> bool:
        """Whether the replies are streams: then `splice` takes the place of `feed`."""
        ...

    @property
    def exchange(self) -> bool:
        """False: `body` is sent once and the reply handed back as it is, without `feed`."""
        ...

    @property
    def changed(self) -> bool:
        """At the end: whether `result` differs from the only reply, so that the response cannot be handed back."""
        ...

    @property
    def result(self) -> Json:
        """At the end: the reply for the caller."""
        ...

    def feed(self, reply: Json, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take a reply: the next body, or None at the end."""
        ...

    @property
    def question(self) -> Awaitable[Any] | None:
        """After `feed` or `end`: what the application is asked before the call goes on with `decided`; else None."""
        ...

    def decided(self, agreed: bool) -> Json | None:
        """Answer the question: the next body, or None at the end. A stream goes on with the splice's own."""
        ...

    def splice(self) -> Spliced:
        """The stream that the caller is shown."""
        ...

    def rejected(self, status: int, message: str) -> Json | None:
        """The next body after an error that refuses the form of the last one; None: the error is the caller's.

        `status` is the HTTP status, `message` the body of the error.
        """
        ...

    def failed(self) -> None:
        """An upstream error or an early close: keep what was paid for."""
        ...


class Beginner(Protocol):
    """What an adapter asks of a session: `begin` gives the call that drives a request, None to leave it alone."""

    def begin(self, request: Request) -> Driven | None:
        """The logical call that starts with `request`; None: send it untouched."""
        ...

    def stored(self, request: Request) -> Driven | None:
        """What drives a request for a stored reply, its parameters as the body; None: send it untouched."""
        ...

    def noted(self, reason: str) -> None:
        """Report something that is sent past the session, as a call that was left alone for this reason."""
        ...
