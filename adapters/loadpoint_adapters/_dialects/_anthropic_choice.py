"""The `tool_choice` of the Messages API.

https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use and
`anthropic/types/tool_choice_*_param.py` (2.14.0).
"""

from __future__ import annotations

from loadpoint._dialect import Choice
from loadpoint._json import Json, as_object

_MODES = {"auto": "auto", "none": "none", "any": "required"}


def read(body: Json) -> Choice:
    """The caller's choice."""
    chosen = as_object(body.get("tool_choice")) or {}
    kind = chosen.get("type")
    name = chosen.get("name")
    if kind == "tool" and isinstance(name, str):
        return Choice("named", (name,), True)
    return Choice(_MODES.get(str(kind), "auto"), required=kind == "any")


def named(body: Json, name: str) -> Json:
    """The body with a choice of this tool; what else the caller's choice says stays."""
    return {**body, "tool_choice": {**(as_object(body.get("tool_choice")) or {}), "type": "tool", "name": name}}
