"""The scripted models that behave: one that reads the user's text, and one that follows a plan.

Both find their tools through whatever discovery they are shown: the loader, the provider's own search, or the bridge.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .._json import Json, as_list, as_object, objects
from ._arguments import plausible, unquoted
from ._ids import Ids
from ._script import Call, Called, Move, Policy, Shown, Step, Turn

_LOADER = re.compile(r"ToolSearch\w*")
_HOSTED = re.compile(r"tool_search_tool_(bm25|regex)")
_NATIVE = "tool_search"
_LOAD, _CALL = "load_tools", "call_tool"
_HEADING = re.compile(r"^## (\S+)$", re.MULTILINE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_STOP_WORDS = (
    "a an and are as at be by can could do does for from good hello hey hi how i in is it me morning my new of on or "
    "our please s so t tell thank thanks that the them then there these this to tool tools use using was we what when "
    "where which who will with would you your all any some"
)
_STOP = frozenset(_STOP_WORDS.split())
_ENOUGH = 2


def demo() -> Policy:
    """A model that calls what fits the user's text, searches when nothing visible does, and answers in text."""

    def decide(turn: Turn) -> Move:
        if turn.choice not in ("auto", "none", "required"):
            return _forced(turn)
        if turn.choice == "none" or not turn.tools:
            return _answer(turn)
        done = [call for call in turn.results if not _discovers(call.name) or call.name == _CALL]
        if done and turn.choice != "required":
            return _answer(turn)
        fit = best_fit(turn.text, _callable(turn))
        if fit is not None:
            return Move(calls=[(fit.name, plausible(fit.parameters, turn.text))])
        unconfirmed = _unconfirmed(turn)
        if unconfirmed is not None:
            return Move(calls=[(unconfirmed.name, {**unconfirmed.arguments, "confirm": True})])
        bridged = best_fit(turn.text, _described(turn)) if turn.tool(_CALL) else None
        if bridged is not None:
            return Move(calls=[(_CALL, {"tool": bridged.name, "params": plausible(bridged.parameters, turn.text)})])
        if words(unquoted(turn.text)) and not _searched(turn):
            move = _search(turn, turn.text, _hosted_pick(turn))
            if move is not None:
                return move
        return _required(turn) if turn.choice == "required" else _answer(turn)

    return decide


def planned(plan: Sequence[Sequence[Step]] | Mapping[str, Sequence[Step]]) -> Policy:
    """A model that follows `plan` (see `Script.agent`)."""

    def decide(turn: Turn) -> Move:
        steps = [_group(step) for step in _steps(plan, turn)]
        made = Counter(_target(call) for call in turn.results)
        for group in steps:
            left: list[tuple[str, Mapping[str, Any], str]] = []
            for item in group:
                if made[item[0]] > 0:
                    made[item[0]] -= 1
                else:
                    left.append(item)
            if left:
                return _next(turn, left)
        return Move(text="Done." if steps else "Nothing to do.")

    return decide


def words(text: str) -> list[str]:
    """The words of `text` that say something, in lower case and cut to their stems."""
    found = (word.lower() for word in _WORD.findall(text))
    return [_stem(word) for word in found if word not in _STOP]


def best_fit(text: str, tools: Sequence[Shown]) -> Shown | None:
    """The tool that shares most with `text`: at least two words, one of them in its name; None if there is none."""
    said = list(dict.fromkeys(words(unquoted(text))))
    asked = set(said)
    early = {word: 1.2 - 0.2 * at / len(said) for at, word in enumerate(said)}
    described = [(tool, set(words(tool.name)), set(words(tool.description))) for tool in tools]
    spread = Counter(word for _, name, rest in described for word in name | rest)
    best: tuple[float, Shown] | None = None
    for tool, name, rest in described:
        shared = asked & (name | rest)
        if len(shared) < min(_ENOUGH, len(asked)) or not asked & name:
            continue
        weights = (
            math.log(1 + len(tools) / spread[word]) * (3 if word in name else 1) * early[word] for word in shared
        )
        score = sum(weights) / (1 + 0.05 * len(name - asked))
        if best is None or score > best[0]:
            best = (score, tool)
    return None if best is None else best[1]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _discovers(name: str) -> bool:
    return bool(_LOADER.fullmatch(name) or _HOSTED.fullmatch(name)) or name in (_LOAD, _CALL, _NATIVE)


def _callable(turn: Turn) -> list[Shown]:
    """Visible tools that do something, as far as the request allows them."""
    return [
        tool for tool in turn.tools if not _discovers(tool.name) and (turn.allowed is None or tool.name in turn.allowed)
    ]


def _searched(turn: Turn) -> bool:
    return any(call.current and _discovers(call.name) and call.name != _CALL for call in turn.history)


def _unconfirmed(turn: Turn) -> Called | None:
    """The search whose answer asks for a confirmation, if that is the last word on it."""
    last = next((call for call in reversed(turn.results) if _discovers(call.name) and call.name != _CALL), None)
    if last is None or last.arguments.get("confirm") is True:
        return None
    said = as_list(turn.body.get("input"))[-1:]  # where a search's answer holds tools only, a message says the rest
    return last if "confirmRequired: true" in (last.result or "") + json.dumps(said) else None


def _answer(turn: Turn) -> Move:
    done = [call for call in turn.results if not _discovers(call.name) or call.name == _CALL]
    if done:
        last = done[-1]
        told = " ".join((last.result or "").split())[:120]
        return Move(text=f"{'That failed' if last.is_error else 'Done'}: {_target(last)} answered {told!r}.")
    if _searched(turn):
        return Move(text="I found no tool for that.")
    return Move(text="Hello! What can I do for you?" if not words(turn.text) else "I have no tool for that.")


def _forced(turn: Turn) -> Move:
    tool = turn.tool(turn.choice) or Shown(turn.choice)
    return Move(
        calls=[(tool.name, _query(turn.text) if _discovers(tool.name) else plausible(tool.parameters, turn.text))]
    )


def _required(turn: Turn) -> Move:
    """A call, whatever it is: the service would not let the model answer in text."""
    tool = next(iter(_callable(turn)), turn.tools[0])
    return Move(calls=[(tool.name, plausible(tool.parameters, turn.text))])


def _query(text: str) -> Json:
    return {"query": text}


def _search(turn: Turn, query: str, names: Sequence[str]) -> Move | None:
    """A move that looks for tools with the discovery that is visible; `names` are what it hopes to find."""
    for tool in turn.tools:
        if turn.allowed is not None and tool.name not in turn.allowed:
            continue
        if _LOADER.fullmatch(tool.name):
            return Move(calls=[(tool.name, _query(query))])
        if tool.name == _LOAD:
            return Move(
                calls=[(_LOAD, {"tools": [name for name in names if name in tool.description], "query": query})]
            )
        if _HOSTED.fullmatch(tool.name):
            return _hosted(turn, tool.name, query, names)
        if tool.name == turn.search:
            return _native(turn, tool, query, names)
    return None


def _native(turn: Turn, tool: Shown, query: str, names: Sequence[str]) -> Move:
    """The search of the Responses API: the client's, or the service's, whose reply goes on with the call."""
    if any(entry.get("type") == _NATIVE and entry.get("execution") == "client" for entry in _entries(turn)):
        properties = as_object(tool.parameters.get("properties")) or {"query": {"type": "string"}}
        texts = [name for name, inner in properties.items() if (as_object(inner) or {}).get("type") == "string"]
        asked = "query" if "query" in texts else next(iter(texts), "query")
        return Move(calls=[(tool.name, {asked: query})])
    found = [item for item in _declared(turn) if item.name in names and item.name in turn.deferred]
    calls: list[Call] = [(tool.name, {"paths": [item.namespace or item.name for item in found]})]
    calls += [(item.name, plausible(item.parameters, turn.text)) for item in found[:1]]
    return Move(calls=calls, text="" if found else "I found no tool for that.")


def _hosted(turn: Turn, name: str, query: str, names: Sequence[str]) -> Move:
    """What the service does when the model uses its own search: call, result and the next call in one reply."""
    id_ = Ids("hosted", turn.number, query).make("srvtoolu_", 24, "01")
    found = [name for name in names if name in turn.deferred]
    key = "pattern" if name.endswith("regex") else "query"
    result: Json = {
        "type": "tool_search_tool_search_result",
        "tool_references": [{"type": "tool_reference", "tool_name": name} for name in found],
    }
    blocks: list[Json] = [
        {"type": "server_tool_use", "id": id_, "name": name, "input": {key: query}, "caller": {"type": "direct"}},
        {"type": "tool_search_tool_result", "tool_use_id": id_, "content": result},
    ]
    calls: list[Call] = [
        (tool.name, plausible(tool.parameters, turn.text)) for tool in _declared(turn) if tool.name in found[:1]
    ]
    return Move(blocks=blocks, calls=calls, text="" if calls else "I found no tool for that.")


def _hosted_pick(turn: Turn) -> list[str]:
    """What a search of the provider would find for the user's text."""
    fit = best_fit(turn.text, [tool for tool in _declared(turn) if tool.name in turn.deferred])
    return [] if fit is None else [fit.name]


def _declared(turn: Turn) -> Iterator[Shown]:
    """The tools in the request's list, those in namespaces included."""
    for entry in _entries(turn):
        grouped = entry.get("type") == "namespace"
        for tool in objects(entry.get("tools")) if grouped else [entry]:
            schema = as_object(tool.get("input_schema")) or as_object(tool.get("parameters")) or {}
            namespace = str(entry.get("name")) if grouped else ""
            yield Shown(str(tool.get("name")), str(tool.get("description") or ""), schema, namespace)


def _entries(turn: Turn) -> list[Json]:
    return objects(turn.body.get("tools"))


def _described(turn: Turn) -> list[Shown]:
    """Tools that the results of the bridge describe."""
    found: dict[str, Shown] = {}
    for call in turn.history:
        if call.name == _LOAD and call.result:
            for tool in (*_definitions(call.result), *_sections(call.result)):
                found[tool.name] = tool
    return list(found.values())


def _sections(text: str) -> Iterator[Shown]:
    """The tools that `text` tells of in sections: a heading with the name, what it does, its schema as JSON."""
    headings = [*_HEADING.finditer(text)]
    ends = [found.start() for found in headings[1:]] + [len(text)]
    for heading, after in zip(headings, ends, strict=False):  # without a heading there is nothing to end
        about, brace, _ = text[heading.end() : after].partition("{")
        if brace:
            try:
                schema, _ = json.JSONDecoder().raw_decode(text, heading.end() + len(about))
            except ValueError:
                continue
            yield Shown(heading[1], about.strip(), as_object(schema) or {})


def _definitions(text: str) -> Iterator[Shown]:
    """The tool definitions that stand in `text` as JSON objects."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except ValueError:
            end = at + 1
        else:
            yield from _within(value)
        at = text.find("{", end)


def _within(value: Any) -> Iterator[Shown]:
    described = as_object(value)
    if described is not None:
        schema = described.get("parameters") or described.get("input_schema") or described.get("schema")
        if isinstance(described.get("name"), str) and as_object(schema) is not None:
            yield Shown(described["name"], str(described.get("description") or ""), as_object(schema) or {})
            return
        for item in described.values():
            yield from _within(item)
    for item in as_list(value):
        yield from _within(item)


def _steps(plan: Sequence[Sequence[Step]] | Mapping[str, Sequence[Step]], turn: Turn) -> Sequence[Step]:
    if isinstance(plan, Mapping):
        return plan.get(turn.text, ())
    at = len(turn.texts) - 1
    return plan[at] if 0 <= at < len(plan) else ()


def _group(step: Step) -> list[tuple[str, Mapping[str, Any], str]]:
    items: Iterable[Any] = step if isinstance(step, list) else [step]
    return [(item[0], item[1], item[2] if len(item) > 2 else "") for item in items]


def _target(call: Called) -> str:
    """The tool that a call is about: the one behind the bridge, if it was called through it."""
    return str(call.arguments.get("tool")) if call.name == _CALL else call.name


def _next(turn: Turn, group: Sequence[tuple[str, Mapping[str, Any], str]]) -> Move:
    """The calls of a step that can be made now, or the search for the first that cannot."""
    if turn.choice == "none":
        return Move(text="I may not call tools now.")
    if turn.choice not in ("auto", "required") and turn.choice not in [name for name, _, _ in group]:
        return _forced(turn)
    calls: list[Call] = []
    behind = {tool.name for tool in _described(turn)} if turn.tool(_CALL) else set[str]()
    for name, arguments, query in group:
        if turn.tool(name) is not None:
            calls.append((name, arguments))
        elif name in behind:
            calls.append((_CALL, {"tool": name, "params": arguments}))
        else:
            return _find(turn, name, arguments, query)
    return Move(calls=calls)


def _find(turn: Turn, name: str, arguments: Mapping[str, Any], query: str) -> Move:
    """Up to two searches for one tool: in words, then by its name."""
    tried = [dumped for call in turn.results if _discovers(call.name) for dumped in [str(call.arguments)]]
    for attempt in (query or turn.text, name):
        if not any(attempt in earlier for earlier in tried):
            move = _search(turn, attempt, [name])
            if move is None:
                break
            if name not in turn.deferred:
                return move
            if any(block.get("type") == "server_tool_use" for block in move.blocks):
                return move.but(calls=[(name, arguments)])
            if len(move.calls) > 1:  # the service's search, and the call that follows it
                return move.but(calls=[move.calls[0], (name, arguments)])
            return move
    return Move(text=f"I could not find the tool {name}.")
