"""Field reports about the arguments of calls: empty, absent, in pieces, said twice, or with half a character."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, Conversation, Form, everywhere, search, tools

import loadpoint
from loadpoint import Policy, SqliteLedger, emulator
from loadpoint._json import Json
from loadpoint._sse import Reader, frame
from loadpoint.emulator import Move, Script

TOOL = "invoice_export"
CLOCK = "clock_read"
Alter = Callable[[Json], Iterable[Json]]
CHAT_STREAM = Form(CHAT, "resend", stream=True)
MESSAGES_STREAMS = [Form(MESSAGES, strategy, stream=True) for strategy in ("native", "resend")]
streams = pytest.mark.parametrize(
    "form", [CHAT_STREAM, *MESSAGES_STREAMS], ids=lambda form: f"{form.dialect.split('.')[1]}-{form.strategy}"
)
message_streams = pytest.mark.parametrize("form", MESSAGES_STREAMS, ids=lambda form: form.strategy)
WAYS = ["loaded", "not loaded", "resident"]


@dataclass
class Backend(Conversation):
    """A conversation with a server that writes its streams in another way: each event becomes those of `alter`."""

    alter: Alter | None = None

    def post(self, body: Json, path: str | None = None) -> tuple[int, bytes]:
        status, raw = super().post(body, path)
        if self.alter is None or status != 200:
            return status, raw
        if not self.stream:
            (reply,) = self.alter(json.loads(raw))
            return status, json.dumps(reply).encode()
        out = []
        for event in Reader().feed(raw):
            if not event.data.startswith("{"):
                out.append(event.raw)
                continue
            out += [frame(json.dumps(changed), event.name) for changed in self.alter(json.loads(event.data))]
        return status, b"".join(out)


def without_parameters(dialect: str) -> Json:
    """A tool that takes nothing."""
    schema: Json = {"type": "object", "properties": {}, "additionalProperties": False}
    if dialect == CHAT:
        return {
            "type": "function",
            "function": {"name": CLOCK, "description": "What time is it?", "parameters": schema},
        }
    if dialect == RESPONSES:
        return {"type": "function", "name": CLOCK, "description": "What time is it?", "parameters": schema}
    return {"name": CLOCK, "description": "What time is it?", "input_schema": schema}


def backend(form: Form, alter: Alter | None = None, *, way: str = "not loaded") -> Backend:
    """A conversation about a tool without parameters, in the named way of being known to the model."""
    policy = Policy(strategy=form.strategy, resident=(CLOCK,) if way == "resident" else ())
    talk = Backend(form.dialect, policy, stream=form.stream, alter=alter, model=form.model)
    talk.extra["tools"] = [*tools(form.dialect), without_parameters(form.dialect)]
    if way == "loaded":
        talk.user("is there a clock?")
        talk.send(Move(calls=[search(CLOCK)]), Move(text="there is"))
    return talk


def read_clock(talk: Conversation, arguments: Any = "") -> Json:
    """One call of the clock and its result; the visible reply of the call."""
    talk.user("what time is it?")
    before = len(talk.bodies)
    reply = talk.send(Move(calls=[(CLOCK, arguments)]))
    assert len(talk.bodies) == before + 1, "a complete call, not one to be asked for again"
    assert talk.calls(reply) == [(CLOCK, {})]
    talk.answer(reply, text="noon")
    assert talk.text(talk.send(Move(text="It is noon."))) == "It is noon."
    return reply


def arguments_sent(talk: Conversation) -> list[Any]:
    """The arguments of all calls in the last body."""
    found: list[Any] = []
    for item in talk.body.get("input") or []:
        found += [item["arguments"]] if "arguments" in item else []
    for message in talk.body.get("messages") or []:
        found += [call["function"]["arguments"] for call in message.get("tool_calls") or []]
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        found += [block["input"] for block in blocks if block["type"] == "tool_use"]
    return found


def nothing(dialect: str) -> Any:
    """No arguments, as a history holds them."""
    return {} if dialect == MESSAGES else "{}"


def unwritten(form: Form) -> Any:
    """No arguments, as a model writes them: a whole reply of the Messages API has an object all the same."""
    return {} if form.dialect == MESSAGES and not form.stream else ""


@pytest.mark.report("BR-252")
@everywhere
@pytest.mark.parametrize("way", WAYS)
def test_no_arguments_at_the_end_of_a_call_mean_an_empty_object(form: Form, way: str) -> None:
    talk = backend(form, way=way)
    read_clock(talk, unwritten(form))
    last = arguments_sent(talk)[-1]
    if form.frozen and way != "resident":
        params = (json.loads(last) if isinstance(last, str) else last).get("params", {})
        last = params if form.dialect == MESSAGES else json.dumps(params)
    assert last == nothing(form.dialect)
    if way != "resident":
        assert [tool.name for tool in talk.report.loaded] == [CLOCK]


@pytest.mark.report("BR-252")
@everywhere
def test_a_search_without_arguments_is_told_what_is_missing(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(
        *(Move(calls=[call]) for call in (("ToolSearch", unwritten(form)), search(TOOL), (TOOL, {"id": 1})))
    )
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert arguments_sent(talk)[0] in (nothing(form.dialect), {})
    (first, *_) = talk.results().values()
    assert ("load_tools" if form.frozen else "max_results") in json.dumps(first)


def never_arguments(event: Json) -> Iterable[Json]:
    """A server that leaves the arguments out where there are none."""
    if event.get("type") == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
        return ()
    for choice in event.get("choices") or []:
        calls = (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or []
        for call in calls:
            if "message" in choice:
                call["function"]["arguments"] = None
            else:
                call["function"].pop("arguments", None)
    return (event,)


@pytest.mark.report("BR-255")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "form",
    [CHAT_STREAM, *MESSAGES_STREAMS, Form(CHAT, "resend", stream=False)],
    ids=["chat", "messages-native", "messages-resend", "chat-whole"],
)
def test_the_end_of_a_reply_completes_a_call_whose_arguments_never_came(form: Form, way: str) -> None:
    talk = backend(form, way=way)
    talk.alter = never_arguments
    read_clock(talk)
    assert arguments_sent(talk)[-1] == nothing(form.dialect)
    if way != "resident":
        assert [tool.name for tool in talk.report.loaded] == [CLOCK]


@pytest.mark.report("BR-255")
def test_the_sdk_gets_an_empty_object_for_a_call_that_was_held() -> None:
    server = emulator.Emulator(Script.sequence([Move(calls=[(CLOCK, "")])]))
    client = openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", server))
    wrapped: Any = loadpoint.wrap(client, Policy(strategy="resend"))
    listed = [*tools(CHAT), without_parameters(CHAT)]
    messages = [{"role": "user", "content": "what time is it?"}]
    with wrapped.chat.completions.stream(model="gpt-5.4", messages=messages, tools=listed) as stream:
        (call,) = stream.get_final_completion().choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {}


def empty_between(event: Json) -> Iterable[Json]:
    """A server that sends empty pieces of arguments between the others."""
    if event.get("type") == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
        empty = {**event, "delta": {**event["delta"], "partial_json": ""}}
        return (empty, event, empty)
    for choice in event.get("choices") or []:
        for call in choice["delta"].get("tool_calls") or []:
            if "id" not in call:
                piece = {"index": call["index"], "function": {"arguments": ""}}
                empty = {**event, "choices": [{**choice, "delta": {"tool_calls": [piece]}}]}
                return (empty, event, empty)
    return (event,)


@pytest.mark.report("BR-256", "BR-252")
@streams
def test_empty_pieces_of_arguments_say_nothing(form: Form) -> None:
    talk = Backend(form.dialect, Policy(strategy=form.strategy, resident=("ledger_list",)), stream=True)
    talk.alter = empty_between
    talk.user("go")
    calls = [("photo_list", {"id": 77}), ("ledger_list", {"id": 5})]
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 123456}), *calls]))
    assert sorted(talk.calls(reply)) == sorted([(TOOL, {"id": 123456}), *calls])
    assert [each.query for each in talk.report.searches] == [TOOL]
    assert len(talk.bodies) == 2


@pytest.mark.report("BR-256")
@message_streams
@pytest.mark.parametrize("name", ["ToolSearch", TOOL, "ledger_list"])
def test_a_piece_that_is_missing_is_an_error_and_not_an_empty_one(form: Form, name: str) -> None:
    pieces = 0

    def alter(event: Json) -> Iterable[Json]:
        nonlocal pieces
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            pieces += 1
            if pieces == 3:
                return ({key: value for key, value in event.items() if key != "delta"},)
        return (event,)

    talk = Backend(form.dialect, Policy(strategy=form.strategy, resident=("ledger_list",)), stream=True, alter=alter)
    talk.user("go")
    arguments = {"query": "create one invoice for me"} if name == "ToolSearch" else {"id": 123456789012}
    talk.moves = [Move(calls=[(name, arguments)])]
    call = talk.begun()
    splice = call.splice()
    _, raw = talk.post(call.body)
    shown = b"".join(splice.feed(raw))
    assert splice.end() is None, "nothing is sent on the strength of half a call"
    assert b'data: {"type": "content_block_delta", "index": 0}\n' in shown, "and the SDK sees why"
    assert b"message_stop" not in b"".join(splice.closing())


@pytest.mark.report("BR-258")
@message_streams
@pytest.mark.parametrize("way", ["loaded", "not loaded", "resident"])
def test_the_value_at_the_start_of_a_block_is_no_part_of_its_arguments(form: Form, way: str) -> None:
    talk = form.talk({"resident": (TOOL,) if way == "resident" else ()})
    talk.user("go")
    searched = [Move(calls=[search(TOOL)])] if way == "loaded" else []
    reply = talk.send(*searched, Move(calls=[(TOOL, {"id": 123456})]))
    events = [json.loads(event.data) for event in Reader().feed(b"".join(talk.shown))]
    (start,) = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert start["input"] == {}
    pieces = [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"]
    assert json.loads("".join(pieces)) == {"id": 123456}
    assert talk.calls(reply) == [(TOOL, {"id": 123456})]


@pytest.mark.report("BR-258")
@message_streams
@pytest.mark.parametrize("way", ["loaded", "not loaded", "resident"])
def test_arguments_that_stand_whole_at_the_start_of_a_block_are_kept(form: Form, way: str) -> None:
    """Some servers send a call in one piece: its start says all, and no delta follows."""
    given: list[Json] = []

    def alter(event: Json) -> Iterable[Json]:
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "tool_use":
            return ({**event, "content_block": {**event["content_block"], "input": given.pop(0)}},)
        if event["type"] == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
            return ()
        return (event,)

    policy = Policy(strategy=form.strategy, resident=(TOOL,) if way == "resident" else ())
    talk = Backend(form.dialect, policy, stream=True, alter=alter)
    talk.user("go")
    searched = [Move(calls=[search(TOOL)])] if way == "loaded" else []
    given += [{"query": TOOL}] * len(searched)
    given.append({"id": 9})
    reply = talk.send(*searched, Move(calls=[(TOOL, {"id": 9})]))
    assert talk.calls(reply) == [(TOOL, {"id": 9})]
    assert [each.query for each in talk.report.searches] == [TOOL] * len(searched)


@pytest.mark.report("BR-258")
def test_the_sdk_reads_the_arguments_of_a_held_call_once() -> None:
    server = emulator.Emulator(Script.sequence([Move(calls=[(TOOL, {"id": 5})])]))
    client = anthropic.Anthropic(api_key="k", http_client=emulator.http_client("anthropic", server))
    wrapped: Any = loadpoint.wrap(client, Policy(strategy="native"))
    request = {"model": "claude-opus-4-8", "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]}
    with wrapped.messages.stream(**request, tools=tools(MESSAGES)) as stream:
        (block,) = stream.get_final_message().content
    assert block.input == {"id": 5}


HALF = "\ud83d"
BROKEN = f"half {HALF} a face"
MENDED = "half \ufffd a face"


@pytest.mark.report("BR-253")
@everywhere
def test_half_a_character_from_the_caller_is_replaced_before_anything_is_sent(form: Form, tmp_path: Any) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    ledger = SqliteLedger(tmp_path / "ledger.db")
    talk.restart(ledger=ledger)
    listed = tools(form.dialect)
    for tool in listed:
        tool.get("function", tool)["description"] = BROKEN
    talk.extra["tools"] = listed
    if form.dialect == CHAT:
        talk.visible.append({"role": "system", "content": BROKEN})
    elif form.dialect == MESSAGES:
        talk.extra["system"] = [{"type": "text", "text": BROKEN}]
    else:
        talk.extra["instructions"] = BROKEN
    talk.user(BROKEN)
    reply = talk.send(Move(calls=[search("ledger_list, invoice_export")]), Move(calls=[(TOOL, {"id": 1})]))
    talk.answer(reply, text=f"{BROKEN}, and one that is whole: \ud83d\ude00")
    talk.send(Move(text="done"))
    talk.restart(ledger=ledger)  # it stays in the caller's history
    talk.user("more")
    talk.send(Move(text="done"))
    ledger.close()
    assert talk.report.prefix.stable
    assert not talk.report.warnings
    for body in talk.bodies:
        assert json.dumps(body, ensure_ascii=False).encode()
        assert MENDED in json.dumps(body[talk.key], ensure_ascii=False)
        assert MENDED in json.dumps(body["tools"], ensure_ascii=False)
    assert "whole: \N{GRINNING FACE}" in json.dumps(talk.body[talk.key], ensure_ascii=False)
    if form.dialect == MESSAGES:
        assert talk.body["system"] == [{"type": "text", "text": MENDED}]


@pytest.mark.report("BR-253")
@everywhere
def test_half_a_character_from_the_model_is_not_sent_back(form: Form, tmp_path: Any) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.db")
    talk = form.talk()
    talk.restart(ledger=ledger)
    escaped = json.dumps({"query": f"{TOOL} {HALF}"})
    talk.user("go")
    wrong = json.dumps({"id": HALF})
    reply = talk.send(Move(calls=[("ToolSearch", escaped)]), Move(calls=[("photo_list", wrong)]), Move(text="done"))
    assert talk.text(reply) == "done"
    talk.restart(ledger=ledger)
    talk.user("more")
    talk.send(Move(text="done"))
    ledger.close()
    assert talk.report.prefix.stable, "the rounds are remembered"
    for body in talk.bodies:
        assert json.dumps(body, ensure_ascii=False).encode()


@pytest.mark.report("BR-253")
@streams
def test_half_a_character_in_a_stream_reaches_the_caller_as_it_came(form: Form) -> None:
    """The halves of one character in two pieces, after a round that makes us write the events anew."""

    def alter(event: Json) -> Iterable[Json]:
        return (json.loads(json.dumps(event).replace("\\u0001", "\\ud83d").replace("\\u0002", "\\ude00")),)

    talk = Backend(form.dialect, Policy(strategy=form.strategy), stream=True, alter=alter)
    talk.user("smile")
    reply = talk.send(Move(text="ok ", calls=[search(TOOL)]), Move(text="see: \x01\x02, \x01!"))
    text = talk.text(reply).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert text == "ok see: \N{GRINNING FACE}, \ufffd!"
    talk.user("more")
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable
    assert json.dumps(talk.body, ensure_ascii=False).encode()


def test_the_emulated_server_writes_events_that_can_be_altered() -> None:
    talk = Backend(CHAT, Policy(strategy="resend"), stream=True, names=NAMES, alter=lambda event: (event,))
    talk.user("hello")
    assert talk.text(talk.send(Move(text="hi"))) == "hi"
