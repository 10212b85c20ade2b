"""The ways through the openai SDK's responses, each written once and walked synchronously and asynchronously.

A walk gives back the tool calls that the caller saw, and the object whose report is asked for.
"""

from __future__ import annotations

import json
from typing import Any

from tests.adapters.paths import Answer, Calls, Walk, each, entered, settle
from tests.adapters.paths import message_tools as _tools


def tools(count: int = 150) -> list[dict[str, Any]]:
    """Strict function tools of Responses."""
    return [
        {"type": "function", "strict": True, "parameters": tool["input_schema"]}
        | {key: tool[key] for key in ("name", "description")}
        for tool in _tools(count)
    ]


def calls(reply: Any) -> Calls:
    """The calls of a response."""
    made = [item for item in reply.output if item.type == "function_call"]
    assert len(made) == len([item for item in reply.output if item.type != "reasoning"])
    assert all(getattr(item, "namespace", None) is None for item in made)
    return [(item.name, json.loads(item.arguments)) for item in made]


async def event_calls(stream: Any) -> Calls:
    """The calls of a stream, put together from their deltas; its events count without holes."""
    parts: dict[int, list[str]] = {}
    number = 0
    kinds: list[str] = []
    async for event in each(stream):
        assert event.sequence_number == number
        number += 1
        kinds.append(event.type)
        if event.type == "response.output_item.added":
            assert event.output_index == len(parts)
            parts[event.output_index] = [getattr(event.item, "name", ""), ""]
        elif event.type == "response.function_call_arguments.delta":
            parts[event.output_index][1] += event.delta
        elif event.type == "response.completed":
            assert [getattr(item, "name", "") for item in event.response.output] == [n for n, _ in parts.values()]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    return [(name, json.loads(arguments)) for name, arguments in parts.values() if name]


async def create(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.create(**given))
    assert [tool.name for tool in reply.tools] == [tool["name"] for tool in given["tools"]]
    return calls(reply), reply


async def streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(await settle(api.create(**given, stream=True))) as stream:
        return await event_calls(stream), stream


async def raw(api: Any, given: Any) -> tuple[Calls, Any]:
    found = await settle(api.with_raw_response.create(**given))
    assert found.headers["content-type"] == "application/json"
    return calls(found.parse()), found


async def raw_streamed(api: Any, given: Any) -> tuple[Calls, Any]:
    found = await settle(api.with_raw_response.create(**given, stream=True))
    return await event_calls(found.parse()), found


async def streaming_response(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.with_streaming_response.create(**given)) as found:
        return calls(await settle(found.parse())), found


async def streaming_response_lines(api: Any, given: Any) -> tuple[Calls, Any]:
    lines: list[str] = []
    async with entered(api.with_streaming_response.create(**given, stream=True)) as found:
        lines += [line async for line in each(found.iter_lines())]
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert "tool_search" not in json.dumps(events)
    made = [item for item in events[-1]["response"]["output"] if item["type"] == "function_call"]
    return [(item["name"], json.loads(item["arguments"])) for item in made], found


async def parse(api: Any, given: Any) -> tuple[Calls, Any]:
    reply = await settle(api.parse(**given, text_format=Answer))
    assert reply.output[-1].parsed_arguments == {"city": "Rome"}
    return calls(reply), reply


async def raw_parse(api: Any, given: Any) -> tuple[Calls, Any]:
    found = await settle(api.with_raw_response.parse(**given))
    return calls(found.parse()), found.parse()


async def helper(api: Any, given: Any) -> tuple[Calls, Any]:
    async with entered(api.stream(**given)) as stream:
        kinds = [event.type async for event in each(stream)]
        reply = await settle(stream.get_final_response())
    assert "response.function_call_arguments.done" in kinds
    return calls(reply), reply


_CREATE: tuple[Walk, ...] = (
    create,
    streamed,
    raw,
    raw_streamed,
    streaming_response,
    streaming_response_lines,
)
PATHS: dict[str, tuple[Walk, ...]] = {
    "openai:responses.create": _CREATE,
    "openai:responses.parse": (parse, raw_parse),
    "openai:responses.stream": (helper,),
    "openai:beta.responses.create": (create, streamed),
}
