"""A real LiteLLM Proxy with two workers on loopback, a real Redis, and a conversation that hops between the workers."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, search, tools
from tests.servers.redis_server import RedisServer, environment, free_port, until

from loadpoint.emulator import Emulator, Move, Script, serve

Json = dict[str, Any]
MISSING = [
    name
    for name in ("litellm", "fastapi", "fastapi_sso", "uvicorn", "uvloop", "orjson", "apscheduler", "backoff", "semver")
    if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"the extra loadpoint[proxy-tests] is missing: {MISSING}"),
]

CONFIG = """
model_list:
  - model_name: gpt
    litellm_params: {{model: openai/gpt-5.4, api_base: "{url}/v1", api_key: sk-up}}
  - model_name: claude
    litellm_params: {{model: anthropic/claude-opus-4-8, api_base: "{url}", api_key: sk-up}}
litellm_settings:
  callbacks: hooks.hook
general_settings:
  master_key: sk-master
"""
HOOKS = """
import json, os
from loadpoint_adapters.litellm import ProxyHook

def told(report):
    line = {"process": os.getpid(), "strategy": report.strategy, "broke": report.prefix.broke}
    with open(os.environ["REPORTS"], "a") as out:
        out.write(json.dumps(line) + "\\n")

hook = ProxyHook(on_report=told)
"""
POLICY = {"threshold_tokens": 0, "endpoint": "api.anthropic.com"}
WANTED = ("invoice_create", "photo_list", "parcel_rename", "event_list", "ticket_archive", "metric_export")
TURNS = 30


@dataclass
class Fleet:
    """The Proxy in front of the emulator."""

    url: str
    server: Emulator
    reports: Path
    redis: RedisServer
    moves: list[Move]

    def post(self, path: str, body: Json) -> Any:
        """The reply to a request on a connection of its own, so that any worker may answer; a stream as its text."""
        import httpx

        headers = {"authorization": "Bearer sk-master", "anthropic-version": "2023-06-01", "connection": "close"}
        answer = httpx.post(self.url + path, json=body, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        assert not self.moves, "not every move was played"
        return answer.text if body.get("stream") else answer.json()

    def told(self) -> list[Json]:
        """The reports of all workers."""
        return [json.loads(line) for line in self.reports.read_text(encoding="utf-8").splitlines()]

    def bodies(self) -> list[Json]:
        """What arrived at the emulator."""
        return [each.request for each in self.server.exchanges if each.request]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    redis = RedisServer(tmp_path)
    moves: list[Move] = []
    server = Emulator(Script(lambda _: moves.pop(0)))
    place = tmp_path / "a" / "b" / "c"  # the Proxy looks for modules two folders up
    place.mkdir(parents=True)
    with serve(server) as running:
        (place / "config.yaml").write_text(CONFIG.format(url=running.url), encoding="utf-8")
        (place / "hooks.py").write_text(HOOKS, encoding="utf-8")
        settings = environment(
            LOADPOINT_REDIS_URL=redis.url,
            LOADPOINT_POLICY=json.dumps(POLICY),
            LITELLM_LOCAL_MODEL_COST_MAP="True",
            LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS="True",
            REPORTS=str(place / "reports"),
        )
        try:
            with _proxy(place, settings) as port:
                yield Fleet(f"http://127.0.0.1:{port}", server, place / "reports", redis, moves)
        finally:
            redis.stop()


@contextmanager
def _proxy(place: Path, settings: dict[str, str]) -> Iterator[int]:
    """The port of a Proxy that has started; nothing of it is left afterwards."""
    for attempt in range(3):
        port = free_port()
        command = [sys.executable, "-c", "from litellm_cli.main import proxy_server; proxy_server()"]
        command += ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port), "--num_workers", "2"]
        with (place / f"log{attempt}").open("w+b") as log:
            proxy = subprocess.Popen(  # noqa: S603
                command,
                cwd=place,
                env=settings,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                if not _started(proxy, Path(log.name)):
                    continue
                yield port
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(proxy.pid, signal.SIGKILL)  # the workers too, also where their parent has ended
                proxy.wait()
        until(partial(_silent, port))  # else a worker is still there
        return
    pytest.fail("every port that was free was taken before the Proxy had it")


def _silent(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def _started(proxy: subprocess.Popen[bytes], log: Path, seconds: float = 240) -> bool:
    """Wait until both workers have started: False if somebody else has taken the port meanwhile."""
    end = time.monotonic() + seconds
    while (text := log.read_text(encoding="utf-8", errors="replace")).count("Application startup complete") < 2:
        if "address already in use" in text.lower():
            return False
        assert proxy.poll() is None, text[-3000:]
        assert time.monotonic() < end, text[-3000:]
        time.sleep(0.2)
    return True


def _calls(reply: Any, *, stream: bool) -> list[Json]:
    """The blocks of a reply as a client puts them into its history."""
    if not stream:
        return list(reply["content"])
    blocks: dict[int, Json] = {}
    for line in reply.splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {}
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = {**event["content_block"], "json": ""}
        elif event.get("type") == "content_block_delta":
            block, delta = blocks[event["index"]], event["delta"]
            block["json"] += delta.get("partial_json", "")
            block["text"] = block.get("text", "") + delta.get("text", "")
    for block in blocks.values():
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
            block.pop("text", None)
    return list(blocks.values())


def _hops(told: list[Json]) -> int:
    return sum(one["process"] != other["process"] for one, other in pairwise(told))


def _continues(bodies: list[Json]) -> None:
    """Each request begins with the messages and the tools of the one before."""
    for before, after in pairwise(bodies):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"][: len(before["tools"])] == before["tools"]


def _turn(fleet: Fleet, history: list[Json], name: str, *, found: bool, stream: bool) -> None:
    """One turn of a Messages conversation: a search unless the tool is loaded, a call, its result, an answer."""
    history.append({"role": "user", "content": f"please do {name}"})
    fleet.moves[:] = [*([] if found else [Move(calls=[search(name)])]), Move(calls=[(name, {"id": 1})])]
    for _ in range(2):
        body = {"model": "claude", "max_tokens": 500, "messages": history, "tools": tools(MESSAGES), "stream": stream}
        blocks = _calls(fleet.post("/v1/messages", body), stream=stream)
        assert "ToolSearch" not in json.dumps(blocks)
        history.append({"role": "assistant", "content": blocks})
        used = [block for block in blocks if block["type"] == "tool_use"]
        if used:
            assert [block["name"] for block in used] == [name]
            content = [{"type": "tool_result", "tool_use_id": block["id"], "content": "ok"} for block in used]
            history.append({"role": "user", "content": content})
            fleet.moves[:] = [Move(text=f"{name} is done")]


def _chat(fleet: Fleet) -> None:
    """Four turns of Chat Completions."""
    messages: list[Json] = []
    for name in WANTED[:4]:
        messages.append({"role": "user", "content": f"please do {name}"})
        fleet.moves[:] = [Move(calls=[search(name)]), Move(calls=[(name, {"id": 1})])]
        for _ in range(2):
            asked = {"model": "gpt", "messages": messages, "tools": tools(CHAT)}
            message = fleet.post("/v1/chat/completions", asked)["choices"][0]["message"]
            messages.append(message)
            for call in message.get("tool_calls") or ():
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": "ok"})
                fleet.moves[:] = [Move(text="done")]


@pytest.mark.requirement("N35")
def test_a_conversation_hops_between_workers_with_its_prefix(fleet: Fleet):
    history: list[Json] = []
    for turn in range(TURNS):
        loaded = turn >= len(WANTED)
        _turn(fleet, history, WANTED[turn % len(WANTED)], found=loaded, stream=turn % 2 == 1)
        told = fleet.told()
        if loaded and _hops(told) >= 4:
            break
    assert len({line["process"] for line in told}) == 2, "both workers had a part in it"
    assert _hops(told) >= 4
    assert {line["strategy"] for line in told} == {"native"}
    assert [line["broke"] for line in told] == ["first_request"] + [None] * (len(told) - 1)
    sent = fleet.bodies()
    _continues(sent)
    assert all(b"sk-" not in key for key in fleet.redis.client.keys("*"))

    _chat(fleet)
    assert {line["broke"] for line in fleet.told()[len(told) + 1 :]} <= {None, "tools_grew"}
    _continues(fleet.bodies()[len(sent) :])
