"""Streams cut at any byte, in any framing, with and without hidden rounds; random interleavings against an oracle."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import ADDS, CHAT, MESSAGES, NAMES, RESPONSES, Conversation, Form, search
from tests.core.streams import rebuilt

from loadpoint._sse import Reader
from loadpoint.emulator import Move

FORMS = [
    Form(CHAT, "resend", True),
    Form(MESSAGES, "native", True),
    Form(RESPONSES, "native", True),
    Form(RESPONSES, "native", True, ADDS),
]
IDS = ["chat", "messages", "responses", "responses-adds"]
forms = pytest.mark.parametrize("form", FORMS, ids=IDS)
echoed_forms = pytest.mark.parametrize("form", FORMS[:2], ids=IDS[:2])
RESIDENT = ("ledger_list", "photo_list")
PLANS: dict[str, list[Move]] = {
    "text": [Move(text="A plain answer with an umlaut: \u00fc, a line\u2028break and an emoji \U0001f600.")],
    "hidden": [
        Move(text="Looking. ", calls=[search("invoice_export")]),
        Move(text="There.", calls=[("ledger_list", {"id": 1})]),
    ],
    "mixed": [Move(text="Both.", calls=[search("event_list"), ("ledger_list", {"id": 1}), ("photo_list", {"id": 2})])],
    "unloaded": [Move(calls=[("event_list", {"id": "x"})]), Move(calls=[("event_list", {"id": 1})])],
}


def streams(form: Form, plan: str, *, structured: bool = False) -> tuple[Conversation, list[bytes]]:
    """A conversation, and the upstream streams of one call."""
    talk = form.talk({"resident": RESIDENT}, names=(*NAMES[:6], "event_list", "ledger_list", "photo_list"))
    if structured:
        talk.extra = {"response_format": {"type": "json_object"}} if form.dialect == CHAT else _format()
    talk.user("go")
    talk.moves = list(PLANS[plan])
    call = talk.begun()
    splice, raws, body = call.splice(), [], call.body
    while body is not None:
        status, raw = talk.post(body)
        assert status == 200
        raws.append(raw)
        splice.feed(raw)
        body = splice.end()
    return talk, raws


def _format() -> dict[str, Any]:
    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


def played(talk: Conversation, raws: list[bytes], cut: Any) -> tuple[bytes, list[Any]]:
    """What the caller sees, and what was sent, when the streams arrive in pieces."""
    call = talk.session.begin(talk.request())
    splice = call.splice()
    out: list[bytes] = splice.replayed()
    bodies: list[Any] = [call.body]
    for raw in raws:
        for piece in cut(raw):
            out += splice.feed(piece)
        bodies.append(splice.end())
        out += splice.closing()
    assert bodies.pop() is None
    return b"".join(out), bodies


def whole(raw: bytes) -> list[bytes]:
    return [raw]


@pytest.fixture(scope="module")
def recorded() -> dict[Any, tuple[Conversation, list[bytes]]]:
    return {(form, plan): streams(form, plan) for form in FORMS for plan in PLANS}


@forms
@pytest.mark.parametrize("plan", PLANS)
@settings(max_examples=40)
@given(data=st.data())
def test_a_cut_at_any_byte_changes_nothing(recorded: Any, form: Form, plan: str, data: st.DataObject) -> None:
    talk, raws = recorded[form, plan]
    expected = played(talk, raws, whole)

    def cut(raw: bytes) -> list[bytes]:
        places = sorted(data.draw(st.sets(st.integers(0, len(raw)), max_size=6)))
        return [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]

    assert played(talk, raws, cut) == expected


@forms
@pytest.mark.parametrize("plan", PLANS)
def test_a_stream_that_comes_byte_by_byte(recorded: Any, form: Form, plan: str) -> None:
    talk, raws = recorded[form, plan]
    expected = played(talk, raws, whole)
    assert played(talk, raws, lambda raw: [raw[at : at + 1] for at in range(len(raw))]) == expected


@forms
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("step", [1, 7, 4096])
def test_carriage_returns_between_the_lines_mean_the_same(recorded: Any, form: Form, plan: str, step: int) -> None:
    talk, raws = recorded[form, plan]
    seen, sent = played(talk, raws, whole)
    other = [raw.replace(b"\n", b"\r\n") for raw in raws]
    again, resent = played(talk, other, lambda raw: [raw[at : at + step] for at in range(0, len(raw), step)])
    assert rebuilt(form.dialect, again.replace(b"\r\n", b"\n")) == rebuilt(form.dialect, seen)
    assert resent == sent


@forms
@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("plan", PLANS)
def test_a_stream_that_breaks_off_anywhere_shows_a_beginning(recorded: Any, form: Form, plan: str, data: Any) -> None:
    talk, raws = recorded[form, plan]
    call = talk.fresh().begin(talk.request())
    splice = call.splice()
    # Some services leave out [DONE]: once the reason to end is there, the reply is whole.
    end = raws[0].index(b'"finish_reason":"') if form.dialect == CHAT else len(raws[0]) - 12
    if form.dialect == RESPONSES:
        end = raws[0].index(b"event: response.completed")
    at = data.draw(st.integers(0, end))
    out = splice.feed(raws[0][:at])
    assert splice.end() is None
    shown = b"".join([*out, *splice.closing()])
    assert b"ToolSearch" not in shown or b"ToolSearch" not in raws[0][:at].rpartition(b"\n\n")[0]
    assert b"message_stop" not in shown
    assert b"response.completed" not in shown
    assert b"[DONE]" not in shown


@echoed_forms
def test_an_untouched_reply_ends_as_the_provider_ended_it(form: Form) -> None:
    """Whatever its closing events hold beside what we know of them."""
    talk, raws = streams(form, "text")
    extra = b'"context_management":{"applied_edits":[]}'
    if form.dialect == MESSAGES:
        raws = [raws[0].replace(b'"type":"message_delta",', b'"type":"message_delta",' + extra + b",")]
        assert extra in raws[0]
    else:
        raws = [raws[0].replace(b'"finish_reason":"stop"', b'"finish_reason":"stop","odd":1')]
    talk.extra = {} if form.dialect == MESSAGES else {"stream_options": {"include_usage": True}}
    seen, _ = played(talk, raws, whole)
    if form.dialect == MESSAGES:
        assert seen == raws[0]
    else:
        assert b'"odd":1' in seen
        assert seen.endswith(b"data: [DONE]\n\n")


def test_closing_fields_of_the_last_round_survive_hidden_ones() -> None:
    talk, raws = streams(FORMS[1], "hidden")
    extra = b'"context_management":{"applied_edits":[]}'
    raws[-1] = raws[-1].replace(b'"type":"message_delta",', b'"type":"message_delta",' + extra + b",")
    seen, _ = played(talk, raws, whole)
    assert extra in seen


def test_usage_that_only_we_asked_for_is_not_shown() -> None:
    talk, raws = streams(FORMS[0], "text")
    seen, (body,) = played(talk, raws, whole)
    assert body["stream_options"] == {"include_usage": True}
    events = [json.loads(line[6:]) for line in seen.decode().split("\n") if line.startswith("data: {")]
    assert not any(event.get("usage") for event in events)
    assert all(event["choices"] for event in events)


# --------------------------------------------------------------------------------------------------- interleavings

CALLS = st.lists(
    st.sampled_from(["search", "search", "resident", "loaded", "unloaded", "bad", "unknown"]), min_size=1, max_size=5
)


@pytest.mark.parametrize("stream", [False, True])
@forms
@settings(max_examples=25)
@given(rounds=st.lists(CALLS, min_size=1, max_size=3))
def test_no_call_is_lost_and_none_is_invented(form: Form, stream: bool, rounds: list[list[str]]) -> None:
    """An oracle says what the caller must see: every real call of the round that ends the turn, no other."""
    names = (*NAMES[:6], "ledger_list", "event_list")
    talk = replace(form, stream=stream).talk({"resident": ("ledger_list",), "max_rounds": 6}, names=names)
    talk.load("event_list")
    talk.user("go")
    moves, seen = [], []
    for number, kinds in enumerate(rounds):
        calls = [_call(kind, f"{number}{at}") for at, kind in enumerate(kinds)]
        moves.append(Move(text="So. ", calls=calls))
        seen = [call for kind, call in zip(kinds, calls, strict=True) if kind not in ("search", "bad")]
        if seen:
            break
    else:
        moves.append(Move(text="So. "))
    reply = talk.send(*moves)
    expected = sorted((name, json.dumps(arguments)) for name, arguments in seen)
    assert sorted((name, json.dumps(arguments)) for name, arguments in talk.calls(reply)) == expected
    assert talk.text(reply) == "So. " * len(moves)
    talk.answer(reply)
    if not seen:
        talk.user("and on")
    talk.send(Move(text="ok"))
    asked = sum(kind in ("search", "bad") for kinds in rounds[: len(moves)] for kind in kinds)
    assert len(talk.results()) == asked + len(seen) + 2, "every call has its result, and the load before them two"


def _call(kind: str, number: str) -> tuple[str, Any]:
    return {
        "search": search(f"zzqx {number}"),
        "resident": ("ledger_list", {"id": int(number)}),
        "loaded": ("event_list", {"id": int(number)}),
        "unloaded": (NAMES[0], {"id": int(number)}),
        "bad": (NAMES[1], {"id": f"x{number}"}),
        "unknown": ("no_such_tool", {"id": int(number)}),
    }[kind]


# ------------------------------------------------------------------------------------------------ odd streams


def chat_stream(*deltas: dict[str, Any], finish: str = "tool_calls") -> bytes:
    """A chat stream of these deltas."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def piece(at: int, name: str = "", arguments: str = "", call_id: str = "") -> dict[str, Any]:
    call: dict[str, Any] = {"index": at, "function": {"name": name, "arguments": arguments}}
    return {"tool_calls": [{**call, "id": call_id, "type": "function"} if call_id else call]}


def test_a_name_that_comes_in_pieces_hides_and_shows_the_right_calls() -> None:
    """`ledger` is a tool of its own, and the beginning of another."""
    talk = FORMS[0].talk({"resident": ("ledger", "photo_list")}, names=(*NAMES, "ledger"))
    talk.user("go")
    raw = chat_stream(
        {"role": "assistant", "content": None},
        piece(0, "Tool", call_id="call_a"),
        piece(0, "Search"),
        piece(0, arguments='{"query": "invoice_export"}'),
        piece(1, "ledger", call_id="call_b"),
        piece(1, arguments='{"id": 1}'),
        piece(2, "photo", call_id="call_c"),
        piece(2, "_list"),
        piece(2, arguments='{"id": 2}'),
    )
    seen, _ = played(talk, [raw], whole)
    calls = rebuilt(CHAT, seen)["choices"][0]["message"]["tool_calls"]
    assert sorted(call["function"]["name"] for call in calls) == ["ledger", "photo_list"]
    assert sorted(call["function"]["arguments"] for call in calls) == ['{"id": 1}', '{"id": 2}']
    assert b"Search" not in seen


def test_a_server_that_leaves_the_index_out() -> None:
    talk = FORMS[0].talk({"resident": RESIDENT})
    talk.user("go")
    deltas = [
        piece(0, "ToolSearch", call_id="call_a"),
        piece(0, arguments='{"query": "event_list"}'),
        piece(0, "photo_list", call_id="call_b"),
        piece(0, arguments='{"id": 2}'),
    ]
    for delta in deltas:
        del delta["tool_calls"][0]["index"]
    seen, _ = played(talk, [chat_stream(*deltas)], whole)
    (call,) = rebuilt(CHAT, seen)["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "photo_list", "arguments": '{"id": 2}'}


ODD = {
    CHAT: b'data: {"id": "x", "choices": [7]}\n\ndata: {"id": "x", "choices": [{"delta": 5}]}\n\ndata: [DONE]\n\n',
    MESSAGES: b'event: content_block_start\ndata: {"type": "content_block_start"}\n\n',
    RESPONSES: b'event: response.output_item.done\ndata: {"type": "response.output_item.done", "output_index": 0}\n\n',
}


@forms
@pytest.mark.parametrize("strategy", ["deferred", "eager"])
def test_a_stream_of_an_unknown_shape_is_shown_as_it_comes(
    form: Form, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    talk = form.talk({"strategy": "eager"} if strategy == "eager" else None)
    talk.user("go")
    splice = talk.begun().splice()
    out = splice.feed(ODD[form.dialect])
    assert splice.end() is None
    assert b"".join([*out, *splice.closing()]) == ODD[form.dialect]


class Counting(bytearray):
    """Counts the bytes that are searched."""

    searched = 0

    def find(self, mark: Any, start: Any = 0, end: Any = None) -> int:
        self.searched += len(self) - start
        return super().find(mark, start)


def test_a_large_event_in_small_pieces_is_searched_once() -> None:
    """Reading must not start again at the beginning of the event with every piece."""
    reader = Reader()
    buffer = reader._buffer = Counting()
    text = "x" * 100_000
    raw = f"data: {text}\n\ndata: y\n\n".encode()
    events = [event for at in range(0, len(raw), 64) for event in reader.feed(raw[at : at + 64])]
    assert [event.data for event in events] == [text, "y"]
    assert buffer.searched < 10 * len(raw)
