"""Copies of the caller's messages and tools are found again only while the originals are as they were."""

from __future__ import annotations

import copy
from typing import Any

import anthropic
import pytest

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move, Script

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
    with pytest.raises(anthropic.BadRequestError):  # the script starts again, and has two moves
        for _ in range(3):
            await client.messages.create(model="claude-opus-4-8", max_tokens=50, messages=messages, tools=TOOLS)
    assert sent(server, 0) == ["changed"]
