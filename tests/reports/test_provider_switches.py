"""Field reports about conversations that change their model or provider."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import (
    ADDS,
    BASETEN,
    CHAT,
    INLINE,
    KIMI,
    MESSAGES,
    RESPONSES,
    Conversation,
    Form,
    everywhere,
    form_id,
    search,
)
from tests.core.conversions import HABITS, converted
from tests.core.loads import WRITTEN, used
from tests.core.test_form_round_trips import WAYS, history, talk_in, visible_to_the_model

from loadpoint import InProcessLedger, Policy
from loadpoint.emulator import Move

Json = dict[str, Any]
TOOL, OTHER = "invoice_export", "photo_list"
THINKING: Json = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 3000}
OTHER_MODEL = {MESSAGES: "claude-opus-4-7", RESPONSES: "gpt-5.5"}
REASONING = ("thinking", "redacted_thinking", "reasoning")
thoughtful = pytest.mark.parametrize(
    "form",
    [
        Form(MESSAGES, "native", False),
        Form(MESSAGES, "native", True, INLINE),
        Form(MESSAGES, "resend", False),
        Form(RESPONSES, "native", True),
        Form(RESPONSES, "native", False, ADDS),
        Form(RESPONSES, "resend", False),
    ],
    ids=form_id,
)


def reasoned(talk: Conversation) -> list[str]:
    """The kinds of reasoning in the last body."""
    parts = [m["content"] if isinstance(m.get("content"), list) else [m] for m in talk.body[talk.key]]
    return [part["type"] for own in parts for part in own if part.get("type") in REASONING]


def thinking(form: Form) -> Conversation:
    """A conversation whose hidden round and whose visible one have thought."""
    talk = form.talk(extra=THINKING if form.dialect == MESSAGES else {})
    talk.user("go")
    talk.send(Move(thinking="first", calls=[search(TOOL)]), Move(thinking="then", text="done"))
    talk.user("so?")
    talk.send(Move(text="so"))
    assert len(reasoned(talk)) == 2, "it goes back to the model that has thought it"
    return talk


def without_reasoning(visible: list[Json]) -> list[Json]:
    """What an application keeps of a history for another model."""
    out: list[Json] = []
    for message in visible:
        if message.get("type") == "reasoning":
            continue
        content = message.get("content")
        kept = [part for part in content if part.get("type") not in REASONING] if isinstance(content, list) else content
        out.append({**message, "content": kept} if "content" in message else message)
    return out


@thoughtful
@pytest.mark.report("BR-183", "BR-190")
def test_thinking_that_the_caller_leaves_out_for_another_model_is_left_out_of_hidden_rounds(form: Form) -> None:
    talk = thinking(form)
    first = talk.model
    talk.visible = without_reasoning(talk.visible)
    talk.model = OTHER_MODEL[form.dialect]
    for text in ("next", "and next"):
        talk.user(text)
        talk.send(Move(text="ok"))
        assert reasoned(talk) == []
        assert TOOL in visible_to_the_model(talk), "what the hidden round has loaded stays"
    talk.model = first
    talk.user("back")
    talk.send(Move(text="ok"))
    assert len(reasoned(talk)) == 2, "never edited: it is there again, as it was"


@thoughtful
@pytest.mark.report("BR-183")
def test_thinking_that_the_caller_sends_another_model_is_his_to_send(form: Form) -> None:
    talk = thinking(form)
    talk.model = OTHER_MODEL[form.dialect]
    talk.user("next")
    talk.send(Move(text="ok"))
    assert len(reasoned(talk)) == 2


@pytest.mark.report("BR-190")
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_details"])
def test_reasoning_fields_of_chat_are_left_out_likewise(field: str) -> None:
    talk = Conversation(CHAT, Policy(strategy="resend"))
    talk.user("go")
    call = talk.begun()
    call.feed(_reply({field: "hm", **_called("ToolSearch", {"query": TOOL})}, "tool_calls"))
    assert call.body["messages"][1][field] == "hm"
    call.feed(_reply({"content": "done"}, "stop"))
    talk.visible += [{"role": "assistant", "content": "done"}, {"role": "user", "content": "next"}]
    assert talk.begun().body["messages"][1][field] == "hm"
    talk.model = "another-model"
    body = talk.begun().body
    assert field not in json.dumps(body)
    assert len(body["messages"]) == 5, "the round itself stays"


def _called(name: str, arguments: Json, **more: Any) -> Json:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1abcdefghijklmnop", "type": "function", "function": function, **more}
    return {"content": None, "tool_calls": [call]}


def _reply(message: Json, reason: str) -> Json:
    choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", **message}}
    return {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


SIGNED: Json = {"extra_content": {"google": {"thought_signature": "c2lnbmF0dXJl"}}}


@pytest.mark.report("BR-184")
@pytest.mark.parametrize("model", ["gemini-3-pro", KIMI, BASETEN])
def test_a_signature_on_a_call_goes_back_with_it_and_to_the_caller(model: str) -> None:
    """Hidden calls are the model's own, byte for byte: none is made up that could lack one."""
    native = "resend" if model.startswith("gemini") else "native"
    talk = Conversation(CHAT, Policy(strategy=native), model=model)
    talk.user("go")
    call = talk.begun()
    call.feed(_reply(_called("ToolSearch", {"query": TOOL}, **SIGNED), "tool_calls"))
    assert call.body["messages"][1]["tool_calls"][0]["extra_content"] == SIGNED["extra_content"]
    call.feed(_reply(_called(TOOL, {"id": 1}, **SIGNED), "tool_calls"))
    assert call.result["choices"][0]["message"]["tool_calls"][0]["extra_content"] == SIGNED["extra_content"]
    talk.visible += talk.echo(call.result)
    talk.answer(call.result)
    for known in (True, False):
        if not known:
            talk.restart()
        made = [one for m in talk.begun().body["messages"] for one in m.get("tool_calls") or []]
        assert len(made) == (2 if known else 1)
        assert all(one["extra_content"] == SIGNED["extra_content"] for one in made)


@pytest.mark.report("BR-186")
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] != MESSAGES], ids=lambda way: f"{way[0]}-{way[1]}")
def test_what_one_providers_search_has_loaded_and_the_model_has_used_is_loaded_at_another(way: Any, habit: str) -> None:
    """Whatever the application makes of the blocks of the search: the use is proof, and is rendered natively."""
    visible = [*history(MESSAGES, ["hosted"], [(TOOL,)]), *used(MESSAGES, TOOL, 1)]
    talk = talk_in(way, converted(visible, MESSAGES, way[0], habit))
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    if way[1] != "hosted_search":
        talk.user("again")
        reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
        assert talk.calls(reply) == [(TOOL, {"id": 2})]
        assert TOOL in visible_to_the_model(talk)
        assert talk.report.added_rounds == 0


@pytest.mark.report("BR-186")
@pytest.mark.parametrize("habit", HABITS)
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == MESSAGES], ids=lambda way: f"{way[1]}-{way[3]}")
def test_and_the_other_way_round(way: Any, habit: str) -> None:
    visible = [*history(RESPONSES, ["hosted"], [(TOOL,)]), *used(RESPONSES, TOOL, 1)]
    talk = talk_in(way, converted(visible, RESPONSES, MESSAGES, habit))
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    if way[1] != "hosted_search":
        assert TOOL in visible_to_the_model(talk)


@pytest.mark.report("BR-186")
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].split('.')[1]}-{way[1]}-{way[3]}")
def test_a_load_in_any_form_is_one_in_every_other_form_of_its_api(way: Any) -> None:
    for form in WRITTEN[way[0]]:
        talk = talk_in(way, history(way[0], [form], [(TOOL, OTHER)]))
        talk.user("now")
        talk.send(Move(text="ok"))
        assert [tool.name for tool in talk.report.loaded] == [TOOL, OTHER], form
        assert {TOOL, OTHER} <= visible_to_the_model(talk), form


@pytest.mark.report("BR-186")
@pytest.mark.parametrize("stream", [False, True])
def test_what_was_added_once_and_found_again_by_the_service_can_be_referred_to(stream: bool) -> None:
    """The definition stands in a message, the service's result names it, and the next form has to bear both."""
    ledger = InProcessLedger()
    visible: list[Json] = []
    policies: list[Json] = [{"load_point": "tool_addition"}, {"search": "hosted"}, {"load_point": "tool_addition"}]
    for policy in policies:
        talk = Conversation(MESSAGES, Policy(**{"strategy": "native", **policy}), stream=stream, model=INLINE)
        talk.restart(ledger=ledger)
        talk.visible = visible
        talk.user("do it")
        use = (TOOL, {"id": 1})
        hosted = "search" in policy
        found = ("tool_search_tool_bm25", {"query": TOOL}) if hosted else search(TOOL)
        first = not visible[1:]
        moves = [Move(calls=[found, use])] if hosted else [*([Move(calls=[found])] if first else []), Move(calls=[use])]
        talk.answer(talk.send(*moves))
        talk.send(Move(text="done"))
        assert TOOL in visible_to_the_model(talk)


@everywhere
@pytest.mark.report("BR-187")
def test_a_list_is_never_empty_because_all_is_deferred_and_none_is_never_filled(form: Form) -> None:
    """With tool calls in the history: some services want a list beside them, and all want theirs whole."""
    talk = form.talk()
    talk.load(TOOL)
    talk.restart()
    talk.user("on")
    talk.send(Move(text="ok"))
    assert talk.body["tools"], "the loader at least"
    talk.restart()
    talk.extra = {"tools": None}
    talk.user("Sum it up.")
    call = talk.begun()
    body = talk.request().body if call is None else call.body
    assert "tools" not in body
    assert body[talk.key] == talk.visible, "what the bare request would be"


@pytest.mark.report("BR-189")
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("discovery", ["hidden", "shown", "caller"])
def test_no_id_is_made_up_in_chat(known: bool, discovery: str) -> None:
    """A target with an alphabet of its own for ids has to bear the caller's only, and its own model's."""
    ids = {"call_1abcdefghijklmnop"}
    talk = Conversation(CHAT, Policy(strategy="resend", discovery=discovery), model="mistral-large")
    foreign = used(CHAT, TOOL, 7)
    ids.add(foreign[1]["tool_call_id"])
    talk.visible = [{"role": "user", "content": "go"}, *foreign]
    call = talk.begun()
    call.feed(_reply(_called("ToolSearch", {"query": OTHER}), "tool_calls"))
    if discovery == "caller":
        talk.visible += [*talk.echo(call.result), {"role": "tool", "tool_call_id": min(ids), "content": "x"}]
    else:
        call.feed(_reply({"content": "done"}, "stop"))
        talk.visible += talk.echo(call.result)
    talk.user("next")
    if not known:
        talk.restart()
    messages = talk.begun().body["messages"]
    made = {call["id"] for message in messages for call in message.get("tool_calls") or []}
    told = {message["tool_call_id"] for message in messages if message["role"] == "tool"}
    assert made <= ids
    assert told <= ids
