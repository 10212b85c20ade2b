"""An ordinary agent loop on a wrapped Anthropic client; runs against the local emulator where there is no key.

    python examples/agent_loop.py

Nothing in the loop knows of loadpoint: it appends replies, runs the tools that the model calls, and asks again. What
loadpoint did stands in the reports, printed after each turn.
"""

from __future__ import annotations

from typing import Any

import anthropic

import loadpoint
from loadpoint import Policy, bench, emulator

TURNS = (
    "Hello!",
    "Post 'the build is green' to the #releases channel on Slack.",
    "Show the latest commits of the repository in the current folder.",
)


def run(name: str, arguments: Any) -> str:
    """What a tool answers; a real program would call its servers here."""
    return f"{name} was called with {arguments}"


def main() -> None:
    """Talks through the turns."""
    client = loadpoint.wrap(
        anthropic.Anthropic(**emulator.unless_key("ANTHROPIC_API_KEY")),
        Policy(cache="auto"),
        on_report=lambda report: print(f"    [{str(report).splitlines()[0]}]"),
    )
    tools: Any = bench.tools("anthropic.messages")
    messages: list[Any] = []
    for text in TURNS:
        print(f"> {text}")
        messages.append({"role": "user", "content": text})
        while True:
            reply = client.messages.create(model="claude-opus-4-8", max_tokens=1000, messages=messages, tools=tools)
            messages.append({"role": "assistant", "content": reply.content})
            results = [
                {"type": "tool_result", "tool_use_id": block.id, "content": run(block.name, block.input)}
                for block in reply.content
                if block.type == "tool_use"
            ]
            if not results:
                break
            messages.append({"role": "user", "content": results})
        print("".join(block.text for block in reply.content if block.type == "text"))


if __name__ == "__main__":
    main()
