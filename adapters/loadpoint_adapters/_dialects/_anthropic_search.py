"""Searches of the Messages API: the provider's own, ours shown to a caller as such, and foreign ones, turned back.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool asks not to fabricate these results: ours
are shown by the caller's choice only, and never sent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Sequence

from loadpoint._dialect import Shown
from loadpoint._json import Json, as_object, dumps, objects
from loadpoint._loader import parse_answer

from ._anthropic_blocks import content_blocks, has_thinking, never_empty, reference, search_result, tool_result
from ._shown_rounds import Placed, interleaved

OURS = "srvtoolu_lp"
"""The head of the ids of search items that we showed to a caller."""
_RESULT = "tool_search_tool_result"
_CALL = "server_tool_use"
_TOOLS = "tool_search_tool_"
_VERSION = "20251119"
_NAME = "tool_search_tool_bm25"
_PLACE = re.compile(r"srvtoolu_lp(\d{1,6})_(\d{1,6})_(\d{1,6})_(\w+)", re.ASCII)
_PLAIN = re.compile(r"\w+", re.ASCII)
_ID_LENGTH = 64


def tool(kind: str) -> Json:
    """The provider's own search, `bm25` or `regex`; its name belongs to its type, and it takes no description."""
    return {"type": f"{_TOOLS}{kind}_{_VERSION}", "name": f"{_TOOLS}{kind}"}


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
        out.append({"type": _CALL, "id": item_id, "name": _NAME, "input": arguments, **told})
        out.append({"type": _RESULT, "tool_use_id": item_id, "content": result})
    return out


def _caller(block: Json) -> Json:
    """Who called, which newer models write into every call: with it, a restored call is the one that was sent."""
    return {"caller": block["caller"]} if "caller" in block else {}


def turned_back(message: Json, loader: str, *, native: bool, keep: bool = False) -> list[Json]:
    """A caller's message with search items as loader calls and their results.

    A request that does not declare the provider's search tool cannot hold its items; what they loaded still counts. An
    unpaired search call (a cut stream) is dropped, which is what the provider asks for. `keep`: the request declares
    that tool, so that its items stay; only ours, and results without a call, are turned back.
    """
    content = objects(message.get("content"))
    results = {str(block.get("tool_use_id")): block for block in content if block.get("type") == _RESULT}
    called = {str(block.get("id")) for block in content if block.get("type") == _CALL}
    foreign = [_is_search_item(block) and not (keep and _is_providers(block, called)) for block in content]
    if not any(foreign):
        return [message] if native else [_without_references(message)]
    out: list[Json] = []
    here: list[Json] = []
    waiting: list[tuple[Json, Json]] = []
    for block, turns in zip(content, foreign, strict=True):
        if turns:
            pair: tuple[Json, Json] | None = None
            if block.get("type") == _CALL and str(block.get("id")) in results:
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


def _is_providers(block: Json, called: Collection[str]) -> bool:
    """Whether a search item can be sent back as the provider made it."""
    item = str(block.get("id") or block.get("tool_use_id") or "")
    return not item.startswith(OURS) and item in called


def without_unpaired(body: Json) -> Json:
    """A request without searches of the provider's that have no result; the same object where there are none.

    A search in the turn that is being continued still gets its result: the service runs it on this request, where a
    turn was paused or its other calls are being answered
    (https://platform.claude.com/docs/en/agents-and-tools/tool-use/server-tools).
    """
    messages = objects(body.get("messages"))
    content = [block for message in messages for block in objects(message.get("content"))]
    lost = {str(block.get("id")) for block in content if block.get("type") == _CALL and _is_search_item(block)}
    lost -= {str(block.get("tool_use_id")) for block in content if block.get("type") == _RESULT}
    if not lost:
        return body
    open_from = _open_from(messages)
    kept = [
        sent for at, message in enumerate(messages) if (sent := _paired(message, lost if at < open_from else ())) != {}
    ]
    return {**body, "messages": kept} if kept != messages else body


def _open_from(messages: Sequence[Json]) -> int:
    """Where the turn begins that the service continues on this request; behind the last message if it has ended."""
    end = len(messages)
    if end and messages[-1].get("role") == "user":
        kinds = {block.get("type") for block in content_blocks(messages[-1].get("content"))}
        end -= kinds == {"tool_result"}
    start = end
    while start and messages[start - 1].get("role") == "assistant":
        start -= 1
    return start


def _paired(message: Json, lost: Collection[str]) -> Json:
    """The message without the calls that are `lost`; empty where nothing is left."""
    content = objects(message.get("content"))
    kept = [block for block in content if block.get("type") != _CALL or str(block.get("id")) not in lost]
    if len(kept) == len(content):
        return message
    if kept and has_thinking({"content": kept[-1:]}):
        kept += never_empty([])  # a message may not end with thinking
    return {**message, "content": kept} if kept else {}


def _round_of(item: Json) -> str | None:
    place = _PLACE.fullmatch(str(item.get("id")))
    return place[1] if place else None


def _round(here: list[Json], waiting: Sequence[tuple[Json, Json]], loader: str, *, native: bool) -> list[Json]:
    """One round: the blocks before the items with the loader calls in their places, and the results."""
    calls: list[Placed] = []
    results: list[Json] = []
    for item, result in waiting:
        place = _PLACE.fullmatch(str(item.get("id")))
        call_id = place[4] if place else str(item.get("id")).removeprefix("srv")
        told = _caller(item) if place else {}
        call: Json = {"type": "tool_use", "id": call_id, "name": loader, "input": item.get("input") or {}, **told}
        calls.append(Placed(call, int(place[2]), int(place[3])) if place else Placed(call, 0, 0))
        results.append(_loader_result(call_id, search_result(result).names, native=native))
    content = interleaved(here, calls)
    return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def _is_search_item(block: Json) -> bool:
    if block.get("type") == _RESULT:
        return True
    return block.get("type") == _CALL and str(block.get("name") or "").startswith(_TOOLS)


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


def with_references(message: Json) -> Json:
    """A message of our own with the loader's answers as references; the same object where there are none."""
    content = objects(message.get("content"))
    made = [as_references(block) for block in content]
    return {**message, "content": made} if any(a is not b for a, b in zip(made, content, strict=True)) else message


def as_references(block: Json) -> Json:
    """A result of our own with the tools that its text says it has loaded as references; any other block as it is."""
    if block.get("type") != "tool_result" or block.get("is_error") is True:
        return block
    names = parse_answer(tool_result(block).text)
    return {**block, "content": [reference(name) for name in names]} if names else block


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
