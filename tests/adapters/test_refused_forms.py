"""A provider that refuses a native form: every way through the SDKs goes on in the next one, within the call."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters import paths, response_paths
from tests.adapters.paths import settle
from tests.adapters.test_paths import client, request
from tests.adapters.test_response_paths import EVERY

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Answer, Emulator, Move, Piece, Script
from loadpoint_adapters.anthropic import middleware

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
TOOL = "svc_tool_7"
NATIVE = Policy(strategy="native")
WALKS = [
    (path.partition(":")[2], walk)
    for path, walks in paths.PATHS.items()
    if path.startswith("anthropic:")
    for walk in walks
]
every = pytest.mark.parametrize(("path", "walk"), WALKS, ids=[f"{path}-{walk.__name__}" for path, walk in WALKS])
TAG = "messages.2.content.0: Input tag 'tool_reference' found using 'type' does not match any of the expected tags"
SEARCH = "Tool 'tool_search' is not supported with gpt-5.4."


class Refusing(Emulator):
    """Answers 400 to every request that holds `mark`."""

    def __init__(self, script: Script, mark: str, message: str) -> None:
        super().__init__(script)
        self.mark, self.message = mark, message
        self.refused = 0

    def handle(self, method: str, url: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """The refusal, or what the emulator says."""
        if self.mark.encode() not in body:
            return super().handle(method, url, headers, body)
        self.refused += 1
        said = {"type": "error", "error": {"type": "invalid_request_error", "message": self.message}}
        return Answer(400, {"content-type": "application/json"}, (Piece(json.dumps(said).encode()),))


def script(*moves: Move) -> Script:
    """The moves, with the loader called by the name that the emulator has for the model's own search."""
    left = list(moves)

    def play(turn: Any) -> Move:
        move = left.pop(0)
        return move.but(calls=[(turn.search or "ToolSearch" if c[0] == "find" else c[0], *c[1:]) for c in move.calls])

    return Script(play)


def searching(mark: str, message: str) -> Refusing:
    return Refusing(script(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"})), mark, message)


def kept(server: Refusing, reported: Any) -> None:
    """One refusal, no round twice, and a report that says so."""
    assert server.refused == 1
    assert len(server.exchanges) == 2
    assert all(exchange.warnings == () for exchange in server.exchanges)
    report = loadpoint.report(reported)
    assert report.added_rounds == 1
    assert report.strategy in ("resend", "native")
    assert [text for text in report.warnings if "refused" in text]


@every
@both
async def test_references_that_are_refused_in_a_later_round(path: str, walk: paths.Walk, asynchronous: bool):
    server = searching("tool_reference", TAG)
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), NATIVE)
    calls, reported = await walk(operator.attrgetter(path.rpartition(".")[0])(wrapped), request("anthropic"))
    assert calls == paths.WANTED
    kept(server, reported)


@both
@pytest.mark.parametrize(
    "walk", [w for path, ws in paths.PATHS.items() if path.startswith("anthropic:messages") for w in ws]
)
async def test_the_middleware_goes_on_too(walk: paths.Walk, asynchronous: bool):
    server = searching("tool_reference", TAG)
    http = emulator.http_client("anthropic", server, asynchronous=asynchronous)
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    plain = kind(api_key="k", http_client=http, middleware=[middleware(NATIVE)])
    calls, reported = await walk(plain.messages, request("anthropic"))
    assert calls == paths.WANTED
    kept(server, reported)


@both
@pytest.mark.parametrize(("path", "walk"), EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in EVERY])
async def test_a_search_that_is_refused_in_the_first_round(path: str, walk: paths.Walk, asynchronous: bool):
    server = searching('"tool_search"', SEARCH)
    http = emulator.http_client("openai", server, asynchronous=asynchronous)
    kind: Any = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    wrapped = loadpoint.wrap(kind(api_key="k", http_client=http), NATIVE)
    given = {"model": "gpt-5.4", "input": "Do thing 7 in Rome.", "tools": response_paths.tools()}
    way = path.partition(":")[2].rpartition(".")[0]
    calls, reported = await walk(operator.attrgetter(way)(wrapped), given)
    assert calls == paths.WANTED
    kept(server, reported)


@both
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("wrapped", [True, False], ids=["wrap", "middleware"])
async def test_another_error_is_the_sdks_own_and_keeps_its_body(asynchronous: bool, stream: bool, wrapped: bool):
    server = searching("tool_reference", "messages: too many images")
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    http = emulator.http_client("anthropic", server, asynchronous=asynchronous)
    between: dict[str, Any] = {} if wrapped else {"middleware": [middleware(NATIVE)]}
    made = kind(api_key="k", http_client=http, **between)
    made = loadpoint.wrap(made, NATIVE) if wrapped else made

    async def ask() -> None:
        answer = await settle(made.messages.create(**request("anthropic"), stream=stream))
        if stream:
            async for _ in paths.each(answer):
                pass

    with pytest.raises(anthropic.BadRequestError, match="too many images") as caught:
        await ask()
    assert caught.value.body == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "messages: too many images"},
    }
    assert server.refused == 1


@both
async def test_a_copy_of_the_client_knows_what_was_refused(asynchronous: bool):
    moves = [Move.call("find", {"query": TOOL}), Move(text="one"), Move.call("find", {"query": TOOL}), Move(text="two")]
    server = Refusing(script(*moves), "tool_reference", TAG)
    wrapped = loadpoint.wrap(client("anthropic", server, asynchronous=asynchronous), NATIVE)
    await settle(wrapped.messages.create(**request("anthropic")))
    copy = wrapped.with_options(max_retries=0)
    reply = await settle(copy.messages.create(**request("anthropic")))
    assert reply.content[0].text == "two"
    assert server.refused == 1
