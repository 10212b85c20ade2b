"""The scripted model of a bench session: it acts only on what it can see in the request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._json import dumps
from ._plan import Look, Need, Plan, Step

if TYPE_CHECKING:
    from ..emulator import Move, Turn

LOADER = "ToolSearch"
BRIDGE, BRIDGE_LOADER = "call_tool", "load_tools"


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
        for step in planned.steps:
            calls = self._calls(turn, step)
            if calls:
                self.searches += sum(name in {LOADER, BRIDGE_LOADER} for name, _ in calls)
                return Move(calls=calls)
        return Move(text=planned.answer)

    def _calls(self, turn: Turn, step: Step) -> list[tuple[str, Any]]:
        asked = [call for call in turn.results if call.name in {LOADER, BRIDGE_LOADER}]
        queries = [str(call.arguments.get("query")) for call in asked]
        loader = next((name for name in turn.names if name in {LOADER, BRIDGE_LOADER}), None)
        made = _made(turn)
        calls: list[tuple[str, Any]] = []
        for item in step:
            if isinstance(item, Look):
                if loader is not None and item.query not in queries:
                    calls.append((loader, _search(loader, item.query)))
            elif (item.tool.name, item.arguments) in made:
                made.remove((item.tool.name, item.arguments))  # the same call may be wanted twice
            else:
                calls += self._reach(turn, item, loader, queries)
        return calls

    def _reach(self, turn: Turn, need: Need, loader: str | None, queries: Sequence[str]) -> list[tuple[str, Any]]:
        if need.tool.name in turn.names:
            return [(need.tool.name, need.arguments)]
        if BRIDGE in turn.names and _told(turn, need.tool.name):
            return [(BRIDGE, {"tool": need.tool.name, "params": need.arguments})]
        query = next((query for query in need.queries if query not in queries), None)
        if loader is None or query is None:
            if need.tool.name not in self.missed:
                self.missed.append(need.tool.name)
            return []
        return [(loader, _search(loader, query))]


def _search(loader: str, query: str) -> dict[str, Any]:
    return {"tools": [], "query": query} if loader == BRIDGE_LOADER else {"query": query}


def _told(turn: Turn, name: str) -> bool:
    """Whether the bridge's loader has answered with the schema of this tool."""
    return any(call.name == BRIDGE_LOADER and dumps(name) in (call.result or "") for call in turn.history)


def _made(turn: Turn) -> list[tuple[str, Any]]:
    """The calls of this turn that have been answered, through the bridge or not."""
    plain = [(call.name, call.arguments) for call in turn.results if call.name != BRIDGE]
    bridged = [call.arguments for call in turn.results if call.name == BRIDGE]
    return plain + [(str(arguments.get("tool")), arguments.get("params") or {}) for arguments in bridged]
