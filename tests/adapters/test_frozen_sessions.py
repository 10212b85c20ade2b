"""Twenty turns with twelve loads through the real SDKs: not one prefix break, however the program keeps its history."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from tests.bench import judge

import loadpoint
from loadpoint import Policy, bench, emulator

TURNS, LOADED = 20, 12
FROZEN = Policy(strategy="frozen", load_at_most=1)
TOOLS = bench.embedded().sized(40)
MODELS = {"openai.chat": "gpt-5.4", "openai.responses": "gpt-5.4", "anthropic.messages": "claude-sonnet-5"}

dialects = pytest.mark.parametrize("dialect", bench.DIALECTS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
echoes = pytest.mark.parametrize("echo", bench.ECHOES)


def session() -> bench.Plan:
    """Twelve turns that load and call a tool each, and eight that call one of them again."""
    chosen = TOOLS.tools[: 3 * LOADED : 3]
    turns = [
        bench.PlannedTurn(
            f"Turn {at}",
            ((bench.Need(tool, bench.arguments_for(tool.parameters), (tool.name.replace("_", " "), tool.name)),),),
            f"Done {at}",
        )
        for at in range(TURNS)
        for tool in [chosen[at % LOADED]]
    ]
    return bench.Plan("twenty", LOADED, tuple(turns))


class Program:
    """A user's program with an SDK client; `client` makes a wrapped one, as another process would."""

    def __init__(self, dialect: str, *, stream: bool, echo: str) -> None:
        self.driver = bench.driver_of(dialect)
        self.plan = session()
        self.player = bench.Player(self.plan)
        self.server = emulator.Emulator(self.player)
        self.reports: list[Any] = []
        results = count()
        self.chat = bench.Chat(
            self.client(), MODELS[dialect], TOOLS.tools, lambda *_: f"result {next(results)}", echo=echo, stream=stream
        )

    def client(self, **more: Any) -> Any:
        bare = self.driver.client(emulator.http_client(self.driver.sdk, self.server))
        return loadpoint.wrap(bare, FROZEN, on_report=self.reports.append, **more)

    def run(self, before: Callable[[int], None] = lambda _: None) -> list[Any]:
        """The bodies that were sent."""
        for at, turn in enumerate(self.plan.turns):
            before(at)
            assert self.driver.say(self.chat, turn.said) == turn.answer
        return [exchange.request or {} for exchange in self.server.exchanges]


@dialects
@streams
@echoes
@pytest.mark.requirement("P5", "P6", "P7")
def test_nothing_breaks(dialect: str, stream: bool, echo: str) -> None:
    program = Program(dialect, stream=stream, echo=echo)
    bodies = program.run()
    assert program.player.missed == []
    assert judge.check(bodies, mode="frozen") == []
    assert len(program.reports[-1].loaded) == LOADED
    assert sum(bool(report.searches) for report in program.reports) == LOADED
    assert all(report.prefix.stable for report in program.reports[1:])
    assert {exchange.status for exchange in program.server.exchanges} == {200}


@dialects
@streams
@echoes
@pytest.mark.parametrize("at", [1, 10, 19])
def test_a_ledger_that_is_lost_costs_at_most_one_break(dialect: str, stream: bool, echo: str, at: int) -> None:
    program = Program(dialect, stream=stream, echo=echo)
    lost: list[int] = []

    def lose(turn: int) -> None:
        if turn == at:
            lost.append(len(program.server.exchanges))
            program.chat.client = program.client()

    found = judge.check(program.run(lose), mode="frozen")
    assert {broken.at for broken in found} <= set(lost)
    assert program.player.missed == []
    assert {exchange.status for exchange in program.server.exchanges} == {200}
    assert len(program.reports[-1].loaded) == LOADED


@dialects
@streams
@pytest.mark.requirement("P40")
def test_another_conversation_of_the_same_client_begins_with_nothing_loaded(dialect: str, stream: bool) -> None:
    program = Program(dialect, stream=stream, echo="dump")
    program.run()
    program.chat.messages.clear()
    program.player.plan = bench.Plan("first", 0, (bench.PlannedTurn("hi", answer="Hello!"),))
    assert program.driver.say(program.chat, "hi") == "Hello!"
    assert program.reports[-1].loaded == ()
