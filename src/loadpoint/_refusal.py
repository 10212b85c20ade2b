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
_TELLING = 2
_PLACES = 1_000
"""Endpoints with models of which one client remembers that they cache."""


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


class Doubts:
    """Load points after which an endpoint's cache is not read, so that a stable prompt does not pay there.

    Two misses in a row tell: one may be an eviction. It holds for new conversations, for as long as the client lives.
    Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._misses: dict[tuple[str, str, Refusal], int] = {}
        self._reads: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def read(self, place: str, model: str) -> None:
        """Note that an endpoint has read from its cache for a model; where it never does, a miss says nothing."""
        with self._lock:
            if len(self._reads) < _PLACES:
                self._reads.add((place, model))

    def of(self, place: str, model: str) -> frozenset[Refusal]:
        """What is doubted at an endpoint for a model."""
        known = [*self._misses.items()]
        return frozenset(what for (*where, what), misses in known if where == [place, model] and misses >= _TELLING)

    def count(self, place: str, model: str, what: Refusal, *, missed: bool) -> bool:
        """Note whether the cache was missed behind a load; True when that has just become one miss too many."""
        with self._lock:
            key = (place, model, what)
            before = self._misses.get(key, 0)
            if before >= _TELLING or (place, model) not in self._reads:
                return False
            if not missed:
                self._misses.pop(key, None)
                return False
            self._misses[key] = before + 1
            return before + 1 >= _TELLING


def doubtful(plan: Plan) -> Refusal:
    """What to do without where the cache is not read behind loads of this plan: a late declaration, else the form."""
    late = plan.composer.declares and not plan.composer.declare_all
    return Refusal(plan.point.name if plan.point is not None else "", wants_all=late)


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
