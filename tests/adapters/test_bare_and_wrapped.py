"""What a caller may send that is no request as documented: the wrapped client gets what the bare one gets."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from tests.adapters.paths import each, settle
from tests.adapters.rig import CLASSES, SDKS

import loadpoint
from loadpoint import Policy, bench, emulator

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
DIALECTS = {"openai": "openai.chat", "anthropic": "anthropic.messages"}
MODELS = {"openai": "gpt-5.4", "anthropic": "claude-sonnet-5"}


def clients(sdk: str, *, asynchronous: bool) -> list[tuple[Any, emulator.Emulator]]:
    """A bare and a wrapped client, each in front of an emulator of its own."""
    made: list[tuple[Any, emulator.Emulator]] = []
    for wrapped in (False, True):
        server = emulator.Emulator(rules="off")
        http = emulator.http_client("openai" if sdk == "openai" else "anthropic", server, asynchronous=asynchronous)
        client = CLASSES[sdk, asynchronous](api_key="k", http_client=http)
        policy = Policy(threshold_tokens=0, strategy="resend")
        made.append((loadpoint.wrap(client, policy) if wrapped else client, server))
    return made


async def sent(sdk: str, client: Any, server: emulator.Emulator, changes: dict[str, Any]) -> tuple[str, list[bytes]]:
    """How a request ends, and the bodies that were sent for it."""
    body: dict[str, Any] = {"model": MODELS[sdk], "tools": bench.tools(DIALECTS[sdk])[:40], **changes}
    body |= {"max_tokens": 9} if sdk == "anthropic" else {}
    api = client.chat.completions if sdk == "openai" else client.messages
    try:
        reply = await settle(api.create(**body))
        if body.get("stream"):
            async for _ in each(reply):
                pass
    except Exception as error:  # noqa: BLE001 - whatever the bare SDK raises is right
        return type(error).__name__, [exchange.raw for exchange in server.exchanges]
    return "", [exchange.raw for exchange in server.exchanges]


@both
@sdks
@streams
@pytest.mark.parametrize("messages", [None, "Post hi on Slack.", {}], ids=["null", "text", "object"])
async def test_messages_that_are_no_list_are_sent_as_they_came(
    sdk: str, asynchronous: bool, stream: bool, messages: Any
):
    bare, wrapped = [
        await sent(sdk, *given, {"messages": messages, "stream": stream})
        for given in clients(sdk, asynchronous=asynchronous)
    ]
    assert wrapped == bare
    assert len(bare[1]) == 1
    assert json.loads(wrapped[1][0])["messages"] == json.loads(bare[1][0])["messages"]


@both
@sdks
async def test_what_cannot_be_written_as_json_is_no_fault_of_ours(
    sdk: str, asynchronous: bool, caplog: pytest.LogCaptureFixture
):
    messages = [{"role": "user", "content": "hi"}]
    odd: dict[str, Any] = {"metadata": {"user_id": b"x"}}
    if sdk == "openai":
        odd = {"tools": [{"type": "function", "function": {"name": "odd", "parameters": {"required": {"a"}}}}]}
    with caplog.at_level(logging.WARNING, "loadpoint"):
        bare, wrapped = [
            await sent(sdk, *given, {"messages": messages, **odd}) for given in clients(sdk, asynchronous=asynchronous)
        ]
    assert wrapped == bare
    assert bare[0] == "TypeError"
    assert [record.message for record in caplog.records if record.name == "loadpoint"] == []


@both
@sdks
async def test_equal_values_of_other_types_are_sent_as_they_are(sdk: str, asynchronous: bool):
    [(client, server)] = clients(sdk, asynchronous=asynchronous)[1:]
    given = (1, True, 1.0, 0, False, 1)  # all ones are equal, and both noughts
    for default in given:
        schema = {"type": "object", "properties": {"n": {"default": default}}}
        count: dict[str, Any] = {"name": "count", "input_schema": schema}
        if sdk == "openai":
            count = {"type": "function", "function": {"name": "count", "parameters": schema}}
        with loadpoint.using(Policy(threshold_tokens=0, strategy="resend", resident=("count",))):
            tools = [count, *bench.tools(DIALECTS[sdk])[:40]]
            await sent(sdk, client, server, {"messages": [{"role": "user", "content": "Hello!"}], "tools": tools})
    found: list[str] = []
    for exchange in server.exchanges:
        wires = [wire.get("function", wire) for wire in json.loads(exchange.raw)["tools"]]
        wire = next(wire for wire in wires if wire["name"] == "count")
        found.append(repr((wire.get("parameters") or wire["input_schema"])["properties"]["n"]["default"]))
    assert found == list(map(repr, given))


@both
@sdks
async def test_keys_that_are_no_text_become_what_the_sdk_makes_of_them(sdk: str, asynchronous: bool):
    schema: dict[str, Any] = {"type": "object", "properties": {1: {}, None: {}}}
    tool: dict[str, Any] = {"name": "odd", "input_schema": schema}
    if sdk == "openai":
        tool = {"type": "function", "function": {"name": "odd", "parameters": schema}}
    changes: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello!"}], "tools": [tool]}
    bare, wrapped = [await sent(sdk, *given, changes) for given in clients(sdk, asynchronous=asynchronous)]
    assert wrapped[0] == bare[0] == ""
    assert b'"null":{}' in wrapped[1][0].replace(b" ", b"") or b"ToolSearch" in wrapped[1][0]
