"""Namespaces that we make for deferred functions, so that the provider's own search has few and short surfaces.

Of a namespace the model sees the name and the description until one is loaded, of a flat deferred function its name and
whole description, and a search loads whole namespaces; advised are fewer than ten functions in each
(https://developers.openai.com/api/docs/guides/tools-tool-search, read 2026-11-30).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from loadpoint._json import Json, digest
from loadpoint._search._names import infer_servers
from loadpoint._search._words import VERBS
from loadpoint._tool import Tool

from ._openai_responses_tools import AUTOMATIC

MOST = 9
"""Functions in one namespace."""
_LOOSE = "_tools"
"""Stands for a server in the namespaces of tools that belong to none; no server's part of a name begins so."""
_ABOUT = 32
"""Characters of a description: it is in the context of every request."""
_SERVER = 52
"""Characters of a server's name that fit into a namespace's, which is taken to have 64 as functions have."""
_SHORT = 2
_FOREIGN = re.compile(r"[^A-Za-z0-9-]+")
_DOUBLE = re.compile(r"__+")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_DULL = frozenset(("all", "and", "for", "from", "the", "with", "mcp", "api"))


def grouped(tools: Sequence[Json]) -> list[Json]:
    """The list with each flat deferred function in a namespace of ours that holds it alone.

    A pure function of the names in the list: the tools of a server stay in their groups when another server comes, and
    when tools are loaded or the list is written in another order. What is not deferred, and the caller's own
    namespaces, stay as they are.
    """
    names = {str(wire.get("name")) for wire in tools if wire.get("type") == "function"}
    places = _places(tuple(sorted(names)))
    out: list[Json] = []
    for wire in tools:
        box = places.get(str(wire.get("name"))) if _is_deferred(wire) else None
        out.append(wire if box is None else {"type": "namespace", **box, "tools": [wire]})
    return out


def _is_deferred(wire: Json) -> bool:
    return wire.get("type") == "function" and wire.get("defer_loading") is True


@lru_cache(maxsize=16)
def _places(names: tuple[str, ...]) -> dict[str, Json]:
    """For each function the name and description of its namespace; `names` are sorted. Every request asks for them."""
    servers = infer_servers([Tool(name=name, description="", parameters={}) for name in names])
    known = set(servers.values())
    members: dict[str, list[str]] = {}
    for name in names:
        members.setdefault(servers.get(name, name if name in known else ""), []).append(name)
    out: dict[str, Json] = {}
    for server, own in members.items():
        things = {name: _things(server, name) for name in own}
        for number, chunk in enumerate(_chunks(things), 1):
            said = _description([things[name] for name in chunk])
            box: Json = {"name": _name(server, number), "description": said}
            out.update((name, box) for name in chunk)
    return out


def _name(server: str, number: int) -> str:
    """The namespace's name. Equal names mean equal servers: what cannot be kept of one leaves a digest."""
    tail = f"__{number}" if number > 1 else ""
    part = _DOUBLE.sub("_", _FOREIGN.sub("_", server)).strip("_")
    if server and (part != server or len(part) > _SERVER):
        part = f"{part[: _SERVER - 5]}_{digest(server)[:4]}".lstrip("_")
    return f"{AUTOMATIC}{part if server else _LOOSE}{tail}"


def _chunks(things: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """The names in groups of at most `MOST`, those that work on the same thing side by side."""
    counts = Counter(word for words in things.values() for word in dict.fromkeys(words))
    families: dict[str, list[str]] = {}
    for name, words in things.items():
        # A word that too many share tells no more than the server does.
        key = min(words, key=lambda word: (-counts[word] if counts[word] <= MOST else 0, word), default="")
        families.setdefault(key, []).append(name)
    out: list[list[str]] = []
    for _, family in sorted(families.items()):
        if out and len(out[-1]) + len(family) <= MOST:
            out[-1] += family
        else:
            out += [family[at : at + MOST] for at in range(0, len(family), MOST)]
    return out


def _things(server: str, name: str) -> list[str]:
    """The words of a name that say what a tool works on; of one without a server those that may be one."""
    if not server:
        return [word for word in _DOUBLE.split(name)[0].lower().split("_") if word not in VERBS][:1] or [name.lower()]
    own = name.partition(server)[2] if server in name else name
    words = [word.lower() for word in _WORD.findall(own)]
    return [word for word in words if len(word) > _SHORT and word not in VERBS and word not in _DULL] or words


def _description(things: Sequence[Sequence[str]]) -> str:
    """What the tools work on, in as many words as fit: the most frequent first."""
    counts = Counter(word for words in things for word in dict.fromkeys(words))
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    said = ordered[0][:_ABOUT] if ordered else "tools"
    for word in ordered[1:]:
        if word.rstrip("s") in said:
            continue  # another form of a word that stands there already
        longer = f"{said}, {word}"
        if len(longer) > _ABOUT:
            break
        said = longer
    return said
