"""Searches that a gateway runs itself over tools that a request marks as deferred, whatever the model behind it.

The request holds one entry of the gateway, and every deferred function with `defer_loading: true` beside its other
fields; the gateway gives the model the search and what it finds, and runs the search within the request.

    orq         Chat Completions and Responses, https://docs.orq.ai/ai-gateway/features/server-tools/tool-search
    openrouter  Responses and Messages, https://openrouter.ai/docs/guides/features/server-tools/tool-search

Not known: whether a tool that was found once is still there in the next request, how the search shows itself in a chat
reply, and whether a `tool_choice` can name a tool that is not found yet.
"""

from __future__ import annotations

from loadpoint._json import Json

ENTRIES = {"orq": "orq:tool_search", "openrouter": "openrouter:tool_search"}
"""The type of the entry by the name of the gateway (`variant` of a load point in the data)."""
_TYPES = frozenset(ENTRIES.values())


def entry(gateway: str) -> Json:
    """The entry that makes this gateway search. Raises `KeyError` for one that is not known."""
    return {"type": ENTRIES[gateway]}


def name_of(wire: Json) -> str | None:
    """What the entry is called here, None for any other tool.

    It is the entry's type, which no function can have as its name: the model's calls of the search are the gateway's.
    """
    kind = wire.get("type")
    return str(kind) if kind in _TYPES else None


def deferred(wire: Json) -> Json:
    """A tool without any mark, marked; the mark stands beside `function` in Chat Completions."""
    return {**wire, "defer_loading": True}
