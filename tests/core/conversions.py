"""Histories as applications carry them from one API to another: message by message, foreign blocks kept or dropped.

Three habits, each seen in public bug reports: what is not known is `dropped` (litellm), `quoted` as text (layers that
flatten blocks to strings), or `paired` as an ordinary call and its result (pydantic-ai's neutral parts).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.core.conversation import CHAT, MESSAGES, RESPONSES

Json = dict[str, Any]
HABITS = ("dropped", "quoted", "paired")


@dataclass(frozen=True)
class Part:
    """One neutral part: `text` by a `role`, a `call`, a `result`, or something `foreign`."""

    kind: str
    role: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    arguments: str = "{}"


def converted(messages: list[Json], source: str, target: str, habit: str) -> list[Json]:
    """The messages of one API as the messages of another; foreign ones by `habit`."""
    parts = [made for part in _read(messages, source) for made in _habitual(part, habit)]
    return _WRITERS[target](parts)


def _habitual(part: Part, habit: str) -> Iterator[Part]:
    if part.kind != "foreign":
        yield part
    elif habit == "quoted":
        yield Part("text", part.role, part.text)
    elif habit == "paired" and part.id:
        made = "call_" + part.id[-32:]  # Chat Completions takes 40 characters
        yield Part("call", id=made, name="tool_search", arguments=json.dumps({"query": part.name}))
        yield Part("result", id=made, text=part.text)


def _foreign(wire: Json, role: str = "assistant") -> Part:
    return Part("foreign", role, json.dumps(wire), str(wire.get("tool_use_id") or ""), "what was found")


def _told(content: Any) -> str:
    """The text of a result; parts that are no text as JSON."""
    if isinstance(content, str):
        return content
    return "".join(part["text"] if "text" in part else json.dumps(part) for part in content)


def _read(messages: list[Json], source: str) -> Iterator[Part]:
    if source == RESPONSES:
        for item in messages:
            yield from _item(item)
        return
    for message in messages:
        content: Any = message.get("content")
        if source == CHAT:
            if message["role"] == "tool":
                yield Part("result", id=message["tool_call_id"], text=_told(content))
                continue
            if content:
                yield Part("text", message["role"], _told(content))
            for call in message.get("tool_calls") or []:
                function = call["function"]
                yield Part("call", id=call["id"], name=function["name"], arguments=function["arguments"])
            if "tools" in message:
                yield _foreign(message, "system")
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield from _block(block, message["role"])


def _block(block: Json, role: str) -> Iterator[Part]:
    if block["type"] == "text":
        yield Part("text", role, block["text"])
    elif block["type"] == "tool_use":
        yield Part("call", id=block["id"], name=block["name"], arguments=json.dumps(block["input"]))
    elif block["type"] == "tool_result":
        yield Part("result", id=block["tool_use_id"], text=_told(block["content"]))
    elif block["type"] != "thinking":
        yield _foreign(block, role)


def _item(item: Json) -> Iterator[Part]:
    kind = item.get("type", "message")
    if kind == "message":
        yield Part("text", item["role"], _told(item["content"]))
    elif kind == "function_call":
        yield Part("call", id=item["call_id"], name=item["name"], arguments=item["arguments"])
    elif kind == "function_call_output":
        yield Part("result", id=item["call_id"], text=_told(item["output"]))
    elif kind != "reasoning":
        yield _foreign({**item, "tool_use_id": item["id"]} if kind == "tool_search_output" and item.get("id") else item)


def _messages(parts: list[Part]) -> list[Json]:
    out: list[Json] = []
    for part in parts:
        role = "assistant" if part.kind == "call" or part.role == "assistant" else "user"
        if part.kind == "call":
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": json.loads(part.arguments)}
        elif part.kind == "result":
            block = {"type": "tool_result", "tool_use_id": part.id, "content": part.text}
        else:
            block = {"type": "text", "text": part.text}
        if out and out[-1]["role"] == role:
            out[-1]["content"].append(block)
        else:
            out.append({"role": role, "content": [block]})
    return out


def _items(parts: list[Part]) -> list[Json]:
    out: list[Json] = []
    for part in parts:
        if part.kind == "call":
            call = {"type": "function_call", "call_id": part.id, "name": part.name, "arguments": part.arguments}
            out.append(call)
        elif part.kind == "result":
            out.append({"type": "function_call_output", "call_id": part.id, "output": part.text})
        else:
            out.append({"role": part.role, "content": part.text})
    return out


def _chat(parts: list[Part]) -> list[Json]:
    out: list[Json] = []
    for part in parts:
        if part.kind == "call":
            function = {"name": part.name, "arguments": part.arguments}
            call = {"id": part.id, "type": "function", "function": function}
            if out and out[-1]["role"] == "assistant":
                out[-1].setdefault("tool_calls", []).append(call)
            else:
                out.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif part.kind == "result":
            out.append({"role": "tool", "tool_call_id": part.id, "content": part.text})
        else:
            out.append({"role": part.role, "content": part.text})
    return out


_WRITERS = {MESSAGES: _messages, RESPONSES: _items, CHAT: _chat}
