"""Changes of the tools in the middle of a Messages conversation: forms, places, headers, limits, platforms, caching."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import pytest
from tests.emulator.support import CLAUDE, Json, claude_client, deferred, tool, user

from loadpoint.emulator import Emulator, Exchange, Move, Script, Turn
from loadpoint.emulator._rules import book

INLINE = {"anthropic-beta": "inline-tools-2026-09-15"}
OLDER = {"anthropic-beta": "mid-conversation-tool-changes-2026-07-01"}
PING, LATE = tool("ping"), deferred("late")
CACHED = {"cache_control": {"type": "ephemeral"}}
LONG = "The quick brown fox jumps over the lazy dog near the old river bank. " * 200
BM25 = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def addition(name: str, **extra: Any) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}, **extra}


def removal(name: str) -> Json:
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}


def by_value(definition: Json, **extra: Any) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}, **extra}


def of_server(kind: str = "mcp_tool_reference", **extra: Any) -> Json:
    return {"type": "tool_addition", "tool": {"type": kind, "server_name": "crm", **extra}}


def system(*blocks: Json, **extra: Any) -> Json:
    return {"role": "system", "content": list(blocks), **extra}


def send(server: Emulator, *messages: Any, headers: Json = INLINE, tools: Any = (PING, LATE), **extra: Any) -> Exchange:
    request_ = {"model": CLAUDE, "max_tokens": 99, "messages": list(messages), "tools": list(tools), **extra}
    claude_client(server).messages.create(**request_, extra_headers=headers)
    return server.exchanges[-1]


COMPUTER = {"type": "computer_20251124", "name": "computer"}
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "crm", "name": "crm"}
BROKEN: list[tuple[str, Json]] = [
    ("messages.tool_change_clear_at", system(addition("late"), clear_at="next_user_message")),
    (
        "messages.tool_change_shape",
        system({"type": "tool_addition", "tool": {"type": "tool_reference", "tool_name": "late"}}),
    ),
    ("messages.tool_change_shape", system({"type": "tool_addition", "tool": {"type": "custom", "name": "late"}})),
    (
        "messages.tool_change_shape",
        system({"type": "tool_removal", "tool": {"type": "tool_definition", "definition": PING}}),
    ),
    ("messages.tool_change_shape", system(of_server())),
    ("messages.tool_change_unknown", system(removal("gone"))),
    ("messages.tool_change_unknown", system(of_server(name="list"))),
    ("messages.tool_change_unknown", system(of_server("mcp_toolset_reference"))),
    ("messages.tool_name_conflict", system(by_value({**BM25, "name": "ping"}))),
    (
        "messages.tool_name_conflict",
        system(by_value(tool("fresh")), by_value(COMPUTER | {"type": "x_1", "name": "late"})),
    ),
    ("messages.tool_change_two_markers", system(by_value(tool("fresh", **CACHED), **CACHED))),
    ("messages.defer_with_cache_control", system(by_value(deferred("fresh", **CACHED)))),
    ("messages.inline_type", system(by_value(COMPUTER))),
    ("messages.inline_mcp_header", system(by_value(TOOLSET))),
    ("messages.available_tools_limit", system(by_value(tool("fresh", "d" * 4_194_305)))),
]


@pytest.mark.parametrize(("rule", "message"), BROKEN, ids=[f"{at}-{rule}" for at, (rule, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_a_400(rule: str, message: Json):
    server = Emulator([Move(text="accepted")])
    with pytest.raises(anthropic.BadRequestError) as caught:
        send(server, user("hi"), message)
    assert server.exchanges[-1].rule == rule
    assert caught.value.error_code == book()[rule].code
    assert "$" not in str(server.exchanges[-1].error)


def test_the_sdk_has_classes_for_the_errors_with_codes():
    for messages_, kind in [
        (system(addition("gone")), "ToolReferenceUnresolvedError"),
        (system(by_value({**BM25, "name": "ping"})), "ToolNameConflictError"),
        (system(by_value(tool("fresh", "d" * 4_194_305))), "AvailableToolsLimitExceededError"),
    ]:
        with pytest.raises(anthropic.BadRequestError) as caught:
            send(Emulator(), user("hi"), messages_)
        assert type(caught.value).__name__ == kind


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([user("hi"), system(addition("late"))], None),
        ([user("hi"), system(addition("late")), {"role": "assistant", "content": "so"}, user("and?")], None),
        ([user("hi"), system(addition("late")), system(removal("ping"))], None),
        ([system(addition("late")), user("hi")], "messages.first_role"),
        ([user("hi"), system(addition("late")), user("and?")], "messages.system_role_position"),
        (
            [user("hi"), system(addition("late")), system({"type": "text", "text": "x"}), user("and?")],
            "messages.system_role_position",
        ),
        (
            [
                user("hi"),
                {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ping", "input": {}}]},
                system(addition("late")),
                user([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]),
            ],
            "messages.system_role_position",
        ),
        ([user("hi"), {"role": "assistant", "content": "so"}, system(addition("late"))], "messages.system_role_after"),
    ],
)
def test_where_changes_may_stand(messages: list[Any], rule: str | None):
    server = Emulator([Move(text="ok")], ignore=["messages.tool_use_unanswered"])
    if rule is None:
        assert send(server, *messages).warnings == ()
    else:
        with pytest.raises(anthropic.BadRequestError):
            send(server, *messages)
        assert server.exchanges[-1].rule == rule


def test_headers():
    for headers, by_reference, inline in [({}, False, False), (OLDER, True, False), (INLINE, True, True)]:
        for block, accepted in ((addition("late"), by_reference), (by_value(tool("fresh")), inline)):
            server = Emulator([Move(text="ok")])
            if accepted:
                send(server, user("hi"), system(block), headers=headers)
            else:
                with pytest.raises(anthropic.BadRequestError):
                    send(server, user("hi"), system(block), headers=headers)
                assert server.exchanges[-1].rule == "messages.tool_change_header"
    toolset = {"anthropic-beta": "inline-tools-2026-09-15,mcp-client-2026-09-15"}
    servers = [{"type": "url", "name": "crm", "url": "https://mcp.example"}]
    server = Emulator([Move(text="ok")])
    body = {"mcp_servers": servers}
    send(
        server,
        user("hi"),
        system(by_value(TOOLSET), of_server("mcp_toolset_reference")),
        headers=toolset,
        extra_body=body,
    )


def raw(server: Emulator, host: str, body: Json) -> int:
    headers = {"authorization": "x", "x-api-key": "k", "anthropic-version": "2023-06-01"}
    path = "/model/anthropic.claude-opus-5/invoke" if "bedrock" in host else "/v1/messages"
    return server.handle("POST", f"https://{host}{path}", headers, json.dumps(body).encode()).status


def test_what_the_platforms_take():
    body: Json = {"anthropic_version": "x", "max_tokens": 9, "messages": [user("hi")], "model": "claude-opus-5"}
    bedrock, vertex = "bedrock-runtime.us-east-1.amazonaws.com", "us-east5-aiplatform.googleapis.com"
    searching = [
        (bedrock, BM25, "messages.bm25_on_bedrock"),
        (bedrock, REGEX, None),
        (vertex, BM25, None),
        ("api.anthropic.com", BM25, None),
    ]
    changing = [
        (bedrock, addition("late"), None),
        (bedrock, by_value(tool("fresh")), "messages.inline_platform"),
        (vertex, by_value(tool("fresh")), "messages.inline_platform"),
        ("api.anthropic.com", by_value(tool("fresh")), None),
    ]
    for host, search, rule in searching:
        server = Emulator([Move(text="ok")])
        assert raw(server, host, {**body, "tools": [search, LATE]}) == (400 if rule else 200)
        assert server.exchanges[-1].rule == rule
    for host, block, rule in changing:
        server = Emulator([Move(text="ok")])
        asked = {**body, "tools": [PING, LATE], "messages": [user("hi"), system(block)]}
        assert raw(server, host, {**asked, "anthropic_beta": ["inline-tools-2026-09-15"]}) == (400 if rule else 200)
        assert server.exchanges[-1].rule == rule


def test_a_removed_tool_is_added_again_and_a_definition_replaced():
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move(text="ok")

    server = Emulator(look)
    newer = by_value(tool("fresh", "Does it better"))
    changes = [by_value(tool("fresh")), removal("fresh"), addition("fresh"), newer, removal("ping")]
    send(server, user("hi"), system(*changes))
    assert seen[0].names == ("fresh",)
    fresh = seen[0].tool("fresh")
    assert fresh is not None
    assert fresh.description == "Does it better"
    send(server, user("hi"), system(by_value(tool("fresh")), removal("fresh")))
    assert seen[1].names == ("ping",)


@pytest.mark.parametrize(("tools", "kept"), [((PING,), True), ((LATE, REGEX), True), ((), False)])
def test_the_first_definition_misses_the_cache_where_no_tool_is_resident(tools: tuple[Json, ...], kept: bool):
    server = Emulator(Script.sequence([], then=Move(text="ok")), rules="all")
    base = [user([{"type": "text", "text": LONG, **CACHED}])]
    first = send(server, *base, tools=tools)
    second = send(server, *base, system(by_value(tool("fresh"), **CACHED)), tools=tools)
    assert (second.cached_tokens == first.written_tokens) is kept
    assert (second.cached_tokens == 0) is not kept
    more = [system(by_value(tool("fresh"), **CACHED)), {"role": "assistant", "content": "ok"}, user("and?")]
    third = send(server, *base, *more, system(by_value(tool("more"), **CACHED)), tools=tools)
    assert third.cached_tokens == second.cached_tokens + second.written_tokens


def test_a_change_by_reference_is_appended():
    server = Emulator(Script.sequence([], then=Move(text="ok")), rules="all")
    base = [user([{"type": "text", "text": LONG, **CACHED}])]
    first = send(server, *base)
    second = send(server, *base, system(addition("late", **CACHED)))
    assert second.cached_tokens == first.written_tokens
    assert second.loaded == ("late",)
    assert second.tokens.tools == first.tokens.tools


def test_an_identical_definition_again_is_no_change():
    server = Emulator(Script.sequence([], then=Move(text="ok")))
    once = send(server, user("hi"), system(by_value(tool("fresh", LONG))))
    again = send(server, user("hi"), system(by_value(tool("fresh", LONG)), by_value(tool("fresh", LONG))))
    newer = send(server, user("hi"), system(by_value(tool("fresh", LONG)), by_value(tool("fresh", LONG + "!"))))
    assert again.tokens.messages - once.tokens.messages < 100
    assert newer.tokens.messages - once.tokens.messages > 1000


COMPACT: Json = {
    "type": "compaction",
    "content": "So far: nothing.",
    "encrypted_content": "opaque",
    "tool_changes": [by_value(tool("fresh"))],
}


@pytest.mark.parametrize("stream", [False, True])
def test_a_compaction_stands_for_what_came_before_and_keeps_its_tools(stream: bool):
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move(text="ok", before=(COMPACT,) if len(seen) == 1 else ())

    server = Emulator(look)
    messages: Any = claude_client(server).beta.messages
    asked = {"model": CLAUDE, "max_tokens": 99, "tools": [PING, LATE], "betas": [INLINE["anthropic-beta"]]}
    opening = [user(LONG), system(addition("late"))]
    if stream:
        with messages.stream(**asked, messages=opening) as events:
            reply = events.get_final_message()
    else:
        reply = messages.create(**asked, messages=opening)
    block = reply.content[0].to_dict()
    assert block == COMPACT
    history = [*opening, {"role": "assistant", "content": reply.content}, user("and?")]
    messages.create(**asked, messages=history)
    assert seen[0].names == ("ping", "late")
    assert seen[1].names == ("ping", "fresh"), "what was loaded before it is gone, what it names is there"
    assert server.exchanges[1].tokens.messages < server.exchanges[0].tokens.messages / 10
    for other in ({**COMPACT, "tool_changes": []}, {**COMPACT, "tool_changes": None}):
        with pytest.raises(anthropic.BadRequestError) as caught:
            messages.create(**asked, messages=[*opening, {"role": "assistant", "content": [other]}, user("and?")])
        assert server.exchanges[-1].rule == "messages.compaction_tool_changes_mismatch"
        assert type(caught.value).__name__ == "CompactionToolChangesMismatchError"


def test_what_is_in_context_is_limited_too():
    server = Emulator()
    with pytest.raises(anthropic.BadRequestError) as caught:
        send(server, user("hi"), tools=[tool("large", "d" * 4_194_305)])
    assert server.exchanges[-1].rule == "messages.rendered_tools_limit"
    assert type(caught.value).__name__ == "AvailableToolsLimitExceededError"


SEARCHED: Json = {"type": "server_tool_use", "id": "srvtoolu_1", "name": BM25["name"], "input": {"query": "late"}}
FOUND: Json = {
    "type": "tool_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": {"type": "tool_search_tool_search_result", "tool_references": []},
}


@pytest.mark.parametrize(
    ("messages", "rule"),
    [
        ([user("hi"), {"role": "assistant", "content": [SEARCHED]}], None),
        (
            [
                user("hi"),
                {"role": "assistant", "content": [SEARCHED]},
                {"role": "assistant", "content": [FOUND]},
                user("on"),
            ],
            None,
        ),
        (
            [user("hi"), {"role": "assistant", "content": [SEARCHED]}, user("on")],
            "messages.server_tool_use_unanswered",
        ),
        (
            [
                user("hi"),
                {"role": "assistant", "content": [SEARCHED]},
                user("on"),
                {"role": "assistant", "content": [FOUND]},
                user("on"),
            ],
            "messages.server_tool_use_unanswered",
        ),
        ([user("hi"), {"role": "assistant", "content": [FOUND]}, user("on")], "messages.server_result_orphan"),
    ],
)
def test_a_search_is_answered_in_the_turn_that_made_it(messages: list[Any], rule: str | None):
    server = Emulator([Move(text="ok")])
    if rule is None:
        assert send(server, *messages, tools=[BM25, LATE]).warnings == ()
    else:
        with pytest.raises(anthropic.BadRequestError):
            send(server, *messages, tools=[BM25, LATE])
        assert server.exchanges[-1].rule == rule
