"""The scripted conversation: what the user says, which tools there are, and what they answer.

It is the same in every run and for every provider, except for a few random characters at the head of the system prompt:
they keep one run from reading what an earlier one left in the provider's cache.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from .._json import Json, dumps
from .._tokens import estimate
from ..bench import BenchTool, embedded

TOOLS = 60
LEAST_TOKENS = 1_500
"""The least length of the system prompt (estimate): enough for the caches that start at 1,024 tokens."""


@dataclass(frozen=True, slots=True)
class Said:
    """One thing the user says, and the tool that the model should call because of it (None: it should only answer)."""

    text: str
    expects: str | None = None
    follow_up: bool = False
    """Whether the tool was loaded by an earlier turn, so that no search is needed."""


TICKET, WEATHER = "tickets__create_ticket", "maps__weather_at"

TURNS = (
    Said("Hello! In one short sentence: what is your job here?"),
    Said(
        "File a ticket with a tool, right away and without asking back: project OPS, type bug, summary 'Login page is "
        "down'. No other fields.",
        TICKET,
    ),
    Said("File a second one in the same way, summary 'Sign-up page is down'.", TICKET, follow_up=True),
    Said(
        "Now use a tool to get the current weather at latitude 38.72 and longitude -9.14. No other fields.",
        WEATHER,
    ),
    Said("Thank you. In one short sentence, without a tool: what was done?"),
)

ARGUMENTS: dict[str, tuple[Json, ...]] = {
    TICKET: (
        {"project": "OPS", "type": "bug", "summary": "Login page is down"},
        {"project": "OPS", "type": "bug", "summary": "Sign-up page is down"},
    ),
    WEATHER: ({"latitude": 38.72, "longitude": -9.14},),
}
"""What a model that follows the script calls the tools with, call by call."""


@lru_cache(maxsize=1)
def tools(nonce: str = "") -> Sequence[BenchTool]:
    """Sixty of the embedded tools, those of the script among them. `nonce` stands in the first one's description."""
    everything = embedded()
    wanted = {said.expects for said in TURNS}
    first, *rest = everything.sized(TOOLS, [tool for tool in everything.tools if tool.name in wanted]).tools
    return (replace(first, description=f"Run {nonce}. {first.description}") if nonce else first, *rest)


def answer(name: str, count: int) -> str:
    """What the tool answers to its `count`-th call in the conversation: the same on both sides."""
    return dumps({"ok": True, "tool": name, "id": hashlib.sha256(f"{name}/{count}".encode()).hexdigest()[:8]})


def system(minimum: int, nonce: str) -> str:
    """The system prompt: instructions and a made-up handbook, longer than `minimum` tokens (what a cache needs)."""
    lines = [f"Run {nonce}. {_INSTRUCTIONS}"]
    wanted = max(LEAST_TOKENS, minimum + minimum // 2)
    tokens, number = estimate(lines[0]), 0
    while tokens < wanted:
        number += 1
        lines.append(_entry(number))
        tokens += estimate(lines[-1])
    return "\n".join(lines)


_INSTRUCTIONS = (
    "You are the assistant of an operations team. Use a tool only when the user asks for something that needs one, "
    "call it once, and answer in one short sentence. The handbook below is for reference."
)
_AREAS = ("billing", "checkout", "search", "sign-in", "catalogue", "delivery", "reporting", "messaging")
_OWNERS = ("the harbour team", "the meadow team", "the orchard team", "the lantern team", "the river team")
_STEPS = (
    "restart the oldest worker and watch the queue",
    "compare the last two deployments",
    "switch traffic to the second region",
    "ask the data desk for a consistent copy",
    "mute the alert for an hour and write down why",
)


def _entry(number: int) -> str:
    area, owner = _AREAS[number % len(_AREAS)], _OWNERS[number % len(_OWNERS)]
    step = _STEPS[(number * 3) % len(_STEPS)]
    return f"{number}. Service {area}-{number:03d} belongs to {owner}; when it fails, first {step}."
