"""What a wrapped client costs on the client's own CPU, next to the raw SDK in the same run.

    python benchmarks/client_overhead.py [--repeat 40]

The transport answers at once with the same bytes, so what is timed is the SDK, and us. Wrapped and raw calls alternate;
the figures are the fastest and the median of each. Budgets: at 300 tools no slower than the raw call with 300 tools; at
10 tools within 1 ms of it; on 400 messages with 20 loads within 10% of the raw SDK with the same residents; `import
loadpoint` under 60 ms and without any SDK; `wrap` under 1 ms. Exits 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anthropic
import httpx2
import openai

import loadpoint
from loadpoint import Policy, bench, emulator

REPLIES: dict[str, dict[str, Any]] = {
    "openai.chat": {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_764_500_000,
        "model": "gpt-5.4",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Done."}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    },
    "anthropic.messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Done."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 2},
    },
}
MODELS = {"openai.chat": "gpt-5.4", "anthropic.messages": "claude-sonnet-5"}
LOADS, MESSAGES = 20, 400


@dataclass
class Wire:
    """A transport that answers by a script at first, and at once with fixed bytes when it is timed."""

    dialect: str
    server: emulator.Emulator | None = None
    bodies: list[bytes] = field(default_factory=list)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to one HTTP request."""
        raw = request.read()
        self.bodies[:] = [raw]
        if self.server is None:
            return httpx2.Response(
                200, content=json.dumps(REPLIES[self.dialect]), headers={"content-type": "application/json"}
            )
        answer = self.server.handle(request.method, str(request.url), dict(request.headers), raw)
        return httpx2.Response(answer.status, content=b"".join(answer.chunks), headers=dict(answer.headers))

    def client(self) -> Any:
        """A real SDK client on this transport, with the SDK's own base_url."""
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        if self.dialect == "openai.chat":
            return openai.OpenAI(api_key="sk-bench", http_client=http, max_retries=0)
        return anthropic.Anthropic(api_key="sk-ant-bench", http_client=http, max_retries=0)


def call(client: Any, dialect: str, body: dict[str, Any]) -> None:
    """One request through the SDK."""
    if dialect == "openai.chat":
        client.chat.completions.create(**body)
    else:
        client.messages.create(**body)


def wired(dialect: str, tools: Sequence[bench.BenchTool]) -> list[dict[str, Any]]:
    """The tools in the dialect's form."""
    return [bench.driver_of(dialect).wire(tool) for tool in tools]


def body_of(dialect: str, tools: list[dict[str, Any]], messages: list[Any]) -> dict[str, Any]:
    """The arguments of a call."""
    body: dict[str, Any] = {"model": MODELS[dialect], "messages": messages, "tools": tools}
    if dialect == "anthropic.messages":
        body |= {"max_tokens": 1024, "system": "You are a helpful assistant."}
    return body


def conversation(dialect: str, size: int) -> tuple[Any, Wire, dict[str, Any], dict[str, Any]]:
    """A wrapped client with so many tools after 20 loads, its wire, its next call, and what that call sends."""
    whole = bench.embedded().sized(size)
    chosen = [tool for tool in whole.tools if len(str(tool.parameters)) < 2_000][:: size // 25][:LOADS]
    steps = [
        bench.PlannedTurn(f"task {at}", ((bench.Need(tool, bench.arguments_for(tool.parameters), (tool.name,)),),))
        for at, tool in enumerate(chosen)
    ]
    talk = [bench.PlannedTurn(f"note {at}") for at in range((MESSAGES - 4 * len(steps)) // 2)]
    plan = bench.Plan("overhead", len(steps), (*steps, *talk), (40, 41))
    wire = Wire(dialect, emulator.Emulator(bench.Player(plan), ignore=("chat.too_many_tools",)))
    policy = Policy(strategy="native" if dialect == "anthropic.messages" else "resend", load_at_most=1)
    client = loadpoint.wrap(wire.client(), policy)
    driver = bench.driver_of(dialect)
    chat = bench.Chat(client, MODELS[dialect], whole.tools, lambda *_: '{"ok":true}', echo="dict", marked=False)
    for turn in plan.turns:
        driver.say(chat, turn.said)
    wire.server = None
    messages = [*chat.messages, {"role": "user", "content": "one more"}]
    wrapped = body_of(dialect, wired(dialect, whole.tools), messages)
    call(client, dialect, wrapped)
    sent = json.loads(wire.bodies[0])
    raw = {key: sent[key] for key in wrapped if key in sent}
    return client, wire, wrapped, raw


def compare(wrapped: Callable[[], None], raw: Callable[[], None], repeat: int) -> tuple[list[float], list[float]]:
    """CPU milliseconds of both, alternating, after three unmeasured runs of each."""
    pairs: tuple[list[float], list[float]] = ([], [])
    for at in range(-3, repeat):
        for run, times in zip((wrapped, raw), pairs, strict=True):
            start = time.process_time()
            run()
            took = (time.process_time() - start) * 1000
            if at >= 0:
                times.append(took)
    return pairs


def report(name: str, times: tuple[list[float], list[float]], held: Callable[[float, float], bool]) -> bool:
    """Print one comparison; whether it keeps its budget (judged by the fastest)."""
    ours, raw = min(times[0]), min(times[1])
    kept = held(ours, raw)
    medians = statistics.median(times[0]), statistics.median(times[1])
    print(
        f"{name:<72} wrapped {ours:7.2f} ms  raw {raw:7.2f} ms  ratio {ours / raw:5.2f}  "
        f"(medians {medians[0]:.2f} / {medians[1]:.2f}){'' if kept else '  MISSED'}",
        flush=True,
    )
    return kept


def calls(dialect: str, repeat: int) -> list[bool]:
    """The three comparisons of one dialect."""
    kept: list[bool] = []
    limits: dict[int, Callable[[float, float], bool]] = {
        10: lambda ours, raw: ours <= raw + 1.0,
        300: lambda ours, raw: ours <= raw,
    }
    for size, held in limits.items():
        wire = Wire(dialect)
        body = body_of(dialect, wired(dialect, bench.embedded().sized(size).tools), [{"role": "user", "content": "hi"}])
        raw, wrapped = wire.client(), loadpoint.wrap(wire.client())
        times = compare(partial(call, wrapped, dialect, body), partial(call, raw, dialect, body), repeat)
        kept.append(report(f"{dialect}, {size} tools, first request", times, held))
    client, wire, body, same = conversation(dialect, 40)
    plain, count = wire.client(), len(same["messages"])
    times = compare(partial(call, client, dialect, body), partial(call, plain, dialect, same), repeat)
    name = f"{dialect}, {count} messages, {LOADS} loads of 40 tools, raw: {len(same['tools'])} tools"
    kept.append(report(name, times, lambda ours, raw: ours <= raw * 1.10))
    client, wire, body, same = conversation(dialect, 300)
    everything = {**same, "tools": body["tools"]}
    times = compare(partial(call, client, dialect, body), partial(call, wire.client(), dialect, everything), repeat)
    report(f"{dialect}, the same, but 300 tools on both sides", times, lambda _ours, _raw: True)
    return kept


def start_up() -> list[bool]:
    """Import time and `wrap` time against their budgets."""
    code = (
        "import sys, time; start = time.perf_counter(); import loadpoint; loadpoint.wrap; "
        "took = (time.perf_counter() - start) * 1000; "
        "print(took, *[name for name in ('openai', 'anthropic', 'pydantic', 'asyncio') if name in sys.modules])"
    )
    lines = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(7)
    ]
    imported = min(float(line[0]) for line in lines)
    loaded = lines[0][1:]
    print(f"import loadpoint: {imported:.1f} ms; heavy modules loaded: {', '.join(loaded) or 'none'}")
    client = Wire("openai.chat").client()
    loadpoint.wrap(client)
    times: list[float] = []
    for _ in range(200):
        start = time.perf_counter()
        loadpoint.wrap(client)
        times.append((time.perf_counter() - start) * 1000)
    print(f"wrap: {min(times):.3f} ms, median {statistics.median(times):.3f} ms")
    return [imported < 60 and not {"openai", "anthropic"} & set(loaded), statistics.median(times) < 1.0]


def main(argv: Sequence[str] | None = None) -> int:
    """Print every figure; 0 if all budgets are kept."""
    parser = argparse.ArgumentParser(description="the wrapper's own CPU")
    parser.add_argument("--repeat", type=int, default=40, help="measured runs of each side")
    options = parser.parse_args(argv)
    kept = start_up()
    for dialect in MODELS:
        kept += calls(dialect, options.repeat)
    print("all budgets kept" if all(kept) else f"{kept.count(False)} budgets missed")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
