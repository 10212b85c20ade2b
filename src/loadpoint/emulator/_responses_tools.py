"""Which tools a Responses request has, and where they stand: resident, deferred, loaded by a search, or added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._json import Json, as_list, as_object, dumps, objects
from ._script import Shown

SEARCH = "tool_search"
CALLABLE = ("function", "custom")
_NOT_PROMPT = ("type", "defer_loading", "allowed_callers", "async", "output_schema")
_TEXT = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}


@dataclass(frozen=True, slots=True)
class Entry:
    """A function or custom tool, and the namespace that holds it, if one does."""

    tool: Json
    holder: Json | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return str(self.tool.get("name"))

    @property
    def container(self) -> str | None:
        """The name of its namespace."""
        return None if self.holder is None else str(self.holder.get("name"))

    @property
    def deferred(self) -> bool:
        """Whether its definition is withheld until it is loaded."""
        return self.tool.get("defer_loading") is True

    @property
    def custom(self) -> bool:
        """Whether it takes text instead of an object."""
        return self.tool.get("type") == "custom"

    @property
    def shown(self) -> Shown:
        """What the model sees of it."""
        schema = _TEXT if self.custom else as_object(self.tool.get("parameters")) or {}
        return Shown(self.name, str(self.tool.get("description") or ""), schema, self.container or "")


@dataclass(slots=True)
class Tools:
    """The tools of one request by (namespace, name), each in exactly one of the four places it can have first.

    A tool that a search loaded stays in `deferred` too if it is declared so. `search` is the entry of the search.
    """

    resident: dict[tuple[str | None, str], Entry] = field(default_factory=dict[tuple[str | None, str], Entry])
    deferred: dict[tuple[str | None, str], Entry] = field(default_factory=dict[tuple[str | None, str], Entry])
    loaded: dict[tuple[str | None, str], Entry] = field(default_factory=dict[tuple[str | None, str], Entry])
    added: dict[tuple[str | None, str], Entry] = field(default_factory=dict[tuple[str | None, str], Entry])
    search: Json | None = None

    @property
    def hosted(self) -> bool:
        """Whether the service searches itself."""
        return self.search is not None and self.search.get("execution") != "client"

    @property
    def visible(self) -> dict[tuple[str | None, str], Entry]:
        """What the model can see: residents, then what was loaded or added."""
        return {**self.resident, **self.loaded, **self.added}

    @property
    def hidden(self) -> dict[tuple[str | None, str], Entry]:
        """What is only declared."""
        return {key: entry for key, entry in self.deferred.items() if key not in self.loaded and key not in self.added}

    @property
    def search_name(self) -> str | None:
        """By which name a script calls the search; none where a tool of the caller's own has that name."""
        if self.search is None or any(name == SEARCH for _, name in self.visible):
            return None
        return SEARCH

    def find(self, name: str) -> Entry | None:
        """The tool that a call of `name`, or of "namespace.name", means: a visible one before a deferred one."""
        for known in (self.visible, self.deferred):
            for (container, own), entry in known.items():
                if name in (own, f"{container}.{own}"):
                    return entry
        return None

    def namespace(self, entry: Entry) -> str | None:
        """The namespace that a call of `entry` carries: its own, or for a flat deferred tool the tool's name.

        Recorded: a flat deferred function is called with its own name as the namespace, one that only an
        `additional_tools` item declares without any.
        """
        if entry.container is not None:
            return entry.container
        key = (None, entry.name)
        if key in self.resident or (key in self.added and key not in self.loaded):
            return None
        return entry.name if key in self.loaded or key in self.deferred else None


def read(tools: Any, items: Sequence[Json]) -> Tools:
    """The tools of a request with the top-level `tools` and the input `items`.

    In `additional_tools` neither deferral nor a search counts: probed on gpt-5.6-sol on 2026-09-25, the service drops
    both without a word, and the model calls such a tool at once.
    """
    found = Tools()
    for tool in objects(tools):
        if tool.get("type") == SEARCH:
            found.search = tool
    for entry in entries(objects(tools)):
        place = found.deferred if entry.deferred else found.resident
        place[entry.container, entry.name] = entry
    for item in items:
        kind = item.get("type")
        for entry in entries(objects(item.get("tools"))) if kind in ("tool_search_output", "additional_tools") else ():
            place = found.loaded if kind == "tool_search_output" else found.added
            place[entry.container, entry.name] = entry
    return found


def entries(tools: Iterable[Json]) -> Iterator[Entry]:
    """The functions and custom tools in `tools`, those in namespaces included."""
    for tool in tools:
        if tool.get("type") in CALLABLE:
            yield Entry(tool)
        elif tool.get("type") == "namespace":
            yield from (Entry(member, tool) for member in objects(tool.get("tools")) if member.get("type") in CALLABLE)


def declaration(tool: Json) -> str:
    """What stands of a top-level tool in the context from the start.

    As the guide says it: of a namespace and of a deferred server the name and the description, of a deferred function
    both as well, only its parameters are withheld.
    """
    kind = tool.get("type")
    if kind == "namespace":
        members = [member for member in objects(tool.get("tools")) if member.get("defer_loading") is not True]
        return dumps(_named(tool)) + "".join(definition(member) for member in members)
    if tool.get("defer_loading") is True:
        return dumps(_named(tool))
    return definition(tool)


def definition(tool: Json) -> str:
    """A whole definition, as the model reads it once it is loaded."""
    if tool.get("type") == "namespace":
        return dumps(_named(tool)) + "".join(definition(member) for member in objects(tool.get("tools")))
    hidden = _NOT_PROMPT if tool.get("type") in CALLABLE else ("defer_loading",)
    return dumps({key: value for key, value in tool.items() if key not in hidden and value is not None})


def matched(tools: Any, paths: Sequence[Any]) -> list[Json]:
    """What a hosted search loads for `paths`: names of namespaces, servers and flat tools; unknown ones add nothing.

    A namespace is given with its deferred members only: the others are in the context already.
    """
    found: list[Json] = []
    for path in dict.fromkeys(str(path) for path in paths):
        for tool in objects(tools):
            members = [member for member in objects(tool.get("tools")) if member.get("defer_loading") is True]
            if tool.get("type") == "namespace" and members and tool.get("name") == path:
                found.append({**tool, "tools": members})
            elif tool.get("defer_loading") is True and path in (tool.get("name"), tool.get("server_label")):
                found.append(tool)
    return found


def defers(tools: Iterable[Any]) -> bool:
    """Whether any tool, or member of a namespace, is deferred."""
    found = [as_object(tool) or {} for tool in tools]
    return any(tool.get("defer_loading") is True or defers(as_list(tool.get("tools"))) for tool in found)


def _named(tool: Mapping[str, Any]) -> Json:
    """The name and the description of a tool, whatever its kind calls them."""
    name = tool.get("name") or tool.get("server_label")
    description = tool.get("description") or tool.get("server_description") or ""
    return {"name": name, "description": description}
