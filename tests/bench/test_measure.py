"""Figures of hand-made requests: what is in context, what two requests share, what that costs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadpoint import bench
from loadpoint._prices import Prices
from loadpoint.bench._context import parts
from loadpoint.bench.measure import Sent
from loadpoint.emulator import Exchange

CHAT, MESSAGES = "openai.chat", "anthropic.messages"


def _exchange(body: dict[str, Any], output: int = 0) -> Exchange:
    raw = json.dumps(body).encode()
    return Exchange(number=1, method="POST", url="", path="", headers={}, raw=raw, request=body, output_tokens=output)


def _measure(dialect: str, *bodies: dict[str, Any], model: str = "gpt-5.4", told: str | None = None) -> bench.Measured:
    sent = [Sent(1, number, _exchange(body, 10), told) for number, body in enumerate(bodies, 1)]
    return bench.measure(dialect, model, sent, bench.Counter())


def _function(name: str, description: str = "") -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": {"type": "object"}},
    }


def _body(tools: list[str], *texts: str) -> dict[str, Any]:
    return {
        "tools": [_function(name) for name in tools],
        "messages": [{"role": "user", "content": text} for text in texts],
    }


LONG = "a sentence that is long enough to be worth a cache entry. " * 120


def test_deferred_definitions_are_out_of_context_and_loaded_ones_where_they_are_referred_to() -> None:
    late = {"name": "late", "description": "come later", "input_schema": {"type": "object"}, "defer_loading": True}
    reference = [{"type": "tool_reference", "tool_name": "late"}]
    body = {
        "tools": [{"name": "loader", "input_schema": {}, "cache_control": {"type": "ephemeral"}}, late],
        "system": "be kind",
        "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": reference}]}],
    }
    found = [(part.segment, part.text) for part in parts(MESSAGES, body)]
    assert [segment for segment, _ in found] == ["tools", "system", "messages"]
    assert "cache_control" not in found[0][1]
    assert "come later" in found[2][1]
    assert "defer_loading" not in found[2][1]


def test_the_catalog_is_counted_apart_from_the_loader_and_from_the_system_prompt() -> None:
    text = "Loads tools.\n\n# On-demand tools\nslack: 16 tools"
    chat = {"tools": [_function("ToolSearch", text)], "messages": [{"role": "system", "content": "be kind"}]}
    assert [part.segment for part in parts(CHAT, chat)] == ["tools", "catalog", "system"]
    block = {"type": "text", "text": "# On-demand tools\nslack: 16 tools"}
    native = {"tools": [], "system": [{"type": "text", "text": "be kind"}, block], "messages": []}
    assert [part.segment for part in parts(MESSAGES, native)] == ["system", "catalog"]


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="not measured yet"):
        parts("some.dialect", {})


def test_a_continued_conversation_does_not_break_and_is_cached_from_1024_tokens_on() -> None:
    measured = _measure(CHAT, _body(["a"], "short"), _body(["a"], "short", LONG), _body(["a"], "short", LONG, "more"))
    assert [row.broke for row in measured.rows] == [None, None, None]
    assert measured.breaks == 0
    assert [row.common_tokens for row in measured.rows[1:]] == [row.tokens for row in measured.rows[:2]]
    assert measured.rows[1].cached == 0
    assert measured.rows[2].cached == measured.rows[1].tokens >= 1_024
    assert measured.cached + measured.uncached == sum(row.tokens for row in measured.rows)
    assert sum(measured.first.values()) == measured.rows[0].tokens


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (_body(["a", "b", "c"], "hi", "there"), "tools_grew"),
        (_body(["b", "a"], "hi", "there"), "tools_reordered"),
        (_body(["a", "c"], "hi", "there"), "tool_changed"),
        (_body(["a", "b"], "ho", "there"), "history_rewritten"),
        (_body(["a", "b"]), "history_rewritten"),
    ],
)
def test_a_break_is_found_and_named(second: dict[str, Any], reason: str) -> None:
    measured = _measure(CHAT, _body(["a", "b"], "hi"), second)
    assert measured.rows[1].broke == reason
    assert measured.breaks == 1
    assert measured.rows[1].common_tokens < measured.rows[0].tokens


def test_a_changed_system_prompt_and_a_changed_catalog_are_told_apart() -> None:
    def body(system: str, catalog: str) -> dict[str, Any]:
        return {
            "tools": [_function("ToolSearch", f"Loads.\n\n# On-demand tools\n{catalog}")],
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": "hi"}],
        }

    assert _measure(CHAT, body("a", "x"), body("b", "x")).rows[1].broke == "system_changed"
    assert _measure(CHAT, body("a", "x"), body("a", "y")).rows[1].broke == "catalog_changed"


def test_the_report_names_the_reason_but_cannot_invent_a_break() -> None:
    changed, same = _body(["b"], "hi"), _body(["a"], "hi", "there")
    assert _measure(CHAT, _body(["a"], "hi"), changed, told="forced_tool").rows[1].broke == "forced_tool"
    assert _measure(CHAT, _body(["a"], "hi"), same, told="forced_tool").rows[1].broke is None


def test_a_request_without_a_marker_is_not_cached_where_the_provider_wants_one() -> None:
    def body(*texts: str, marked: bool) -> dict[str, Any]:
        mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
        blocks = [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]
        return {"tools": [], "system": [{"type": "text", "text": "be kind", **mark}], "messages": blocks}

    model = "claude-sonnet-5"
    plain = _measure(MESSAGES, body(LONG, marked=False), body(LONG, "x", marked=False), model=model)
    marked = _measure(MESSAGES, body(LONG, marked=True), body(LONG, "x", marked=True), model=model)
    assert plain.cached == 0
    assert marked.cached == marked.rows[0].tokens
    assert [row.tokens for row in plain.rows] == [row.tokens for row in marked.rows]


def test_cost_adds_what_is_read_written_and_said() -> None:
    measured = _measure(CHAT, _body(["a"], LONG), _body(["a"], LONG, "more"))
    first, second = measured.rows
    expected = first.tokens * 1.25 + second.cached * 0.1 + second.uncached * 1.25 + 2 * 10 * 5
    assert measured.cost(Prices(1.0, 0.1, 1.25, 5.0)) == pytest.approx(expected)
    small = _measure(CHAT, _body(["a"], "hi"))
    assert small.cost(Prices(1.0, 0.1, 1.25, 0.0)) == small.rows[0].tokens  # too small to be written


RESPONSES = "openai.responses"
FLAT = {"type": "function", "name": "late", "description": "come later", "parameters": {"type": "object"}}
LATE = {**FLAT, "defer_loading": True}


def _items(*items: dict[str, Any], tools: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    listed = [{"type": "tool_search"}] if tools is None else tools
    said = {"role": "user", "content": "hi"}
    return {"tools": listed, "instructions": "be kind", "input": [said, *items]}


def test_of_a_deferred_function_or_namespace_the_name_and_description_are_in_context() -> None:
    group = {"type": "namespace", "name": "shop", "description": "sells", "tools": [{**LATE, "name": "inner"}]}
    texts = [part.text for part in parts(RESPONSES, _items(tools=[LATE, group]))]
    assert texts[:2] == ['{"name":"late","description":"come later"}', '{"name":"shop","description":"sells"}']
    assert [part.segment for part in parts(RESPONSES, _items(tools=[LATE, group]))][2:] == ["system", "messages"]


@pytest.mark.parametrize("kind", ["tool_search_output", "additional_tools"])
def test_what_an_item_loads_is_in_context_there_without_ids_and_states(kind: str) -> None:
    item = {"type": kind, "id": "x_1", "status": "completed", "role": "developer", "tools": [LATE]}
    part = parts(RESPONSES, _items(item))[-1]
    assert part.segment == "messages"
    assert "come later" in part.text
    assert not {"x_1", "completed", "defer_loading"} & set(part.text.replace('"', " ").split())


def test_a_reference_on_chat_is_the_definition_where_it_stands_first() -> None:
    late = {"type": "function", "function": {"name": "late", "description": "come later"}, "defer_loading": True}
    found = {"role": "tool", "tool_call_id": "c", "content": [{"type": "tool_reference", "tool_name": "late"}]}
    texts = [part.text for part in parts(CHAT, {"tools": [late], "messages": [found, found]})]
    assert ["come later" in text for text in texts] == [True, False]


def test_a_search_of_the_provider_is_another_pass_over_a_longer_prompt() -> None:
    searched: list[dict[str, Any]] = [
        {"type": "tool_search_call", "execution": "server", "arguments": {"paths": ["late"]}},
        {"type": "tool_search_output", "execution": "server", "tools": [FLAT]},
    ]
    call = {"type": "function_call", "call_id": "c", "name": "late", "arguments": "{}"}
    first = _exchange(_items({"role": "user", "content": LONG}, tools=[LATE]))
    first.reply = {"output": [*searched, call]}
    row = bench.measure(RESPONSES, "gpt-5.4", [Sent(1, 1, first)], bench.Counter()).rows[0]
    counter = bench.Counter()
    added = sum(counter(part.text) for part in parts(RESPONSES, {"tools": [], "input": searched}))
    assert (row.passes, row.again_cached, row.again_uncached) == (2, row.tokens, added)
    first.reply = {"output": [{**item, "execution": "client"} for item in searched]}
    assert bench.measure(RESPONSES, "gpt-5.4", [Sent(1, 1, first)], counter).passes == 1


def test_two_searches_in_a_reply_of_messages_are_two_more_passes() -> None:
    found = {"type": "tool_search_tool_search_result", "tool_references": []}
    blocks: list[dict[str, Any]] = []
    for at in "ab":
        blocks.append({"type": "server_tool_use", "id": at, "name": "tool_search_tool_bm25", "input": {"query": at}})
        blocks.append({"type": "tool_search_tool_result", "tool_use_id": at, "content": found})
    body = {"tools": [], "messages": [{"role": "user", "content": "hi"}]}
    exchange = _exchange(body)
    exchange.reply = {"content": blocks}
    row = bench.measure(MESSAGES, "claude-sonnet-5", [Sent(1, 1, exchange)], bench.Counter()).rows[0]
    assert row.passes == 3
    assert row.again_cached == 0  # nothing is cached without a marker
    assert row.again_uncached > 2 * row.tokens
    priced = bench.Measured(rows=[row]).cost(Prices(1.0, 0.1, 1.25, 5.0))
    assert priced == row.tokens + row.again_uncached
