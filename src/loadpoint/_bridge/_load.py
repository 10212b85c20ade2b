"""`load_tools`: what the model asks for, and the text that answers it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from .._catalog import clean_text, is_plain_name
from .._json import as_list, as_object, parse_object
from .._tool import Tool
from ._names import Bridge
from ._texts import line, listed, nearest, spelled, usage

_EXPECTED = 'expected {"tools": [names], "query"?: string, "confirm"?: boolean}'
_NAME_KEYS = ("tools", "tool", "names", "name", "tool_names", "tool_name")
_QUERY_KEYS = ("query", "q", "search", "keywords", "text")
_WRAPPERS = ("arguments", "args", "params", "parameters", "input")
_MOST_NAMES, _QUERY = 50, 4_000
_ALSO = 5
"""How many of the tools that fit less well are named."""
_FIRST = "Loaded: "
_SECOND = "Usable from now on, through "
_PLAIN: Final = Bridge()


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """What a `load_tools` call asks for: names, words, and whether the model confirms."""

    tools: tuple[str, ...] = ()
    query: str = ""
    confirm: bool = False


@dataclass(frozen=True, slots=True)
class LoadAnswer:
    """The answer to a `load_tools` call. `added` are the newly loaded names, `hits` what the query found.

    `challenged`: nothing happened, the model has to confirm. `failed`: nothing can be used now and nothing confirmed.
    """

    text: str
    added: tuple[str, ...] = ()
    challenged: bool = False
    failed: bool = False
    hits: tuple[str, ...] = ()


def parse_load(raw: object) -> LoadRequest | str:
    """The request in a `load_tools` call's arguments, or a text for the model that says what is expected. Never raises.

    `raw` is the JSON text or the parsed value. Obvious shapes are understood: one name as a string, a list as text,
    objects with a name, other keys, arguments wrapped once more. An empty object is a request for nothing.
    """
    value = _read(raw) if isinstance(raw, str) else raw
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return f"The arguments are not valid JSON; {_EXPECTED}"
    for _ in range(3):
        inner = _unwrapped(value)
        if inner is None:
            break
        value = inner
    if isinstance(value, str):
        return LoadRequest((value,)) if is_plain_name(value) else LoadRequest(query=value.strip()[:_QUERY])
    found = as_object(value)
    if found is None:
        names = _names_in(value)
        return LoadRequest(names) if names else f"The arguments are no object; {_EXPECTED}"
    names = tuple(dict.fromkeys(name for key in _NAME_KEYS for name in _names_in(found.get(key))))
    words = next((text.strip() for key in _QUERY_KEYS if isinstance(text := found.get(key), str) and text.strip()), "")
    agreed: object = found.get("confirm")
    return LoadRequest(names[:_MOST_NAMES], words[:_QUERY], agreed is True or str(agreed).lower() == "true")


def _read(text: str) -> object:
    """The JSON value in `text`, also in a string in it; the text itself if it is none."""
    value: object = text if text.strip() else cast("dict[str, object]", {})
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def _unwrapped(value: object) -> object | None:
    """What stands inside a value that only wraps the arguments; None for the arguments themselves."""
    if isinstance(value, str):
        return parse_object(value) if value.lstrip().startswith("{") else None
    found = as_object(value) or {}
    key = next((key for key in _WRAPPERS if key in found), None)
    if key is None or any(name in found for name in (*_NAME_KEYS, *_QUERY_KEYS)):
        return None
    inner: object = found[key]
    return inner if isinstance(inner, str) or as_object(inner) is not None or as_list(inner) else None


def _names_in(value: object) -> tuple[str, ...]:
    """The names in a list of strings or of objects with a name, in a list as text, or in one string."""
    if isinstance(value, str):
        text = value.strip()
        if text.startswith("["):
            try:
                return _names_in(as_list(json.loads(text)))
            except (ValueError, RecursionError):
                return ()
        parts = (part.strip() for part in text.split(","))
        return tuple(dict.fromkeys(part for part in parts if part))
    names: list[str] = []
    for item in as_list(value)[:_MOST_NAMES]:
        name: object = item
        inner = as_object(item)
        if inner is not None:
            name = inner.get("name", inner.get("tool"))
        if isinstance(name, str) and name.strip():
            names.append(name.strip())
    return tuple(dict.fromkeys(names))


@dataclass(frozen=True, slots=True)
class _Sorted:
    """A request, name by name. `chosen` is what may be used after it, `new` those that are not loaded yet."""

    chosen: tuple[str, ...]
    new: tuple[str, ...]
    notes: tuple[str, ...]
    """What is told about all other names."""
    hits: tuple[str, ...]


def answer_load(  # noqa: PLR0913 - a pure function of everything that an answer depends on
    request: LoadRequest,
    *,
    listed: Mapping[str, Tool],
    registered: Collection[str],
    loaded: Collection[str],
    resident: Collection[str],
    search: Callable[[str, int], tuple[Sequence[str], Sequence[str]]],
    untold: Collection[str] = (),
    confirm: str = "never",
    load_at_most: int = 4,
    load_tokens: int = 4000,
    size_of: Callable[[str], int] = lambda _: 0,
    bridge: Bridge = _PLAIN,
) -> LoadAnswer:
    """The answer to a `load_tools` call: a pure function of its arguments.

    `listed` are the deferred tools, `registered` the names that have a definition now; `search(words, limit)` gives
    the names to load and those that fit less well, best first. `untold` are loaded tools whose usage stands nowhere in
    what is sent: it is told again without being a load. The first tool always loads, further ones up to `load_at_most`
    and within `load_tokens` by `size_of`. `confirm`: "never" loads at once, "model" asks the model to confirm first and
    does nothing before it did, "refused" says that the application did not agree.
    """
    if not request.tools and not request.query:
        example = spelled(bridge.load, {"tools": ["NAME"]})
        return LoadAnswer(f"No tools requested, nothing was loaded. Name what is needed: {example}", failed=True)
    limits = (load_at_most, load_tokens)
    found = _sorted(request, listed, registered, loaded, untold, resident, search, limits, size_of, bridge)
    if not found.chosen:
        notes = found.notes or (_nothing_found(request.query),)
        then = f"To look for another: {spelled(bridge.load, {'query': 'WORDS FOR WHAT IT DOES'})}"
        return LoadAnswer("\n".join(("Nothing was loaded.", *notes, then)), failed=True, hits=found.hits)
    if confirm == "refused":
        text = (
            "Nothing was loaded: the application did not agree. Do not ask for these tools again; go on without them."
        )
        return LoadAnswer(text, failed=True, hits=found.hits)
    tools = [listed[name] for name in found.chosen]
    if confirm == "model" and found.new and not request.confirm:
        return LoadAnswer(_challenge(tools, found.notes, bridge), challenged=True, hits=found.hits)
    return LoadAnswer(_loaded_text(tools, found.notes, bridge), found.new, hits=found.hits)


def _sorted(  # noqa: PLR0913, PLR0917 - the same
    request: LoadRequest,
    on_list: Mapping[str, Tool],
    registered: Collection[str],
    loaded: Collection[str],
    untold: Collection[str],
    resident: Collection[str],
    search: Callable[[str, int], tuple[Sequence[str], Sequence[str]]],
    limits: tuple[int, int],
    size_of: Callable[[str], int],
    bridge: Bridge,
) -> _Sorted:
    at_most, budget = limits
    usable = {name for name in on_list if name in registered and is_plain_name(name)}
    close, less = search(request.query, 4 * at_most) if request.query else ((), ())
    found = tuple(dict.fromkeys(close))
    hits = [name for name in found if name in usable and name not in request.tools]
    wanted = [name for name in request.tools if name in usable]
    wanted += [name for name in hits if name not in loaded or name in untold][:at_most]
    chosen: list[str] = []
    spent = 0
    for name in wanted:
        size = size_of(name)
        if not chosen or (len(chosen) < at_most and spent + size <= budget):
            chosen.append(name)
            spent += size
    over = [name for name in request.tools if name in usable and name not in chosen]
    done = {*request.tools, *chosen, *loaded}
    rest = [name for name in dict.fromkeys((*hits, *less)) if name in usable and name not in done]
    own = [name for name in (*request.tools, *found[:at_most]) if name in resident and name not in usable]
    missing = [name for name in request.tools if name in on_list and name not in registered]
    other = [name for name in request.tools if name not in usable and name not in own and name not in missing]
    notes = [
        _note("Rejected, in your own list already: {}. Call it directly.", own),
        _note("Rejected, on the list but without a definition (metadata not found): {}.", missing),
        _note("Rejected, not on the list of tools that can be loaded: {}.", other),
        *(_near(name, (*usable, *resident)) for name in other[:5]),
        _note("Loaded before: {}.", [name for name in hits if name in loaded and name not in chosen][:at_most]),
        _note("Also found, not loaded: {}.", rest[:_ALSO]),
    ]
    if over:
        then = spelled(bridge.load, {"tools": over})
        notes.append(f"Not loaded, because one call loads only so much: {listed(over)}. Next, if needed: {then}")
    new = tuple(name for name in chosen if name not in loaded)
    return _Sorted(tuple(chosen), new, tuple(filter(None, notes)), tuple(name for name in found if name in usable))


def _note(text: str, names: Sequence[str]) -> str:
    return text.format(listed(list(dict.fromkeys(names)))) if names else ""


def _near(name: str, known: Sequence[str]) -> str:
    names = nearest(name, known)
    return f"Nearest to {name}: {', '.join(names)}." if names else ""


def _nothing_found(query: str) -> str:
    return f'No tool fits "{_quoted(query)}": try other words for the action and its object.'


def _quoted(text: str) -> str:
    return clean_text(text, 200).replace('"', "'")


def _challenge(tools: Sequence[Tool], notes: Sequence[str], bridge: Bridge) -> str:
    call = spelled(bridge.load, {"tools": [tool.name for tool in tools], "confirm": True})
    return "\n".join(
        (
            "confirmRequired: true",
            "This call loaded nothing and activated nothing. It asks for:",
            *map(line, tools),
            f"Confirming activates them for the rest of this session: {bridge.call} can call them from then on.",
            "Confirm only what the user has explicitly asked to load; if nobody asked, ask the user first.",
            f"To confirm, call: {call}",
            *notes,
        )
    )


def _loaded_text(tools: Sequence[Tool], notes: Sequence[str], bridge: Bridge) -> str:
    example = f'{bridge.call}({{"tool": "{tools[0].name}", "params": {{...}}}})'
    head = f"{_FIRST}{', '.join(tool.name for tool in tools)}\n{_SECOND}{bridge.call}, such as {example}"
    return "\n\n".join((head, *map(usage, tools), *(["\n".join(notes)] if notes else [])))


_NAME = r"[A-Za-z0-9_.:-]+"
_RESULT = re.compile(
    rf"{_FIRST}(?P<names>{_NAME}(?:, {_NAME})*)\n"
    rf"{_SECOND}(?P<call>\w+), such as "
    rf'(?P=call)\(\{{"tool": "(?P<first>{_NAME})", "params": \{{\.\.\.\}}\}}\)\n\n'
)


def loaded_names(text: str) -> tuple[str, ...] | None:
    """The names that a `load_tools` result of ours says are loaded; None for any other text.

    Only the head that `answer_load` writes counts, with the sections that it announces behind it, in their order.
    """
    head = _RESULT.match(text)
    if head is None:
        return None
    names = tuple(head["names"].split(", "))
    if head["first"] != names[0] or len(set(names)) < len(names) or not all(map(is_plain_name, names)):
        return None
    at = head.end() - 1
    for name in names:
        at = text.find(f"\n## {name}\n", at)
        if at < 0:
            return None
    return names
