"""The definitions of the two bridge tools. They say themselves how they are used: there is no system prompt of ours."""

from __future__ import annotations

from .._json import Json
from ._names import Bridge

_USER_ASKED = "Load tools only when the user explicitly asks for them, never on your own initiative."


def load_description(catalog: str, bridge: Bridge, *, confirm: bool = False) -> str:
    """What `load_tools` does, with the catalog text, if any, at its end.

    `confirm` adds the rule that the user must have asked (P19), for the policy under which the model confirms a load.
    """
    text = (
        "Loads tools that you do not see yet and answers how each is used. "
        'Name them in "tools", or describe what is needed in "query". '
        f"Order: {bridge.load} first, then {bridge.call} with what was loaded."
    )
    if confirm:
        text += f" {_USER_ASKED}"
    return f"{text}\n\n{catalog}" if catalog else text


def load_schema() -> Json:
    """The JSON Schema of `load_tools`' parameters; a new object each time."""
    return {
        "type": "object",
        "properties": {
            "tools": {"type": "array", "items": {"type": "string"}},
            "query": {"type": "string"},
            "confirm": {"type": "boolean"},
        },
    }


def call_description(bridge: Bridge) -> str:
    """What `call_tool` does."""
    return (
        f'Calls a tool that {bridge.load} has loaded: its name in "tool", its arguments as one object in "params". '
        f"Order: {bridge.load} first, then {bridge.call}. Tools that you see are called directly, not through this."
    )


def call_schema() -> Json:
    """The JSON Schema of `call_tool`'s parameters; a new object each time.

    `params` says that any field may be in it: some endpoints refuse an object of which nothing is said.
    """
    return {
        "type": "object",
        "properties": {
            "tool": {"type": "string"},
            "params": {"type": "object", "additionalProperties": True},
        },
        "required": ["tool", "params"],
    }
