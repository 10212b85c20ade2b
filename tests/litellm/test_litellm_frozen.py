"""The frozen strategy through litellm: the caller sees the tool itself, and the list of tools never changes."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, RESPONSES
from tests.litellm.talking import ROUTES, dumped, talking, text_of
from tests.litellm.test_litellm_calls import WAYS, possible, said
from tests.litellm.test_litellm_proxy_hook import PARTS, USER, Proxy, bodies, names
from tests.litellm.test_litellm_proxy_hook import proxy as proxy  # noqa: PLC0414 - a fixture
from tests.litellm.test_litellm_router import arguments, router_of
from tests.litellm.test_litellm_sessions import FROZEN

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
POLICY = Policy(strategy="frozen")
OURS = ["load_tools", "call_tool"]
CALLED = [("invoice_create", {"id": 7})]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ["openai completion", "claude completion", "openai responses", "claude messages"])
async def test_on_every_way_to_call(litellm: Any, route: str, way: str):
    possible(route, way)
    dialect = ROUTES[route].dialect
    with talking(litellm, ROUTES[route], *FROZEN, policy=POLICY) as program:
        program.user("please create an invoice")
        reply, given, _ = await said(program, litellm, way)
        assert text_of(dialect, reply) == "let me look"
        assert program.echo(reply) == CALLED
        assert (loadpoint.report(given).strategy, loadpoint.report(given).added_rounds) == ("frozen", 1)
        reply, given, _ = await said(program, litellm, way)
        assert text_of(dialect, reply) == "done"
        assert loadpoint.report(given).prefix.stable
        assert [program.names_sent(at) for at in range(3)] == [OURS] * 3


@pytest.mark.parametrize("way", WAYS)
async def test_through_a_router_whose_deployments_are_of_several_kinds(litellm: Any, way: str):
    moves = (FROZEN[0], Move(status=500), *FROZEN[1:])
    route = ROUTES["openai completion"]
    with talking(litellm, route, *moves, wrapped=False) as program:
        reports: list[Any] = []
        router = router_of(litellm, program, "openai/gpt-5.4", "deepseek/deepseek-chat", fallbacks=[{"g0": ["g1"]}])
        program.client = loadpoint.wrap(router, POLICY, on_report=reports.append)
        program.extra = {"model": "g0"}
        given = arguments(program)
        program.arguments = lambda **more: {**given, "messages": program.history, **more}  # type: ignore[method-assign]
        program.user("please create an invoice")
        reply, _, _ = await said(program, litellm, way)
        assert program.echo(reply) == CALLED
        reply, _, _ = await said(program, litellm, way)
        assert text_of(CHAT, reply) == "done"
        sent = [(exchange.request or {})["model"] for exchange in program.server.exchanges]
        assert sent == ["gpt-5.4", "gpt-5.4", "deepseek-chat", "gpt-5.4"]
        assert [program.names_sent(at) for at in range(4)] == [OURS] * 4
        assert [(report.strategy, report.prefix.broke) for report in reports] == [
            ("frozen", "first_request"),
            ("frozen", None),
        ]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", [CHAT, RESPONSES, MESSAGES])
async def test_through_the_hook_of_the_proxy(proxy: Proxy, litellm: Any, dialect: str, stream: bool):
    if dialect == MESSAGES and stream and not PARTS:
        pytest.skip("litellm has no such stream without the extra loadpoint[proxy-tests]")
    from loadpoint_adapters.litellm import ProxyHook

    proxy.hook = ProxyHook(POLICY, on_report=proxy.reports.append)
    proxy.moves[:] = FROZEN[:2]
    reply = await proxy.call(dialect, [USER], stream=stream)
    assert [names(body) for body in bodies(proxy)] == [OURS] * 2
    assert "load_tools" not in str(reply)
    assert "call_tool" not in str(reply)
    assert "invoice_create" in str([dumped(dialect, item) if not isinstance(item, bytes) else item for item in reply]
                                   if stream else dumped(dialect, reply))  # fmt: skip
    assert [(report.strategy, report.added_rounds) for report in proxy.reports] == [("frozen", 1)]
