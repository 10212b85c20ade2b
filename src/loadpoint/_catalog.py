"""The bounded listing of deferred tools: names and one line each, never schemas. A pure function of the tools."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain, islice

from ._search import infer_servers
from ._tokens import tokens_at_most
from ._tool import Tool

HEADING = "# On-demand tools"
"""The first line of every catalog."""

PLAIN_NAME = r"[A-Za-z0-9_.:-]{1,128}"
"""A name that may stand in a prompt: it has no room for instructions."""

_NAME = re.compile(PLAIN_NAME)
_FOREIGN = re.compile(r"[^A-Za-z0-9_.:-]+")
_LINE_LENGTHS = (100, 60, 30)
"""Characters of a description in the forms that have descriptions."""

_GROUPS = (64, 32, 16, 8, 4)
"""How many groups are counted by name, where not all can be."""

_TAG = re.compile(r"<(?=[|/!?A-Za-z])")


def clean_text(text: str, limit: int) -> str:
    """`text` as one line of at most `limit` characters, safe to stand in a prompt.

    White space of every kind becomes one space; control, bidirectional, invisible and private characters are dropped;
    lone surrogates become U+FFFD. What is cut ends in an ellipsis.
    """
    if limit < 1:
        return ""
    kept = text[: limit * 8 + 256]  # looking further costs time and can hardly change what is kept
    if not (kept.isascii() and kept.isprintable()):
        kept = "".join(map(_safe, kept))
    line = " ".join(kept.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "\u2026"


def _safe(char: str) -> str:
    if char.isspace():
        return " "
    category = unicodedata.category(char)
    if category == "Cs":
        return "\ufffd"
    return "" if category[0] == "C" else char


def is_plain_name(name: str) -> bool:
    """Whether a tool's name may stand in a prompt: 1 to 128 of ASCII letters, digits, `_`, `.`, `:`, `-`."""
    return _NAME.fullmatch(name) is not None


def catalog(tools: Sequence[Tool], budget_tokens: int) -> str:
    """The catalog text of the deferred `tools`, at most `budget_tokens` long; "" if there is no room or no tool.

    Grouped by server, then by name, whatever the order of `tools`. Degrades in fixed steps: lines with descriptions,
    with shorter ones, names only (a shared beginning once: `mail_*: send, list`), names of the small groups and counts
    of the others, counts of the largest groups, the total. Names that are not plain are counted, never shown;
    descriptions stand in quotation marks on their tool's own line. The budget is kept by an estimate from above, so
    that it holds under real tokenizers.
    """
    if budget_tokens < 1 or not tools:
        return ""
    groups = _grouped(tools)
    total = sum(map(len, groups.values()))
    heading = f"{HEADING}\n"
    steps = chain(
        (_full(groups, length) for length in _LINE_LENGTHS),
        (_named(groups), _partly_named(groups, budget_tokens)),
        (_counted(groups, most, total) for most in (len(groups), *_GROUPS) if most <= len(groups)),
        (iter((_count(total),)),),
    )
    for lines in steps:
        text = _within(heading, lines, budget_tokens)
        if text is not None:
            return text
    return ""


def _grouped(tools: Sequence[Tool]) -> dict[str, list[Tool]]:
    """Server -> its tools by name; servers by name, tools without one at the end under "". First of a name counts."""
    servers = infer_servers(tools)
    unique = {tool.name: tool for tool in sorted(tools, key=_content)}
    groups: dict[str, list[Tool]] = {}
    for name in sorted(unique):
        groups.setdefault(_label(servers.get(name, "")), []).append(unique[name])
    return {server: groups[server] for server in sorted(groups, key=lambda server: (server == "", server))}


def _content(tool: Tool) -> tuple[str, str, str]:
    return (tool.name, tool.snippet or "", tool.description)


def _label(server: str) -> str:
    return _FOREIGN.sub("_", server)[:64]


def _within(heading: str, lines: Iterator[str], budget: int) -> str | None:
    """`heading` and `lines` as one text, or None as soon as they exceed the budget."""
    spent = float(tokens_at_most(heading))
    kept = [heading]
    for line in lines:
        spent += tokens_at_most(line) + 1
        if spent > budget:
            return None
        kept.append(f"{line}\n")
    return "".join(kept).rstrip("\n")


def _count(tools: int) -> str:
    return f"{tools} tool" if tools == 1 else f"{tools} tools"


def _full(groups: dict[str, list[Tool]], length: int) -> Iterator[str]:
    hidden = 0
    for tools in groups.values():
        for tool in tools:
            if not is_plain_name(tool.name):
                hidden += 1
                continue
            line = described(tool, length)
            yield f'- {tool.name}: "{line}"' if line else f"- {tool.name}"
    if hidden:
        yield f"- {_count(hidden)} with names that cannot be shown"


def described(tool: Tool, length: int) -> str:
    """One line about a tool, at most `length` characters, that can stand between quotation marks."""
    text = clean_text(tool.snippet or tool.description, length).replace('"', "'").replace("\\", "/")
    return _TAG.sub("(", text)


def _named(groups: dict[str, list[Tool]]) -> Iterator[str]:
    for server, tools in groups.items():
        names = [tool.name for tool in tools if is_plain_name(tool.name)]
        hidden = len(tools) - len(names)
        start = _shared_start(names)
        label = f"{start}*: " if start else f"{server}: " if server else ""
        shown = [name[len(start) :] for name in names] + ([f"{hidden} more"] if hidden else [])
        yield f"- {label}{', '.join(shown)}"


def _partly_named(groups: dict[str, list[Tool]], budget: int) -> Iterator[str]:
    """The names of as many groups as fit, the smallest first, and the counts of the others."""
    counts = {
        server: f"- {server}: {_count(len(tools))}" if server else f"- {len(tools)} more"
        for server, tools in groups.items()
    }
    room = budget - tokens_at_most(HEADING) - 2 - sum(tokens_at_most(line) + 1 for line in counts.values())
    lines = dict(counts)
    for server in sorted(groups, key=lambda server: (len(groups[server]), server)):
        if room <= 0:
            break
        line = next(_named({server: groups[server]}))
        room -= max(tokens_at_most(line) - tokens_at_most(counts[server]), 0)
        if room >= 0:
            lines[server] = line
    yield from lines.values()


def _shared_start(names: Sequence[str]) -> str:
    """What all `names` begin with, up to a separator, if it is worth writing once; names remain readable behind it."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    start = first[:same]
    cut = max((start.rfind(mark) + len(mark) for mark in "_.-:" if mark in start), default=0)
    return start[:cut] if cut >= 3 and all(len(name) > cut for name in names) else ""


def _counted(groups: dict[str, list[Tool]], most: int, total: int) -> Iterator[str]:
    sizes = {server: len(tools) for server, tools in groups.items() if server}
    largest = sorted(sizes, key=lambda server: (-sizes[server], server))[:most]
    for server in sorted(largest):
        yield f"- {server}: {_count(sizes[server])}"
    rest = total - sum(sizes[server] for server in largest)
    if rest:
        yield f"- {rest} more" if largest else _count(rest)


def largest_servers(tools: Sequence[Tool], most: int) -> list[str]:
    """The names of the `most` servers with the most tools, cleaned, largest first."""
    groups = _grouped(tools)
    ranked = sorted((server for server in groups if server), key=lambda server: (-len(groups[server]), server))
    return list(islice(ranked, most))
