"""What a token costs, and by which rules a provider caches a prompt: read from the data, overridable."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from . import _models, _own_models
from ._json import as_object
from ._usage import Usage

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per token: uncached input, input read from the cache, input written to it, output."""

    input: float
    cached: float
    written: float
    output: float


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How a provider caches prompts.

    `minimum`: tokens below which nothing is cached. `block`: the granularity of what is read (1: exact). `read` and
    `write`: price of a cached and of a written token as a multiple of an uncached one. `breakpoints`: how many markers
    a request may carry (0: none). `automatic`: the provider caches without markers. `lookback`: how many positions
    before a marker are tried (0: not limited). `ttl`: seconds an entry lives by default. `source`, `grade`: see
    `Capability`.
    """

    minimum: int
    block: int
    read: float
    write: float
    breakpoints: int
    automatic: bool
    lookback: int = 0
    ttl: int = 300
    source: str = ""
    grade: str = "unverified"
    date: str = ""


def price(model: str, dialect: str, *, overrides: Mapping[str, Prices] | None = None) -> Prices | None:
    """The list price of `model` in USD per token, None if it is not known.

    Order: `overrides` (by the model's name as given), a line of the user's own file (see `capability`), litellm's table
    if the program has imported litellm, our data.
    Batch, priority, regional and long-context surcharges are not in it.
    """
    if overrides and model in overrides:
        return overrides[model]
    own = _own_models.current()
    listed = _from_data(model, dialect, own)
    mine = own.rows("price")
    if mine and price_row(model, dialect) in mine:
        return listed
    return _from_litellm(model) or listed


def price_row(model: str, dialect: str) -> Mapping[str, Any] | None:
    """The line of the data, or of the user's own file, that a list price rests on; None if there is none."""
    return _models.priced("price", _models.parse(model), dialect, None)


def cost(usage: Usage, prices: Prices) -> float:
    """What `usage` costs in USD."""
    return (
        usage.uncached * prices.input
        + usage.cached * prices.cached
        + usage.written * prices.written
        + usage.output * prices.output
    )


def cache_rule(model: str, dialect: str, base_url: str | None = None) -> CacheRule:
    """The cache rule of `model` on this endpoint (None: the provider's own).

    For an unknown model, the dialect's own rule; for an unknown endpoint, that of the model: a gateway usually bills as
    the provider behind it does. Read and write multiples come from the model's list price where the data has one.
    Lines of a user's own file come first, see `capability`.
    """
    return _rule(model, dialect, base_url, _own_models.current())


@lru_cache(maxsize=512)
def _rule(model: str, dialect: str, base_url: str | None, own: _own_models.Own) -> CacheRule:
    parsed = _models.parse(model)
    row = _models.priced("cache", parsed, dialect, _models.endpoint(base_url, dialect, parsed))
    row = row or _models.dialect_row(dialect).get("cache", {})
    listed = _from_data(model, dialect, own)
    read = row.get("read", listed.cached / listed.input if listed and listed.input else 1.0)
    write = row.get("write", listed.written / listed.input if listed and listed.input else 1.0)
    return CacheRule(
        minimum=row.get("minimum", 1024),
        block=row.get("block", 1),
        read=round(read, 4),
        write=round(write, 4),
        breakpoints=row.get("breakpoints", 0),
        automatic=row.get("automatic", True),
        lookback=row.get("lookback", 0),
        ttl=row.get("ttl", 300),
        source=row.get("source", ""),
        date=row.get("date", ""),
        grade=row.get("grade", "unverified"),
    )


@lru_cache(maxsize=512)
def _from_data(model: str, dialect: str, _own: _own_models.Own) -> Prices | None:
    row = price_row(model, dialect)
    if row is None:
        return None
    each: Mapping[str, float] = row["usd"]
    given = each["input"]
    return Prices(
        input=given / MILLION,
        cached=each.get("cached", given) / MILLION,
        written=each.get("written", given) / MILLION,
        output=each["output"] / MILLION,
    )


def _from_litellm(model: str) -> Prices | None:
    """The model's entry in litellm's table. litellm is never imported: its import takes seconds and may go online."""
    table = getattr(sys.modules.get("litellm"), "model_cost", None)
    if not isinstance(table, Mapping):
        return None
    entries = cast("Mapping[str, Any]", table)
    for name in (model, _models.bare(model)):
        entry = as_object(entries.get(name))
        if entry is None:
            continue
        given, output = _rate(entry, "input_cost_per_token"), _rate(entry, "output_cost_per_token")
        if given is None or output is None:
            continue
        cached = _rate(entry, "cache_read_input_token_cost")
        written = _rate(entry, "cache_creation_input_token_cost")
        return Prices(given, given if cached is None else cached, given if written is None else written, output)
    return None


def _rate(entry: Mapping[str, Any], key: str) -> float | None:
    value = entry.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
