"""The splice: several upstream event streams shown to the caller as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ._json import Json
from ._sse import Event, Reader
from .errors import RoundLimitError

if TYPE_CHECKING:
    from ._engine import Call


class Splice:
    """Bytes in, bytes out: `feed` chunks until the upstream ends, `end` it, show `closing`, go on with what it gave."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._merger = call.dialect.merger(call, call.request.body)
        self._events = Reader()
        self._round = self._merger.round()
        self._seen: list[Event] = []
        self._closing: list[bytes] = []
        self._reply: Json | None = None
        self._request_id: str | None = None

    def replayed(self) -> list[bytes]:
        """The visible bytes of rounds that an earlier, failed attempt at the same call has paid for."""
        shown: list[bytes] = []
        for paid in self._call.session.paid_rounds(self._call):
            for raw in paid.events:
                shown += self.feed(raw)
            self.end(request_id=paid.request_id)
            shown += self.closing()
        return shown

    def feed(self, chunk: bytes) -> list[bytes]:
        """The bytes to show for a chunk of the upstream's bytes, which may be cut anywhere."""
        out: list[bytes] = []
        for event in self._events.feed(chunk):
            self._seen.append(event)
            out += self._shown(event)
        self._call.visible_id = self._merger.visible_id
        return out

    def _shown(self, event: Event) -> Iterable[bytes]:
        if self._call.faulty:
            return (event.raw,)
        try:
            return list(self._round.feed(event))
        except Exception as error:  # noqa: BLE001 - the stream goes on as it comes
            self._call.fault(error)
            return [*self._held(), event.raw]

    def _held(self) -> list[bytes]:
        """What waited when reading came to its end by a fault: the caller's calls must not be lost with it."""
        try:
            return list(self._round.flush())
        except Exception:  # noqa: BLE001 - the fault has been told
            return []

    def end(self, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """The upstream stream is over: the next body, or None. A stream that was cut is shown as it was cut.

        Raises `SearchLoopError` as `Call.feed` does.
        """
        rest = self._events.rest()
        if self._call.faulty:
            self._closing = [rest] if rest else []
            self._call.conclude()
            return None
        return self._guarded(lambda: self._ended(request_id, ms))

    def decided(self, agreed: bool) -> Json | None:
        """Go on where `end` left the call with a question: the next body, or None."""
        reply, self._reply = self._reply, None
        if reply is None:
            return None
        return self._guarded(lambda: self._told(reply, self._call.decided(agreed)))

    def _guarded(self, go_on: Callable[[], Json | None]) -> Json | None:
        try:
            return go_on()
        except RoundLimitError:
            raise
        except Exception as error:  # noqa: BLE001 - what came is shown, whatever we made of it
            self._call.fault(error)
            self._call.conclude()
            self._closing = [*self._round.ending()]
            return None

    def _ended(self, request_id: str | None, ms: float) -> Json | None:
        reply = self._round.reply()
        if reply is None:
            # Cut short or an error: the caller's SDK has seen it, nothing is added, nothing more is sent. The rest of
            # an unfinished event is no event for any reader, and may be the head of a call that is not the caller's.
            self._closing = [*self._round.flush()]
            self._call.failed()
            return None
        following = self._call.feed(reply, request_id=request_id, ms=ms)
        if self._call.question is not None:
            self._reply, self._request_id = reply, request_id
            return None
        self._request_id = request_id
        return self._told(reply, following)

    def _told(self, reply: Json, following: Json | None) -> Json | None:
        if self._call.faulty or self._call.passing is not None:
            self._closing = [*self._round.flush(), *(self._round.ending() or self._merger.terminal(reply))]
            return None
        at = len(self._call.rounds) - 1
        searched = self._merger.searched(reply, at, self._call.shown[at])
        if following is not None:
            self._closing = [*searched]
            self._call.keep(reply, [event.raw for event in self._seen], self._request_id)
            self._round = self._merger.round()
            self._events, self._seen = Reader(), []
            return following
        ending = () if self._call.changed else self._round.ending()
        self._closing = [*self._round.flush(), *searched, *(ending or self._merger.terminal(self._call.result))]
        return None

    def closing(self) -> list[bytes]:
        """The bytes to show after `end`, once."""
        out, self._closing = self._closing, []
        return out
