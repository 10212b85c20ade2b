"""Tools in chat messages that another service was sent: evidence everywhere, on the wire only where they are taken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import BASETEN, CHAT, KIMI, Conversation, Form, search, tools

from loadpoint.emulator import Move
from loadpoint_adapters._dialects import _gateway_search as gateway
from loadpoint_adapters._dialects.openai_chat import OpenAIChat

TOOL, OTHER = "invoice_export", "photo_list"
Json = dict[str, Any]
FORMS = [Form(CHAT, "resend", False), Form(CHAT, "native", False, KIMI), Form(CHAT, "native", False, BASETEN)]
EACH = pytest.mark.parametrize("form", FORMS, ids=["resend", "system", "references"])


def named(name: str) -> Json:
    return next(tool for tool in tools(CHAT) if tool["function"]["name"] == name)


def asked(name: str = "find_tools", id_: str = "call_1") -> Json:
    call = {"id": id_, "type": "function", "function": {"name": name, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def referring(name: str) -> Json:
    return {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "tool_reference", "tool_name": name}]}


def said(text: str) -> Json:
    return {"role": "tool", "tool_call_id": "call_1", "content": text}


def bringing(*wires: Json) -> Json:
    return {"role": "system", "tools": list(wires)}


HISTORIES = {
    "system tools": [asked(), said("loaded"), bringing(named(TOOL))],
    "references": [asked(), referring(TOOL)],
    "references of a search of ours": [asked("ToolSearch"), referring(TOOL)],
}


@EACH
@pytest.mark.parametrize("foreign", HISTORIES)
def test_what_another_service_was_sent_counts_and_is_sent_as_this_one_takes_it(form: Form, foreign: str) -> None:
    talk = form.talk()
    talk.user("go")
    talk.visible += [*HISTORIES[foreign], {"role": "assistant", "content": "found"}]
    for text in ("now", "more"):
        talk.user(text)
        reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
        assert talk.calls(reply) == [(TOOL, {"id": 1})]
        talk.answer(reply)
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
    assert TOOL in talk.callable()
    assert not judge.check(talk.bodies, mode="native"), "it is loaded from the first request on"
    messages = talk.body["messages"]
    assert any("tools" in message for message in messages) == (form.model == KIMI and foreign == "system tools")
    parts = [m["content"] for m in messages if isinstance(m.get("content"), list)]
    assert bool(parts) == (form.model == BASETEN and foreign != "system tools")


@EACH
def test_a_tool_that_only_a_message_brings_stays_callable(form: Form) -> None:
    own = {"type": "function", "function": {"name": "calculator", "parameters": {"type": "object", "properties": {}}}}
    talk = form.talk()
    talk.user("go")
    talk.visible += [{"role": "system", "content": "Count well.", **bringing(own)}]
    reply = talk.send(Move(calls=[("calculator", {})]))
    assert talk.calls(reply) == [("calculator", {})]
    assert {"role": "system", "content": "Count well."} in talk.body["messages"]
    here = [tool for message in talk.body["messages"] for tool in message.get("tools", ())]
    assert own in [*talk.body["tools"], *here]


def test_a_definition_that_is_not_the_callers_any_more_is_loaded_anew() -> None:
    talk = Form(CHAT, "native", False, KIMI).talk()
    old = json.loads(json.dumps(named(TOOL)))
    old["function"]["description"] = "Exports as it once did."
    talk.user("go")
    talk.visible += [bringing(old), {"role": "assistant", "content": "found"}]
    talk.user("now")
    talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    brought = [tool for message in talk.body["messages"] for tool in message.get("tools", ())]
    assert brought[:2] == [old, named(TOOL)]
    assert not judge.check(talk.bodies)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_goes_to_a_model_without_the_form_and_back(stream: bool) -> None:
    """On the older model the messages with tools are left out and their tools listed; every request is taken."""
    talk = Form(CHAT, "native", stream, KIMI).talk()
    talk.load(TOOL)
    talk.model = "kimi-k2"
    talk.load(OTHER)
    assert talk.report.strategy == "resend"
    assert not any("tools" in message for message in talk.body["messages"])
    assert {TOOL, OTHER} <= set(talk.in_context())
    talk.model = KIMI
    talk.user("and again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1}), (OTHER, {"id": 2})]))
    assert len(talk.calls(reply)) == 2
    assert {TOOL, OTHER} <= talk.callable()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_conversation_goes_to_another_service_and_back(stream: bool) -> None:
    talk = Form(CHAT, "native", stream, KIMI).talk()
    kimi, base = talk.session, talk.base
    talk.load(TOOL)
    away = Conversation(CHAT, talk.policy, stream=stream, model=BASETEN, session=kimi)
    away.visible = talk.visible
    away.load(OTHER)
    assert OTHER in away.callable()
    talk.visible, talk.base = away.visible, base
    talk.user("back")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1}), (OTHER, {"id": 2})]))
    assert len(talk.calls(reply)) == 2
    assert TOOL in talk.callable()


def test_changes_bring_definitions_where_the_form_can() -> None:
    system = OpenAIChat().at("system_tools")
    marked = {**named(TOOL), "defer_loading": True, "cache_control": {"type": "ephemeral"}}
    (message,) = system.changes([marked], ["gone"], by_value=True)
    assert message == {"role": "system", "tools": [named(TOOL)]}
    (result,) = system.view(message).results
    assert (result.names, result.tools) == ((TOOL,), (named(TOOL),))
    assert system.changes([], ["gone"], by_value=True) == []
    for form in (None, "tool_reference", "gateway_search", "no such form"):
        assert OpenAIChat().at(form).changes([marked], [], by_value=True) == []


def test_a_gateways_entry_is_that_of_the_variant() -> None:
    assert OpenAIChat().at("gateway_search").loader("x", "y", {}) == {"type": "orq:tool_search"}
    for name, kind in gateway.ENTRIES.items():
        entry = gateway.entry(name)
        assert gateway.name_of(entry) == OpenAIChat().tool_name(entry) == kind
    with pytest.raises(KeyError):
        gateway.entry("nobody")
