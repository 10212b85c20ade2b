"""Bridge calls as models get them wrong, made from a tool and the arguments that were meant."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from loadpoint import Tool
from loadpoint._json import Json, as_list, as_object
from loadpoint._schema import validate

WRAPPERS = ("params", "arguments", "args", "parameters", "input")
OTHERS = ("data", "request", "body", "options", "payload", "value")
WORDS = ("alpha", "beta 2", "a/b/c.txt", "2026-01-31", 'say "hi"\n', "ümlaut", "https://example.com/x?y=1", "", "0")


def meant(tool: Tool, random: Random) -> Json | None:
    """Arguments that fit the tool's schema; None where none are found."""
    for attempt in range(30):
        value = _value(dict(tool.parameters), random, 0, sparse=attempt % 2 == 1)
        found = as_object(value)
        if found is not None and not validate(tool.parameters, found):
            return found
    return None


def _value(schema: Any, random: Random, depth: int, *, sparse: bool) -> Any:
    node = as_object(schema)
    if node is None or depth > 6:
        return random.choice(WORDS)
    if "const" in node:
        return node["const"]
    if as_list(node.get("enum")):
        return random.choice(node["enum"])
    for key in ("anyOf", "oneOf"):
        if as_list(node.get(key)) and "properties" not in node:
            return _value(random.choice(node[key]), random, depth + 1, sparse=sparse)
    kind = node.get("type", "object" if "properties" in node else "string")
    return _typed(random.choice(kind) if isinstance(kind, list) else kind, node, random, depth, sparse=sparse)


def _typed(kind: str, node: Json, random: Random, depth: int, *, sparse: bool) -> Any:
    if kind == "object":
        needed = as_list(node.get("required"))
        fields = as_object(node.get("properties")) or {}
        chosen = [name for name in fields if name in needed or random.random() < (0.1 if sparse else 0.5)]
        return {name: _value(fields[name], random, depth + 1, sparse=sparse) for name in chosen}
    if kind == "array":
        count = max(int(node.get("minItems", 0)), random.randint(0, 2))
        return [_value(node.get("items"), random, depth + 1, sparse=sparse) for _ in range(count)]
    if kind in {"integer", "number"}:
        low = int(node.get("minimum", 0))
        return random.randint(low, max(low, min(int(node.get("maximum", low + 50)), low + 50)))
    if kind == "boolean":
        return random.random() < 0.5
    return None if kind == "null" else random.choice(WORDS)


def written(value: object, random: Random) -> str:
    """JSON text as one model or another writes it: escaped or not, with white space or without."""
    style: dict[str, Any] = random.choice(({"separators": (",", ":")}, {"indent": 1}, {}))
    return json.dumps(value, ensure_ascii=random.random() < 0.5, **style)


Misuse = Callable[[str, Json, Random], object]


def _flattened(name: str, args: Json, random: Random) -> object:
    return {"tool": name, **args}


def _flattened_with_empty(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {}, **args}


def _half_flattened(name: str, args: Json, random: Random) -> object:
    keys = sorted(args)
    inside = keys[: len(keys) // 2]
    return {"tool": name, "params": {key: args[key] for key in inside}} | {
        key: args[key] for key in keys if key not in inside
    }


def _encoded(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": written(args, random)}


def _encoded_twice(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": json.dumps(written(args, random))}


def _all_encoded(name: str, args: Json, random: Random) -> object:
    return written({"tool": name, "params": args}, random)


def _nested(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {random.choice(WRAPPERS): args}}


def _nested_by_name(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {name: args}}


def _nested_otherwise(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {random.choice(OTHERS): args}}


def _nested_encoded(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {random.choice(WRAPPERS): written(args, random)}}


def _wrapped(name: str, args: Json, random: Random) -> object:
    return {random.choice(WRAPPERS): {"tool": name, "params": args}}


def _envelope(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": {"tool": name, "params": args}}


def _envelope_encoded(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": written({"tool": name, "params": args}, random)}


def _bridge_in_bridge(name: str, args: Json, random: Random) -> object:
    return {"tool": "call_tool", "params": {"tool": name, "params": args}}


def _bridge_in_bridge_encoded(name: str, args: Json, random: Random) -> object:
    return {"tool": "call_tool", "params": written({"tool": name, "params": args}, random)}


def _no_name(name: str, args: Json, random: Random) -> object:
    return {"params": args}


def _empty_name(name: str, args: Json, random: Random) -> object:
    return {"tool": "", "params": args}


def _no_name_flattened(name: str, args: Json, random: Random) -> object:
    return dict(args)


def _name_elsewhere(name: str, args: Json, random: Random) -> object:
    return {random.choice(("name", "tool_name", "function")): name, "params": args}


def _name_in_params(name: str, args: Json, random: Random) -> object:
    return {"params": {"tool": name, **args}}


def _renamed(name: str, args: Json, random: Random) -> object:
    return {"tool": name, random.choice(WRAPPERS[1:]): args}


def _misspelt_params(name: str, args: Json, random: Random) -> object:
    return {"tool": name, random.choice(("parms", "paramaters", "Params", "tool_args_")): args}


def _openai_style(name: str, args: Json, random: Random) -> object:
    return {"name": name, "arguments": written(args, random)}


def _listed(name: str, args: Json, random: Random) -> object:
    return {"tool": name, "params": [args]}


REPAIRABLE: dict[str, Misuse] = {
    "flattened": _flattened,
    "flattened beside an empty object": _flattened_with_empty,
    "encoded": _encoded,
    "encoded twice": _encoded_twice,
    "encoded as a whole": _all_encoded,
    "one level too many": _nested,
    "one level too many, by name": _nested_by_name,
    "one level too many, encoded": _nested_encoded,
    "wrapped as a whole": _wrapped,
    "the envelope inside": _envelope,
    "the envelope inside, encoded": _envelope_encoded,
    "the bridge in itself": _bridge_in_bridge,
    "the bridge in itself, encoded": _bridge_in_bridge_encoded,
    "name under another key": _name_elsewhere,
    "arguments under another key": _renamed,
    "as the API writes calls": _openai_style,
    "name among the arguments": _name_in_params,
    "missing name": _no_name,
}
REFUSED: dict[str, Misuse] = {
    "half flattened": _half_flattened,
    "one level too many, other words": _nested_otherwise,
    "empty name": _empty_name,
    "missing name, flattened": _no_name_flattened,
    "misspelt params": _misspelt_params,
    "in a list": _listed,
}


def near_miss(name: str, names: Sequence[str], random: Random) -> str:
    """A name that is no tool's, but almost this one's."""
    while True:
        at = random.randrange(len(name))
        other = random.choice(
            (name[:at] + name[at + 1 :], name.upper(), name.replace("_", "-"), name[:at] + "x" + name[at:], f"{name}s")
        )
        if other and other not in names:
            return other


def spoiled(args: Json, tool: Tool, random: Random) -> Json | None:
    """The arguments with one mistake that the schema forbids; None where it forbids nothing that is tried."""
    for _ in range(20):
        copy = dict(args)
        needed = [key for key in as_list(tool.parameters.get("required")) if key in copy]
        if needed and random.random() < 0.5:
            del copy[random.choice(needed)]
        elif copy:
            copy[random.choice(sorted(copy))] = random.choice([None, [[]], {"a": {}}, 10**40, "no such value"])
        if validate(tool.parameters, copy):
            return copy
    return None
