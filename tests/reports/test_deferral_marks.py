"""Field reports about marks of deferral: what is marked, for whom, and what becomes of the definitions behind them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import (
    ADDS,
    CHAT,
    MESSAGES,
    RESPONSES,
    Conversation,
    Form,
    everywhere,
    tools,
)
from tests.core.test_form_round_trips import WAYS, history, talk_in, visible_to_the_model

from loadpoint import Policy
from loadpoint.emulator import Move

Json = dict[str, Any]
TOOL, OTHER = "invoice_export", "photo_list"


@everywhere
@pytest.mark.report("BR-013")
@pytest.mark.parametrize("marked", [False, True])
def test_the_loader_is_never_deferred(form: Form, marked: bool) -> None:
    """Neither by a policy that defers everything, nor by a caller who has marked everything he has."""
    own = tools(form.dialect)
    given = [{**tool, "defer_loading": True} for tool in own] if marked else own
    talk = form.talk({"defer": ("*",), "resident": ()}, extra={"tools": given})
    talk.load(TOOL)
    for body in talk.bodies:
        (loader,) = [tool for tool in body["tools"] if talk.name(tool) == "ToolSearch"]
        assert "defer_loading" not in json.dumps(loader)


@pytest.mark.report("BR-013")
@pytest.mark.parametrize("way", [way for way in WAYS if way[1] == "hosted_search"], ids=["messages", "responses"])
def test_the_providers_search_is_never_deferred_either(way: Any) -> None:
    talk = talk_in(way, [])
    talk.user("go")
    talk.send(Move(text="ok"))
    (loader,) = [tool for tool in talk.body["tools"] if str(tool.get("type")).startswith("tool_search")]
    assert "defer_loading" not in loader


@everywhere
@pytest.mark.report("BR-016")
def test_no_optional_field_of_ours_is_null(form: Form) -> None:
    """A caller's null is his, but his mark of deferral with null for a value is none, and is not sent."""
    own = [{**tool, "defer_loading": None} for tool in tools(form.dialect)]
    talk = form.talk({"resident": ("ledger_list",)}, extra={"tools": own})
    talk.load(TOOL)
    for body in talk.bodies:
        assert "null" not in json.dumps(body["tools"])
        assert not [message for message in body[talk.key] if "null" in json.dumps(message.get("tools") or [])]


ODD_NAMES = ("file_id", "id", "type", "name", "tools", "call_id", "namespace", "tool_name", "defer_loading", "$ref")


@everywhere
@pytest.mark.report("BR-018")
@pytest.mark.parametrize("restart", [False, True])
def test_names_of_properties_are_never_read_as_anything_else(form: Form, restart: bool) -> None:
    properties = {name: {"type": "string", "description": f"{name} of the file"} for name in ODD_NAMES}
    key = "input_schema" if form.dialect == MESSAGES else "parameters"
    wires = tools(form.dialect)
    for wire in wires:
        inner = wire.get("function", wire)
        inner[key] = {"type": "object", "properties": properties}
    talk = form.talk(extra={"tools": wires})
    talk.load(TOOL, dict.fromkeys(ODD_NAMES, "x"))
    if restart:
        talk.restart()
    talk.user("and now")
    reply = talk.send(Move(calls=[(TOOL, {"file_id": "f_1"})]))
    assert talk.calls(reply) == [(TOOL, {"file_id": "f_1"})]
    assert TOOL in talk.callable()
    if not form.frozen:  # there a line tells of each parameter
        assert json.dumps(properties) in json.dumps(talk.body), "byte for byte"


@pytest.mark.report("BR-018")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == RESPONSES], ids=lambda way: way[1])
@pytest.mark.parametrize("form", ["tool_search", "hosted"])
def test_finished_searches_are_kept_whole_or_turned_back_whole(way: Any, form: str) -> None:
    talk = talk_in(way, history(RESPONSES, [form], [(TOOL, OTHER)]))
    talk.restart()
    talk.user("now")
    talk.send(Move(text="ok"))
    kinds = [item.get("type", "message") for item in talk.body["input"]]
    assert kinds.count("tool_search_call") == kinds.count("tool_search_output")
    assert kinds.count("function_call") == kinds.count("function_call_output")
    assert {TOOL, OTHER} <= visible_to_the_model(talk)


@pytest.mark.report("BR-007")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == RESPONSES], ids=lambda way: way[1])
def test_what_once_was_taken_back_brings_no_mark_without_a_search(way: Any) -> None:
    """Words that take a tool back are replayed, and the tool is only referred to."""
    words = f"These tools are no longer available, do not call them: {OTHER}."
    talk = talk_in(way, history(RESPONSES, ["tool_search"], [(TOOL, OTHER)]))
    talk.visible.append({"type": "message", "role": "developer", "content": words})
    talk.user("now")
    talk.send(Move(text="ok"))
    searches = any(tool["type"] == "tool_search" for tool in talk.body["tools"])
    assert searches or "defer_loading" not in json.dumps(talk.body["tools"])
    assert OTHER not in [tool.name for tool in talk.report.loaded]


NO_SEARCH = [(CHAT, "gpt-5.4"), (MESSAGES, "claude-3-haiku-20240307"), (RESPONSES, "gpt-4o"), (RESPONSES, ADDS)]


@pytest.mark.report("BR-019")
@pytest.mark.parametrize(("dialect", "model"), NO_SEARCH)
@pytest.mark.parametrize("policy", ["auto", "resend"])
def test_a_mark_is_not_sent_to_a_model_that_could_not_undo_it(dialect: str, model: str, policy: str) -> None:
    marked = [{**tool, "defer_loading": True} for tool in tools(dialect)]
    talk = Conversation(dialect, Policy(strategy=policy), model=model, extra={"tools": marked})
    talk.load(TOOL)
    talk.user("and?")
    talk.send(Move(text="done"))
    assert "defer_loading" not in json.dumps(talk.bodies)
    assert TOOL in visible_to_the_model(talk), "nor does the mark hide it again once it is loaded"


FREE: Json = {"type": "custom", "name": "free_text", "description": "Takes any text.", "defer_loading": True}
NESTED: Json = {"type": "namespace", "name": "words", "description": "Texts.", "tools": [{**FREE, "name": "inner"}]}


@pytest.mark.report("BR-021")
@pytest.mark.parametrize("strategy", ["auto", "native", "resend", "eager"])
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize("entry", [FREE, NESTED], ids=["flat", "nested"])
def test_what_no_search_here_can_find_is_sent_whole_and_said(strategy: str, alone: bool, entry: Json) -> None:
    """A freeform tool with a mark: without a search beside it it is refused, and with one of ours never found."""
    marked = [] if alone else [{**tool, "defer_loading": True} for tool in tools(RESPONSES)]
    if strategy == "eager" and not alone:
        marked = tools(RESPONSES)
    talk = Conversation(RESPONSES, Policy(strategy=strategy), extra={"tools": [entry, *marked]})
    talk.user("go")
    talk.send(Move(text="ok"))
    (own,) = [tool for tool in talk.body["tools"] if tool.get("name") == entry["name"]]
    assert "defer_loading" not in json.dumps(own)
    assert any("no search here can find" in text for text in talk.report.warnings)
    assert any(tool.get("type") == "tool_search" for tool in talk.body["tools"]) == (
        not alone and strategy in ("auto", "native")
    )
