"""A call through the bridge shows the same argument bytes as a direct one: every escape, number and shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import CALLS, CHAT, LOADS, MESSAGES, RESPONSES, Conversation, Form, tools
from tests.core.test_frozen import frozen, shown_arguments

from loadpoint.emulator import Move

TOOL = "open_tool"
ESCAPES = [f"\\{char}" for char in '"\\/bfnrt'] + [
    "\\u0000", "\\u001f", "\\u007f", "\\u00e9", "\\ud83d\\ude00", "\\uD83D\\uDE00", "\\u2028", "\\u200b", "\\ufeff",
    "\\uffff", "é", "😀", "\u2028", "\x7f", "\u200b", "\ufeff",
]  # fmt: skip
HALVES = ["\\ud83d", "\\ude00"]
"""Half a pair: text keeps it as an escape; an object cannot hold it, here as anywhere."""
SHAPES = [
    "{}",
    '{ "a" :\n\t1\r\n}',
    '{"a":12345678901234567890,"b":1234567890123456789012345678901234567890.123456789}',
    '{"a":0.1,"b":1.0,"c":-0,"d":-0.0,"e":1E5,"f":1e-400}',
    '{"a":1,"a":2}',
    '{"__proto__":{"x":1},"constructor":1,"toString":2,"hasOwnProperty":{}}',
    '{"":1,"x":null,"y":[1,[2,{"b":[]}]]}',
    '{"a":"}{][\\",:","b":"data: x\\n\\nevent: y","c":"call_tool load_tools"}',
    '{"a":"' + "x" * 300_000 + '"}',
    '{"a":' + "[" * 100 + "]" * 100 + "}",
    '{"a":' + '{"b":' * 100 + "1" + "}" * 100 + "}",
    '{"a":"' + "\\\\" * 1_000 + '"}',
]
TEXTS = ['{"a":1e400}', '{"a":-1e400}', '{"a":' + "9" * 5_000 + "}"]
"""Numbers that only text can hold."""
EVERY = [*SHAPES, *(f'{{"a":"x{escape}y","{escape}":1}}' for escape in ESCAPES)]


def talk_of(form: Form) -> Conversation:
    schema = {"type": "object", "properties": {}, "additionalProperties": True}
    bare: dict[str, Any] = {"name": TOOL, "description": "Does anything"}
    wire = {
        CHAT: {"type": "function", "function": {**bare, "parameters": schema}},
        RESPONSES: {"type": "function", **bare, "parameters": schema, "strict": False},
        MESSAGES: {**bare, "input_schema": schema},
    }[form.dialect]
    talk = form.talk()
    talk.extra = {"tools": [*tools(form.dialect), wire]}
    talk.user("go")
    return talk


def shown(talk: Conversation, reply: dict[str, Any]) -> list[str]:
    if talk.dialect != MESSAGES or not talk.stream:
        return shown_arguments(talk, reply)
    events = [json.loads(line[6:]) for line in b"".join(talk.shown).decode().split("\n") if line.startswith("data: {")]
    deltas = [event["delta"] for event in events if event.get("type") == "content_block_delta"]
    return ["".join(delta["partial_json"] for delta in deltas if delta["type"] == "input_json_delta")]


def holds(form: Form, arguments: str) -> None:
    eager = talk_of(Form(form.dialect, "eager", form.stream))
    direct = shown(eager, eager.send(Move(calls=[(TOOL, arguments)])))
    talk = talk_of(form)
    call = (f"={CALLS}", f'{{"tool":"{TOOL}","params":{arguments}}}')
    reply = talk.send(Move(calls=[(f"={LOADS}", {"tools": [TOOL]})]), Move(calls=[call]))
    assert shown(talk, reply) == direct
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert not judge.check(talk.bodies, mode="frozen"), "the model's own bytes come back to it"
    talk.restart()
    talk.user("in another process")
    talk.send(Move(text="ok"))
    assert talk.report.strategy == "frozen"


@frozen
@pytest.mark.requirement("P32", "P37")
@pytest.mark.parametrize("arguments", EVERY, ids=range(len(EVERY)))
def test_the_bytes_are_those_of_a_direct_call(form: Form, arguments: str) -> None:
    holds(form, arguments)


@frozen
@pytest.mark.requirement("P37")
@pytest.mark.parametrize(
    "arguments", [*TEXTS, *(f'{{"a":"{half}"}}' for half in HALVES)], ids=range(len(TEXTS) + len(HALVES))
)
def test_what_only_text_can_hold_passes_as_text(form: Form, arguments: str) -> None:
    if form.dialect == MESSAGES:
        pytest.skip("there arguments are an object, in the history too")
    holds(form, arguments)


@frozen
@pytest.mark.parametrize("wrong", ["", "{", "[]", '"x"', "1", '{"a":NaN}', '{"a":1}}', "[" * 5_000])
def test_what_is_no_object_reaches_nobody(form: Form, wrong: str) -> None:
    talk = talk_of(form)
    if form.dialect == MESSAGES and not form.stream:
        pytest.skip("a whole reply of this API holds an object")
    call = (f"={CALLS}", f'{{"tool":"{TOOL}","params":{wrong}}}')
    reply = talk.send(Move(calls=[(f"={LOADS}", {"tools": [TOOL]})]), Move(calls=[call]), Move(text="no"))
    assert talk.calls(reply) == []
