"""Toolboxes: a set of tools that an application holds itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from .._adapter import dialects
from .._clean import plain
from .._dialect import Outcome
from .._json import Json, as_object
from .._loader import Answer, LoaderQuery, answer, parse_arguments
from .._policy import Policy
from .._search import Match, ToolIndex
from .._tokens import schema_tokens
from .._tool import Tool
from ..errors import PolicyError

__all__ = ["Toolbox"]


class Toolbox:
    """The tools of an application that answers loader calls itself (`Policy(discovery="caller")`).

    `tools` are `Tool`s or wire definitions of any dialect. Raises `PolicyError` for one that is neither, and for two
    of one name.
    """

    def __init__(self, tools: Sequence[Tool | Json], policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self.tools = tuple(_tool(tool, at) for at, tool in enumerate(tools))
        self._by_name = {tool.name: tool for tool in self.tools}
        if len(self._by_name) < len(self.tools):
            names = [tool.name for tool in self.tools]
            twice = sorted({name for name in names if names.count(name) > 1})
            raise PolicyError(f"Toolbox.tools: the names {twice} stand for several tools; allowed: unique names")
        self._index = ToolIndex(self.tools)

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` tools for a query, best first; empty when nothing fits."""
        return self._index.search(query, limit)

    def answer(self, call: Any, *, loaded: Collection[str] = ()) -> Json:
        """The result for a loader call, to be appended to the history like that of any tool.

        `call` is the call as the SDK gave it, or its dict. Comes back in the form of the call's API: a tool message,
        or a tool result block. `loaded` are names already loaded, which are then not loaded again. Raises
        `PolicyError` for something that is no tool call.
        """
        wire = as_object(plain(call))
        for dialect in dialects() if wire is not None else ():
            view = dialect.call(wire or {})
            if view is not None:
                query = parse_arguments(view.arguments)
                if isinstance(query, str):
                    return dialect.result(view, Outcome(query, failed=True))[0]
                found = self._found(query, loaded)
                wires = tuple(
                    dialect.loader(t.name, t.description, dict(t.parameters))
                    for t in map(self._by_name.get, found.added)
                    if t
                )
                return dialect.result(view, Outcome(found.as_text(), found.added, wires))[0]
        raise PolicyError(
            f"Toolbox.answer: {type(call).__name__} is no tool call; allowed: one from a reply, or its dict"
        )

    def _found(self, query: LoaderQuery, loaded: Collection[str]) -> Answer:
        resident = [tool for tool in self.tools if not self.policy.defers(tool.name)]
        deferred = [tool for tool in self.tools if self.policy.defers(tool.name)]
        return answer(
            query,
            self._index,
            deferred=deferred,
            loaded=loaded,
            resident=resident,
            load_at_most=self.policy.load_at_most,
            load_tokens=self.policy.load_tokens,
            size_of=lambda name: schema_tokens(dict(self._by_name[name].parameters)),
        )


def _tool(tool: Tool | Json, at: int) -> Tool:
    if isinstance(tool, Tool):
        return tool
    for dialect in dialects():
        wire = as_object(tool)
        found = dialect.tool(wire) if wire is not None else None
        if found is not None:
            return found
    allowed = "loadpoint.Tool or a wire definition"
    raise PolicyError(f"Toolbox.tools[{at}]: {repr(tool)[:80]} is no tool; allowed: {allowed}")
