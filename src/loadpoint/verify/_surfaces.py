"""The program of the run, once per API: what an ordinary user of an SDK writes, with nothing of ours in it.

The three differ in how a request is written and a reply is read; the loop is in `_play.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from .._json import Json, parse_object
from ..bench import BenchTool

MARK = {"type": "ephemeral"}


@dataclass(frozen=True, slots=True)
class Calling:
    """A tool call that the program saw: the id to answer under, the tool's name, its arguments."""

    id: str
    name: str
    arguments: Json


@dataclass(slots=True, kw_only=True)
class Chat:
    """A conversation as the program holds it. `limit` is the request field that bounds the output."""

    client: Any
    model: str
    system: str
    tools: Sequence[BenchTool]
    limit: str
    max_tokens: int
    history: list[Any] = field(default_factory=list[Any])


class Surface(Protocol):
    """One API of an SDK."""

    def said(self, text: str) -> list[Json]:
        """The items of the history for what the user says."""
        ...

    def ask(self, chat: Chat) -> Any:
        """One reply, which is not yet in the history. Raises the SDK's own errors."""
        ...

    def echoed(self, reply: Any) -> list[Any]:
        """The reply as the program keeps it in its history."""
        ...

    def calls(self, reply: Any) -> list[Calling]:
        """The tool calls of the reply."""
        ...

    def results(self, answers: Mapping[str, str]) -> list[Json]:
        """The items of the history that answer calls: result text by call id."""
        ...


class Completions:
    """`client.chat.completions`."""

    def said(self, text: str) -> list[Json]:
        return [{"role": "user", "content": text}]

    def ask(self, chat: Chat) -> Any:
        tools = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in chat.tools
        ]
        messages = [{"role": "system", "content": chat.system}, *chat.history]
        given = {"model": chat.model, "messages": messages, "tools": tools, chat.limit: chat.max_tokens}
        return chat.client.chat.completions.create(**given)

    def echoed(self, reply: Any) -> list[Any]:
        return [reply.choices[0].message.to_dict()]

    def calls(self, reply: Any) -> list[Calling]:
        return [
            Calling(call.id, call.function.name, parse_object(call.function.arguments) or {})
            for call in reply.choices[0].message.tool_calls or ()
        ]

    def results(self, answers: Mapping[str, str]) -> list[Json]:
        return [{"role": "tool", "tool_call_id": id_, "content": text} for id_, text in answers.items()]


class Messages:
    """`client.messages`, with cache markers on the last tool, the system prompt and the newest message."""

    def said(self, text: str) -> list[Json]:
        return [{"role": "user", "content": [{"type": "text", "text": text}]}]

    def ask(self, chat: Chat) -> Any:
        tools: list[Json] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in chat.tools
        ]
        tools[-1] = {**tools[-1], "cache_control": MARK}
        newest = chat.history[-1]
        last = {**newest["content"][-1], "cache_control": MARK}
        messages = [*chat.history[:-1], {**newest, "content": [*newest["content"][:-1], last]}]
        system = [{"type": "text", "text": chat.system, "cache_control": MARK}]
        given = {"model": chat.model, "system": system, "messages": messages, "tools": tools}
        return chat.client.messages.create(**given, **{chat.limit: chat.max_tokens})

    def echoed(self, reply: Any) -> list[Any]:
        return [{"role": "assistant", "content": [block.to_dict() for block in reply.content]}]

    def calls(self, reply: Any) -> list[Calling]:
        return [Calling(block.id, block.name, dict(block.input)) for block in reply.content if block.type == "tool_use"]

    def results(self, answers: Mapping[str, str]) -> list[Json]:
        blocks = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in answers.items()]
        return [{"role": "user", "content": blocks}]


class Responses:
    """`client.responses`, with the whole history in every request."""

    def said(self, text: str) -> list[Json]:
        return [{"role": "user", "content": text}]

    def ask(self, chat: Chat) -> Any:
        tools = [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
            | {"strict": False}
            for tool in chat.tools
        ]
        given = {"model": chat.model, "instructions": chat.system, "input": list(chat.history), "tools": tools}
        return chat.client.responses.create(**given, **{chat.limit: chat.max_tokens})

    def echoed(self, reply: Any) -> list[Any]:
        return [item.to_dict() for item in reply.output]

    def calls(self, reply: Any) -> list[Calling]:
        return [
            Calling(item.call_id, item.name, parse_object(item.arguments) or {})
            for item in reply.output
            if item.type == "function_call"
        ]

    def results(self, answers: Mapping[str, str]) -> list[Json]:
        return [{"type": "function_call_output", "call_id": id_, "output": text} for id_, text in answers.items()]


SURFACES: dict[str, Surface] = {
    "openai.chat": Completions(),
    "openai.responses": Responses(),
    "anthropic.messages": Messages(),
}
"""The surfaces by dialect."""
