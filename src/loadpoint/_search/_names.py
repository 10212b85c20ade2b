"""Tool names: which server they belong to, and which tools a query means by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


def ends(name: str) -> set[str]:
    """What a query may write for `name` without the server in front or behind: its levelled parts, cut somewhere."""
    parts = [part for part in map(level, _SEPARATOR.split(name)) if part]
    cuts = range(1, len(parts))
    return {"".join(parts[cut:]) for cut in cuts} | {"".join(parts[:cut]) for cut in cuts}


def whole_name(name: str) -> str:
    """What is equal for names that differ in case and separators only."""
    return level(name) or fold(name)


def behind_paths(written: str) -> list[str]:
    """`tools.github.create_issue` without one, two ... leading parts, levelled: a displayed path in front of a name."""
    parts = [part for part in map(level, _SEPARATOR.split(written)) if part]
    return ["".join(parts[skip:]) for skip in range(1, len(parts))]


def written_names(query: str) -> tuple[list[str], bool]:
    """The pieces of `query` that may be names, and whether it asks for names only (`select:a,b`)."""
    head, mark, rest = query.partition(":")
    only = bool(mark) and head.strip().lower() in ("select", "names", "name")
    pieces = [piece.strip(_QUOTES) for piece in _LISTED.split(rest if only else query)]
    return [piece for piece in pieces if piece][:NAMES_AT_MOST], only


def looks_like_name(piece: str) -> bool:
    """Whether a piece of prose can only be an identifier: it has an inner separator or an inner capital."""
    return bool(_SEPARATOR.search(piece.strip("._-:/")) or _INNER_CAPITAL.search(piece))
