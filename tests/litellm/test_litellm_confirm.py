"""The frozen strategy, and the question before a load, through litellm: its functions, a Router, the Proxy's hook."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.core.conversation import CALLS, LOADS, MESSAGES, RESPONSES, search
from tests.litellm.talking import ROUTES, dumped, talking, text_of
from tests.litellm.test_litellm_calls import WAYS, possible, said
from tests.litellm.test_litellm_proxy_hook import PARTS, Proxy
from tests.litellm.test_litellm_proxy_hook import ROUTES as HOOKED
from tests.litellm.test_litellm_proxy_hook import proxy as proxy  # noqa: PLC0414 - a fixture
from tests.litellm.test_litellm_router import arguments, router_of

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Move

TOOL = "invoice_create"
LOAD = Move(calls=[(LOADS, {"tools": [TOOL]})])
CALL = Move(calls=[(CALLS, {"tool": TOOL, "params": {"id": 7}})])
NO = Move(text="I may not")
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Application:
    """What is asked, and what it says."""

    def __init__(self, *, agrees: bool) -> None:
        self.agrees = agrees
        self.asked: list[tuple[str, ...]] = []

    def plain(self, names: tuple[str, ...]) -> bool:
        self.asked.append(names)
        return self.agrees

    async def coroutine(self, names: tuple[str, ...]) -> bool:
        await asyncio.sleep(0)
        return self.plain(names)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ROUTES)
async def test_the_caller_of_litellm_sees_the_tool_itself(litellm: Any, route: str, way: str):
    possible(route, way)
    dialect = ROUTES[route].dialect
    policy = replace(ROUTES[route].policy, strategy="frozen")
    with talking(litellm, ROUTES[route], LOAD, CALL, Move(text="done"), policy=policy) as program:
        program.user("please create an invoice")
        reply, given, _ = await said(program, litellm, way)
        assert program.echo(reply) == [(TOOL, {"id": 7})]
        report = loadpoint.report(given)
        assert (report.strategy, report.added_rounds) == ("frozen", 1)
        reply, given, _ = await said(program, litellm, way)
        assert text_of(dialect, reply) == "done"
        assert loadpoint.report(given).prefix.stable
        assert [program.names_sent(at) for at in range(3)] == [[LOADS, CALLS]] * 3
        assert CALLS not in json.dumps(program.history)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("agrees", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
@pytest.mark.parametrize("strategy", ["frozen", "auto"])
@pytest.mark.parametrize("route", ["openai completion", "openai responses", "claude messages"])
async def test_the_application_is_asked_before_a_load(
    litellm: Any, route: str, strategy: str, kind: str, agrees: bool, way: str
):
    possible(route, way)
    heard = kind == "plain" or "async" in way
    loads = agrees and heard
    asked = Application(agrees=agrees)
    policy = replace(ROUTES[route].policy, strategy=strategy, confirm=getattr(asked, kind), load_at_most=1)
    first = LOAD if strategy == "frozen" else Move(calls=[search("create invoice")])
    call = CALL if strategy == "frozen" else Move(calls=[(TOOL, {"id": 7})])
    with talking(litellm, ROUTES[route], first, call if loads else NO, policy=policy) as program:
        program.user("please create an invoice")
        reply, given, _ = await said(program, litellm, way)
        assert asked.asked == ([(TOOL,)] if heard else [])
        assert program.echo(reply) == ([(TOOL, {"id": 7})] if loads else [])
        assert [tool.name for tool in loadpoint.report(given).loaded] == ([TOOL] if loads else [])
        assert ("did not agree" in json.dumps(program.server.exchanges[1].request)) is not loads


@pytest.mark.parametrize("agrees", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_a_router_asks_too(litellm: Any, kind: str, agrees: bool):
    asked = Application(agrees=agrees)
    policy = Policy(strategy="frozen", confirm=getattr(asked, kind), load_at_most=1)
    with talking(litellm, ROUTES["openai completion"], LOAD, CALL if agrees else NO, wrapped=False) as program:
        router = loadpoint.wrap(router_of(litellm, program, "openai/gpt-5.4"), policy)
        program.user("please create an invoice")
        reply = await router.acompletion(**arguments(program))
        assert asked.asked == [(TOOL,)]
        assert program.echo(dumped(ROUTES["openai completion"].dialect, reply)) == (
            [(TOOL, {"id": 7})] if agrees else []
        )


@pytest.mark.requirement("P8", "P16")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("agrees", [True, False], ids=["yes", "no"])
@pytest.mark.parametrize("kind", ["plain", "coroutine"])
@pytest.mark.parametrize("dialect", HOOKED)
async def test_the_hook_of_the_proxy_asks_too(proxy: Proxy, dialect: str, kind: str, agrees: bool, stream: bool):
    if dialect == MESSAGES and stream and not PARTS:
        pytest.skip("this needs litellm[proxy]")
    from loadpoint_adapters.litellm import ProxyHook

    asked = Application(agrees=agrees)
    policy = Policy(strategy="frozen", confirm=getattr(asked, kind), load_at_most=1)
    proxy.hook = ProxyHook(policy, on_report=proxy.reports.append)
    proxy.moves[:] = [LOAD, CALL if agrees else NO]
    reply = await proxy.call(dialect, [{"role": "user", "content": "please create an invoice"}], stream=stream or None)
    items = reply if stream else [dumped(dialect, reply)]
    text = "".join(_text(item) for item in items)
    assert asked.asked == [(TOOL,)]
    assert (('"function_call"' if dialect == RESPONSES else TOOL) in text) is agrees
    assert LOADS not in text
    assert [tool.name for tool in proxy.reports[-1].loaded] == ([TOOL] if agrees else [])


def _text(item: Any) -> str:
    if isinstance(item, bytes):
        return item.decode()
    return json.dumps(item) if isinstance(item, dict) else str(item.model_dump_json())
