"""Searches of ours, shown to a caller as the provider's own search would write them, and turned back.

The items are the hosted `tool_search_call` and `tool_search_output` of `openai/types/responses` (3.57.0), whose call_id
is null. What stands in them restores the round that searched: the call's id says where the loader call stood (round,
item, items in the round) and its call_id, that of the output which id the item had. The arguments hold the model's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loadpoint._dialect import Shown
from loadpoint._json import Json, as_list, as_object, digest, dumps, objects, parse_object

from ._openai_responses_items import call_view, is_output, loader_answer, note, without_lone_reasoning
from ._openai_responses_tools import (
    AUTOMATIC,
    additional,
    definition,
    expanded,
    is_automatic,
    loaded,
    regrouped,
    search_output,
    tool_name,
)
from ._shown_rounds import Placed, interleaved

CALL, OUTPUT = "tsc_lp", "tso_lp"
"""The heads of the ids of items that we showed to a caller."""
_PLACE = re.compile(r"tsc_lp(\d{1,6})_(\d{1,6})_(\d{1,6})_(\w+)", re.ASCII)
_HERE = re.compile(r"ts[co]_lp(\d{1,6})_(\d{1,6})_", re.ASCII)
_ORIGIN = re.compile(r"tso_lp\d{1,6}_\d{1,6}_([fs])(\w+)", re.ASCII)
_KINDS = {"f": "fc_", "s": "tsc_"}
_PLAIN = re.compile(r"\w+", re.ASCII)
_ID_LENGTH = 64


def shown_items(reply: Json, round_index: int, shown: Sequence[Shown], tools: Any) -> list[Json]:
    """The items that show the searches of one round: for each a call and its output; `tools` are the caller's.

    Where the ids would not fit, they are of no meaning, and the round is restored from the ledger alone.
    """
    if not shown:
        return []
    known = {tool_name(wire): wire for wire in objects(expanded(tools))}
    made = objects(reply.get("output"))
    places = [at for at, item in enumerate(made) if call_view(item) is not None]
    out: list[Json] = []
    for search in shown:
        at = places[search.at]
        call_id, output_id = _ids(f"{round_index}_{at}", len(made), search.call.id, str(made[at].get("id") or ""))
        given = search.call.arguments
        arguments = {"paths": list(search.names), "call": given if isinstance(given, str) else dumps(given)}
        wires = [definition(known[name], deferred=True) for name in search.names if name in known]
        same: Json = {"execution": "server", "call_id": None, "status": "completed"}
        out.append({"id": call_id, "type": "tool_search_call", **same, "arguments": arguments})
        out.append({"id": output_id, "type": "tool_search_output", **same, "tools": regrouped(wires)})
    return out


def _ids(place: str, total: int, call_id: str, item_id: str) -> tuple[str, str]:
    call = f"{CALL}{place}_{total}_{call_id}"
    if len(call) > _ID_LENGTH or not _PLAIN.fullmatch(call_id):
        other = digest(place, call_id, item_id)[:24]
        return f"{CALL}x{other}", f"{OUTPUT}x{other}"
    kind = next((kind for kind, head in _KINDS.items() if item_id.startswith(head)), "")
    output = f"{OUTPUT}{place}_{kind}{item_id.removeprefix(_KINDS.get(kind, ''))}"
    fits = kind and len(output) <= _ID_LENGTH and _PLAIN.fullmatch(output)
    return call, output if fits else f"{OUTPUT}{place}_n{digest(call_id)[:16]}"


def is_ours(item: Json) -> bool:
    """Whether this is a search that we showed, or a reference to one, which no server knows."""
    kind, item_id = item.get("type"), str(item.get("id") or "")
    if kind == "item_reference" or (kind is None and set(item) == {"id"}):
        return item_id.startswith((CALL, OUTPUT))
    return (kind == "tool_search_call" and item_id.startswith(CALL)) or (
        kind == "tool_search_output" and item_id.startswith(OUTPUT)
    )


def is_placed(item: Json) -> bool:
    """Whether this is a search that we showed, from which its round can be restored."""
    return is_ours(item) and _HERE.match(str(item.get("id"))) is not None and item.get("type") != "item_reference"


# -- turned back -------------------------------------------------------------------------------------------------------


def as_sent(item: Json, loader: str, *, form: str | None, search: bool) -> Iterator[Json]:
    """A shown item in what was sent: still under the id that says where it stood, which `restored` takes.

    `search`: this form has the client's search; without it `form` says whether tools are loaded by value. An output
    brings a call of its own, in case that of the search is lost.
    """
    marked = {"id": item.get("id"), "call_id": ""}
    if item.get("type") == "tool_search_call":
        text = str((as_object(item.get("arguments")) or {}).get("call") or "{}")
        yield {**marked, **_call(text, loader, search=search)}
        return
    names, wires = loaded(item)
    yield {**marked, **_call(dumps({"query": ", ".join(names)}), loader, search=search)}
    if search:
        yield {**search_output("", wires), **marked}
        if not wires:
            yield note("{}")
        return
    yield {**marked, "type": "function_call_output", "output": loader_answer(names)}
    if form is not None and wires:
        yield additional(wires)


def _call(text: str, loader: str, *, search: bool) -> Json:
    if search:
        arguments = parse_object(text) or {}
        return {"type": "tool_search_call", "execution": "client", "status": "completed", "arguments": arguments}
    return {"type": "function_call", "status": "completed", "name": loader, "arguments": text}


@dataclass(slots=True)
class _Search:
    """One search of a round that is being restored: its round, its item, and of how many items."""

    round: int
    at: int
    of: int
    call: Json
    results: list[Json] = field(default_factory=list[Json])


def restored(turn: Sequence[Json]) -> list[Json]:
    """A turn with each search in the place where its call stood, and all outputs of a round behind it.

    A call without its output (a cut stream, an edited history) loaded nothing and goes.
    """
    if not any(map(_waits, turn)):
        return list(turn)
    out: list[Json] = []
    here: list[Json] = []
    waiting: list[_Search] = []
    behind = False
    for item in turn:
        if behind and _loads(item):
            waiting[-1].results.append(item)  # what its output loads
            behind = False
            continue
        behind = False
        if not _waits(item):
            if waiting:
                out += _round(here, waiting)
                here, waiting = [], []
            here.append(item)
            continue
        place = _HERE.match(str(item.get("id")))
        number, at = (int(place[1]), int(place[2])) if place else (0, 0)
        if waiting and number != waiting[0].round:
            out += _round(here, waiting)  # a round of nothing but searches follows another
            here, waiting = [], []
        known = next((search for search in waiting if search.at == at), None)
        if not is_output(item):
            if known is None:
                waiting.append(_begun(item, number, at))
        elif known is not None:
            waiting.remove(known)
            waiting.append(known)
            _end(known, item)
            behind = True
    return [*out, *(_round(here, waiting) if waiting else here)]


def _waits(item: Json) -> bool:
    return item.get("call_id") == "" and _HERE.match(str(item.get("id"))) is not None


def _loads(item: Json) -> bool:
    return item.get("type") == "additional_tools" or item.get("role") == "developer"


def _begun(item: Json, number: int, at: int) -> _Search:
    place = _PLACE.fullmatch(str(item.get("id")))
    call = {key: value for key, value in item.items() if key != "id"}
    call["call_id"] = place[4] if place else "call_" + digest(str(item.get("id")))
    return _Search(number, at, int(place[3]) if place else 0, call)


def _end(search: _Search, item: Json) -> None:
    """Takes the output of a search, and from its id the one that the item of the call had."""
    kept = _ORIGIN.fullmatch(str(item.get("id")))
    head = _KINDS[kept[1]] if kept else ""
    if kept is not None and (head == "tsc_") == (search.call.get("type") == "tool_search_call"):
        search.call = {"id": head + kept[2], **search.call}
    output = {key: value for key, value in item.items() if key != "id"}
    search.results.append({**output, "call_id": search.call["call_id"]})


def _round(here: Sequence[Json], waiting: Sequence[_Search]) -> list[Json]:
    """One round: its items with the calls in their places, then all outputs, then what loads tools by itself."""
    found = [search for search in waiting if search.results]
    made = interleaved(here, [Placed(search.call, search.at, search.of) for search in found])
    loads = [load for search in found for load in search.results[1:]]
    return [*made, *(search.results[0] for search in found), *loads]


def unanswered(turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
    """A restored turn without our results at its end, and those results: they go with the caller's own."""
    end = len(turn)
    while end and (is_output(turn[end - 1]) or _loads(turn[end - 1])):
        end -= 1
    return list(turn[:end]), tuple(turn[end:])


# -- taken out ---------------------------------------------------------------------------------------------------------


def body_without_ours(body: Json) -> Json:
    """A request without shown items of ours; the same object where it has none."""
    out = body
    for key in ("input", "items"):
        given = as_list(body.get(key))
        kept = without_ours(given)
        if len(kept) < len(given):
            out = {**out, key: kept}
    return out


def without_ours(items: Sequence[Any], call_ids: Collection[str] = (), *, groups: bool = False) -> list[Any]:
    """The items without shown searches of ours, these calls and their results, and reasoning that only led to them.

    `groups`: also without what the provider's search found in namespaces that only we have declared.
    """
    out: list[Any] = []
    gone = False
    for item in items:
        wire = as_object(item) or {}
        output = str(wire.get("type")).endswith("_output")
        named = wire.get("call_id") is not None and str(wire["call_id"]) in call_ids
        grouped = groups and (_is_grouped(wire) or (gone and output and wire.get("call_id") is None))
        gone = is_ours(wire) or named or grouped
        if not gone:
            out.append(item)
        elif not output and out and (as_object(out[-1]) or {}).get("type") == "reasoning":
            out.pop()  # refused without the item that it led to
    return out


def _is_grouped(item: Json) -> bool:
    """Whether this is a search of the provider's in namespaces of ours."""
    if item.get("type") == "tool_search_call":
        paths = as_list((as_object(item.get("arguments")) or {}).get("paths"))
        return bool(paths) and all(str(path).startswith(AUTOMATIC) for path in paths)
    wires = objects(item.get("tools")) if item.get("type") == "tool_search_output" else []
    return bool(wires) and all(is_automatic(wire) for wire in wires)


def whole(turn: Sequence[Json]) -> list[Json]:
    """An assistant turn that stands for several rounds whose record is lost, as it is sent."""
    return without_lone_reasoning(restored(turn))
