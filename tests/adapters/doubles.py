"""Doubles for adapter tests: a scripted provider behind `httpx2.MockTransport`, and a session that needs no engine.

The session hides every round that calls the tool `find`: it appends the round and an answer to the messages and asks
again. That is all an adapter needs of an engine, and it makes every failure an adapter's own.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from loadpoint._json import Json
from loadpoint._report import CallReport
from loadpoint._sse import Event, Reader, frame

LOADER = "find"


# --------------------------------------------------------------------------------------------------- replies


def chat(text: str | None = None, *calls: tuple[str, dict[str, Any]], reply: str = "chatcmpl-1") -> dict[str, Any]:
    """A chat completion with a text and calls (name, arguments)."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if calls:
        message["tool_calls"] = [
            {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for name, given in calls
        ]
    return {
        "id": reply,
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop", "logprobs": None}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12},
    }


def message(text: str | None = None, *calls: tuple[str, dict[str, Any]], reply: str = "msg_1") -> dict[str, Any]:
    """A message of the other SDK with a text and calls."""
    content: list[dict[str, Any]] = [] if text is None else [{"type": "text", "text": text}]
    content += [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": given} for name, given in calls]
    return {
        "id": reply,
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 2},
    }


def chat_events(reply: dict[str, Any]) -> list[bytes]:
    """A chat completion as a stream."""
    head = {"id": reply["id"], "object": "chat.completion.chunk", "created": 1, "model": "m"}
    said = reply["choices"][0]["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    if said["content"]:
        deltas += [{"content": word} for word in said["content"].split(" ")]
    deltas += [{"tool_calls": [{"index": i, **call}]} for i, call in enumerate(said.get("tool_calls", ()))]
    chunks = [{**head, "choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    chunks.append(
        {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply["choices"][0]["finish_reason"]}]}
    )
    return [frame(json.dumps(chunk)) for chunk in chunks] + [frame("[DONE]")]


def message_events(reply: dict[str, Any]) -> list[bytes]:
    """A message of the other SDK as a stream."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}},
    ]
    for index, block in enumerate(reply["content"]):
        if block["type"] == "text":
            start: dict[str, Any] = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in block["text"].split(" ")]
        else:
            start = {**block, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": reply["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": stop, "usage": reply["usage"]},
        {"type": "message_stop"},
    ]
    return [frame(json.dumps(event), event["type"]) for event in events]


# -------------------------------------------------------------------------------------------------- provider


@dataclass
class Fault:
    """Instead of a reply: an HTTP error, a transport error, or a stream that is cut after `after` events."""

    status: int = 0
    error: Callable[[httpx2.Request], Exception] | None = None
    cut: dict[str, Any] | None = None
    after: int = 3


class Body(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A reply stream that knows whether it was closed, and how much of it was read."""

    def __init__(self, events: list[bytes], request: httpx2.Request, cut: bool) -> None:
        self.events, self.request, self.cut = events, request, cut
        self.read = 0
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        for event in self.events:
            self.read += 1
            yield event
        if self.cut:
            raise httpx2.ReadError("cut", request=self.request)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for event in self:
            yield event

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


@dataclass
class Provider:
    """Answers requests with its script, in order; the last entry repeats. `seen` are the parsed requests."""

    events: Callable[[dict[str, Any]], list[bytes]]
    script: list[Any] = field(default_factory=list)
    requests: list[httpx2.Request] = field(default_factory=list)
    bodies: list[Body] = field(default_factory=list)

    @property
    def seen(self) -> list[dict[str, Any]]:
        """The request bodies."""
        return [json.loads(request.content) for request in self.requests]

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        at = len(self.requests)
        self.requests.append(request)
        step = self.script[min(at, len(self.script) - 1)]
        headers = {"x-request-id": f"req_{at}", "request-id": f"req_{at}"}
        if isinstance(step, Fault):
            if step.error is not None:
                raise step.error(request)
            if step.cut is None:
                body = {"type": "error", "error": {"type": "t", "message": f"no {step.status}"}}
                return httpx2.Response(step.status, headers={**headers, "retry-after-ms": "1"}, json=body)
            reply, cut = step.cut, True
        else:
            reply, cut = step, False
        try:
            streamed = bool(json.loads(request.content).get("stream"))
        except ValueError:
            streamed = False
        if not (streamed or request.url.path.endswith("-stream")):
            headers["content-type"] = "application/json"
            # as a stream, so that the client reads it like one from a socket, and knows how long it took
            return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(json.dumps(reply).encode()))
        events = self.events(reply)
        stream = Body(events[: len(events) if not cut else step.after], request, cut)
        self.bodies.append(stream)
        return httpx2.Response(200, headers={**headers, "content-type": "text/event-stream"}, stream=stream)

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        """The same for an asynchronous client."""
        return self(request)

    def client(self) -> httpx2.Client:
        """An HTTP client that ends here."""
        return httpx2.Client(transport=httpx2.MockTransport(self))

    def async_client(self) -> httpx2.AsyncClient:
        """An asynchronous HTTP client that ends here."""
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer))


# --------------------------------------------------------------------------------------------------- session


def calls_of(reply: dict[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of a reply of either kind."""
    if "choices" in reply:
        return list(reply["choices"][0]["message"].get("tool_calls") or ())
    return [block for block in reply.get("content", ()) if block["type"] == "tool_use"]


def name_of(call: dict[str, Any]) -> str:
    return str(call["function"]["name"] if "function" in call else call["name"])


class FakeCall:
    """One logical call: rounds that call the loader stay hidden."""

    def __init__(self, session: FakeSession, request: Any, exchange: bool) -> None:
        self.session, self.request = session, request
        self.chat = "choices" in json.dumps(request.body) or request.path.endswith("completions")
        self.key = json.dumps(request.body, sort_keys=True)
        self.exchange = exchange
        self.renames: dict[str, str] = {}
        self.question = None
        self.streaming = bool(request.body.get("stream"))
        self.headers: dict[str, str | None] = dict(session.edits)
        self.body = {**request.body, "tools": [{"type": "function", "function": {"name": LOADER}}]}
        if not exchange:
            self.body = dict(request.body)
        self.rounds: list[dict[str, Any]] = []
        self.meta: list[tuple[str | None, float]] = []
        self.failures = 0
        self.changed = False
        for paid in session.paid.pop(self.key, []):
            self.feed(paid)

    def feed(self, reply: dict[str, Any], *, request_id: str | None = None, ms: float = 0.0) -> dict[str, Any] | None:
        self.rounds.append(reply)
        self.meta.append((request_id, ms))
        self.result = reply
        if not any(name_of(call) == LOADER for call in calls_of(reply)):
            return None
        self.changed = True
        self.body = {**self.body, "messages": [*self.body["messages"], {"role": "user", "content": "found"}]}
        return self.body

    def splice(self) -> FakeSplice:
        return FakeSplice(self)

    def rejected(self, status: int, message: str) -> Json | None:
        return None

    def failed(self) -> None:
        self.failures += 1
        self.session.paid[self.key] = list(self.rounds)

    @property
    def report(self) -> CallReport:
        return CallReport(strategy="fake", load_point=None, reason="test", added_rounds=len(self.rounds) - 1)


class FakeSplice:
    """Shows everything but rounds that call the loader; text goes out at once."""

    def __init__(self, call: FakeCall) -> None:
        self.call = call
        self.reader = Reader()
        self.held: list[bytes] = []
        self.data: list[dict[str, Any]] = []
        self.shown = 0
        self.last = False

    def replayed(self) -> list[bytes]:
        return []

    def feed(self, chunk: bytes) -> list[bytes]:
        out: list[bytes] = []
        for event in self.reader.feed(chunk):
            out += self._event(event)
        return out

    def _event(self, event: Event) -> list[bytes]:
        if event.data == "[DONE]":
            self.last = True
            self.held.append(event.raw)
            return []
        data = json.loads(event.data)
        self.data.append(data)
        if "delta" in data and data["type"] == "content_block_delta" and data["delta"]["type"] == "text_delta":
            return [*self._flush(), event.raw] if self._plain() else []
        if data.get("choices") and data["choices"][0]["delta"].get("content"):
            return [*self._flush(), event.raw]
        self.last = self.last or data.get("type") == "message_stop"
        self.held.append(event.raw)
        return []

    def _plain(self) -> bool:
        return True

    def _flush(self) -> list[bytes]:
        held, self.held = self.held, []
        return held

    def end(self, *, request_id: str | None = None, ms: float = 0.0) -> dict[str, Any] | None:
        if not self.last:
            return None
        reply = rebuilt(self.data)
        body = self.call.feed(reply, request_id=request_id, ms=ms)
        self.data, self.last = [], False
        if body is not None:
            self.held = []
        return body

    def closing(self) -> list[bytes]:
        return self._flush()


def rebuilt(data: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply of a scripted stream."""
    if any("choices" in event for event in data):
        text = "".join(event["choices"][0]["delta"].get("content") or "" for event in data)
        calls = [call for event in data for call in event["choices"][0]["delta"].get("tool_calls") or ()]
        reply = chat(text or None, reply=data[0]["id"])
        if calls:
            reply["choices"][0]["message"]["tool_calls"] = calls
        return reply
    blocks = [event["content_block"] for event in data if event["type"] == "content_block_start"]
    return {**data[0]["message"], "content": blocks}


class FakeSession:
    """Takes every request that has tools; `edits` are header edits of its calls."""

    def __init__(self, edits: dict[str, str | None] | None = None) -> None:
        self.edits = edits or {}
        self.paid: dict[str, list[dict[str, Any]]] = {}
        self.requests: list[Any] = []
        self.calls: list[FakeCall] = []

    def begin(self, request: Any) -> Any:
        self.requests.append(request)
        if request.body is None or not request.body.get("tools"):
            return None
        off = request.headers.get("x-loadpoint") == "off" or request.path.endswith(("count_tokens", "batches"))
        call = FakeCall(self, request, exchange=not off)
        self.calls.append(call)
        return call

    def stored(self, request: Any) -> Any:
        return None

    def noted(self, reason: str) -> None:
        self.requests.append(reason)
