"""openai-agents on a wrapped client: `OpenAIChatCompletionsModel` on a wrapped `AsyncOpenAI`, runners as they are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from tests.downstream import scene

from loadpoint import CallReport
from loadpoint.emulator import Move, Script

agents = scene.package("agents")

pytestmark = pytest.mark.anyio
MADE = [("calendar_move", "offsite"), ("invoices_approve", "caterer")]


class Verdict(pydantic.BaseModel):
    """What came of it."""

    moved: bool


@pytest.fixture(autouse=True)
def _untraced() -> Iterator[None]:
    """Its tracer would send what happens here to the provider."""
    agents.set_tracing_disabled(True)
    yield
    agents.set_tracing_disabled(False)


class Office:
    """An agent with eighty tools; `made` are the calls that reached its functions."""

    def __init__(self, plan: Any = scene.PLAN, **options: Any) -> None:
        self.made: list[tuple[str, str]] = []
        self.reports: list[CallReport] = []
        self.client, self.server = scene.wrapped("openai", plan, asynchronous=True, reports=self.reports)
        self.model = agents.OpenAIChatCompletionsModel(scene.MODELS["openai"], openai_client=self.client)
        self.agent = agents.Agent(
            name="office",
            model=self.model,
            instructions="You keep the office running.",
            tools=[self._tool(name) for name in scene.NAMES],
            **options,
        )

    def _tool(self, name: str) -> Any:
        async def invoke(context: Any, arguments: str) -> str:
            self.made.append((name, json.loads(arguments)["subject"]))
            return f"{name} is settled"

        return agents.FunctionTool(name, scene.description(name), scene.SCHEMA, invoke)

    def assert_deferred(self, **expected: Any) -> None:
        scene.assert_deferred("openai", self.server, **expected)


async def test_run_over_two_turns_calls_the_functions_and_keeps_the_prefix():
    office = Office()
    first = await agents.Runner.run(office.agent, scene.FIRST)
    second = await agents.Runner.run(office.agent, [*first.to_input_list(), {"role": "user", "content": scene.SECOND}])
    assert (first.final_output, second.final_output) == (scene.DONE, scene.DONE)
    assert office.made == MADE
    office.assert_deferred(requests=6, loads=scene.LOADED)
    assert [report.added_rounds for report in office.reports] == [1, 0, 1, 0]
    assert scene.LOADER not in json.dumps(second.to_input_list())
    billed = office.server.exchanges[3:]
    assert second.context_wrapper.usage.requests == 2
    assert second.context_wrapper.usage.input_tokens == sum(item.input_tokens for item in billed)


async def test_run_streamed_over_two_turns():
    office = Office()
    history: list[Any] = []
    called: list[str] = []
    for text in (scene.FIRST, scene.SECOND):
        result = agents.Runner.run_streamed(office.agent, [*history, {"role": "user", "content": text}])
        events = [event async for event in result.stream_events() if event.type == "run_item_stream_event"]
        called += [event.item.raw_item.name for event in events if event.name == "tool_called"]
        assert result.final_output == scene.DONE
        history = result.to_input_list()
    assert called == list(scene.LOADED)
    assert office.made == MADE
    office.assert_deferred(requests=6, loads=scene.LOADED)
    assert all(item.stream for item in office.server.exchanges)


def test_run_sync():
    office = Office()
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        assert agents.Runner.run_sync(office.agent, scene.FIRST).final_output == scene.DONE
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert office.made == MADE[:1]
    office.assert_deferred(requests=3, loads=scene.LOADED[:1])


async def test_a_session_that_keeps_the_history():
    office = Office()
    session = agents.SQLiteSession("one")
    for text in (scene.FIRST, scene.SECOND):
        assert (await agents.Runner.run(office.agent, text, session=session)).final_output == scene.DONE
    session.close()
    assert office.made == MADE
    office.assert_deferred(requests=6, loads=scene.LOADED)


async def test_parallel_calls_of_loaded_tools():
    office = Office({scene.FIRST: [scene.MOVE, scene.APPROVE, [scene.APPROVE, scene.MOVE]]})
    assert (await agents.Runner.run(office.agent, scene.FIRST)).final_output == scene.DONE
    assert sorted(office.made) == sorted(MADE * 2)
    office.assert_deferred(requests=6, loads=scene.LOADED)


async def test_a_structured_answer_after_a_load():
    moves = [
        Move.call(scene.LOADER, {"query": "calendar_move"}),
        Move.call("calendar_move", {"subject": "offsite"}),
        Move(text='{"moved": true}'),
    ]
    office = Office(Script.sequence(moves), output_type=Verdict)
    assert (await agents.Runner.run(office.agent, scene.FIRST)).final_output == Verdict(moved=True)
    office.assert_deferred(requests=3, loads=scene.LOADED[:1])
    assert all("response_format" in body for body in office.server.requests)


async def test_a_handoff_is_a_tool_that_can_be_found():
    """Handoffs reach the model as tools: they are deferred like the others, unless the policy keeps them."""
    office = Office({scene.FIRST: [("transfer_to_accounting", {}, "transfer to accounting")]})
    accounting = agents.Agent(name="accounting", model=office.model, instructions="You count.")
    office.agent.handoffs.append(accounting)
    result = await agents.Runner.run(office.agent, scene.FIRST)
    assert result.last_agent is accounting
    assert result.final_output == scene.DONE
    assert scene.in_context(office.server.requests[0]) == [scene.LOADER]
    assert scene.in_context(office.server.requests[-1]) == []  # the other agent has no tools: not ours to change


async def test_a_provider_made_of_a_wrapped_client():
    office = Office()
    provider = agents.OpenAIProvider(openai_client=office.client, use_responses=False)
    run = agents.RunConfig(model_provider=provider, tracing_disabled=True)
    office.agent.model = scene.MODELS["openai"]
    assert (await agents.Runner.run(office.agent, scene.FIRST, run_config=run)).final_output == scene.DONE
    office.assert_deferred(requests=3, loads=scene.LOADED[:1])
