"""What is special about items: namespaces, typed and custom tools, foreign searches, added tools, compaction."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import ADDS, NAMES, RESPONSES, Conversation, Form, search, tools

from loadpoint import Policy
from loadpoint.emulator import Move

TOOL = "invoice_export"
WAYS = (("native", ""), ("native", ADDS), ("resend", ""))
FORMS = [Form(RESPONSES, strategy, stream, model) for strategy, model in WAYS for stream in (False, True)]
forms = pytest.mark.parametrize("form", FORMS, ids=lambda f: f"{f.model or f.strategy}-{'stream' if f.stream else ''}")
streams = pytest.mark.parametrize("stream", [False, True])


def function(name: str, **more: Any) -> dict[str, Any]:
    (made,) = tools(RESPONSES, [name])
    return {**made, **more}


def definitions(talk: Conversation, kind: str) -> list[Any]:
    return [tool for item in talk.body["input"] if item.get("type") == kind for tool in item["tools"]]


@streams
def test_a_loaded_tools_namespace_goes_to_the_model_and_not_to_the_caller(stream: bool) -> None:
    talk = Form(RESPONSES, "native", stream).talk()
    talk.load(TOOL)
    assert "namespace" not in json.dumps(talk.replies)
    assert b"namespace" not in b"".join(talk.shown)
    (call,) = [item for item in talk.body["input"] if item.get("type") == "function_call"]
    assert call["namespace"] == TOOL
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert "namespace" not in json.dumps(reply["output"]), "also where no round was hidden"


@streams
def test_a_call_whose_rounds_are_lost_gets_no_namespace_that_its_tool_has_not(stream: bool) -> None:
    """What a search loaded in another process is added by an item, behind which a call carries none."""
    talk = Form(RESPONSES, "native", stream).talk()
    talk.load(TOOL)
    talk.restart()
    talk.user("again")
    talk.send(Move(text="ok"))
    assert TOOL in talk.callable()
    assert not [item for item in talk.body["input"] if "namespace" in item]


@streams
def test_a_call_that_failed_gets_the_namespace_of_the_search_that_came_later(stream: bool) -> None:
    talk = Form(RESPONSES, "native", stream).talk()
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    talk.answer(reply, text=json.dumps({"isError": True, "error": "not now"}))
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    talk.answer(reply)
    talk.send(Move(text="done"))
    calls = [item for item in talk.body["input"] if item.get("type") == "function_call"]
    assert [call["namespace"] for call in calls] == [TOOL, TOOL]


@forms
def test_members_of_a_namespace_are_deferred_and_loaded_one_by_one(form: Form) -> None:
    crm = {
        "type": "namespace",
        "name": "crm",
        "description": "Customers.",
        "tools": [function("find"), function("drop")],
    }
    fetch = {"type": "namespace", "name": "fetch", "description": "Pages.", "tools": [function("fetch")]}
    talk = form.talk(extra={"tools": [*tools(RESPONSES), crm, fetch]})
    talk.user("go")
    reply = talk.send(Move(calls=[search("crm.find", max_results=1)]), Move(calls=[("crm.find", {"id": 1})]))
    (call,) = [item for item in reply["output"] if item["type"] == "function_call"]
    assert (call["namespace"], call["name"]) == ("crm", "find"), "the caller has declared it, and dispatches by it"
    talk.answer(reply)
    reply = talk.send(Move(calls=[search("fetch", max_results=1)]), Move(calls=[("fetch", {"id": 1})]))
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert {"crm.find", "fetch"} <= {tool.name for tool in talk.report.loaded}
    sent = json.dumps(
        [talk.body["tools"], definitions(talk, "tool_search_output"), definitions(talk, "additional_tools")]
    )
    assert sent.count('"name": "crm"') == 1
    assert '"drop"' not in sent
    assert form.strategy == "resend" or not judge.check(talk.bodies)
    assert talk.bare()[0] == 200


@forms
def test_members_that_are_resident_stay_together(form: Form) -> None:
    crm = {
        "type": "namespace",
        "name": "crm",
        "description": "Customers.",
        "tools": [function("drop"), function("find")],
    }
    talk = form.talk({"resident": ("crm.*",)}, extra={"tools": [*tools(RESPONSES), crm]})
    talk.user("go")
    reply = talk.send(Move(calls=[("crm.find", {"id": 1})]))
    assert crm in talk.body["tools"]
    talk.answer(reply)
    talk.send(Move(text="ok"))


@forms
def test_typed_and_custom_tools_stay_as_they_are_and_can_be_called(form: Form) -> None:
    custom = {"type": "custom", "name": "shell", "description": "Runs a line."}
    remote = {"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example/x"}
    programmed = function("only_programs", allowed_callers=["programmatic"])
    talk = form.talk(extra={"tools": [remote, custom, programmed, *tools(RESPONSES)]})
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL), ("shell", "ls")]))
    (call,) = [item for item in reply["output"] if item["type"] == "custom_tool_call"]
    assert call["input"] == "ls"
    talk.visible.append({"type": "custom_tool_call_output", "call_id": call["call_id"], "output": "a b"})
    talk.send(Move(text="done"))
    assert TOOL in talk.callable()
    for body in talk.bodies:
        assert all(tool in body["tools"] for tool in (custom, remote, programmed))
    assert not judge.check(talk.bodies, mode="resend" if form.strategy == "resend" else "native")


@pytest.mark.parametrize("first", [ADDS, "gpt-5.4"])
@pytest.mark.parametrize("strategy", ["native", "resend"])
@streams
def test_a_conversation_goes_on_in_another_form(first: str, strategy: str, stream: bool) -> None:
    """Other models, another policy: what is loaded stays loaded, in the form that the request takes."""
    talk = Form(RESPONSES, "native", stream, first).talk({"resident": ("ledger_list",)})
    talk.load(TOOL)
    talk.user("both")
    reply = talk.send(Move(calls=[search("photo_list"), ("ledger_list", {"id": 1})]))
    talk.answer(reply)
    talk.model = ADDS if first != ADDS else "gpt-5.4"
    talk.policy = Policy(strategy=strategy, resident=("ledger_list",))
    talk.session = talk.fresh(ledger=talk.session.ledger)
    reply = talk.send(Move(calls=[(TOOL, {"id": 2}), ("photo_list", {"id": 3})]))
    assert {TOOL, "photo_list"} <= talk.callable()
    assert talk.report.prefix.broke in ("strategy_changed", "tool_changed")
    kinds = {item.get("type") for item in talk.body["input"]}
    if strategy == "resend":
        assert not {"tool_search_call", "tool_search_output", "additional_tools"} & kinds
    elif talk.model == ADDS:
        assert "tool_search_output" not in kinds
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable


HOSTED: list[dict[str, Any]] = [
    {"type": "tool_search_call", "id": "tsc_1", "execution": "server", "call_id": None, "arguments": {"paths": [TOOL]}},
    {
        "type": "tool_search_output",
        "id": "tso_1",
        "execution": "server",
        "call_id": None,
        "tools": [function(TOOL, defer_loading=True)],
    },
]


@forms
def test_a_search_that_the_provider_executed_is_evidence(form: Form) -> None:
    talk = form.talk()
    call = {"type": "function_call", "call_id": "call_1", "name": TOOL, "namespace": TOOL, "arguments": '{"id": 1}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    talk.visible += [{"role": "user", "content": "go"}, *HOSTED, call, output]
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert (TOOL, "search") in [(tool.name, tool.why) for tool in talk.report.loaded]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable


@pytest.mark.parametrize("form", FORMS[:4], ids=lambda f: f"{f.model or f.strategy}-{f.stream}")
def test_tools_that_the_caller_adds_are_his(form: Form) -> None:
    late = {"type": "additional_tools", "role": "developer", "tools": [function("late_tool")]}
    talk = form.talk()
    talk.visible = [{"role": "user", "content": "go"}, late]
    reply = talk.send(Move(calls=[("late_tool", {"id": 1})]))
    assert talk.calls(reply) == [("late_tool", {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert late in talk.body["input"]
    assert not talk.report.loaded


@forms
def test_what_a_compaction_has_swallowed_is_not_loaded_any_more(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    status, raw = talk.post({"model": talk.model, "input": talk.body["input"]}, "/responses/compact")
    assert status == 200, raw
    talk.visible = json.loads(raw)["output"]
    talk.user("and now?")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 2})]))
    assert talk.report.added_rounds == 1
    assert talk.calls(reply) == [(TOOL, {"id": 2})]


@streams
def test_the_answer_to_a_search_whose_call_id_changes_has_the_last_one(stream: bool) -> None:
    talk = Form(RESPONSES, "native", stream).talk()
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)], changing_call_ids=True), Move(text="ok"))
    (output,) = [item for item in talk.body["input"] if item.get("type") == "tool_search_output"]
    (call,) = [item for item in talk.body["input"] if item.get("type") == "tool_search_call"]
    assert output["call_id"] == call["call_id"]
    assert isinstance(call["arguments"], dict)
    assert output["tools"][0]["defer_loading"] is True


@streams
def test_unknown_items_of_a_reply_are_carried_through(stream: bool) -> None:
    strange = {"type": "future_item", "id": "x_1", "payload": {"deep": [1]}}
    talk = Form(RESPONSES, "native", stream).talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="ok", blocks=[strange]))
    assert strange in reply["output"]


@pytest.mark.parametrize("names", [NAMES, NAMES * 10])
def test_the_first_request_is_as_small_with_many_tools(names: tuple[str, ...]) -> None:
    named = [f"{name}_{at}" for at, name in enumerate(names)]
    talk = Form(RESPONSES, "native", False).talk(names=named)
    talk.user("hello")
    talk.send(Move(text="hi"))
    assert len(json.dumps(talk.body["tools"])) < 4_000
    assert [tool["type"] for tool in talk.body["tools"]] == ["tool_search"]


@forms
@pytest.mark.report("BR-007")
def test_marks_of_deferral_are_sent_beside_a_search_only(form: Form) -> None:
    marked = [function(name, defer_loading=name != "ledger_list") for name in NAMES]
    talk = form.talk(extra={"tools": marked})
    talk.load(TOOL)
    for body in talk.bodies:
        searches = any(tool["type"] == "tool_search" for tool in body["tools"])
        assert searches or not any(tool.get("defer_loading") for tool in body["tools"])


@forms
@pytest.mark.report("BR-006")
def test_searches_from_elsewhere_whose_outputs_came_in_another_order(form: Form) -> None:
    """Two of the client's by their ids, and one of the provider's without any between them."""

    def half(kind: str, call_id: str | None, **more: Any) -> dict[str, Any]:
        return {"type": kind, "call_id": call_id, "execution": "client" if call_id else "server", **more}

    names = {"call_a": TOOL, "call_b": "photo_list", None: "parcel_rename"}
    calls = [half("tool_search_call", call_id, arguments={"query": name}) for call_id, name in names.items()]
    outputs = [half("tool_search_output", call_id, tools=[function(name)]) for call_id, name in names.items()]
    talk = form.talk()
    talk.user("go")
    talk.visible += [*calls, *outputs[::-1]]
    talk.user("and now")
    talk.send(Move(text="ok"))
    assert set(names.values()) <= talk.callable()
    assert set(names.values()) <= {tool.name for tool in talk.report.loaded}
