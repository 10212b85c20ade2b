"""The scripted model of a bench session: it acts only on what it can see in the request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from .._json import Json, dumps, objects
from ._plan import Look, Need, Plan, Step

if TYPE_CHECKING:
    from ..emulator import Move, Turn

LOADER = "ToolSearch"
BRIDGE, BRIDGE_LOADER = "call_tool", "load_tools"
SEARCH = "tool_search"  # the search of the Responses API, whoever runs it
_SERVICE = "tool_search_tool_"  # how the names of the searches begin that a provider of Messages runs itself

_Call: TypeAlias = "tuple[str, Any]"


class Player:
    """Plays a `Plan`: calls what it sees, searches for what it does not, gives up when the last query was in vain.

    It has no memory: what to do next follows from the transcript in the request, so it behaves alike whoever
    transports its words. `missed` collects the names of tools that it never got to see.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.missed: list[str] = []
        self.searches = 0

    def __call__(self, turn: Turn) -> Move:
        """What the model does with one request."""
        from ..emulator import Move

        planned = self.plan.turns[len(turn.texts) - 1]
        search = _search_of(turn)
        before: list[_Call] = []  # searches that the provider runs: the reply goes on behind them
        for step in planned.steps:
            calls = self._calls(turn, step, search)
            self.searches += sum(search is not None and name == search.name for name, _ in calls)
            if calls and search is not None and search.hosted and all(name == search.name for name, _ in calls):
                before += calls
            elif calls:
                return Move(calls=[*before, *calls])
        return Move(text=planned.answer, calls=before)

    def _calls(self, turn: Turn, step: Step, search: _Search | None) -> list[_Call]:
        tried = [] if search is None else [call.arguments for call in turn.results if call.name == search.name]
        made = _made(turn)
        calls: list[_Call] = []
        for item in step:
            if isinstance(item, Look):
                wanted = search.asking(item.query) if search is not None else None
                if search is not None and wanted is not None and wanted not in tried:
                    calls.append((search.name, wanted))
            elif (item.tool.name, item.arguments) in made:
                made.remove((item.tool.name, item.arguments))  # the same call may be wanted twice
            else:
                calls += self._reach(turn, item, search, tried)
        # A search that the provider runs comes before the calls of what it finds.
        return sorted(calls, key=lambda call: search is None or not search.hosted or call[0] != search.name)

    def _reach(self, turn: Turn, need: Need, search: _Search | None, tried: Sequence[Json]) -> list[_Call]:
        if need.tool.name in turn.names:
            return [(need.tool.name, need.arguments)]
        if BRIDGE in turn.names and _told(turn, need.tool.name):
            return [(BRIDGE, {"tool": need.tool.name, "params": need.arguments})]
        searched: list[_Call] = []
        for wanted in () if search is None else search.all_for(need):
            if wanted in tried or search is None:
                continue
            searched.append((search.name, wanted))
            if not search.hosted:
                return searched
            if search.finds(wanted, need.tool.name):
                return [*searched, (need.tool.name, need.arguments)]
        if need.tool.name not in self.missed:
            self.missed.append(need.tool.name)
        return searched


@dataclass(frozen=True, slots=True)
class _Search:
    """What the model can search with in one request; `hosted`: the provider runs it."""

    name: str
    turn: Turn
    hosted: bool = False

    def asking(self, query: str) -> Json | None:
        """Its arguments for these words; None where it takes no words."""
        if self.name == BRIDGE_LOADER:
            return {"tools": [], "query": query}
        if self.hosted and self.name == SEARCH:
            return None
        if self.name.startswith(_SERVICE) and "regex" in self.name:
            return {"pattern": "|".join(word for word in query.split() if len(word) > 3)[:200] or query[:200]}
        return {"query": query}

    def all_for(self, need: Need) -> list[Json]:
        """Its arguments for one tool after the other attempt, in order."""
        if self.hosted and self.name == SEARCH:
            return [{"paths": [path]} for path in _paths(self.turn, need.tool.name)]
        return [wanted for query in need.queries if (wanted := self.asking(query)) is not None]

    def finds(self, wanted: Json, name: str) -> bool:
        """Whether the provider's search, as the emulator plays it, would load the tool `name`."""
        from ..emulator._hosted_search import search

        if self.name == SEARCH:
            return True  # by a path that holds it
        found = search(self.name, wanted, objects(self.turn.body.get("tools")))
        return any(reference.get("tool_name") == name for reference in objects(found.get("tool_references")))


def _search_of(turn: Turn) -> _Search | None:
    for name in turn.names:
        if name in {LOADER, BRIDGE_LOADER}:
            return _Search(name, turn)
        if name.startswith(_SERVICE):
            return _Search(name, turn, hosted=True)
    if turn.search is None:
        return None
    entries = [tool for tool in objects(turn.body.get("tools")) if tool.get("type") == SEARCH]
    return _Search(turn.search, turn, hosted=not any(tool.get("execution") == "client" for tool in entries))


def _paths(turn: Turn, name: str) -> list[str]:
    """Where a hosted search of the Responses API finds the tool: the namespace that holds it, else its own name."""
    for entry in objects(turn.body.get("tools")):
        if any(str(tool.get("name")) == name for tool in objects(entry.get("tools"))):
            return [str(entry.get("name"))]
    return [name] if name in turn.deferred else []


def _told(turn: Turn, name: str) -> bool:
    """Whether the bridge's loader has answered with the usage of this tool, under a heading or quoted."""
    signs = f"\n## {name}\n", dumps(name)
    return any(
        call.name == BRIDGE_LOADER and any(sign in (call.result or "") for sign in signs) for call in turn.history
    )


def _made(turn: Turn) -> list[tuple[str, Any]]:
    """The calls of this turn that have been answered, through the bridge or not."""
    plain = [(call.name, call.arguments) for call in turn.results if call.name != BRIDGE]
    bridged = [call.arguments for call in turn.results if call.name == BRIDGE]
    return plain + [(str(arguments.get("tool")), arguments.get("params") or {}) for arguments in bridged]
