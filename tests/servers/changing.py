"""An MCP server over stdio whose list of tools changes: calling `connect` adds the tools of a calendar."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

server = MCPServer("office")


def next_event(day: str) -> str:
    """Says what is next in the calendar on a day."""
    return f"nothing on {day}"


@server.tool()
def post_letter(to: str) -> str:
    """Sends a letter to somebody."""
    return f"sent to {to}"


@server.tool()
async def connect(ctx: Context) -> str:
    """Connects the calendar."""
    server.add_tool(next_event)
    await ctx.session.send_tool_list_changed()
    return "connected"


@server.tool()
async def disconnect(ctx: Context) -> str:
    """Takes the calendar away."""
    server.remove_tool("next_event")
    await ctx.session.send_tool_list_changed()
    return "gone"


if __name__ == "__main__":
    server.run()
