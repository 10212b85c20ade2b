"""One session on every route of litellm that can be pointed at a local server, as the data decides and frozen."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, RESPONSES
from tests.litellm import foreign
from tests.litellm.talking import SEARCHES, Program, Route, dumped, talking, text_of
from tests.litellm.test_litellm_routes import MODELS, V1, reached

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Emulator, Move

pytestmark = pytest.mark.anyio
TOOL = "invoice_create"
FROZEN = (
    Move(text="let me look", calls=[("load_tools", {"tools": [TOOL]})]),
    Move(calls=[("call_tool", {"tool": TOOL, "params": {"id": 7}})]),
    Move(text="done"),
)
HOSTS = {
    "openai": "api.openai.com",
    "openai responses": "api.openai.com",
    "azure": "x.openai.azure.com",
    "anthropic": "api.anthropic.com",
    "azure_ai": "x.services.ai.azure.com",
    "openrouter": "openrouter.ai",
    "deepseek": "api.deepseek.com",
    "moonshot": "api.moonshot.ai",
    "mistral": "api.mistral.ai",
    "xai": "api.x.ai",
    "groq": "api.groq.com",
    "bedrock invoke": "bedrock-runtime.us-east-1.amazonaws.com",
    "bedrock converse": "bedrock-runtime.us-east-1.amazonaws.com",
    "gemini": "generativelanguage.googleapis.com",
}
NATIVE = {
    ("openai", RESPONSES): "tool_search",
    ("openai responses", RESPONSES): "tool_search",
    ("azure", RESPONSES): "tool_search",
    ("anthropic", CHAT): "tool_reference",
    ("anthropic", MESSAGES): "tool_reference",
    ("bedrock invoke", CHAT): "tool_reference",
    ("bedrock invoke", MESSAGES): "tool_reference",
    ("moonshot", CHAT): "system_tools",
}
FOREIGN = ("bedrock converse", "gemini")
SPOKEN = [name for name in MODELS if not name.startswith("vertex") and name not in FOREIGN]
_OWN = ("chat.unknown_message_field", "chat.unknown_parameter")
"""What litellm adds for providers whose chat API has more members than OpenAI's."""
CALLS = {CHAT: "completion", RESPONSES: "responses", MESSAGES: "messages"}
STRATEGIES = ("auto", "frozen")


def _cases() -> Any:
    """Every route by every call; frozen by one of them only, unless there is time."""
    often = {("openai", RESPONSES), ("anthropic", MESSAGES)}
    for route in SPOKEN:
        for dialect, call in CALLS.items():
            for strategy in STRATEGIES:
                quick = strategy == "auto" or dialect == CHAT or (route, dialect) in often
                marks = [] if quick else [pytest.mark.slow]
                yield pytest.param(route, dialect, strategy, id=f"{route}-{call}-{strategy}", marks=marks)


def policy(route: str, strategy: Any) -> Policy:
    return Policy(threshold_tokens=0, endpoint=HOSTS.get(route), strategy=strategy)


async def session(program: Program) -> list[str]:
    """Two calls, the first with a hidden round; what they said."""
    said: list[str] = []
    program.user("please create an invoice")
    for expected in ([(TOOL, {"id": 7})], []):
        reply = dumped(program.route.dialect, await program.acall())
        said.append(text_of(program.route.dialect, reply))
        assert program.echo(reply) == expected
    return said


@pytest.mark.parametrize(("route", "dialect", "strategy"), [*_cases()])
async def test_a_session_on_every_route(litellm: Any, route: str, dialect: str, strategy: str):
    path = "/v1" if route.partition(" ")[0] in V1 else ""
    where = Route(dialect, MODELS[route], path, waived=_OWN)
    moves = FROZEN if strategy == "frozen" else SEARCHES
    with talking(litellm, where, *moves, policy=policy(route, strategy)) as program:
        program.extra = {"num_retries": 0, "max_retries": 0, **reached(route, program.url)}
        assert await session(program) == ["let me look", "done"]
        form = NATIVE.get((route, dialect)) if strategy == "auto" else None
        expected = "frozen" if strategy == "frozen" else "native" if form else "resend"
        assert [(told.strategy, told.load_point) for told in program.reports] == [(expected, form)] * 2
        assert [told.added_rounds for told in program.reports] == [1, 0]
        assert program.reports[-1].prefix.stable
        assert [exchange.status for exchange in program.server.exchanges] == [200] * 3
        _continues(program.server, frozen=strategy == "frozen")


def _continues(server: Emulator, *, frozen: bool) -> None:
    """Each request begins with the one before; where it is frozen, the list of tools is the same from the start."""
    bodies = [exchange.request or {} for exchange in server.exchanges]
    for before, after in pairwise(bodies):
        key = "input" if "input" in before else "messages"
        assert after[key][: len(before[key])] == before[key]
        assert after["tools"][: len(before["tools"])] == before["tools"]
    sizes = [len(body["tools"]) for body in bodies]
    assert sizes[1] == sizes[2]
    assert sizes == [2, 2, 2] or not frozen


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("dialect", CALLS, ids=CALLS.values())
@pytest.mark.parametrize("route", FOREIGN)
async def test_a_session_on_apis_that_are_nobodys_dialect(litellm: Any, route: str, dialect: str, strategy: str):
    moves = FROZEN if strategy == "frozen" else SEARCHES
    reports: list[Any] = []
    with foreign.playing(*moves) as (url, bodies):
        client = loadpoint.wrap(litellm, policy(route, strategy), on_report=reports.append)
        program = Program(Route(dialect, MODELS[route]), client, Emulator(), url, reports)
        program.extra = {"num_retries": 0, "max_retries": 0, **reached(route, url)}
        assert await session(program) == ["let me look", "done"]
    expected = "frozen" if strategy == "frozen" else "resend"
    assert [(told.strategy, told.added_rounds) for told in reports] == [(expected, 1), (expected, 0)]
    first, second, third = map(foreign.listed, bodies)
    assert first == (["load_tools", "call_tool"] if strategy == "frozen" else ["ToolSearch"])
    assert second == third
    assert second[: len(first)] == first
    assert second == first if strategy == "frozen" else TOOL in second
    assert "defer_loading" not in json.dumps(bodies)
