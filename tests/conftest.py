"""What every test shares: a clean environment, loopback only, the places of the repository and of the data folder."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.servers.redis_server import RedisServer

ROOT = Path(__file__).resolve().parent.parent
LIVE = os.environ.get("LOADPOINT_LIVE") == "1"
SLOW = os.environ.get("LOADPOINT_SLOW") == "1"
_STRIPPED = ("OPENAI_", "ANTHROPIC_", "AWS_", "AZURE_", "GOOGLE_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", parent=settings.get_profile("default"), max_examples=5_000)
settings.load_profile(os.environ.get("LOADPOINT_HYPOTHESIS", "default"))


def pytest_configure() -> None:
    """Take away what would make a test depend on the machine: keys, proxies, our own switch, the network."""
    if LIVE:
        return
    for name in list(os.environ):
        if name.upper().startswith(_STRIPPED) or name in ("LOADPOINT", "LOADPOINT_MODELS"):
            del os.environ[name]
    _keep_to_loopback()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out `live` and `slow` tests unless they were asked for."""
    unwanted = {name for name, wanted in (("live", LIVE), ("slow", SLOW)) if not wanted}
    left_out = [item for item in items if any(item.get_closest_marker(name) for name in unwanted)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def repo() -> Path:
    """The source tree; a test that needs it is skipped where only the installed package is tested."""
    if not (ROOT / "src" / "loadpoint").is_dir():
        pytest.skip("no source tree: the installed package is tested")
    return ROOT


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of third-party data that `LOADPOINT_DATA` names; skipped without it."""
    folder = os.environ.get("LOADPOINT_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LOADPOINT_DATA names no data folder")
    return Path(folder).resolve()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis server for tests that leave it running; skipped where there is none."""
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of `@pytest.mark.anyio` tests: the one that the SDKs document."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _environment_is_left_alone() -> Iterator[None]:
    before = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    yield
    after = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    assert after == before, "a test left the environment changed: use monkeypatch.setenv"


def _keep_to_loopback() -> None:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any, /) -> None:
        host = address[0] if isinstance(address, tuple) else None
        if host is not None and host not in {"localhost", "::1"} and not str(host).startswith("127."):
            raise OSError(f"tests stay on this machine; {host!r} is elsewhere")
        connect(self, address)

    socket.socket.connect = guarded  # type: ignore[method-assign, assignment]
