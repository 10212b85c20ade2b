"""Searches that a gateway runs itself in requests of the Responses and Messages APIs.

    openrouter  both, https://openrouter.ai/docs/guides/features/server-tools/tool-search
    orq         Responses, https://docs.orq.ai/ai-gateway/features/server-tools/tool-search

OpenRouter's leaves an item of its own type in a response. Unverified: what the others leave in a reply (here nothing),
how OpenRouter matches (here by words), whether what was found stays found in the next request (here it does not), and
what is billed (here a second reading of the prompt with what was found).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .._json import Json, as_list, dumps, objects
from ._cache import Bill
from ._count import tokens
from ._dialect import Asked
from ._script import Move

_RULES = {"openai.responses": "responses.tool_type", "anthropic.messages": "messages.tool_type"}
_SHOWN = "openrouter:tool_search"


def searches(asked: Asked, dialect: str) -> list[str]:
    """The types of entry with which this host searches in this dialect."""
    known: Mapping[str, str] = asked.book.value(_RULES[dialect], "gateways")
    return [kind for kind, host in known.items() if fnmatchcase(asked.host, host)]


def search_of(asked: Asked, dialect: str) -> str | None:
    """The type of the entry with which this request has the gateway search, None without one."""
    kinds = searches(asked, dialect)
    return next((str(tool["type"]) for tool in objects(asked.body.get("tools")) if tool.get("type") in kinds), None)


def shows_nothing(asked: Asked, dialect: str) -> str | None:
    """The search of a request in which every other tool is deferred, where the gateway refuses that."""
    search = search_of(asked, dialect)
    others = [tool for tool in objects(asked.body.get("tools")) if tool.get("type") != search]
    return search if search == _SHOWN and others and all(map(_deferred, others)) else None


def played(asked: Asked, dialect: str, move: Move, bill: Bill) -> tuple[Move, Bill]:
    """The move with the calls of the gateway's search as the items that show them, and what is billed."""
    search = search_of(asked, dialect)
    if search is None:
        return move, bill
    items: list[Json] = []
    total = bill.total
    for call in move.calls:
        if call[0] == search:
            total += sum(tokens(dumps(tool)) for tool in _found(asked.body.get("tools"), call[1]))
            bill = bill.again(total)
            if search == _SHOWN and dialect == "openai.responses":
                items.append(_item(asked, call[1]))
    calls = [call for call in move.calls if call[0] != search]
    return move.but(calls=calls, blocks=[*move.blocks, *items]), bill


def _item(asked: Asked, arguments: Any) -> Json:
    query = arguments if isinstance(arguments, str) else str(arguments.get("query") or "")
    return {"type": _SHOWN, "id": asked.ids.make("ts_", 24), "query": query, "status": "completed"}


def _found(tools: Any, arguments: Any) -> Sequence[Json]:
    """The deferred tools in whose definition any word of the query stands."""
    said = [arguments] if isinstance(arguments, str) else [text for text in arguments.values() if isinstance(text, str)]
    words = [word.lower() for text in said for word in text.split()]
    return [tool for tool in objects(tools) if _deferred(tool) and any(word in dumps(tool).lower() for word in words)]


def _deferred(tool: Json) -> bool:
    members = objects(as_list(tool.get("tools")))
    return tool.get("defer_loading") is True or (bool(members) and all(map(_deferred, members)))
