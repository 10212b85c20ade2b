"""Small servers on loopback for transport tests: one that remembers exact bytes, and one in between that counts."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn, UnixStreamServer
from typing import Any, Self
from urllib.request import ProxyHandler, Request, build_opener


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Wire:
    """A server that answers with `answer(seen)`: status, headers, body. `url` is its address."""

    answer: Callable[[Seen], tuple[int, dict[str, str], bytes]]
    socket_path: str | None = None
    seen: list[Seen] = field(default_factory=list)
    connections: int = 0

    def __enter__(self) -> Self:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = wire.socket_path is None
            wbufsize = 1 << 16

            def setup(self) -> None:
                wire.connections += 1
                super().setup()

            def handle_any(self) -> None:
                body = b""
                if self.headers.get("transfer-encoding") == "chunked":
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size + 2)[:-2]
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                wire.seen.append(Seen(self.command, self.path, headers, body))
                status, given, content = wire.answer(wire.seen[-1])
                self.send_response(status)
                for name, value in {**given, "content-length": str(len(content))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = handle_any  # noqa: N815 - named so by the base class

            def log_message(self, *_: Any) -> None:
                """Nothing is printed."""

        class Tcp(ThreadingMixIn, TCPServer):
            daemon_threads = True

        class Unix(ThreadingMixIn, UnixStreamServer):
            daemon_threads = True

        self.server: Any = (
            Tcp(("127.0.0.1", 0), Handler) if self.socket_path is None else Unix(self.socket_path, Handler)
        )
        if self.socket_path is None:
            port: int = self.server.socket.getsockname()[1]
            self.url = f"http://127.0.0.1:{port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def proxy() -> Wire:
    """A forward proxy for plain HTTP: it passes on what names a whole address."""

    direct = build_opener(ProxyHandler({}))

    def passed(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        kept = {k: v for k, v in seen.headers.items() if k not in ("content-length", "connection", "proxy-connection")}
        # to this machine, whatever the name says
        address = seen.path.replace("http://provider.example", "http://127.0.0.1")
        request = Request(address, data=seen.body or None, headers=kept, method=seen.method)  # noqa: S310
        with direct.open(request) as response:
            return response.status, {"content-type": response.headers["content-type"]}, response.read()

    return Wire(passed)


class Counting:
    """Stands in front of an address and counts the connections."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self.connections = 0
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._socket.listen(64)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            far = socket.create_connection(self._target)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(one, other), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def _pump(one: socket.socket, other: socket.socket) -> None:
    try:
        while chunk := one.recv(65_536):
            other.sendall(chunk)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        pass
    finally:
        one.close()
