"""HTTP responses for the caller's SDK: one reply made of several upstream responses, read from JSON or spliced."""

from __future__ import annotations

import contextlib
import functools
import json
import sys
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from loadpoint._adapter import reports
from loadpoint._agreeing import agreed, unheard
from loadpoint._driven import EXTENSION
from loadpoint._json import as_object

from ._aside import aside, fed
from ._framing import Framing

if TYPE_CHECKING:
    from loadpoint._driven import Driven
    from loadpoint._json import Json

_STALE = frozenset({"content-length", "content-encoding", "transfer-encoding"})
_DRAIN_SECONDS = 0.1
WATCHED = "loadpoint.watched"
"""Extension of a round's response: the typed stream that instrumentation has made of it and waits to see read."""


def _http(response: Any) -> Any:
    """The module of the response's class: httpx2, or legacy httpx where the caller brought such a client."""
    return sys.modules[type(response).__module__.partition(".")[0]]


def rebuilt(response: Any, stream: Any, call: Driven) -> Any:
    """A response like `response` whose body is `stream`; the headers that described the old body are gone."""
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _STALE]
    extensions = {**response.extensions, EXTENSION: call}
    made = type(response)(
        response.status_code, headers=headers, request=response.request, extensions=extensions, stream=stream
    )
    made.history = list(response.history)
    with contextlib.suppress(RuntimeError):  # not known while the upstream response is open
        made.elapsed = response.elapsed
    return made


def from_bytes(response: Any, content: bytes, call: Driven) -> Any:
    """A response like `response` with another body, not read yet.

    Given as a stream on purpose: a response made from content leaves `elapsed` unset, and `raw.elapsed` raises.
    """
    return rebuilt(response, _http(response).ByteStream(content), call)


def refused(error: BaseException, kind: type[Any]) -> tuple[int, str] | None:
    """Status and body of an error of the SDK's class for refused requests; None for any other."""
    if not isinstance(error, kind):
        return None
    response: Any = getattr(error, "response", None)
    try:
        return response.status_code, response.text
    except Exception:  # noqa: BLE001 - an error of the caller's own making, or one whose body was never read
        return None


def request_id(response: Any, names: Sequence[str]) -> str | None:
    """The provider's request id, from the first of these headers that a response has."""
    return next((response.headers[name] for name in names if name in response.headers), None)


def reply_in(content: bytes) -> Json | None:
    """The reply that a body holds; None where it is no JSON object."""
    try:
        return as_object(json.loads(content))
    except (ValueError, RecursionError):
        return None


class Rounds:
    """What the two body streams share: which upstream response is open, and whether the call is over."""

    response: Any
    framing: Framing

    def __init__(
        self, call: Driven, framing: Callable[[Any], Framing], *request_id: str, session: object = None
    ) -> None:
        self.call = call
        self.session = session
        self.splice = call.splice()
        self.closed = False
        self.done = False
        self._over = False  # the round that is open has been ended
        self.visible: weakref.ref[Any] | None = None
        self._framing = framing
        self._request_id = request_id
        self._began = self._opened = time.perf_counter()
        self._seen: list[bytes] = []  # what was read, if instrumentation waits for it
        self._replayed = self.splice.replayed()  # before the first round is sent: it may be a later one then

    def opening(self) -> bytes:
        """Bytes for rounds that were paid for before this call."""
        return self.framing.show(self._replayed)

    def shown(self, chunk: bytes) -> bytes:
        """What the caller sees of one upstream chunk."""
        if self.response.extensions.get(WATCHED) is not None:
            self._seen.append(chunk)
        return self.framing.show(self.splice.feed(self.framing.read(chunk)))

    def ended(self) -> tuple[bytes, Json | None]:
        """The closing bytes and the next body, once the upstream response has been read."""
        self._over = True
        ms = (time.perf_counter() - self._opened) * 1000
        body = self.splice.end(request_id=request_id(self.response, self._request_id), ms=ms)
        return (b"", None) if self.call.question is not None else self._closed(body)

    def decided(self, agreed: bool) -> tuple[bytes, Json | None]:
        """The same once a question of the call is answered."""
        return self._closed(self.splice.decided(agreed))

    def _closed(self, body: Json | None) -> tuple[bytes, Json | None]:
        closing = self.framing.show(self.splice.closing())
        if body is None:
            # over before the last bytes are out: the SDK may stop reading inside them
            self.done = True
            self._remember()
        return closing, body

    def watched(self) -> Any:
        """The stream that instrumentation waits to see read, over the bytes of this round; None if there is none."""
        seen, self._seen = b"".join(self._seen), []
        stream = self.response.extensions.pop(WATCHED, None)
        if stream is not None:
            stream.response = rebuilt(self.response, _http(self.response).ByteStream(seen), self.call)
        return stream

    def _remember(self) -> None:
        """Let the report be found by the final message of a stream helper: by the id that the caller was shown."""
        if self.call.report is None:
            return  # the stream was cut, there is no reply
        for shown in (getattr(self.call, "visible_id", None), self.call.result.get("id")):
            reports.remember({"id": shown}, self.call.report)

    def refuse_if_closed(self) -> None:
        """Raise what reading a closed response raises, so that nothing is started for a caller who has left."""
        if self.closed:
            raise _http(self.response).StreamClosed

    def next(self, response: Any) -> None:
        """Go on with the response of the next round."""
        self._over = False
        self.response = response
        self.framing = self._framing(response)

    def starting(self) -> None:
        """A round is about to be sent."""
        self._opened = time.perf_counter()

    def leave(self) -> bool:
        """The caller is done with the body; False if that was known already."""
        if self.closed:
            return False
        self.closed = True
        if not self._over and self.framing.ended:  # an SDK stops reading at the last event, and not at the last byte
            with contextlib.suppress(Exception):
                self.ended()
                if self.call.question is not None:  # nobody is there any more to wait for an answer
                    self.decided(unheard(self.call))
        if not self.done:
            self.call.failed()
        visible = self.visible() if self.visible is not None else None
        if visible is not None:
            visible.elapsed = timedelta(seconds=time.perf_counter() - self._began)
        return True


# Generators refer to `Rounds`, never to the stream object that holds them: a dropped stream is then closed at once, by
# reference counting, and not whenever the garbage collector finds the cycle.


def _read(rounds: Rounds, send: Callable[[Json], Any]) -> Generator[bytes, None, None]:
    try:
        yield rounds.opening()
        while True:
            for chunk in rounds.response.iter_bytes():
                yield rounds.shown(chunk)
                if rounds.framing.ended:
                    break
            rounds.response.close()
            with contextlib.suppress(Exception):  # the caller gets the same bytes, and what they make the SDK raise
                for _ in rounds.watched() or ():
                    pass
            closing, body = rounds.ended()
            if rounds.call.question is not None:
                closing, body = rounds.decided(unheard(rounds.call))
            yield closing
            if body is None:
                return
            rounds.refuse_if_closed()
            rounds.starting()
            rounds.next(send(body))
            rounds.refuse_if_closed()
    finally:
        rounds.leave()
        rounds.response.close()


async def _read_async(rounds: Rounds, send: Callable[[Json], Awaitable[Any]]) -> AsyncGenerator[bytes, None]:
    try:
        yield rounds.opening()
        while True:
            upstream = rounds.response.aiter_bytes()
            async for chunk in upstream:
                yield rounds.shown(chunk)
                if rounds.framing.ended:
                    await _drain(upstream)
                    break
            await rounds.response.aclose()
            with contextlib.suppress(Exception):  # the caller gets the same bytes, and what they make the SDK raise
                async for _ in rounds.watched() or _nothing():
                    pass
            closing, body = await fed(rounds.session, rounds.ended)
            if rounds.call.question is not None:
                closing, body = await aside(rounds.session, rounds.decided, await agreed(rounds.call))
            yield closing
            if body is None:
                return
            rounds.refuse_if_closed()
            rounds.starting()
            rounds.next(await send(body))
            rounds.refuse_if_closed()
    finally:
        rounds.leave()
        await rounds.response.aclose()


async def _nothing() -> AsyncGenerator[None, None]:
    return
    yield


async def _drain(upstream: AsyncIterator[bytes]) -> None:
    """Read what follows the last event, for a moment: only a response read to its end leaves a connection to reuse."""
    import anyio

    with anyio.move_on_after(_DRAIN_SECONDS), contextlib.suppress(Exception):
        async for _ in upstream:
            pass


class _SyncBody:
    def __init__(self, rounds: Rounds, send: Callable[[Json], Any]) -> None:
        self._rounds = rounds
        self._chunks = _read(rounds, send)

    def __iter__(self) -> Iterator[bytes]:
        return (chunk for chunk in self._chunks if chunk)

    def close(self) -> None:
        """Close the open upstream response; no further round is started."""
        self._rounds.leave()
        self._rounds.response.close()
        with contextlib.suppress(ValueError):  # another thread is reading: it finds the closed response
            self._chunks.close()

    def __del__(self) -> None:
        if not self._rounds.closed and not sys.is_finalizing():
            self.close()  # dropped before the first byte was read: no generator is there to notice


class _AsyncBody:
    def __init__(self, rounds: Rounds, send: Callable[[Json], Awaitable[Any]]) -> None:
        self._rounds = rounds
        self._chunks = _read_async(rounds, send)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        # one generator for all readers: the SDK drains a body that somebody else has begun to read
        async for chunk in self._chunks:
            if chunk:
                yield chunk

    async def aclose(self) -> None:
        """Close the open upstream response; no further round is started."""
        await fed(self._rounds.session, self._rounds.leave)
        await self._rounds.response.aclose()
        with contextlib.suppress(RuntimeError):  # another task is reading: it finds the closed response
            await self._chunks.aclose()

    def __del__(self) -> None:
        self._rounds.leave()


@functools.cache
def _body_class(kind: type[Any], base: type[Any]) -> type[Any]:
    return type(kind.__name__, (kind, base), {})


def spliced(rounds: Rounds, send: Callable[[Json], Any], *, asynchronous: bool) -> Any:
    """The response whose body shows all rounds as one stream; further rounds are sent with `send` as it is read."""
    module = _http(rounds.response)
    if asynchronous:
        body = _body_class(_AsyncBody, module.AsyncByteStream)(rounds, send)
    else:
        body = _body_class(_SyncBody, module.SyncByteStream)(rounds, send)
    made = rebuilt(rounds.response, body, rounds.call)
    rounds.visible = weakref.ref(made)
    return made
