"""Tools that a gateway runs itself on Chat Completions, its search over deferred functions among them.

https://docs.orq.ai/ai-gateway/features/server-tools: the model sees `orq:tool_search` as `orq_tool_search`; the gateway
runs the call and goes on, and the caller gets the final answer. Unverified: what of this stands in a chat reply (here
nothing), the name of the argument, and whether what was found stays found in the next request (here it does not).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from .._json import Json, as_list, as_object, dumps
from ._chat_references import defers, function_of, is_deferred
from ._count import tokens
from ._dialect import Asked

SEARCH = "orq:tool_search"


def is_server_tool(tool: Any, asked: Asked) -> bool:
    """Whether this entry is one that the host of the request runs itself."""
    rule = asked.book["chat.tool_type"].values
    kind = str((as_object(tool) or {}).get("type"))
    at_home = any(fnmatchcase(asked.host, pattern) for pattern in rule["server_tool_hosts"])
    return at_home and fnmatchcase(kind, rule["server_tools"])


def name_for_model(tool: Any) -> str:
    """The name under which the model sees a server tool."""
    return str((as_object(tool) or {}).get("type")).replace(":", "_", 1)


def search_of(asked: Asked) -> str | None:
    """The name of the search that the host runs in this request, None where there is none."""
    for tool in as_list(asked.body.get("tools")):
        if is_server_tool(tool, asked) and (as_object(tool) or {}).get("type") == SEARCH:
            return name_for_model(tool)
    return None


def found(asked: Asked, arguments: Mapping[str, Any] | str) -> list[Json]:
    """The deferred functions of the request in which a search finds its pattern, whatever its argument is called."""
    values = [arguments] if isinstance(arguments, str) else [v for v in arguments.values() if isinstance(v, str)]
    try:
        patterns = [re.compile(value, re.IGNORECASE) for value in values]
    except re.error:
        return []
    tools = [tool for tool in map(as_object, as_list(asked.body.get("tools"))) if tool and defers(asked)]
    return [tool for tool in tools if is_deferred(tool) and any(p.search(_text(tool)) for p in patterns)]


def size(tools: Sequence[Json]) -> int:
    """What these tools take in the prompt, in tokens."""
    return sum(tokens(dumps(function_of(tool))) for tool in tools)


def _text(tool: Json) -> str:
    function = function_of(tool)
    properties = as_object((as_object(function.get("parameters")) or {}).get("properties")) or {}
    said = [f"{name} {(as_object(inner) or {}).get('description') or ''}" for name, inner in properties.items()]
    return " ".join([str(function.get("name")), str(function.get("description") or ""), *said])
