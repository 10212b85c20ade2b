"""The model that comes with the emulator finds its way through a bridge and through a confirmation."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest

import loadpoint
from loadpoint import Policy, bench, emulator

ASKED = "Post a message to the #releases channel on Slack."


def called(dialect: str, policy: Policy) -> list[str]:
    if dialect == "anthropic.messages":
        claude: Any = loadpoint.wrap(
            anthropic.Anthropic(api_key="k", http_client=emulator.http_client("anthropic")), policy
        )
        said: Any = [{"role": "user", "content": ASKED}]
        reply = claude.messages.create(
            model="claude-sonnet-5", max_tokens=900, messages=said, tools=bench.tools(dialect)
        )
        return [block.name for block in reply.content if block.type == "tool_use"]
    client: Any = loadpoint.wrap(openai.OpenAI(api_key="k", http_client=emulator.http_client("openai")), policy)
    if dialect == "openai.responses":
        reply = client.responses.create(model="gpt-5.4", input=ASKED, tools=bench.tools(dialect))
        return [item.name for item in reply.output if item.type == "function_call"]
    said = [{"role": "user", "content": ASKED}]
    reply = client.chat.completions.create(model="gpt-5.4", messages=said, tools=bench.tools(dialect))
    return [call.function.name for call in reply.choices[0].message.tool_calls or []]


@pytest.mark.parametrize("dialect", ["openai.chat", "openai.responses", "anthropic.messages"])
@pytest.mark.parametrize(
    "policy",
    [Policy(strategy="frozen"), Policy(confirm="model"), Policy(strategy="frozen", confirm="model")],
    ids=["frozen", "confirm", "both"],
)
def test_it_calls_what_it_was_asked_for(dialect: str, policy: Policy):
    assert called(dialect, policy) == ["slack__post_message"]
