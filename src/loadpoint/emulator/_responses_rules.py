"""What the dialect `openai.responses` rejects. The words, limits and sources stand in `_providers/rules.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._json import Json, as_list, as_object, objects
from . import _gateway_search, _responses_items
from ._dialect import Asked
from ._responses_paths import STORED
from ._responses_prompt import context, held, own
from ._responses_state import conversation_id
from ._responses_tools import SEARCH, Tools, defers, entries, read
from ._rules import Broken, RuleBook, broken

_TEXT_OR_LIST = (str, list)


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule that the request breaks: transport, parameters, state, tools, choice, items."""
    if not (asked.headers.get("authorization") or asked.headers.get("api-key")):
        yield broken("responses.no_credential")
    if asked.endpoint == "cancel":
        yield from _cancel(asked)
    if asked.endpoint in STORED or asked.endpoint.startswith("talk."):
        return
    yield from _parameters(asked)
    yield from _state(asked)
    tools = as_list(asked.body.get("tools"))
    yield from _tools("tools", tools, asked)
    yield from _deferral(tools, asked)
    yield from _choice(asked)
    yield from _items_tools(asked)
    yield from _responses_items.check(asked)


def _cancel(asked: Asked) -> Iterator[Broken]:
    id_ = asked.path.rstrip("/").split("/")[-2]
    stored = asked.memory.responses.get(id_)
    if stored is not None and stored.reply.get("background") is not True:
        yield broken("responses.cancel_synchronous")


def _parameters(asked: Asked) -> Iterator[Broken]:
    body, book = asked.body, asked.book
    for name in body:
        if name not in book.value("responses.unknown_parameter", "known"):
            yield broken("responses.unknown_parameter", name=name)
    if not asked.model and body.get("prompt") is None and asked.endpoint != "input_tokens":
        yield broken("responses.model_missing")
    given = body.get("input")
    if given is not None and not isinstance(given, _TEXT_OR_LIST):
        yield broken("responses.input_type", path="input", type=_responses_items.kind_of(given))
    elsewhere = any(body.get(name) is not None for name in ("previous_response_id", "conversation", "prompt"))
    if not given and not elsewhere:
        yield broken("responses.input_missing")
    options = as_object(body.get("prompt_cache_options"))
    if options and asked.book["responses.cache_options_unsupported"].applies_to(asked.model):
        yield broken("responses.cache_options_unsupported")


def _state(asked: Asked) -> Iterator[Broken]:
    previous, talk = asked.body.get("previous_response_id"), conversation_id(asked)
    if previous is not None and talk is not None:
        yield broken("responses.two_states")
    if previous is not None and str(previous) not in asked.memory.responses:
        yield broken("responses.previous_response_not_found", id=previous)
    if talk is not None and talk not in asked.memory.talks:
        yield broken("responses.conversation_not_found", id=talk)


def _tools(path: str, tools: Sequence[Any], asked: Asked, *, level: str = "top") -> Iterator[Broken]:
    """The entries of a list of tools, at the top or in a namespace."""
    names: set[tuple[str, str]] = set()
    for at, entry in enumerate(tools):
        tool = as_object(entry) or {}
        yield from _tool(f"{path}[{at}]", tool, asked, level)
        key = ("namespace" if tool.get("type") == "namespace" else "", str(tool.get("name")))
        if tool.get("name") is not None and key in names:
            yield broken("responses.tool_names_unique", name=tool["name"])
        names.add(key)


def _tool(path: str, tool: Json, asked: Asked, level: str) -> Iterator[Broken]:
    book, kind = asked.book, tool.get("type")
    supported = book.value("responses.tool_type", level)
    if level == "top" and kind in _gateway_search.searches(asked, "openai.responses"):
        return
    if kind not in supported:
        listed = ", ".join(map(repr, supported))
        yield broken("responses.tool_type", path=path, type=kind, supported=listed)
        return
    known = book["responses.unknown_tool_field"].values.get(str(kind), tool)
    for name in tool:
        if name not in known:
            yield broken("responses.unknown_tool_field", path=path, name=name)
    for name in book["responses.tool_field_required"].values.get(str(kind), ()):
        if tool.get(name) is None:
            yield broken("responses.tool_field_required", path=path, name=name)
    if isinstance(tool.get("name"), str):
        yield from _name(path, tool["name"], book, grouped=kind == "namespace")
    if kind == "namespace":
        yield from _namespace(path, tool, asked)
    if kind == "function":
        yield from _schema(path, tool)


def _namespace(path: str, tool: Json, asked: Asked) -> Iterator[Broken]:
    name = tool.get("name")
    if name in asked.book.value("responses.namespace_functions", "reserved"):
        yield broken("responses.namespace_functions", name=name)
    count = sum(member.get("defer_loading") is True for member in objects(tool.get("tools")))
    if count >= asked.book.value("responses.namespace_size", "limit"):
        yield broken("responses.namespace_size", name=name, count=count)
    yield from _tools(f"{path}.tools", as_list(tool.get("tools")), asked, level="namespace")


def _name(path: str, name: str, book: RuleBook, *, grouped: bool) -> Iterator[Broken]:
    if grouped:
        if not re.fullmatch(book.value("responses.namespace_name", "pattern"), name):
            yield broken("responses.namespace_name", path=path)
        return
    if not re.fullmatch(book.value("responses.tool_name_pattern", "pattern"), name):
        yield broken("responses.tool_name_pattern", path=path)
    if len(name) > book.value("responses.tool_name_length", "limit"):
        yield broken("responses.tool_name_length", path=path, length=len(name))


def _schema(path: str, tool: Json) -> Iterator[Broken]:
    name, parameters = tool.get("name"), tool.get("parameters")
    if parameters is None:
        return
    schema = as_object(parameters)
    if schema is None:
        yield broken("responses.tool_parameters", path=path, name=name, type=type(parameters).__name__)
        return
    if schema and schema.get("type") != "object":
        yield broken("responses.tool_parameters", path=path, name=name, type=schema.get("type"))
    if tool.get("strict") is not True:
        return
    if schema.get("additionalProperties") is not False:
        problem = "'additionalProperties' is required to be supplied and to be false."
        yield broken("responses.tool_strict", path=path, name=name, problem=problem)
    missing = set(as_object(schema.get("properties")) or {}) - set(map(str, as_list(schema.get("required"))))
    if missing:
        problem = (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{min(missing)}'."
        )
        yield broken("responses.tool_strict", path=path, name=name, problem=problem)


def _deferral(tools: Sequence[Any], asked: Asked) -> Iterator[Broken]:
    """What deferred tools and the search need of each other, and of the model."""
    gateway = _gateway_search.search_of(asked, "openai.responses")
    if gateway is not None:
        if _gateway_search.shows_nothing(asked, "openai.responses"):
            yield broken("responses.gateway_all_deferred", search=gateway)
        return
    searches = [tool for tool in objects(tools) if tool.get("type") == SEARCH]
    if searches and asked.book["responses.search_unsupported_model"].applies_to(asked.model):
        yield broken("responses.search_unsupported_model", model=asked.model)
    if defers(tools) and not searches:
        yield broken("responses.deferred_without_search")
    if len(searches) > 1:
        yield broken("responses.search_twice")
    for search in searches:
        if search.get("execution") == "client":
            if search.get("description") is None:
                yield broken("responses.client_search_description")
        elif not defers(tools):
            yield broken("responses.search_without_deferred")


def _choice(asked: Asked) -> Iterator[Broken]:
    choice = asked.body.get("tool_choice")
    if choice is None:
        return
    tools = read(asked.body.get("tools"), context(asked))
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            yield broken("responses.tool_choice_value", value=choice)
        elif choice == "required" and not asked.body.get("tools") and not tools.visible:
            yield broken("responses.tool_choice_without_tools", value=choice)
        return
    described = as_object(choice) or {}
    if described.get("type") not in asked.book.value("responses.tool_choice_value", "types"):
        yield broken("responses.tool_choice_value", value=described.get("type"))
        return
    if not asked.body.get("tools") and not tools.visible:
        yield broken("responses.tool_choice_without_tools", value=described.get("name") or described.get("type"))
        return
    allowed = described.get("type") == "allowed_tools"
    for wanted in objects(described.get("tools")) if allowed else [described]:
        yield from _chosen(asked, wanted, tools, forced=not allowed)


def _chosen(asked: Asked, wanted: Json, tools: Tools, *, forced: bool) -> Iterator[Broken]:
    """One tool that a choice names."""
    named = wanted.get("name") or wanted.get("server_label")
    name = str(named or wanted.get("type"))
    top = objects(asked.body.get("tools"))
    kinds = {str(tool.get("type")) for tool in top}
    labels = {str(tool.get("name") or tool.get("server_label")) for tool in top}
    if (None, name) in tools.added and name not in labels:
        if asked.book["responses.tool_choice_added"].applies_to(asked.model):
            yield broken("responses.tool_choice_added", name=name)
        return
    loaded = (None, name) in tools.loaded
    member = any(own == name for container, own in tools.visible if container is not None)
    if name not in (labels if named else kinds) and not loaded and not member:
        yield broken("responses.tool_choice_unknown", name=name)
    elif forced and (None, name) in tools.hidden:
        yield broken("responses.tool_choice_deferred", name=name)


def _items_tools(asked: Asked) -> Iterator[Broken]:
    """The tools in items: as those of the request, and not declared beside them."""
    for at, item in enumerate(own(asked)):
        if item.get("type") not in ("additional_tools", "tool_search_output"):
            continue
        yield from _tools(f"input[{at}].tools", as_list(item.get("tools")), asked)
        for tool in objects(item.get("tools")):
            if tool.get("type") in asked.book.value("responses.loaded_type", "types"):
                yield broken("responses.loaded_type", type=tool["type"])
    yield from _declared_twice(asked)


def _declared_twice(asked: Asked) -> Iterator[Broken]:
    """Tools of the request that an `additional_tools` item declares, too."""
    top = {entry.name for entry in entries(objects(asked.body.get("tools"))) if entry.container is None}
    before = len(held(asked))
    choice = as_object(asked.body.get("tool_choice")) or {}
    refused = asked.book["responses.declared_twice"].applies_to(asked.model)
    for at, item in enumerate(context(asked)):
        tools = objects(item.get("tools")) if item.get("type") == "additional_tools" else []
        twice = [entry.name for entry in entries(tools) if entry.container is None and entry.name in top]
        for name in twice:
            if at < before and choice.get("name") == name:
                yield broken("responses.forced_redeclared")
            elif refused and at >= before:
                yield broken("responses.declared_twice", at=at - before, name=name)
