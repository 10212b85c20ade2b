"""The frozen strategy: a list of tools that is written once, and calls of everything else through one tool in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from .._bridge import Bridge, call_description, call_schema, load_description, load_schema
from .._compose import Composed, Composer
from .._dialect import Dialect, View
from .._json import Json, canonical, digest
from .._ledger._record import State
from .._loaded import Evidence
from .._registry import Registry, entry_name
from .wrapping import Wrapping, names_of, recorded


def wrapping(registry: Registry, dialect: Dialect, state: State | None) -> Wrapping:
    """How calls of this conversation are wrapped: as it began, or as one would begin with this registry."""
    known = recorded(dialect, state, registry.loader) if state is not None else None
    own = frozenset(entry.name for entry in registry.residents)
    return known or Wrapping(registry.bridge, own | {registry.loader})


class FrozenComposer(Composer):
    """Writes the list once: the bridge, then the residents of the first request.

    A resident that comes later is reached through the bridge, one that leaves stays. Two things cannot be so: an entry
    that the provider runs itself, which comes and goes with the caller's list, and another definition of a resident, by
    which its calls have to be made.
    """

    def __init__(self, dialect: Dialect, registry: Registry, load: Json, call: Json) -> None:
        super().__init__(dialect, registry, load, declare_all=False)
        self.call = call
        self.call_name = dialect.tool_name(call) or ""
        self.bridge = Bridge(self.loader_name, self.call_name)

    def compose(
        self,
        state: State | None,
        proofs: Sequence[Evidence],
        forced: Iterable[str] = (),  # noqa: ARG002 - none of the three changes a list that is written once
        referenced: Iterable[str] = (),  # noqa: ARG002
        valued: Collection[str] = (),  # noqa: ARG002
    ) -> Composed:
        """See `Composer.compose`; `callable` names what is in the list, and behind that what the bridge reaches."""
        changed: list[str] = []
        shown = {self.loader_name: self.loader, self.call_name: self.call}
        for wire in state.tools if state is not None else ():
            name = entry_name(self.dialect, wire)
            if name not in shown:
                self._keep(name, wire, shown, changed)
        for entry in self.registry.residents:
            if state is None or (entry.tool is None and entry.name not in shown):
                shown[entry.name] = entry.definition
        named = [*shown, *(proof.name for proof in proofs if proof.name not in shown)]
        return Composed(self._marked(shown), [], named, changed)

    def stale(self, views: Iterable[View], state: State | None = None) -> list[str]:  # noqa: ARG002 - see `Composer`
        """The tools that were told of in another definition than the caller now has; the record alone knows."""
        known = self.registry.by_name
        told = {self.dialect.tool_name(wire): wire for wire in (state.definitions if state is not None else ())}
        loaded = state.loaded if state is not None else ()
        found = [(name, told[name]) for name in loaded if name in told and name in known]
        return [name for name, wire in found if self.dialect.tool(wire) != known[name].tool]

    def _keep(self, name: str, wire: Json, shown: dict[str, Json], changed: list[str]) -> None:
        entry = self.registry.by_name.get(name)
        if entry is None:
            if self.dialect.tool(wire) is not None:
                shown[name] = wire
        elif entry.tool is None:
            shown[name] = entry.definition
        else:
            same = digest(canonical(self.dialect.definition(wire, deferred=False))) == entry.digest
            shown[name] = self._bare(wire, deferred=False) if same else entry.definition
            changed += [] if same else [name]

    def unlisted(self, state: State | None, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these tools that the list does not hold, so that only the bridge reaches them."""
        there = {entry_name(self.dialect, wire) for wire in self.compose(state, ()).tools}
        known = self.registry.by_name
        return tuple(name for name in names if name in known and known[name].tool is not None and name not in there)


def composer(dialect: Dialect, registry: Registry, state: State | None, text: str, *, confirm: bool) -> FrozenComposer:
    """The composer of a conversation: with the bridge that it began with, else one with the catalog `text`."""
    names = names_of(state) or registry.bridge
    known = {dialect.tool_name(tool): tool for tool in state.tools} if names_of(state) and state is not None else {}
    load = known.get(names.load) or dialect.loader(
        names.load, load_description(text, names, confirm=confirm), load_schema()
    )
    call = known.get(names.call) or dialect.loader(names.call, call_description(names), call_schema())
    return FrozenComposer(
        dialect, registry, dialect.definition(load, deferred=False), dialect.definition(call, deferred=False)
    )
