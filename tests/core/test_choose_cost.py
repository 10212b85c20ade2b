"""`auto` is never the dearest choice: a model of a session, over price rows, sizes, turns and loads.

The thresholds in the data were read off this model (`python -m pytest tests/core/test_choose_cost.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest

from loadpoint._capability import Capability, LoadPoint
from loadpoint._policy import Policy
from loadpoint._prices import CacheRule
from loadpoint._strategy.choose import choose, threshold

SLACK = 1.05
OUTPUT = 5.0  # price of an output token in uncached input tokens
RESULTS = 2000  # tokens of tool results per turn
USER, CALL, SEARCH, ANSWER = 60, 120, 60, 250
LISTING = 150  # a loader's answer without definitions
LOADER, CATALOG, LINE = 220, 600, 12
ROWS = [(1.0, 1.0), (0.5, 1.0), (0.25, 1.0), (0.1, 1.0), (0.1, 1.25), (0.05, 1.0), (0.05, 1.25), (0.025, 1.25)]
TOOLS = (20, 40, 80, 200, 1000)
SIZES = (75, 150, 222, 400)
# Turns, loads, tools per load. Six searches in four turns are counted with one tool each: more would load most of a
# small list, and nothing that searches pays then.
SESSIONS = [(4, 2, 1), (4, 2, 3), (40, 2, 3), (40, 6, 1), (40, 6, 3)]
HASTY = (4, 6, 1)


@dataclass(frozen=True)
class Session:
    turns: int
    loads: int
    per_load: int
    tools: int
    size: int
    read: float
    write: float
    system: int = 1000
    results: int = RESULTS


class Meter:
    """Bills requests whose prompt is a head (tools) and a body (system and messages), as a prefix cache does."""

    def __init__(self, session: Session, head: int):
        self.session, self.head, self.body = session, head, session.system
        self.before = (0, 0)
        self.cost = 0.0

    def request(self, output: int):
        head, body = self.before
        common = head + body if head == self.head else min(head, self.head)
        common = common if common >= 1024 else 0
        fresh = self.head + self.body - common
        self.cost += common * self.session.read + fresh * self.session.write + output * OUTPUT
        self.before = (self.head, self.body)
        self.body += output


def spent(strategy: str, session: Session) -> float:
    """What a session costs, in uncached input tokens."""
    eager = strategy == "eager"
    everything = session.tools * session.size
    meter = Meter(session, everything if eager else LOADER + min(CATALOG, LINE * session.tools))
    when = [int((load + 0.5) * session.turns / session.loads) for load in range(session.loads)]
    left = session.tools
    for turn in range(session.turns):
        meter.body += USER
        for _ in range(0 if eager else when.count(turn)):
            meter.request(SEARCH)
            loaded = min(session.per_load, left)
            left -= loaded
            meter.body += LISTING if strategy == "resend" else loaded * session.size + 30
            meter.head += loaded * session.size if strategy == "resend" else 0
        steps = 2 if turn % 5 == 4 else 1  # 2.2 requests per turn
        for _ in range(steps):
            meter.request(CALL)
            meter.body += session.results // steps
        meter.request(ANSWER)
    return meter.cost


def decided(session: Session, *, native: bool) -> str:
    point = LoadPoint("tool_reference")
    capability = Capability(
        ("native", "resend", "eager") if native else ("resend", "eager"),
        ("tool_reference",) if native else (),
        native,
        "test",
        "test",
        "documented",
        points=(point,) if native else (),
    )
    return choose(
        policy=Policy(),
        capability=capability,
        deferrable_tokens=session.tools * session.size,
        resident_tokens=0,
        deferrable_count=session.tools,
        cache_rule=CacheRule(1024, 128, session.read, session.write, 0, True),
        pinned=None,
        evidence=False,
        context_tokens=session.system,
    ).strategy


def sessions(read, write, shapes, system=1000):
    for tools, size, (turns, loads, per_load) in product(TOOLS, SIZES, shapes):
        yield Session(turns, loads, per_load, tools, size, read, write, system)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(("read", "write"), ROWS)
def test_auto_costs_at_most_everything_plus_5_percent(read, write, native):
    for session in sessions(read, write, [*SESSIONS, HASTY]):
        strategy = decided(session, native=native)
        assert spent(strategy, session) <= SLACK * spent("eager", session), (strategy, session)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("system", [5000, 20_000, 100_000])
@pytest.mark.parametrize(("read", "write"), ROWS)
def test_a_long_context_at_the_start_is_paid_again_by_every_break_and_counts(read, write, system, native):
    for session in sessions(read, write, SESSIONS, system):
        strategy = decided(session, native=native)
        assert spent(strategy, session) <= SLACK * spent("eager", session), (strategy, session)


@pytest.mark.parametrize(("read", "write"), ROWS)
def test_resend_is_refused_only_where_it_may_lose(read, write):
    # Not more careful than needed: half the threshold must lose somewhere, else deferral is given away.
    rule = CacheRule(1024, 128, read, write, 0, True)
    least = threshold("resend", rule)
    assert least is not None
    half = [
        Session(turns, loads, per_load, least // 2 // size, size, read, write)
        for size, (turns, loads, per_load) in product(SIZES, [*SESSIONS, HASTY])
    ]
    assert any(spent("resend", session) > SLACK * spent("eager", session) for session in half)


def test_a_thousand_tools_are_deferred_on_every_price_row_that_discounts_reads_to_a_tenth_or_less():
    for read, write in ROWS:
        session = Session(40, 6, 3, 1000, 150, read, write)
        assert decided(session, native=False) == "resend"
        assert decided(session, native=True) == "native"
        assert spent("resend", session) < spent("eager", session)
        assert spent("native", session) < spent("eager", session) / 2
