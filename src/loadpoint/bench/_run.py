"""One session of one configuration: the real SDK, wrapped, against the emulator in process."""

from __future__ import annotations

import gc
import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._json import Json
from .._policy import Policy
from .._report import CallReport
from ._canned import result_text
from ._drive import Chat, Driver, RunTool, driver_of
from ._plan import FIRST, Plan, plan
from ._player import Player
from ._toolset import BenchTool
from .measure import Sent

if TYPE_CHECKING:
    from ..emulator import Exchange

TOO_MANY = "chat.too_many_tools"
"""The one rule of the services that a bench run waives: without that, `eager` could not be measured beyond it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One configuration. `policy` None is the SDK without us, `base_url` None its own; the others: see `Chat`."""

    dialect: str
    model: str
    policy: Policy | None
    tools: Sequence[BenchTool]
    plan: Plan
    base_url: str | None = None
    echo: str = "object"
    stream: bool = False
    marked: bool = True
    in_body: bool = False


@dataclass(slots=True, kw_only=True)
class Played:
    """What happened: the requests in order, the program's history, the reports of the calls, and what went wrong."""

    case: Case
    sent: list[Sent] = field(default_factory=list[Sent])
    history: list[Any] = field(default_factory=list[Any])
    reports: list[CallReport] = field(default_factory=list[CallReport])
    problems: list[str] = field(default_factory=list[str])
    searches: int = 0

    @property
    def bodies(self) -> list[Json]:
        """The JSON bodies that were sent, in order."""
        return [item.exchange.request or {} for item in self.sent]

    @property
    def strategy(self) -> str:
        """The strategy that the calls took; the last one's, should they differ."""
        return self.reports[-1].strategy if self.reports else "eager"

    @property
    def load_point(self) -> str | None:
        """The load point of the last call."""
        return self.reports[-1].load_point if self.reports else None


def play(case: Case) -> Played:
    """Drive the whole session. A request that the emulator refuses ends it and stands in `problems`."""
    from .. import emulator

    driver = driver_of(case.dialect)
    player = Player(case.plan)
    server = emulator.Emulator(player, ignore=(TOO_MANY,))
    result = Played(case=case)
    client = _client(driver, server, case, result.reports)
    chat = Chat(
        client,
        case.model,
        case.tools,
        _results(case.plan, 0),
        echo=case.echo,
        stream=case.stream,
        marked=case.marked,
        in_body=case.in_body,
    )
    starts: list[tuple[int, int]] = []  # (exchanges, reports) before each call that the program makes
    chat.before_call = lambda: starts.append((len(server.exchanges), len(result.reports)))
    for number, turn in enumerate(case.plan.turns, 1):
        chat.run = _results(case.plan, number)
        seen = len(server.exchanges)
        try:
            with _quiet():
                answer = driver.say(chat, turn.said)
        except Exception as error:  # noqa: BLE001 - whatever the SDK raises is the finding
            result.problems.append(f"turn {number}: {type(error).__name__}: {error}")
        else:
            if answer != turn.answer:
                result.problems.append(f"turn {number}: expected the text {turn.answer!r}, got {answer!r}")
        result.sent += _sent(number, server.exchanges[seen:], seen, starts, result.reports)
        if result.problems:
            break
    result.problems += [f"{name}: never visible to the model" for name in player.missed]
    result.history = chat.messages
    result.searches = player.searches
    return result


class Stage:
    """Plays sessions, and none twice.

    Eager sessions of two models differ in nothing but the model's name. `auto` sends what the way sends that it takes
    (a greeting shows which): the same bytes.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], Played] = {}

    def played(self, case: Case) -> Played:
        """The session, played now or before. Raises what a client's constructor raises."""
        if case.policy is not None and case.policy.strategy == "auto" and len(case.plan.turns) > 1:
            greeting = play(replace(case, plan=plan(FIRST, ())))
            known = self._known.get(self._key(case, greeting))
            if known is not None and not greeting.problems:
                return known
        if case.policy is None and self._key(case, None) in self._known:
            return self._known[self._key(case, None)]
        done = play(case)
        self._known.setdefault(self._key(case, done), done)
        return done

    @staticmethod
    def _key(case: Case, done: Played | None) -> tuple[object, ...]:
        same = (case.dialect, case.plan.name, case.plan.loads, len(case.tools), case.marked)
        if done is None or done.strategy == "eager":
            return (*same, "eager")
        return (*same, case.model, case.base_url, done.strategy, done.load_point)


@contextmanager
def rare_collections() -> Generator[None]:
    """Fewer collections of garbage in the block: JSON makes no cycles, and looking for them takes a third of a run."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _quiet() -> Generator[None]:
    """The emulator's warnings about the waived rule are dropped: it would be one per request."""

    def wanted(record: logging.LogRecord) -> bool:
        return TOO_MANY not in record.getMessage()

    logger = logging.getLogger("loadpoint.emulator")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


def _client(driver: Driver, server: Any, case: Case, reports: list[CallReport]) -> Any:
    from .. import emulator
    from .._adapter import wrap

    client = driver.client(emulator.http_client(driver.sdk, server), case.base_url)
    return client if case.policy is None else wrap(client, case.policy, on_report=reports.append)


def _results(plan: Plan, number: int) -> RunTool:
    """The program's tools in that turn: every call gets its own canned result."""
    calls = iter(range(1_000))
    return lambda name, _: result_text(f"{number}/{next(calls)}/{name}", _size(plan, number))


def _size(plan: Plan, number: int) -> int:
    least, most = plan.result_tokens
    return least + (number * 619) % max(most - least, 1)  # spread over the range, the same in every run


def _sent(
    turn: int,
    exchanges: Sequence[Exchange],
    offset: int,
    starts: Sequence[tuple[int, int]],
    reports: Sequence[CallReport],
) -> list[Sent]:
    """The model requests of one turn; the first of each call carries what the call's report says of the prefix."""
    calls = {at: reports[known] if known < len(reports) else None for at, known in starts}
    listed: list[Sent] = []
    for at, exchange in enumerate(exchanges, offset):
        if exchange.endpoint != "create":
            continue
        report = calls.get(at)
        told = report.prefix.broke if report is not None else None
        listed.append(Sent(turn, len(listed) + 1, exchange, told if told != "first_request" else None))
    return listed
