"""The loader tool `ToolSearch`: its definition, its arguments as models write them, its answer."""

from __future__ import annotations

import json
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


def loader_schema() -> Json:
    """The JSON Schema of the loader's parameters; a new object each time.

    Its bounds (a query of one character or more, 1 to 20 results, 5 if none are asked for) are kept where arguments are
    read: in the schema they would cost a fifth of every first request (docs/decisions/0018-a-small-loader.md).
    """
    return {
        "type": "object",
        "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}},
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
    """One line of an answer: a tool the model can call now."""

    name: str
    description: str
    loaded: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """What a loader call answers. `added` are the newly loaded names, `matches` everything found that is callable now.

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
        """The answer as the loader's JSON result; `brief` where definitions stand behind it, which say what they do."""
        told = () if not brief else self.added
        body: dict[str, Any] = {
            "query": self.query,
            "matches": [
                {"name": found.name}
                | ({} if found.name in told else {"description": found.description})
                | {"loaded": found.loaded}
                for found in self.matches
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
    pending_servers: Sequence[str] = (),
) -> Answer:
    """The answer to a loader call: a pure function of its arguments.

    The best match always loads; further ones, up to `load_at_most` and `query.max_results`, as long as the sum of
    `size_of` (tokens of a tool's schema) stays within `load_tokens`. Tools already callable are reported, not added.
    Tools that the index knows but neither `deferred` nor `resident` holds are left out.
    """
    waiting = {tool.name: tool for tool in deferred}
    callable_now = {tool.name: tool for tool in resident}
    callable_now.update((name, tool) for name, tool in waiting.items() if name in loaded)
    searcher = _searcher(index, (*resident, *deferred))
    # Wider than what is answered: some of what is found may be left out, because it is not allowed or too large.
    hits = searcher.search(query.query, limit=4 * max(query.max_results, load_at_most))
    matches: list[Found] = []
    added: list[str] = []
    spent = 0
    for hit in hits:
        if len(matches) >= query.max_results:
            break
        tool = callable_now.get(hit.name)
        if tool is None and hit.name in waiting and len(added) < load_at_most:
            size = size_of(hit.name)
            if not added or spent + size <= load_tokens:
                tool = waiting[hit.name]
                added.append(hit.name)
                spent += size
        if tool is not None:
            matches.append(Found(hit.name, described(tool, _ABOUT)))
    return Answer(
        clean_text(query.query, _ECHO),
        tuple(added),
        tuple(matches),
        len(waiting) + len(resident),
        "" if matches else _hint((*deferred, *resident), getattr(searcher, "closest_servers", None), query.query),
        tuple(clean_text(server, 64) for server in pending_servers[:20]),
    )


def _searcher(index: Searcher | Ranker, tools: Sequence[Tool]) -> Searcher:
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
