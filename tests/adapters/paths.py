"""The ways through the SDKs on which tools are deferred, each written once and walked synchronously and asynchronously.

A walk gives back the tool calls that the caller saw, and the object whose report is asked for.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anthropic
import pydantic

Calls: TypeAlias = "list[tuple[str, Any]]"
Walk: TypeAlias = Callable[[Any, Any], Awaitable[tuple[Calls, Any]]]

WANTED: Calls = [("svc_tool_7", {"city": "Rome"})]
_TEXT = "Does thing {} for department {}, with care, in a description of the length that real ones have. "


class Answer(pydantic.BaseModel):
    """A structured answer that nobody gives here: the model calls a tool."""

    city: str


THREADS: bool = hasattr(anthropic.resources.beta.messages.Messages, "thread")
"""Whether this version of the SDK has threads; then its tool runners use them."""


def chat_tools(count: int = 150) -> list[dict[str, Any]]:
    """Strict function tools of Chat Completions."""
    return [{"type": "function", "function": {"strict": True, **_function(i, "parameters")}} for i in range(count)]


def message_tools(count: int = 150) -> list[dict[str, Any]]:
    """Custom tools of Messages."""
    return [_function(i, "input_schema") for i in range(count)]


def _function(i: int, key: str) -> dict[str, Any]:
    city = {"type": "string", "description": "the city where it happens"}
    schema = {"type": "object", "properties": {"city": city}, "required": ["city"], "additionalProperties": False}
    return {"name": f"svc_tool_{i}", "description": _TEXT.format(i, i) * 2, key: schema}


# ------------------------------------------------------------------------- one spelling for sync and async


async def settle(value: Any) -> Any:
    """The value, awaited if it must be."""
    return await value if inspect.isawaitable(value) else value


async def each(values: Any) -> AsyncIterator[Any]:
    """The items of an iterable of either kind."""
    if hasattr(values, "__aiter__"):
        async for value in values:
            yield value
    else:
        for value in values:
            yield value


@asynccontextmanager
async def entered(manager: Any) -> AsyncIterator[Any]:
    """The target of a context manager of either kind."""
    if hasattr(manager, "__aenter__"):
        async with manager as value:
            yield value
    else:
        with manager as value:
            yield value


# ------------------------------------------------------------------------------------- what the caller saw


def chat_calls(reply: Any) -> Calls:
    calls = reply.choices[0].message.tool_calls or ()
    return [(call.function.name, json.loads(call.function.arguments)) for call in calls]


def message_calls(reply: Any) -> Calls:
    return [(block.name, block.input) for block in reply.content if block.type == "tool_use"]


async def chunk_calls(stream: Any) -> Calls:
    """The calls of a chat stream, put together from their deltas."""
    parts: dict[int, list[str]] = {}
    async for chunk in each(stream):
        for call in chunk.choices[0].delta.tool_calls or () if chunk.choices else ():
            part = parts.setdefault(call.index, ["", ""])
            part[0] += call.function.name or ""
            part[1] += call.function.arguments or ""
    return [(name, json.loads(arguments)) for name, arguments in parts.values()]


async def event_calls(stream: Any) -> Calls:
    """The calls of a message stream, put together from its events, by the index of their block."""
    parts: dict[int, list[str]] = {}
    async for event in each(stream):
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            parts[event.index] = [event.content_block.name, ""]
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta" and event.index in parts:
            parts[event.index][1] += event.delta.partial_json
    return [(name, json.loads(arguments or "{}")) for name, arguments in parts.values()]


# ----------------------------------------------------------------------------------------- chat completions


async def chat_create(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.create(**given))
    return chat_calls(reply), reply


async def chat_streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(await settle(api.create(**given, stream=True))) as stream:
        return await chunk_calls(stream), stream


async def chat_raw(api: Any, given: Any) -> tuple[Calls, Any]:
    raw = await settle(api.with_raw_response.create(**given))
    assert raw.headers["content-type"] == "application/json"
    assert raw.elapsed.total_seconds() >= 0
    return chat_calls(raw.parse()), raw


async def chat_raw_streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    raw = await settle(api.with_raw_response.create(**given, stream=True))
    assert raw.status_code == 200
    return await chunk_calls(raw.parse()), raw


async def chat_streaming_response(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.with_streaming_response.create(**given)) as raw:
        return chat_calls(await settle(raw.parse())), raw


async def chat_streaming_response_lines(api: Any, given: Any) -> tuple[Calls, Any]:
    lines: list[str] = []
    async with entered(api.with_streaming_response.create(**given, stream=True)) as raw:
        lines += [line async for line in each(raw.iter_lines())]
    assert lines[-1] == "" or lines[-1] == "data: [DONE]"
    text = "".join(lines)
    assert "ToolSearch" not in text
    return [("svc_tool_7", {"city": "Rome"})] if "svc_tool_7" in text else [], raw


async def chat_parse(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.parse(**given, response_format=Answer))
    assert reply.choices[0].message.tool_calls[0].function.parsed_arguments == {"city": "Rome"}
    return chat_calls(reply), reply


async def chat_raw_parse(api: Any, given: Any) -> tuple[Calls, Any]:
    raw = await settle(api.with_raw_response.parse(**given))
    return chat_calls(raw.parse()), raw.parse()


async def chat_helper(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.stream(**given)) as stream:
        kinds = [event.type async for event in each(stream)]
        reply = await settle(stream.get_final_completion())
    assert "tool_calls.function.arguments.done" in kinds
    return chat_calls(reply), reply


# ------------------------------------------------------------------------------------------------- messages


async def create(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.create(**given))
    return message_calls(reply), reply


async def streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(await settle(api.create(**given, stream=True))) as stream:
        return await event_calls(stream), stream


async def raw_create(api: Any, given: Any) -> tuple[Calls, Any]:
    raw = await settle(api.with_raw_response.create(**given))
    assert raw.headers["content-type"] == "application/json"
    return message_calls(await settle(raw.parse())), raw


async def raw_streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    raw = await settle(api.with_raw_response.create(**given, stream=True))
    return await event_calls(await settle(raw.parse())), raw


async def streaming_response(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.with_streaming_response.create(**given)) as raw:
        return message_calls(await settle(raw.parse())), raw


async def parsed(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.parse(**given, output_format=Answer))
    return message_calls(reply), reply


async def helper(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.stream(**given)) as stream:
        kinds = [event.type async for event in each(stream)]
        reply = await settle(stream.get_final_message())
    assert kinds[-1] == "message_stop"
    return message_calls(reply), stream


async def thread_send(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.thread(**given).send())
    return message_calls(reply), reply


async def thread_stream(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.thread(**given).stream()) as stream:
        reply = await settle(stream.get_final_message())
    return message_calls(reply), stream


_CHAT: dict[str, tuple[Walk, ...]] = {
    "create": (
        chat_create,
        chat_streamed,
        chat_raw,
        chat_raw_streamed,
        chat_streaming_response,
        chat_streaming_response_lines,
    ),
    "parse": (chat_parse, chat_raw_parse),
    "stream": (chat_helper,),
}
_MESSAGES: dict[str, tuple[Walk, ...]] = {
    "create": (create, streamed, raw_create, raw_streamed, streaming_response),
    "parse": (parsed,),
    "stream": (helper,),
}
_THREADS: dict[str, tuple[Walk, ...]] = {"thread": (thread_send, thread_stream)} if THREADS else {}

PATHS: dict[str, tuple[Walk, ...]] = {
    **{f"openai:chat.completions.{name}": walks for name, walks in _CHAT.items()},
    **{f"openai:beta.chat.completions.{name}": walks for name, walks in _CHAT.items()},
    **{f"anthropic:messages.{name}": walks for name, walks in _MESSAGES.items()},
    **{f"anthropic:beta.messages.{name}": walks for name, walks in (_MESSAGES | _THREADS).items()},
}
ELSEWHERE = {
    # test_response_paths.py
    "openai:responses.create",
    "openai:responses.parse",
    "openai:responses.stream",
    "openai:responses.input_tokens.count",
    "openai:beta.responses.create",
    "openai:beta.responses.input_tokens.count",
    # test_anthropic_paths.py
    "anthropic:beta.messages.tool_runner",
    "anthropic:messages.count_tokens",
    "anthropic:beta.messages.count_tokens",
}
TESTED = {*PATHS, *ELSEWHERE}
