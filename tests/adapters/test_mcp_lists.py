"""A real MCP server over stdio that says that its list of tools has changed, in the middle of a conversation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anthropic
import anyio
import pytest

import loadpoint
from loadpoint import Policy, Toolbox, emulator
from loadpoint.emulator import Emulator, Move, Script

mcp = pytest.importorskip("mcp", reason="the extra mcp is not installed")
SERVER = Path(__file__).parents[1] / "servers" / "changing.py"


class Office:
    """A session with the server that keeps a toolbox as the server's list is."""

    def __init__(self, box: Toolbox) -> None:
        self.box = box
        self.session: Any = None
        self.changed = anyio.Event()

    async def heard(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.changed.set()

    async def listed(self) -> tuple[str, ...]:
        return self.box.update("office", (await self.session.list_tools()).tools)

    async def called(self, name: str) -> tuple[str, ...]:
        """Call a tool that changes the list, wait to be told, and take the new one over."""
        self.changed = anyio.Event()
        await self.session.call_tool(name, {})
        with anyio.fail_after(20):
            await self.changed.wait()
        return await self.listed()


@pytest.mark.anyio
@pytest.mark.parametrize("load_point", ["tool_reference", "tool_addition"])
async def test_what_a_server_adds_stands_at_the_load_point_and_what_it_takes_away_is_taken_back(load_point: str):
    given = mcp.StdioServerParameters(command=sys.executable, args=[str(SERVER)])
    box = Toolbox()
    office = Office(box)
    moves = [Move(text="hello"), Move.call("next_event", {"day": "Monday"}), Move(text="nothing"), Move(text="bye")]
    server = Emulator(Script.sequence(moves))
    http = emulator.http_client("anthropic", server, asynchronous=True)
    policy = Policy(strategy="native", load_point=load_point)
    client = loadpoint.wrap(anthropic.AsyncAnthropic(api_key="k", http_client=http), policy, toolbox=box)
    messages: list[Any] = []

    async def ask(content: Any) -> Any:
        messages.append({"role": "user", "content": content})
        reply = await client.messages.create(model="claude-opus-5", max_tokens=200, messages=messages)
        messages.append({"role": "assistant", "content": reply.content})
        return reply

    async with (
        mcp.stdio_client(given) as (read, write),
        mcp.ClientSession(read, write, message_handler=office.heard) as session,
    ):
        office.session = session
        await session.initialize()
        await office.listed()
        await ask("hi")
        assert await office.called("connect") == ("next_event",)
        reply = await ask("what is next on Monday")
        (call,) = [block for block in reply.content if block.type == "tool_use"]
        assert (call.name, call.input) == ("next_event", {"day": "Monday"})
        assert loadpoint.report(reply).prefix.stable
        said = (await session.call_tool(call.name, call.input)).content[0].text
        await ask([{"type": "tool_result", "tool_use_id": call.id, "content": said}])
        assert await office.called("disconnect") == ()
        await ask("thanks")
    first, second, third, last = server.exchanges
    assert first.tokens.tools == last.tokens.tools, "the list is never rewritten"
    assert [exchange.loaded for exchange in (first, second, third)] == [(), ("next_event",), ("next_event",)]
    asked: Any = last.request
    removals = [b for m in asked["messages"] if m["role"] == "system" for b in m["content"]]
    assert [block["type"] for block in removals] == ["tool_addition", "tool_removal"]
    assert all(exchange.warnings == () for exchange in server.exchanges)
