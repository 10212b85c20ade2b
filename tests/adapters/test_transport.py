"""The transport and wrapped HTTP clients over real sockets: what goes out, what comes back, and what is left alone."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
from tests.adapters import paths
from tests.adapters.paths import settle
from tests.adapters.wire import Counting, Seen, Wire, proxy

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move, Script
from loadpoint_adapters.httpx import transport

pytestmark = pytest.mark.anyio
LIBRARIES: dict[str, Any] = {"httpx": httpx, "httpx2": httpx2}
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
libraries = pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
ways = pytest.mark.parametrize("way", ["client", "transport"])
dialects = pytest.mark.parametrize("dialect", ["chat", "responses", "messages"])
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
RESEND = Policy(strategy="resend")
POLICIES = {
    "chat": RESEND,
    "responses": Policy(endpoint="api.openai.com"),
    "messages": Policy(endpoint="api.anthropic.com"),
}


def body(dialect: str, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "Do thing 7 in Rome."}]
    if dialect == "messages":
        made = {"model": "claude-opus-4-8", "max_tokens": 500, "messages": said, "tools": paths.message_tools(100)}
    elif dialect == "chat":
        made = {"model": "gpt-5.4", "messages": said, "tools": paths.chat_tools(100)}
    else:
        tools = [{"type": "function", **tool["function"]} for tool in paths.chat_tools(100)]
        made = {"model": "gpt-5.4", "input": said, "tools": tools}
    return {**made, **more}


def server(times: int = 1) -> emulator.Emulator:
    """A model that searches and calls what it found, so many times."""

    def play(turn: Any) -> Move:
        left.append(0)
        if len(left) > 2 * times:
            raise AssertionError("too many requests")
        name = turn.search or "ToolSearch"
        return Move.call(name, {"query": "svc_tool_7"}) if len(left) % 2 else Move.call("svc_tool_7", {"city": "Rome"})

    left: list[int] = []
    return emulator.Emulator(Script(play))


@asynccontextmanager
async def opened(library: Any, way: str, policy: Policy, asynchronous: bool, **options: Any) -> Any:
    """A client of a library, wrapped or over the transport; `on_report` in `options` is for us."""
    kind = library.AsyncClient if asynchronous else library.Client
    told = {"on_report": options.pop("on_report", None)}
    if way == "client":
        client = loadpoint.wrap(kind(**options), policy, **told)
    else:
        client = kind(transport=transport(policy, **told, **options))
    async with paths.entered(client):
        yield client


def called(dialect: str, reply: Any) -> list[str]:
    if dialect == "chat":
        return [call["function"]["name"] for call in reply["choices"][0]["message"]["tool_calls"]]
    items = reply["output" if dialect == "responses" else "content"]
    return [item["name"] for item in items if item["type"] in ("function_call", "tool_use")]


def chat_reply(name: str, arguments: dict[str, Any]) -> bytes:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    return json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()


def echo(_: Seen) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/json"}, chat_reply("svc_tool_7", {"city": "Rome"})


# ------------------------------------------------------------------------------------------ over real sockets


@both
@libraries
@ways
@dialects
async def test_a_reply_is_made_of_all_rounds(dialect: str, way: str, library: Any, asynchronous: bool):
    told: list[Any] = []
    with emulator.serve(server()) as running:
        async with opened(library, way, POLICIES[dialect], asynchronous, on_report=told.append) as client:
            reply = await settle(client.post(running.url + PATHS[dialect], json=body(dialect), headers=HEADERS))
        first, second = running.server.exchanges
    assert isinstance(reply, library.Response)
    assert called(dialect, reply.json()) == ["svc_tool_7"]
    assert len(json.dumps(first.request)) < 6_000
    assert "svc_tool_7" in json.dumps(second.request)
    assert reply.elapsed.total_seconds() > 0
    assert loadpoint.report(reply).added_rounds == 1
    assert told == [loadpoint.report(reply)]
    assert reply.request.url.path == PATHS[dialect]
    assert json.loads(reply.request.content) == body(dialect)  # the caller's own


@both
@libraries
@ways
@dialects
async def test_a_stream_is_made_of_all_rounds(dialect: str, way: str, library: Any, asynchronous: bool):
    with emulator.serve(server()) as running:
        async with opened(library, way, POLICIES[dialect], asynchronous) as client:
            asked = client.build_request(
                "POST", running.url + PATHS[dialect], json=body(dialect, stream=True), headers=HEADERS
            )
            reply = await settle(client.send(asked, stream=True))
            lines = [line async for line in paths.each(reply.aiter_lines() if asynchronous else reply.iter_lines())]
            await settle(reply.aclose() if asynchronous else reply.close())
        assert len(running.server.exchanges) == 2
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
    names = json.dumps(events)
    assert "svc_tool_7" in names
    assert "ToolSearch" not in names
    report = loadpoint.report(reply)
    assert (report.added_rounds, [search.query for search in report.searches]) == (1, ["svc_tool_7"])


@both
@libraries
@ways
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_connections_are_kept(way: str, library: Any, stream: bool, asynchronous: bool):
    with emulator.serve(server(3)) as running, Counting(running.url) as between:
        async with opened(library, way, POLICIES["messages"], asynchronous) as client:
            for _ in range(3):
                asked = body("messages", stream=stream)
                reply = await settle(client.post(between.url + PATHS["messages"], json=asked, headers=HEADERS))
                assert loadpoint.report(reply).added_rounds == 1
        assert len(running.server.exchanges) == 6
        assert between.connections == 1


@both
@libraries
@ways
async def test_proxies_of_the_environment_hold(
    way: str, library: Any, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
):
    with emulator.serve(server()) as running, proxy() as between:
        address = running.url.replace("127.0.0.1", "provider.example") + PATHS["chat"]
        with monkeypatch.context() as patch:
            patch.setenv("HTTP_PROXY", between.url)
            async with opened(library, way, RESEND, asynchronous) as client:
                reply = await settle(client.post(address, json=body("chat"), headers=HEADERS))
        assert called("chat", reply.json()) == ["svc_tool_7"]
        assert [seen.path for seen in between.seen] == [address] * 2
        async with opened(library, way, RESEND, asynchronous, trust_env=False) as client:
            with pytest.raises(library.TransportError):  # nobody knows this name
                await settle(client.post("http://provider.invalid/v1/models", json={}))
        assert len(between.seen) == 2


@both
@libraries
@pytest.mark.parametrize("way", ["inner", "options", "mounts"])
async def test_a_unix_socket(way: str, library: Any, asynchronous: bool, tmp_path: Path):
    replies = [chat_reply("ToolSearch", {"query": "svc_tool_7"}), chat_reply("svc_tool_7", {"city": "Rome"})]
    path = str(tmp_path / "s")
    made_of = library.AsyncHTTPTransport if asynchronous else library.HTTPTransport
    with Wire(lambda _: (200, {"content-type": "application/json"}, replies.pop(0)), socket_path=path) as wire:
        given: dict[str, Any] = {"uds": path}
        if way == "inner":
            given = {"inner": made_of(uds=path)}
        elif way == "mounts":
            given = {"mounts": {"http://x.example": made_of(uds=path)}}
        kind = library.AsyncClient if asynchronous else library.Client
        async with paths.entered(kind(transport=transport(RESEND, **given))) as client:
            reply = await settle(client.post("http://x.example/v1/chat/completions", json=body("chat")))
    assert called("chat", reply.json()) == ["svc_tool_7"]
    assert len(wire.seen) == 2


def test_threads_share_a_transport():
    with emulator.serve(server(8)) as running:
        lock = threading.Lock()
        found: list[Any] = []
        with httpx2.Client(transport=transport(RESEND)) as client:

            def ask() -> None:
                with lock:  # the script is one for all
                    reply = client.post(running.url + PATHS["chat"], json=body("chat"), headers=HEADERS)
                found.append(called("chat", reply.json()))

            threads = [threading.Thread(target=ask) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    assert found == [["svc_tool_7"]] * 8


# ------------------------------------------------------------------------------------------------- what comes back


@both
@libraries
@pytest.mark.parametrize("driven", [False, True], ids=["passed", "driven"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_compressed_replies(stream: bool, driven: bool, library: Any, asynchronous: bool):
    called_first, called_then = (
        chat_reply("ToolSearch", {"query": "svc_tool_7"}),
        chat_reply("svc_tool_7", {"city": "Rome"}),
    )
    replies = [called_first, called_then] if driven else [called_then]

    def answer(_: Seen) -> tuple[int, dict[str, str], bytes]:
        content = replies.pop(0)
        kind = "application/json"
        if stream:
            whole = json.loads(content)
            choice = whole["choices"][0]
            call = {"index": 0, **choice["message"]["tool_calls"][0]}
            chunk = {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
            sent = {**whole, "object": "chat.completion.chunk", "choices": [chunk]}
            content, kind = f"data: {json.dumps(sent)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"
        return 200, {"content-type": kind, "content-encoding": "gzip"}, gzip.compress(content)

    asked = body("chat", stream=stream)
    with Wire(answer) as wire:
        async with opened(library, "client", RESEND, asynchronous) as client:
            headers = {} if driven else {"x-loadpoint": "off"}
            reply = await settle(client.post(wire.url + PATHS["chat"], json=asked, headers=headers))
    assert "svc_tool_7" in reply.text
    assert "ToolSearch" not in reply.text
    assert len(wire.seen) == 1 + driven


@both
@libraries
async def test_an_error_comes_as_it_was(library: Any, asynchronous: bool):
    said = json.dumps({"error": {"message": "no", "type": "invalid_request_error"}}).encode()
    headers = {"content-type": "application/json", "x-request-id": "req_1", "content-encoding": "gzip"}
    with Wire(lambda _: (400, headers, gzip.compress(said, mtime=0))) as wire:
        async with opened(library, "client", RESEND, asynchronous) as client:
            reply = await settle(client.post(wire.url + PATHS["chat"], json=body("chat")))
            raw = client.build_request("POST", wire.url + PATHS["chat"], json=body("chat"))
            bare = await settle(client.send(raw, stream=True))
            read = bare.aiter_raw() if asynchronous else bare.iter_raw()
            content = b"".join([chunk async for chunk in paths.each(read)])
    assert (reply.status_code, reply.content, reply.headers["x-request-id"]) == (400, said, "req_1")
    assert reply.headers["content-encoding"] == "gzip"
    assert content == gzip.compress(said, mtime=0)
    assert wire.connections == 1


@both
@libraries
async def test_redirects_are_the_clients_own(library: Any, asynchronous: bool):
    def answer(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        if seen.path.startswith("/v1/"):
            return 307, {"location": "/v2" + seen.path[3:]}, b""
        return echo(seen)

    with Wire(answer) as wire:
        kind = library.AsyncClient if asynchronous else library.Client
        async with paths.entered(loadpoint.wrap(kind(follow_redirects=True), RESEND)) as client:
            reply = await settle(client.post(wire.url + PATHS["chat"], json=body("chat")))
    assert called("chat", reply.json()) == ["svc_tool_7"]
    assert [each.status_code for each in reply.history] == [307]
    assert [len(seen.body) < 6_000 for seen in wire.seen] == [True, True]


@libraries
def test_half_a_character_stops_nothing(library: Any):
    """Escaped, half a surrogate pair is valid JSON; it has no UTF-8."""
    with Wire(echo) as wire, loadpoint.wrap(library.Client(), RESEND) as client:
        text = json.dumps(body("chat", user="\ud83d"))
        client.post(wire.url + PATHS["chat"], content=text, headers={"content-type": "application/json"})
    assert json.loads(wire.seen[0].body)["user"] == "\ufffd"
    assert len(wire.seen[0].body) < len(text) / 2


def test_without_any_sdk():
    """The dialects need none."""
    code = (
        "import sys, json\n"
        "sys.modules.update(dict.fromkeys(('openai', 'anthropic', 'litellm')))\n"
        "import httpx2, loadpoint\n"
        "from loadpoint_adapters.httpx import transport\n"
        "def answer(request):\n"
        "    sent.append(len(request.content)); return httpx2.Response(200, json={'choices': []})\n"
        "sent = []\n"
        "tools = [{'type': 'function', 'function': {'name': f't{i}', 'description': 'x' * 400, 'parameters': {}}}"
        " for i in range(99)]\n"
        "body = {'model': 'm', 'messages': [{'role': 'user', 'content': 'hi'}], 'tools': tools}\n"
        "policy = loadpoint.Policy(strategy='resend')\n"
        "for client in (loadpoint.wrap(httpx2.Client(transport=httpx2.MockTransport(answer)), policy),\n"
        "               httpx2.Client(transport=transport(policy, inner=httpx2.MockTransport(answer)))):\n"
        "    client.post('https://x.example/v1/chat/completions', json=body)\n"
        "print(sent, len(json.dumps(body)), 'httpx' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    sent, whole, *_ = run.stdout.strip().replace("[", "").replace("]", "").rsplit(" ", 2)
    assert all(int(size) < int(whole) / 4 for size in sent.split(", "))
    assert run.stdout.strip().endswith("False")


def test_an_sdk_with_its_defaults():
    """The recommended way: the SDK's own HTTP client, wrapped, keeps its timeouts, limits and proxies."""
    http = openai.DefaultHttpxClient()
    wrapped = loadpoint.wrap(http, RESEND)
    assert (wrapped.timeout, wrapped.follow_redirects) == (http.timeout, True)
    with emulator.serve(server()) as running:
        client = openai.OpenAI(api_key="k", base_url=running.url + "/v1", http_client=wrapped)
        reply = client.chat.completions.create(**body("chat"))
        client.close()
    assert [call.function.name for call in reply.choices[0].message.tool_calls or ()] == ["svc_tool_7"]
