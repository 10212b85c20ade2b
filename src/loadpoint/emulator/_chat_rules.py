"""What the dialect `openai.chat` rejects. The words, limits and sources stand in `_providers/rules.toml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._json import Json, as_list, as_object
from ._chat_references import defers, defers_inside, references, refers
from ._chat_server_tools import is_server_tool, name_for_model
from ._dialect import Asked
from ._rules import Broken, RuleBook, broken, matches

ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule that the request breaks: transport, parameters, tools, choice, transcript."""
    if not (asked.headers.get("authorization") or asked.headers.get("api-key")):
        yield broken("chat.no_credential")
    body, book = asked.body, asked.book
    yield from _parameters(body, book)
    tools = as_list(body.get("tools"))
    yield from _tools(tools, asked)
    messages = as_list(body.get("messages"))
    late = [as_list((as_object(message) or {}).get("tools")) for message in messages]
    yield from _choice(body, [tool for group in (tools, *late) for tool in group])
    yield from _kimi_choice(asked)
    if book["chat.system_tools"].applies_to(asked.model):
        yield from _late(tools, late, asked)
    for at, message in enumerate(messages):
        yield from _message(at, as_object(message) or {}, asked, book)
    yield from _pairs([as_object(message) or {} for message in messages])


def _parameters(body: Json, book: RuleBook) -> Iterator[Broken]:
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield broken("chat.model_missing")
    if not isinstance(body.get("messages"), list):
        yield broken("chat.messages_missing")
    elif not body["messages"]:
        yield broken("chat.messages_empty")
    for name in body:
        if name not in book.value("chat.unknown_parameter", "known"):
            yield broken("chat.unknown_parameter", name=name)
    if body.get("stream_options") is not None and body.get("stream") is not True:
        yield broken("chat.stream_options")


def _tools(tools: Sequence[Any], asked: Asked) -> Iterator[Broken]:
    book = asked.book
    if "tools" in asked.body and not tools:
        yield broken("chat.tools_empty")
    limit = book.value("chat.too_many_tools", "limit")
    if len(tools) > limit:
        yield broken("chat.too_many_tools", length=len(tools))
    names: set[str] = set()
    for at, entry in enumerate(tools):
        tool = as_object(entry) or {}
        yield from _tool(at, tool, asked)
        name = _name(tool)
        if is_server_tool(tool, asked):
            continue
        if name in names:
            yield broken("chat.tool_names_unique", name=name)
        names.add(name)
    for name in sorted(names & {name_for_model(tool) for tool in map(as_object, tools) if is_server_tool(tool, asked)}):
        yield broken("chat.server_tool_name", name=name)


def _late(tools: Sequence[Any], late: Sequence[Sequence[Any]], asked: Asked) -> Iterator[Broken]:
    """The tools that messages bring are functions by the rules of all others."""
    known = {_name(tool) for tool in tools}
    for at, group in enumerate(late):
        for place, entry in enumerate(group):
            yield from _tool(place, as_object(entry) or {}, asked)
            if _name(entry) in known:
                yield broken("chat.system_tools_twice", at=at, name=_name(entry))
            known.add(_name(entry))


def _tool(at: int, tool: Json, asked: Asked) -> Iterator[Broken]:
    kind, book = tool.get("type"), asked.book
    extra = ("defer_loading",) if defers(asked) else ()
    if is_server_tool(tool, asked):
        return
    if kind not in ("function", "custom"):
        yield broken("chat.tool_type", at=at, type=kind)
        return
    for name in tool:
        if name not in (*book.value("chat.unknown_tool_field", "tool"), *extra):
            yield broken("chat.unknown_tool_field", at=at, name=name)
    function = as_object(tool.get(kind))
    if function is None:
        yield broken("chat.tool_shape", at=at, name=kind)
        return
    for name in function:
        if name not in (*book.value("chat.unknown_tool_field", kind), *(extra if defers_inside(asked) else ())):
            yield broken("chat.unknown_tool_field", at=at, name=f"{kind}.{name}")
    if not isinstance(function.get("name"), str):
        yield broken("chat.tool_shape", at=at, name=f"{kind}.name")
        return
    yield from _words(at, function, asked.model, book)
    yield from _schema(at, function["name"], function)


def _words(at: int, function: Json, model: str, book: RuleBook) -> Iterator[Broken]:
    """The name and the description of a function."""
    name = function["name"]
    if not re.fullmatch(book.value("chat.tool_name_pattern", "pattern"), name):
        yield broken("chat.tool_name_pattern", at=at)
    if len(name) > book.value("chat.tool_name_length", "limit"):
        yield broken("chat.tool_name_length", at=at, length=len(name))
    kimi = book["chat.kimi_tool_name"]
    if kimi.applies_to(model) and not re.fullmatch(kimi.values["pattern"], name):
        yield broken(kimi.id, at=at)
    description = str(function.get("description") or "")
    rule = book["chat.tool_description_length"]
    if rule.applies_to(model) and len(description) > rule.values["limit"]:
        yield broken(rule.id, at=at, length=len(description))


def _schema(at: int, name: str, function: Json) -> Iterator[Broken]:
    if "parameters" not in function or function["parameters"] is None:
        return
    schema = as_object(function["parameters"])
    if schema is None:
        yield broken("chat.tool_parameters", at=at, name=name, type=type(function["parameters"]).__name__)
        return
    if schema and schema.get("type") != "object":
        yield broken("chat.tool_parameters", at=at, name=name, type=schema.get("type"))
    if function.get("strict") is True:
        if schema.get("additionalProperties") is not False:
            problem = "'additionalProperties' is required to be supplied and to be false."
            yield broken("chat.tool_strict", at=at, name=name, problem=problem)
        missing = set(as_object(schema.get("properties")) or {}) - set(map(str, as_list(schema.get("required"))))
        if missing:
            problem = (
                "'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing '{min(missing)}'."
            )
            yield broken("chat.tool_strict", at=at, name=name, problem=problem)


def _choice(body: Json, tools: Sequence[Any]) -> Iterator[Broken]:
    choice = body.get("tool_choice")
    if body.get("parallel_tool_calls") is not None and not tools:
        yield broken("chat.parallel_without_tools")
    if choice is None:
        return
    if not tools:
        yield broken("chat.tool_choice_without_tools")
        return
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            yield broken("chat.tool_choice_value", value=choice)
        return
    described = as_object(choice) or {}
    known = {_name(tool) for tool in tools}
    wanted = [described]
    if described.get("type") == "allowed_tools":
        wanted = [
            as_object(tool) or {} for tool in as_list((as_object(described.get("allowed_tools")) or {}).get("tools"))
        ]
    for tool in wanted:
        if _name(tool) not in known:
            yield broken("chat.tool_choice_unknown", name=_name(tool))


def _kimi_choice(asked: Asked) -> Iterator[Broken]:
    """What of `tool_choice` Kimi does not take while it thinks."""
    rule = asked.book["chat.kimi_tool_choice"]
    choice = asked.body.get("tool_choice")
    named = (as_object(choice) or {}).get("type") == "function"
    if named and rule.applies_to(asked.model):
        yield broken(rule.id, value="specified")
    thinking = as_object(asked.body.get("thinking")) or {}
    thinks = matches(asked.model, rule.values["thinking_models"]) and thinking.get("type") != "disabled"
    if thinks and (named or choice == "required"):
        yield broken(rule.id, value="specified" if named else choice)


def _name(tool: Any) -> str:
    described = as_object(tool) or {}
    return str((as_object(described.get(str(described.get("type")))) or {}).get("name"))


def _message(at: int, message: Json, asked: Asked, book: RuleBook) -> Iterator[Broken]:
    role = message.get("role")
    fields = book["chat.unknown_message_field"].values
    if not isinstance(role, str) or role not in ROLES:
        yield broken("chat.role", at=at, role=role)
        return
    takes_tools = role == "system" and book["chat.system_tools"].applies_to(asked.model)
    for name in message:
        if name not in fields[role] and not (takes_tools and name == "tools"):
            yield broken("chat.unknown_message_field", at=at, name=name)
    if takes_tools and "tools" in message:
        if "content" in message or not message["tools"]:
            yield broken("chat.system_tools", at=at)
        return
    yield from _content(at, role, message, asked)
    if "tool_calls" in message and message["tool_calls"] is not None:
        yield from _calls(at, as_list(message["tool_calls"]), book)


def _content(at: int, role: str, message: Json, asked: Asked) -> Iterator[Broken]:
    book = asked.book
    content = message.get("content")
    if content is None and not (role == "assistant" and (message.get("tool_calls") or message.get("refusal"))):
        yield broken("chat.content_missing", at=at)
    supported = [*book["chat.content_part"].values.get(role, ())]
    if role == "tool" and refers(asked):
        supported.append("tool_reference")
        yield from _references(message, asked)
    for part, item in enumerate(as_list(content)):
        kind = (as_object(item) or {}).get("type")
        if kind not in supported:
            yield broken("chat.content_part", at=at, part=part, type=kind, supported=", ".join(map(repr, supported)))


def _references(message: Json, asked: Asked) -> Iterator[Broken]:
    """Where a host takes references to deferred tools, they name tools of the request."""
    known = {_name(tool) for tool in as_list(asked.body.get("tools"))}
    for name in references(message):
        if name not in known:
            yield broken("chat.reference_unknown", name=name)


def _calls(at: int, calls: Sequence[Any], book: RuleBook) -> Iterator[Broken]:
    if not calls:
        yield broken("chat.tool_calls_empty", at=at)
    limit = book.value("chat.tool_call_id_length", "limit")
    for index, entry in enumerate(calls):
        call = as_object(entry) or {}
        function = as_object(call.get(str(call.get("type")))) or {}
        if not isinstance(call.get("id"), str):
            yield broken("chat.tool_call_shape", at=at, call=index, name="id")
        elif len(call["id"]) > limit:
            yield broken("chat.tool_call_id_length", at=at, call=index, length=len(call["id"]))
        if call.get("type") not in ("function", "custom"):
            yield broken("chat.tool_call_shape", at=at, call=index, name="type")
        for name in ("name", "arguments") if call.get("type") == "function" else ():
            if not isinstance(function.get(name), str):
                yield broken("chat.tool_call_shape", at=at, call=index, name=f"function.{name}")


def _pairs(messages: Sequence[Json]) -> Iterator[Broken]:
    """Each assistant turn with calls is followed at once by one tool message per call, and no other tool message is."""
    open_ids: list[str] = []
    asked_at: int | None = None
    for at, message in enumerate(messages):
        if message.get("role") == "tool":
            id_ = str(message.get("tool_call_id"))
            if asked_at is None:
                yield broken("chat.tool_message_orphan", at=at)
            elif id_ not in open_ids:
                yield broken("chat.tool_message_id", at=at, id=id_)
            else:
                open_ids.remove(id_)
            continue
        if open_ids:
            yield broken("chat.tool_calls_unanswered", at=at, ids=", ".join(open_ids))
        calls = [as_object(call) or {} for call in as_list(message.get("tool_calls"))]
        open_ids = [str(call.get("id")) for call in calls]
        asked_at = at if calls and message.get("role") == "assistant" else None
    if open_ids:
        yield broken("chat.tool_calls_unanswered", at=len(messages) - 1, ids=", ".join(open_ids))
