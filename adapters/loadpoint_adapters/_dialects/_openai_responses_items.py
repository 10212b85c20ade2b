"""Items of the Responses API: reading them, and turning what one form has loaded into another form.

Item facts: `openai/types/responses/response_input_item_param.py` (3.57.0) and
https://developers.openai.com/api/docs/guides/tools-tool-search.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from loadpoint._dialect import CallView, ResultView, View
from loadpoint._json import Json, as_list, as_object, digest, dumps, objects, parse_object

from ._openai_responses_tools import SEARCH, additional, loaded, namespaces, qualified, search_output, tool_name
from ._openai_results import is_failure

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_OUTPUT_ONLY = ("created_by",)
_FAREWELL = re.compile(r"These tools are no longer available, do not call them: ([^\s]+(?:, [^\s]+)*)\.")
_UNFINISHED = ("in_progress", "incomplete")


def text_of(content: Any) -> str:
    """The text in a content or an output, whether it is text or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in objects(content))


def is_search(item: Json) -> bool:
    """Whether this is a search that the client answers."""
    return item.get("type") == "tool_search_call" and not _hosted(item)


def is_output(item: Json) -> bool:
    """Whether this is the result of a call."""
    kind = item.get("type")
    return kind in _OUTPUTS or (kind == "tool_search_output" and not _hosted(item))


def _hosted(item: Json) -> bool:
    return item.get("execution") == "server" or item.get("call_id") is None


def call_view(item: Json) -> CallView | None:
    """The call in an item; None for an item that is none."""
    call_id = str(item.get("call_id") or "")
    if is_search(item):
        arguments = item.get("arguments")
        return CallView(call_id, SEARCH, arguments if isinstance(arguments, str) else as_object(arguments) or {})
    if item.get("type") not in _CALLS:
        return None
    given = item.get("arguments") if item.get("type") == "function_call" else item.get("input")
    name = qualified(item.get("name"), item.get("namespace"))
    space = "" if name == item.get("name") else str(item.get("namespace"))
    return CallView(call_id, name, given if isinstance(given, str) else as_object(given) or "", space)


def calls(output: Iterable[Json]) -> tuple[CallView, ...]:
    """The calls of a reply, in order."""
    return tuple(view for item in output if (view := call_view(item)) is not None)


def view(item: Json) -> View:
    """The item as the core sees it."""
    kind = item.get("type")
    if kind == "message" or (kind is None and "role" in item):
        role = str(item.get("role"))
        seen = "system" if role in ("system", "developer") else "assistant" if role == "assistant" else "user"
        text = text_of(item.get("content"))
        gone = _FAREWELL.fullmatch(text) if role == "developer" else None
        results = (ResultView("", "", search=True, removed=tuple(gone[1].split(", "))),) if gone else ()
        return View(seen, text, results=results)
    call = call_view(item)
    if call is not None:
        return View("assistant", calls=(call,))
    call_id = str(item.get("call_id") or "")
    if kind in _OUTPUTS:
        text = text_of(item.get("output"))
        return View("tool", results=(ResultView(call_id, text, is_failure(text)),))
    if kind in ("tool_search_output", "additional_tools"):
        names, wires = loaded(item)
        role = "system" if kind == "additional_tools" else "tool" if is_output(item) else "assistant"
        return View(role, results=(ResultView(call_id, "", False, names, True, wires),))
    if kind == "item_reference" or kind is None:
        return View("user")
    if kind in ("mcp_approval_response", "compaction_trigger", "configuration_update") or str(kind).endswith("_output"):
        return View("tool")
    return View("assistant", forgets=kind == "compaction")


def _reference(item: Json) -> str | None:
    """The id of the item that this one stands for."""
    named = item.get("type") == "item_reference" or (item.get("type") is None and set(item) == {"id"})
    return str(item.get("id")) if named else None


def referred(items: Iterable[Json]) -> list[str]:
    """The ids of the items that are named and not brought."""
    return [item_id for item in items if (item_id := _reference(item)) is not None]


def resolved(items: Iterable[Json], known: Iterable[Json]) -> list[Json]:
    """The items with those in the place of their references that are `known`."""
    found = {str(item["id"]): item for item in known if item.get("id")}
    return [found.get(_reference(item) or "", item) for item in items]


def with_calls(wire: Json, change: Callable[[CallView], CallView]) -> Json:
    """A response, or an item, with other names and arguments in its calls of functions; the same object if none is."""
    if "output" not in wire or "call_id" in wire:
        return _changed(wire, change)
    output = objects(wire["output"])
    made = [_changed(item, change) for item in output]
    return wire if all(new is item for new, item in zip(made, output, strict=True)) else {**wire, "output": made}


def _changed(item: Json, change: Callable[[CallView], CallView]) -> Json:
    seen = call_view(item)
    if seen is None or item.get("type") != "function_call":
        return item
    new = change(seen)
    return item if new == seen else called(item, new)


def called(item: Json, call: CallView) -> Json:
    """The item of a function's call with the name and the arguments of another one."""
    out = {key: value for key, value in item.items() if key != "namespace"}
    own = call.name.removeprefix(f"{call.space}.") if call.space else call.name
    out |= {"name": own, "arguments": call.arguments}
    return {**out, "namespace": call.space} if call.space else out


def without_calls(output: Iterable[Json], cut: Collection[int]) -> list[Json]:
    """The items without the calls at these positions (counted among the calls)."""
    out: list[Json] = []
    at = -1
    for item in output:
        is_call = call_view(item) is not None
        at += is_call
        if not is_call or at not in cut:
            out.append(item)
    return out


def sendable(output: Iterable[Json]) -> list[Json]:
    """Items of a reply as a request may hold them: without the fields that only replies have, with whole arguments."""
    return [completed({key: value for key, value in item.items() if key not in _OUTPUT_ONLY}) for item in output]


def completed(item: Json) -> Json:
    """A call with an empty object where its server wrote no arguments; the same object where they are there."""
    kind, given = item.get("type"), item.get("arguments")
    if kind == "tool_search_call" and as_object(given) is None:
        return {**item, "arguments": {}}
    blank = kind == "function_call" and not str(given or "").strip()
    return {**item, "arguments": "{}"} if blank and item.get("status") not in _UNFINISHED else item


def without_lone_reasoning(turn: Sequence[Json]) -> list[Json]:
    """The items without reasoning that lacks the item it led to.

    A turn that stands for several rounds holds the reasoning of each, and the API refuses one without its follower
    ("provided without its required following item", https://github.com/vercel/ai/issues/7099).
    """
    kinds = [item.get("type") for item in turn]
    following = [*kinds[1:], "reasoning"]
    return [item for at, item in enumerate(turn) if kinds[at] != "reasoning" or following[at] != "reasoning"]


def without_reasoning(turn: Sequence[Json]) -> list[Json]:
    """The items without reasoning, and those that reasoning led to without the ids by which the service misses it.

    "provided without its required 'reasoning' item", https://github.com/cline/cline/issues/12242.
    """
    out: list[Json] = []
    led = False
    for item in turn:
        kind = item.get("type")
        if kind == "reasoning":
            led = True
            continue
        led = led and not is_output(item)
        out.append({key: value for key, value in item.items() if key != "id"} if led else item)
    return out


def shown(output: Iterable[Json], body: Json) -> list[Json]:
    """The items with only those namespaces that the caller has declared: others come from how we load tools."""
    known = namespaces(body.get("tools"))
    return [completed(without_namespace(item, known)) for item in output]


def echoed(response: Json, body: Json) -> Json:
    """The response with the caller's own tools in it: it repeats those that were sent."""
    return {**response, "tools": body["tools"]} if "tools" in response and "tools" in body else response


def without_namespace(item: Json, known: Collection[str]) -> Json:
    """The item without a namespace that is not `known`; the same object where there is none."""
    if item.get("namespace") is None or item["namespace"] in known:
        return item
    return {key: value for key, value in item.items() if key != "namespace"}


def turned_back(item: Json, loader: str, *, form: str | None, ours: bool) -> Iterator[Json]:
    """An item as a form without the client's search takes it: as a loader call, its answer, and the tools by value.

    A search that the provider executed has no ids to pair it by, so that its output stands for both. `ours`: tools that
    the item adds were added by us.
    """
    kind = item.get("type")
    if kind == "additional_tools":
        if form is not None or not ours:
            yield item
    elif kind == "tool_search_call":
        if is_search(item):
            yield _loader_call(str(item.get("call_id")), loader, as_object(item.get("arguments")) or {})
    elif kind == "tool_search_output":
        names, wires = loaded(item)
        call_id = str(item.get("call_id") or "")
        if _hosted(item):
            call_id = "call_" + digest(str(item.get("id")), *names)
            yield _loader_call(call_id, loader, {"query": ", ".join(names)})
        yield {"type": "function_call_output", "call_id": call_id, "output": loader_answer(names)}
        if form is not None and wires:
            yield additional(wires)
    else:
        yield item


def loader_answer(names: Sequence[str]) -> str:
    """The loader's answer that adds these names, where nothing else of it is known."""
    return dumps({"query": "", "matches": [], "total_available": len(names), "addedToolNames": list(names)})


def _loader_call(call_id: str, loader: str, arguments: Json) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": loader, "arguments": dumps(arguments)}


def from_names(item: Json, loader: str, *, form: str | None, search: bool) -> Iterator[Json]:
    """A shown item whose id says nothing of where it stood: its output stands for both, what loaded nothing goes."""
    names, wires = loaded(item)
    if item.get("type") != "tool_search_output" or not names:
        return
    if search:
        yield from search_pair(wires)
    else:
        yield from turned_back({**item, "call_id": None}, loader, form=form, ours=True)


def search_pair(wires: Sequence[Json]) -> Iterator[Json]:
    """A search of the client's that loads these tools: how a loaded tool is told to a model that did not search for it.

    pydantic-ai replays what another provider's search has found so (models/openai/_responses_model.py, 2.68).
    """
    names = [str(tool_name(wire)) for wire in wires]
    call_id = "call_" + digest(*names, dumps(list(wires)))
    arguments = {"query": ", ".join(names)}
    yield {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": call_id,
        "status": "completed",
        "arguments": arguments,
    }
    yield search_output(call_id, wires)


def note(text: str) -> Json:
    """What a search has to say that loaded nothing: its output has no room for words.

    It stands in the developer's name, so that nothing of it is another's text but names of tools.
    """
    answer = parse_object(text)
    if answer is not None:
        names = [str(match.get("name")) for match in objects(answer.get("matches"))]
        said = f"You can call these tools already: {', '.join(names)}." if names else str(answer.get("hint") or "")
        text = said or "No tool fits."
    return {"type": "message", "role": "developer", "content": text}


def farewell(names: Sequence[str]) -> Json:
    """The words that take tools back: there is no item that does."""
    text = f"These tools are no longer available, do not call them: {', '.join(names)}."
    return {"type": "message", "role": "developer", "content": text}


def joined(results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
    """Results first; what loads tools by itself, a whole search too, stands behind the last result of the caller's."""
    whole = {str(item.get("call_id")) for item in results if is_search(item)}
    outputs = [item for item in results if is_output(item) and str(item.get("call_id")) not in whole]
    loads = [item for item in results if item not in outputs]
    at = max((place for place, item in enumerate(following, 1) if is_output(item)), default=0)
    return [*outputs, *following[:at], *loads, *following[at:]]


def bare(item: Json) -> Json:
    """The item without cache breakpoints; a string is the part that it stands for."""
    out = dict(item)
    for key in ("content", "output"):
        value = item.get(key)
        if isinstance(value, str) and item.get("role") != "assistant":
            out[key] = [{"type": "input_text", "text": value}]
        elif parts := as_list(value):
            out[key] = [_bare_part(part) for part in parts]
    return out


def _bare_part(part: Any) -> Any:
    wire = as_object(part)
    if wire is None or "prompt_cache_breakpoint" not in wire:
        return part
    return {key: value for key, value in wire.items() if key != "prompt_cache_breakpoint"}
