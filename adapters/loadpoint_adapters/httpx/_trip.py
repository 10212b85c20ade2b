"""One request on its way through the transport, without IO: what is to be done next, until there is a response.

The course of a call is a generator. It asks for a request to be sent, a response to be read, a moment to be waited for,
or the application to be asked; the two drivers in `_transport.py` do so and know nothing else.

An SDK above retries by sending its request again, so an error of a round is handed over as it came and what was paid
for is kept for the next attempt. Nobody retries inside an open stream: there the course does, and what stays an error
becomes the event by which these APIs report one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from loadpoint._adapter import reports
from loadpoint._driven import EXTENSION
from loadpoint._json import Json, dumps, well_formed
from loadpoint._sse import frame
from loadpoint.errors import LoadpointError, RoundLimitError

from .._exchange import KEY, OURS, renamed, rotated
from .._framing import Sse
from .._response import Rounds, from_bytes, reply_in, request_id, spliced
from ._asked import Asked, asked, without_ours
from ._compat import library
from ._patience import Patience

if TYPE_CHECKING:
    from collections.abc import Sequence

    from loadpoint._dialect import Dialect
    from loadpoint._driven import Beginner, Driven

ERROR = "loadpoint.error"
"""The key in a response's extensions for the error of ours that it stands for."""
STATUS = 422
"""The status of such a response: no SDK retries it."""
_REQUEST_ID = ("x-request-id", "request-id")
_LENGTHS = (b"content-length", b"transfer-encoding")


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request; gives the response, unread."""

    request: Any


@dataclass(frozen=True, slots=True)
class Read:
    """Read a response to its end and close it; gives its bytes as they came, None if it had been read before."""

    response: Any


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for a moment."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Ask:
    """Wait for what the application says to the question of a call; gives whether it agrees."""

    call: Driven


Course: TypeAlias = "Generator[Send | Read | Pause | Ask, Any, Any]"
Runner: TypeAlias = "Callable[[Course], Any]"
"""Runs a course to its end: gives the response, or for an asynchronous client an awaitable."""


class Trip:
    """One request of the client above, and the rounds that it takes."""

    def __init__(self, session: Beginner, dialects: Sequence[Dialect], request: Any) -> None:
        self.request = request
        self.session = session
        self.call: Driven | None = None
        self.failure: LoadpointError | None = None
        self._asked: Asked | None = None
        self._sent = time.perf_counter()
        found = asked(dialects, request)
        if isinstance(found, str):
            session.noted(found)
        elif found is not None:
            self._asked = found
            try:
                self.call = found.begun(session)
            except LoadpointError as error:
                self.failure = error

    @property
    def running(self) -> Driven:
        """The call, where there is one."""
        return cast("Driven", self.call)

    # -- the courses ---------------------------------------------------------------------------------------------

    def course(self, run: Runner, *, asynchronous: bool) -> Course:
        """Everything up to the response for the client; `run` runs what comes later, as a stream is read."""
        if self.failure is not None:
            return self._refused(self.failure)
        if self.call is None:
            return (yield Send(self._as_it_came()))
        if not self.call.exchange:
            response = yield Send(self._made(self.call.body))
            response.extensions[EXTENSION] = self.call
            return response
        rounds = self._rounds(self.call) if self.call.streaming else None
        body = self.call.body
        while True:
            response = yield from self._round(body, None)
            if not response.is_success:
                return response
            if rounds is not None and _is_stream(response):
                rounds.next(response)
                return spliced(rounds, lambda after: run(self._later(after)), asynchronous=asynchronous)
            response, content = yield from self._taken(response)
            following, response = yield from self._fed(response, content)
            if following is None:
                return response
            body = following

    def _rounds(self, call: Driven) -> Rounds:
        return Rounds(call, lambda _: Sse(b"[DONE]"), *_REQUEST_ID, session=self.session)

    def _round(self, body: Json, patience: Patience | None) -> Course:
        """The response of one round: unread where it is a success, else the error that stays one."""
        while True:
            try:
                response = yield Send(self._made(body))
            except BaseException as error:
                pause = patience.after(error) if patience is not None else None
                if pause is None:
                    self.running.failed()
                    raise
                yield Pause(pause)
                continue
            if response.is_success:
                return response
            response, content = yield from self._taken(response)
            instead = self.running.rejected(response.status_code, content.decode("utf-8", "replace"))
            if instead is not None:
                body = instead
                continue
            pause = patience.of(response) if patience is not None else None
            if pause is None:
                self.running.failed()
                return response
            yield Pause(pause)

    def _later(self, body: Json) -> Course:
        """The response of a round in a stream that the client is reading: always one that can be read on."""
        response = yield from self._round(body, Patience(library(self.request)))
        if response.is_success and _is_stream(response):
            return response
        response, content = yield from self._taken(response)
        self.running.failed()
        return self._broken(response, content)

    def _taken(self, response: Any) -> Course:
        """A response as it came, still to be read by the client, and its decoded content."""
        try:
            raw: bytes | None = yield Read(response)
        except BaseException:
            self.running.failed()
            raise
        if raw is None:
            response.extensions[EXTENSION] = self.running
            return response, response.content
        made = type(response)(
            response.status_code,
            headers=response.headers,
            request=response.request,
            extensions={**response.extensions, EXTENSION: self.running},
            stream=library(response).ByteStream(raw),
        )
        return made, _decoded(response, raw)

    # -- what is sent --------------------------------------------------------------------------------------------

    def _as_it_came(self) -> Any:
        """The client's own request, unless it carries headers that are meant for us alone."""
        request = self.request
        if not any(name in request.headers for name in OURS):
            return request
        return library(request).Request(
            request.method,
            request.url,
            headers=without_ours(request.headers.raw),
            stream=request.stream,
            extensions=request.extensions,
        )

    def _made(self, body: Json) -> Any:
        """The request of a round."""
        self._sent = time.perf_counter()
        given, first = self.request, cast(Asked, self._asked)
        untouched = body is first.request.body
        if untouched and not self.running.headers and not self.running.renames:
            return self._as_it_came()
        content = first.content if untouched else _encoded(body)
        url = given.url
        if self.running.renames:
            url = url.copy_with(raw_path=renamed(url.raw_path.decode("ascii"), self.running.renames).encode("ascii"))
        return library(given).Request(
            given.method,
            url,
            headers=_edited(given.headers.raw, self.running.headers, lambda k: rotated(k, body, first.request.body)),
            content=content,
            extensions=given.extensions,
        )

    # -- what comes back -----------------------------------------------------------------------------------------

    def _fed(self, response: Any, content: bytes) -> Course:
        """Give a reply to the call: the next body, or None with what the client gets."""
        reply = reply_in(content)
        if reply is None:  # not for us to judge
            self.running.failed()
            return None, response
        ms = (time.perf_counter() - self._sent) * 1000
        try:
            following = self.running.feed(reply, request_id=request_id(response, _REQUEST_ID), ms=ms)
            if self.running.question is not None:
                following = self.running.decided((yield Ask(self.running)))
        except RoundLimitError as error:
            return None, self._refused(error)
        if following is not None:
            return following, None
        reports.remember({"id": self.running.result.get("id")}, self.running.report)
        if not self.running.changed:
            return None, response
        return None, from_bytes(response, _encoded(self.running.result), self.running)

    def _refused(self, error: LoadpointError) -> Any:
        """An error of ours as a response. Raised, SDKs would take it for a lost connection, and try again."""
        extensions: dict[str, Any] = {ERROR: error}
        if self.call is not None:
            extensions[EXTENSION] = self.call
        return library(self.request).Response(
            STATUS,
            headers={"content-type": "application/json", "x-should-retry": "false"},
            stream=library(self.request).ByteStream(dumps(_error(type(error).__name__, str(error))).encode()),
            request=self.request,
            extensions=extensions,
        )

    def _broken(self, response: Any, content: bytes) -> Any:
        """A stream of one event: the error by which a round of an open stream has ended."""
        said = reply_in(content)
        if response.is_success:
            text = f"a later round of this stream came as {response.headers.get('content-type')}"
            said = _error("api_error", text)
        elif said is None or not said.get("error"):
            text = content.decode("utf-8", "replace").strip() or response.reason_phrase
            said = _error("api_error", f"HTTP {response.status_code}: {text[:500]}")
        return library(response).Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=library(response).ByteStream(frame(dumps({"type": "error", **said}), "error")),
            request=response.request,
        )


def _error(kind: str, message: str) -> Json:
    """An error in the shape that the known APIs share."""
    return {"type": "error", "error": {"type": kind, "message": message, "code": kind, "param": None}}


def _is_stream(response: Any) -> bool:
    """Whether a response holds server-sent events; one that does not say so is taken at the caller's word."""
    kind = response.headers.get("content-type", "")
    return not kind or kind.lower().startswith("text/event-stream")


def _encoded(body: Json) -> bytes:
    try:
        return dumps(body).encode()
    except UnicodeEncodeError:  # half a surrogate pair, which came escaped
        return dumps(well_formed(body)).encode()


def _decoded(response: Any, raw: bytes) -> bytes:
    """The content behind a `content-encoding`; empty where it cannot be decoded, which the client finds out itself."""
    encoding = response.headers.get("content-encoding")
    if encoding is None:
        return raw
    try:
        content: bytes = type(response)(200, headers={"content-encoding": encoding}, content=raw).content
    except Exception:  # noqa: BLE001 - `DecodingError` of either library
        return b""
    return content


def _edited(
    headers: Sequence[tuple[bytes, bytes]], edits: Mapping[str, str | None], rotate: Callable[[str], str]
) -> list[tuple[bytes, bytes]]:
    """The headers of a round: without lengths, which follow from the body, and with the edits of the call."""
    ours = {name.lower(): value for name, value in edits.items()}
    made: list[tuple[bytes, bytes]] = []
    for raw, value in without_ours(headers):
        name = raw.lower()
        if name in _LENGTHS or name.decode("latin-1") in ours:
            continue
        made.append((raw, rotate(value.decode("latin-1")).encode("latin-1") if name == KEY.encode() else value))
    return made + [(name.encode(), value.encode()) for name, value in ours.items() if value is not None]
