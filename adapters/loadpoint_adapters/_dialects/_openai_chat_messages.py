"""Messages of Chat Completions: reading them, and the forms in which they load tools.

    system_tools    a system message with `tools` and no `content`, from which on these tools exist. Kimi K3:
                    https://docs.morphllm.com/sdk/components/dynamic-tool-loading. It may stand behind a user's turn as
                    behind tool results; `content: null` is refused; the server keeps none of it. Unverified: whether
                    the same name may come again with another definition, and whether a `tool_choice` may name a tool
                    that stands in such a message only.
    tool_reference  parts of a tool message that name tools of the request which are marked `defer_loading`. Baseten:
                    https://docs.baseten.co/inference/model-apis/deferred-tool-loading. Unverified: where the mark
                    stands (beside `function` here), and text beside references in one message (never written here).

Neither is a part of the API as OpenAI documents it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from loadpoint._dialect import CallView, ResultView, View
from loadpoint._json import Json, as_list, as_object, dumps, objects

from ._openai_results import is_failure

_INSTRUCTIONS = ("system", "developer")
_REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""DeepSeek and Moonshot, vLLM, OpenRouter: none of them is a field of the API as OpenAI documents it."""
_MARKS = ("defer_loading", "cache_control")


def text_of(content: Any) -> str:
    """The text of a message's content."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in objects(content))


def calls_of(message: Json) -> tuple[CallView, ...]:
    """The calls of an assistant's message."""
    calls: list[CallView] = []
    for wire in objects(message.get("tool_calls")):
        inner = as_object(wire.get("function")) or as_object(wire.get("custom")) or {}
        arguments = inner.get("arguments", inner.get("input"))
        calls.append(CallView(str(wire.get("id") or ""), str(inner.get("name") or ""), str(arguments or "")))
    return tuple(calls)


def view(message: Json) -> View:
    """The message as the core sees it."""
    role = message.get("role")
    text = text_of(message.get("content"))
    if role == "tool":
        names = () if isinstance(message.get("content"), str) else references(message)
        result = ResultView(str(message.get("tool_call_id") or ""), text, failed=is_failure(text), names=names)
        return View("tool", results=(result,))
    if role == "assistant":
        return View("assistant", text, calls_of(message))
    if role not in _INSTRUCTIONS:
        return View("user", text)
    pairs = brought(message)
    if not pairs:
        return View("system", text)
    names, wires = tuple(name for name, _ in pairs), tuple(wire for _, wire in pairs)
    return View("system", text, results=(ResultView("", "", names=names, search=True, tools=wires),))


def with_calls(message: Json, change: Callable[[CallView], CallView]) -> Json:
    """The message with other names and arguments in its calls of functions; the same object if none changes."""
    calls = objects(message.get("tool_calls"))
    made = [_changed(call, seen, change) for call, seen in zip(calls, calls_of(message), strict=True)]
    same = all(new is call for new, call in zip(made, calls, strict=True))
    return message if same else {**message, "tool_calls": made}


def _changed(call: Json, seen: CallView, change: Callable[[CallView], CallView]) -> Json:
    function = as_object(call.get("function"))
    new = change(seen)
    if function is None or new == seen:
        return call
    return {**call, "function": {**function, "name": new.name, "arguments": new.arguments}}


def with_arguments(call: Json) -> Json:
    """A call with an empty object where its server wrote no arguments: not every server takes nothing back."""
    function = as_object(call.get("function"))
    if function is None or str(function.get("arguments") or "").strip():
        return call
    return {**call, "function": {**function, "arguments": "{}"}}


def bare(message: Json) -> Json:
    """The message without cache markers; a list of one text is that text."""
    if "cache_control" not in message and not isinstance(message.get("content"), list):
        return message
    out = {key: value for key, value in message.items() if key != "cache_control"}
    if isinstance(out.get("content"), list):
        out["content"] = [_without_marker(part) for part in out["content"]]
        if len(out["content"]) == 1 and set(as_object(out["content"][0]) or ()) == {"type", "text"}:
            out["content"] = out["content"][0]["text"]  # the same prompt, as a marker in it makes people write it
    return out


def without_thinking(message: Json) -> Json:
    """The message without the fields in which servers give reasoning back; the same object where it has none."""
    if not any(key in message for key in _REASONING):
        return message
    return {key: value for key, value in message.items() if key not in _REASONING}


def _without_marker(part: Any) -> Any:
    wire = as_object(part)
    if wire is None or "cache_control" not in wire:
        return part
    return {key: value for key, value in wire.items() if key != "cache_control"}


# -- tools in messages ------------------------------------------------------------------------------------------------


def unmarked(wire: Json) -> Json:
    """A tool without deferral and cache marks, wherever they stand; the same object where it has none."""
    function = as_object(wire.get("function")) or {}
    if not any(key in part for part in (wire, function) for key in _MARKS):
        return wire
    out = {key: value for key, value in wire.items() if key not in _MARKS}
    if function:
        out["function"] = {key: value for key, value in function.items() if key not in _MARKS}
    return out


def tool_name(wire: Json) -> str | None:
    """The name of a function or a custom tool; None for anything else."""
    inner = as_object(wire.get("function")) or as_object(wire.get("custom")) or {}
    name = inner.get("name")
    return name if isinstance(name, str) and name else None


def brings_tools(message: Json) -> bool:
    """Whether this is a message of instructions with a field for tools, which not every service takes."""
    return "tools" in message and message.get("role") in _INSTRUCTIONS


def brought(message: Json) -> list[tuple[str, Json]]:
    """The tools that a message of instructions brings, by name."""
    if not brings_tools(message):
        return []
    wires = [unmarked(wire) for wire in objects(message["tools"])]
    return [(name, wire) for wire in wires if (name := tool_name(wire)) is not None]


def bringing(wires: Sequence[Json]) -> Json:
    """The message from which on these tools exist."""
    return {"role": "system", "tools": [unmarked(wire) for wire in wires]}


def apart(message: Json) -> list[Json]:
    """A message of instructions with its words and its tools in messages of their own, as Kimi takes them."""
    if not brings_tools(message) or (message["tools"] and "content" not in message):
        return [message]
    words = {key: value for key, value in message.items() if key != "tools"}
    out = [words] if message.get("content") else []
    return [*out, {"role": "system", "tools": message["tools"]}] if message["tools"] else out


def references(message: Json) -> tuple[str, ...]:
    """The names in the `tool_reference` parts of a tool message."""
    parts = objects(message.get("content"))
    given = [part.get("tool_name") for part in parts if part.get("type") == "tool_reference"]
    names = [name for name in given if isinstance(name, str) and name]
    return tuple(dict.fromkeys(names))


def referring(message: Json, names: Sequence[str]) -> Json:
    """The tool message with references to these tools as its content."""
    return {**message, "content": [{"type": "tool_reference", "tool_name": name} for name in names]}


def told(message: Json) -> Json:
    """A tool message with the loader's answer in words where it has references; the same object where it has none."""
    names = references(message) if message.get("role") == "tool" and as_list(message.get("content")) else ()
    if not names:
        return message
    answer: Json = {"query": "", "matches": [], "total_available": len(names), "addedToolNames": list(names)}
    said = text_of(message["content"])
    return {**message, "content": dumps({**answer, "hint": said} if said else answer)}


def joined(results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
    """Results first; what brings tools stands behind the last result of the caller's."""
    answers = [message for message in results if message.get("role") == "tool"]
    loads = [message for message in results if message.get("role") != "tool"]
    at = max((place for place, message in enumerate(following, 1) if message.get("role") == "tool"), default=0)
    return [*answers, *following[:at], *loads, *following[at:]]


def settled(body: Json, *, refers: bool) -> Json:
    """The body as a service takes it that knows no tools in messages; the same object where there are none.

    They have come with a history that another service has seen: what they bring stands in the list of tools, in
    context, whether the caller still lists it or not. `refers`: references in tool messages are taken.
    """
    messages: list[Json] = []
    late: dict[str, Json] = {}
    for message in objects(body.get("messages")):
        if brings_tools(message):
            late.update(brought(message))
            words = {key: value for key, value in message.items() if key != "tools"}
            messages += [words] if message.get("content") else []
        else:
            messages.append(message if refers else told(message))
    if len(messages) == len(body["messages"]) and all(map(_same, messages, body["messages"])):
        return body
    return {**body, "messages": messages, **_listed(body, late)}


def _listed(body: Json, late: dict[str, Json]) -> Json:
    if not late:
        return {}
    tools = [unmarked(wire) if tool_name(wire) in late else wire for wire in objects(body.get("tools"))]
    known = {tool_name(wire) for wire in tools}
    return {"tools": [*tools, *(wire for name, wire in late.items() if name not in known)]}


def _same(one: Json, other: Json) -> bool:
    return one is other


def without_calls(messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
    """The messages without these calls and their results; a message of which nothing is left goes."""
    out: list[Json] = []
    for message in messages:
        if message.get("role") == "tool" and str(message.get("tool_call_id")) in call_ids:
            continue
        calls = objects(message.get("tool_calls"))
        kept = [call for call in calls if str(call.get("id")) not in call_ids]
        if len(kept) == len(calls):
            out.append(message)
        elif kept or text_of(message.get("content")):
            rest = {key: value for key, value in message.items() if key != "tool_calls"}
            out.append({**rest, "tool_calls": kept} if kept else rest)
    return out


def brought_alone(body: Json) -> Json:
    """The body as Kimi takes it, without references in tool messages; the same object where it is so already."""
    messages = objects(body.get("messages"))
    out = [told(part) for message in messages for part in apart(message)]
    same = len(out) == len(messages) and all(map(_same, out, messages))
    return body if same else {**body, "messages": out}


def without_tool(body: Json, name: str) -> Json:
    """The body without this tool in its list, and without a list that would be empty, which the API refuses."""
    tools = [wire for wire in objects(body.get("tools")) if tool_name(wire) != name]
    out = {key: value for key, value in body.items() if key != "tools"}
    return {**out, "tools": tools} if tools else out
