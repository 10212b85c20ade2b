"""What the dialect `anthropic.messages` rejects. The words, limits and sources stand in `_providers/rules.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._json import Json, as_list, as_object
from . import _gateway_search, _messages_thinking, _messages_transcript
from ._dialect import Asked
from ._messages_changes import betas
from ._messages_prompt import blocks_of, is_search_tool, marker
from ._rules import Broken, RuleBook, broken


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule that the request breaks: transport, parameters, thread, tools, transcript, thinking, markers."""
    if not (asked.headers.get("x-api-key") or asked.headers.get("authorization")):
        yield broken("messages.no_credential")
    if "anthropic-version" not in asked.headers and "anthropic_version" not in asked.body:
        yield broken("messages.no_version")
    if asked.endpoint == "batches":
        yield from _batch(asked)
        return
    yield from _parameters(asked)
    yield from _thread(asked)
    tools = [as_object(tool) or {} for tool in as_list(asked.body.get("tools"))]
    yield from _tools(tools, asked)
    yield from _messages_transcript.check(asked)
    yield from _choice(asked, tools)
    yield from _messages_thinking.check(asked)
    yield from _markers(asked.body, asked.book)


def _batch(asked: Asked) -> Iterator[Broken]:
    entries = as_list(asked.body.get("requests"))
    if not entries:
        yield broken("messages.batch_empty")
    seen: set[str] = set()
    for at, entry in enumerate(entries):
        id_ = str((as_object(entry) or {}).get("custom_id"))
        if id_ in seen or not re.fullmatch(asked.book.value("messages.batch_custom_id", "pattern"), id_):
            yield broken("messages.batch_custom_id", at=at)
        seen.add(id_)


def _parameters(asked: Asked) -> Iterator[Broken]:
    body = asked.body
    needed = ("model", "messages") if asked.endpoint == "count_tokens" else ("model", "max_tokens", "messages")
    for name in needed:
        if body.get(name) is None:
            yield broken("messages.field_required", name=name)
    for name in body:
        if name not in asked.book.value("messages.unknown_parameter", "known"):
            yield broken("messages.unknown_parameter", name=name)
    for name in sorted(betas(asked) & set(asked.book.value("messages.beta_refused", "betas"))):
        yield broken("messages.beta_refused", name=name)
    thinking = as_object(body.get("thinking")) or {}
    if thinking.get("type") == "enabled" and asked.book["messages.thinking_type_removed"].applies_to(asked.model):
        yield broken("messages.thinking_type_removed")
    for block in blocks_of(body.get("system")):
        if block.get("type") == "text" and not block.get("text"):
            yield broken("messages.empty_system_text")


def _thread(asked: Asked) -> Iterator[Broken]:
    thread = as_object(asked.body.get("thread"))
    if thread is None:
        return
    if asked.book.value("messages.thread_header", "beta") not in betas(asked):
        yield broken("messages.thread_header")
    if thread.get("type") != "continue":
        return
    id_ = str(thread.get("previous_message_id"))
    held = asked.memory.held.get(id_)
    if held is None:
        yield broken("messages.thread_not_found", id=id_)
        return
    if held.continued:
        yield broken("messages.thread_already_continued", id=id_)
    for name in asked.repeated:
        yield broken("messages.thread_repeats", name=name)
    if held.body.get("model") != asked.body.get("model"):
        yield broken("messages.thread_fingerprint", names="model")


def _tools(tools: Sequence[Json], asked: Asked) -> Iterator[Broken]:
    book = asked.book
    deferred = [tool for tool in tools if tool.get("defer_loading") is True]
    if tools and len(deferred) == len(tools):
        yield broken("messages.all_deferred")
    search = _gateway_search.shows_nothing(asked, "anthropic.messages")
    if search is not None:
        yield broken("messages.gateway_all_deferred", search=search)
    if len(deferred) > book.value("messages.too_many_deferred", "limit"):
        yield broken("messages.too_many_deferred")
    names = [tool["name"] for tool in tools if tool.get("name") is not None]
    if len(set(map(str, names))) < len(names):
        yield broken("messages.tool_names_unique")
    for at, tool in enumerate(tools):
        yield from _tool(at, tool, asked)


def _tool(at: int, tool: Json, asked: Asked) -> Iterator[Broken]:
    if tool.get("type") in asked.book.value("messages.tool_type", "gateways"):
        if tool["type"] not in _gateway_search.searches(asked, "anthropic.messages"):
            yield broken("messages.tool_type", at=at, type=tool["type"])
        return
    if tool.get("type") in (None, "custom"):
        yield from _custom(at, tool, asked.book)
    elif is_search_tool(tool) and "bm25" in str(tool["name"]):
        yield broken("messages.bm25_on_bedrock")
    elif str(tool["type"]).startswith("tool_search_tool") and not is_search_tool(tool):
        kind = str(tool["type"])
        yield broken("messages.tool_search_name", at=at, type=kind, name=re.sub(r"_\d{8}$", "", kind))
    if tool.get("defer_loading") is True:
        if tool.get("cache_control") is not None:
            yield broken("messages.defer_with_cache_control", name=tool.get("name"))
        if asked.book["messages.defer_unsupported_model"].applies_to(asked.model):
            yield broken("messages.defer_unsupported_model", at=at)


def _custom(at: int, tool: Json, book: RuleBook) -> Iterator[Broken]:
    """A tool of the caller's own."""
    for name in ("name", "input_schema"):
        if tool.get(name) is None:
            yield broken("messages.tool_field_required", at=at, name=name)
    for name in tool:
        if name not in book.value("messages.unknown_tool_field", "known"):
            yield broken("messages.unknown_tool_field", at=at, name=name)
    if not re.fullmatch(book.value("messages.tool_name", "pattern"), str(tool.get("name"))):
        yield broken("messages.tool_name", at=at)
    if tool.get("input_schema") is not None and (as_object(tool["input_schema"]) or {}).get("type") != "object":
        yield broken("messages.tool_schema", at=at)


def _choice(asked: Asked, tools: Sequence[Json]) -> Iterator[Broken]:
    choice = as_object(asked.body.get("tool_choice"))
    kind = None if choice is None else choice.get("type")
    if choice is None or kind not in ("any", "tool"):
        return
    if kind == "any" and not tools:
        yield broken("messages.tool_choice_without_tools")
    if asked.book["messages.tool_choice_unsupported"].applies_to(asked.model):
        yield broken("messages.tool_choice_unsupported")
    thinking = as_object(asked.body.get("thinking")) or {}
    if thinking.get("type") in ("enabled", "adaptive"):
        yield broken("messages.tool_choice_with_thinking")
    if kind == "tool":
        named = next((tool for tool in tools if tool.get("name") == choice.get("name")), None)
        if named is None:
            yield broken("messages.tool_choice_unknown", name=choice.get("name"))
        elif named.get("defer_loading") is True and named.get("name") not in _messages_transcript.loaded(asked.body):
            yield broken("messages.tool_choice_deferred", name=named.get("name"))


def _markers(body: Json, book: RuleBook) -> Iterator[Broken]:
    """At most four cache markers, longer lifetimes first, none on an empty text."""
    marked = list(_marked(body))
    limit = book.value("messages.cache_control_count", "limit")
    if len(marked) > limit:
        yield broken("messages.cache_control_count", found=len(marked))
    lifetimes = [lifetime for _, _, lifetime in marked]
    if "5m" in lifetimes and "1h" in lifetimes[lifetimes.index("5m") :]:
        yield broken("messages.cache_control_ttl_order")
    for where, holder, _ in marked:
        if holder.get("type") == "text" and not holder.get("text"):
            yield broken("messages.cache_control_empty_text", where=where)


def _by_value(block: Json | None) -> Json | None:
    """The definition that a tool change carries."""
    return as_object((as_object((block or {}).get("tool")) or {}).get("definition"))


def _marked(body: Json) -> Iterator[tuple[str, Json, str]]:
    """Everything that holds a cache marker, in the order of the prompt."""
    holders: list[tuple[str, Any]] = [(f"tools.{at}", tool) for at, tool in enumerate(as_list(body.get("tools")))]
    holders += [(f"system.{at}", block) for at, block in enumerate(as_list(body.get("system")))]
    for at, message in enumerate(as_list(body.get("messages"))):
        for index, block in enumerate(as_list((as_object(message) or {}).get("content"))):
            inner = as_list((as_object(block) or {}).get("content"))
            where = f"messages.{at}.content.{index}"
            holders += [(f"{where}.content.{item}", part) for item, part in enumerate(inner)]
            holders.append((f"{where}.tool.definition", _by_value(as_object(block))))
            holders.append((where, block))
    for where, holder in [*holders, ("cache_control", body)]:
        held = as_object(holder)
        if held is not None and (lifetime := marker(held)) is not None:
            yield where, held, lifetime
