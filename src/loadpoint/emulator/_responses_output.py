"""A move as the output items of a response, and what they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._json import Json, as_list, as_object, dumps, objects, parse_object
from . import _gateway_search
from ._cache import Bill
from ._count import tokens
from ._dialect import Asked
from ._ids import Ids
from ._responses_prompt import context, prompt
from ._responses_state import item_id
from ._responses_tools import Tools, matched, read
from ._script import Move
from ._signature import seal

_INCOMPLETE = {"max_tokens": "max_output_tokens", "length": "max_output_tokens", "content_filter": "content_filter"}


def output(asked: Asked, move: Move) -> list[Json]:
    """The items that `move` makes, in the order of the recorded responses: reasoning, text, searches, calls."""
    items: list[Json] = [dict(item) for item in move.before]
    if move.thinking:
        items.append(_reasoning(asked, move.thinking))
    if move.text or move.refusal:
        items.append(_message(asked.ids, move))
    items += [dict(item) for item in move.blocks]
    tools = read(asked.body.get("tools"), context(asked))
    for name, arguments, *given in move.calls:
        if name == tools.search_name:
            items += _searched(asked, tools, arguments, given[0] if given else None)
        else:
            items.append(_call(asked, tools, name, arguments, given[0] if given else None))
    if status(move) == "incomplete" and items and "status" in items[-1]:
        items[-1]["status"] = "incomplete"
    return items


def status(move: Move) -> str:
    """How the response ends."""
    if move.stop == "failed":
        return "failed"
    return "incomplete" if move.stop in _INCOMPLETE else "completed"


def endings(move: Move) -> Json:
    """The fields of a response that say how it ended."""
    ended: Json = {"status": status(move), "incomplete_details": None, "error": None}
    if move.stop in _INCOMPLETE:
        ended["incomplete_details"] = {"reason": _INCOMPLETE[move.stop]}
    if move.stop == "failed":
        ended["error"] = {"code": "server_error", "message": move.text or "The model failed to generate a response."}
    return ended


def billed(asked: Asked, items: Sequence[Json], bill: Bill) -> Bill:
    """What is billed when the service itself searched: the model reads the prompt a second time, with the search.

    Inferred from the recordings of pydantic-ai: 570 input tokens for a turn with a search, 220 for the next one.
    """
    kinds = [item.get("type") for item in items if item.get("execution") != "client"]
    if "tool_search_output" not in kinds:
        return bill
    last = max(at for at, item in enumerate(items) if item.get("type") == "tool_search_output")
    again = prompt(asked, [*context(asked), *items[: last + 1]])
    return bill.again(again.segments.total)


def usage(bill: Bill, out: int, reasoning: int, overrides: Mapping[str, Any]) -> Json:
    """The usage of a response, in the API's fields."""
    details: Json = {"cached_tokens": bill.cached, "cache_write_tokens": bill.writes}
    if bill.written:
        lifetimes = {f"ttl_{name}_tokens": bill.written.get(name, 0) for name in ("30m", "12h")}
        details["cache_write_tokens_details"] = lifetimes
    return {
        "input_tokens": bill.total,
        "input_tokens_details": details,
        "output_tokens": out,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": bill.total + out,
        **overrides,
    }


def spoken(move: Move, items: Sequence[Json]) -> int:
    """The output tokens of a move; thinking counts, shown or not."""
    calls = [item for item in items if str(item.get("type")).endswith("_call")]
    out = tokens(move.text) + tokens(move.thinking) + tokens(move.refusal)
    return out + sum(tokens(dumps(_written(item))) for item in calls) + 1


def _written(item: Json) -> Json:
    return {key: item[key] for key in ("name", "arguments", "input") if key in item}


def _reasoning(asked: Asked, thinking: str) -> Json:
    settings = as_object(asked.body.get("reasoning")) or {}
    summarised = settings.get("summary") is not None or settings.get("generate_summary") is not None
    summary = [{"type": "summary_text", "text": thinking}] if summarised else []
    sealed = seal(thinking, asked.ids.text(12))
    return {
        "id": item_id(asked.ids, "reasoning"),
        "type": "reasoning",
        "summary": summary,
        "encrypted_content": sealed,
    }


def _message(ids: Ids, move: Move) -> Json:
    content: list[Json] = []
    if move.text:
        content.append({"type": "output_text", "annotations": [], "logprobs": [], "text": move.text})
    if move.refusal:
        content.append({"type": "refusal", "refusal": move.refusal})
    return {
        "id": item_id(ids, "message"),
        "type": "message",
        "status": "completed",
        "content": content,
        "role": "assistant",
    }


def _searched(asked: Asked, tools: Tools, arguments: Any, call_id: str | None) -> list[Json]:
    """The call of the search; where the service runs it, its output too."""
    wanted = parse_object(arguments) or {} if isinstance(arguments, str) else dict(arguments)
    call: Json = {
        "id": item_id(asked.ids, "tool_search_call"),
        "type": "tool_search_call",
        "status": "completed",
        "arguments": wanted,
        "call_id": None,
        "execution": "server",
    }
    if not tools.hosted:
        return [{**call, "call_id": call_id or asked.ids.make("call_", 29), "execution": "client"}]
    found = [_found(tool) for tool in matched(asked.body.get("tools"), as_list(wanted.get("paths")))]
    given: Json = {
        "id": item_id(asked.ids, "tool_search_output"),
        "type": "tool_search_output",
        "status": "completed",
        "call_id": None,
        "execution": "server",
        "tools": found,
    }
    return [call, given]


def _found(tool: Json) -> Json:
    """A tool as a hosted search gives it back: still marked as deferred, with its output schema (newer recordings)."""
    if tool.get("type") == "namespace":
        return {**tool, "tools": [_found(member) for member in objects(tool.get("tools"))]}
    return {"output_schema": None, **tool} if tool.get("type") == "function" else tool


def _call(asked: Asked, tools: Tools, name: str, arguments: Any, call_id: str | None) -> Json:
    entry = tools.find(name)
    flat = _gateway_search.search_of(asked, "openai.responses") is not None  # no call of one with a namespace was seen
    namespace = None if entry is None or flat else tools.namespace(entry)
    own_name = name if entry is None else entry.name
    custom = entry is not None and entry.custom
    kind = "custom_tool_call" if custom else "function_call"
    call: Json = {
        "id": item_id(asked.ids, kind),
        "type": kind,
        "status": "completed",
        "call_id": call_id or asked.ids.make("call_", 29),
        "name": own_name,
    }
    if custom:
        given = arguments.get("input") if not isinstance(arguments, str) and set(arguments) == {"input"} else arguments
        call["input"] = given if isinstance(given, str) else dumps(given)
    else:
        call["arguments"] = arguments if isinstance(arguments, str) else dumps(arguments)
    return {**call, **({} if namespace is None else {"namespace": namespace})}
