"""Search items of the Messages API: ours, shown to a caller as the provider's own, and foreign ones, turned back.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool asks not to fabricate these results: ours
are shown by the caller's choice only, and never sent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence

from loadpoint._dialect import Shown
from loadpoint._json import Json, as_object, dumps, objects

from ._anthropic_blocks import content_blocks, reference, search_result, tool_result

OURS = "srvtoolu_lp"
"""The head of the ids of search items that we showed to a caller."""
_RESULT = "tool_search_tool_result"
_NAME = "tool_search_tool_bm25"
_PLACE = re.compile(r"srvtoolu_lp(\d{1,6})_(\d{1,6})_(\d{1,6})_(\w+)", re.ASCII)
_PLAIN = re.compile(r"\w+", re.ASCII)
_ID_LENGTH = 64


def shown_items(reply: Json, round_index: int, shown: Sequence[Shown]) -> list[Json]:
    """The items that show the searches of one round: for each a call and its result.

    Their ids say where the loader call stood (round, block, blocks in the round, its own id), so that the round can be
    restored from the items alone.
    """
    blocks = objects(reply.get("content"))
    places = [at for at, block in enumerate(blocks) if block.get("type") == "tool_use"]
    out: list[Json] = []
    for search in shown:
        item_id = f"{OURS}{round_index}_{places[search.at]}_{len(blocks)}_{search.call.id}"
        if len(item_id) > _ID_LENGTH or not _PLAIN.fullmatch(search.call.id):
            item_id = f"{OURS}x{secrets.token_hex(12)}"
        arguments = search.call.arguments if isinstance(search.call.arguments, dict) else {}
        references = [reference(name) for name in search.names]
        result = {"type": "tool_search_tool_search_result", "tool_references": references}
        told = _caller(blocks[places[search.at]])
        out.append({"type": "server_tool_use", "id": item_id, "name": _NAME, "input": arguments, **told})
        out.append({"type": _RESULT, "tool_use_id": item_id, "content": result})
    return out


def _caller(block: Json) -> Json:
    """Who called, which newer models write into every call: with it, a restored call is the one that was sent."""
    return {"caller": block["caller"]} if "caller" in block else {}


def turned_back(message: Json, loader: str, *, native: bool) -> list[Json]:
    """A caller's message with search items as loader calls and their results.

    A request that does not declare the provider's search tool cannot hold its items; what they loaded still counts. An
    unpaired search call (a cut stream) is dropped, which is what the provider asks for.
    """
    content = objects(message.get("content"))
    if not any(map(_is_search_item, content)):
        return [message] if native else [_without_references(message)]
    results = {str(block.get("tool_use_id")): block for block in content if block.get("type") == _RESULT}
    called = {str(block.get("id")) for block in content if block.get("type") == "server_tool_use"}
    out: list[Json] = []
    here: list[Json] = []
    waiting: list[tuple[Json, Json]] = []
    for block in content:
        if _is_search_item(block):
            pair: tuple[Json, Json] | None = None
            if block.get("type") == "server_tool_use" and str(block.get("id")) in results:
                pair = (block, results[str(block.get("id"))])
            elif block.get("type") == _RESULT and str(block.get("tool_use_id")) not in called:
                pair = ({"id": block.get("tool_use_id")}, block)  # its call is lost: the names are enough
            if pair is not None and waiting and _round_of(pair[0]) != _round_of(waiting[0][0]):
                out += _round(here, waiting, loader, native=native)  # a round of nothing but searches follows another
                here, waiting = [], []
            if pair is not None:
                waiting.append(pair)
            continue
        if waiting:
            out += _round(here, waiting, loader, native=native)
            here, waiting = [], []
        here.append(block)
    if waiting:
        return [*out, *_round(here, waiting, loader, native=native)]
    return [*out, {**message, "content": here}] if here else out


def _round_of(item: Json) -> str | None:
    place = _PLACE.fullmatch(str(item.get("id")))
    return place[1] if place else None


def _round(here: list[Json], waiting: Sequence[tuple[Json, Json]], loader: str, *, native: bool) -> list[Json]:
    """One round: the blocks before the items with the loader calls in their places, and the results."""
    places: dict[int, Json] = {}
    behind: list[Json] = []
    results: list[Json] = []
    total = len(here) + len(waiting)
    for item, result in waiting:
        place = _PLACE.fullmatch(str(item.get("id")))
        call_id = place[4] if place else str(item.get("id")).removeprefix("srv")
        told = _caller(item) if place else {}
        call: Json = {"type": "tool_use", "id": call_id, "name": loader, "input": item.get("input") or {}, **told}
        if place and int(place[3]) == total and int(place[2]) < total and int(place[2]) not in places:
            places[int(place[2])] = call
        else:
            behind.append(call)
        results.append(_loader_result(call_id, search_result(result).names, native=native))
    rest = iter([*here, *behind])
    content = [places[at] if at in places else next(rest) for at in range(total)]
    return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def _is_search_item(block: Json) -> bool:
    if block.get("type") == _RESULT:
        return True
    return block.get("type") == "server_tool_use" and str(block.get("name") or "").startswith("tool_search_tool_")


def _loader_result(call_id: str, names: Sequence[str], *, native: bool) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": call_id}
    if native and names:
        return {**block, "content": [reference(name) for name in names]}
    return {**block, "content": _marker(names)}


def _marker(names: Sequence[str]) -> str:
    """The loader's answer that adds these names, where nothing else of it is known."""
    return dumps({"query": "", "matches": [], "total_available": len(names), "addedToolNames": list(names)})


def _without_references(message: Json) -> Json:
    """Tool references as loader JSON, for models that refuse the block type."""
    content = objects(message.get("content"))
    if not any(map(_has_references, content)):
        return message
    return {**message, "content": [_as_text(block) if _has_references(block) else block for block in content]}


def _as_text(block: Json) -> Json:
    # A result holds references or text, never both: there is nothing else to keep.
    return {**block, "content": [{"type": "text", "text": _marker(tool_result(block).names)}]}


def _has_references(block: Json) -> bool:
    if block.get("type") != "tool_result":
        return False
    return any(part.get("type") == "tool_reference" for part in content_blocks(block.get("content")))


def body_without_ours(body: Json) -> Json:
    """A request or a batch of requests without shown search items of ours; the same object where it has none."""
    if OURS not in dumps(body):
        return body
    out = dict(body)
    if isinstance(body.get("messages"), list):
        out["messages"] = without_ours(body["messages"], ())
    if isinstance(body.get("requests"), list):
        out["requests"] = [
            {**entry, "params": body_without_ours(as_object(entry.get("params")) or {})}
            for entry in objects(body["requests"])
        ]
    return body if out == body else out  # the head of our ids may stand in somebody's text


def without_ours(messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
    """The messages without shown search items of ours, and without these calls and their results."""
    out: list[Json] = []
    for message in messages:
        wire = as_object(message)  # of a caller's body, in which anything may stand
        content = objects(wire.get("content")) if wire is not None else []
        kept = [block for block in content if not _leaves(block, call_ids)]
        if len(kept) == len(content):
            out.append(message)
        elif kept:
            out.append({**message, "content": kept})
    return out


def _leaves(wire: Json, call_ids: Collection[str]) -> bool:
    item = str(wire.get("id") or wire.get("tool_use_id") or "")
    if item.startswith(OURS) and _is_search_item(wire):  # an id of anything else may begin so by chance
        return True
    return wire.get("type") in ("tool_use", "tool_result") and item in call_ids
