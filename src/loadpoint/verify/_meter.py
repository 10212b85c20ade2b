"""Between the SDK and the network: weighs every request against the budget, and writes down what came back.

Hidden rounds and retries of the SDK pass here too, so nothing is spent that was not weighed. What is kept of a request
is its shape, size and digest, never its headers.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from .. import _models
from .._json import Json, as_list, as_object, objects
from .._prices import MILLION, Prices, cost
from .._usage import Usage, UsageFields, read

WORST_BYTES_PER_TOKEN = 2.0
"""For the worst case. Schemas and English have over three bytes a token with every tokenizer that is known."""
OVERHEAD_TOKENS = 1_000
"""What a provider adds to a prompt with tools; the documented figures are below this."""
REFUSED = 402
"""The status with which the meter answers in the provider's place when the budget does not allow a request."""
_REQUEST_IDS = ("request-id", "x-request-id")
_FREE = ("/count_tokens", "/input_tokens")


@dataclass(slots=True, kw_only=True)
class Sent:
    """One request that left, and what the provider said. `cost` is None while no price is known; `ms` milliseconds.

    `call` numbers the program's calls of this side from 1: several requests of one call are its rounds and retries.
    """

    side: str
    turn: int
    call: int
    path: str
    digest: str
    size: int
    shape: Json
    status: int | None = None
    request_id: str | None = None
    ms: float = 0.0
    usage: Json = field(default_factory=dict[str, Any])
    figures: Usage | None = None
    cost: float | None = None

    def as_json(self) -> Json:
        """The request as the record keeps it."""
        return {
            "side": self.side,
            "turn": self.turn,
            "call": self.call,
            "path": self.path,
            "bytes": self.size,
            "sha256": self.digest,
            "shape": self.shape,
            "status": self.status,
            "request_id": self.request_id,
            "ms": round(self.ms, 1),
            "usage": self.usage,
            "cost": self.cost,
        }


class Meter:
    """Keeps a run within its budget (USD). `prices` None: unknown, so the dearest list price in the data is assumed."""

    def __init__(self, budget: float, prices: Prices | None, fields: UsageFields) -> None:
        self.budget = budget
        self.prices = prices
        self.fields = fields
        self.side, self.turn, self.call = "", 0, 0
        self.sent: list[Sent] = []
        self.spent = 0.0
        self.refused: str | None = None
        self._assumed = prices or dearest()

    def worst(self, content: bytes, path: str) -> float:
        """The most that this request can cost, in USD: nothing cached, all written to the cache, the longest reply."""
        if path.endswith(_FREE):
            return 0.0
        rates = self._assumed
        tokens = len(content) / WORST_BYTES_PER_TOKEN + OVERHEAD_TOKENS
        return tokens * max(rates.input, rates.written) + _longest(_parsed(content)) * rates.output

    def admits(self, content: bytes, path: str) -> bool:
        """Whether the request fits into what is left; if not, the run is over and `refused` says why."""
        worst = self.worst(content, path)
        if self.spent + worst <= self.budget:
            return True
        self.refused = (
            f"budget: the next request could cost up to ${worst:.4f}, and ${self.spent:.4f} of ${self.budget:.4f} "
            "are spent"
        )
        return False

    def leaves(self, path: str, content: bytes) -> Sent:
        """Note a request that is about to be sent; until its reply is read, the worst case counts as spent."""
        entry = Sent(
            side=self.side,
            turn=self.turn,
            call=self.call,
            path=path,
            digest=hashlib.sha256(content).hexdigest(),
            size=len(content),
            shape=shape(_parsed(content)),
        )
        self.sent.append(entry)
        self.spent += self.worst(content, path)
        return entry

    def answered(self, entry: Sent, status: int, request_id: str | None, reply: Json, worst: float) -> None:
        """Note the reply: what it cost takes the place of the worst case. An error costs nothing."""
        entry.status, entry.request_id = status, request_id
        if status >= 400:
            self.spent -= worst
            return
        usage = as_object(reply.get("usage"))
        if usage is None:
            return  # nobody says what it cost, so it may have been the worst
        entry.usage, entry.figures = usage, read(usage, self.fields)
        self.spent += cost(entry.figures, self._assumed) - worst
        if self.prices is not None:
            entry.cost = cost(entry.figures, self.prices)


def dearest() -> Prices:
    """The highest figures of all list prices in the data: what an unknown model is assumed to cost."""
    rows = [
        row["usd"]
        for file in {family["prices"] for family in _models.table("index")["family"]}
        for row in _models.table(file).get("price", ())
    ]
    top = max(max(row["input"], row.get("written", 0.0)) for row in rows) / MILLION
    return Prices(input=top, cached=top, written=top, output=max(row["output"] for row in rows) / MILLION)


def http_client(module: Any, meter: Meter) -> Any:
    """The SDK's own default HTTP client (proxies and timeouts as ever) with `meter` in front of the network."""
    import httpx2

    base: Any = module.DefaultHttpxClient

    def send(self: Any, request: Any, **options: Any) -> Any:
        content, path = bytes(request.read()), urlsplit(str(request.url)).path
        if not meter.admits(content, path):
            body = {"error": {"type": "budget", "message": meter.refused}}
            return httpx2.Response(REFUSED, headers={"x-should-retry": "false"}, json=body, request=request)
        worst = meter.worst(content, path)
        entry = meter.leaves(path, content)
        start = time.perf_counter()
        try:
            response = base.send(self, request, **options)
            data = response.read()
        finally:
            entry.ms = (time.perf_counter() - start) * 1000
        found = next((response.headers[name] for name in _REQUEST_IDS if name in response.headers), None)
        meter.answered(entry, response.status_code, found, _parsed(data), worst)
        return response

    return type("Metered", (base,), {"send": send})()


def _parsed(data: bytes) -> Json:
    try:
        return as_object(json.loads(data)) or {}
    except (ValueError, RecursionError):
        return {}


def _longest(body: Json) -> int:
    """The most output tokens that the request allows."""
    given = [body.get(name) for name in ("max_tokens", "max_completion_tokens", "max_output_tokens")]
    return max((value for value in given if isinstance(value, int)), default=0)


def shape(body: Json) -> Json:
    """What a request looks like without anything that was said in it: fields, counts and kinds, tool names by count."""
    listed = objects(body.get("tools"))
    turns: Sequence[Any] = as_list(body.get("messages")) or as_list(body.get("input"))
    return {
        "fields": sorted(body),
        "tools": len(listed),
        "deferred": sum(_deferred(tool) for tool in listed),
        "tool_kinds": dict(Counter(str(tool.get("type", "plain")) for tool in listed)),
        "items": [_kinds(item) for item in turns],
    }


def _deferred(tool: Json) -> bool:
    inner = as_object(tool.get("function")) or {}
    return tool.get("defer_loading") is True or inner.get("defer_loading") is True


def _kinds(item: object) -> str:
    """One item of a history as its role or type and the types of its parts: `user[text]`."""
    found = as_object(item) or {}
    name = str(found.get("role") or found.get("type") or "?")
    parts = [str(part.get("type", "?")) for part in objects(found.get("content"))]
    parts += ["tool_call"] * len(as_list(found.get("tool_calls")))
    parts += ["tools"] * bool(as_list(found.get("tools")))
    return f"{name}[{','.join(parts)}]" if parts else name
