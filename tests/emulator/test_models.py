"""The demo model and the planned one find their tools through every kind of discovery, and obey `tool_choice`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.emulator.support import (
    CHAT_MODEL,
    CLAUDE,
    STRING,
    chat_client,
    chat_tool,
    claude_client,
    deferred,
    reference,
    result,
    tool,
    user,
)

from loadpoint.emulator import Emulator, Move, Script, Turn
from loadpoint.emulator._arguments import plausible
from loadpoint.emulator._demo import best_fit, words
from loadpoint.emulator._script import Shown

REQUEST = "Post 'build is green' to the #releases channel on Slack"
WANTED = {"channel": "#releases", "text": "build is green"}
SLACK = chat_tool("slack_post_message", "Post a message to a Slack channel", channel=STRING, text=STRING)
MANY = [
    chat_tool(f"crm_{noun}_{verb}", f"{verb} a {noun} of the CRM", id=STRING)
    for noun in ("lead", "deal", "account", "contact", "invoice")
    for verb in ("get", "create", "delete", "update", "archive")
]
SEARCH = chat_tool("ToolSearch", "Finds tools", query=STRING)
BRIDGE = [
    chat_tool("load_tools", "# On-demand tools\nslack_post_message", tools={"type": "array"}, query=STRING),
    chat_tool("call_tool", "Calls one", tool=STRING, params={"type": "object"}),
]


def drive(server: Emulator, tools: list[Any], *asked: str, **extra: Any) -> list[Any]:
    """A user's loop on chat: every call is answered; found tools are appended to the list, as a resending caller does.

    Gives back what the model said and called, in order.
    """
    client, messages, said = chat_client(server), [], []
    tools = list(tools)
    for words_ in asked:
        messages.append(user(words_))
        while True:
            reply = client.chat.completions.create(model=CHAT_MODEL, messages=messages, tools=tools, **extra)
            message = reply.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            if not message.tool_calls:
                said.append(message.content)
                break
            for made in message.tool_calls:
                said.append((made.function.name, json.loads(made.function.arguments)))
                messages.append({"role": "tool", "tool_call_id": made.id, "content": answer(made.function, tools)})
    return said


def answer(made: Any, tools: list[Any]) -> str:
    if made.name == "ToolSearch":
        if SLACK not in tools and "slack" in made.arguments.lower():
            tools.append(SLACK)
        return json.dumps({"query": "q", "matches": [{"name": "slack_post_message", "loaded": True}]})
    if made.name == "load_tools":
        return "Loaded: " + json.dumps(SLACK["function"])
    return "posted"


def test_it_calls_what_it_sees():
    done = drive(Emulator(), [*MANY, SLACK], REQUEST)
    assert done == [("slack_post_message", WANTED), "Done: slack_post_message answered 'posted'."]


def test_it_searches_for_what_it_does_not_see():
    done = drive(Emulator(), [SEARCH, MANY[0]], REQUEST)
    assert done == [
        ("ToolSearch", {"query": REQUEST}),
        ("slack_post_message", WANTED),
        "Done: slack_post_message answered 'posted'.",
    ]


def test_it_goes_over_the_bridge():
    done = drive(Emulator(), [*BRIDGE, MANY[0]], REQUEST)
    assert done[0] == ("load_tools", {"tools": [], "query": REQUEST})
    assert done[1] == ("call_tool", {"tool": "slack_post_message", "params": WANTED})
    assert done[2] == "Done: slack_post_message answered 'posted'."


def test_it_gives_up_when_nothing_is_found():
    assert drive(Emulator(), [SEARCH], "Paint the bicycle shed") == [
        ("ToolSearch", {"query": "Paint the bicycle shed"}),
        "I found no tool for that.",
    ]
    assert drive(Emulator(), [MANY[0]], "Paint the bicycle shed") == ["I have no tool for that."]


def test_a_greeting_is_answered_and_later_turns_start_afresh():
    done = drive(Emulator(), [SEARCH, *MANY[:3]], "Hi, how are you?", REQUEST, REQUEST)
    assert done[0] == "Hello! What can I do for you?"
    assert [item[0] for item in done[1:] if isinstance(item, tuple)] == [
        "ToolSearch",
        "slack_post_message",
        "slack_post_message",
    ]


def test_it_obeys_the_choice_of_tools():
    named = {"type": "function", "function": {"name": SLACK["function"]["name"]}}
    client = chat_client(Emulator())

    def choose(choice: Any, tools: list[Any], text: str = REQUEST) -> Any:
        reply = client.chat.completions.create(model=CHAT_MODEL, messages=[user(text)], tools=tools, tool_choice=choice)
        calls = reply.choices[0].message.tool_calls
        return calls and calls[0].function.name

    assert choose("none", [SLACK]) is None
    assert choose(named, [SEARCH, SLACK], "hello") == "slack_post_message"
    assert choose("required", [MANY[0], SEARCH], "hello") == "crm_lead_get"
    assert choose("required", [SEARCH, MANY[0]]) == "ToolSearch"
    allowed = {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "ToolSearch"}}]},
    }
    assert choose(allowed, [SLACK, SEARCH]) == "ToolSearch"


LATE = deferred(
    "slack_post_message", "Post a message to a Slack channel", properties={"channel": STRING, "text": STRING}
)


def test_native_loading_makes_a_deferred_tool_visible():
    server = Emulator()
    client = claude_client(server)
    tools: Any = [tool("ToolSearch", "Finds tools", properties={"query": STRING}), LATE]
    messages: list[Any] = [user(REQUEST)]
    first = client.messages.create(model=CLAUDE, max_tokens=99, messages=messages, tools=tools)
    assert first.content[-1].name == "ToolSearch"
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result(first.content[-1].id, [reference("slack_post_message")])]},
    ]
    second = client.messages.create(model=CLAUDE, max_tokens=99, messages=messages, tools=tools)
    assert (second.content[-1].name, second.content[-1].input) == ("slack_post_message", WANTED)
    assert server.exchanges[0].loaded == ()
    assert server.exchanges[1].loaded == ("slack_post_message",)


def test_the_providers_own_search_answers_in_one_reply():
    server = Emulator()
    client = claude_client(server)
    tools: Any = [{"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}, LATE]
    messages: list[Any] = [user(REQUEST)]
    with client.messages.stream(model=CLAUDE, max_tokens=99, messages=messages, tools=tools) as stream:
        reply = stream.get_final_message()
    assert [block.type for block in reply.content] == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    assert reply.content[2].input == WANTED
    messages += [
        {"role": "assistant", "content": reply.content},
        {"role": "user", "content": [result(reply.content[2].id)]},
    ]
    done = client.messages.create(model=CLAUDE, max_tokens=99, messages=messages, tools=tools)
    assert done.content[0].text == "Done: slack_post_message answered 'ok'."
    searched, answered = server.exchanges
    assert reply.usage.input_tokens == searched.input_tokens > 2 * searched.tokens.total
    assert searched.input_tokens - searched.tokens.total < answered.tokens.total


def test_tools_change_in_the_middle_of_a_conversation():
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move(text="ok")

    client = claude_client(Emulator(look))
    fresh = {"type": "tool_definition", "definition": tool("fresh")}
    changes = [
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "slack_post_message"}},
        {"type": "tool_addition", "tool": fresh},
        {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "ping"}},
    ]
    client.messages.create(
        model=CLAUDE,
        max_tokens=9,
        messages=[user("hi"), {"role": "system", "content": changes}],
        tools=[tool("ping"), LATE, deferred("never")],
        extra_headers={"anthropic-beta": "inline-tools-2026-09-15"},
    )
    assert seen[0].names == ("slack_post_message", "fresh")
    assert seen[0].deferred == ("ping", "never")


def test_a_turn_shows_the_request_in_neutral_words():
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move.call("slack_post_message", WANTED) if turn.number == 1 else Move(text="ok")

    drive(Emulator(look), [SLACK], "first", "second")
    first, second, third = seen
    assert (first.text, second.text, third.text) == ("first", "first", "second")
    assert third.texts == ("first", "second")
    assert [call.name for call in second.results] == ["slack_post_message"]
    assert (second.results[0].arguments, second.results[0].result) == (WANTED, "posted")
    assert third.results == ()
    assert [call.current for call in third.history] == [False]
    assert (first.model, first.dialect, first.choice, first.stream) == (CHAT_MODEL, "openai.chat", "auto", False)
    shown = first.tool("slack_post_message")
    assert shown is not None
    assert shown.parameters == SLACK["function"]["parameters"]
    assert first.tool("other") is None
    assert first.body["tools"] == [SLACK]


def test_a_plan_is_followed_through_any_discovery():
    plan: Any = [[("slack_post_message", WANTED, "post to slack"), [("ping", {}), ("ping", {"n": 2})]], []]
    ping = chat_tool("ping")
    calls = [("slack_post_message", WANTED), ("ping", {}), ("ping", {"n": 2}), "Done.", "Nothing to do."]
    assert drive(Emulator(Script.agent(plan)), [SLACK, ping], "go", "and?") == calls
    found = drive(Emulator(Script.agent(plan)), [SEARCH, ping], "go", "and?")
    assert found == [("ToolSearch", {"query": "post to slack"}), *calls]
    bridged = drive(Emulator(Script.agent({"go": plan[0]})), [*BRIDGE, ping], "go", "and?")
    assert bridged[:2] == [
        ("load_tools", {"tools": ["slack_post_message"], "query": "post to slack"}),
        ("call_tool", {"tool": "slack_post_message", "params": WANTED}),
    ]
    assert bridged[2:] == calls[1:]


def test_a_plan_gives_up_after_two_searches():
    said = drive(Emulator(Script.agent([[("gone", {}, "find it")]])), [SEARCH], "go")
    assert said == [
        ("ToolSearch", {"query": "find it"}),
        ("ToolSearch", {"query": "gone"}),
        "I could not find the tool gone.",
    ]


def test_scripts_may_be_functions_sequences_and_mixtures():
    server = Emulator(Script.sequence([Move(text="a"), lambda turn: Move(text=turn.text)], then=Move(text="z")))
    assert drive(server, [SLACK], "one", "two", "three", "four") == ["a", "two", "z", "z"]


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"properties": {"n": {"type": "integer"}}, "required": ["n"]}, "close issue 42", {"n": 42}),
        ({"properties": {"n": {"type": "number", "maximum": 3}}, "required": ["n"]}, "wait 7.5 s", {"n": 3}),
        ({"properties": {"s": {"enum": ["open", "closed"]}}, "required": ["s"]}, "list closed ones", {"s": "closed"}),
        ({"properties": {"issue_id": {"type": "string"}}, "required": []}, "close OPS-17 now", {"issue_id": "OPS-17"}),
        ({"properties": {"s": {"const": "x"}, "o": {"type": "string"}}, "required": ["s"]}, "go", {"s": "x"}),
        ({"properties": {"b": {"type": "boolean"}}, "required": ["b"]}, "go", {"b": True}),
        ({"properties": {"to": {"type": "string"}}, "required": []}, "mail bo@example.com", {"to": "bo@example.com"}),
        (
            {"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}, "required": ["ids"]},
            "drop 5",
            {"ids": [5]},
        ),
        (
            {
                "$defs": {"At": {"type": "object", "properties": {"day": {"type": "string"}}, "required": ["day"]}},
                "properties": {"at": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/At"}]}},
                "required": ["at"],
            },
            "on 2026-12-24",
            {"at": {"day": "2026-12-24"}},
        ),
        (
            {"properties": {"u": {"type": ["string", "null"], "format": "uuid"}}, "required": ["u"]},
            "go",
            {"u": "3f2b8c1e-6d4a-4b7f-9a51-0c2d8e7f6a90"},
        ),
    ],
)
def test_arguments_are_plausible(schema: dict[str, Any], text: str, expected: dict[str, Any]):
    assert plausible(schema, text) == expected


def test_fitting_needs_two_words_and_one_in_the_name():
    tools = [Shown("readFile", "Reads a file from the Slack channel"), Shown("sendMail", "Sends mail")]
    assert best_fit("Read the slack channel", tools) is tools[0]
    assert best_fit("Post to the slack channel", tools) is None
    assert best_fit("", tools) is None
    pair = [Shown("crm_create_order"), Shown("crm_create_invoice")]
    assert best_fit("Create an invoice in the crm for order 42", pair) is pair[1]
    assert words("createHTTPServer v2") == ["creat", "http", "server", "v", "2"]


def test_kimi_takes_tools_in_a_system_message():
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move(text="ok")

    server = Emulator(look, rules="all")
    messages = [user("hi"), {"role": "system", "tools": [SLACK]}]
    client = chat_client(server)
    client.chat.completions.create(model="kimi-k3", messages=messages[:1], tools=[SEARCH])
    client.chat.completions.create(model="kimi-k3", messages=messages, tools=[SEARCH])
    assert [turn.names for turn in seen] == [("ToolSearch",), ("ToolSearch", "slack_post_message")]
    before, after = server.exchanges
    assert after.loaded == ("slack_post_message",)
    assert after.tokens.tools == before.tokens.tools
    assert after.tokens.messages > before.tokens.messages
    assert after.common_tokens == before.input_tokens
