"""The tools a bench run works with: the embedded ones, files of `tools/list` answers, smaller and larger sets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from .._json import Json, as_object

LONGEST_NAME = 64
_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")


class ToolFileError(ValueError):
    """A file of tools that cannot be used; the message names the file and the problem."""


@dataclass(frozen=True, slots=True)
class BenchTool:
    """One tool as an application registers it: `name` on the wire, `own` as its server calls it."""

    server: str
    own: str
    name: str
    description: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools in registration order, with unique wire names. `copies` says how many are renamed copies of others."""

    tools: tuple[BenchTool, ...]
    copies: int = 0

    def __len__(self) -> int:
        return len(self.tools)

    @property
    def servers(self) -> int:
        """How many servers the tools come from."""
        return len({tool.server for tool in self.tools})

    def find(self, server: str, own: str) -> BenchTool | None:
        """The tool of that server and name, whichever way its server spells them; None if it is not here."""
        spelled = f"{server}_{own}"
        for tool in self.tools:
            if (tool.server, tool.own) == (server, own) or tool.own == spelled:
                return tool
        return None

    def sized(self, count: int, keep: Iterable[BenchTool] = ()) -> ToolSet:
        """A set of exactly `count` tools (or as many as `keep` has): a selection, or all and renamed copies.

        A selection has everything in `keep` and takes the rest evenly from the whole list, in its order. Copies are
        what a second and third connection of the same server looks like; they stand behind the originals.
        """
        if count >= len(self.tools):
            extra = tuple(self._copy(at) for at in range(count - len(self.tools)))
            return ToolSet((*self.tools, *extra), copies=len(extra))
        chosen = {tool.name for tool in keep}
        others = [tool.name for tool in self.tools if tool.name not in chosen]
        room = max(count - len(chosen), 0)
        chosen |= {others[at * len(others) // room] for at in range(room)}
        return ToolSet(tuple(tool for tool in self.tools if tool.name in chosen))

    def _copy(self, at: int) -> BenchTool:
        tool, number = self.tools[at % len(self.tools)], at // len(self.tools) + 2
        server = f"{tool.server}_{number}"
        name = _fitting(f"{server}__{tool.own}")
        return replace(tool, server=server, name=name, description=f"{tool.description} (connection {number})")


def embedded() -> ToolSet:
    """The tools that were written for this project, in alphabetical order of their servers."""
    folder = files(__name__.rpartition(".")[0]) / "tools"
    entries: list[tuple[str, Json]] = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if file.name.endswith(".json"):
            entries += _entries(file.name, json.loads(file.read_text(encoding="utf-8")))
    return _named(entries)


def from_files(paths: Sequence[str | Path]) -> ToolSet:
    """The tools of files: MCP `tools/list` answers, bare lists of tools, or `{"server": ..., "tools": [...]}`.

    A folder stands for its `*.json` files in alphabetical order. Raises `ToolFileError`, naming file and problem, for
    one that cannot be read, is no JSON, or has no usable tools.
    """
    entries: list[tuple[str, Json]] = []
    for path in (file for given in map(Path, paths) for file in _files(given)):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ToolFileError(f"{path}: cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise ToolFileError(f"{path}: is not UTF-8 text: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ToolFileError(f"{path}: is not JSON: {error}") from error
        entries += _entries(str(path), data, default=_alias(path.stem))
    return _named(entries)


def _files(path: Path) -> Sequence[Path]:
    if not path.is_dir():
        return [path]
    found = sorted(path.glob("*.json"))
    if not found:
        raise ToolFileError(f"{path}: the folder has no *.json")
    return found


def _entries(label: str, data: object, default: str = "") -> list[tuple[str, Json]]:
    body = as_object(data)
    server, listed = default, data
    if body is not None:
        result = as_object(body.get("result"))  # a whole JSON-RPC answer
        listed = (result or body).get("tools")
        named: object = body.get("server")
        server = _alias(named) if isinstance(named, str) and named else default
    if not isinstance(listed, list):
        found = "an object without a list `tools`" if body is not None else type(data).__name__
        raise ToolFileError(f"{label}: expected a list of tools or an object with a list `tools`, found {found}")
    if not listed:
        raise ToolFileError(f"{label}: the list of tools is empty")
    return [(server, _checked(f"{label}: tools[{at}]", tool)) for at, tool in enumerate(cast("list[object]", listed))]


def _alias(package: str) -> str:
    """What a user calls a server: its package's name without the words that most of them share."""
    words = [word for word in re.split(r"[-_/@ ]", package) if word.lower() not in {"", "mcp", "server"}]
    return "-".join(words) or package


def _checked(where: str, value: object) -> Json:
    tool = as_object(value)
    if tool is None:
        raise ToolFileError(f"{where}: expected an object, found {type(value).__name__}")
    name: object = tool.get("name")
    if not isinstance(name, str) or not name:
        raise ToolFileError(f"{where}.name: expected a non-empty string, found {name!r}")
    description: object = tool.get("description")
    if description is not None and not isinstance(description, str):
        raise ToolFileError(f"{where} ({name}).description: expected a string, found {type(description).__name__}")
    schema: object = _schema(tool)
    if schema is not None and as_object(schema) is None:
        raise ToolFileError(f"{where} ({name}).inputSchema: expected an object, found {type(schema).__name__}")
    return tool


def _schema(tool: Json) -> Any:
    return next((tool[key] for key in ("inputSchema", "input_schema", "parameters") if key in tool), None)


def _named(entries: Sequence[tuple[str, Json]]) -> ToolSet:
    """Wire names: the server before the tool, unless the tool's name begins with it already; made unique by numbers."""
    taken: set[str] = set()
    tools: list[BenchTool] = []
    for server, entry in entries:
        own: str = entry["name"]
        prefixed = not server or own.startswith((f"{server}_", f"{server}-", f"{server}."))
        name = base = _fitting(own if prefixed else f"{server}__{own}")
        number = 1
        while name in taken:
            number += 1
            name = f"{base[: LONGEST_NAME - 4]}_{number}"
        taken.add(name)
        given: Json = _schema(entry) or {"properties": {}}
        schema = given if given.get("type") == "object" else {**given, "type": "object"}  # APIs refuse any other
        tools.append(BenchTool(server, own, name, entry.get("description") or "", schema))
    return ToolSet(tuple(tools))


def _fitting(name: str) -> str:
    """`name` in the characters and length that every API takes."""
    return _FOREIGN.sub("_", name)[-LONGEST_NAME:]


def distribution(sizes: Iterable[int]) -> dict[str, int]:
    """Quantiles of token counts: `least`, `median`, `p90`, `most`, and how many are `over_2000`; zeros if empty."""
    ordered = sorted(sizes)
    if not ordered:
        return {"least": 0, "median": 0, "p90": 0, "most": 0, "over_2000": 0}
    last = len(ordered) - 1
    return {
        "least": ordered[0],
        "median": ordered[last // 2],
        "p90": ordered[round(last * 0.9)],
        "most": ordered[-1],
        "over_2000": sum(size > 2_000 for size in ordered),
    }
