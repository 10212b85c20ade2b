"""The scripted sessions: what the user says in each turn and what the model sets out to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from .._json import Json, as_list
from ._canned import arguments_for
from ._toolset import BenchTool, ToolSet

SESSIONS = ("short", "long")
FIRST = "first"
"""The session that ends after its first turn, for figures of first requests."""
LOADS = (2, 6)
LONG_TURNS = 40
SYSTEM = "You are a helpful assistant."


@dataclass(frozen=True, slots=True)
class Need:
    """The model wants to call this tool. `queries` are what it searches for, in order, while it cannot see the tool."""

    tool: BenchTool
    arguments: Json
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """The model searches and does nothing with what it finds. Only where there is something to search with."""

    query: str


Step: TypeAlias = "tuple[Need | Look, ...]"
"""What belongs into one assistant message, as far as the model can do it at once."""


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """One thing the user says, the steps that follow from it, and the text that the model ends with."""

    said: str
    steps: tuple[Step, ...] = ()
    answer: str = "Done. Anything else?"


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole session. `result_tokens` is the least and the greatest size of a tool result."""

    name: str
    loads: int
    turns: tuple[PlannedTurn, ...]
    result_tokens: tuple[int, int] = (10, 10)

    @property
    def needs(self) -> tuple[Need, ...]:
        """Every call that the model sets out to make, in order."""
        return tuple(item for turn in self.turns for step in turn.steps for item in step if isinstance(item, Need))


@dataclass(frozen=True, slots=True)
class Target:
    """A tool that a session loads: what the user asks for, how the model looks for it in the short session, and what
    it tries first in the long one (`detour`: a query that shares no word with the tool's name, or misses).
    """

    tool: BenchTool
    said: str
    query: str
    detour: tuple[str, ...] = ()
    arguments: Json = field(default_factory=dict[str, object])

    def need(self, *, long: bool) -> Need:
        """The call; the exact name is the last thing tried."""
        first = self.detour or (self.query,) if long else (self.query,)
        queries = dict.fromkeys((*first, self.query, self.tool.name))
        return Need(self.tool, self.arguments, tuple(queries))


_KNOWN: tuple[tuple[str, str, str, str, tuple[str, ...], Json], ...] = (
    # server, tool, what the user says, the model's query, what it tries before in the long session, arguments
    (
        "slack",
        "post_message",
        "Tell #general that the release is out.",
        "post a message to a slack channel",
        ("announce a release", "post a message to a slack channel"),
        {"channel": "C024BE91L", "text": "The release is out."},
    ),
    (
        "git",
        "log",
        "What was done in the repository lately?",
        "show the commit history of a git repository",
        ("commit history of a repository",),
        {"repo_path": "/srv/app", "max_count": 20},
    ),
    (
        "payments",
        "refund_payment",
        "Order 1042 came twice. Sort out the second charge, please.",
        "refund a payment",
        ("give a customer their money back",),
        {"payment_id": "pay_1042b", "reason": "duplicate"},
    ),
    (
        "hr",
        "decide_leave",
        "Grace's days off in May are fine with me.",
        "approve a leave request",
        (),
        {"request_id": "lr_77", "decision": "approve"},
    ),
    (
        "calendar",
        "find_free_time",
        "When can the three of us talk this week?",
        "find a time when everyone is free",
        ("slots in which all participants are available",),
        {
            "participants": ["ada@example.com", "grace@example.com"],
            "duration_minutes": 30,
            "from": "2026-12-01T08:00:00Z",
            "to": "2026-12-05T18:00:00Z",
        },
    ),
    (
        "monitoring",
        "search_logs",
        "Why did checkout fail last night?",
        "search log lines of a service",
        (),
        {"query": "checkout error", "from": "2026-11-29T20:00:00Z", "to": "2026-11-30T06:00:00Z"},
    ),
)

_WORD = re.compile(r"[A-Za-z][A-Za-z-]+")


def targets(tools: ToolSet) -> tuple[Target, ...]:
    """The tools that the sessions load, up to the largest number of loads; fewer if there are fewer tools.

    Six well-known ones are scripted by hand. The rest is chosen, from different servers first, and the queries come
    out of the descriptions: the first without the words of the name, the second as it stands.
    """
    known = [_known(tools, *entry) for entry in _KNOWN]
    found = [target for target in known if target is not None]
    taken = {target.tool.name for target in found}
    others = [tool for tool in tools.tools if tool.name not in taken]
    return (*found, *map(_described, _spread(others, max(LOADS) - len(found))))


def _known(
    tools: ToolSet, server: str, own: str, said: str, query: str, detour: tuple[str, ...], arguments: Json
) -> Target | None:
    tool = tools.find(server, own)
    if tool is None:
        return None
    fitting = set(as_list(tool.parameters.get("required"))) <= set(arguments)
    return Target(tool, said, query, detour, arguments if fitting else arguments_for(tool.parameters))


def _spread(tools: Sequence[BenchTool], count: int) -> list[BenchTool]:
    """`count` tools with a description, from as many servers as there are; the middle one of each by schema size."""
    groups: dict[str, list[BenchTool]] = {}
    for tool in tools:
        if _WORD.search(tool.description):
            groups.setdefault(tool.server, []).append(tool)
    ordered = [sorted(group, key=lambda tool: (len(str(tool.parameters)), tool.name)) for group in groups.values()]
    step = max(len(ordered) // max(count, 1), 1)
    ordered = [*ordered[::step], *(group for at, group in enumerate(ordered) if at % step)]
    chosen: list[BenchTool] = []
    while len(chosen) < count and any(ordered):
        for group in ordered:
            if group and len(chosen) < count:
                chosen.append(group.pop(len(group) // 2))
    return chosen


def _described(tool: BenchTool) -> Target:
    words = _WORD.findall(tool.description)[:10]
    name = tool.own.lower()
    others = [word for word in words if word.lower().rstrip("s") not in name]
    query = " ".join(words)
    detour = (" ".join(others),) if len(others) > 2 else ()
    return Target(tool, f"Please take care of this: {query}.", query, detour, arguments_for(tool.parameters))


# ------------------------------------------------------------------------------------------------------- the sessions


def plan(session: str, found: Sequence[Target], loads: int = 2) -> Plan:
    """The session of that name with so many loads (fewer if there are fewer targets).

    Raises `ValueError` for an unknown session or where there is nothing to load.
    """
    chosen = list(found[:loads])
    if session == FIRST:
        return Plan(FIRST, 0, (_GREETING,))
    if not chosen:
        raise ValueError("no tool has a description: nothing a session could look for")
    if session == "short":
        return _short(chosen)
    if session == "long":
        return _long(chosen)
    raise ValueError(f"session: {session!r}; allowed: {', '.join((*SESSIONS, FIRST))}")


_GREETING = PlannedTurn("hi", answer="Hello! What can I do for you?")


def _short(chosen: Sequence[Target]) -> Plan:
    """Four turns: a greeting, work that needs the first half of the tools, the second half, the first again."""
    half = max(len(chosen) // 2, 1)
    first, second = chosen[:half], chosen[half:] or chosen[:half]
    turns = (
        _GREETING,
        _work(first),
        _work(second),
        PlannedTurn(f"Once more: {first[0].said}", ((first[0].need(long=False),),)),
    )
    return Plan("short", len(chosen), turns)


def _work(items: Iterable[Target]) -> PlannedTurn:
    listed = list(items)
    return PlannedTurn(" ".join(item.said for item in listed), tuple((item.need(long=False),) for item in listed))


_LOAD_AT = {2: (3, 12), 6: (3, 8, 12, 17, 23, 31)}
_TALK_AT = (2, 10, 19, 28, 37)
_FLOOD_AT, _NOTHING_AT = 21, 26
_FLOOD = "get list create update"
_NOTHING = "sommelier zeppelin haiku"


def _long(chosen: Sequence[Target]) -> Plan:
    """Forty turns with long results. The second load shares its message with two real calls, one search floods, one
    finds nothing; in every other turn a tool that is already loaded is used again.
    """
    at = next(turns for count, turns in sorted(_LOAD_AT.items()) if count >= len(chosen))
    starts = dict(zip(at, chosen, strict=False))
    loaded: list[Target] = []
    turns = [_GREETING]
    for number in range(2, LONG_TURNS + 1):
        if number in starts:
            turns.append(_start(starts[number], loaded, number))
            loaded.append(starts[number])
        elif number in _TALK_AT or not loaded:
            turns.append(PlannedTurn(f"Note for later, item {number}: keep it short.", answer="Noted."))
        else:
            turns.append(_again(loaded, number))
    return Plan("long", len(chosen), tuple(turns), (1_000, 3_000))


def _start(target: Target, loaded: Sequence[Target], number: int) -> PlannedTurn:
    step: Step = (target.need(long=True),)
    if len(loaded) == 1:
        before = loaded[0].need(long=True)
        step = (*step, before, before)
    return PlannedTurn(f"Now this, number {number}: {target.said}", (step,))


def _again(loaded: Sequence[Target], number: int) -> PlannedTurn:
    target = loaded[number % len(loaded)]
    steps: list[Step] = [(target.need(long=True),)]
    if number == _FLOOD_AT:
        steps.insert(0, (Look(_FLOOD),))
    if number == _NOTHING_AT:
        steps.insert(0, (Look(_NOTHING),))
    return PlannedTurn(f"Next, number {number}: {target.said}", tuple(steps))
