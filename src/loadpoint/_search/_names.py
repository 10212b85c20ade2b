"""Tool names: which server they belong to, and which tools a query means by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .._tool import Tool
from ._text import fold, level
from ._words import VERBS

_DOUBLE = re.compile(r"__+")
_SEPARATOR = re.compile(r"__+|[._\-:/ ]")
_LISTED = re.compile(r"[\s,;|]+")
_QUOTES = "`'\"()[]{}<>*"
_INNER_CAPITAL = re.compile(r"[a-z][A-Z]")
NAMES_AT_MOST = 50
"""Names that are looked for in one query."""


def infer_servers(tools: Sequence[Tool]) -> dict[str, str]:
    """Tool name -> server, for every tool that says or shows one; the rest is absent. Independent of the order.

    A stated `Tool.server` is kept. Else the prefix before the first separator counts once at least two tools share it:
    `mcp__S__t`, `S__t`, `S.t`, `S-t`, and `S_t` where S is no verb. Never changes a name.
    """
    found: dict[str, str] = {}
    claimed: dict[str, list[str]] = {}
    for tool in tools:
        if tool.server:
            found[tool.name] = tool.server
        elif prefix := _prefix(tool.name):
            claimed.setdefault(prefix, []).append(tool.name)
    for prefix, names in claimed.items():
        distinct = set(names)
        if len(distinct) > 1:
            found.update(dict.fromkeys(distinct, prefix))
    return found


def _prefix(name: str) -> str | None:
    parts = _DOUBLE.split(name)
    if parts[0] == "mcp" and len(parts) > 2:
        return parts[1] or None
    if len(parts) > 1 and parts[0]:
        return parts[0]
    for separator in (".", "-", "_"):
        head, mark, rest = name.partition(separator)
        if mark and head and rest:
            return None if head.lower() in VERBS else head
    return None


class Names:
    """The names of a registry as a query may write them: any case, any separators, with or without the server part."""

    __slots__ = ("_ends", "_whole")

    def __init__(self, names: Iterable[str]) -> None:
        self._whole: dict[str, list[int]] = {}
        self._ends: dict[str, list[int]] | None = None
        for position, name in enumerate(names):
            self._whole.setdefault(level(name) or fold(name), []).append(position)

    def exact(self, written: str) -> list[int]:
        """The positions of the tools whose whole name this is, separators and case levelled."""
        return self._whole.get(level(written) or fold(written), [])

    def bare(self, written: str, names: Sequence[str]) -> list[int]:
        """The positions of the tools whose name ends or begins, at a separator, with what is written."""
        if self._ends is None:
            self._ends = _ends(names)
        key = level(written)
        if not key:
            return []
        found = self._ends.get(key, [])
        if found:
            return found
        parts = [part for part in _SEPARATOR.split(written) if part]
        for skip in range(1, len(parts)):  # "tools.github.create_issue": a displayed path in front of the name
            rest = "".join(level(part) for part in parts[skip:])
            if hit := self._whole.get(rest):
                return hit
        return []


def _ends(names: Sequence[str]) -> dict[str, list[int]]:
    ends: dict[str, list[int]] = {}
    for position, name in enumerate(names):
        parts = [part for part in map(level, _SEPARATOR.split(name)) if part]
        keys: dict[str, None] = {}
        for cut in range(1, len(parts)):
            keys["".join(parts[cut:])] = None
            keys["".join(parts[:cut])] = None
        for key in keys:
            ends.setdefault(key, []).append(position)
    return ends


def written_names(query: str) -> tuple[list[str], bool]:
    """The pieces of `query` that may be names, and whether it asks for names only (`select:a,b`)."""
    head, mark, rest = query.partition(":")
    only = bool(mark) and head.strip().lower() in ("select", "names", "name")
    pieces = [piece.strip(_QUOTES) for piece in _LISTED.split(rest if only else query)]
    return [piece for piece in pieces if piece][:NAMES_AT_MOST], only


def looks_like_name(piece: str) -> bool:
    """Whether a piece of prose can only be an identifier: it has an inner separator or an inner capital."""
    return bool(_SEPARATOR.search(piece.strip("._-:/")) or _INNER_CAPITAL.search(piece))
