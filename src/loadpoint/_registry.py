"""The registry: every tool known to one conversation, in a stable order, resident or deferred."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ._bridge import bridge
from ._catalog import catalog, clean_text
from ._dialect import Dialect
from ._json import Json, as_object, canonical, digest, dumps, objects
from ._loader import loader_name
from ._policy import Policy, matches
from ._search import ToolIndex
from ._tokens import estimate_bytes, utf8_size
from ._tool import Tool


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool of the caller. `tool` is None for a provider-run or otherwise typed entry, which stays as it is."""

    name: str
    tool: Tool | None
    definition: Json
    """As it is sent, without the caller's marks."""
    digest: str
    """Equal for definitions that differ only in key order."""
    size: int
    """UTF-8 bytes of the definition as sent."""
    deferred: bool


_STAND_IN = "loadpoint.entry"


@dataclass(frozen=True, slots=True)
class NameLimits:
    """What an endpoint takes as the name of a loaded tool: a regular expression that it matches, and its length."""

    pattern: str | None = None
    length: int | None = None

    def takes(self, name: str) -> bool:
        """Whether a tool of this name can be loaded."""
        fits = self.pattern is None or re.fullmatch(self.pattern, name) is not None
        return fits and (self.length is None or len(name) <= self.length)


ANY_NAME = NameLimits()


class Registry:
    """The tools of a request. Equal sets of tools in any order make equal registries.

    `fault` says why the tools cannot be deferred at all (None: they can), `warnings` what the user should know.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        marker: Json | None,
        moved: Sequence[str],
        marks: int,
        fault: str | None,
        warnings: Sequence[str],
    ) -> None:
        ordered = sorted(entries, key=lambda entry: (entry.name, entry.digest))
        self.residents = tuple(entry for entry in ordered if not entry.deferred)
        self.deferred = tuple(entry for entry in ordered if entry.deferred)
        self.by_name = {entry.name: entry for entry in ordered}
        self.marker = marker
        self.moved = tuple(moved)
        """Deferred tools on which the caller's cache marker cannot stand."""
        self.marks = marks
        """How many tools the caller marked as deferred; from one on, the marks decide."""
        self.marked = marks > 0
        self.fault = fault
        self.warnings = tuple(warnings)
        self.loader = loader_name(self.by_name)
        self.bridge = bridge(self.by_name)
        self._catalogs: dict[int, str] = {}

    @cached_property
    def index(self) -> ToolIndex:
        """The search index over all tools, residents included (O5)."""
        return ToolIndex(self.tools)

    @cached_property
    def tools(self) -> tuple[Tool, ...]:
        """Every neutral tool, deferred and resident, in stable order."""
        return tuple(entry.tool for entry in (*self.deferred, *self.residents) if entry.tool is not None)

    @cached_property
    def deferred_tools(self) -> tuple[Tool, ...]:
        """The deferred tools, in stable order."""
        return tuple(entry.tool for entry in self.deferred if entry.tool is not None)

    def catalog(self, budget: int) -> str:
        """The listing of the deferred tools within `budget` tokens."""
        if budget not in self._catalogs:
            self._catalogs[budget] = catalog(self.deferred_tools, budget)
        return self._catalogs[budget]

    @cached_property
    def deferred_tokens(self) -> int:
        """What the deferred schemas would cost in context, in tokens (estimate)."""
        return estimate_bytes(sum(entry.size for entry in self.deferred))

    @cached_property
    def resident_tokens(self) -> int:
        """What the resident schemas cost in context, in tokens (estimate)."""
        return estimate_bytes(sum(entry.size for entry in self.residents))

    def is_deferred(self, name: str) -> bool:
        """Whether a tool of this name exists and is deferred."""
        entry = self.by_name.get(name)
        return entry is not None and entry.deferred

    def tokens(self, name: str) -> int:
        """What loading this tool costs, in tokens (estimate)."""
        entry = self.by_name.get(name)
        return estimate_bytes(entry.size) if entry else 0

    def definitions(self, names: Iterable[str]) -> tuple[Json, ...]:
        """The wire definitions of those of these names that are known."""
        return tuple(self.by_name[name].definition for name in names if name in self.by_name)


def build(dialect: Dialect, wires: Sequence[Any], policy: Policy, *, names: NameLimits = ANY_NAME) -> Registry:
    """The registry of a request's tools. A tool that cannot be read makes a registry with a `fault`, never an error:
    such a request goes to the provider untouched, which says better what is wrong with it.

    `names` are the limits of names that can be loaded: a tool beyond them stays resident, as it would be without us.
    """
    given = [wire for wire in map(as_object, wires) if wire is not None]
    marks = sum(dialect.marked(wire) for wire in given)
    chosen = marks > 0
    entries: list[Entry] = []
    markers: list[Json] = []
    moved: list[str] = []
    unusable: list[str] = []
    unfindable: list[str] = []
    fault = None if len(given) == len(wires) else "a tool is not a JSON object"
    for at, wire in enumerate(given):
        name = dialect.tool_name(wire)
        tool = dialect.tool(wire)
        if name is None and _looks_like_function(wire):
            fault = fault or f"tools[{at}] has no usable name"
        deferred = tool is not None and (dialect.marked(wire) if chosen else policy.defers(tool.name))
        if deferred and tool is not None and not names.takes(tool.name.removeprefix(f"{tool.server}.")):
            deferred = False
            unusable.append(clean_text(tool.name, 64))
        if tool is None and is_flagged(wire):
            unfindable.append(clean_text(name or str(wire.get("type")), 64))
        marker = dialect.marker(wire)
        if marker is not None:
            markers.append(marker)
            moved += [tool.name] if tool is not None and deferred else []
        entries.append(_entry(dialect, wire, tool, deferred=deferred))
    twice = _repeated([entry.name for entry in entries])
    if twice:
        fault = fault or f"duplicate tool names: {', '.join(clean_text(name, 64) for name in twice[:5])}"
    return Registry(
        entries,
        marker=_longest(markers),
        moved=moved,
        marks=marks,
        fault=fault,
        warnings=[*_unmatched(policy, entries), *_kept(unusable), *_called(unfindable)],
    )


def _entry(dialect: Dialect, wire: Json, tool: Tool | None, *, deferred: bool) -> Entry:
    definition = dialect.definition(wire, deferred=False) if tool is not None else _unmarked(wire)
    if tool is None and is_flagged(wire):
        definition = dialect.definition(definition, deferred=False)
    size = utf8_size(dumps(definition))
    return Entry(entry_name(dialect, wire), tool, definition, digest(canonical(definition)), size, deferred)


def entry_name(dialect: Dialect, wire: Json) -> str:
    """What a tool is called here: its name, else its type with a digest. The entries without a name are servers that
    the provider calls, with the keys to them, which must not get into reports and logs.
    """
    stand_in = wire.get(_STAND_IN)
    if isinstance(stand_in, str):
        return stand_in
    return dialect.tool_name(wire) or f"{wire.get('type')}#{digest(canonical(_unmarked(wire)))[:8]}"


def without_keys(dialect: Dialect, wire: Json) -> Json:
    """A tool as a ledger holds it: of an entry without a name, which may hold keys, only what it is called here."""
    return wire if dialect.tool_name(wire) is not None else {_STAND_IN: entry_name(dialect, wire)}


def _unmarked(wire: Json) -> Json:
    return {key: value for key, value in wire.items() if key != "cache_control"}


def _looks_like_function(wire: Json) -> bool:
    return wire.get("type") in (None, "function", "custom")


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _longest(markers: Sequence[Json]) -> Json | None:
    """One marker for several: the one with the longer time to live."""
    return max(markers, key=lambda marker: marker.get("ttl") == "1h", default=None)


def _kept(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"tools stay resident because no load can name them here: {', '.join(names[:5])}"]


def is_flagged(wire: Json) -> bool:
    """Whether an entry, or a member of it, is marked as deferred, whatever it is."""
    return wire.get("defer_loading") is True or any(is_flagged(member) for member in objects(wire.get("tools")))


def undeferred(dialect: Dialect, wires: Sequence[Any]) -> list[Any]:
    """The tools without marks on those that nothing here could find: the endpoint would refuse or hide them."""
    return [
        dialect.definition(wire, deferred=False)
        if (wire := as_object(given)) is not None and is_flagged(wire) and dialect.tool(wire) is None
        else given
        for given in wires
    ]


def _called(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    return [f"tools are sent whole because no search here can find such entries: {', '.join(names[:5])}"]


def _unmatched(policy: Policy, entries: Sequence[Entry]) -> list[str]:
    names = [entry.name for entry in entries]
    return [
        f"Policy.{field}: {pattern!r} matches no tool of this request"
        for field, patterns in (("resident", policy.resident), ("defer", policy.defer))
        for pattern in patterns
        if pattern != "*" and not any(matches((pattern,), name) for name in names)
    ]
