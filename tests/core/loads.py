"""One neutral record of what was loaded, written by hand as every form that a history may hold.

Nothing here is made by the code under test: the shapes are those of the providers' documentation and of the loader.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.core.conversation import CHAT, MESSAGES, RESPONSES, tools

Json = dict[str, Any]
LOADER = "ToolSearch"


@dataclass(frozen=True)
class Load:
    """One search: which tools it has loaded, in order, and how often something was searched before (for its ids).

    `ours`: where something else than its answer loads them, the answer is that of our loader all the same.
    """

    names: tuple[str, ...]
    number: int = 0
    ours: bool = False

    @property
    def id(self) -> str:
        """An id without a prefix, different for each search."""
        return f"9{self.number:03d}aBcDeFgHiJkLmNo"

    @property
    def answer(self) -> str:
        """The words of an answer that needs none."""
        return loader_json(self.names) if self.ours else "Found."

    def definitions(self, dialect: str) -> list[Json]:
        """The wire tools of the names, in their order."""
        return tools(dialect, self.names)

    @property
    def query(self) -> Json:
        """What was asked."""
        return {"query": ", ".join(self.names) or "nothing"}


def loader_json(names: Sequence[str]) -> str:
    """The loader's answer that adds these names."""
    matches = [{"name": name, "description": "x", "loaded": True} for name in names]
    answer = {"query": "q", "matches": matches, "total_available": 60, "pending_mcp_servers": []}
    return json.dumps({**answer, "addedToolNames": list(names)})


# -- Messages ----------------------------------------------------------------------------------------------------------


def _asked(load: Load) -> Json:
    block = {"type": "tool_use", "id": f"toolu_{load.id}", "name": LOADER, "input": load.query}
    return {"role": "assistant", "content": [block]}


def _told(load: Load, content: Any) -> Json:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{load.id}", "content": content}]}


def _references(load: Load) -> list[Json]:
    if not load.names:
        return [_asked(load), _told(load, "No tool fits.")]
    return [_asked(load), _told(load, [{"type": "tool_reference", "tool_name": name} for name in load.names])]


def _answer(load: Load) -> list[Json]:
    return [_asked(load), _told(load, loader_json(load.names))]


def _added(load: Load, blocks: list[Json]) -> list[Json]:
    changes = [{"role": "system", "content": blocks}] if blocks else []
    return [_asked(load), _told(load, load.answer), *changes]


def _additions(load: Load) -> list[Json]:
    wires = load.definitions(MESSAGES)
    return _added(
        load,
        [{"type": "tool_addition", "tool": {"type": "tool_definition", "definition": wire}} for wire in wires],
    )


def _additions_by_name(load: Load) -> list[Json]:
    blocks = [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}} for name in load.names]
    return _added(load, blocks)


def _server_search(load: Load, item: str) -> list[Json]:
    call = {"type": "server_tool_use", "id": item, "name": "tool_search_tool_bm25", "input": load.query}
    references = [{"type": "tool_reference", "tool_name": name} for name in load.names]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    result = {"type": "tool_search_tool_result", "tool_use_id": item, "content": content}
    return [{"role": "assistant", "content": [call, result, {"type": "text", "text": "Found."}]}]


def _hosted_blocks(load: Load) -> list[Json]:
    return _server_search(load, f"srvtoolu_{load.id}")


def _shown_blocks(load: Load) -> list[Json]:
    return _server_search(load, f"srvtoolu_lp0_0_1_toolu_{load.id}")


# -- Responses ---------------------------------------------------------------------------------------------------------


def _search_items(load: Load) -> list[Json]:
    same = {"execution": "client", "call_id": f"call_{load.id}", "status": "completed"}
    wires = [{**wire, "defer_loading": True} for wire in load.definitions(RESPONSES)]
    call = {"type": "tool_search_call", "id": f"tsc_{load.id}", **same, "arguments": load.query}
    return [call, {"type": "tool_search_output", **same, "tools": wires}]


def _call_items(load: Load, output: str) -> list[Json]:
    call = {"type": "function_call", "call_id": f"call_{load.id}", "name": LOADER, "arguments": json.dumps(load.query)}
    return [call, {"type": "function_call_output", "call_id": f"call_{load.id}", "output": output}]


def _answer_items(load: Load) -> list[Json]:
    return _call_items(load, loader_json(load.names))


def _additional_tools(load: Load) -> list[Json]:
    item = {"type": "additional_tools", "role": "developer", "tools": load.definitions(RESPONSES)}
    return [*_call_items(load, load.answer), *([item] if load.names else [])]


def _hosted_items(load: Load) -> list[Json]:
    same: Json = {"execution": "server", "call_id": None, "status": "completed"}
    wires = [{**wire, "defer_loading": True} for wire in load.definitions(RESPONSES)]
    call = {"type": "tool_search_call", "id": f"tsc_{load.id}", **same, "arguments": {"paths": list(load.names)}}
    return [call, {"type": "tool_search_output", "id": f"tso_{load.id}", **same, "tools": wires}]


def _shown_items(load: Load) -> list[Json]:
    call, output = _hosted_items(load)
    arguments = {"paths": list(load.names), "call": json.dumps(load.query)}
    call = {**call, "id": f"tsc_lp0_0_1_call_{load.id}", "arguments": arguments}
    return [call, {**output, "id": f"tso_lp0_0_f{load.id}"}]


# -- Chat Completions --------------------------------------------------------------------------------------------------


def _chat_call(load: Load, content: Any) -> list[Json]:
    function = {"name": LOADER, "arguments": json.dumps(load.query)}
    call = {"id": f"call_{load.id}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{load.id}", "content": content},
    ]


def _chat_answer(load: Load) -> list[Json]:
    return _chat_call(load, loader_json(load.names))


def _chat_references(load: Load) -> list[Json]:
    parts = [{"type": "tool_reference", "tool_name": name} for name in load.names]
    return _chat_call(load, parts or "No tool fits.")


def _chat_system(load: Load) -> list[Json]:
    message = {"role": "system", "tools": load.definitions(CHAT)}
    return [*_chat_call(load, load.answer), *([message] if load.names else [])]


WRITTEN: dict[str, dict[str, Callable[[Load], list[Json]]]] = {
    MESSAGES: {
        "tool_reference": _references,
        "tool_addition": _additions,
        "tool_addition by name": _additions_by_name,
        "loader JSON": _answer,
        "hosted": _hosted_blocks,
        "shown": _shown_blocks,
    },
    RESPONSES: {
        "tool_search": _search_items,
        "additional_tools": _additional_tools,
        "loader JSON": _answer_items,
        "hosted": _hosted_items,
        "shown": _shown_items,
    },
    CHAT: {
        "system_tools": _chat_system,
        "tool_reference": _chat_references,
        "loader JSON": _chat_answer,
    },
}
"""By dialect the forms of a load; each gives the messages of one search and of what it has loaded."""

FORMS = [(dialect, form) for dialect, forms in WRITTEN.items() for form in forms]


def said(dialect: str, role: str, text: str) -> Json:
    """A plain message."""
    return (
        {"type": "message", "role": role, "content": text} if dialect == RESPONSES else {"role": role, "content": text}
    )


def used(dialect: str, name: str, number: int) -> list[Json]:
    """An ordinary call of the tool, and its result."""
    call_id, arguments = f"{'toolu' if dialect == MESSAGES else 'call'}_8{number:03d}aBcDeFgHiJkLmNo", {"id": number}
    if dialect == MESSAGES:
        return [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": arguments}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": "done"}]},
        ]
    if dialect == RESPONSES:
        given = json.dumps(arguments)
        return [
            {"type": "function_call", "call_id": call_id, "name": name, "arguments": given},
            {"type": "function_call_output", "call_id": call_id, "output": "done"},
        ]
    function = {"name": name, "arguments": json.dumps(arguments)}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": "done"},
    ]
