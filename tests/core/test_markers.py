"""Cache markers of the Messages API: where the caller's go, and what `cache="auto"` adds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, Conversation, Form, search, tools

from loadpoint.emulator import Move

TOOL = "invoice_export"
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
FORMS = [Form(MESSAGES, strategy, stream) for strategy in ("native", "resend") for stream in (False, True)]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.strategy}-{form.stream}")
RESIDENT = ("ledger_list", "photo_list")


def marked(form: Form, **markers: Any) -> Conversation:
    talk = form.talk({"resident": RESIDENT})
    listed = tools(MESSAGES)
    for tool in listed:
        if tool["name"] in markers:
            tool["cache_control"] = markers[tool["name"]]
    talk.extra = {"tools": listed}
    return talk


def on_tools(body: dict[str, Any]) -> dict[str, Any]:
    return {tool["name"]: tool["cache_control"] for tool in body["tools"] if "cache_control" in tool}


def all_markers(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        if isinstance(value.get("cache_control"), dict):
            yield value["cache_control"]
        for item in value.values():
            yield from all_markers(item)
    elif isinstance(value, list):
        for item in value:
            yield from all_markers(item)


@forms
def test_a_marker_on_a_deferred_tool_moves_to_the_last_resident(form: Form) -> None:
    talk = marked(form, photo_export=SHORT)
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    assert [on_tools(body) for body in talk.bodies] == [{"photo_list": SHORT}] * 2


@forms
def test_several_markers_become_one_and_the_longer_time_wins(form: Form) -> None:
    talk = marked(form, photo_export=SHORT, invoice_create=LONG, ledger_list=SHORT)
    talk.user("go")
    talk.send(Move(text="ok"))
    assert on_tools(talk.body) == {"photo_list": LONG}


@forms
def test_a_marker_does_not_wander_at_loads(form: Form) -> None:
    talk = marked(form, photo_export=SHORT)
    for name in (TOOL, "parcel_rename"):
        talk.load(name)
    talk.user("directly")
    talk.answer(talk.send(Move(calls=[("event_list", {"id": 1})])))
    talk.send(Move(text="ok"))
    assert all(on_tools(body) == {"photo_list": SHORT} for body in talk.bodies)
    deferred = [tool for body in talk.bodies for tool in body["tools"] if tool.get("defer_loading")]
    assert not any("cache_control" in tool for tool in deferred)


@forms
def test_without_a_resident_the_marker_stands_on_the_loader(form: Form) -> None:
    talk = form.talk()
    listed = tools(MESSAGES)
    listed[-1]["cache_control"] = SHORT
    talk.extra = {"tools": listed}
    talk.load(TOOL)
    assert all(on_tools(body) == {"ToolSearch": SHORT} for body in talk.bodies)


@forms
def test_there_is_never_a_fifth_and_a_moving_marker_breaks_nothing(form: Form) -> None:
    talk = marked(form, photo_export=SHORT, invoice_create=SHORT)
    talk.extra["system"] = [{"type": "text", "text": "Be brief.", "cache_control": SHORT}]
    for at in range(4):
        for message in talk.visible:  # the caller's two markers move along with the conversation
            for block in message["content"] if isinstance(message["content"], list) else []:
                block.pop("cache_control", None)
        talk.visible.append(
            {"role": "user", "content": [{"type": "text", "text": f"turn {at}", "cache_control": SHORT}]}
        )
        if at:
            blocks = talk.visible[-2]["content"]
            blocks[-1]["cache_control"] = SHORT
        talk.send(Move(text="Looking.", calls=[search(f"thing {at}")]), Move(text="ok"))
        assert len(list(all_markers(talk.body))) <= 4
        assert len(list(all_markers(talk.body["messages"]))) == 1 + bool(at)
    assert [report.prefix.stable for report in talk.reports][1:] == [True] * 3 if form.strategy == "native" else True


@forms
def test_a_message_written_as_text_or_as_a_block_is_the_same_message(form: Form) -> None:
    """Whoever marks the last message writes it as a block, and as plain text one turn later."""
    talk = form.talk()
    for at in range(3):
        for message in talk.visible:
            if message["role"] == "user" and isinstance(message["content"], list):
                message["content"] = message["content"][0]["text"]
        talk.visible.append(
            {"role": "user", "content": [{"type": "text", "text": f"turn {at}", "cache_control": SHORT}]}
        )
        talk.send(Move(text="ok"))
    assert [report.prefix.broke for report in talk.reports] == ["first_request", None, None]


@forms
def test_auto_marks_what_never_changes_and_the_end(form: Form) -> None:
    talk = form.talk({"cache": "auto", "resident": RESIDENT})
    talk.load(TOOL)
    for body in talk.bodies:
        assert len(list(all_markers(body))) == 2
        last = body["messages"][-1]["content"]
        assert last[-1]["cache_control"] == SHORT
        assert not any("cache_control" in tool for tool in body["tools"] if tool.get("defer_loading"))
    assert not any("no cache marker" in text for report in talk.reports for text in report.warnings)


@forms
def test_auto_leaves_a_caller_who_marks_alone(form: Form) -> None:
    talk = form.talk({"cache": "auto"}, extra={"system": [{"type": "text", "text": "Hi.", "cache_control": LONG}]})
    talk.user("go")
    talk.send(Move(text="ok"))
    assert list(all_markers(talk.body)) == [LONG]


@forms
def test_a_conversation_without_a_marker_is_told_once(form: Form) -> None:
    talk = form.talk()
    for at in range(3):
        talk.user(f"turn {at}")
        talk.send(Move(text="ok"))
    told = [any("no cache marker" in text for text in report.warnings) for report in talk.reports]
    assert told == [True, False, False]


@forms
def test_a_marker_on_a_provider_run_tool_is_merged_too(form: Form) -> None:
    talk = form.talk({"resident": RESIDENT})
    web = {"type": "web_search_20250305", "name": "web_search", "cache_control": LONG}
    talk.extra = {"tools": [*tools(MESSAGES), web]}
    talk.user("go")
    talk.send(Move(text="ok"))
    assert on_tools(talk.body) == {talk.in_context()[-1]: LONG}


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat_marker_keeps_to_the_last_resident(stream: bool) -> None:
    """Gateways take Anthropic's markers in chat requests."""
    talk = Form(CHAT, "resend", stream).talk({"resident": RESIDENT})
    listed = tools(CHAT)
    listed[0]["cache_control"] = SHORT
    talk.extra = {"tools": listed}
    talk.user("go")
    body = talk.begun().body
    assert [talk.name(tool) for tool in body["tools"] if "cache_control" in json.dumps(tool)] == ["photo_list"]
