"""The neutral tool: what a caller's wire definition says, whatever the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import PolicyError


def _no_mapping() -> Mapping[str, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its name, what it does, the JSON Schema of its parameters, and where it came from.

    `server` groups tools of one origin (inferred from shared prefixes when absent). `snippet` is one line for lists,
    `guidelines` are shown when the tool is loaded as text; neither enters a system prompt. `annotations` are the MCP
    ones. Raises `PolicyError` for an empty name or parameters that are not a mapping.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=_no_mapping)
    server: str | None = None
    snippet: str | None = None
    guidelines: tuple[str, ...] = ()
    annotations: Mapping[str, Any] = field(default_factory=_no_mapping)

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name:
            raise PolicyError(f"Tool.name: {name!r} is not a name; allowed: a non-empty string")
        parameters: object = self.parameters
        if not isinstance(parameters, Mapping):
            raise PolicyError(
                f"Tool.parameters of {name!r}: {type(parameters).__name__} is not a JSON Schema; allowed: a mapping"
            )
