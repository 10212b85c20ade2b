"""Toolboxes: a set of tools that an application holds itself, and that may change while conversations go on."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .._adapter import dialects
from .._bridge import Bridge, LoadAnswer, Target, answer_load, bridge, parse_load, read_call
from .._clean import plain
from .._dialect import CallView, Dialect, Outcome
from .._json import Json, as_object, parse_object
from .._loader import Answer, LoaderQuery, answer, by_fit, parse_arguments
from .._policy import Policy
from .._search import Match, ToolIndex
from .._tokens import schema_tokens
from .._tool import Tool
from ..errors import PolicyError

__all__ = ["Called", "Toolbox"]

Given: TypeAlias = "Tool | Json | Any"
"""A `Tool`, a wire definition of any dialect, or a tool as an MCP server lists it."""
Wire: TypeAlias = "tuple[str, Json]"
"""A dialect's name and a definition in it."""
NOTHING: Mapping[str, Wire | None] = {}


class Toolbox:
    """The tools of an application: given to `wrap(client, toolbox=...)`, or to answer loader calls with.

    `tools` are `Tool`s, wire definitions of any dialect, or tools as an MCP server lists them. `policy` bounds what a
    search and an `add` load. Every method is safe to call from any thread. Raises `PolicyError` for something that is
    no tool, and for two of one name.
    """

    def __init__(self, tools: Sequence[Given] = (), policy: Policy | None = None) -> None:
        self.policy = policy or Policy()
        self._lock = threading.RLock()
        self._pushes: list[tuple[str, ...]] = []
        self._wires: dict[str, Wire] = {}
        self._hold(*_all(tools, None))

    # -- what it holds -------------------------------------------------------------------------------------------

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools of this moment, in the order in which they came."""
        return self._tools

    @property
    def generation(self) -> int:
        """How often tools were pushed: a conversation remembers how many of them it has seen."""
        return len(self._pushes)

    def pushed(self, since: int) -> tuple[str, ...]:
        """The names that were pushed after `since` pushes and are still there."""
        with self._lock:
            names = [name for push in self._pushes[since:] for name in push]
            return tuple(dict.fromkeys(name for name in names if name in self._by_name))

    def wires(self, dialect: Dialect) -> tuple[Json, ...]:
        """The tools as wire definitions of a dialect: as they were given where they were given in it."""
        with self._lock:
            made = self._made.get(dialect.name)
            if made is None:
                made = self._made[dialect.name] = tuple(self._wire(tool, dialect.at(None)) for tool in self._tools)
            return made

    def _wire(self, tool: Tool, dialect: Dialect) -> Json:
        name, wire = self._wires.get(tool.name) or ("", {})
        return wire if name == dialect.name else dialect.loader(tool.name, tool.description, dict(tool.parameters))

    # -- changing it ---------------------------------------------------------------------------------------------

    def add(self, *tools: Given, load: bool | None = None, server: str | None = None) -> tuple[str, ...]:
        """Add tools while conversations go on; the names that the model is shown without a search.

        In each running conversation these stand, from its next request on, where the model takes tools in the middle of
        a conversation, else at the end of the list of tools. `load=None` shows them if their schemas fit into
        `policy.load_tokens`, True always, False never; what is not shown is found by a search like any other tool. A
        tool of a known name replaces it. `server` says where they come from. Raises `PolicyError` as the constructor.
        """
        given, wires = _all(tools, server)
        with self._lock:
            known = dict(self._by_name)
            known.update((tool.name, tool) for tool in given)
            shown = load if load is not None else self._fits(given)
            names = tuple(tool.name for tool in given) if shown else ()
            self._hold(tuple(known.values()), wires)
            if names:
                self._pushes.append(names)
        return names

    def remove(self, *names: str) -> None:
        """Take tools away; a model that has them loaded is told so. Raises `PolicyError` for an unknown name."""
        with self._lock:
            unknown = sorted(set(names) - self._by_name.keys())
            if unknown:
                raise PolicyError(f"Toolbox.remove: {unknown} are not in this toolbox; allowed: names of its tools")
            self._hold(tuple(tool for tool in self._tools if tool.name not in names))

    def update(self, server: str, tools: Sequence[Given], *, load: bool | None = None) -> tuple[str, ...]:
        """Make the tools of one server these, as when it says that its list has changed; the names that are shown.

        What is new is added as by `add`, what changed is replaced, what is no longer listed is removed.
        """
        listed, _ = _all(tools, server)
        names = {tool.name for tool in listed}
        with self._lock:
            others = {tool.name for tool in self._tools if tool.server != server}
            if names & others:
                taken = sorted(names & others)
                raise PolicyError(
                    f"Toolbox.update: {taken} are tools of another server; allowed: names of {server!r} alone"
                )
            before = self._by_name.keys() - others
            self._hold(tuple(tool for tool in self._tools if tool.name in others | names))
            old = [tool for tool, known in zip(tools, listed, strict=True) if known.name in before]
            new = [tool for tool, known in zip(tools, listed, strict=True) if known.name not in before]
            self.add(*old, load=False, server=server)
            return self.add(*new, load=load, server=server)

    def _fits(self, tools: Iterable[Tool]) -> bool:
        size = sum(schema_tokens(dict(tool.parameters)) for tool in tools if self.policy.defers(tool.name))
        return size <= self.policy.load_tokens

    def _hold(self, tools: Sequence[Tool], wires: Mapping[str, Wire | None] = NOTHING) -> None:
        """Hold these tools from now on; `wires` are the wire forms of those that are new."""
        with self._lock:
            self._tools = tuple(tools)
            self._by_name = {tool.name: tool for tool in tools}
            kept = {**self._wires, **wires}
            self._wires = {name: wire for name, wire in kept.items() if wire is not None and name in self._by_name}
            self._made: dict[str, tuple[Json, ...]] = {}
            self._index: ToolIndex | None = None

    # -- searching it --------------------------------------------------------------------------------------------

    def search(self, query: str, limit: int = 4) -> list[Match]:
        """At most `limit` tools for a query, best first; empty when nothing fits."""
        return self._searched().search(query, limit)

    def _searched(self) -> ToolIndex:
        with self._lock:
            if self._index is None:
                self._index = ToolIndex(self._tools)
            return self._index

    def answer(self, call: Any, *, loaded: Collection[str] = ()) -> Json:
        """The result for a loader call, to be appended to the history like that of any tool.

        `call` is the call as the SDK gave it, or its dict: of the loader, or of the tool of a bridge that loads. Comes
        back in the form of the call's API: a tool message, or a tool result block. `loaded` are names already loaded,
        which are then not loaded again. Raises `PolicyError` for something that is no tool call.
        """
        dialect, view = _call("answer", call)
        if view.name == self.bridge.load:
            told = self._told(view.arguments, loaded)
            return dialect.result(view, Outcome(told.text, failed=told.failed))[0]
        query = parse_arguments(view.arguments)
        if isinstance(query, str):
            return dialect.result(view, Outcome(query, failed=True))[0]
        found = self._found(query, loaded)
        known = self._by_name
        wires = tuple(self._wire(known[name], dialect) for name in found.added if name in known)
        return dialect.result(view, Outcome(found.as_text(), found.added, wires))[0]

    @property
    def bridge(self) -> Bridge:
        """The names of the two tools through which these are loaded and called, where `discovery="caller"` shows them.

        They hold where the caller's own tools take neither of them.
        """
        return bridge(self._by_name)

    def call(self, call: Any, *, loaded: Collection[str] = ()) -> Called:
        """The call that a call through the bridge stands for, to be carried out and answered under the same id.

        `call` is the call as the SDK gave it, or its dict; one of a tool itself comes back as it is. `loaded` are names
        already loaded: whether any other may be called is `policy.unloaded_call`. Where it reaches no tool, `refusal`
        is the result to append instead, and nothing is to be carried out. Raises `PolicyError` for something that is no
        tool call.
        """
        dialect, view = _call("call", call)
        if view.name != self.bridge.call:
            arguments = as_object(view.arguments)
            if isinstance(view.arguments, str):
                arguments = parse_object(view.arguments)
            return Called(view.name, arguments or {})
        deferred, resident = self._sides()
        unloaded = "refuse" if self.policy.confirm != "never" else self.policy.unloaded_call
        read = read_call(
            view.arguments,
            bridge=self.bridge,
            deferred=deferred,
            loaded=loaded,
            resident=resident,
            unloaded=unloaded,
        )
        if isinstance(read, Target):
            return Called(read.name, parse_object(read.arguments) or {}, repairs=read.repairs)
        return Called("", {}, dialect.result(view, Outcome(read.text, failed=True))[0])

    def _sides(self) -> tuple[dict[str, Tool], dict[str, Tool]]:
        """The deferred tools and the residents, by name."""
        known = self._by_name
        deferred = {name: tool for name, tool in known.items() if self.policy.defers(name)}
        return deferred, {name: tool for name, tool in known.items() if name not in deferred}

    def _told(self, arguments: Any, loaded: Collection[str]) -> LoadAnswer:
        request = parse_load(arguments)
        if isinstance(request, str):
            return LoadAnswer(request, failed=True)
        deferred, resident = self._sides()
        index = self._searched()

        def size_of(name: str) -> int:
            return schema_tokens(dict(deferred[name].parameters))

        def search(query: str, limit: int) -> tuple[Sequence[str], Sequence[str]]:
            return by_fit(index, query, limit, deferred=deferred, resident=resident, size_of=size_of)

        return answer_load(
            request,
            listed=deferred,
            registered=deferred.keys() | resident.keys(),
            loaded=loaded,
            resident=resident.keys(),
            search=search,
            confirm="model" if self.policy.confirm == "model" else "never",
            load_at_most=self.policy.load_at_most,
            load_tokens=self.policy.load_tokens,
            size_of=size_of,
            bridge=self.bridge,
        )

    def _found(self, query: LoaderQuery, loaded: Collection[str]) -> Answer:
        with self._lock:
            tools, known, index = self._tools, self._by_name, self._searched()
        return answer(
            query,
            index,
            deferred=[tool for tool in tools if self.policy.defers(tool.name)],
            loaded=loaded,
            resident=[tool for tool in tools if not self.policy.defers(tool.name)],
            load_at_most=self.policy.load_at_most,
            load_tokens=self.policy.load_tokens,
            size_of=lambda name: schema_tokens(dict(known[name].parameters)),
        )


@dataclass(frozen=True, slots=True)
class Called:
    """A call to carry out: the tool's name and arguments; `repairs` say what had to be put right in them.

    `refusal` is the result to append instead where the call reaches no tool, None where it does.
    """

    name: str
    arguments: Json
    refusal: Json | None = None
    repairs: tuple[str, ...] = ()


def _call(method: str, call: Any) -> tuple[Dialect, CallView]:
    """The call as its API's dialect reads it."""
    wire = as_object(plain(call))
    for dialect in dialects() if wire is not None else ():
        view = dialect.call(wire or {})
        if view is not None:
            return dialect, view
    raise PolicyError(
        f"Toolbox.{method}: {type(call).__name__} is no tool call; allowed: one from a reply, or its dict"
    )


def _all(tools: Sequence[Given], server: str | None) -> tuple[tuple[Tool, ...], dict[str, Wire | None]]:
    """The neutral tools, and by name the wire form of those that were given in one."""
    read = [_read(tool, at, server) for at, tool in enumerate(tools)]
    names = [tool.name for tool, _ in read]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PolicyError(f"Toolbox.tools: the names {twice} stand for several tools; allowed: unique names")
    return tuple(tool for tool, _ in read), {tool.name: wire for tool, wire in read}


def _read(tool: Given, at: int, server: str | None) -> tuple[Tool, Wire | None]:
    """The neutral tool, and the wire form in which it was given, if it was."""
    if isinstance(tool, Tool):
        return _placed(tool, server), None
    wire = as_object(plain(tool))
    listed = _listed(wire) if wire is not None else None
    if listed is not None:
        return _placed(listed, server), None
    for dialect in dialects() if wire is not None else ():
        found = dialect.tool(wire or {})
        if found is not None and wire is not None:
            return _placed(found, server), (dialect.name, wire)
    allowed = "loadpoint.Tool, a wire definition, or a tool as an MCP server lists it"
    raise PolicyError(f"Toolbox.tools[{at}]: {repr(tool)[:80]} is no tool; allowed: {allowed}")


def _placed(tool: Tool, server: str | None) -> Tool:
    return tool if server is None or tool.server == server else replace(tool, server=server)


def _listed(wire: Json) -> Tool | None:
    """A tool of an MCP server's list: https://modelcontextprotocol.io/specification (`inputSchema`)."""
    schema = as_object(wire.get("inputSchema"))
    name = wire.get("name")
    if schema is None or not isinstance(name, str) or not name:
        return None
    annotations = as_object(wire.get("annotations")) or {}
    return Tool(name, str(wire.get("description") or ""), schema, annotations=annotations)
