"""Rounds that are restored from the searches that a caller was shown: the idea that the APIs with such items share.

The id of a shown call says where the loader call stood in its round, and of how many items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from loadpoint._json import Json


class Placed(NamedTuple):
    """A loader call, its place in its round, and how many items that round had (0 where that is not known)."""

    call: Json
    at: int
    of: int


def interleaved(here: Sequence[Json], calls: Sequence[Placed]) -> list[Json]:
    """The items of a round with the calls in their places, or behind them where others have been lost."""
    total = len(here) + len(calls)
    places: dict[int, Json] = {}
    behind: list[Json] = []
    for call, at, of in calls:
        if of == total and at < total and at not in places:
            places[at] = call
        else:
            behind.append(call)
    rest = iter([*here, *behind])
    return [places[at] if at in places else next(rest) for at in range(total)]
