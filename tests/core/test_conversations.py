"""Whole conversations against the emulator: nothing sent is ever rewritten, whatever the model and the caller do."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench import judge
from tests.core.conversation import NAMES, Conversation, Form, everywhere

from loadpoint.emulator import Move


def _by_hand(message: dict[str, Any]) -> dict[str, Any]:
    """Only what a person would write: text and calls, nothing that the API added."""
    if "output" in message or message.get("type") in ("message", "function_call", "reasoning"):
        return _item_by_hand(message)
    content = message.get("content")
    if isinstance(content, list):
        kept = [
            {k: b[k] for k in ("type", "text", "id", "name", "input") if k in b}
            for b in content
            if b["type"] != "thinking"
        ]
        if kept and all(block["type"] == "text" for block in kept):
            return {"role": "assistant", "content": "".join(block["text"] for block in kept)}
        return {"role": "assistant", "content": kept}
    out = {"role": "assistant", "content": content or ""}
    if message.get("tool_calls"):
        out["tool_calls"] = [
            {"id": c["id"], "type": "function", "function": {k: c["function"][k] for k in ("name", "arguments")}}
            for c in message["tool_calls"]
        ]
    return out


def _item_by_hand(item: dict[str, Any]) -> dict[str, Any]:
    if item["type"] == "message":
        return {"role": "assistant", "content": "".join(part["text"] for part in item["content"])}
    return {key: item[key] for key in ("type", "call_id", "name", "arguments") if key in item}


STYLES: dict[str, Any] = {
    "as it came": lambda message: message,
    "sorted keys": lambda message: json.loads(json.dumps(message, sort_keys=True)),
    "with nulls": lambda message: {**message, "refusal": None, "audio": None} if "tool_calls" in message else message,
    "by hand": _by_hand,
}


@st.composite
def turns(draw: st.DrawFn) -> list[list[tuple[str, Any]]]:
    """User turns; each a list of model moves by kind."""
    step = st.sampled_from(
        ["search", "search", "two searches", "call", "mixed", "unloaded", "unloaded bad", "no match", "text and search"]
    )
    return draw(st.lists(st.lists(st.tuples(step, st.integers(0, len(NAMES) - 1)), max_size=3), min_size=1, max_size=5))


def play(talk: Conversation, plan: list[list[tuple[str, Any]]]) -> None:
    """Plays a plan; the model only calls by name what the plan says, whether it can see it or not."""
    arguments = {"id": 7}
    for at, steps in enumerate(plan):
        talk.user(f"request {at}")
        hidden: list[Move] = []
        for kind, number in steps:
            name = NAMES[number]
            search = ("ToolSearch", {"query": name})
            if kind == "search":
                hidden.append(Move(calls=[search]))
            elif kind == "two searches":
                hidden.append(Move(calls=[search, ("ToolSearch", {"query": NAMES[(number + 9) % len(NAMES)]})]))
            elif kind == "text and search":
                hidden.append(Move(text="Let me look.", calls=[search]))
            elif kind == "no match":
                hidden.append(Move(calls=[("ToolSearch", {"query": "zzqx vvkw"})]))
            elif kind == "unloaded bad":
                hidden.append(Move(calls=[(name, {"id": "seven"})]))
            else:
                calls = {
                    "call": [(name, arguments)],
                    "unloaded": [(name, arguments)],
                    "mixed": [search, (name, arguments)],
                }
                _last(talk, hidden, Move(calls=calls[kind]))
                hidden = []
        _last(talk, hidden, Move(text=f"answer {at}"))


def _last(talk: Conversation, hidden: list[Move], move: Move) -> None:
    hidden = [m for m in hidden if not _loaded_already(talk, m)][:3]
    result = talk.send(*hidden, move)
    talk.answer(result)


def _loaded_already(talk: Conversation, move: Move) -> bool:
    """A bad call of a loaded tool goes to the caller, which is another case."""
    calls: list[Any] = list(move.calls)
    return any(name != "ToolSearch" and arguments["id"] == "seven" for name, arguments, *_ in calls)


@everywhere
@settings(max_examples=30)
@given(plan=turns(), styles=st.lists(st.sampled_from(sorted(STYLES)), min_size=1, max_size=4))
def test_the_prefix_holds(form: Form, plan: Any, styles: list[str]) -> None:
    talk = form.talk()
    count = iter(range(10_000))
    talk.style = lambda message: STYLES[styles[next(count) % len(styles)]](message)  # noqa: PLW0108 - chosen each time
    play(talk, plan)
    found = judge.check(talk.bodies, mode="resend" if form.strategy == "resend" else "native")
    promoted = any(tool.get("why") == "call" for report in talk.reports for tool in report.as_json()["loaded"])
    if promoted:
        # A tool that was declared leaves its place for the one that is in context: the same break.
        found = [it for it in found if it.reason not in ("tools_grew", form.declares_all and "deferred_not_appended")]
    assert not found
    status, raw = talk.bare()
    assert status == 200, raw
    assert b"ToolSearch" not in json.dumps(talk.visible).encode()
