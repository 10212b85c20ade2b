"""A program that calls litellm: one small session against the emulator on loopback, in every way to call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.core.conversation import CHAT, MESSAGES, RESPONSES, search, tools

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Emulator, Move, Script, serve

Json = dict[str, Any]
SEARCHES = (
    Move(text="let me look", calls=[search("create invoice")]),
    Move(calls=[("invoice_create", {"id": 7})]),
    Move(text="done"),
)
"""A search, a call of what was found, and the end."""


@dataclass(frozen=True)
class Route:
    """One way that litellm goes: the model, what stands behind the emulator's address, and what is expected of it."""

    dialect: str
    model: str
    path: str = ""
    endpoint: str | None = None
    strategy: str = "native"
    load_point: str | None = None
    waived: tuple[str, ...] = ()
    """Rules that the emulator has for another provider of the same API."""

    @property
    def policy(self) -> Policy:
        """The policy under which the data decides, as it would at the provider's own address."""
        return Policy(threshold_tokens=0, endpoint=self.endpoint)


_KIMIS = ("chat.unknown_message_field",)  # it has `reasoning_content`, which litellm adds to every call
ROUTES = {
    "openai completion": Route(CHAT, "openai/gpt-5.4", "/v1", "api.openai.com", "resend"),
    "claude completion": Route(CHAT, "anthropic/claude-opus-4-8", "", "api.anthropic.com", "native", "tool_reference"),
    "kimi completion": Route(CHAT, "moonshot/kimi-k3", "/v1", "api.moonshot.ai", "native", "system_tools", _KIMIS),
    "openai responses": Route(RESPONSES, "openai/gpt-5.4", "/v1", "api.openai.com", "native", "tool_search"),
    "claude responses": Route(RESPONSES, "anthropic/claude-opus-4-8", "", "api.anthropic.com", "resend"),
    "claude messages": Route(
        MESSAGES, "anthropic/claude-opus-4-8", "", "api.anthropic.com", "native", "tool_reference"
    ),
}


@dataclass
class Program:
    """What a program holds: the module or a Router, its history, and what came back."""

    route: Route
    client: Any
    server: Emulator
    url: str
    reports: list[Any]
    history: list[Any] = field(default_factory=list)
    names: Sequence[str] | None = None
    extra: Json = field(default_factory=dict)

    def arguments(self, **more: Any) -> Json:
        """The arguments of a call."""
        listed = tools(self.route.dialect) if self.names is None else tools(self.route.dialect, self.names)
        given = {
            "model": self.route.model,
            ("input" if self.route.dialect == RESPONSES else "messages"): self.history,
            "tools": listed,
            "api_base": self.url + self.route.path,
            "api_key": "sk-test",
            **self.extra,
            **more,
        }
        return {**given, "max_tokens": 500} if self.route.dialect == MESSAGES else given

    def call(self, **more: Any) -> Any:
        """One synchronous call; a stream as its items."""
        function = self.client.responses if self.route.dialect == RESPONSES else self.client.completion
        return function(**self.arguments(**more))

    async def acall(self, **more: Any) -> Any:
        """One asynchronous call."""
        functions = {CHAT: "acompletion", RESPONSES: "aresponses"}
        if self.route.dialect in functions:
            return await getattr(self.client, functions[self.route.dialect])(**self.arguments(**more))
        return await self.client.anthropic.messages.acreate(**self.arguments(**more))

    def user(self, text: str) -> None:
        self.history.append({"role": "user", "content": text})

    def echo(self, reply: Json) -> list[tuple[str, Json]]:
        """Put a reply into the history, with a result for each call; the calls."""
        made: list[tuple[str, Json]] = []
        if self.route.dialect == RESPONSES:
            self.history += reply["output"]
            for item in reply["output"]:
                if item["type"] == "function_call":
                    made.append((item["name"], json.loads(item["arguments"])))
                    out = {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
                    self.history.append(out)
        elif self.route.dialect == CHAT:
            message = reply["choices"][0]["message"]
            self.history.append({key: value for key, value in message.items() if value is not None})
            for call in message.get("tool_calls") or ():
                made.append((call["function"]["name"], json.loads(call["function"]["arguments"])))
                self.history.append({"role": "tool", "tool_call_id": call["id"], "content": "ok"})
        else:
            self.history.append({"role": "assistant", "content": reply["content"]})
            calls = [block for block in reply["content"] if block["type"] == "tool_use"]
            made += [(block["name"], block["input"]) for block in calls]
            results = [{"type": "tool_result", "tool_use_id": block["id"], "content": "ok"} for block in calls]
            if results:
                self.history.append({"role": "user", "content": results})
        return made

    def names_sent(self, at: int) -> list[str]:
        """The tools of the request at this position, those that wait with a star."""
        listed = (self.server.exchanges[at].request or {}).get("tools") or []
        return [
            str(tool.get("function", tool).get("name") or tool["type"]) + ("*" if tool.get("defer_loading") else "")
            for tool in listed
        ]


def dumped(dialect: str, value: Any) -> Json:
    """A reply as JSON."""
    if isinstance(value, dict):
        return value
    made: Json = value.model_dump(mode="json", exclude_unset=dialect == RESPONSES, by_alias=True)
    return made


def text_of(dialect: str, reply: Json) -> str:
    """What a reply says."""
    if dialect == CHAT:
        return reply["choices"][0]["message"]["content"] or ""
    if dialect == RESPONSES:
        parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
        return "".join(part["text"] for part in parts)
    return "".join(block["text"] for block in reply["content"] if block["type"] == "text")


def _played(move: Move, name: str | None) -> Move:
    """The move, with the loader called by the name that the emulator has for the model's own search."""
    if name is None:
        return move
    return move.but(calls=[(name if call[0] == "ToolSearch" else call[0], *call[1:]) for call in move.calls])


@contextmanager
def talking(
    module: Any, route: Route, *moves: Move, policy: Policy | None = None, wrapped: bool = True
) -> Iterator[Program]:
    """A program over an emulator that plays `moves`."""
    reports: list[Any] = []
    left = iter(moves)
    server = Emulator(Script(lambda turn: _played(next(left), turn.search)), ignore=route.waived)
    with serve(server) as running:
        client = module
        if wrapped:
            client = loadpoint.wrap(module, policy or route.policy, on_report=reports.append)
        yield Program(route, client, server, running.url, reports)
