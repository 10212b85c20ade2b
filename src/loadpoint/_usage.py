"""Usage objects: their sum over rounds, the breakdown by round, and the same figures under neutral names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ._json import Json, as_list, as_object

ITERATIONS = "iterations"
"""The key under which a usage object lists its sampling passes, where the API has one."""

_MOST = 2**53


@dataclass(frozen=True, slots=True)
class Usage:
    """What one or several requests were billed for, in tokens.

    `input_tokens` is all input: uncached, `cached` (read from the cache) and `written` (written to it) together.
    """

    input_tokens: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0

    @property
    def uncached(self) -> int:
        """The input tokens that were neither read from the cache nor written to it; never negative."""
        return max(self.input_tokens - self.cached - self.written, 0)

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached + other.cached,
            self.written + other.written,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class UsageFields:
    """Where one dialect's usage object keeps each figure: dotted paths, e.g. `prompt_tokens_details.cached_tokens`.

    `input_is_total` says whether the `input` field already contains what was read from and written to the cache.
    """

    input: str
    output: str
    cached: str = ""
    written: str = ""
    input_is_total: bool = True


def add(usages: Sequence[Json]) -> Json:
    """The sum of usage objects, as a new object in the order in which keys first appear.

    Numbers are summed at every depth, absent and null counters count as nothing (null stays null where no usage has a
    number), objects are added member by member, and anything else (text, booleans, lists) is the last one given. The
    inputs are not touched; one usage comes back equal to itself, none as an empty object.
    """
    total: Json = {}
    for usage in usages:
        _add_into(total, usage)
    return total


def with_iterations(total: Json, rounds: Sequence[Json]) -> Json:
    """A copy of `total` that lists one entry per sampling pass, the form in which an API reports its own loops.

    A round that lists passes itself keeps them; any other becomes one `message` entry with its token counters.
    """
    entries: list[Any] = []
    for usage in rounds:
        own = as_list(usage.get(ITERATIONS))
        entries.extend(own or [_iteration(usage)])
    return {**total, ITERATIONS: entries}


def read(usage: Mapping[str, Any], fields: UsageFields) -> Usage:
    """The neutral figures of a usage object; a field that is absent, null or no possible number counts as 0."""
    cached, written = _figure(usage, fields.cached), _figure(usage, fields.written)
    given = _figure(usage, fields.input)
    whole = given if fields.input_is_total else given + cached + written
    return Usage(input_tokens=whole, cached=cached, written=written, output=_figure(usage, fields.output))


def read_from_cache(usage: Mapping[str, Any], fields: UsageFields) -> int | None:
    """The tokens that were read from the cache; None where the usage object does not say, as behind many gateways."""
    return _figure(usage, fields.cached) if _at(usage, fields.cached) is not None else None


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _add_into(total: Json, usage: Mapping[str, Any]) -> None:
    for key, value in usage.items():
        known = total.get(key)
        inner = as_object(value)
        if inner is not None:
            into = dict(as_object(known) or {})
            _add_into(into, inner)
            total[key] = into
        elif value is None:
            total.setdefault(key, None)
        elif _number(value) and _number(known):
            total[key] = known + value
        else:
            total[key] = value


def _iteration(usage: Json) -> Json:
    """One pass: the token counters of `usage` (null is 0) and its objects that hold nothing but token counters."""
    entry: Json = {"type": "message"}
    for key, value in usage.items():
        inner = as_object(value)
        if inner is not None:
            if inner and all(name.endswith("_tokens") for name in inner):
                entry[key] = dict(inner)
        elif key.endswith("_tokens") and (value is None or _number(value)):
            entry[key] = value or 0
    return entry


def _at(usage: Mapping[str, Any], path: str) -> object:
    value: object = usage
    for key in path.split("."):
        inner = as_object(value)
        value = inner.get(key) if inner is not None else None
    return value


def _figure(usage: Mapping[str, Any], path: str) -> int:
    value = _at(usage, path)
    # NaN fails both comparisons; what no machine could have counted is no figure to calculate with either.
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MOST else 0
