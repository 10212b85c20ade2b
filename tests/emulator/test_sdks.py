"""The real SDK clients, sync and async, streamed or not, over a socket and in process, read what the script plays."""

from __future__ import annotations

import asyncio
import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic
import httpx
import openai
import pytest
from tests.emulator.support import CHAT_MODEL, CLAUDE, STRING, Json, chat_client, chat_tool, claude_client, tool, user

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move

ARGUMENTS = {"channel": "#releases", "text": 'say "hi" — ünïcode'}
MOVE = Move(
    thinking="Which tool? The one for Slack.", text="I will post that.", calls=[("post", ARGUMENTS), ("ping", {})]
)
CHAT: Json = {
    "model": CHAT_MODEL,
    "messages": [user("post it")],
    "tools": [chat_tool("post", channel=STRING, text=STRING), chat_tool("ping")],
}
MESSAGES: Json = {
    "model": CLAUDE,
    "max_tokens": 500,
    "messages": [user("post it")],
    "tools": [tool("post", properties={"channel": STRING, "text": STRING}), tool("ping")],
    "thinking": {"type": "adaptive"},
}


@pytest.fixture(params=["in process", "served"])
def wire(request: pytest.FixtureRequest) -> Iterator[tuple[Emulator, Any]]:
    """An emulator and what makes constructor arguments for an SDK client of it."""
    server = Emulator([MOVE] * 9)
    if request.param == "in process":
        yield (
            server,
            lambda sdk, asynchronous=False: {
                "api_key": "k",
                "http_client": emulator.http_client(sdk, server, asynchronous=asynchronous),
            },
        )
        return
    with emulator.serve(server) as running:
        paths = {"openai": "/v1", "anthropic": ""}
        yield server, lambda sdk, **_: {"api_key": "k", "base_url": running.url + paths[sdk]}


def opened(client: Any) -> Any:
    """Requests of these tests are plain JSON: no types of an SDK."""
    return client


def check_chat(message: Any) -> None:
    assert message.content == "I will post that."
    assert [(made.function.name, json.loads(made.function.arguments)) for made in message.tool_calls] == [
        ("post", ARGUMENTS),
        ("ping", {}),
    ]
    assert all(made.id.startswith("call_") and len(made.id) == 29 for made in message.tool_calls)


def check_message(message: Any) -> None:
    assert [block.type for block in message.content] == ["thinking", "text", "tool_use", "tool_use"]
    assert message.content[2].input == ARGUMENTS
    assert message.content[3].input == {}
    assert message.content[2].caller.type == "direct"
    assert message.content[0].signature
    assert message.stop_reason == "tool_use"
    assert len(message.id) == len("msg_") + 24


def test_chat(wire: Any):
    server, arguments = wire
    client: Any = openai.OpenAI(**arguments("openai"))
    raw = client.chat.completions.with_raw_response.create(**CHAT)
    reply = raw.parse()
    check_chat(reply.choices[0].message)
    assert reply.choices[0].finish_reason == "tool_calls"
    assert raw.headers["x-request-id"] == reply._request_id
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    exchange = server.exchanges[0]
    assert (exchange.dialect, exchange.endpoint, exchange.status, exchange.method) == (
        "openai.chat",
        "create",
        200,
        "POST",
    )
    assert exchange.path == "/v1/chat/completions"
    assert exchange.request == {**CHAT} == json.loads(exchange.raw)
    assert exchange.reply == json.loads(raw.text)
    assert exchange.delivery == "complete"
    assert reply.usage.prompt_tokens == exchange.input_tokens == exchange.tokens.total


def test_chat_streamed(wire: Any):
    server, arguments = wire
    client: Any = openai.OpenAI(**arguments("openai"))
    with client.chat.completions.stream(**CHAT, stream_options={"include_usage": True}) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    check_chat(final.choices[0].message)
    assert final.usage.prompt_tokens == server.exchanges[0].tokens.total
    assert kinds.count("content.delta") > 1
    assert kinds.count("tool_calls.function.arguments.delta") > 3
    chunks = list(client.chat.completions.create(**CHAT, stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    assert all(chunk.usage is None for chunk in chunks)
    assert len({chunk.id for chunk in chunks}) == 1


def test_chat_asynchronous(wire: Any):
    _, arguments = wire

    async def run() -> None:
        async with opened(openai.AsyncOpenAI(**arguments("openai", asynchronous=True))) as client:
            reply = await client.chat.completions.create(**CHAT)
            check_chat(reply.choices[0].message)
            async with client.chat.completions.stream(**CHAT) as stream:
                check_chat((await stream.get_final_completion()).choices[0].message)

    asyncio.run(run())


def test_messages(wire: Any):
    server, arguments = wire
    client: Any = anthropic.Anthropic(**arguments("anthropic"))
    raw = client.messages.with_raw_response.create(**MESSAGES)
    reply = raw.parse()
    check_message(reply)
    assert raw.headers["request-id"] == reply._request_id
    assert server.exchanges[0].reply == json.loads(raw.http_response.text)
    assert reply.usage.input_tokens == server.exchanges[0].tokens.total
    check_message(client.beta.messages.create(**MESSAGES))


def test_messages_streamed(wire: Any):
    server, arguments = wire
    client: Any = anthropic.Anthropic(**arguments("anthropic"))
    with client.messages.stream(**MESSAGES) as stream:
        kinds = [event.type for event in stream]
        check_message(stream.get_final_message())
    assert {"text", "thinking", "signature", "input_json", "message_stop"} <= set(kinds)
    events = list(client.messages.create(**MESSAGES, stream=True))
    assert [event.type for event in events[:2]] == ["message_start", "content_block_start"]
    assert [event.type for event in events[-2:]] == ["message_delta", "message_stop"]
    assert events[0].message.stop_reason is None
    assert events[-2].usage.input_tokens == server.exchanges[1].tokens.total
    assert events[-2].usage.output_tokens == server.exchanges[1].output_tokens > 1
    assert sum(event.type == "content_block_delta" for event in events) > 8


def test_messages_asynchronous(wire: Any):
    _, arguments = wire

    async def run() -> None:
        async with opened(anthropic.AsyncAnthropic(**arguments("anthropic", asynchronous=True))) as client:
            check_message(await client.messages.create(**MESSAGES))
            async with client.messages.stream(**MESSAGES) as stream:
                check_message(await stream.get_final_message())

    asyncio.run(run())


def test_nothing_that_is_sent_makes_an_sdk_warn():
    hosted = [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}},
        {
            "type": "tool_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": {"type": "tool_search_tool_search_result", "tool_references": []},
        },
    ]
    server = Emulator([MOVE.but(blocks=hosted)] * 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client = claude_client(server)
        reply = client.messages.create(**MESSAGES)
        with client.messages.stream(**MESSAGES) as stream:
            streamed = stream.get_final_message()
        json.dumps([reply.model_dump(mode="json"), streamed.model_dump(mode="json")])
    kinds = ["thinking", "text", "server_tool_use", "tool_search_tool_result", "tool_use", "tool_use"]
    assert [block.type for block in reply.content] == [block.type for block in streamed.content] == kinds
    assert type(reply.content[3]).__name__ == "ToolSearchToolResultBlock"


def test_the_real_base_url_is_kept():
    server = Emulator([MOVE] * 2)
    chat = chat_client(server)
    chat.chat.completions.create(**CHAT)
    claude_client(server).messages.create(**MESSAGES)
    assert [exchange.url.split("?")[0] for exchange in server.exchanges] == [
        "https://api.openai.com/v1/chat/completions",
        "https://api.anthropic.com/v1/messages",
    ]
    assert emulator.http_client("openai", server).emulator is server


def test_azure_vertex_and_bedrock_paths_are_known():
    server = Emulator([MOVE] * 3)
    azure: Any = openai.AzureOpenAI(
        api_key="k",
        api_version="2024-10-21",
        azure_endpoint="https://corp.openai.azure.com",
        http_client=emulator.http_client("openai", server),
    )
    check_chat(azure.chat.completions.create(**CHAT).choices[0].message)
    vertex: Any = anthropic.AnthropicVertex(
        region="global",
        project_id="p",
        access_token="t",
        http_client=emulator.http_client("anthropic", server),
    )
    with vertex.messages.stream(**MESSAGES) as stream:
        check_message(stream.get_final_message())
    bedrock: Any = anthropic.AnthropicBedrock(
        aws_access_key="a",
        aws_secret_key="s",
        aws_region="us-east-1",
        http_client=emulator.http_client("anthropic", server),
    )
    check_message(bedrock.messages.create(**{**MESSAGES, "model": "anthropic.claude-opus-4-6-v1:0"}))
    assert [exchange.warnings for exchange in server.exchanges] == [(), (), ()]


def test_legacy_httpx_is_served_too():
    server = Emulator([MOVE])
    client = emulator.http_client("openai", server, legacy=True)
    assert isinstance(client, httpx.Client)
    reply = client.post("https://api.openai.com/v1/chat/completions", json=CHAT, headers={"authorization": "Bearer k"})
    assert reply.json()["choices"][0]["finish_reason"] == "tool_calls"


def test_unless_key(monkeypatch: pytest.MonkeyPatch):
    client: Any = openai.OpenAI(**emulator.unless_key("OPENAI_API_KEY"))
    reply = client.chat.completions.create(model=CHAT_MODEL, messages=[user("hello")])
    assert reply.choices[0].message.content.startswith("Hello")
    other: Any = anthropic.AsyncAnthropic(**emulator.unless_key("ANTHROPIC_API_KEY", asynchronous=True))
    said = asyncio.run(other.messages.create(model=CLAUDE, max_tokens=9, messages=[user("hello")]))
    assert said.content[0].text.startswith("Hello")
    monkeypatch.setenv("OPENAI_API_KEY", "real")
    assert emulator.unless_key("OPENAI_API_KEY") == {}
    with pytest.raises(ValueError, match="allowed: 'OPENAI_API_KEY'"):
        emulator.unless_key("GEMINI_API_KEY")
    with pytest.raises(ValueError, match="'gemini' is no SDK"):
        emulator.http_client("gemini")  # type: ignore[arg-type]


def test_a_served_reply_is_not_held_back():
    with emulator.serve(Emulator([MOVE] * 21)) as running:
        client: Any = openai.OpenAI(api_key="k", base_url=running.url + "/v1")
        client.chat.completions.create(**CHAT)
        fastest = min(timed(lambda: client.chat.completions.create(**CHAT)) for _ in range(20))
    assert fastest < 0.03  # Nagle's algorithm would hold every reply back for 40 ms


def timed(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def test_ids_are_the_same_in_every_run_and_differ_between_requests():
    def ids(seed: str) -> list[str]:
        client = chat_client(Emulator([MOVE] * 2, seed=seed))
        replies = [client.chat.completions.create(**CHAT) for _ in range(2)]
        return [made.id for reply in replies for made in reply.choices[0].message.tool_calls]

    assert ids("") == ids("")
    assert len({*ids(""), *ids("other")}) == 8


def test_unknown_paths_and_bodies_are_answered():
    server = Emulator()
    assert server.handle("GET", "https://api.openai.com/v1/models", {}, b"").status == 404
    assert server.handle("POST", "https://api.openai.com/v1/chat/completions", {}, b"[1]").status == 400
    assert [exchange.status for exchange in server.exchanges] == [404, 400]


def test_reset_forgets_everything_and_starts_the_script_again():
    server = Emulator([Move(text="one"), Move(text="two")])
    client = chat_client(server)
    request: Any = {"model": CHAT_MODEL, "messages": [user("x " * 4000)]}
    assert client.chat.completions.create(**request).choices[0].message.content == "one"
    server.reset()
    assert server.exchanges == []
    assert client.chat.completions.create(**request).choices[0].message.content == "one"
    assert server.exchanges[0].cached_tokens == 0
    server.reset([Move(text="three")])
    assert client.chat.completions.create(**request).choices[0].message.content == "three"
    assert server.requests == [request]


def test_threads_may_share_an_emulator():
    server = Emulator(lambda turn: Move(text=turn.text))
    chat, claude = chat_client(server), claude_client(server)

    def ask(at: int) -> bool:
        text = f"number {at}"
        if at % 2:
            with claude.messages.stream(**{**MESSAGES, "messages": [user(text)]}) as stream:
                return bool(stream.get_final_text() == text)
        reply = chat.chat.completions.create(**{**CHAT, "messages": [user(text)]})
        return bool(reply.choices[0].message.content == text)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(80)))
    assert sorted(exchange.number for exchange in server.exchanges) == list(range(1, 81))


def test_importing_the_emulator_loads_nothing_heavy():
    import subprocess
    import sys

    heavy = "{'starlette', 'uvicorn', 'httpx2', 'httpx', 'openai', 'anthropic', 'tiktoken', 'pydantic', 'asyncio'}"
    code = f"import sys, loadpoint.emulator; print(sorted({heavy} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.strip() == "[]"
