"""What the emulator's tests share: tools, clients of the real SDKs, and short ways to say requests."""

from __future__ import annotations

from typing import Any

import anthropic
import openai

from loadpoint import emulator
from loadpoint.emulator import Emulator

CHAT_MODEL = "gpt-5.4"
CLAUDE = "claude-opus-5"
STRING = {"type": "string"}
Json = dict[str, Any]


def chat_tool(name: str, description: str = "Does it", **properties: Any) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


def tool(name: str, description: Any = "Does it", *, properties: Json | None = None, **extra: Any) -> Json:
    properties = properties or {}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "input_schema": schema, **extra}


def deferred(name: str, description: Any = "Does it", **extra: Any) -> Json:
    return tool(name, description, defer_loading=True, **extra)


def user(text: Any) -> Json:
    return {"role": "user", "content": text}


def chat_client(server: Emulator) -> Any:
    return openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", server))


def claude_client(server: Emulator) -> Any:
    return anthropic.Anthropic(api_key="k", http_client=emulator.http_client("anthropic", server))


def call(id_: str = "call_1", name: str = "ping", arguments: str = "{}") -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def use(id_: str = "toolu_1", name: str = "ping", **extra: Any) -> Json:
    return {"type": "tool_use", "id": id_, "name": name, "input": {}, **extra}


def result(id_: Any = "toolu_1", content: Any = "ok", **extra: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **extra}


def reference(name: str) -> Json:
    return {"type": "tool_reference", "tool_name": name}


def body_of(error: Any) -> Any:
    """The body that came with an error of an SDK."""
    return error.body


def turns(*contents: Any) -> list[Json]:
    """Messages of alternating roles, the user's first."""
    return [{"role": "assistant" if at % 2 else "user", "content": content} for at, content in enumerate(contents)]
