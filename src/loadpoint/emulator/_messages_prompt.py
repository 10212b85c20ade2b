"""A Messages request as the model gets it: deferred definitions out, loaded ones where the transcript loads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .._json import Json, as_list, as_object, canonical, digest, dumps
from ._cache import Part
from ._dialect import Prompt
from ._script import Called, Shown

_NOT_PROMPT = ("cache_control", "defer_loading")
CHANGES = ("tool_addition", "tool_removal")
_THINKING = ("thinking", "redacted_thinking")
_SEARCH = {"tool_search_tool_regex", "tool_search_tool_bm25"}


@dataclass(slots=True)
class _Reading:
    """What reading the transcript finds out."""

    parts: list[Part] = field(default_factory=list[Part])
    loaded: dict[str, Shown] = field(default_factory=dict[str, Shown])
    removed: set[str] = field(default_factory=set[str])
    defined: dict[str, Json] = field(default_factory=dict[str, Json])


def prompt(body: Json) -> Prompt:
    """The parts of `body` in the order of the cache (tools, system, messages), and the views for a script."""
    tools = [tool for tool in map(as_object, as_list(body.get("tools"))) if tool]
    declared = {str(tool.get("name")): tool for tool in tools}
    resident = [tool for tool in tools if tool.get("defer_loading") is not True]
    messages = [message for message in map(as_object, as_list(body.get("messages"))) if message]
    reading = _Reading()
    parts = [] if resident else _first_definition(messages)
    parts += [Part("tools", _definition(tool), marker(tool)) for tool in resident]
    parts += [Part("system", str(block.get("text")), marker(block)) for block in blocks_of(body.get("system"))]
    parts.append(Part("settings", _settings(body, messages)))
    for role, block in _kept(messages):
        reading.parts.append(_block_part(role, block, declared, reading))
    parts += _automatic(body, reading.parts)
    shown = {str(tool.get("name")): _shown(tool) for tool in resident} | reading.loaded
    visible = tuple(tool for name, tool in shown.items() if name not in reading.removed)
    choice = _choice(body)
    return Prompt(
        parts=parts,
        shown=visible,
        deferred=tuple(name for name in declared if name not in shown or name in reading.removed),
        loaded=tuple(reading.loaded),
        history=_history(messages),
        texts=_texts(messages),
        choice=choice if tools or reading.loaded else "none",
        scope=(),
    )


def blocks_of(content: Any) -> list[Json]:
    """Content as a list of blocks; text is one text block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in map(as_object, as_list(content)) if block]


def marker(holder: Mapping[str, Any]) -> str | None:
    """The lifetime of the cache marker on a tool or block, or None."""
    control = as_object(holder.get("cache_control"))
    return None if control is None else str(control.get("ttl") or "5m")


def references(block: Json) -> Iterator[tuple[int, Json]]:
    """The tool references of a tool result or of a server-side search result, with their positions."""
    content = block.get("content")
    found = as_object(content)
    items = as_list(found.get("tool_references")) if found is not None else as_list(content)
    for at, item in enumerate(items):
        reference = as_object(item)
        if reference is not None and reference.get("type") == "tool_reference":
            yield at, reference


def digests(body: Json) -> list[str]:
    """For each message the digest of everything before it, and last that of the whole: what thinking is bound to.

    Thinking blocks, cache markers and deferred tools that nothing references are not part of it.
    """
    tools = [tool for tool in map(as_object, as_list(body.get("tools"))) if tool]
    declared = {str(tool.get("name")): tool for tool in tools}
    state = digest(
        *(_definition(tool) for tool in tools if tool.get("defer_loading") is not True),
        *(str(block.get("text")) for block in blocks_of(body.get("system"))),
    )
    found: list[str] = []
    for message in map(as_object, as_list(body.get("messages"))):
        found.append(state)
        role = str((message or {}).get("role"))
        for block in blocks_of((message or {}).get("content")):
            if block.get("type") not in _THINKING:
                state = digest(state, _block_part(role, block, declared, _Reading()).text)
    return [*found, state]


def _definition(tool: Json) -> str:
    return dumps({key: value for key, value in tool.items() if key not in _NOT_PROMPT and value is not None})


def _shown(tool: Json) -> Shown:
    name = str(tool.get("name"))
    return Shown(name, str(tool.get("description") or ""), as_object(tool.get("input_schema")) or {})


def _settings(body: Json, messages: Sequence[Json]) -> str:
    """Parameters that void the cached messages when they change."""
    choice = as_object(body.get("tool_choice"))
    output = as_object(body.get("output_config")) or {}
    kinds = {str(block.get("type")) for message in messages for block in blocks_of(message.get("content"))}
    return canonical(
        {
            "tool_choice": None if choice == {"type": "auto"} else choice,
            "thinking": body.get("thinking"),
            "effort": output.get("effort"),
            "images": "image" in kinds,
        }
    )


def _kept(messages: Sequence[Json]) -> list[tuple[str, Json]]:
    """Role and block of all that the model still gets: a compaction stands for everything before it.

    https://platform.claude.com/docs/en/build-with-claude/compaction; one without content has failed.
    """
    found = [(str(message.get("role")), block) for message in messages for block in blocks_of(message.get("content"))]
    starts = [at for at, (_, block) in enumerate(found) if is_compaction(block)]
    return found[starts[-1] :] if starts else found


def is_compaction(block: Json) -> bool:
    """Whether a block stands for what came before it."""
    return block.get("type") == "compaction" and isinstance(block.get("content"), str)


def changes_of(block: Json) -> list[Json]:
    """The changes of the tools that a block makes, or that a compaction keeps."""
    made = as_list(block.get("tool_changes")) if is_compaction(block) else [block]
    return [change for change in map(as_object, made) if change and change.get("type") in CHANGES]


def _block_part(role: str, block: Json, declared: Mapping[str, Json], reading: _Reading) -> Part:
    kind = str(block.get("type"))
    unseen = ("cache_control", "tool", "tool_changes")
    kept = {key: block[key] for key in sorted(block) if key not in unseen and block[key] is not None}
    changed = as_object(block.get("tool")) or {}
    if changed:
        kept["tool"] = {key: value for key, value in changed.items() if key != "definition"}
    if kind == "tool_result" and isinstance(kept.get("content"), str):
        kept["content"] = blocks_of(kept["content"])
    text = f"{role}:{dumps(kept)}"
    for name, tool in _loads(kind, block, {**declared, **reading.defined}):
        same = reading.defined.get(name) == tool and name not in reading.removed
        if not same or changed.get("type") != "tool_definition":  # "an identical resend is a no-op"
            text += _definition(tool)
        reading.loaded[name] = _shown(tool)
        reading.removed.discard(name)
    for change in changes_of(block):
        tool = as_object(change.get("tool")) or {}
        if change["type"] == "tool_removal":
            reading.removed.add(str(tool.get("name")))
        if defined := as_object(tool.get("definition")):
            reading.defined[str(defined.get("name"))] = defined
    run = kind if kind in ("tool_use", "tool_result") else None
    by_value = as_object((as_object(block.get("tool")) or {}).get("definition")) or {}
    return Part("messages", text, marker(block) or marker(by_value), run=run)


def _loads(kind: str, block: Json, declared: Mapping[str, Json]) -> Iterator[tuple[str, Json]]:
    """The tools that a block loads at its place."""
    if kind in ("tool_result", "tool_search_tool_result"):
        for _, reference in references(block):
            name = str(reference.get("tool_name"))
            if name in declared:
                yield name, declared[name]
    for change in changes_of(block):
        added = as_object(change.get("tool")) or {} if change["type"] == "tool_addition" else {}
        tool = as_object(added.get("definition")) or declared.get(str(added.get("name")))
        if tool is not None:
            yield str(tool.get("name")), tool


def _first_definition(messages: Sequence[Json]) -> list[Part]:
    """What changes at the very start when the first tool is defined by value and no tool is resident: a full miss."""
    for message in messages:
        for block in blocks_of(message.get("content")):
            if block.get("type") == "tool_addition" and (as_object(block.get("tool")) or {}).get("definition"):
                return [Part("settings", "tools")]
    return []


def _automatic(body: Json, parts: list[Part]) -> list[Part]:
    """A cache marker on the request itself stands on the last block."""
    lifetime = marker(body)
    if lifetime is None or not parts:
        return parts
    last = parts[-1]
    return [*parts[:-1], Part(last.segment, last.text, last.marker or lifetime, run=last.run)]


def _choice(body: Json) -> str:
    choice = as_object(body.get("tool_choice")) or {}
    kind = str(choice.get("type") or "auto")
    if kind == "tool":
        return str(choice.get("name"))
    return "required" if kind == "any" else kind


def text_of(content: Any) -> str:
    """The joined text blocks of a content."""
    return "\n".join(str(block.get("text")) for block in blocks_of(content) if block.get("type") == "text")


def _is_request(message: Json) -> bool:
    """Whether the user says something, rather than answering calls."""
    kinds = {str(block.get("type")) for block in blocks_of(message.get("content"))}
    return message.get("role") == "user" and "tool_result" not in kinds


def _texts(messages: Sequence[Json]) -> tuple[str, ...]:
    return tuple(text_of(message.get("content")) for message in messages if _is_request(message))


def _history(messages: Sequence[Json]) -> tuple[Called, ...]:
    results: dict[str, Json] = {}
    for message in messages:
        for block in blocks_of(message.get("content")):
            if str(block.get("type")).endswith("tool_result"):
                results[str(block.get("tool_use_id"))] = block
    last = max((at for at, message in enumerate(messages) if _is_request(message)), default=-1)
    history: list[Called] = []
    for at, message in enumerate(messages):
        for block in blocks_of(message.get("content")):
            if block.get("type") not in ("tool_use", "server_tool_use"):
                continue
            id_ = str(block.get("id"))
            result = results.get(id_)
            names = tuple(str(reference.get("tool_name")) for _, reference in references(result or {}))
            text = None if result is None else text_of(result.get("content"))
            failed = result is not None and result.get("is_error") is True
            arguments = as_object(block.get("input")) or {}
            history.append(Called(str(block.get("name")), id_, arguments, text, failed, names, at > last))
    return tuple(history)


def is_search_tool(tool: Mapping[str, Any]) -> bool:
    """Whether a tool entry is the provider's own search."""
    return str(tool.get("name")) in _SEARCH and str(tool.get("type")).startswith("tool_search_tool")
