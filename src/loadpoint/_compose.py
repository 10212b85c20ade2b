"""The tool list of one request: what stood there stays, in its place and its bytes; what is new goes behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from ._bridge import Bridge
from ._dialect import Dialect, View
from ._json import Json, canonical, digest
from ._ledger._record import State
from ._loaded import Evidence
from ._registry import Registry, entry_name

_GONE = "This tool is no longer available."


@dataclass(slots=True)
class Composed:
    """`tools` as sent. `declared` names the deferred entries, `callable` all that the model may call."""

    tools: list[Json]
    declared: list[str]
    callable: list[str]
    changed: list[str] = field(default_factory=list[str])
    """Names whose definition differs from the one that was sent before."""


class Composer:
    """Builds tool lists for one conversation."""

    def __init__(self, dialect: Dialect, registry: Registry, loader: Json, *, declare_all: bool) -> None:
        self.dialect = dialect
        self.registry = registry
        self.loader = loader
        self.loader_name = dialect.tool_name(loader) or ""
        self.bridge: Bridge | None = None
        self.native = dialect.load_point is not None
        self.declares = self.native and dialect.by_reference
        # What the server keeps is declared once for all, also where loads carry it: later requests bring no tools.
        self.declare_all = declare_all and (self.declares or (self.native and dialect.server_keeps_tools))

    def compose(
        self,
        state: State | None,
        proofs: Sequence[Evidence],
        forced: Iterable[str] = (),
        referenced: Iterable[str] = (),
        valued: Collection[str] = (),
    ) -> Composed:
        """The list for a request whose transcript proves `proofs`; `state` is how the last request was sent.

        `referenced` are the names that stand in the transcript as references: each has to be declared, also that of a
        tool which the caller no longer has. `valued` are those whose definitions stand in the transcript: they need no
        place in the list.
        """
        shown: dict[str, Json] = {}
        declared: dict[str, Json] = {}
        changed: list[str] = []
        if state is not None:
            self._continue(state, shown, declared, changed)
        else:
            shown[self.loader_name] = self.loader
        # A resident that was loaded by value before it became one can be called where it stands.
        there = [name for name in valued if self.native and name not in changed]
        for entry in self.registry.residents:
            if entry.name not in shown and entry.name not in there:
                shown[entry.name] = entry.definition
        placed = [proof.name for proof in proofs if self.native and proof.placed]
        asked = [name for name in forced if self.declares or name not in placed]
        for name in [*asked, *(proof.name for proof in proofs if proof.name not in placed)]:
            self._show(name, shown, declared, state)
        for name in self._declarable([name for name in placed if name not in valued], referenced):
            if name not in shown and name not in declared:
                declared[name] = self._definition(name, state, deferred=True)
        residents = [entry.name for entry in self.registry.residents]
        callable_now = [*shown, *(name for name in self._named(declared, placed, valued) if name not in shown)]
        callable_now += [name for name in dict.fromkeys(there) if name in residents and name not in shown]
        tools = [*self._marked(shown), *declared.values()]
        return Composed(tools, list(declared), callable_now, changed)

    def unlisted(self, state: State | None, names: Iterable[str]) -> tuple[str, ...]:  # noqa: ARG002 - see `frozen`
        """Those of these tools that the list never holds; none where it grows."""
        return ()

    def _named(self, declared: Iterable[str], placed: Sequence[str], valued: Collection[str]) -> list[str]:
        """The tools that can be called where they stand in the conversation, in the order of the list."""
        if not self.declares:
            return list(placed)
        known = [name for name in declared if name in placed]
        return [*known, *(name for name in placed if name in valued and name not in known)]

    def _declarable(self, placed: Iterable[str], referenced: Iterable[str]) -> list[str]:
        everything = [entry.name for entry in self.registry.deferred] if self.declare_all else []
        # What is declared from the start stands in one order, whatever a history shows to a process that knows no more.
        return [*everything, *(placed if self.declares else ()), *referenced]

    def stale(self, views: Iterable[View], state: State | None = None) -> list[str]:
        """The tools whose definition in the transcript is no longer the caller's: they have to be loaded again.

        `state` adds what was loaded in a transcript that the server holds.
        """
        last: dict[str, Json] = {}
        for wire in state.definitions if state is not None and not self.dialect.by_reference else ():
            last[self.dialect.tool_name(wire) or ""] = wire
        for view in views:
            for result in view.results:
                last.update(zip(result.names, result.tools, strict=False))
        known = self.registry.by_name
        return [name for name, wire in last.items() if name in known and self.dialect.tool(wire) != known[name].tool]

    def _continue(self, state: State, shown: dict[str, Json], declared: dict[str, Json], changed: list[str]) -> None:
        residents = {entry.name for entry in self.registry.residents}
        for wire in state.tools:
            name = entry_name(self.dialect, wire)
            deferred = name in state.declared
            entry = self.registry.by_name.get(name)
            sent = self._bare(wire, deferred=deferred)
            if name == state.loader:
                shown[name] = sent
            elif entry is not None and entry.tool is None and self.dialect.tool_name(entry.definition) is None:
                shown[name] = entry.definition  # the ledger holds no more of it than its place
            elif entry is None:
                # A resident that left is the caller's choice; one that was loaded may still be referred to.
                if name in self._remembered(state) or deferred:
                    (declared if deferred else shown)[name] = sent
            else:
                same = digest(canonical(self.dialect.definition(sent, deferred=False))) == entry.digest
                new = self.dialect.definition(entry.definition, deferred=True) if deferred else entry.definition
                if not same:
                    changed.append(name)
                if deferred and name in residents:
                    shown[name] = entry.definition  # the caller sends it with every request from now on
                else:
                    (declared if deferred else shown)[name] = sent if same else new

    def _bare(self, wire: Json, *, deferred: bool) -> Json:
        if self.dialect.marker(wire) is None:
            return wire
        return self.dialect.definition(wire, deferred=deferred)

    def _remembered(self, state: State) -> set[str]:
        return {name for wire in state.definitions if (name := self.dialect.tool_name(wire))}

    def _show(self, name: str, shown: dict[str, Json], declared: dict[str, Json], state: State | None) -> None:
        declared.pop(name, None)
        if name not in shown:
            shown[name] = self._definition(name, state, deferred=False)

    def _definition(self, name: str, state: State | None, *, deferred: bool) -> Json:
        entry = self.registry.by_name.get(name)
        if entry is not None:
            return self.dialect.definition(entry.definition, deferred=True) if deferred else entry.definition
        for wire in state.definitions if state else ():
            if self.dialect.tool_name(wire) == name:
                return self.dialect.definition(wire, deferred=deferred)
        # Not of this form: there the loader may be the search of the provider, whatever the name.
        stub = self.dialect.at(None).loader(name, _GONE, {"type": "object", "properties": {}})
        return self.dialect.definition(stub, deferred=deferred)

    def _marked(self, shown: dict[str, Json]) -> list[Json]:
        """The caller's cache marker on the last resident tool: it covers what never changes, and does not wander."""
        marker = self.registry.marker
        tools = list(shown.values())
        if marker is None:
            return tools
        residents = {entry.name for entry in self.registry.residents} | {self.loader_name}
        at = max((i for i, name in enumerate(shown) if name in residents), default=0)
        tools[at] = self.dialect.with_marker(tools[at], marker)
        return tools


def references(views: Iterable[View]) -> tuple[list[str], list[str]]:
    """The names that a transcript refers to and does not define before, and those that it defines."""
    referred: list[str] = []
    defined: list[str] = []
    for view in views:
        for result in view.results:
            if result.tools:
                defined += result.names
            referred += [name for name in (*result.names, *result.removed) if name not in defined]
    return referred, defined


def definitions(composer: Composer, state: State | None, names: Collection[str]) -> tuple[Json, ...]:
    """The last known definitions of every tool that was ever loaded, for the day when one leaves the registry."""
    known: dict[str, Json] = {}
    for wire in state.definitions if state else ():
        name = composer.dialect.tool_name(wire)
        if name:
            known[name] = wire
    for name in names:
        entry = composer.registry.by_name.get(name)
        if entry is not None:
            known[name] = entry.definition
    return tuple(known.values())
