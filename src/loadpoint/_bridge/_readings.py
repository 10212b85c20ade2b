"""What the arguments in a bridge call can mean: one plain reading, and others when the model put them elsewhere.

A reading other than the plain one is taken only if it is the only one that fits the target's schema with nothing but
fields that the schema declares. Where two readings fit, none is taken: the model is asked instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .._json import Json, as_object
from .._schema import Problem, validate
from .._tool import Tool
from ._fields import keyed_freely, known_fields, takes_nothing
from ._spans import Member, joined, members, parsed
from ._texts import listed

PARAMS = "params"
TOOL_KEYS = ("tool", "name", "tool_name", "toolName", "function", "function_name")
"""How models call the field with the target's name; only the first is ours."""

WRAPPERS = (
    PARAMS,
    "arguments",
    "args",
    "parameters",
    "param",
    "input",
    "inputs",
    "kwargs",
    "tool_input",
    "tool_params",
    "tool_arguments",
)
"""How models call the field with the arguments, also where they wrap them once more."""

_CLEAR = ("arguments", "args", "parameters")
"""Wrappers that are hardly a field of a tool without a schema."""

_DEEPEST = 4
_TWO_WAYS = f"they can be read in two ways; every argument belongs directly into {PARAMS}"


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to understand the arguments: their JSON text, their value, and what was put right to get there."""

    text: str
    value: Json
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unclear:
    """No reading can be taken: `problems` of the likeliest one, or a `reason` in words."""

    problems: tuple[Problem, ...] = ()
    reason: str = ""


NOTHING = Reading("{}", {})


def read_arguments(tool: Tool, rest: Sequence[Member], name_key: str) -> Reading | Unclear:
    """The arguments in the fields that stand beside the target's name (which was found under `name_key`)."""
    target = _Target(tool)
    given = [part for part in rest if part.key == PARAMS]
    others = [part for part in rest if part.key != PARAMS]
    if len({part.key for part in rest}) < len(rest):
        return Unclear(reason="a field is given twice")
    if not others:
        return target.inside(given[0]) if given else target.judged(NOTHING, ())
    if given and given[0].value not in ({}, None, ""):
        fields = listed([part.key for part in others])
        return Unclear(reason=f"every argument belongs into {PARAMS}, and there are fields beside it: {fields}")
    return target.beside(given, others, name_key)


class _Target:
    """A tool with what is known of its fields."""

    def __init__(self, tool: Tool) -> None:
        self.name = tool.name
        self.schema: Mapping[str, object] = tool.parameters
        self.fields = frozenset[str]() if takes_nothing(tool.parameters) else known_fields(tool.parameters)
        self.free = keyed_freely(tool.parameters)

    def fits(self, reading: Reading) -> bool:
        return not validate(self.schema, reading.value)

    def declares_all(self, reading: Reading) -> bool:
        """Whether this is made of nothing but declared fields; free keys can be anything, a wrapper too."""
        return self.fields is not None and all(key in self.fields for key in reading.value)

    def judged(self, direct: Reading, inner: Sequence[Reading]) -> Reading | Unclear:
        """The direct reading if it fits and cannot mean another one, else the only one of `inner` that can be meant."""
        doubt = self.doubtful(direct)
        fitting = [reading for reading in inner if self.may_mean(reading) and self.fits(reading)]
        problems = validate(self.schema, direct.value)
        if not problems and not doubt and not fitting:
            return direct
        if not problems and (not doubt or (fitting and self.declares_all(direct))):
            return Unclear(reason=_TWO_WAYS)
        if fitting:
            return fitting[0] if len(fitting) == 1 else Unclear(reason=_TWO_WAYS)
        if problems and not (doubt and inner):
            return Unclear(tuple(problems))
        deeper = validate(self.schema, inner[-1].value) if inner else []
        if deeper:
            return Unclear(tuple(deeper))
        foreign = [key for key in direct.value if key not in (self.fields or ())]
        return Unclear(reason=f"no parameter of it: {listed(foreign)}" if foreign else _TWO_WAYS)

    def may_mean(self, reading: Reading) -> bool:
        return self.declares_all(reading) or (self.fields is None and set(reading.repairs) <= _SURE)

    def doubtful(self, reading: Reading) -> bool:
        """Whether fields of this reading look like an envelope, so that fitting the schema proves nothing."""
        fields = self.fields or frozenset()
        foreign = [key for key in reading.value if key not in fields]
        if any(key in WRAPPERS or key == self.name for key in foreign) or self.holds_itself(reading.value):
            return True
        if self.fields is None or not foreign:
            return False
        # Beside an own field `params` all of this could be the content of that field.
        return PARAMS in fields or (len(foreign) == len(reading.value) and not self.free)

    def holds_itself(self, value: Json) -> bool:
        """Whether there is one field only, with nothing but the tool's own fields in it, as if it were a wrapper.

        Unless the schema has those fields there too, or leaves open what is in a field that is called like no wrapper.
        For a tool without a schema: one field that holds nothing.
        """
        if len(value) != 1:
            return False
        [(only, content)] = value.items()
        inner = as_object(content)
        if not inner or self.fields is None:
            return inner == {} and self.fields is None
        there = known_fields(as_object((as_object(self.schema.get("properties")) or {}).get(only)) or {})
        if there is None:
            return only in WRAPPERS and all(key in self.fields for key in inner)
        return all(key in self.fields for key in inner) and not all(key in there for key in inner)

    def inside(self, params: Member) -> Reading | Unclear:
        """The arguments in `params`, where they belong, or in something that stands there instead of them."""
        if params.value is None and PARAMS not in (self.fields or ()):
            return self.judged(Reading("{}", {}, ("null",)), ())
        readings = list(self.layers(params.text, params.value, ()))
        if not readings:
            return Unclear(reason=f"{PARAMS} is to be an object")
        if not readings[0].repairs:
            return self.judged(readings[0], readings[1:])
        return self.only(readings, readings[0])

    def beside(self, given: Sequence[Member], others: Sequence[Member], name_key: str) -> Reading | Unclear:
        """The arguments in fields beside the name: flattened, or as an object under another key than `params`."""
        ways = [Reading(joined(others), _object(others), ("flattened",))]
        # A field of the tool may be lost under the name's own key, or be the `params` that is there.
        if self.fields is None or name_key in self.fields or (given and PARAMS in self.fields):
            ways = []
        only = others[0]
        if len(others) == 1 and only.key in (WRAPPERS if self.fields is not None else _CLEAR):
            ways += self.layers(only.text, only.value, ("renamed",))
        if not ways:
            return Unclear(reason=f"the arguments are to stand in one object, {PARAMS}")
        return self.only(ways, ways[-1])

    def only(self, ways: Sequence[Reading], likeliest: Reading) -> Reading | Unclear:
        """The one reading that fits; with none or several, what is wrong."""
        fitting = [way for way in ways if self.may_mean(way) and self.fits(way)]
        if len({way.text for way in fitting}) == 1:
            return fitting[0]
        if fitting:
            return Unclear(reason=_TWO_WAYS)
        problems = validate(self.schema, likeliest.value)
        return Unclear(tuple(problems), "" if problems else f"the arguments are to stand in one object, {PARAMS}")

    def layers(self, text: str, value: object, repairs: tuple[str, ...]) -> Iterator[Reading]:
        """Every object that `text` is or holds under wrappers, string encodings and repeated envelopes; outside in."""
        for _ in range(_DEEPEST):
            found = as_object(value)
            if found is not None:
                yield Reading(text, found, repairs)
            peeled = self.peeled(text, value)
            if peeled is None:
                return
            text, value, repair = peeled
            repairs = (*repairs, *(() if repair in repairs else (repair,)))

    def peeled(self, text: str, value: object) -> tuple[str, object, str] | None:
        """What is inside a value: the text and value of its content, and what had to be put right; None for no more."""
        if isinstance(value, str):
            inner = value.strip() or "{}"
            try:
                return inner, parsed(inner), "encoded"
            except (ValueError, RecursionError):
                return None
        if as_object(value) is None:
            return None
        parts = members(text)
        rest = [part for part in parts if not (part.key in TOOL_KEYS and part.value == self.name)]
        if len(rest) != 1 or rest[0].key not in {*WRAPPERS, self.name}:
            return None
        content = rest[0].value
        if not isinstance(content, str) and as_object(content) is None:
            return None
        return rest[0].text, content, "envelope" if len(rest) < len(parts) else "nested"


_SURE = frozenset(("encoded", "envelope", "renamed"))
"""What can be put right for a tool without a schema too: nothing else reads like this."""


def _object(parts: Sequence[Member]) -> Json:
    return {part.key: part.value for part in parts}
