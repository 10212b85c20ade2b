"""The emulator on a real loopback socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Self

from ._core import Emulator


def app(server: Emulator) -> Any:
    """`server` as an ASGI application (starlette)."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    async def answer(request: Request) -> StreamingResponse:
        body = await request.body()
        given = server.handle(request.method, str(request.url), dict(request.headers), body)

        async def chunks() -> AsyncIterator[bytes]:
            async with aclosing(given.achunks()) as played:
                async for chunk in played:
                    yield chunk

        return StreamingResponse(chunks(), status_code=given.status, headers=dict(given.headers))

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST", "DELETE"])])


class Running:
    """A served emulator: `url` is its address without a path, `server` the emulator. Use it as a context manager."""

    def __init__(self, server: Emulator) -> None:
        import uvicorn

        self.server = server
        # asyncio switches Nagle's algorithm off only where the protocol is named; with it on, each reply waits 40 ms.
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            app(server), log_level="critical", access_log=False, lifespan="off", loop="asyncio", http="h11", ws="none"
        )
        self._uvicorn = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="loadpoint-emulator", daemon=True)

    def _run(self) -> None:
        import asyncio

        asyncio.run(self._uvicorn.serve(sockets=[self._socket]))

    def start(self) -> Running:
        """Begins to serve. The socket accepts connections from the moment it exists, so nothing waits for it."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stops serving; open streams are closed."""
        self._uvicorn.should_exit = True
        self._uvicorn.force_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
