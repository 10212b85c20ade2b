"""Why a bridge call reached no tool, in words for the model: each ends in the exact next call.

Nothing here lists the tools that the model has not asked for; near names are at most three.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .._catalog import is_plain_name
from .._schema import problems_text
from .._tool import Tool
from ._fields import required
from ._load import LoadRequest
from ._names import Bridge
from ._readings import Unclear
from ._texts import listed, nearest, schema_text, shown, spelled

_SCHEMA = 4_000
"""Characters of a schema in a refusal; a longer one is asked for by loading the tool again."""

_FIELDS = 8


def no_json(bridge: Bridge) -> str:
    """The arguments cannot be read at all."""
    return f"The arguments are no JSON object. Call: {_form(bridge)}"


def _form(bridge: Bridge) -> str:
    return f'{bridge.call}({{"tool": "NAME", "params": {{...}}}})'


def gone(name: str) -> str:
    """The tool was there once."""
    return f"{shown(name)} is no longer available. Go on without it."


def is_loader(bridge: Bridge, request: LoadRequest) -> str:
    """The loading tool was named as the target."""
    arguments: dict[str, object] = {}
    if names := [name for name in request.tools if is_plain_name(name)]:
        arguments["tools"] = names
    if request.query:
        arguments["query"] = request.query
    return f"{bridge.load} is called directly: {spelled(bridge.load, arguments or {'tools': ['NAME']})}"


def nameless(bridge: Bridge, callable_now: Sequence[str]) -> str:
    """No tool is named; `callable_now` are the loaded ones."""
    known = f" Loaded: {listed(callable_now)}." if callable_now else f" Nothing is loaded; {bridge.load} comes first."
    return f'No tool is named: "tool" is missing.{known} Call: {_form(bridge)}'


def unknown(
    name: str, bridge: Bridge, deferred: Mapping[str, Tool], loaded: Collection[str], resident: Collection[str]
) -> str:
    """No tool has this name."""
    near = nearest(name, (*deferred, *resident))
    told = f"No tool is called {name}." if is_plain_name(name) else "No tool has such a name."
    if not near:
        return f"{told} Nothing was called. Find one: {spelled(bridge.load, {'query': 'WORDS FOR WHAT IT DOES'})}"
    first = near[0]
    if first in resident:
        then = f"call {first} directly"
    elif first in loaded:
        then = f'{bridge.call}({{"tool": "{first}", "params": {{...}}}})'
    else:
        then = spelled(bridge.load, {"tools": [first]})
    return f"{told} Nothing was called. Nearest: {', '.join(near)}. If {first} is meant: {then}"


def not_loaded(name: str, bridge: Bridge) -> str:
    """The tool has to be loaded first."""
    call = spelled(bridge.load, {"tools": [name] if is_plain_name(name) else ["NAME"]})
    return f"{shown(name)} is not loaded, and nothing was called. First call: {call}"


def unfitting(tool: Tool, unclear: Unclear, bridge: Bridge, *, direct: bool) -> str:
    """The arguments do not fit, or can be read in more than one way. `direct`: the tool needs no bridge."""
    lines = [f"The arguments do not fit {shown(tool.name)}, and nothing was called:"]
    lines += [text for text in (unclear.reason, problems_text(unclear.problems)) if text]
    schema = schema_text(tool.parameters)
    name = tool.name if is_plain_name(tool.name) else "NAME"
    if len(schema) <= _SCHEMA:
        lines.append(f"Its parameters: {schema}")
    elif not direct:
        lines.append(f"Its parameters are in the answer to {spelled(bridge.load, {'tools': [name]})}")
    params = _skeleton(tool)
    call = f"{name}({params})" if direct else f'{bridge.call}({{"tool": "{name}", "params": {params}}})'
    return "\n".join((*lines, f"Call again: {call}"))


def _skeleton(tool: Tool) -> str:
    """The required fields, to be filled in."""
    names = [name for name in required(tool.parameters) if is_plain_name(name)]
    parts = [f'"{name}": ...' for name in names[:_FIELDS]]
    if len(names) > _FIELDS or not parts:
        parts.append("...")
    return "{" + ", ".join(parts) + "}"
