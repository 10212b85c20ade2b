"""What is wrong with one argument, as a value and as a line of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .._catalog import clean_text

ROOT = "(arguments)"
"""The path of the arguments object itself."""

_SHOWN = 60
_LINE = 300


@dataclass(frozen=True, slots=True)
class Problem:
    """One argument that does not fit: its field path (`a.b[0]`), what the schema expects, what came, and both as text.

    `message` reads `role: expected one of [admin, member], got "foo"`.
    """

    path: str
    expected: str
    received: str
    message: str


def problem(path: str, expected: str, received: str) -> Problem:
    """A `Problem` with its message."""
    path, expected, received = clean_text(path, 120), clean_text(expected, 200), clean_text(received, _SHOWN)
    return Problem(path, expected, received, f"{path}: expected {expected}, got {received}")


def problems_text(problems: Sequence[Problem], *, most: int = 8) -> str:
    """The messages, one a line, at most `most` of them, each cut at 300 characters; the rest is counted. "" if none."""
    lines = [clean_text(item.message, _LINE) for item in problems[:most]]
    if len(problems) > most:
        lines.append(f"and {len(problems) - most} more")
    return "\n".join(lines)
