"""What litellm makes of each native form: a server that keeps what it is sent, and what has to be in it.

Each probe is a request of one dialect in which a load has happened, in the form that our dialects write.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"
SCHEMA = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}


def chat_tool(name: str, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, "description": name, "parameters": SCHEMA}, **more}


def response_tool(name: str, **more: Any) -> Json:
    return {"type": "function", "name": name, "description": name, "parameters": SCHEMA, "strict": False, **more}


def message_tool(name: str, **more: Any) -> Json:
    return {"name": name, "description": name, "input_schema": SCHEMA, **more}


USER: Json = {"role": "user", "content": "hi"}
CHAT_CALL: Json = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "ToolSearch", "arguments": "{}"}}],
}
BLOCK_CALL: Json = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {"query": "late"}}],
}
NAMED = {"type": "tool_reference", "tool_name": "late"}
LATE = {"defer_loading": True}


def _result(content: Any) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": content}]}


def _added(tool: Json) -> Json:
    return {"role": "system", "content": [{"type": "tool_addition", "tool": tool}]}


SEARCHED: list[Json] = [
    USER,
    {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "call_1",
        "status": "completed",
        "arguments": {"query": "late"},
    },
    {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": "call_1",
        "status": "completed",
        "tools": [
            {"type": "namespace", "name": "crm", "description": "crm", "tools": [response_tool("late", **LATE)]},
        ],
    },
]
ASKED: list[Json] = [
    USER,
    {"type": "function_call", "call_id": "call_1", "name": "ToolSearch", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "call_1", "output": "found"},
]
CLIENT_SEARCH = {"type": "tool_search", "execution": "client", "description": "search", "parameters": SCHEMA}
TOOL_MESSAGE: Json = {"role": "tool", "tool_call_id": "call_1"}

PROBES: dict[tuple[str, str], Json] = {
    (CHAT, "tool_reference"): {
        "tools": [chat_tool("first"), chat_tool("ToolSearch"), chat_tool("late", **LATE)],
        "messages": [USER, CHAT_CALL, {**TOOL_MESSAGE, "content": [NAMED]}],
    },
    (CHAT, "system_tools"): {
        "tools": [chat_tool("first"), chat_tool("ToolSearch")],
        "messages": [
            USER,
            CHAT_CALL,
            {**TOOL_MESSAGE, "content": "found"},
            {"role": "system", "tools": [chat_tool("late")]},
        ],
    },
    (CHAT, "gateway_search"): {
        "tools": [chat_tool("first"), chat_tool("late", **LATE), {"type": "orq:tool_search"}],
        "messages": [USER],
    },
    (RESPONSES, "tool_search"): {"tools": [response_tool("first"), CLIENT_SEARCH], "input": SEARCHED},
    (RESPONSES, "additional_tools"): {
        "tools": [response_tool("first"), response_tool("ToolSearch")],
        "input": [*ASKED, {"type": "additional_tools", "tools": [response_tool("late")]}],
    },
    (RESPONSES, "hosted_search"): {
        "tools": [response_tool("first"), response_tool("late", **LATE), {"type": "tool_search"}],
        "input": [USER],
    },
    (RESPONSES, "gateway_search"): {
        "tools": [response_tool("first"), response_tool("late", **LATE), {"type": "openrouter:tool_search"}],
        "input": [USER],
    },
    (MESSAGES, "tool_reference"): {
        "tools": [message_tool("first"), message_tool("ToolSearch"), message_tool("late", **LATE)],
        "messages": [USER, BLOCK_CALL, _result([NAMED])],
    },
    (MESSAGES, "tool_addition"): {
        "tools": [message_tool("first"), message_tool("ToolSearch"), message_tool("late", **LATE)],
        "messages": [USER, BLOCK_CALL, _result("found"), _added({"type": "tool_reference", "name": "late"})],
        "beta": "mid-conversation-tool-changes-2026-07-01",
    },
    (MESSAGES, "hosted_search"): {
        "tools": [
            message_tool("first"),
            message_tool("late", **LATE),
            {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        ],
        "messages": [USER],
    },
    (MESSAGES, "gateway_search"): {
        "tools": [message_tool("first"), message_tool("late", **LATE), {"type": "openrouter:tool_search"}],
        "messages": [USER],
    },
}


class Recorder:
    """Keeps the path, headers and body of each request, and refuses it: nothing but what arrives is asked for."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], Json]] = []
        self.url = ""

    def body(self) -> Json | None:
        """The last body; None if nothing was sent."""
        return self.seen[-1][2] if self.seen else None

    def betas(self) -> str:
        """The beta features that the last request asks for, in its headers or in its body."""
        _, headers, body = self.seen[-1]
        return ",".join([headers.get("anthropic-beta", ""), *body.get("anthropic_beta", [])])


@contextmanager
def recording() -> Iterator[Recorder]:
    """A recorder on the loopback interface."""
    kept = Recorder()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            kept.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw)))
            out = json.dumps({"error": {"message": "recorded", "type": "invalid_request_error"}}).encode()
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(out)))
            self.end_headers()
            self.wfile.write(out)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def arrived(dialect: str, form: str, kept: Recorder) -> bool:
    """Whether the form stands in what was sent, with the meaning that it has."""
    probe, body = PROBES[dialect, form], kept.body()
    if body is None:
        return False
    if dialect == CHAT and form == "tool_reference":
        return _refers(body)
    if form == "system_tools":
        held = [message for message in body.get("messages", ()) if message.get("role") == "system"]
        return (held, body.get("tools")) == (probe["messages"][-1:], probe["tools"])
    if "beta" in probe and probe["beta"] not in kept.betas():
        return False
    key = "input" if dialect == RESPONSES else "messages"
    return bool(body.get("tools") == probe["tools"] and body.get(key) == probe[key])


def _refers(body: Json) -> bool:
    """Whether `late` is declared and deferred, and the result of the search refers to it."""
    deferred = [tool.get("name") for tool in body.get("tools", ()) if tool.get("defer_loading") is True]
    blocks = [
        block
        for message in body.get("messages", ())
        for block in (message["content"] if isinstance(message.get("content"), list) else ())
        if block.get("type") == "tool_result"
    ]
    return (deferred, [block["content"] for block in blocks]) == (["late"], [[NAMED]])


Send = Callable[[str, Json], Any]


def arguments(dialect: str, form: str) -> Json:
    """The probe as arguments of a call."""
    given = copy.deepcopy(PROBES[dialect, form])
    beta = given.pop("beta", None)
    if beta:
        given["extra_headers"] = {"anthropic-beta": beta}
    return {**given, "max_tokens": 99} if dialect == MESSAGES else given
