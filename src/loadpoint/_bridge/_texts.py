"""Pieces of what the bridge tells the model: calls spelled out, names that may be shown, usage of a tool."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from .._catalog import clean_text, described, is_plain_name
from .._json import as_list
from .._tool import Tool

_ABOUT = 200
"""Characters of a description in a list."""

_LINE, _TEXT = 2_000, 12_000
"""Characters of one line of a description, and of all of it."""

_NAMES, _NEAR, _ALIKE = 20, 3, 70
"""Names in one line; near names that are told; how like (0 to 100) a near name is at least."""

_HEADING = re.compile(r"^\s*#+\s*")


def spelled(name: str, arguments: Mapping[str, object]) -> str:
    """The call that the model is to make next, as it would write it."""
    return f"{name}({json.dumps(arguments, ensure_ascii=False)})"


def shown(name: str) -> str:
    """`name` where it may stand in a prompt, else words for it: a name is not a place for instructions."""
    return name if is_plain_name(name) else "a tool whose name cannot be shown"


def listed(names: Sequence[str]) -> str:
    """`names` in one line, at most 20; those that may not be shown, and the rest, are counted."""
    plain = [name for name in names if is_plain_name(name)]
    parts = plain[:_NAMES]
    if len(plain) > _NAMES:
        parts.append(f"{len(plain) - _NAMES} more")
    if len(plain) < len(names):
        count = len(names) - len(plain)
        parts.append(f"{count} with characters that no name here has" if count > 1 else "one that cannot be shown")
    return ", ".join(parts)


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """At most three of the `known` names that look like `name`, the most alike first; [] for a name beyond reading."""
    if not is_plain_name(name):
        return []
    from rapidfuzz import fuzz, process

    plain = sorted(filter(is_plain_name, known))
    found = process.extract(name, plain, scorer=fuzz.ratio, processor=str.casefold, limit=_NEAR, score_cutoff=_ALIKE)
    return [match[0] for match in found]


def line(tool: Tool) -> str:
    """One line of a list: the tool's name and what it does."""
    about = described(tool, _ABOUT)
    return f'- {tool.name}: "{about}"' if about else f"- {tool.name}"


def usage(tool: Tool) -> str:
    """How a tool is used: description, parameter schema, guidelines, under a heading with its name."""
    parts = [f"## {tool.name}"]
    if about := prose(tool.description):
        parts.append(about)
    parts.append(f"Parameters (JSON Schema):\n{schema_text(tool.parameters, pretty=True)}")
    if rules := [f"- {clean_text(rule, _LINE)}" for rule in tool.guidelines if rule.strip()]:
        parts.append("\n".join(["Guidelines:", *rules]))
    return "\n".join(parts)


def prose(text: str) -> str:
    """A third party's text, line by line without invisible characters; none of its lines is a heading of ours."""
    lines = (clean_text(_HEADING.sub("- ", written), _LINE) for written in text[:_TEXT].splitlines())
    return "\n".join(filter(None, lines))


def schema_text(schema: Mapping[str, object], *, pretty: bool = False) -> str:
    """A schema as JSON text, loss-free: characters that cannot be seen are written as escapes.

    `pretty` gives every parameter its line. What holds no further schema stays on one line, for each line break and
    each level of indentation is paid for: 20% more tokens than without, and 68% where every value has a line.
    """
    try:
        text = _lines(schema, 0) if pretty else _flat(schema)
    except (TypeError, ValueError, RecursionError):
        return "{}"
    return text if text.isascii() else "".join(map(_seen, text))


def _flat(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _lines(value: object, depth: int) -> str:
    if not any(isinstance(inner, Mapping) or any(map(_is_mapping, as_list(inner))) for inner in _values(value)):
        return _flat(value)
    pad = "\n" + " " * (depth + 1)
    if isinstance(value, Mapping):
        fields = cast("Mapping[object, object]", value)
        parts = [f"{_flat(str(key))}: {_lines(inner, depth + 1)}" for key, inner in fields.items()]
        return f"{{{pad}{f',{pad}'.join(parts)}{pad[:-1]}}}"
    return f"[{pad}{f',{pad}'.join(_lines(inner, depth + 1) for inner in as_list(value))}{pad[:-1]}]"


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _values(value: object) -> Iterable[object]:
    return cast("Mapping[object, object]", value).values() if isinstance(value, Mapping) else as_list(value)


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    raise TypeError(type(value).__name__)


def _seen(char: str) -> str:
    if char == "\n" or char.isascii():
        return char
    hidden = unicodedata.category(char)[0] == "C" or char in "\u2028\u2029"
    return json.dumps(char)[1:-1] if hidden else char
