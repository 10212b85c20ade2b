"""Copies of the caller's messages and tools are found again only while the originals are as they were."""

from __future__ import annotations

import copy
import sys
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move, Script
from loadpoint_adapters.anthropic._copies import Copies

TOOLS: list[dict[str, Any]] = [
    {"name": f"tool_{at}", "description": "Does one thing.", "input_schema": {"type": "object", "properties": {}}}
    for at in range(30)
]


def talk(turns: int, *, asynchronous: bool = False) -> tuple[Any, Emulator]:
    server = Emulator(Script.sequence([Move(text=f"answer {at}") for at in range(turns)]))
    kind = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    client = kind(api_key="k", http_client=emulator.http_client("anthropic", server, asynchronous=asynchronous))
    return loadpoint.wrap(client, Policy(strategy="native")), server


def ask(client: Any, messages: list[Any], tools: list[Any] = TOOLS) -> Any:
    return client.messages.create(model="claude-opus-4-8", max_tokens=50, messages=messages, tools=tools)


def sent(server: Emulator, at: int = -1) -> list[str]:
    texts = [message["content"] for message in server.requests[at]["messages"]]
    return [text if isinstance(text, str) else text[0]["text"] for text in texts]


@pytest.mark.parametrize(
    "change", [lambda m: m.update(content="changed"), lambda m: m["content"][0].update(text="changed")]
)
def test_a_message_changed_in_place_is_sent_changed(change: Any):
    client, server = talk(2)
    first: dict[str, Any] = {"role": "user", "content": [{"type": "text", "text": "as it was"}]}
    messages = [first]
    ask(client, messages)
    change(first)
    ask(client, messages)
    assert sent(server) == ["changed"]


def test_a_tool_changed_in_place_is_sent_changed():
    client, server = talk(2)
    tools = copy.deepcopy(TOOLS)
    policy = Policy(strategy="native", resident=("tool_3",))
    with loadpoint.using(policy):
        ask(client, [{"role": "user", "content": "hi"}], tools)
        tools[3]["description"] = "Does another thing."
        ask(client, [{"role": "user", "content": "hi"}], tools)
    assert [tool["description"] for tool in server.requests[-1]["tools"] if tool["name"] == "tool_3"] == [
        "Does another thing."
    ]


def test_a_new_message_at_the_place_of_an_old_one_is_sent():
    client, server = talk(40)
    for at in range(40):
        ask(client, [{"role": "user", "content": f"text {at}"}])  # its memory is free for the next one
    assert [sent(server, at) for at in range(40)] == [[f"text {at}"] for at in range(40)]


def counting(default: Any) -> dict[str, Any]:
    return {"name": "count", "input_schema": {"type": "object", "properties": {"n": {"default": default}}}}


def test_an_equal_tool_at_the_place_of_an_old_one_is_sent_as_it_is():
    client, server = talk(40)
    client = loadpoint.wrap(client, Policy(strategy="eager"))
    given = [(1, True, 1.0)[at % 3] for at in range(40)]  # all three are equal
    for default in given:
        tools = [counting(default)]
        ask(client, [{"role": "user", "content": "hi"}], tools)
        del tools
    schemas = [next(tool for tool in body["tools"] if tool["name"] == "count") for body in server.requests]
    defaults = [schema["input_schema"]["properties"]["n"]["default"] for schema in schemas]
    assert list(map(repr, defaults)) == list(map(repr, given))


class Options(SimpleNamespace):
    def model_copy(self) -> Options:
        return Options(**vars(self))


def test_what_is_kept_is_bounded():
    copies = Copies()
    image = {"role": "user", "content": [{"type": "image", "source": {"data": "A" * 100_000}}]}
    messages: list[Any] = [image, *({"role": "user", "content": [{"text": f"{at:01000}"}]} for at in range(9_000))]
    sample = (*messages[:2], messages[-1])
    before = [sys.getrefcount(message) for message in sample]
    for message in messages:
        options, known = copies.split(Options(json_data={"messages": [message]}, extra_json=None))
        options.json_data = copy.deepcopy(options.json_data)
        copies.join(options, known)
        assert options.json_data == {"messages": [message]}
        del options, known
    del message
    after = [sys.getrefcount(message) for message in sample]
    assert [one - other for one, other in zip(after, before, strict=True)] == [0, 0, 1]


def test_objects_of_the_sdk_are_copied_each_time():
    client, server = talk(3)
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    reply = ask(client, messages)
    messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": "and now?"}]
    ask(client, messages)
    assert sent(server) == ["hi", "answer 0", "and now?"]


@pytest.mark.anyio
async def test_the_asynchronous_client_finds_copies_too():
    client, server = talk(2, asynchronous=True)
    messages: list[Any] = [{"role": "user", "content": "hi"}]
    for _ in range(2):
        await client.messages.create(model="claude-opus-4-8", max_tokens=50, messages=messages, tools=TOOLS)
    messages[0]["content"] = "changed"
    server.reset()
    await client.messages.create(model="claude-opus-4-8", max_tokens=50, messages=messages, tools=TOOLS)
    assert sent(server, 0) == ["changed"]
