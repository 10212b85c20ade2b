"""The emulator behind an HTTP client, in process: the SDK keeps its real base_url, every request ends here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from ._answer import Answer, ConnectionCutError
from ._core import Emulator

_CUT = "peer closed connection without sending complete message body (incomplete chunked read)"


def client(server: Emulator, *, asynchronous: bool, legacy: bool) -> Any:
    """An `httpx2.Client` / `AsyncClient` (or of legacy httpx) whose transport is `server`; `.emulator` is `server`."""
    library = _library(legacy)
    made = (
        library.AsyncClient(transport=async_transport(server, legacy=legacy))
        if asynchronous
        else library.Client(transport=transport(server, legacy=legacy))
    )
    made.emulator = server
    return made


def transport(server: Emulator, *, legacy: bool = False) -> Any:
    """A transport of httpx2 (or legacy httpx) that ends at `server`."""
    library = _library(legacy)

    class Body(library.SyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, answer: Answer, request: Any) -> None:
            self._chunks = answer.chunks
            self._request = request

        def __iter__(self) -> Iterator[bytes]:
            try:
                yield from self._chunks
            except ConnectionCutError:
                raise library.RemoteProtocolError(_CUT, request=self._request) from None

        def close(self) -> None:
            self._chunks.close()

    class Transport(library.BaseTransport):  # type: ignore[misc, name-defined]
        emulator = server

        def handle_request(self, request: Any) -> Any:
            answer = server.handle(request.method, str(request.url), dict(request.headers), request.read())
            _late(library, answer, request)
            return library.Response(answer.status, headers=dict(answer.headers), stream=Body(answer, request))

    return Transport()


def async_transport(server: Emulator, *, legacy: bool = False) -> Any:
    """The asynchronous twin of `transport`."""
    library = _library(legacy)

    class Body(library.AsyncByteStream):  # type: ignore[misc, name-defined]
        def __init__(self, answer: Answer, request: Any) -> None:
            self._chunks = answer.achunks()
            self._request = request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in self._chunks:
                    yield chunk
            except ConnectionCutError:
                raise library.RemoteProtocolError(_CUT, request=self._request) from None

        async def aclose(self) -> None:
            await self._chunks.aclose()

    class Transport(library.AsyncBaseTransport):  # type: ignore[misc, name-defined]
        emulator = server

        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            answer = server.handle(request.method, str(request.url), dict(request.headers), body)
            _late(library, answer, request)
            return library.Response(answer.status, headers=dict(answer.headers), stream=Body(answer, request))

    return Transport()


def _late(library: Any, answer: Answer, request: Any) -> None:
    """A real connection would time out before the first byte; there is no reason to wait for it here."""
    allowed = request.extensions.get("timeout", {}).get("read")
    slowest = answer.pieces[0].after if answer.pieces else 0.0
    if allowed is not None and slowest > allowed:
        raise library.ReadTimeout("The read operation timed out", request=request)


def _library(legacy: bool) -> Any:
    if legacy:
        import httpx

        return httpx
    import httpx2

    return httpx2
