"""Walks an installed SDK: every public method of every resource, by the path under which a client has it."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

KINDS = ("deferred", "mirrored", "translated", "passed")
_CARRIES = {"tools", "messages"}


@dataclass(frozen=True)
class Surface:
    """One row of a `surfaces.toml`: a path or pattern, what happens to calls of it, and in which SDK versions it is."""

    path: str
    kind: str
    reason: str
    since: str | None = None
    until: str | None = None

    @property
    def exact(self) -> bool:
        return "*" not in self.path

    def present(self, version: str) -> bool:
        """Whether the SDK of this version has it."""
        at = _numbers(version)
        return (self.since is None or _numbers(self.since) <= at) and (self.until is None or at < _numbers(self.until))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3])


def surfaces(package: str) -> list[Surface]:
    """The table of one adapter."""
    module = __import__(f"loadpoint_adapters.{package}", fromlist=["adapter"])
    path = Path(str(module.__file__)).with_name("surfaces.toml")
    return [Surface(**row) for row in tomllib.loads(path.read_text(encoding="utf-8"))["surface"]]


def row_of(path: str, table: list[Surface]) -> Surface | None:
    """The row that speaks for a method: the exact one, else the longest pattern."""
    fitting = [row for row in table if row.path == path or fnmatchcase(path, row.path)]
    return max(fitting, key=lambda row: (row.exact, len(row.path)), default=None)


def methods(client: Any, resource: type[Any]) -> Iterator[tuple[str, bool]]:
    """(path, whether it takes tools or messages) of every method of every resource of `client`."""
    for name, value in _members(client, resource):
        if isinstance(value, resource):
            yield from _walk(value, name, resource)


def _walk(found: Any, path: str, resource: type[Any]) -> Iterator[tuple[str, bool]]:
    for name, value in _members(found, resource):
        if isinstance(value, resource):
            yield from _walk(value, f"{path}.{name}", resource)
        elif callable(value):
            yield f"{path}.{name}", bool(_CARRIES & set(_parameters(value)))


def _members(owner: Any, resource: type[Any]) -> Iterator[tuple[str, Any]]:
    for name in dir(type(owner)):
        # raw and streaming variants are derived from the methods themselves
        if not name.startswith(("_", "with_")) and hasattr(owner, name):
            yield name, getattr(owner, name)


def _parameters(method: Any) -> list[str]:
    try:
        return list(inspect.signature(method).parameters)
    except (TypeError, ValueError):
        return []
