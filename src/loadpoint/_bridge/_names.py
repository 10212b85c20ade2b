"""What the two bridge tools are called in a conversation: a pure function of the names that are taken."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

LOAD_NAME, CALL_NAME = "load_tools", "call_tool"

TEMPLATE_TAGS = frozenset(
    (
        "tool_call",
        "tool_calls",
        "tool_response",
        "tool_result",
        "tool_use",
        "tool_code",
        "tool_output",
        "tools",
        "function",
        "function_call",
        "function_calls",
        "functions",
        "invoke",
        "parameter",
        "python_tag",
    )
)
"""Words that chat templates of open models write around calls: a tool of such a name is read as the tag."""


@dataclass(frozen=True, slots=True)
class Bridge:
    """The names of the two bridge tools."""

    load: str = LOAD_NAME
    call: str = CALL_NAME


def bridge(taken: Collection[str]) -> Bridge:
    """The names where the caller's tools are called `taken`: the plain ones, else both with the same number.

    Never a word that chat templates use as a tag.
    """
    number = 1
    while True:
        tail = str(number) if number > 1 else ""
        pair = Bridge(f"{LOAD_NAME}{tail}", f"{CALL_NAME}{tail}")
        if not any(name in taken or name in TEMPLATE_TAGS for name in (pair.load, pair.call)):
            return pair
        number += 1
