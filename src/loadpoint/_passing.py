"""Calls that are sent as they came: too small to improve, or of a shape that cannot be. They still get a report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from ._dialect import CallView, Dialect
from ._json import Json, as_object
from ._report import CallReport, Round

log = logging.getLogger("loadpoint")

if TYPE_CHECKING:
    from ._plan import Request
    from ._session import Session


class Passing:
    """One request, one reply, handed back as it is. `body` is the caller's own unless our items had to leave it."""

    changed = False
    question = None
    renames: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self,
        session: Session,
        request: Request,
        dialect: Dialect,
        body: Json,
        *,
        report: CallReport,
        exchange: bool = True,
        finish: Callable[[Passing, Json], None] | None = None,
    ) -> None:
        self.session = session
        self.request = request
        self.dialect = dialect
        self.body = body
        self.untouched = body is request.body
        self.exchange = exchange
        self.streaming = exchange and dialect.streaming(body)
        self.headers: Mapping[str, str | None] = {}
        self.report = report
        self.log: list[Round] = []
        self.result: Json = {}
        self._finish = finish

    def feed(self, reply: Json, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take the reply; always None: there is no next round."""
        self.result = reply
        try:
            usage = as_object(reply.get("usage")) or {}
            self.log.append(Round(request_id, ms, usage, self.session.cost(self.request, self.dialect, usage)))
            self.report = self.session.passed(self)
            if self._finish is not None and self.dialect.reply(reply) is not None:
                self._finish(self, reply)
        except Exception:
            log.exception("a fault in loadpoint: this reply is not remembered, and handed over all the same")
        return None

    def decided(self, agreed: bool) -> Json | None:
        """Always None: nothing is asked."""
        return None

    def warn(self, texts: Sequence[str]) -> None:
        """Add warnings to the report."""
        self.report = replace(self.report, warnings=(*self.report.warnings, *texts))

    def rejected(self, status: int, message: str) -> Json | None:
        """Always None: nothing was put into the request that could be left out."""
        return None

    def splice(self) -> PassingSplice:
        """A splice that shows every byte as it comes."""
        return PassingSplice(self)

    def failed(self) -> None:
        """Nothing was paid for that could be kept."""


class PassingSplice:
    """Shows every byte, and reads along for the report."""

    def __init__(self, call: Passing) -> None:
        from ._sse import Reader

        self._call = call
        self._events = Reader()
        self._round = call.dialect.merger(self, call.body).round()
        self._reads = True

    @property
    def structured(self) -> bool:
        """No text is held."""
        return False

    def holds(self, name: str, *, whole: bool = True) -> bool:
        """Nothing is held."""
        return False

    def hides(self, call: CallView) -> bool:
        """Nothing is hidden."""
        return False

    def as_seen(self, call: CallView) -> CallView:
        """Calls are what they are."""
        return call

    def replayed(self) -> list[bytes]:
        """Nothing was paid for before."""
        return []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The same bytes."""
        if self._reads:
            self._reads = self._read(chunk)
        return [chunk]

    def _read(self, chunk: bytes) -> bool:
        """Whether the stream can still be read along; whatever it holds is the caller's."""
        try:
            for event in self._events.feed(chunk):
                for _ in self._round.feed(event):
                    pass
        except Exception:
            log.exception("a fault in loadpoint: this stream is not read along, and shown all the same")
            return False
        return True

    def end(self, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take note of the reply; always None."""
        try:
            reply = self._round.reply() if self._reads else None
        except Exception:
            log.exception("a fault in loadpoint: this stream is not read along, and shown all the same")
            return None
        if reply is not None:
            self._call.feed(reply, request_id=request_id, ms=ms)
        return None

    def decided(self, agreed: bool) -> Json | None:
        """Always None: nothing is asked."""
        return None

    def closing(self) -> list[bytes]:
        """Nothing was held."""
        return []
