"""The scripted models find their tools through every form of the Responses API, and through Baseten's on Chat."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from tests.emulator.support import (
    CLAUDE,
    STRING,
    Json,
    added,
    chat_client,
    chat_tool,
    claude_client,
    client_search,
    deferred,
    function,
    given,
    late,
    namespace,
    reference,
    tool,
    user,
)

from loadpoint import emulator
from loadpoint.emulator import Emulator, Move, Script, Turn

MODEL = "gpt-5.4"
REQUEST = "Post 'build is green' to the #releases channel on Slack"
WANTED = {"channel": "#releases", "text": "build is green"}
PROPERTIES = {"channel": STRING, "text": STRING}
POST = function("slack_post_message", "Post a message to a Slack channel", properties=PROPERTIES)
LATE: Json = {**POST, "defer_loading": True}
HOSTED: Json = {"type": "tool_search"}
PING = function("ping", "Pings")
ENDS = ["slack_post_message", "Done: slack_post_message answered 'posted'."]
PLAN: Any = [[("slack_post_message", WANTED, "post to slack")]]


def drive(server: Emulator, tools: list[Any], asked: str = REQUEST, *before: Any) -> list[Any]:
    """A user's loop that answers calls, and the client's searches with the tool. What was called and said."""
    client, items, said = chat_client(server), [*before, user(asked)], []
    while True:
        reply = client.responses.create(model=MODEL, input=items, tools=tools)
        items += [item.model_dump(exclude_none=True) for item in reply.output]
        called = [item for item in reply.output if item.type.endswith("_call")]
        said += [getattr(item, "name", item.type) for item in called]
        if all(item.type != "function_call" and item.call_id is None for item in called):
            return [*said, reply.output_text]
        for item in called:
            if item.type == "function_call":
                if item.name == POST["name"]:
                    assert json.loads(item.arguments) == WANTED
                items.append(given(item.call_id, "posted"))
            elif item.call_id is not None:
                found = [LATE] if "slack" in str(item.arguments).lower() else []
                items.append({"type": "tool_search_output", "call_id": item.call_id, "tools": found})


@pytest.mark.parametrize("plan", [None, PLAN])
@pytest.mark.parametrize(
    ("tools", "before", "searches"),
    [
        ([POST, PING], (), []),
        ([client_search(), PING], (), ["tool_search_call"]),
        ([client_search(goal=STRING), LATE], (), ["tool_search_call"]),
        ([HOSTED, LATE, PING], (), ["tool_search_call"]),
        ([HOSTED, namespace("slack", LATE), PING], (), ["tool_search_call"]),
        ([PING], (added(POST),), []),
    ],
    ids=["listed", "client", "client with its own words", "hosted", "hosted namespace", "added"],
)
def test_it_finds_its_tool(tools: list[Any], before: tuple[Any, ...], searches: list[str], plan: Any):
    server = Emulator(Script.agent(plan), rules="all")
    said = drive(server, tools, REQUEST, *before)
    assert said[:-1] == [*searches, ENDS[0]]
    assert said[-1] == (ENDS[1] if plan is None else "Done.")


def test_it_gives_up_when_nothing_is_found():
    assert drive(Emulator(), [client_search(), PING], "Paint the bicycle shed") == [
        "tool_search_call",
        "I found no tool for that.",
    ]
    assert drive(Emulator(), [HOSTED, LATE], "Paint the bicycle shed") == [
        "tool_search_call",
        "I found no tool for that.",
    ]
    gone: Any = [[("gone", {}, "find it")]]
    assert drive(Emulator(Script.agent(gone)), [client_search()]) == [
        "tool_search_call",
        "tool_search_call",
        "I could not find the tool gone.",
    ]
    assert drive(Emulator(), [PING], "Paint the bicycle shed") == ["I have no tool for that."]


def test_it_obeys_the_choice_of_tools():
    client = chat_client(Emulator())

    def choose(choice: Any, tools: list[Any], text: str = REQUEST) -> Any:
        output = client.responses.create(model=MODEL, input=text, tools=tools, tool_choice=choice).output
        return [getattr(item, "name", item.type) for item in output]

    assert choose("none", [POST]) == ["message"]
    assert choose({"type": "function", "name": "slack_post_message"}, [PING, POST], "hello") == ["slack_post_message"]
    assert choose("required", [PING, client_search()]) == ["tool_search_call"]
    assert choose("required", [PING, POST], "hello") == ["ping"]
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "ping"}]}
    assert choose(allowed, [POST, PING]) == ["message"]


def test_a_turn_shows_the_tools_in_neutral_words():
    seen: list[Turn] = []

    def look(turn: Turn) -> Move:
        seen.append(turn)
        return Move(text="ok")

    server = Emulator(look)
    tools = [HOSTED, LATE, namespace("crm", late("lookup"), function("list"))]
    chat_client(server).responses.create(model=MODEL, input=[user("a"), user("b")], tools=tools)
    first = seen[0]
    assert (first.names, first.deferred) == (("list", "tool_search"), ("slack_post_message", "lookup"))
    assert (first.search, first.text, first.texts) == ("tool_search", "b", ("a", "b"))
    listed = first.tool("crm.list")
    assert listed is not None
    assert listed.namespace == "crm"
    search: Any = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"q": "x"}}
    found: Any = {"type": "tool_search_output", "call_id": "call_1", "tools": tools[1:]}
    chat_client(server).responses.create(model=MODEL, input=[user("a"), search, found])
    second = seen[1]
    assert second.names == ("slack_post_message", "lookup", "list")
    assert second.history[0].references == second.names
    assert (second.history[0].name, second.history[0].arguments) == ("tool_search", {"q": "x"})
    assert second.search is None
    own = function("tool_search", "The caller's own")
    chat_client(server).responses.create(model=MODEL, input="hi", tools=[own, client_search()])
    assert (seen[2].names, seen[2].search) == (("tool_search",), None)


def test_a_tool_named_like_its_server():
    server = Emulator([Move(calls=[("tool_search", {"paths": ["fetch"]}), ("fetch", {})])])
    tools = [HOSTED, namespace("fetch", late("fetch"))]
    call = chat_client(server).responses.create(model=MODEL, input="go", tools=tools).output[-1]
    assert (call.name, call.namespace) == ("fetch", "fetch")


@pytest.mark.parametrize("beside", [True, False])
def test_references_on_chat_where_the_host_takes_them(beside: bool):
    server = Emulator(rules="all")
    client: Any = openai.OpenAI(
        api_key="k", base_url="https://inference.baseten.co/v1", http_client=emulator.http_client("openai", server)
    )
    post = chat_tool("slack_post_message", "Post a message to a Slack channel", **PROPERTIES)
    marked: Any = {**post, "defer_loading": True}
    inside: Any = {"type": "function", "function": {**post["function"], "defer_loading": True}}
    tools = [chat_tool("ToolSearch", "Finds tools", query=STRING), marked if beside else inside]
    messages: list[Any] = [user(REQUEST)]
    said: list[Any] = []
    for content in ([reference("slack_post_message")], "posted", None):
        reply = client.chat.completions.create(model="moonshotai/Kimi-K3", messages=messages, tools=tools)
        message = reply.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        said.append(message.tool_calls[0].function.name)
        messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": content})
    assert said == ["ToolSearch", "slack_post_message"]
    first, second, third = server.exchanges
    assert (first.loaded, second.loaded) == ((), ("slack_post_message",))
    assert first.tokens.tools == second.tokens.tools == third.tokens.tools
    assert second.common_tokens == first.input_tokens
    with pytest.raises(openai.BadRequestError, match="Unknown parameter"):
        chat_client(Emulator()).chat.completions.create(model=MODEL, messages=messages[:1], tools=tools)


def test_a_schema_is_rendered_where_it_is_first_referred_to():
    server = Emulator([Move(text="ok")] * 2, rules="all")
    client: Any = openai.OpenAI(
        api_key="k", base_url="https://inference.baseten.co/v1", http_client=emulator.http_client("openai", server)
    )
    tools = [{**chat_tool("late", "A long story. " * 50), "defer_loading": True}]

    def found(id_: str) -> list[Any]:
        call = {"id": id_, "type": "function", "function": {"name": "find", "arguments": "{}"}}
        content = [reference("late")]
        return [
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": id_, "content": content},
        ]

    client.chat.completions.create(model="m", messages=[user("hi"), *found("a")], tools=tools)
    client.chat.completions.create(model="m", messages=[user("hi"), *found("a"), *found("b")], tools=tools)
    once, twice = server.exchanges
    assert once.tokens.messages > 150
    assert twice.tokens.messages < once.tokens.messages + 100


@pytest.mark.parametrize(
    ("name", "wanted", "found"),
    [
        ("tool_search_tool_bm25", {"query": "send a slack message"}, ["slack_send", "mail_send"]),
        ("tool_search_tool_bm25", {"query": "send a slack message", "limit": 1}, ["slack_send"]),
        ("tool_search_tool_bm25", {"query": "recipient"}, ["mail_send"]),
        ("tool_search_tool_bm25", {"query": "unrelated"}, []),
        ("tool_search_tool_bm25", {"query": "x" * 501}, "invalid_tool_input"),
        ("tool_search_tool_regex", {"pattern": "SLACK|ledger"}, ["slack_send", "ledger_read"]),
        ("tool_search_tool_regex", {"pattern": "("}, "invalid_tool_input"),
        ("tool_search_tool_regex", {"pattern": "x" * 201}, "invalid_tool_input"),
    ],
)
def test_the_searches_of_the_messages_api_are_run(name: str, wanted: Json, found: Any):
    to = {"to": {"type": "string", "description": "The recipient"}}
    tools: Any = [
        {"type": f"{name}_20251119", "name": name},
        deferred("slack_send", "Send a message to a Slack channel"),
        deferred("mail_send", "Send mail", properties=to),
        deferred("ledger_read", "Read one row"),
        tool("slack_resident", "Send a message to Slack"),
    ]
    server = Emulator([Move(calls=[(name, wanted)])], rules="all")
    reply = claude_client(server).messages.create(model=CLAUDE, max_tokens=99, messages=[user("go")], tools=tools)
    call, result = reply.content
    assert (call.type, call.input, result.tool_use_id) == ("server_tool_use", wanted, call.id)
    assert reply.stop_reason == "end_turn"
    if isinstance(found, str):
        assert result.content.error_code == found
    else:
        assert [item.tool_name for item in result.content.tool_references] == found
