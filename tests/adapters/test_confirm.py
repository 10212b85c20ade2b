"""The application is asked before a load, on every way in and in every strategy: without its yes nothing is loaded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import openai
import pytest
from tests.adapters import paths
from tests.adapters.test_transport import HEADERS, PATHS, body
from tests.core.streams import rebuilt

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move, Script
from loadpoint_adapters.httpx import transport

TOOL = "svc_tool_7"
BASES = {
    "chat": "https://api.openai.com",
    "responses": "https://api.openai.com",
    "messages": "https://api.anthropic.com",
}
NAMES = {"chat": "openai.chat", "responses": "openai.responses", "messages": "anthropic.messages"}
CASES = [(dialect, "resend") for dialect in PATHS] + [(dialect, "frozen") for dialect in PATHS]
CASES += [("responses", "native"), ("messages", "native")]
Asked = list[tuple[str, ...]]

pytestmark = pytest.mark.anyio
cases = pytest.mark.parametrize(("dialect", "strategy"), CASES, ids=["-".join(case) for case in CASES])
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
ways = pytest.mark.parametrize("way", ["sdk", "client", "transport"])


def plays(turn: Any) -> Move:
    """A model that loads the tool, calls it where that worked, and else says so."""
    bridge = "load_tools" in turn.names
    if not turn.results:
        loads = ("load_tools", {"tools": [TOOL]}) if bridge else (turn.search or "ToolSearch", {"query": TOOL})
        return Move(calls=[loads])
    if "did not agree" in json.dumps(turn.body):
        return Move(text="I may not")
    return Move(
        calls=[("call_tool", {"tool": TOOL, "params": {"city": "Rome"}}) if bridge else (TOOL, {"city": "Rome"})]
    )


class Caller:
    """One program: a request to one API, by an SDK or by hand."""

    def __init__(self, way: str, dialect: str, policy: Policy, *, asynchronous: bool, stream: bool) -> None:
        self.dialect, self.stream = dialect, stream
        self.server = emulator.Emulator(Script(plays))
        sdk: Any = "anthropic" if dialect == "messages" else "openai"
        self.reports: list[Any] = []
        if way == "sdk":
            http = emulator.http_client(sdk, self.server, asynchronous=asynchronous)
            module, name = (anthropic, "Anthropic") if sdk == "anthropic" else (openai, "OpenAI")
            made = getattr(module, ("Async" if asynchronous else "") + name)(
                api_key="k", http_client=http, max_retries=0
            )
            self.client = loadpoint.wrap(made, policy, on_report=self.reports.append)
            self.post: Callable[[], Any] = self._by_sdk
            return
        kind = httpx.AsyncClient if asynchronous else httpx.Client
        made = emulator.http_client(sdk, self.server, asynchronous=asynchronous, legacy=True)
        inner = made._transport
        if way == "client":
            self.client = loadpoint.wrap(kind(transport=inner), policy, on_report=self.reports.append)
        else:
            self.client = kind(transport=transport(policy, inner=inner, on_report=self.reports.append))
        self.post = self._by_hand

    async def reply(self) -> Any:
        """The JSON of the reply, or of what the stream says."""
        return await self.post()

    async def _by_hand(self) -> Any:
        given = body(self.dialect, **({"stream": True} if self.stream else {}))
        url = BASES[self.dialect] + PATHS[self.dialect]
        response = await paths.settle(self.client.post(url, json=given, headers=HEADERS))
        assert response.status_code == 200, response.text
        return rebuilt(NAMES[self.dialect], response.content) if self.stream else response.json()

    async def _by_sdk(self) -> Any:
        given = body(self.dialect)
        api = {
            "chat": lambda: self.client.chat.completions,
            "responses": lambda: self.client.responses,
            "messages": lambda: self.client.messages,
        }[self.dialect]()
        if not self.stream:
            return (await paths.settle(api.create(**given))).model_dump(mode="json")
        events = [event async for event in paths.each(await paths.settle(api.create(**given, stream=True)))]
        raw = b"".join(
            f"event: {getattr(event, 'type', 'message')}\ndata: {event.model_dump_json()}\n\n".encode()
            for event in events
        )
        return rebuilt(NAMES[self.dialect], raw)


def calls(dialect: str, reply: Any) -> list[str]:
    if dialect == "chat":
        return [call["function"]["name"] for call in reply["choices"][0]["message"].get("tool_calls") or []]
    return [i["name"] for i in reply["output" if dialect == "responses" else "content"] if i.get("name")]


def policy(strategy: str, confirm: Any, **more: Any) -> Policy:
    return Policy(strategy=strategy, confirm=confirm, load_at_most=1, threshold_tokens=0, **more)


def made(kind: str, asked: Asked) -> Any:
    """A function of the application; what it says, or does not, is in its name."""
    said = {"yes": True, "no": False, "nothing": None, "truthy": "yes"}

    def plain(names: tuple[str, ...]) -> Any:
        asked.append(names)
        if kind.endswith("timeout"):
            raise TimeoutError
        return said[kind.rpartition(" ")[2]]

    async def coroutine(names: tuple[str, ...]) -> Any:
        asked.append(names)
        await asyncio.sleep(0)
        if kind.endswith("timeout"):
            await asyncio.wait_for(asyncio.Event().wait(), 0.001)
        return said[kind.rpartition(" ")[2]]

    return coroutine if kind.startswith("async") else plain


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.requirement("P8", "P16")
@both
@streams
@ways
@cases
@pytest.mark.parametrize("kind", ["yes", "no", "timeout", "nothing", "truthy"])
async def test_a_function_is_asked(
    kind: str, dialect: str, strategy: str, way: str, stream: bool, asynchronous: bool
) -> None:
    asked: Asked = []
    program = Caller(way, dialect, policy(strategy, made(kind, asked)), asynchronous=asynchronous, stream=stream)
    reply = await program.reply()
    assert asked == [(TOOL,)]
    judge(program, reply, loaded=kind == "yes")


@pytest.mark.requirement("P8", "P16")
@streams
@ways
@cases
@pytest.mark.parametrize("kind", ["async yes", "async no", "async timeout", "async nothing"])
async def test_a_coroutine_function_is_awaited(kind: str, dialect: str, strategy: str, way: str, stream: bool) -> None:
    asked: Asked = []
    program = Caller(way, dialect, policy(strategy, made(kind, asked)), asynchronous=True, stream=stream)
    reply = await program.reply()
    assert asked == [(TOOL,)]
    judge(program, reply, loaded=kind == "async yes")


@streams
@ways
@cases
async def test_a_client_that_cannot_wait_loads_nothing(
    dialect: str, strategy: str, way: str, stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    asked: Asked = []
    program = Caller(way, dialect, policy(strategy, made("async yes", asked)), asynchronous=False, stream=stream)
    reply = await program.reply()
    assert asked == []
    assert "Policy.confirm is asynchronous" in caplog.text
    judge(program, reply, loaded=False)


def judge(program: Caller, reply: Any, *, loaded: bool) -> None:
    first, second = (exchange.request or {} for exchange in program.server.exchanges)
    assert calls(program.dialect, reply) == ([TOOL] if loaded else [])
    told = json.dumps(second)
    assert ("did not agree" in told) is not loaded
    assert ("the city where it happens" in told) is loaded, "its schema is nowhere before a yes"
    assert "the city where it happens" not in json.dumps(first)
    (report,) = program.reports
    assert [tool.name for tool in report.loaded] == ([TOOL] if loaded else [])


@both
@streams
@cases
async def test_a_retry_of_the_same_call_asks_again(
    dialect: str, strategy: str, stream: bool, asynchronous: bool
) -> None:
    """A yes is to one load: the round that was paid for does not stand for it in another attempt."""
    asked: Asked = []
    answers = [True, False]

    def confirm(names: tuple[str, ...]) -> bool:
        asked.append(names)
        return answers.pop(0)

    program = Caller("sdk", dialect, policy(strategy, confirm), asynchronous=asynchronous, stream=stream)
    server, failed = program.server, list[Move]()

    def failing(turn: Any) -> Move:
        if turn.results and not failed:
            failed.append(Move.fault(500))
            return failed[0]
        return plays(turn)

    server.script = Script(failing)
    with pytest.raises((openai.APIError, anthropic.APIError)):
        await program.reply()
    reply = await program.reply()
    assert asked == [(TOOL,), (TOOL,)]
    assert calls(dialect, reply) == []
    assert "did not agree" in json.dumps(server.exchanges[-1].request)
