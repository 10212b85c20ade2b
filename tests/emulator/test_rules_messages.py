"""Every rule of `anthropic.messages` rejects through the real SDK, in the service's words; valid neighbours pass."""

from __future__ import annotations

from typing import Any

import anthropic
import pytest
from tests.emulator.support import CLAUDE, body_of, claude_client, deferred, reference, result, tool, turns, use, user

from loadpoint.emulator import Emulator, Move
from loadpoint.emulator._rules import book

HI = [user("hi")]
PING = tool("ping")
LATE = deferred("late")
CACHED = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
OLD = "claude-sonnet-4-20250514"
NEWEST = "claude-opus-5-5"
INLINE = {"anthropic-beta": "inline-tools-2026-09-15"}
THREADS = {"anthropic-beta": "message-threads-2026-08-12"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "tool_search_tool_bm25", "input": {"query": "x"}}
FOUND = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "tool_search_tool_search_result", "tool_references": [reference("late")]},
}


def text(words: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **extra}


def says(*messages: Any, **extra: Any) -> dict[str, Any]:
    return {"messages": turns(*messages), "tools": [PING, LATE], **extra}


def changed(*blocks: dict[str, Any], after: Any = None, **extra: Any) -> dict[str, Any]:
    messages = [user("hi"), {"role": "system", "content": list(blocks)}, *([after] if after else [])]
    return {"messages": messages, "tools": [PING, LATE], "extra_headers": INLINE, **extra}


def addition(name: str) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


BY_VALUE = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool("fresh")}}

BROKEN: list[tuple[str, dict[str, Any]]] = [
    ("messages.unknown_parameter", {"messages": HI, "extra_body": {"reasoning_effort": "low"}}),
    ("messages.beta_refused", {"messages": HI, "extra_headers": {"anthropic-beta": "tool-search-tool-2025-11-19"}}),
    ("messages.unknown_tool_field", {"messages": HI, "tools": [tool("ping", custom={"defer_loading": True})]}),
    ("messages.unknown_block_field", {"messages": turns([text("hi", loadpoint={})])}),
    ("messages.unknown_message_field", {"messages": [{**user("hi"), "id": "msg_1"}]}),
    ("messages.role", {"messages": [user("hi"), {"role": "tool", "content": "x"}]}),
    ("messages.empty_list", {"messages": []}),
    ("messages.first_role", {"messages": [{"role": "assistant", "content": "hi"}, user("hi")]}),
    ("messages.empty_content", {"messages": turns("hi", [], "and?")}),
    ("messages.empty_content", {"messages": turns("")}),
    ("messages.empty_text", {"messages": turns([text("")])}),
    ("messages.blank_text", {"messages": turns([text(" \n")])}),
    ("messages.trailing_whitespace", {"messages": turns("hi", "so ")}),
    ("messages.block_type", {"messages": turns([use()])}),
    ("messages.block_type", says([{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "late"}}])),
    ("messages.tool_name", {"messages": HI, "tools": [tool("a.b")]}),
    ("messages.tool_name", {"messages": HI, "tools": [tool("t" * 129)]}),
    ("messages.tool_schema", {"messages": HI, "tools": [{"name": "ping", "input_schema": {"type": "array"}}]}),
    ("messages.tool_field_required", {"messages": HI, "tools": [{"name": "ping"}]}),
    ("messages.tool_search_name", {"messages": HI, "tools": [PING, {**BM25, "name": "find"}]}),
    ("messages.tool_names_unique", {"messages": HI, "tools": [PING, PING]}),
    ("messages.all_deferred", {"messages": HI, "tools": [LATE]}),
    ("messages.defer_with_cache_control", {"messages": HI, "tools": [PING, deferred("late", **CACHED)]}),
    ("messages.too_many_deferred", {"messages": HI, "tools": [PING, *(deferred(f"t{at}") for at in range(10_001))]}),
    ("messages.defer_unsupported_model", {"model": OLD, "messages": HI, "tools": [PING, LATE]}),
    (
        "messages.reference_unsupported_model",
        {"model": OLD, **says("hi", [use()], [result(content=[reference("ping")])], tools=[PING])},
    ),
    ("messages.reference_unknown", says("hi", [use()], [result(content=[reference("gone")])])),
    ("messages.reference_unknown", says("hi", [SEARCH, FOUND, text("so")], "and?", tools=[PING, BM25])),
    (
        "messages.reference_name_length",
        says("hi", [use()], [result(content=[reference("t" * 65)])], tools=[PING, deferred("t" * 65)]),
    ),
    ("messages.reference_shape", says("hi", [use()], [result(content=[{"type": "tool_reference", "name": "late"}])])),
    ("messages.result_item_type", says("hi", [use()], [result(content=[{"type": "tool_use"}])])),
    ("messages.result_empty_list", says("hi", [use()], [result(content=[])])),
    ("messages.error_result_not_text", says("hi", [use()], [result(content=[reference("late")], is_error=True)])),
    ("messages.tool_use_unanswered", says("hi", [use()], "and?")),
    ("messages.tool_use_unanswered", says("hi", [use()])),
    ("messages.tool_use_unanswered", says("hi", [use(), use("toolu_2")], [result()])),
    ("messages.tool_result_orphan", says("hi", "so", [result()])),
    ("messages.tool_result_orphan", says("hi", [use()], [result()], "so", [result()])),
    ("messages.tool_result_for_server_tool", says("hi", [SEARCH, FOUND], [result("srvtoolu_1")], tools=[BM25, LATE])),
    ("messages.tool_result_duplicate", says("hi", [use()], [result(), result()])),
    ("messages.tool_result_first", says("hi", [use()], [text("here"), result()])),
    ("messages.tool_use_ids_unique", says("hi", [use()], [result()], [use()], [result()])),
    ("messages.tool_use_id", says("hi", [use("a:0")], [result("a:0")])),
    ("messages.tool_use_input", says("hi", [use(input="{}")], [result()])),
    ("messages.caller", says("hi", [use(caller={"type": "bogus"})], [result()])),
    ("messages.server_tool_use_id", says("hi", [{**SEARCH, "id": "toolu_1"}, text("so")], "and?", tools=[PING, BM25])),
    ("messages.server_result_orphan", says("hi", [FOUND, text("so")], "and?", tools=[PING, BM25, LATE])),
    ("messages.server_tool_use_unanswered", says("hi", [SEARCH, text("so")], "and?", tools=[PING, BM25])),
    ("messages.server_tool_undeclared", says("hi", [SEARCH, FOUND, text("so")], "and?")),
    (
        "messages.cache_control_count",
        {"messages": turns([text(str(at), **CACHED) for at in range(4)]), "cache_control": {"type": "ephemeral"}},
    ),
    ("messages.cache_control_count", {"messages": turns([text(str(at), **CACHED) for at in range(5)])}),
    ("messages.cache_control_ttl_order", {"messages": turns([text("a", **CACHED), text("b", **HOUR)])}),
    ("messages.cache_control_empty_text", {"messages": HI, "system": [text("", **CACHED)]}),
    (
        "messages.cache_control_on_thinking",
        says("hi", [{"type": "thinking", "thinking": "x", "signature": "s", **CACHED}, text("so")], "and?"),
    ),
    ("messages.system_role_unsupported", changed(text("Now."), model="claude-opus-4-6")),
    ("messages.system_role_position", changed(text("Now."), after=user("and?"))),
    (
        "messages.system_role_after",
        {"messages": [*turns("hi", "so"), {"role": "system", "content": "Now."}], "tools": [PING]},
    ),
    ("messages.tool_change_header", changed(addition("late"), extra_headers={})),
    (
        "messages.tool_change_header",
        changed(BY_VALUE, extra_headers={"anthropic-beta": "mid-conversation-tool-changes-2026-07-01"}),
    ),
    ("messages.tool_change_unsupported", changed(addition("late"), model="claude-sonnet-5")),
    ("messages.tool_change_unknown", changed(addition("gone"))),
    (
        "messages.tool_change_after_pause",
        {
            "messages": [*turns("hi", [SEARCH, FOUND]), {"role": "system", "content": [addition("late")]}],
            "tools": [PING, BM25, LATE],
            "extra_headers": INLINE,
        },
    ),
    ("messages.tool_choice_unsupported", {"model": NEWEST, **says("hi", tool_choice={"type": "any"})}),
    ("messages.tool_choice_with_thinking", says("hi", tool_choice={"type": "any"}, thinking={"type": "adaptive"})),
    ("messages.tool_choice_unknown", says("hi", tool_choice={"type": "tool", "name": "pong"})),
    ("messages.tool_choice_without_tools", {"messages": HI, "tool_choice": {"type": "any"}}),
    (
        "messages.thinking_signature",
        says("hi", [{"type": "thinking", "thinking": "x", "signature": "c2ln"}, text("so")], "and?"),
    ),
    ("messages.thinking_last", says("hi", [{"type": "thinking", "thinking": "x", "signature": "c2ln"}], "and?")),
    (
        "messages.thinking_type_removed",
        {"model": "claude-sonnet-5-5", "messages": HI, "thinking": {"type": "enabled", "budget_tokens": 1024}},
    ),
    (
        "messages.thinking_missing",
        says("hi", [use()], [result()], thinking={"type": "enabled", "budget_tokens": 1024}),
    ),
    ("messages.thread_header", {"messages": HI, "extra_body": {"thread": {"type": "create"}}}),
    (
        "messages.thread_not_found",
        {
            "messages": HI,
            "extra_body": {"thread": {"type": "continue", "previous_message_id": "msg_0"}},
            "extra_headers": THREADS,
        },
    ),
]
ELSEWHERE = {
    "messages.tool_type",  # this and the next: test_gateway_search.py
    "messages.gateway_all_deferred",
    "messages.tool_change_clear_at",  # this and the next: test_tool_changes.py
    "messages.tool_change_shape",
    "messages.tool_name_conflict",
    "messages.tool_change_two_markers",
    "messages.inline_type",
    "messages.inline_mcp_header",
    "messages.inline_platform",
    "messages.available_tools_limit",
    "messages.rendered_tools_limit",
    "messages.compaction_tool_changes_mismatch",
    "messages.bm25_on_bedrock",
    "messages.no_credential",
    "messages.no_version",
    "messages.field_required",
    "messages.empty_system_text",  # assumed
    "messages.result_mixes_reference",  # assumed
    "messages.tool_choice_deferred",  # assumed
    "messages.thinking_modified",
    "messages.thinking_bound",
    "messages.thread_repeats",
    "messages.thread_already_continued",
    "messages.thread_fingerprint",
    "messages.batch_empty",
    "messages.batch_custom_id",
}

VALID: list[dict[str, Any]] = [
    says("hi", [text("one"), use(), use("toolu_2")], [result("toolu_2"), result(), text("there")]),
    says("hi", [use(caller={"type": "direct"})], [result(content=[reference("late"), reference("ping")])]),
    says("hi", [use()], [result(content=[text("no")], is_error=True)]),
    says("hi", [use()], [{"type": "tool_result", "tool_use_id": "toolu_1"}]),
    says("hi", [SEARCH, FOUND, use("toolu_9", "late")], [result("toolu_9")], tools=[BM25, LATE]),
    says("hi", [SEARCH, use()], [result()], tools=[PING, BM25, LATE]),
    {"messages": turns("hi", "Once upon")},
    {"messages": turns("hi", [SEARCH]), "tools": [BM25, LATE]},
    changed(addition("late")),
    changed(BY_VALUE, after={"role": "assistant", "content": "so"}),
    changed(text("Now."), extra_headers={}),
    {"messages": HI, "tools": [], "tool_choice": {"type": "auto"}},
    {"messages": HI, "tool_choice": {"type": "none"}},
    says("hi", tool_choice={"type": "tool", "name": "ping", "disable_parallel_tool_use": True}),
    {"messages": turns([text("a", **HOUR), text("b", **CACHED)]), "system": "Be kind."},
    {"model": OLD, "messages": HI, "tools": [PING]},
    {"model": "claude-haiku-4-5-20251001", "messages": HI, "tools": [PING, LATE]},
]


@pytest.mark.parametrize(("rule", "request_"), BROKEN, ids=[f"{at}-{rule}" for at, (rule, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_a_400_of_the_sdk(rule: str, request_: dict[str, Any]):
    server = Emulator([Move(text="accepted")])
    with pytest.raises(anthropic.APIStatusError) as caught:
        claude_client(server).messages.create(**{"model": CLAUDE, "max_tokens": 100, **request_})
    exchange = server.exchanges[-1]
    assert exchange.rule == rule
    assert caught.value.status_code == book()[rule].status == exchange.status
    assert body_of(caught.value)["error"] == (exchange.reply or {})["error"]
    assert exchange.error == body_of(caught.value)["error"]["message"]
    assert "$" not in str(exchange.error).replace("+$", "").replace("}$", "")
    assert caught.value.error_code == book()[rule].code
    assert caught.value.request_id == body_of(caught.value)["request_id"]


@pytest.mark.parametrize("request_", VALID)
def test_valid_neighbours_pass_even_the_assumed_rules(request_: dict[str, Any]):
    server = Emulator([Move(text="accepted")], rules="all")
    claude_client(server).messages.create(**{"model": CLAUDE, "max_tokens": 100, **request_})
    assert server.exchanges[-1].warnings == ()


@pytest.mark.parametrize(
    ("rule", "request_"),
    [
        ("messages.result_mixes_reference", says("hi", [use()], [result(content=[reference("late"), text("so")])])),
        ("messages.tool_choice_deferred", says("hi", tool_choice={"type": "tool", "name": "late"})),
        ("messages.empty_system_text", {"messages": HI, "system": [text("")]}),
    ],
)
def test_assumed_rules_warn_and_reject_only_on_demand(rule: str, request_: dict[str, Any]):
    server = Emulator([Move(text="accepted")])
    claude_client(server).messages.create(model=CLAUDE, max_tokens=100, **request_)
    assert server.exchanges[-1].warnings == (rule,)
    assert book()[rule].grade == "assumed"
    with pytest.raises(anthropic.BadRequestError):
        claude_client(Emulator(rules="all")).messages.create(model=CLAUDE, max_tokens=100, **request_)


def test_a_forced_tool_that_the_transcript_loads_is_no_problem():
    server = Emulator([Move.call("late")], rules="all")
    history = says("hi", [use()], [result(content=[reference("late")])], tool_choice={"type": "tool", "name": "late"})
    assert claude_client(server).messages.create(model=CLAUDE, max_tokens=100, **history).stop_reason == "tool_use"


def test_key_version_and_fields_are_required():
    url = "https://api.anthropic.com/v1/messages"
    for headers, status, rule in [
        ({}, 401, "messages.no_credential"),
        ({"x-api-key": "k"}, 400, "messages.no_version"),
        ({"x-api-key": "k", "anthropic-version": "2023-06-01"}, 400, "messages.field_required"),
    ]:
        server = Emulator()
        assert server.handle("POST", url, headers, b"{}").status == status
        assert server.exchanges[-1].rule == rule
    server = Emulator()
    assert server.handle("POST", url, {"x-api-key": "k", "anthropic-version": "x"}, b"nonsense").status == 400


def test_count_tokens_needs_no_max_tokens_and_follows_the_same_rules():
    server = Emulator()
    client = claude_client(server)
    eager = client.messages.count_tokens(model=CLAUDE, messages=HI, tools=[PING, tool("late")]).input_tokens
    lazy = client.messages.count_tokens(model=CLAUDE, messages=HI, tools=[PING, LATE]).input_tokens
    assert lazy < eager
    with pytest.raises(anthropic.BadRequestError, match="All tools cannot be deferred"):
        client.messages.count_tokens(model=CLAUDE, messages=HI, tools=[LATE])
    assert [exchange.endpoint for exchange in server.exchanges] == ["count_tokens"] * 3


def test_batches_are_accepted_and_numbered():
    client = claude_client(Emulator())
    params: Any = {"model": CLAUDE, "max_tokens": 10, "messages": HI}
    batch = client.messages.batches.create(requests=[{"custom_id": "a", "params": params}])
    assert (batch.processing_status, batch.request_counts.processing) == ("in_progress", 1)
    with pytest.raises(anthropic.BadRequestError, match="custom_id"):
        client.messages.batches.create(requests=[{"custom_id": "a", "params": params}] * 2)
    with pytest.raises(anthropic.BadRequestError, match="at least 1"):
        client.messages.batches.create(requests=[])


def test_every_rule_of_the_dialect_is_shown_here():
    shown = {rule for rule, _ in BROKEN} | ELSEWHERE
    assert {rule.id for rule in book().rules.values() if rule.dialect == "anthropic.messages"} == shown


def test_every_rule_says_where_it_is_known_from():
    for rule in book().rules.values():
        assert rule.source, rule.id
        assert rule.date[:2] == "20", rule.id
        assert rule.grade in ("documented", "reported", "assumed"), rule.id
    for row in book().cache:
        assert row["source"], row
