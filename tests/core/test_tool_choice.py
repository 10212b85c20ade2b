"""`tool_choice` under deferral: forced, required, allowed, none."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conversation import ADDS, CALLS, CHAT, KIMI, LOADS, MESSAGES, NAMES, RESPONSES, Form, everywhere, search

from loadpoint.emulator import Move

TOOL = "invoice_export"
WAYS = [
    (CHAT, "resend", ""),
    (RESPONSES, "native", ADDS),
    (RESPONSES, "native", "gpt-5.6-sol"),
    (RESPONSES, "native", ""),
]
NATIVE_LISTS = [Form(*way[:2], stream, way[2]) for way in WAYS for stream in (False, True)]


def forced(form: Form, name: str) -> dict[str, Any]:
    if form.model == KIMI:
        pytest.skip("this model takes no choice that names a tool")
    return form.choice("named", name)


def demanded(form: Form) -> dict[str, Any]:
    return form.choice("required")


def allowed(form: Form, mode: str, *names: str) -> dict[str, Any]:
    if form.dialect == RESPONSES:
        flat = [{"type": "function", "name": name} for name in names]
        return {"tool_choice": {"type": "allowed_tools", "mode": mode, "tools": flat}}
    listed = [{"type": "function", "function": {"name": name}} for name in names]
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": listed}}}


def listed(body: dict[str, Any]) -> list[str]:
    choice = body["tool_choice"]
    return [tool.get("function", tool)["name"] for tool in choice.get("allowed_tools", choice)["tools"]]


@everywhere
def test_a_forced_deferred_tool_is_sent_at_once(form: Form) -> None:
    talk = form.talk(extra=forced(form, TOOL))
    talk.user("go")
    if form.frozen:
        reply = talk.send(Move(calls=[search("photo")]), Move(calls=[(TOOL, {"id": 1})]))
        assert talk.calls(reply) == [(TOOL, {"id": 1})]
        named = [form.choice("named", name)["tool_choice"] for name in (LOADS, CALLS)]
        assert [body["tool_choice"] for body in talk.bodies] == named
        assert TOOL in talk.callable(), "the load that was demanded brings it along"
        return
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in talk.in_context()
    assert talk.body["tool_choice"] == forced(form, TOOL)["tool_choice"]
    assert [(tool.name, tool.why) for tool in talk.report.loaded] == [(TOOL, "forced")]


def voided(form: Form) -> str | None:
    """What the caller's change of `tool_choice` alone does to the prompt: in one API it voids the cached messages."""
    return "settings_changed" if form.dialect == MESSAGES else None


@everywhere
def test_a_tool_forced_later_breaks_the_prefix_once_and_stays(form: Form) -> None:
    talk = form.talk()
    talk.user("hello")
    talk.send(Move(text="hi"))
    talk.extra = forced(form, TOOL)
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.report.prefix.broke == (voided(form) if form.frozen else "forced_tool")
    talk.answer(reply)
    talk.extra = {}
    talk.send(Move(text="done"))
    assert talk.report.prefix.broke == voided(form)
    talk.user("more")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable
    assert TOOL in (talk.callable() if form.frozen else talk.in_context())


@everywhere
def test_a_forced_loaded_tool_stays_where_it_was(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.extra = forced(form, TOOL)
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    talk.answer(reply)
    talk.extra = {}
    talk.send(Move(text="done"))
    if form.load_point == "additional_tools":
        # Before gpt-5.6 no choice can name an added tool: that one request has to send it in the list.
        assert [report.strategy for report in talk.reports] == ["native", "native", "resend", "native"]
    else:
        assert talk.report.prefix.broke == voided(form)
        assert talk.report.prefix.stable is (voided(form) is None)


@everywhere
def test_a_demand_is_met_by_a_search_and_made_again(form: Form) -> None:
    talk = form.talk(extra=demanded(form))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert [body["tool_choice"] for body in talk.bodies] == [demanded(form)["tool_choice"]] * 2


@everywhere
def test_the_last_round_of_a_demand_allows_the_callers_own_tools_only(form: Form) -> None:
    talk = form.talk({"max_rounds": 2, "resident": ("ledger_list", "photo_list")}, extra=demanded(form))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[("ledger_list", {"id": 1})]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    if form.frozen:
        assert talk.body["tool_choice"] == form.choice("named", CALLS)["tool_choice"]
        assert "ToolSearch" in talk.in_context(), "the list stays whole"
    elif form.dialect == CHAT and form.model != KIMI:
        names = set(listed(talk.body))
        assert talk.body["tool_choice"]["allowed_tools"]["mode"] == "required"
        assert {"ledger_list", "photo_list", TOOL} <= names
        assert "ToolSearch" not in names
    elif form.dialect == RESPONSES and not (form.by_value and not form.model):
        names = set(listed(talk.body))
        assert talk.body["tool_choice"]["mode"] == "required"
        assert {"ledger_list", "photo_list"} <= names
        assert (TOOL in names) is not form.by_value, "a choice cannot name an added tool before gpt-5.6"
        assert "ToolSearch" not in names
    else:
        assert talk.body["tool_choice"] == demanded(form)["tool_choice"]
        assert "ToolSearch" not in talk.in_context()
    assert "search_limit" in talk.report.warnings
    talk.answer(reply)
    talk.extra = {}
    talk.send(Move(text="done"))
    assert talk.in_context()[0] == "ToolSearch", "what left for one request is back where it was"


@everywhere
def test_a_demand_with_nothing_to_call_ends_in_a_reply(form: Form) -> None:
    talk = form.talk({"max_rounds": 2}, extra=demanded(form))
    talk.user("go")
    reply = talk.send(Move(calls=[search("zzqx vvkw")]), Move(text="nothing to call"))
    assert talk.text(reply) == "nothing to call"
    assert talk.body["tool_choice"] == form.choice("none")["tool_choice"]


@everywhere
def test_none_allows_no_search_and_holds_nothing(form: Form) -> None:
    choice = form.choice("none")
    talk = form.talk(extra=choice)
    talk.user("go")
    reply = talk.send(Move(text="hello"))
    assert talk.text(reply) == "hello"
    assert talk.body["tool_choice"] == choice["tool_choice"]


@pytest.mark.parametrize("form", NATIVE_LISTS)
def test_allowed_tools_bound_what_can_be_found(form: Form) -> None:
    talk = form.talk(extra=allowed(form, "auto", TOOL, "photo_list"))
    talk.user("go")
    moves = [Move(calls=[search("parcel_rename")]), Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})])]
    reply = talk.send(*moves)
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert talk.report.searches[0].hits in ((), (TOOL,), ("photo_list",))
    assert {tool.name for tool in talk.report.loaded} <= {TOOL, "photo_list"}
    assert talk.report.load_point == ("additional_tools" if form.model == "gpt-5.6-sol" else None)
    sent = [listed(body) for body in talk.bodies]
    assert sent[0] == ["ToolSearch"]
    assert TOOL in sent[-1]
    assert "parcel_rename" not in sent[-1]


@pytest.mark.parametrize("form", NATIVE_LISTS)
def test_allowed_tools_make_nothing_resident(form: Form) -> None:
    talk = form.talk(extra=allowed(form, "auto", TOOL))
    talk.user("go")
    talk.send(Move(text="hello"))
    assert talk.in_context() == ["ToolSearch"]


@pytest.mark.parametrize("form", NATIVE_LISTS)
def test_the_last_round_of_a_demanding_list_stays_within_the_list(form: Form) -> None:
    talk = form.talk({"max_rounds": 2, "resident": ("ledger_list", "photo_list")})
    talk.extra = allowed(form, "required", "photo_list", TOOL)
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)]), Move(calls=[("photo_list", {"id": 1})]))
    choice = talk.body["tool_choice"]
    assert choice.get("allowed_tools", choice)["mode"] == "required"
    assert set(listed(talk.body)) == {"photo_list", TOOL}


@pytest.mark.parametrize("stream", [False, True])
def test_a_custom_tool_keeps_its_type_in_the_last_rounds_list(stream: bool) -> None:
    form = Form(CHAT, "resend", stream)
    talk = form.talk({"max_rounds": 2}, extra=demanded(form))
    custom = {"type": "custom", "custom": {"name": "shell", "description": "Runs a line."}}
    talk.extra["tools"] = [*_tools(form), custom]
    talk.user("go")
    talk.send(Move(calls=[search("zzqx vvkw")]), Move(text="nothing"))
    assert talk.body["tool_choice"]["allowed_tools"]["tools"] == [{"type": "custom", "custom": {"name": "shell"}}]


def _tools(form: Form) -> list[dict[str, Any]]:
    from tests.core.conversation import tools

    return tools(form.dialect, NAMES)


@everywhere
def test_the_choice_of_an_unknown_shape_is_sent_as_it_came(form: Form) -> None:
    choice = form.choice("auto")
    if form.dialect == MESSAGES:
        choice["tool_choice"]["disable_parallel_tool_use"] = False
    talk = form.talk(extra=choice)
    talk.user("go")
    talk.send(Move(text="hello"))
    assert talk.body["tool_choice"] == choice["tool_choice"]


@everywhere
@pytest.mark.parametrize("way", ["call", "push"])
def test_a_tool_that_was_placed_can_be_demanded(form: Form, way: str) -> None:
    """Placed where no choice can name it: then it has to stand in the list as well."""
    talk = form.talk()
    talk.user("a")
    if way == "call":
        talk.answer(talk.send(Move(calls=[(TOOL, {"id": 1})])))
    else:
        talk.names = [name for name in NAMES if name != TOOL]
        talk.load("photo_list")
        talk.names = NAMES
        talk.answer(talk.send(Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="x"))
    talk.user("b")
    talk.extra = forced(form, TOOL)
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
