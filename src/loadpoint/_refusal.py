"""Native forms that a provider refuses: recognised by its error message, remembered per endpoint and model."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._catalog import clean_text
from ._json import as_object, parse_object

if TYPE_CHECKING:
    from ._plan import Plan

_STATUS = (400, 422)
"""Refused by the provider, and by servers that check a request against a schema before they read it."""
_TOLD = 200


@dataclass(frozen=True, slots=True)
class Refusal:
    """A load point that was refused; with `wants_all` only the declaration of fewer than all deferred tools was."""

    point: str
    wants_all: bool = False


class Refusals:
    """What the endpoints of one client have refused, for as long as the client lives. Safe to use from any thread."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], frozenset[Refusal]] = {}
        self._lock = threading.Lock()

    def of(self, place: str, model: str) -> frozenset[Refusal]:
        """What an endpoint has refused for a model."""
        return self._known.get((place, model), frozenset())

    def add(self, place: str, model: str, refusals: Collection[Refusal]) -> None:
        """Remember that a call went through once it did without these."""
        with self._lock:
            self._known[place, model] = self.of(place, model) | frozenset(refusals)


def refusal(plan: Plan, status: int, message: str) -> Refusal | None:
    """What an error says about the native form of the request that it answers; None if it is about something else.

    Only what the data of a load point names counts: any other error is the caller's.
    """
    if status not in _STATUS:
        return None
    for point in (plan.additive, plan.point):
        if point is None:
            continue
        # By value nothing is declared, and what nobody has defined is the caller's. A second time it does not help.
        if point.declare and point.wants_all(message):
            return Refusal(point.name, wants_all=plan.composer.declares and not plan.composer.declare_all)
        if point.refuses(message):
            return Refusal(point.name)
    return None


def said(message: str) -> str:
    """The provider's own words in the body of an error, shortened."""
    found = as_object((parse_object(message) or {}).get("error")) or {}
    return clean_text(str(found.get("message") or message), _TOLD)
