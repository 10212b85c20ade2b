"""Asynchronous clients with a ledger that has to wait: the event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
from importlib.util import find_spec
from typing import Any

import pytest
from tests.adapters import paths
from tests.adapters.sleepy import SleepyLedger
from tests.adapters.test_paths import CLIENTS, request, searching

import loadpoint
from loadpoint import InProcessLedger, emulator
from loadpoint._session import Session
from loadpoint_adapters._aside import aside, fed
from loadpoint_adapters.anthropic import middleware

pytestmark = pytest.mark.anyio
WAYS = (
    ("openai", "client"),
    ("openai", "http"),
    ("anthropic", "client"),
    ("anthropic", "http"),
    ("anthropic", "middle"),
)
TRIO = pytest.param("trio", marks=pytest.mark.skipif(find_spec("trio") is None, reason="trio is not installed"))
backends = pytest.mark.parametrize("anyio_backend", ["asyncio", TRIO])


def turning(backend: str) -> Any:
    """What has the running loop call a function soon, from any thread."""
    if backend == "asyncio":
        return asyncio.get_running_loop().call_soon_threadsafe
    import trio

    return trio.lowlevel.current_trio_token().run_sync_soon


def made(sdk: Any, way: str, server: emulator.Emulator, **options: Any) -> Any:
    http = emulator.http_client(sdk, server, asynchronous=True)
    kind = CLIENTS[sdk, True]
    if way == "http":
        return kind(api_key="k", http_client=loadpoint.wrap(http, **options))
    if way == "middle":
        return kind(api_key="k", http_client=http, middleware=[middleware(**options)])
    return loadpoint.wrap(kind(api_key="k", http_client=http), **options)


@backends
# Trio complains of generators that the SDKs leave to the collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(("sdk", "way"), WAYS, ids=["-".join(each) for each in WAYS])
async def test_the_event_loop_goes_on_while_a_ledger_waits(sdk: str, way: str, stream: bool, anyio_backend: str):
    ledger = SleepyLedger(turning(anyio_backend))
    told: list[Any] = []
    server = searching()
    client = made(sdk, way, server, ledger=ledger, on_report=told.append)
    api = client.chat.completions if sdk == "openai" else client.messages
    asked = request(sdk)
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hello"}]  # a turn to look up
    asked["messages"] = [*said, *asked["messages"]]
    reply = await api.create(**asked, stream=stream)
    if stream:
        _ = [item async for item in paths.each(reply)]
        await reply.close()
    assert set(ledger.log) == {"find", "add"}
    assert [report.added_rounds for report in told] == [1]


async def test_a_ledger_in_the_process_needs_no_thread():
    threads: list[Any] = []
    session = Session((), loadpoint.Policy())
    assert type(session.ledger) is InProcessLedger
    await aside(session, lambda: threads.append(threading.current_thread()))
    await fed(session, lambda: threads.append(threading.current_thread()))
    await aside(None, lambda: threads.append(threading.current_thread()))
    assert threads == [threading.current_thread()] * 3


@backends
async def test_an_application_that_is_asked_is_asked_on_its_own_loop(anyio_backend: str):
    asked: list[Any] = []

    def confirm(names: Any) -> bool:
        asked.append((names, threading.current_thread()))
        return True

    policy = loadpoint.Policy(confirm=confirm)
    client = made("openai", "client", searching(), policy=policy, ledger=_Own())
    await client.chat.completions.create(**request("openai"))
    assert asked == [(("svc_tool_7",), threading.current_thread())]


class _Own(InProcessLedger):
    """A ledger of another class, which may do what it likes."""


class _Session:
    ledger = _Own()


async def test_a_task_that_is_cancelled_meanwhile_ends_once_the_work_has():
    began, go, done = asyncio.Event(), threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    left: list[bool] = []

    def work() -> None:
        loop.call_soon_threadsafe(began.set)
        assert go.wait(10)
        done.set()

    task = asyncio.create_task(fed(_Session(), work, left=lambda: left.append(done.is_set())))
    await began.wait()
    task.cancel()
    loop.call_soon(go.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert left == [True]


@backends
async def test_what_it_raises_is_raised(anyio_backend: str):
    def work() -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await aside(_Session(), work)
