"""Every way through the SDKs: the caller sees the real call only, and two requests are sent instead of one big one."""

from __future__ import annotations

import operator
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters import paths

import loadpoint
from loadpoint import emulator
from loadpoint.emulator import Move

MODELS = {"openai": "gpt-5.4", "anthropic": "claude-opus-4-8"}
CLIENTS: dict[tuple[str, bool], type[Any]] = {
    ("openai", False): openai.OpenAI,
    ("openai", True): openai.AsyncOpenAI,
    ("anthropic", False): anthropic.Anthropic,
    ("anthropic", True): anthropic.AsyncAnthropic,
}
EVERY = [(path, walk) for path, walks in paths.PATHS.items() for walk in walks]


def searching() -> emulator.Emulator:
    """A model that searches once and then calls what it found."""
    return emulator.Emulator(
        emulator.Script.sequence(
            [Move.call("ToolSearch", {"query": "svc_tool_7"}), Move.call("svc_tool_7", {"city": "Rome"})]
        )
    )


def client(sdk: str, server: emulator.Emulator, *, asynchronous: bool = False, **options: Any) -> Any:
    http = emulator.http_client(sdk, server, asynchronous=asynchronous)  # type: ignore[arg-type]
    return CLIENTS[sdk, asynchronous](api_key="k", http_client=http, **options)


def request(sdk: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": MODELS[sdk], "messages": [{"role": "user", "content": "Do thing 7 in Rome."}]}
    if sdk == "anthropic":
        return {**body, "max_tokens": 500, "tools": paths.message_tools()}
    return {**body, "tools": paths.chat_tools()}


def shown(sent: Any) -> list[str]:
    """The tools whose schemas are in the model's context."""
    tools = sent.get("tools", ())  # a request that continues a thread brings none
    return [str(tool.get("name") or tool["function"]["name"]) for tool in tools if not tool.get("defer_loading")]


@pytest.mark.anyio
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize(("path", "walk"), EVERY, ids=[f"{path}-{walk.__name__}" for path, walk in EVERY])
async def test_the_discovery_stays_hidden(path: str, walk: paths.Walk, asynchronous: bool):
    sdk, _, dotted = path.partition(":")
    server = searching()
    wrapped = loadpoint.wrap(client(sdk, server, asynchronous=asynchronous))
    api = operator.attrgetter(dotted.rpartition(".")[0])(wrapped)

    calls, reported = await walk(api, request(sdk))

    assert calls == paths.WANTED
    first, second = server.exchanges
    assert shown(first.request) == ["ToolSearch"]
    assert "svc_tool_7" in shown(second.request) or "svc_tool_7" in second.loaded
    report = loadpoint.report(reported)
    assert report.added_rounds == 1
    assert [search.query for search in report.searches] == ["svc_tool_7"]


@pytest.mark.anyio
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
async def test_copies_stay_wrapped(sdk: str, asynchronous: bool):
    server = searching()
    wrapped = loadpoint.wrap(client(sdk, server, asynchronous=asynchronous)).with_options(timeout=5).copy(max_retries=1)
    api = wrapped.chat.completions if sdk == "openai" else wrapped.messages
    calls, _ = await (paths.chat_create if sdk == "openai" else paths.create)(api, request(sdk))
    assert (calls, len(server.exchanges)) == (paths.WANTED, 2)
    assert type(wrapped) is type(loadpoint.wrap(client(sdk, server, asynchronous=asynchronous)))


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_the_generic_call_is_covered(sdk: str):
    server = searching()
    wrapped = loadpoint.wrap(client(sdk, server))
    path = "/chat/completions" if sdk == "openai" else "/v1/messages"
    reply: Any = wrapped.post(path, cast_to=object, body=request(sdk))
    assert isinstance(reply, dict)
    assert len(server.exchanges) == 2
    assert loadpoint.report(reply).added_rounds == 1
