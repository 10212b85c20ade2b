"""What stands below a wrapped litellm: a transport of ours, which stands aside, and ledgers that have to wait."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.adapters.sleepy import SleepyLedger
from tests.core.conversation import CHAT, MESSAGES
from tests.litellm.talking import ROUTES, SEARCHES, dumped, talking
from tests.litellm.test_litellm_calls import PROXY

import loadpoint
from loadpoint import Policy
from loadpoint_adapters.httpx import transport

pytestmark = pytest.mark.anyio
WAYS = ("sync", "async", "sync stream", "async stream")


async def _read(way: str, program: Any) -> Any:
    streamed = {"stream": True} if "stream" in way else {}
    given = await program.acall(**streamed) if "async" in way else program.call(**streamed)
    if streamed:
        return [item async for item in given] if "async" in way else list(given)
    return given


@pytest.mark.parametrize("way", WAYS)
async def test_a_transport_of_ours_stands_aside(litellm: Any, monkeypatch: pytest.MonkeyPatch, way: str):
    told: list[Any] = []
    below = Policy(strategy="resend", threshold_tokens=0)
    route = ROUTES["openai completion"]
    with (
        httpx.Client(transport=transport(below, on_report=told.append)) as one,
        talking(litellm, route, *SEARCHES[:2]) as program,
    ):
        other = httpx.AsyncClient(transport=transport(below, on_report=told.append))
        monkeypatch.setattr(litellm, "client_session", one)
        monkeypatch.setattr(litellm, "aclient_session", other)
        program.user("please create an invoice")
        await _read(way, program)
        await other.aclose()
        assert told == []
        assert [report.added_rounds for report in program.reports] == [1]
        assert program.names_sent(0) == ["ToolSearch"]
        assert len(program.server.exchanges) == 2


async def test_the_transport_alone_does_it_where_litellm_is_not_wrapped(litellm: Any, monkeypatch: pytest.MonkeyPatch):
    told: list[Any] = []
    below = Policy(strategy="resend", threshold_tokens=0)
    with (
        httpx.Client(transport=transport(below, on_report=told.append)) as one,
        talking(litellm, ROUTES["openai completion"], *SEARCHES[:2], wrapped=False) as program,
    ):
        monkeypatch.setattr(litellm, "client_session", one)
        program.user("please create an invoice")
        reply = program.call()
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        assert [report.added_rounds for report in told] == [1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("route", ["openai completion", "claude completion", "openai responses", "claude messages"])
async def test_the_event_loop_goes_on_while_a_ledger_waits(litellm: Any, route: str, stream: bool):
    way = ROUTES[route]
    if way.dialect == MESSAGES and stream and not PROXY:
        pytest.skip("litellm has no such stream without the extra loadpoint[proxy-tests]")
    ledger = SleepyLedger(asyncio.get_running_loop().call_soon_threadsafe)
    with talking(litellm, way, *SEARCHES) as program:
        program.client = loadpoint.wrap(litellm, way.policy, ledger=ledger, on_report=program.reports.append)
        program.history = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "please create an invoice"},
        ]
        await _read("async stream" if stream else "async", program)
        assert set(ledger.log) == {"find", "add"}
        assert [report.added_rounds for report in program.reports] == [1]
