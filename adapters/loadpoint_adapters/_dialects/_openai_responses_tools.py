"""Tools of the Responses API: functions, and the namespaces that group them.

https://developers.openai.com/api/docs/guides/tools-tool-search; `openai/types/responses/tool_param.py` and its
siblings, read at 3.57.0. A namespace is read as one entry for each of its members: a namespace that holds that member
alone, which is what a search gives back of it. So each member can be deferred and loaded by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from loadpoint._json import Json, as_list, as_object, objects
from loadpoint._tool import Tool

SEARCH = "tool search"
"""What the model's tool search is called here: it has no name on the wire, and no function can have this one."""
AUTOMATIC = "lp_"
"""The head of the names of namespaces that we make. A tool in one is called by its own name, as if it stood flat."""


def expanded(tools: Any) -> list[Any]:
    """The entries of a tool list with one namespace for each member."""
    out: list[Any] = []
    for entry in as_list(tools):
        wire = as_object(entry)
        members = as_list(wire.get("tools")) if wire is not None and wire.get("type") == "namespace" else []
        if wire is None or len(members) < 2 or len(objects(members)) < len(members):
            out.append(entry)
        else:
            out += [{**wire, "tools": [member]} for member in members]
    return out


def regrouped(tools: Iterable[Json]) -> list[Json]:
    """The entries with the members of each namespace together again, where the first of them stands."""
    out: list[Json] = []
    places: dict[str, int] = {}
    for wire in tools:
        name = str(wire.get("name"))
        if wire.get("type") == "namespace" and name in places:
            known = out[places[name]]
            out[places[name]] = {**known, "tools": [*known["tools"], *as_list(wire.get("tools"))]}
            continue
        if wire.get("type") == "namespace":
            places[name] = len(out)
        out.append(wire)
    return out


def member(wire: Json) -> Json | None:
    """The only member of a namespace; None for anything else."""
    members = objects(wire.get("tools")) if wire.get("type") == "namespace" else []
    return members[0] if len(members) == 1 else None


def qualified(name: object, namespace: object) -> str:
    """The name of a tool in a namespace. A flat tool that was loaded is called with its own name as the namespace."""
    own = str(name or "")
    flat = not namespace or namespace == own or str(namespace).startswith(AUTOMATIC)
    return own if flat else f"{namespace}.{own}"


def tool_name(wire: Json) -> str | None:
    """The name under which the model calls this entry; None if it has none."""
    if wire.get("type") == "tool_search":
        return SEARCH
    inner = member(wire)
    if inner is not None:
        own = tool_name(inner)
        return None if own is None else qualified(own, wire.get("name"))
    name = wire.get("name")
    named = wire.get("type") in ("function", "custom") and isinstance(name, str) and name
    return str(name) if named else None


def tool(wire: Json) -> Tool | None:
    """The neutral tool; None for what is no function that the model calls directly."""
    inner = member(wire)
    function = wire if inner is None else inner
    callers = function.get("allowed_callers")
    direct = callers is None or "direct" in as_list(callers)
    name = tool_name(wire)
    if function.get("type") != "function" or name is None or not direct:
        return None
    return Tool(
        name=name,
        description=str(function.get("description") or ""),
        parameters=as_object(function.get("parameters")) or {},
        server=None if inner is None or is_automatic(wire) else str(wire.get("name")),
    )


def marked(wire: Json) -> bool:
    """Whether a function is marked as deferred."""
    function = member(wire) or wire
    return function.get("type") == "function" and function.get("defer_loading") is True


def definition(wire: Json, *, deferred: bool) -> Json:
    """The entry with the mark of a deferred tool, or without it."""
    inner = member(wire)
    if inner is not None:
        return {**wire, "tools": [definition(inner, deferred=deferred)]}
    out = {key: value for key, value in wire.items() if key != "defer_loading"}
    return {**out, "defer_loading": True} if deferred else out


def standing(tools: Iterable[Json]) -> list[Json]:
    """What the model reads of a request's tools from the start.

    Of a deferred function the name and the description, of a namespace both of these and the members that are not
    deferred (the guide, "tool search").
    """
    return [_standing(wire) for wire in tools]


def _standing(wire: Json) -> Json:
    if wire.get("type") == "namespace":
        return {
            **wire,
            "tools": [inner for inner in objects(wire.get("tools")) if inner.get("defer_loading") is not True],
        }
    kept = ("type", "name", "description") if wire.get("defer_loading") is True else wire
    return {key: wire[key] for key in kept if key in wire}


def loaded(item: Json) -> tuple[tuple[str, ...], tuple[Json, ...]]:
    """The names and definitions of what an item loads by value."""
    wires = [definition(wire, deferred=False) for wire in objects(expanded(item.get("tools")))]
    pairs = [(name, wire) for wire in wires if (name := tool_name(wire)) is not None and name != SEARCH]
    return tuple(name for name, _ in pairs), tuple(wire for _, wire in pairs)


def is_automatic(wire: Json) -> bool:
    """Whether an entry is a namespace that we made."""
    return wire.get("type") == "namespace" and str(wire.get("name")).startswith(AUTOMATIC)


def namespaces(tools: Any) -> frozenset[str]:
    """The names of the namespaces in a tool list."""
    return frozenset(str(wire.get("name")) for wire in objects(tools) if wire.get("type") == "namespace")


def search_output(call_id: str, wires: Sequence[Json]) -> Json:
    """The answer to a search of the model. The guide's examples mark what it loads as deferred."""
    tools = regrouped([definition(wire, deferred=True) for wire in wires])
    return {
        "type": "tool_search_output",
        "execution": "client",
        "call_id": call_id,
        "status": "completed",
        "tools": tools,
    }


def additional(wires: Sequence[Json]) -> Json:
    """The item from which on these tools exist."""
    tools = regrouped([definition(wire, deferred=False) for wire in wires])
    return {"type": "additional_tools", "role": "developer", "tools": tools}
