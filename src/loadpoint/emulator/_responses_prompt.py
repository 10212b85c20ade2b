"""A Responses request as the model gets it: deferred definitions out, loaded ones where an item loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._json import Json, as_list, as_object, canonical, objects, parse_object
from . import _gateway_search
from ._cache import Part
from ._dialect import Asked, Prompt
from ._responses_tools import SEARCH, Tools, declaration, definition, read
from ._script import Called, Shown
from ._signature import unseal

_SETTINGS = ("parallel_tool_calls", "text", "reasoning", "context_management")
_LEADING = ("system", "developer")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")
_CALLS = ("function_call", "custom_tool_call", "tool_search_call")


def context(asked: Asked) -> list[Json]:
    """Every item of the request: what the service holds of it, then its own."""
    return [*held(asked), *own(asked)]


def held(asked: Asked) -> list[Json]:
    """The items that the service holds."""
    return as_list((asked.held or {}).get("held"))


def own(asked: Asked) -> list[Json]:
    """The items that the request brings, references resolved."""
    return as_list((asked.held or {}).get("own"))


def prompt(asked: Asked, items: Sequence[Json] | None = None) -> Prompt:
    """The parts in the order of the cache (tools, instructions, input), and the views for a script.

    `items` are the items of the request, or others to reckon with.
    """
    body = asked.body
    items = context(asked) if items is None else items
    tools = read(body.get("tools"), items)
    settings = {key: body[key] for key in _SETTINGS if body.get(key) is not None}
    parts = [Part("settings", canonical(settings))]
    gateway = _gateway_search.search_of(asked, "openai.responses")
    listed = objects(body.get("tools"))
    parts += [Part("tools", declaration(tool)) for tool in listed if gateway is None or not tool.get("defer_loading")]
    parts += _messages(body, items)
    options = as_object(body.get("prompt_cache_options")) or {}
    shown = [entry.shown for entry in tools.visible.values()] + _search(tools)
    choice, allowed = _choice(body)
    return Prompt(
        parts=_lifetimes(parts, options),
        shown=tuple(shown),
        deferred=tuple(dict.fromkeys(name for _, name in tools.hidden)),
        loaded=tuple(dict.fromkeys(name for _, name in {**tools.loaded, **tools.added})),
        history=_history(items),
        texts=_said(items),
        choice=choice if shown or gateway else "none",
        allowed=allowed,
        scope=(str(body.get("prompt_cache_key") or ""),),
        search=gateway or tools.search_name,
        explicit_only=options.get("mode") == "explicit",
    )


def text_of(content: Any) -> str:
    """The text in a content or output, whether it is text or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(str(part.get("text", "")) for part in objects(content) if part.get("type") in _TEXTS)


def is_message(item: Mapping[str, Any]) -> bool:
    """Whether an item is a message; the short form has a role and no type."""
    return item.get("type") == "message" or (item.get("type") is None and "role" in item)


def _search(tools: Tools) -> list[Shown]:
    """The search as a tool that a script can call."""
    if tools.search_name is None or tools.search is None:
        return []
    if tools.hosted:
        paths = {"type": "array", "items": {"type": "string"}}
        return [Shown(SEARCH, "", {"type": "object", "properties": {"paths": paths}, "required": ["paths"]})]
    schema = as_object(tools.search.get("parameters")) or {}
    return [Shown(SEARCH, str(tools.search.get("description") or ""), schema)]


def _messages(body: Json, items: Sequence[Json]) -> list[Part]:
    """The instructions and one part per item; ids and states are no part of the prompt."""
    parts: list[Part] = []
    leading = [is_message(item) and item.get("role") in _LEADING for item in items]
    initial = leading.index(False) if False in leading else len(items)
    if isinstance(body.get("instructions"), str):
        parts.append(Part("system", str(body["instructions"]), eligible=initial == 0))
    for at, item in enumerate(items):
        following = items[at + 1].get("type") if at + 1 < len(items) else None
        eligible = is_message(item) and item.get("role") == "user"
        eligible = eligible or (item.get("type") in _OUTPUTS and following not in _OUTPUTS)
        eligible = eligible or at + 1 == initial
        segment = "system" if at < initial else "messages"
        parts.append(Part(segment, _item_text(item), _marker(item), eligible))
    return parts


def _item_text(item: Json) -> str:
    kind = "message" if is_message(item) else str(item.get("type"))
    if kind == "message":
        return f"{item.get('role')}:{text_of(item.get('content'))}" + _other(item.get("content"))
    if kind == "reasoning":
        return kind + ":" + (unseal(str(item.get("encrypted_content"))) or text_of(item.get("summary")))
    if kind == "compaction":
        return kind + ":" + (unseal(str(item.get("encrypted_content"))) or "")
    if kind in _OUTPUTS:
        return f"{kind}:{item.get('call_id')}:{text_of(item.get('output'))}" + _other(item.get("output"))
    if kind in ("tool_search_output", "additional_tools"):
        return kind + ":" + "".join(definition(tool) for tool in objects(item.get("tools")))
    hidden = ("id", "status", "created_by", *(("call_id",) if kind == "tool_search_call" else ()))
    return canonical({key: value for key, value in item.items() if key not in hidden and value is not None})


def _other(content: Any) -> str:
    """The parts of a content that are no text."""
    return "".join(canonical(part) for part in objects(content) if part.get("type") not in _TEXTS)


def _marker(item: Json) -> str | None:
    """A lifetime where one of the item's parts carries an explicit breakpoint; the request's options may change it."""
    for name in ("content", "output"):
        if any(as_object(part.get("prompt_cache_breakpoint")) is not None for part in objects(item.get(name))):
            return "30m"
    return None


def _lifetimes(parts: list[Part], options: Json) -> list[Part]:
    """The parts with the lifetime that `prompt_cache_options` asks for, at breakpoints and at the implicit boundary."""
    ttl = options.get("ttl")
    if not isinstance(ttl, str):
        return parts
    implicit = options.get("mode") != "explicit"
    latest = max((at for at, part in enumerate(parts) if part.eligible), default=-1) if implicit else -1
    return [
        Part(part.segment, part.text, ttl, part.eligible) if part.marker is not None or at == latest else part
        for at, part in enumerate(parts)
    ]


def _history(items: Sequence[Json]) -> tuple[Called, ...]:
    results: dict[str, Json] = {}
    hosted = [item for item in items if item.get("type") == "tool_search_output" and item.get("call_id") is None]
    for item in items:
        if str(item.get("type")).endswith("_output") and item.get("call_id") is not None:
            results[str(item["call_id"])] = item
    last = max((at for at, item in enumerate(items) if is_message(item) and item.get("role") == "user"), default=-1)
    history: list[Called] = []
    for at, item in enumerate(items):
        if item.get("type") not in _CALLS:
            continue
        unnamed = item.get("type") == "tool_search_call" and item.get("call_id") is None
        result = (hosted.pop(0) if hosted else None) if unnamed else results.get(str(item.get("call_id")))
        history.append(_called(item, result, at > last))
    return tuple(history)


def _called(item: Json, result: Json | None, current: bool) -> Called:
    kind = item.get("type")
    id_ = str(item.get("call_id") or item.get("id") or "")
    if kind == "tool_search_call":
        names = tuple(read([], [] if result is None else [result]).loaded)
        found = tuple(name for _, name in names)
        text = None if result is None else ", ".join(found)
        return Called(SEARCH, id_, as_object(item.get("arguments")) or {}, text, False, found, current)
    text = None if result is None else text_of(result.get("output"))
    if kind == "custom_tool_call":
        return Called(str(item.get("name")), id_, {"input": item.get("input")}, text, current=current)
    arguments = parse_object(str(item.get("arguments") or "")) or {}
    return Called(str(item.get("name")), id_, arguments, text, current=current)


def _said(items: Sequence[Json]) -> tuple[str, ...]:
    users = [item for item in items if is_message(item) and item.get("role") == "user"]
    return tuple(text_of(item.get("content")) for item in users)


def _choice(body: Json) -> tuple[str, frozenset[str] | None]:
    choice = body.get("tool_choice")
    described = as_object(choice)
    if described is None:
        return str(choice or "auto"), None
    if described.get("type") == "allowed_tools":
        names = frozenset(str(tool.get("name") or tool.get("type")) for tool in objects(described.get("tools")))
        return str(described.get("mode") or "auto"), names
    return str(described.get("name") or described.get("type")), None
