"""pydantic-ai on a wrapped client: `AsyncOpenAI` or `AsyncAnthropic` given to a provider, agents as they are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pydantic
import pytest
from tests.downstream import scene

import loadpoint
from loadpoint import CallReport
from loadpoint.emulator import Move, Script

pydantic_ai = scene.package("pydantic_ai")
tools = scene.package("pydantic_ai.tools")
models = {sdk: scene.package(f"pydantic_ai.models.{sdk}") for sdk in scene.SDKS}
providers = {sdk: scene.package(f"pydantic_ai.providers.{sdk}") for sdk in scene.SDKS}

pytestmark = pytest.mark.anyio
sdks = pytest.mark.parametrize("sdk", scene.SDKS)


class Verdict(pydantic.BaseModel):
    """What came of it."""

    moved: bool


class Office:
    """An agent with eighty tools; `made` are the calls that reached its functions."""

    def __init__(self, sdk: str, client: Any, **options: Any) -> None:
        self.made: list[tuple[str, str]] = []
        self.refuses: set[str] = set()
        if sdk == "openai":
            provider = providers[sdk].OpenAIProvider(openai_client=client)
            model = models[sdk].OpenAIChatModel(scene.MODELS[sdk], provider=provider)
        else:
            provider = providers[sdk].AnthropicProvider(anthropic_client=client)
            model = models[sdk].AnthropicModel(scene.MODELS[sdk], provider=provider)
        assert provider.client is client
        given = [
            tools.Tool.from_schema(self._function(name), name, scene.description(name), scene.SCHEMA)
            for name in scene.NAMES
        ]
        self.agent = pydantic_ai.Agent(model, instructions="You keep the office running.", tools=given, **options)

    def _function(self, name: str) -> Any:
        def function(subject: str) -> str:
            self.made.append((name, subject))
            if subject in self.refuses:
                raise pydantic_ai.ModelRetry("There is no entry of that title.")
            return f"{name}: {subject} is settled"

        return function


MADE = [("calendar_move", "offsite"), ("invoices_approve", "caterer")]


@sdks
async def test_run_over_two_turns_calls_the_functions_and_keeps_the_prefix(sdk: str):
    reports: list[CallReport] = []
    client, server = scene.wrapped(sdk, asynchronous=True, reports=reports)
    office = Office(sdk, client)

    first = await office.agent.run(scene.FIRST)
    second = await office.agent.run(scene.SECOND, message_history=first.all_messages())

    assert (first.output, second.output) == (scene.DONE, scene.DONE)
    assert office.made == MADE
    # search, call, answer; and again
    scene.assert_deferred(sdk, server, requests=6, loads=scene.LOADED)
    assert [report.added_rounds for report in reports] == [1, 0, 1, 0]
    assert scene.LOADER not in second.all_messages_json().decode()
    assert second.usage.requests == 2
    assert second.usage.input_tokens == sum(item.input_tokens for item in server.exchanges[3:])


@sdks
async def test_run_stream_over_two_turns(sdk: str):
    client, server = scene.wrapped(sdk, asynchronous=True)
    office = Office(sdk, client)
    history: Any = None
    for text in (scene.FIRST, scene.SECOND):
        async with office.agent.run_stream(text, message_history=history) as result:
            assert "".join([part async for part in result.stream_text(delta=True)]) == scene.DONE
        history = result.all_messages()
    assert office.made == MADE
    scene.assert_deferred(sdk, server, requests=6, loads=scene.LOADED)
    assert all(item.stream for item in server.exchanges)


@sdks
async def test_iter_and_events_of_a_stream(sdk: str):
    """The graph run that user interfaces are built on: they show one call of a tool, and no search."""
    client, server = scene.wrapped(sdk, asynchronous=True)
    office = Office(sdk, client)
    called: list[str] = []
    async with office.agent.iter(scene.FIRST) as run:
        async for node in run:
            if pydantic_ai.Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for event in stream:
                        part: Any = getattr(event, "part", None)
                        if event.event_kind == "part_start" and part.part_kind == "tool-call":
                            called.append(part.tool_name)
    assert called == [scene.LOADED[0]]
    assert run.result.output == scene.DONE
    scene.assert_deferred(sdk, server, requests=3, loads=scene.LOADED[:1])


@pytest.fixture
def loop() -> Iterator[None]:
    """An event loop for `run_sync`, which takes the thread's own and never closes it."""
    made = asyncio.new_event_loop()
    asyncio.set_event_loop(made)
    yield
    asyncio.set_event_loop(None)
    made.close()


@sdks
def test_run_sync(sdk: str, loop: None):
    client, server = scene.wrapped(sdk, asynchronous=True)
    office = Office(sdk, client)
    assert office.agent.run_sync(scene.FIRST).output == scene.DONE
    assert office.made == MADE[:1]
    scene.assert_deferred(sdk, server, requests=3, loads=scene.LOADED[:1])


@sdks
async def test_parallel_calls_of_loaded_tools(sdk: str):
    both = {scene.FIRST: [scene.MOVE, scene.APPROVE], scene.SECOND: [[scene.APPROVE, scene.MOVE]]}
    client, server = scene.wrapped(sdk, both, asynchronous=True)
    office = Office(sdk, client)
    first = await office.agent.run(scene.FIRST)
    await office.agent.run(scene.SECOND, message_history=first.all_messages())
    assert sorted(office.made) == sorted(MADE * 2)
    scene.assert_deferred(sdk, server, requests=7, loads=scene.LOADED)


@sdks
async def test_a_resident_output_tool_is_called_without_a_search(sdk: str):
    """The tool by which an agent gives its structured output is a tool like any other: keep it resident."""
    plan = {scene.FIRST: [scene.MOVE, ("final_result", {"moved": True})]}
    policy = scene.POLICY.replace(resident=("final_result",))
    client, server = scene.wrapped(sdk, plan, asynchronous=True, policy=policy)
    office = Office(sdk, client, output_type=Verdict)
    assert (await office.agent.run(scene.FIRST)).output == Verdict(moved=True)
    assert office.made == MADE[:1]
    scene.assert_deferred(sdk, server, requests=3, loads=scene.LOADED[:1], residents=["final_result"])


@sdks
async def test_a_deferred_output_tool_is_searched_for(sdk: str):
    plan = {scene.FIRST: [scene.MOVE, ("final_result", {"moved": True}, "final result")]}
    client, server = scene.wrapped(sdk, plan, asynchronous=True)
    office = Office(sdk, client, output_type=Verdict)
    assert (await office.agent.run(scene.FIRST)).output == Verdict(moved=True)
    scene.assert_deferred(sdk, server, requests=4, loads=[scene.LOADED[0], "final_result"])


@sdks
async def test_a_tool_that_asks_for_a_retry(sdk: str):
    """`ModelRetry` goes back to the model as a failed result of the visible call."""
    moves = Script.sequence(
        [
            Move.call(scene.LOADER, {"query": "calendar_move"}),
            Move.call("calendar_move", {"subject": "nothing"}),
            Move.call("calendar_move", {"subject": "offsite"}),
            Move(text=scene.DONE),
        ]
    )
    client, server = scene.wrapped(sdk, moves, asynchronous=True)
    office = Office(sdk, client)
    office.refuses = {"nothing"}
    assert (await office.agent.run(scene.FIRST)).output == scene.DONE
    assert office.made == [("calendar_move", "nothing"), ("calendar_move", "offsite")]
    scene.assert_deferred(sdk, server, requests=4, loads=scene.LOADED[:1])


@sdks
async def test_toolsets_and_decorated_functions(sdk: str):
    """Tools come to an agent in several ways; the request has them all, in an order that stays."""
    client, server = scene.wrapped(
        sdk, {scene.FIRST: [("hang_up", {"line": 4}, "hang up the telephone")]}, asynchronous=True
    )
    office = Office(sdk, client)
    toolset = pydantic_ai.FunctionToolset()
    lines: list[int] = []

    @toolset.tool_plain
    def hang_up(line: int) -> str:
        """Hang up the telephone, whoever is talking."""
        lines.append(line)
        return f"line {line} is free"

    assert (await office.agent.run(scene.FIRST, toolsets=[toolset])).output == scene.DONE
    assert lines == [4]
    scene.assert_deferred(sdk, server, requests=3, loads=["hang_up"])


def test_platforms_are_recognised():
    """pydantic-ai decides by `isinstance` what the platform behind a client can do."""
    azure = loadpoint.wrap(
        openai.AsyncAzureOpenAI(api_key="k", azure_endpoint="https://example.openai.azure.com", api_version="1")
    )
    bedrock = loadpoint.wrap(
        anthropic.AsyncAnthropicBedrock(aws_region="us-east-1", aws_access_key="a", aws_secret_key="s")
    )
    assert isinstance(azure, openai.AsyncAzureOpenAI)
    assert isinstance(bedrock, anthropic.AsyncAnthropicBedrock)
    provider = scene.package("pydantic_ai.providers.azure").AzureProvider(openai_client=azure)
    assert provider.client is azure
    assert providers["anthropic"].AnthropicProvider(anthropic_client=bedrock).client is bedrock
