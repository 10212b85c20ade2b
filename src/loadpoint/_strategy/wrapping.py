"""Calls of a conversation with a bridge: as the caller shows them, and as they are sent.

What the caller shows are calls of his own tools; what is sent are calls of the bridge. Between the two stands what is
on record, which holds the model's own bytes; where that is lost, the bridge call is made anew around the caller's
argument text, the same bytes in every process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .._bridge import Bridge, wrapped
from .._dialect import CallView, Dialect, View
from .._json import Json, digest, dumps
from .._ledger._record import State

FROZEN = "frozen"


def names_of(state: State | None) -> Bridge | None:
    """What the bridge is called in a conversation that has one; None for any other."""
    return Bridge(state.loader, state.calls) if state is not None and state.strategy == FROZEN else None


@dataclass(frozen=True, slots=True)
class Wrapping:
    """Turns the calls of a conversation into bridge calls and back. `direct` are tools that the model calls itself."""

    names: Bridge
    direct: frozenset[str]

    @property
    def key(self) -> str:
        """Equal for wrappings that do the same."""
        return digest(FROZEN, self.names.load, self.names.call, *sorted(self.direct))

    def into(self, dialect: Dialect, turn: Sequence[Json]) -> list[Json]:
        """The messages of a turn with calls of the bridge instead of calls that the model could not make itself."""
        return [dialect.with_calls(message, self._wrapped) for message in turn]

    def _wrapped(self, call: CallView) -> CallView:
        if call.name in self.direct or call.name in (self.names.load, self.names.call):
            return call
        text = call.arguments if isinstance(call.arguments, str) else dumps(call.arguments)
        return CallView(call.id, self.names.call, wrapped(call.name, text.strip() or "{}"))

    def out_of(self, dialect: Dialect, turn: Sequence[Json], shown: Mapping[str, CallView]) -> list[Json]:
        """The messages of a turn with the calls that the caller was `shown`, by id, instead of those of the bridge."""
        return [dialect.with_calls(message, self.as_shown(shown)) for message in turn]

    def as_shown(self, shown: Mapping[str, CallView]) -> Callable[[CallView], CallView]:
        """What a bridge call was shown as; any other call is what it is."""
        return lambda call: shown.get(call.id, call) if call.name == self.names.call else call

    def view(self, view: View, shown: Mapping[str, CallView]) -> View:
        """The view of a sent message, its calls named as their results have to be read."""
        seen = tuple(map(self.as_shown(shown), view.calls))
        return view if seen == view.calls else View(view.role, view.text, seen, view.results, view.forgets)


def recorded(dialect: Dialect, state: State, loader: str) -> Wrapping | None:
    """How the calls of a turn on record are wrapped; None where they are not. `loader` is that of other strategies."""
    names = names_of(state)
    if names is None:
        return None
    listed = {name for tool in state.tools if (name := dialect.tool_name(tool)) is not None}
    return Wrapping(names, frozenset({*listed, loader}))
