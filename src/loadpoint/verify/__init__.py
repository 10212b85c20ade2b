"""The code behind `loadpoint verify`: one conversation with a real provider, wrapped and bare, within a budget.

from loadpoint import verify
outcome = verify.run(verify.Settings(provider="anthropic", budget=0.25))
outcome.verified, outcome.figures("wrapped"), outcome.as_json()
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from .._prices import cache_rule, price
from ._meter import Meter, Sent
from ._outcome import Figures, Outcome, host_of, verdict
from ._place import Place, Settings, UnusableError, budget_of, place, prices_of, providers
from ._play import BARE, WRAPPED, Player, Progress, Side, dialect_of, sdk_client
from ._questions import Answer, Prober, Question, chosen, of_run, questions
from ._redact import redacted

__all__ = [
    "BARE",
    "WRAPPED",
    "Answer",
    "Figures",
    "Outcome",
    "Place",
    "Progress",
    "Question",
    "Sent",
    "Settings",
    "Side",
    "UnusableError",
    "budget_of",
    "place",
    "prices_of",
    "providers",
    "questions",
    "redacted",
    "run",
    "verdict",
]


def _silent(_: str) -> None:
    """Tells nobody."""


def run(settings: Settings, progress: Progress = _silent) -> Outcome:
    """Play the conversation wrapped, then bare, then the probes; what came back, however far it went.

    Raises `UnusableError` for settings with which nothing can be run (no key, an unknown provider), `PolicyError` for
    an unusable `strategy` or `endpoint`, `ModuleNotFoundError` without the SDK or tenacity.
    """
    _ready()
    where = place(settings)
    probes = chosen(settings.probes, where)
    _ = settings.policy  # an unusable one is told before anything is spent
    key = where.credential()
    dialect = dialect_of(where.dialect)
    prices = settings.prices or price(where.model, where.dialect)
    meter = Meter(settings.budget, prices, dialect.usage_fields)
    client = sdk_client(where, key, meter)
    outcome = Outcome(
        place=where,
        settings=settings,
        fields=dialect.usage_fields,
        key=key,
        host=host_of(client),
        started=datetime.now(UTC).isoformat(timespec="seconds"),
        sent=meter.sent,
    )
    try:
        _both_sides(outcome, client, meter, probes, progress)
    except KeyboardInterrupt:
        outcome.stopped = "interrupted"
    finally:
        outcome.spent = meter.spent
        client.close()
    return outcome


def _ready() -> None:
    """Raises, before anything is spent, what would make the run fail or say nothing."""
    from importlib import import_module

    import_module("tenacity")
    if os.environ.get("LOADPOINT", "").strip():
        raise UnusableError("the environment variable LOADPOINT changes what a wrapped client does: unset it first")


def _both_sides(outcome: Outcome, client: Any, meter: Meter, probes: Sequence[Question], progress: Progress) -> None:
    """Both sides and the probes, into `outcome`, until something stops it."""
    where, settings = outcome.place, outcome.settings
    nonce = os.urandom(4).hex()
    rule = cache_rule(where.model, where.dialect, settings.endpoint or where.base_url)
    player = Player(where, settings, meter, progress)
    for name in (WRAPPED, BARE):
        side = Side(name)
        outcome.sides.append(side)
        player.play(side, client, nonce)
        if side.failure is not None:
            outcome.stopped = redacted(side.failure, outcome.key)
            break
    if outcome.wrapped is not None:
        outcome.answers += of_run(where, outcome.wrapped, meter.sent, rule)
    prober = Prober(where, client, meter, rule, nonce)
    for question in probes:
        if outcome.stopped is not None:
            break
        progress(f"probe {question.id}: {question.question}")
        outcome.answers.append(prober.ask(question))
        outcome.stopped = meter.refused
