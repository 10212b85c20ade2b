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


def function(name: str, description: str = "Does it", **extra: Any) -> Json:
    """A function tool of the Responses API without strictness; `properties` are its parameters."""
    properties = extra.pop("properties", {})
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": False,
        **extra,
    }


def late(name: str, description: str = "Does it", **extra: Any) -> Json:
    return function(name, description, defer_loading=True, **extra)


def namespace(name: str, *members: Json, description: str = "A group") -> Json:
    return {"type": "namespace", "name": name, "description": description, "tools": list(members)}


def client_search(**properties: Any) -> Json:
    schema = {
        "type": "object",
        "properties": properties or {"query": STRING},
        "required": list(properties or ["query"]),
    }
    return {"type": "tool_search", "execution": "client", "description": "Finds tools", "parameters": schema}


def made(name: str = "ping", call_id: str = "call_1", **extra: Any) -> Json:
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": "{}", **extra}


def given(call_id: str = "call_1", output: Any = "ok", **extra: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output, **extra}


def searched(*tools: Json, call_id: str | None = "call_s", execution: str = "client") -> list[Json]:
    """A search of the Responses API and its output."""
    call_ = {"type": "tool_search_call", "execution": execution, "call_id": call_id, "arguments": {"query": "x"}}
    output = {"type": "tool_search_output", "execution": execution, "call_id": call_id, "tools": list(tools)}
    return [call_, output]


def added(*tools: Json, **extra: Any) -> Json:
    return {"type": "additional_tools", "role": "developer", "tools": list(tools), **extra}
