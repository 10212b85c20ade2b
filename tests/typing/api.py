"""Never run: mypy and pyright read it. `wrap` keeps the static type of what it is given, whatever that is."""

from __future__ import annotations

from typing import assert_type

import anthropic
import openai
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock
from anthropic.lib.vertex import AnthropicVertex
from openai import AzureOpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

import loadpoint
import loadpoint_adapters.anthropic
from loadpoint import CallReport, Policy


class Mine(openai.OpenAI):
    """A caller's own client class."""

    tenant: str = ""


def sync_types(
    plain: openai.OpenAI, azure: AzureOpenAI, mine: Mine, other: anthropic.Anthropic, bedrock: AnthropicBedrock
) -> None:
    client = assert_type(loadpoint.wrap(plain), openai.OpenAI)
    assert_type(loadpoint.wrap(azure, Policy(resident=("read_*",))), AzureOpenAI)
    assert_type(loadpoint.wrap(mine).tenant, str)
    assert_type(loadpoint.wrap(other), anthropic.Anthropic)
    assert_type(loadpoint.wrap(bedrock), AnthropicBedrock)
    assert_type(loadpoint.unwrap(client), openai.OpenAI)
    assert_type(client.with_options(timeout=3), openai.OpenAI)

    reply = client.chat.completions.create(model="m", messages=[])
    assert_type(reply, ChatCompletion)
    assert_type(loadpoint.report(reply), CallReport)
    for chunk in client.chat.completions.create(model="m", messages=[], stream=True):
        assert_type(chunk, ChatCompletionChunk)


async def async_types(
    plain: openai.AsyncOpenAI, other: anthropic.AsyncAnthropic, bedrock: AsyncAnthropicBedrock
) -> None:
    client = assert_type(loadpoint.wrap(plain, on_report=print), openai.AsyncOpenAI)
    assert_type(await client.chat.completions.create(model="m", messages=[]), ChatCompletion)
    assert_type(loadpoint.wrap(other), anthropic.AsyncAnthropic)
    assert_type(loadpoint.wrap(bedrock), AsyncAnthropicBedrock)


def other_types(vertex: AnthropicVertex, policy: Policy) -> None:
    assert_type(loadpoint.wrap(vertex), AnthropicVertex)
    assert_type(loadpoint_adapters.anthropic.middleware(policy), anthropic.Middleware)
    anthropic.Anthropic(middleware=[loadpoint_adapters.anthropic.middleware(policy)])
    with loadpoint.using(policy) as current:
        assert_type(current, Policy)
