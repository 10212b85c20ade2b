"""The native forms of the Messages API beside references in results, through every way of the SDK."""

from __future__ import annotations

import operator
from typing import Any

import anthropic
import pydantic
import pytest
from anthropic.types.beta import BetaMessageParam, BetaToolUnionParam
from tests.adapters import paths
from tests.adapters.paths import settle
from tests.adapters.test_paths import client, request

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
WALKS = [
    (path.partition(":")[2], walk)
    for path, walks in paths.PATHS.items()
    if path.startswith("anthropic:")
    for walk in walks
]
every = pytest.mark.parametrize(("path", "walk"), WALKS, ids=[f"{path}-{walk.__name__}" for path, walk in WALKS])
ADDITION = Policy(strategy="native", load_point="tool_addition")
HOSTED = Policy(strategy="native", load_point="hosted_search")
BETA = "inline-tools-2026-09-15"
TOOL = "svc_tool_7"


def searching(*moves: Any) -> emulator.Emulator:
    return emulator.Emulator(emulator.Script.sequence(list(moves)))


@every
@both
async def test_definitions_in_messages_on_every_path(path: str, walk: paths.Walk, asynchronous: bool):
    server = searching(Move.call("ToolSearch", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}))
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), ADDITION)
    calls, reported = await walk(operator.attrgetter(path.rpartition(".")[0])(wrapped), request("anthropic"))
    assert calls == paths.WANTED
    first, second = server.exchanges
    assert [first.loaded, second.loaded] == [(), (TOOL,)]
    assert [exchange.warnings for exchange in server.exchanges] == [(), ()]
    assert all(BETA in exchange.headers["anthropic-beta"] for exchange in server.exchanges)
    assert first.tokens.tools == second.tokens.tools
    assert loadpoint.report(reported).load_point == "tool_addition"


@every
@both
async def test_the_services_own_search_on_every_path(path: str, walk: paths.Walk, asynchronous: bool):
    found = Move(calls=[("tool_search_tool_bm25", {"query": "svc_tool_7"}), (TOOL, {"city": "Rome"})])
    server = searching(found)
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), HOSTED)
    calls, reported = await walk(operator.attrgetter(path.rpartition(".")[0])(wrapped), request("anthropic"))
    assert calls == paths.WANTED
    (only,) = server.exchanges
    assert only.warnings == ()
    report = loadpoint.report(reported)
    assert report.load_point == "hosted_search"
    assert report.added_rounds == 0


@both
@pytest.mark.parametrize("surface", ["messages", "beta.messages"])
@pytest.mark.parametrize("policy", [ADDITION, HOSTED], ids=["addition", "hosted"])
async def test_what_comes_back_goes_back_and_the_sdks_types_take_what_we_send(
    policy: Policy, surface: str, asynchronous: bool
):
    loader = "ToolSearch" if policy is ADDITION else "tool_search_tool_bm25"
    seek, use = (loader, {"query": "svc_tool_7"}), (TOOL, {"city": "Rome"})
    rounds = [Move(calls=[seek]), Move(calls=[use])] if policy is ADDITION else [Move(calls=[seek, use])]
    server = searching(*rounds, Move(text="sunny"), Move(text="bye"))
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), policy)
    api = operator.attrgetter(surface)(wrapped)
    body = request("anthropic")
    for text in ("And tomorrow?", "Thanks."):
        reply = await settle(api.create(**body))
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "sunny"}
            for block in reply.content
            if block.type == "tool_use"
        ]
        said = {"type": "text", "text": text}
        body["messages"] = [
            *body["messages"],
            {"role": "assistant", "content": reply.content},
            {"role": "user", "content": [*results, said]},
        ]
    await settle(api.create(**body))
    assert [exchange.status for exchange in server.exchanges] == [200] * len(server.exchanges)
    for exchange in server.exchanges:
        sent: Any = exchange.request
        pydantic.TypeAdapter(list[BetaMessageParam]).validate_python(sent["messages"])
        pydantic.TypeAdapter(list[BetaToolUnionParam]).validate_python(sent["tools"])


async def test_a_definition_that_the_service_refuses_is_told_in_the_sdks_words():
    """The caller's own change, which names what nobody has defined, is his: the error of the bare SDK comes through."""
    server = searching(Move(text="never"))
    wrapped = loadpoint.wrap(client("anthropic", server), ADDITION)
    gone = {"type": "mcp_tool_reference", "server_name": "crm", "name": "list"}
    body = request("anthropic")
    body["messages"] = [
        *body["messages"],
        {"role": "system", "content": [{"type": "tool_addition", "tool": gone}]},
    ]
    with pytest.raises(anthropic.BadRequestError) as caught:
        wrapped.beta.messages.create(**body)
    newer = getattr(anthropic.types, "ToolReferenceUnresolvedError", anthropic.BadRequestError)
    assert type(caught.value) is newer
    assert "tool_reference_unresolved" in str(caught.value.body)


@both
async def test_a_runner_that_is_given_tools_on_the_way_keeps_them(asynchronous: bool):
    """The SDK's own `tool_addition` and ours in one conversation, on a thread and off it."""
    ran: list[str] = []
    made = _tool(ran, asynchronous=asynchronous)
    for threads in [False, True] if paths.THREADS else [False]:
        ran.clear()
        server = searching(
            Move.call("ToolSearch", {"query": TOOL}),
            Move.call("late_tool", {"city": "Rome"}),
            Move(text="sunny"),
        )
        wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), ADDITION)
        options: dict[str, Any] = {} if threads or not paths.THREADS else {"thread": False}
        body = {**request("anthropic"), "betas": [BETA]}
        runner = wrapped.beta.messages.tool_runner(**body, **options)
        if not hasattr(runner, "add_tools"):
            pytest.skip("this version's runner takes no tools on the way")
        runner.add_tools(made)
        last = await settle(runner.until_done())
        assert last.content[-1].text == "sunny"
        assert ran == ["Rome"]
        assert all(exchange.status == 200 for exchange in server.exchanges)


def _tool(ran: list[str], *, asynchronous: bool) -> Any:
    if asynchronous:

        @anthropic.beta_async_tool
        async def late_tool(city: str) -> str:
            """Comes late.

            Args:
                city: the city's name
            """
            ran.append(city)
            return "sunny"

        return late_tool

    @anthropic.beta_tool(name="late_tool")
    def tool(city: str) -> str:
        """Comes late.

        Args:
            city: the city's name
        """
        ran.append(city)
        return "sunny"

    return tool
