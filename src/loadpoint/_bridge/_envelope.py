"""The outer part of a bridge call: which tool it names, under which key, and what stands beside the name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .._json import as_object
from .._schema import validate
from .._tool import Tool
from ._fields import known_fields, takes_nothing
from ._load import LoadRequest, parse_load
from ._names import Bridge
from ._readings import PARAMS, TOOL_KEYS, WRAPPERS
from ._spans import Member, joined, members, parsed

_DEEPEST = 5


@dataclass(frozen=True, slots=True)
class Envelope:
    """A bridge call with a name: the name, the key it stood under, the other fields, and what was put right."""

    name: str
    key: str
    rest: tuple[Member, ...]
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoEnvelope:
    """A call that names no tool, or names the loading tool, with what it asks of it."""

    nameless: bool = False
    load: LoadRequest | None = None


def opened(
    text: str, bridge: Bridge, tools: Mapping[str, Tool], gone: Collection[str], repairs: tuple[str, ...] = ()
) -> Envelope | NoEnvelope:
    """The envelope that `text` holds. Raises ValueError or RecursionError for what is no JSON.

    `tools` are all that can be meant; a field is taken for the name under another key than `tool` only if it holds one
    of their names, or one of those that are `gone`.
    """
    known = {*tools, *gone, bridge.load, bridge.call}
    for _ in range(_DEEPEST):
        value = parsed(text)
        if isinstance(value, str):
            text, repairs = value, (*repairs, "encoded")
            continue
        if as_object(value) is None:
            return NoEnvelope()
        parts = members(text)
        named = _named(parts, known)
        if named is None:
            inner = _wrapped_once(parts, known)
            if inner is None:
                return _unnamed(parts, tools, repairs)
            text, repairs = inner, (*repairs, "nested")
            continue
        name = str(named.value)
        rest = tuple(part for part in parts if part is not named)
        if name == bridge.load:
            return NoEnvelope(load=_load_request(rest))
        if name != bridge.call:
            found = repairs if named.key == TOOL_KEYS[0] else (*repairs, "name")
            return Envelope(name, named.key, rest, tuple(dict.fromkeys(found)))
        inner = _inside(rest, known)
        if inner is None:
            return NoEnvelope(nameless=True)
        text, repairs = inner, (*repairs, "bridge")
    return NoEnvelope(nameless=True)


def _named(parts: Sequence[Member], known: Collection[str]) -> Member | None:
    """The field with the target's name: `tool` as text, else the only field under another key with a known name."""
    own = [part for part in parts if part.key == TOOL_KEYS[0]]
    if own:
        return own[0] if len(own) == 1 and isinstance(own[0].value, str) and own[0].value else None
    other = [part for part in parts if part.key in TOOL_KEYS and isinstance(part.value, str) and part.value in known]
    return other[0] if len(other) == 1 else None


def _wrapped_once(parts: Sequence[Member], known: Collection[str]) -> str | None:
    """The text inside a single wrapper, if a call with a name stands there."""
    if len(parts) != 1 or parts[0].key not in WRAPPERS:
        return None
    inner = parts[0].value
    text = inner if isinstance(inner, str) else parts[0].text
    try:
        return text if _named(members(text), known) is not None else None
    except (ValueError, RecursionError):
        return None


def _inside(rest: Sequence[Member], known: Collection[str]) -> str | None:
    """The text of the call inside a bridge call that names the bridge: in a wrapper, or in the fields beside it."""
    if len(rest) == 1 and rest[0].key in WRAPPERS:
        value = rest[0].value
        return value if isinstance(value, str) else rest[0].text
    return joined(rest) if _named(rest, known) is not None else None


def _load_request(rest: Sequence[Member]) -> LoadRequest:
    found = parse_load(joined(rest))
    return found if isinstance(found, LoadRequest) else LoadRequest()


def _unnamed(parts: Sequence[Member], tools: Mapping[str, Tool], repairs: tuple[str, ...]) -> Envelope | NoEnvelope:
    """A call without a name, for the one tool whose fields these are.

    Every other tool that declares them too, whatever it demands, could be meant as well, and then nothing is guessed.
    """
    if len(parts) != 1 or parts[0].key != PARAMS or any(part.key in TOOL_KEYS for part in parts):
        return NoEnvelope(nameless=True)
    value = as_object(parts[0].value)
    if not value:
        return NoEnvelope(nameless=True)
    able = [tool for tool in tools.values() if _could_take(tool, value)]
    if len(able) != 1 or known_fields(able[0].parameters) is None or validate(able[0].parameters, value):
        return NoEnvelope(nameless=True)
    return Envelope(able[0].name, "", tuple(parts), (*repairs, "unnamed"))


def _could_take(tool: Tool, value: Mapping[str, object]) -> bool:
    fields = known_fields(tool.parameters)
    if fields is None:
        return not takes_nothing(tool.parameters)
    return all(key in fields for key in value)
