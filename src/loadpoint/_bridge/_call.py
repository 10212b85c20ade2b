"""`call_tool`: from what the model wrote to the call of the target, or to a refusal that says what to do.

Four gates: the target is known, it is loaded, its arguments fit, and only then is there a call at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from .._json import Json, as_object, dumps
from .._tool import Tool
from . import _refusals as told
from ._envelope import Envelope, NoEnvelope, opened
from ._names import Bridge
from ._readings import PARAMS, TOOL_KEYS, Reading, Unclear, read_arguments
from ._spans import members


@dataclass(frozen=True, slots=True)
class Target:
    """An ordinary call of the target: `arguments` is JSON text, the model's own bytes where they can be kept.

    `repairs` say what had to be put right, in the order of reading: `bridge` (a bridge call inside another), `name`
    (the name under another key), `unnamed` (no name, but arguments of one tool only), `resident` (a tool that needs no
    bridge), `encoded` (JSON in a string), `nested` (one level too many), `envelope` (the whole call once more inside),
    `flattened` (arguments beside the name), `renamed` (arguments under another key), `null`. `loads`: the tool was not
    loaded before.
    """

    name: str
    arguments: str
    repairs: tuple[str, ...] = ()
    loads: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A bridge call that reaches no tool; `text` tells the model why and what to call next.

    `name` is the target, where it is known.
    """

    text: str
    name: str = ""


def read_call(
    raw: str | Json,
    *,
    bridge: Bridge,
    deferred: Mapping[str, Tool],
    loaded: Collection[str],
    resident: Mapping[str, Tool],
    gone: Collection[str] = (),
    unloaded: str = "load",
) -> Target | Refused:
    """The call that a bridge call stands for, or why there is none. Never raises.

    `raw` are the arguments as the model wrote them, or the parsed object. `deferred` are the tools behind the bridge,
    `loaded` the names of those that the model may call, `gone` names that are no longer there. `unloaded`: "load" lets
    a valid call of a tool that is not loaded through, "refuse" does not.
    """
    try:
        text = raw if isinstance(raw, str) else dumps(raw)
        envelope = opened(text, bridge, {**deferred, **resident}, gone)
    except (TypeError, ValueError, RecursionError):
        return Refused(told.no_json(bridge))
    if isinstance(envelope, NoEnvelope):
        return Refused(_unopened(envelope, bridge, loaded, deferred, resident))
    name = envelope.name
    if name in gone:
        return Refused(told.gone(name), name)
    tool = deferred.get(name) or resident.get(name)
    if tool is None:
        return Refused(told.unknown(name, bridge, deferred, loaded, resident))
    waiting = name in deferred and name not in loaded
    if waiting and unloaded == "refuse":
        return Refused(told.not_loaded(name, bridge), name)
    return _arguments(tool, envelope, bridge, waiting=waiting, resident=name in resident)


def _arguments(tool: Tool, envelope: Envelope, bridge: Bridge, *, waiting: bool, resident: bool) -> Target | Refused:
    try:
        reading: Reading | Unclear = read_arguments(tool, envelope.rest, envelope.key)
    except (TypeError, ValueError, RecursionError):
        return Refused(told.no_json(bridge), tool.name)
    if isinstance(reading, Unclear):
        return Refused(told.unfitting(tool, reading, bridge, direct=resident), tool.name)
    repairs = (*envelope.repairs, *(("resident",) if resident else ()), *reading.repairs)
    return Target(tool.name, reading.text, tuple(dict.fromkeys(repairs)), waiting)


def _unopened(
    found: NoEnvelope,
    bridge: Bridge,
    loaded: Collection[str],
    deferred: Mapping[str, Tool],
    resident: Mapping[str, Tool],
) -> str:
    if found.load is not None:
        return told.is_loader(bridge, found.load)
    if found.nameless:
        return told.nameless(bridge, [name for name in loaded if name in deferred and name not in resident])
    return told.no_json(bridge)


def unwrapped(arguments: str | Json) -> tuple[str, str] | None:
    """The name and the argument text in a bridge call that is written as asked for; None for any other."""
    try:
        parts = {part.key: part for part in members(arguments if isinstance(arguments, str) else dumps(arguments))}
    except (TypeError, ValueError, RecursionError):
        return None
    name, params = parts.get(TOOL_KEYS[0]), parts.get(PARAMS)
    if name is None or params is None or not isinstance(name.value, str) or as_object(params.value) is None:
        return None
    return (name.value, params.text) if name.value else None


def wrapped(name: str, arguments: str) -> str:
    """The arguments text of a bridge call around the caller's own argument text; the same bytes in every process.

    Text that is no JSON object is written as a string, so that the whole is JSON whatever the caller's history holds.
    """
    inner = arguments.strip() or "{}"
    try:
        members(inner)
    except (ValueError, RecursionError):
        inner = json.dumps(arguments, ensure_ascii=False)
    return f'{{"tool":{json.dumps(name, ensure_ascii=False)},"params":{inner}}}'
