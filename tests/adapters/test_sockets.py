"""Web sockets of the Responses API through the real SDK, on sockets that are none: what is sent, and what is said."""

from __future__ import annotations

import logging
import sys
import types
from typing import Any

import openai
import pytest
from tests.adapters.paths import settle
from tests.adapters.test_response_paths import client, request, served

import loadpoint
from loadpoint import CallReport
from loadpoint.emulator import Move

ASKED = tuple(int(part) for part in openai.__version__.split(".")[:2]) >= (3, 17)
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not ASKED, reason="this version of the SDK opens sockets without asking the client"),
]
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
paths = pytest.mark.parametrize("api", ["responses", "beta.responses"])


class Socket:
    """Keeps what is sent."""

    def __init__(self, url: str, asynchronous: bool, **options: Any) -> None:
        self.url, self.asynchronous, self.options = url, asynchronous, options
        self.sent: list[Any] = []

    def send(self, data: Any) -> Any:
        self.sent.append(data)
        return _nothing() if self.asynchronous else None

    def close(self, **_: Any) -> Any:
        return _nothing() if self.asynchronous else None


async def _nothing() -> None:
    return None


@pytest.fixture
def sockets(monkeypatch: pytest.MonkeyPatch) -> list[Socket]:
    """The sockets that the SDK opens: it takes them from a package of which this stands in for two modules."""
    opened: list[Socket] = []

    def connect(url: str, **options: Any) -> Socket:
        opened.append(Socket(url, False, **options))
        return opened[-1]

    async def connect_async(url: str, **options: Any) -> Socket:
        opened.append(Socket(url, True, **options))
        return opened[-1]

    for name, attribute, value in (
        ("websockets.sync.client", "connect", connect),
        ("openai.lib._websocket", "_WebSocketConnect", connect_async),
    ):
        module = types.ModuleType(name)
        setattr(module, attribute, value)
        monkeypatch.setitem(sys.modules, name, module)
    return opened


def resource(wrapped: Any, api: str) -> Any:
    for name in api.split("."):
        wrapped = getattr(wrapped, name)
    return wrapped


@both
@paths
async def test_a_socket_passes_with_a_report_and_a_line(
    api: str, asynchronous: bool, sockets: list[Socket], caplog: pytest.LogCaptureFixture
) -> None:
    reports: list[CallReport] = []
    wrapped = loadpoint.wrap(client(served(), asynchronous=asynchronous), on_report=reports.append)
    with caplog.at_level(logging.INFO, logger="loadpoint"):
        connection = await settle(resource(wrapped, api).connect().enter())
    assert [(report.strategy, report.load_point) for report in reports] == [("eager", None)]
    assert "web socket" in reports[0].reason
    assert [record.levelname for record in caplog.records if "web socket" in record.message] == ["INFO"]
    await settle(connection.response.create(**request()))
    (socket,) = sockets
    assert socket.url.startswith("wss://api.openai.com/v1/responses")
    assert socket.options["additional_headers"]["Authorization"] == "Bearer k"
    assert len(socket.sent) == 1
    assert all(tool["name"] in str(socket.sent[0]) for tool in request()["tools"])
    await settle(connection.close())


@both
async def test_a_socket_is_what_the_bare_client_opens(asynchronous: bool, sockets: list[Socket]) -> None:
    plain = client(served(), asynchronous=asynchronous)
    for one in (plain, loadpoint.wrap(plain)):
        await settle(one.responses.connect(extra_headers={"x-a": "b"}).enter())
    bare, ours = sockets
    assert (ours.url, ours.options) == (bare.url, bare.options)


@both
async def test_other_sockets_and_requests_are_not_reported(asynchronous: bool, sockets: list[Socket]) -> None:
    reports: list[CallReport] = []
    server = served(Move(text="hi"))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), on_report=reports.append)
    await settle(wrapped.realtime.connect(model="gpt-realtime").enter())
    await settle(wrapped.responses.create(model="gpt-5.4", input="hi"))
    assert len(sockets) == 1
    assert not [report for report in reports if "web socket" in report.reason]


@both
async def test_without_the_package_the_error_is_the_sdks(asynchronous: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("websockets", "websockets.sync.client", "openai.lib._websocket"):
        monkeypatch.setitem(sys.modules, name, None)
    wrapped = loadpoint.wrap(client(served(), asynchronous=asynchronous))
    with pytest.raises(openai.OpenAIError, match="openai\\[realtime\\]"):
        await settle(wrapped.responses.connect().enter())
