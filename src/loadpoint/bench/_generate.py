"""Invented tools in any number, the same in every run, as large as those of released servers are.

The size of a tool is drawn from a log-normal distribution with the quantiles of 3,590 tools of 103 MCP servers (median
162 tokens, nine in ten under 666), its schema is filled until it has that size. A longer list begins with the shorter.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import product

from .._json import Json, dumps
from .._tokens import BYTES_PER_TOKEN
from ._toolset import BenchTool, ToolSet, embedded

MOST = 100_000
_PER_SERVER = 40
_MEDIAN, _NINE_IN_TEN, _LEAST, _LARGEST = 150, 620, 40, 23_000  # tokens
_SPREAD = math.log(_NINE_IN_TEN / _MEDIAN) / 1.2816  # the 90% quantile of the normal distribution

_DOMAINS = (
    "archive billing booking catalogue claims compliance contracts courses dispatch donations expenses facilities "
    "farming fleet forms gallery glossary grants harbour incidents inventory laboratory lending library licences "
    "logistics maintenance markets menus minutes museum newsletters observatory orchestra parking patents permits "
    "pharmacy planning polls procurement quality recipes recycling referrals roster safety scheduling shipping "
    "surveys taxation telemetry theatre tickets training translations travel vaccines vendors voting warehouse weather"
).split()
_VERBS = (
    "get list search create update delete archive restore approve reject assign export import count compare validate "
    "publish cancel schedule merge"
).split()
_NOUNS = (
    "account address attachment batch budget calendar category certificate comment contact document entry event "
    "field group invoice item label location member message note order payment person policy record report request "
    "review role rule schedule section session status subscription summary template transfer version"
).split()
_ASPECTS = (
    "that the caller may see",
    "of the current workspace",
    "by its identifier",
    "with all of its fields",
    "together with its history",
    "as of a given day",
    "in the order of their last change",
    "page by page",
    "without sending a notification",
    "and returns what has changed",
    "unless it is locked by somebody else",
    "including what is in the archive",
)
_FIELDS = (
    "id owner_id parent_id name title kind state language region amount currency priority reason start end before "
    "after limit offset cursor sort_by order filter fields include_archived dry_run notify tags labels reviewers "
    "metadata timezone format locale channel source reference description"
).split()


def generated(count: int) -> ToolSet:
    """The embedded tools and invented ones behind them, `count` in all (only the first of the embedded if there are
    more). Raises `ValueError` for a number below 1 or beyond 100,000.
    """
    if not 1 <= count <= MOST:
        raise ValueError(f"generate: {count}; allowed: 1 to {MOST:,}")
    known = embedded().tools[:count]
    return ToolSet((*known, *(_tool(at) for at in range(count - len(known)))))


def _tool(at: int) -> BenchTool:
    number, within = divmod(at, _PER_SERVER)
    server = _DOMAINS[number % len(_DOMAINS)] + (f"_{number // len(_DOMAINS) + 1}" if number >= len(_DOMAINS) else "")
    verb, noun = random.Random(server).sample(list(product(_VERBS, _NOUNS)), _PER_SERVER)[within]  # noqa: S311
    source = random.Random(f"{server}/{verb}/{noun}")  # noqa: S311 - reproducible, not secret
    tokens = _MEDIAN * math.exp(source.gauss(0, _SPREAD))
    size = min(max(tokens, _LEAST), _LARGEST) * BYTES_PER_TOKEN
    own = f"{verb}_{noun}"
    aspects = source.sample(_ASPECTS, min(1 + int(size // 600), len(_ASPECTS)))
    description = f"{verb.capitalize()} a {noun} in {server.replace('_', ' ')}, {', '.join(aspects)}."
    parameters = _schema(source, size - len(own) - len(description) - 80)
    return BenchTool(server, own, f"{server}__{own}", description, parameters)


def _schema(source: random.Random, size: float) -> Json:
    """An object schema of about `size` bytes."""
    properties: Json = {}
    left = size
    for name, schema in _properties(source, size):
        left -= len(dumps(schema)) + len(name) + 4
        if left < 0 and properties:
            break
        properties[name] = schema
    required = [name for name in properties if source.random() < 0.3]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _properties(source: random.Random, size: float) -> Iterator[tuple[str, Json]]:
    names = source.sample(_FIELDS, len(_FIELDS))
    for at in range(1_000):
        name = names[at % len(names)] + (f"_{at // len(names) + 1}" if at >= len(names) else "")
        about = f"The {name.replace('_', ' ')} {source.choice(_ASPECTS)}."
        kind = source.randrange(8)
        if kind < 4:
            yield name, {"type": "string", "description": about}
        elif kind == 4:
            yield name, {"type": "integer", "minimum": 0, "maximum": source.choice([50, 100, 1_000]), "default": 10}
        elif kind == 5:
            values = source.sample(_NOUNS, source.randrange(2, 12 if size > 4_000 else 5))
            yield name, {"type": "string", "enum": sorted(values), "description": about}
        elif kind == 6:
            yield name, {"type": "array", "items": {"type": "string"}, "description": about}
        else:
            inner = {item: {"type": "string", "description": about} for item in source.sample(_FIELDS, 2)}
            yield name, {"type": "object", "properties": inner}
