"""Searches that a gateway runs itself over tools that a request marks as deferred, whatever the model behind it.

The request holds one entry of the gateway, and every deferred function with `defer_loading: true` beside its other
fields; the gateway gives the model the search and what it finds, and runs the search within the request.

    orq         Chat Completions and Responses, https://docs.orq.ai/ai-gateway/features/server-tools/tool-search
    openrouter  Responses and Messages, https://openrouter.ai/docs/guides/features/server-tools/tool-search

Not known: whether a tool that was found once is still there in the next request, how the search shows itself in a chat
reply, and whether a `tool_choice` can name a tool that is not found yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loadpoint._json import Json

ENTRIES = {"orq": "orq:tool_search", "openrouter": "openrouter:tool_search"}
"""The type of the entry by the name of the gateway (`variant` of a load point in the data)."""
_TYPES = tuple(ENTRIES.values())
_SHOWS_ONE = frozenset({"openrouter"})
"""The gateways that refuse a request in which every tool beside their search is deferred."""


def entry(gateway: str) -> Json:
    """The entry that makes this gateway search. Raises `KeyError` for one that is not known."""
    return {"type": ENTRIES[gateway]}


def name_of(wire: Json) -> str | None:
    """What the entry is called here, None for any other tool.

    It is the entry's type, which no function can have as its name: the model's calls of the search are the gateway's.
    """
    kind = wire.get("type")
    return str(kind) if kind in _TYPES else None


def is_foreign(item: Json, gateway: str = "") -> bool:
    """Whether this is what the search of another gateway leaves in a reply: no other server can take it back."""
    return item.get("type") in _TYPES and item["type"] != ENTRIES.get(gateway)


def arranged(
    tools: Sequence[Json], gateway: str, marked: Callable[[Json], bool], bare: Callable[[Json], Json]
) -> list[Json]:
    """The list as this gateway takes it; `marked` tells deferred tools, `bare` takes the mark from one.

    Where nothing but its search would be there to call, the first tool is: the one that stays the first whatever is
    added. A cache marker leaves the search, which is no tool of the caller's, for the last tool in context.
    """
    out = list(tools)
    others = [at for at, wire in enumerate(out) if name_of(wire) is None]
    if gateway in _SHOWS_ONE and others and all(marked(out[at]) for at in others):
        out[others[0]] = bare(out[others[0]])
    shown = [at for at in others if not marked(out[at])]
    for at, wire in enumerate(out):
        if name_of(wire) is not None and "cache_control" in wire:
            out[at] = entry(gateway)
            if shown:
                out[shown[-1]] = {**out[shown[-1]], "cache_control": wire["cache_control"]}
    return out


def deferred(wire: Json) -> Json:
    """A tool without any mark, marked; the mark stands beside `function` in Chat Completions."""
    return {**wire, "defer_loading": True}
