"""What items have to say of each other: in which namespace a called tool stands, and which output answers which search.

A call of a tool outside the default namespace says in which it is, or is refused ("Missing namespace for
function_call", https://github.com/vercel/ai/issues/15193). A plain entry of the request's own list is called without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loadpoint._json import Json, objects

from ._openai_responses_items import is_output, is_search, without_namespace
from ._openai_responses_tools import (
    AUTOMATIC,
    SEARCH,
    definition,
    expanded,
    marked,
    member,
    namespaces,
    search_output,
    tool_name,
)


@dataclass(slots=True)
class _Places:
    """Where the tools of a request stand: in the default namespace, flat behind a search, in namespaces."""

    plain: set[str] = field(default_factory=set[str])
    added: set[str] = field(default_factory=set[str])
    flat: set[str] = field(default_factory=set[str])
    boxes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """By name, the namespaces that have a tool of it: those of items first."""

    def take(self, tools: Any, kind: str) -> None:
        for wire in objects(expanded(tools)):
            inner = member(wire)
            name = str((inner or wire).get("name"))
            if tool_name(wire) in (None, SEARCH):
                continue
            if inner is not None:
                self.boxes.setdefault(name, []).append(str(wire.get("name")))
            elif kind == "tool_search_output" or (kind == "tools" and wire.get("defer_loading") is True):
                self.flat.add(name)
            else:
                (self.plain if kind == "tools" else self.added).add(name)

    def of(self, name: str, given: object) -> str | None:
        """The namespace that a call of `name` carries, whatever it carries now."""
        boxes = self.boxes.get(name, [])
        if given is not None and given in boxes:
            return str(given)
        if given == name:
            return None if name in self.plain and name not in self.flat and name not in self.added else name
        if given is not None and not str(given).startswith(AUTOMATIC):
            return str(given)  # the caller's, who dispatches by it
        if name in self.plain or name in self.added:
            return None
        if name in self.flat:
            return name
        own = [box for box in boxes if box.startswith(AUTOMATIC)] or boxes
        return own[0] if own and (own[0].startswith(AUTOMATIC) or len(set(own)) == 1) else None


def with_namespaces(items: Sequence[Json], tools: Any) -> Sequence[Json]:
    """The items with the namespace of each call's tool in this request; the same object where they have it."""
    places = _Places()
    for item in items:
        if item.get("type") in ("tool_search_output", "additional_tools"):
            places.take(item.get("tools"), str(item["type"]))
    places.take(tools, "tools")
    if not places.flat and not places.boxes and not any(item.get("namespace") is not None for item in items):
        return items
    out = [_placed(item, places) for item in items]
    return out if any(new is not old for new, old in zip(out, items, strict=True)) else items


def without_namespaces(items: Sequence[Json], tools: Any) -> Sequence[Json]:
    """The items without namespaces that this request does not declare; the same object where there are none."""
    known = namespaces(tools)
    out = [without_namespace(item, known) for item in items]
    return out if any(new is not old for new, old in zip(out, items, strict=True)) else items


def _placed(item: Json, places: _Places) -> Json:
    if item.get("type") not in ("function_call", "custom_tool_call"):
        return item
    given = item.get("namespace")
    wanted = places.of(str(item.get("name")), given)
    if wanted == given:
        return item
    out = {key: value for key, value in item.items() if key != "namespace"}
    return out if wanted is None else {**out, "namespace": wanted}


def declared_once(items: Sequence[Json], tools: Any) -> Sequence[Json]:
    """The items without what they add that stands in the list of tools just so; the same object where nothing does.

    What another form has added is evidence, and the list may hold it now: models before GPT-5.6 refuse it twice
    (pydantic-ai 2.68, providers/openai.py).
    """
    if not any(item.get("type") == "additional_tools" for item in items):
        return items
    listed = {name: wire for wire in objects(expanded(tools)) if (name := tool_name(wire)) and not marked(wire)}
    out: list[Json] = []
    for item in items:
        given = objects(item.get("tools")) if item.get("type") == "additional_tools" else []
        kept = [wire for wire in given if not _same(wire, listed.get(tool_name(wire) or ""))]
        if len(kept) == len(given):
            out.append(item)
        elif kept:
            out.append({**item, "tools": kept})
    return items if len(out) == len(items) and all(new is old for new, old in zip(out, items, strict=True)) else out


def _same(wire: Json, other: Json | None) -> bool:
    return other is not None and definition(wire, deferred=False) == definition(other, deferred=False)


def paired(items: Sequence[Json]) -> list[Json]:
    """The items with every search of the client's in a pair with its output: a lone one is refused.

    A call without its output (a cut stream) gets one that loaded nothing; an output without its call (a history whose
    beginning was cut off) gets a call before it, because what it loaded still counts.
    """
    outputs = {
        str(item.get("call_id")) for item in items if item.get("type") == "tool_search_output" and is_output(item)
    }
    calls = {str(item.get("call_id")) for item in items if is_search(item)}
    if calls == outputs:
        return list(items)
    out: list[Json] = []
    for item in items:
        call_id = item.get("call_id")
        if item.get("type") == "tool_search_output" and is_output(item) and str(call_id) not in calls:
            lost: Json = {"type": "tool_search_call", "execution": "client", "call_id": call_id, "arguments": {}}
            out.append({**lost, "status": "completed"})
        out.append(item)
        if is_search(item) and str(call_id) not in outputs:
            out.append(search_output(str(call_id), ()))
    return out
