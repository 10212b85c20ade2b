"""The loader tool `ToolSearch`: its definition, its arguments as models write them, its answer."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from ._catalog import clean_text, described, largest_servers
from ._json import Json, as_list, as_object, dumps, parse_object
from ._search import FusedRanker, Match, Ranker, ToolIndex
from ._tool import Tool

LOADER_NAME = "ToolSearch"
"""The loader's name, unless a tool of the caller has it."""

MOST_RESULTS, DEFAULT_RESULTS = 20, 5
_USUAL = 4
_WEAK, _CLOSE, _LARGE, _PER_DOUBLING = 0.5, 0.9, 256, 0.1
"""How many matches load, and from which share of the best score: half of it, a tenth more for each time that a tool is
twice as large as 256 tokens, at most nine tenths. See docs/decisions/0021-what-a-search-loads.md.
"""
_SURPLUS = 128
"""Tokens more than what is missing that a tool may have to fill a prompt up."""
_QUERY, _ECHO, _ABOUT = 4_000, 200, 120
"""Characters: of a query that is read, of its echo, of a description in an answer."""

_TEXT = "Loads tools you do not see. Search before using one: exact name, several names, or capability words."
_EXPECTED = 'expected {"query": string, "max_results"?: integer from 1 to 20}'
_QUERY_KEYS = (
    "query",
    "queries",
    "q",
    "search",
    "text",
    "keywords",
    "name",
    "names",
    "tool_name",
    "tool",
    "tools",
    "input",
)
_COUNT_KEYS = ("max_results", "maxResults", "limit", "top_k", "k", "count")
_WRAPPERS = ("arguments", "args", "params", "parameters", "input")


@dataclass(frozen=True, slots=True)
class LoaderQuery:
    """What a loader call asks for: words or names, and how many results at most (1 to 20)."""

    query: str
    max_results: int = DEFAULT_RESULTS


@runtime_checkable
class Searcher(Protocol):
    """Anything that finds tools for a query: `ToolIndex` or `FusedRanker`."""

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` matches, best first."""
        ...


def loader_name(taken: Collection[str]) -> str:
    """The loader's name where the caller's tools are called `taken`: `ToolSearch`, else `ToolSearch2` and so on."""
    name, number = LOADER_NAME, 1
    while name in taken:
        number += 1
        name = f"{LOADER_NAME}{number}"
    return name


def loader_schema(*, confirm: bool = False) -> Json:
    """The JSON Schema of the loader's parameters; a new object each time. `confirm`: a load is made in two calls.

    Its bounds (a query of one character or more, 1 to 20 results, 5 if none are asked for) are kept where arguments are
    read: in the schema they would cost a fifth of every first request (docs/decisions/0018-a-small-loader.md).
    """
    more: Json = {"confirm": {"type": "boolean"}} if confirm else {}
    return {
        "type": "object",
        "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}, **more},
        "required": ["query"],
    }


def loader_description(catalog: str) -> str:
    """The loader's description, with the catalog text, if any, at its end."""
    return f"{_TEXT}\n\n{catalog}" if catalog else _TEXT


def parse_arguments(raw: object) -> LoaderQuery | str:
    """The query in a loader call's arguments, or a text for the model that says what is expected. Never raises.

    `raw` is the JSON text or the parsed value. Obvious shapes are understood: another key for the query, a list of
    queries or names, a bare string, arguments wrapped once more, a count as text or out of range.
    """
    value = raw
    if isinstance(raw, str):
        try:
            value = json.loads(raw)
        except (ValueError, RecursionError):
            value = raw  # a bare string that is no JSON is the query itself, unless it is a broken object
            if raw.lstrip()[:1] in ("{", "["):
                return f"The arguments are not valid JSON; {_EXPECTED}"
    query = _query_in(value, 3)
    if not query:
        return f"The arguments hold no query; {_EXPECTED}"
    return LoaderQuery(query[:_QUERY], _count_in(value))


def _query_in(value: object, depth: int) -> str:
    """The query in a value of any shape, "" if there is none."""
    if depth < 0:
        return ""
    if isinstance(value, str):
        inner = parse_object(value) if value.lstrip().startswith("{") else None
        return _query_in(inner, depth - 1) if inner is not None else value.strip()
    if items := as_list(value):
        parts = (_query_in(item, depth - 1) for item in items[:50])
        return ", ".join(part for part in parts if part)
    found = as_object(value) or {}
    for key in (*_QUERY_KEYS, *_WRAPPERS):
        if key in found and (text := _query_in(found[key], depth - 1)):
            return text
    return ""


def _count_in(value: object) -> int:
    found = as_object(value) or {}
    for wrapper in _WRAPPERS:
        found = {**(as_object(found.get(wrapper)) or {}), **found}
    for key in _COUNT_KEYS:
        try:
            return min(max(int(float(found[key])), 1), MOST_RESULTS)
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
    return DEFAULT_RESULTS


@dataclass(frozen=True, slots=True)
class Found:
    """One line of an answer: a tool the model can call now, or one that fits less well and is only named."""

    name: str
    description: str = ""
    loaded: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a loader call answers. `added` are the newly loaded names, `matches` what was found, callable or only named.

    `total_available` counts all tools that were searched; `pending_servers` are servers still connecting.
    """

    query: str
    added: tuple[str, ...]
    matches: tuple[Found, ...]
    total_available: int
    hint: str = ""
    pending_servers: tuple[str, ...] = ()

    @property
    def no_match(self) -> bool:
        """Whether nothing was found."""
        return not self.matches

    def as_json(self, *, brief: bool = False) -> Json:
        """The answer as the loader's JSON result; `brief` where the definitions of what is added stand behind it."""
        told = () if not brief else self.added
        body: dict[str, Any] = {
            "query": self.query,
            "matches": [
                {"name": found.name}
                | ({"description": found.description} if found.loaded else {})
                | {"loaded": found.loaded}
                for found in self.matches
                if found.name not in told
            ],
            "total_available": self.total_available,
            "addedToolNames": list(self.added),
        }
        if self.hint:
            body["hint"] = self.hint
        if self.pending_servers:
            body["pending_mcp_servers"] = list(self.pending_servers)
        return body

    def as_text(self, *, brief: bool = False) -> str:
        """The same as compact JSON text."""
        return dumps(self.as_json(brief=brief))


def answer(  # noqa: PLR0913 - a pure function of everything that an answer depends on
    query: LoaderQuery,
    index: Searcher | Ranker,
    *,
    deferred: Sequence[Tool],
    loaded: Collection[str],
    resident: Sequence[Tool],
    load_at_most: int,
    load_tokens: int,
    size_of: Callable[[str], int],
    short_of_cache: int = 0,
    pending_servers: Sequence[str] = (),
) -> Answer:
    """The answer to a loader call: a pure function of its arguments.

    The best match always loads, and what is named exactly; of the others the first four in all, if they fit about as
    well as the best, the rest is only named. Where the prompt is `short_of_cache` tokens too short for the provider's
    cache, more are loaded if it is cached with them. All of it stays within `load_at_most`, `query.max_results` (if
    that is less than usual), and `load_tokens` by `size_of` (tokens of a tool's schema). Tools already callable are
    reported, not added. Tools that the index knows but neither `deferred` nor `resident` holds are left out.
    """
    waiting = {tool.name: tool for tool in deferred}
    callable_now = {tool.name: tool for tool in resident}
    callable_now.update((name, tool) for name, tool in waiting.items() if name in loaded)
    searching = searcher(index, (*resident, *deferred))
    # Wider than what is answered: some of what is found may be left out, because it is not allowed or too large.
    hits = searching.search(query.query, limit=2 * max(query.max_results, load_at_most, MOST_RESULTS))
    hits = [hit for hit in hits if hit.name in callable_now or hit.name in waiting]
    within = _within(hits, callable_now, query.max_results, load_at_most, load_tokens, size_of)
    added = near_best(within, callable_now, size_of, cuts=not getattr(searching, "by_rank", False))
    if short_of_cache and query.max_results >= DEFAULT_RESULTS:
        rest = [hit.name for hit in hits if hit.name not in callable_now and hit.name not in added]
        spent = sum(map(size_of, added))
        added |= _filling(rest, size_of, short_of_cache - spent, load_tokens - spent, load_at_most - len(added))
    within = [hit for hit in hits if hit in within or hit.name in added]
    matches = [
        Found(hit.name, described(callable_now.get(hit.name) or waiting[hit.name], _ABOUT))
        if hit.name in callable_now or hit.name in added
        else Found(hit.name, loaded=False)
        for hit in within
    ]
    return Answer(
        clean_text(query.query, _ECHO),
        tuple(hit.name for hit in within if hit.name in added),
        tuple(matches),
        len(waiting) + len(resident),
        "" if matches else _hint((*deferred, *resident), getattr(searching, "closest_servers", None), query.query),
        tuple(clean_text(server, 64) for server in pending_servers[:20]),
    )


def _within(
    hits: Sequence[Match],
    callable_now: Collection[str],
    most: int,
    load_at_most: int,
    load_tokens: int,
    size_of: Callable[[str], int],
) -> list[Match]:
    """The hits that an answer has room for, best first; the best always."""
    found: list[Match] = []
    new = spent = 0
    for hit in hits:
        if len(found) >= most:
            break
        if hit.name in callable_now:
            found.append(hit)
        elif new < load_at_most:
            size = size_of(hit.name)
            if not new or spent + size <= load_tokens:
                found.append(hit)
                new, spent = new + 1, spent + size
    return found


def near_best(
    found: Sequence[Match], callable_now: Collection[str], size_of: Callable[[str], int], *, cuts: bool
) -> set[str]:
    """What of it loads in any case: the best, what is named exactly, and the first few near the best.

    `cuts`: whether the scores say how well something fits, so that what fits less well can be left out.
    """
    new = [hit for hit in found if hit.name not in callable_now]
    best = max((hit.score for hit in found if not hit.why.startswith("exact")), default=0.0)
    return {
        hit.name
        for at, hit in enumerate(new)
        if not at
        or hit.why.startswith("exact")
        or (at < _USUAL and (not cuts or hit.score >= _share(size_of(hit.name)) * best))
    }


def by_fit(
    index: Searcher,
    query: str,
    limit: int,
    *,
    deferred: Collection[str],
    resident: Collection[str],
    size_of: Callable[[str], int],
) -> tuple[list[str], list[str]]:
    """What a query finds among these, best first: what is near the best or resident, and the rest."""
    found = [hit for hit in index.search(query, limit) if hit.name in deferred or hit.name in resident]
    close = near_best(found, resident, size_of, cuts=not getattr(index, "by_rank", False))
    near = [hit.name for hit in found if hit.name in close or hit.name in resident]
    return near, [hit.name for hit in found if hit.name not in near]


def _share(size: int) -> float:
    """The share of the best score from which a tool of this size (tokens) loads: a large one has to fit better."""
    doubled = math.log2(max(size, _LARGE) / _LARGE)
    return min(_WEAK + _PER_DOUBLING * doubled, _CLOSE)


def _filling(names: Sequence[str], size_of: Callable[[str], int], missing: int, budget: int, most: int) -> set[str]:
    """The first of these that make up for what is missing, large ones only if nothing else does; none if all do not."""
    for surplus in (_SURPLUS, budget):
        chosen: set[str] = set()
        left = missing
        for name in names:
            size = size_of(name)
            if 0 < left >= size - surplus and len(chosen) < most and missing - left + size <= budget:
                chosen.add(name)
                left -= size
        if left <= 0:
            return chosen
    return set()


def searcher(index: Searcher | Ranker, tools: Sequence[Tool]) -> Searcher:
    """What searches these tools: the index itself, or a ranker beside an index of them."""
    if isinstance(index, Searcher):
        return index
    return FusedRanker(ToolIndex(tools), index)


def _hint(tools: Sequence[Tool], closest: Callable[[str], Sequence[str]] | None, query: str) -> str:
    """What to try instead; of `tools` only, since an index may know servers that this request may not use."""
    listed = largest_servers(tools, len(tools))
    near = [clean_text(server, 64) for server in closest(query)] if closest else []
    servers = [server for server in near if server in listed]
    where = f" Closest servers: {', '.join(servers)}." if servers else ""
    if listed and not servers:
        where = f" Servers: {', '.join(listed[:5])}."
    return f"No tool fits. Try other words for the action and its object, or a server's name.{where}"


def parse_answer(text: str) -> tuple[str, ...] | None:
    """The `addedToolNames` of a well-formed loader result, without duplicates; None for any other text."""
    body = parse_object(text)
    if body is None or not isinstance(body.get("query"), str) or not isinstance(body.get("matches"), list):
        return None
    total: object = body.get("total_available")
    if not isinstance(total, int) or isinstance(total, bool) or not isinstance(body.get("addedToolNames"), list):
        return None
    items = as_list(body.get("addedToolNames"))
    if not all(isinstance(name, str) and name for name in items):
        return None
    return tuple(dict.fromkeys(items))
