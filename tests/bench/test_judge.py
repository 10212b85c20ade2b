"""The judge finds every kind of damage, and nothing where there is none."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.bench.judge import breaks, check

Body = dict[str, Any]


def _tool(name: str, **more: Any) -> Body:
    return {"name": name, "description": f"does {name}", "input_schema": {"type": "object"}, **more}


def _conversation() -> list[Body]:
    """Three requests of a conversation that defers: the second loads `b`, the third goes on."""
    loader, a, b, c = _tool("ToolSearch"), _tool("a"), _tool("b", defer_loading=True), _tool("c", defer_loading=True)
    user = {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
    plain = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "ToolSearch", "input": {"q": 1}}]}
    found = [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "tool_reference", "tool_name": "b"}]}]
    answer = {"role": "user", "content": found}
    system = [{"type": "text", "text": "You are helpful.", "cache_control": {"type": "ephemeral"}}]
    bodies = [
        {"model": "m", "system": system, "tools": [loader, a], "messages": [user]},
        {"model": "m", "system": system, "tools": [loader, a, b], "messages": [plain, call, answer]},
        {
            "model": "m",
            "system": [{"type": "text", "text": "You are helpful."}],
            "tools": [loader, a, b, c],
            "messages": [plain, call, answer, {"role": "assistant", "content": "done"}, user],
        },
    ]
    fresh: list[Body] = json.loads(json.dumps(bodies))  # nothing shared between the bodies
    return fresh


def _rewritten(body: Body) -> None:
    body["messages"][1]["content"][0]["input"] = {"q": 1.0}


def _swap(body: Body) -> None:
    body["tools"][0], body["tools"][1] = body["tools"][1], body["tools"][0]


def _reorder_keys(body: Body) -> None:
    body["tools"][1] = dict(reversed(body["tools"][1].items()))


DAMAGE: list[tuple[str, Callable[[Body], object]]] = [
    ("system_changed", lambda body: body["system"][0].update(text="You are helpful!")),
    ("system_changed", lambda body: body["system"].append({"type": "text", "text": "Date: today"})),
    ("model_changed", lambda body: body.update(model="n")),
    ("tools_changed", lambda body: body["tools"].pop(1)),
    ("tools_reordered", _swap),
    ("tools_changed", lambda body: body["tools"].insert(0, _tool("z"))),
    ("tools_changed", _reorder_keys),
    ("tools_grew", lambda body: body["tools"].append(_tool("z"))),
    ("deferred_not_appended", lambda body: body["tools"].insert(2, _tool("z", defer_loading=True))),
    ("deferred_not_appended", lambda body: body["tools"][2].pop("defer_loading")),
    ("messages_rewritten", _rewritten),
    ("messages_rewritten", lambda body: body["messages"].pop(0)),
    ("messages_not_continued", lambda body: body.update(messages=body["messages"][:3])),
]


def test_an_unbroken_conversation_passes() -> None:
    assert check(_conversation(), "native") == []
    assert breaks(_conversation()) == 0


@pytest.mark.parametrize(("reason", "damage"), DAMAGE)
def test_each_kind_of_damage_is_named(reason: str, damage: Callable[[Body], object]) -> None:
    bodies = _conversation()
    damage(bodies[2])
    found = check(bodies, "native")
    assert reason in {violation.reason for violation in found}
    assert {violation.at for violation in found} == {2}


def test_resend_may_append_tools_and_counts_them() -> None:
    bodies = _conversation()
    for body in bodies:
        body["tools"] = body["tools"][:2]
    bodies[1]["tools"].append(_tool("b"))
    bodies[2]["tools"].append(_tool("b"))
    assert check(bodies, "resend") == []
    assert [violation.reason for violation in check(bodies, "eager")] == ["tools_grew"]
    assert breaks(bodies) == 1
    bodies[2]["tools"].insert(1, _tool("c"))
    assert [violation.reason for violation in check(bodies, "resend")] == ["tools_changed"]


def test_chat_bodies_are_read_as_well() -> None:
    def body(names: list[str], count: int) -> Body:
        tools = [{"type": "function", "function": {"name": name}} for name in names]
        return {
            "model": "m",
            "tools": tools,
            "messages": [{"role": "user", "content": str(n)} for n in range(count)],
        }

    assert check([body(["a"], 1), body(["a", "b"], 3)], "resend") == []
    assert [found.reason for found in check([body(["a", "b"], 1), body(["b", "a"], 3)], "resend")] == [
        "tools_reordered"
    ]


def test_markers_are_ignored_but_not_arguments_of_that_name() -> None:
    bodies = _conversation()
    bodies[1]["messages"][1]["content"][0]["input"] = {"cache_control": {"type": "none"}}
    assert "messages_rewritten" in {found.reason for found in check(bodies, "native")}


def test_the_judge_imports_nothing_of_the_project() -> None:
    tree = ast.parse((Path(__file__).parent / "judge.py").read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names <= {"__future__", "json", "collections.abc", "dataclasses", "itertools", "typing"}
