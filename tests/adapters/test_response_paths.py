"""Every way through the responses of the openai SDK, at each load point."""

from __future__ import annotations

import json
import operator
from typing import Any

import openai
import pytest
from tests.adapters import paths, response_paths

import loadpoint
from loadpoint import emulator
from loadpoint.emulator import Move

MODELS = {"gpt-5.4": "tool_search", "gpt-5.2": "additional_tools"}
EVERY = [(path, walk) for path, walks in response_paths.PATHS.items() for walk in walks]
BOTH = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
TOOL = "svc_tool_7"


def served(*moves: Move) -> emulator.Emulator:
    """A model that plays these moves; a call of `find` is one of whatever finds tools."""
    left = list(moves)

    def play(turn: Any) -> Move:
        move = left.pop(0)
        name = turn.search or "ToolSearch"
        return move.but(calls=[(name if call[0] == "find" else call[0], *call[1:]) for call in move.calls])

    return emulator.Emulator(emulator.Script(play))


def searching(*, changing: bool = False) -> emulator.Emulator:
    """A model that searches once and then calls what it found."""
    found = Move.call("find", {"query": TOOL}, thinking="where is it", changing_call_ids=changing)
    return served(found, Move.call(TOOL, {"city": "Rome"}))


def client(server: emulator.Emulator, *, asynchronous: bool = False, kind: Any = None, **options: Any) -> Any:
    http = emulator.http_client("openai", server, asynchronous=asynchronous)
    made = kind or (openai.AsyncOpenAI if asynchronous else openai.OpenAI)
    return made(**{"api_key": "k", "http_client": http, **options})


def request(model: str = "gpt-5.4") -> dict[str, Any]:
    return {"model": model, "input": "Do thing 7 in Rome.", "tools": response_paths.tools()}


def names(sent: Any) -> list[str]:
    return [str(tool.get("name") or tool["type"]) for tool in sent.get("tools", ())]


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("path", "walk"), EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in EVERY])
async def test_the_discovery_stays_hidden(path: str, walk: paths.Walk, model: str, asynchronous: bool) -> None:
    server = searching()
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous))
    api = operator.attrgetter(path.partition(":")[2].rpartition(".")[0])(wrapped)

    calls, reported = await walk(api, request(model))

    assert calls == paths.WANTED
    first, second = server.exchanges
    assert (
        names(first.request or {})
        == names(second.request or {})
        == ["tool_search" if model == "gpt-5.4" else "ToolSearch"]
    )
    assert TOOL in second.loaded
    report = loadpoint.report(reported)
    assert (report.added_rounds, report.load_point) == (1, MODELS[model])
    assert [search.query for search in report.searches] == [TOOL]


@pytest.mark.anyio
@BOTH
async def test_the_stream_helper_bears_a_search_whose_call_id_changes(asynchronous: bool) -> None:
    """It raises for such an item (3.57); ours is not shown, and answered under the id that counts."""
    server = searching(changing=True)
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous))
    calls, _ = await response_paths.helper(wrapped.responses, request())
    assert calls == paths.WANTED


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize("stream", [False, True])
async def test_azure_takes_the_native_form_too(stream: bool, asynchronous: bool) -> None:
    server = searching()
    kind = openai.AsyncAzureOpenAI if asynchronous else openai.AzureOpenAI
    options = {"azure_endpoint": "https://x.openai.azure.com", "api_version": "2026-11-01"}
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous, kind=kind, **options))
    calls, reported = await (response_paths.streamed if stream else response_paths.create)(wrapped.responses, request())
    assert calls == paths.WANTED
    assert loadpoint.report(reported).load_point == "tool_search"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_a_reply_is_continued_by_its_id(model: str, stream: bool) -> None:
    """Streamed, the caller knows the id of the first round; the server is asked by that of the last one."""
    moves = [Move(text="It is done."), Move.call(TOOL, {"city": "Oslo"})]
    server = served(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}), *moves)
    wrapped = loadpoint.wrap(client(server))
    given = request(model)
    reply = _answer(wrapped, given, stream)
    output = [{"type": "function_call_output", "call_id": reply.output[-1].call_id, "output": "done"}]
    reply = _answer(wrapped, {**given, "input": output, "previous_response_id": reply.id}, stream)
    assert reply.output_text == "It is done."
    assert (server.exchanges[-1].request or {})["input"] == output
    reply = _answer(wrapped, {**given, "input": "And in Oslo?", "previous_response_id": reply.id}, stream)
    assert response_paths.calls(reply) == [(TOOL, {"city": "Oslo"})]
    assert len({json.dumps((exchange.request or {})["tools"]) for exchange in server.exchanges}) == 1


def _answer(wrapped: Any, given: Any, stream: bool) -> Any:
    if not stream:
        return wrapped.responses.create(**given)
    with wrapped.responses.stream(**given) as events:
        return events.get_final_response()


def test_counting_counts_what_would_be_sent() -> None:
    server = served()
    plain, wrapped = client(server), loadpoint.wrap(client(server))
    given = request()
    many = plain.responses.input_tokens.count(**given).input_tokens
    few = wrapped.responses.input_tokens.count(**given).input_tokens
    assert few < many / 10
    assert names(server.exchanges[-1].request) == ["tool_search"]


def test_the_beta_counts_alike() -> None:
    server = served()
    wrapped = loadpoint.wrap(client(server))
    assert wrapped.beta.responses.input_tokens.count(**request()).input_tokens < 2_000


def test_a_response_in_the_background_passes_with_the_reason() -> None:
    server = served(Move(text="later"))
    reply = loadpoint.wrap(client(server)).responses.create(**request(), background=True)
    assert len((server.exchanges[0].request or {})["tools"]) == 150
    assert "background" in loadpoint.report(reply).reason
