"""Field reports about cache markers: how many there are, on which tools they may stand, and what counts as deferred."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, Conversation, Form, everywhere, search, tools

from loadpoint._json import Json
from loadpoint.emulator import Move
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages

TOOL = "invoice_export"
SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
FORMS = [Form(MESSAGES, strategy, stream) for strategy in ("native", "resend") for stream in (False, True)]
marking = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.strategy}{'-stream' if form.stream else ''}")
COUNT = "/v1/messages/count_tokens"


def markers(value: Any) -> Iterator[Json]:
    """Every cache marker in a body, wherever it stands."""
    if isinstance(value, dict):
        if isinstance(value.get("cache_control"), dict):
            yield value["cache_control"]
        for item in value.values():
            yield from markers(item)
    elif isinstance(value, list):
        for item in value:
            yield from markers(item)


def with_marks(talk: Conversation, key: str, marks: Json, *, inside: bool = False) -> None:
    """Give the tools of a conversation a field each."""
    listed = talk.extra.get("tools") or tools(talk.dialect, talk.names)
    for tool in listed:
        if talk.name(tool) in marks:
            (tool["function"] if inside else tool)[key] = marks[talk.name(tool)]
    talk.extra["tools"] = listed


def counted(talk: Conversation) -> Json:
    """What is sent where the caller only counts tokens."""
    request = talk.request()
    request.body.pop("stream", None)
    call = talk.session.begin(replace(request, path=COUNT))
    assert not call.exchange
    return dict(call.body)


@pytest.mark.report("BR-039")
@marking
@pytest.mark.parametrize("place", ["tool", "system", "message"])
def test_a_marker_of_the_caller_is_seen_wherever_it_stands_and_nothing_is_added(form: Form, place: str) -> None:
    talk = form.talk({"cache": "auto", "resident": ("ledger_list", TOOL)})
    if place == "tool":
        with_marks(talk, "cache_control", {"ledger_list": SHORT})
    elif place == "system":
        talk.extra["system"] = [{"type": "text", "text": "Be brief.", "cache_control": SHORT}]
    talk.user("go")
    if place == "message":
        talk.visible[-1]["content"] = [{"type": "text", "text": "go", "cache_control": SHORT}]
    assert list(markers(counted(talk))) == [SHORT]
    talk.send(Move(calls=[search("photo_list")]), Move(text="ok"))
    assert [list(markers(body)) for body in talk.bodies] == [[SHORT]] * 2


@pytest.mark.report("BR-039")
@pytest.mark.parametrize("inside", [False, True], ids=["beside", "inside"])
def test_on_chat_a_marker_is_read_beside_the_function_and_inside_it(inside: bool) -> None:
    talk = Form(CHAT, "resend", stream=False).talk({"cache": "auto", "resident": ("ledger_list", "photo_list")})
    with_marks(talk, "cache_control", {"ledger_list": SHORT, TOOL: LONG}, inside=inside)
    talk.user("go")
    found = {talk.name(tool): list(markers(tool)) for tool in talk.begun().body["tools"]}
    assert {name: marks for name, marks in found.items() if marks} == {"photo_list": [LONG]}, "both count as one"


@pytest.mark.report("BR-040")
@marking
def test_with_every_tool_deferred_the_rest_is_marked_all_the_same(form: Form) -> None:
    talk = form.talk({"cache": "auto"})
    with_marks(talk, "defer_loading", dict.fromkeys(talk.names, True))
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    for body in talk.bodies:
        assert [talk.name(tool) for tool in body["tools"] if "cache_control" in tool] == [talk.in_context(body)[-1]]
        assert body["messages"][-1]["content"][-1]["cache_control"] == SHORT


@pytest.mark.report("BR-040")
def test_a_list_without_a_place_for_a_marker_gets_none() -> None:
    deferred = [{**tool, "defer_loading": True} for tool in tools(MESSAGES)]
    body = {"tools": deferred, "messages": [{"role": "user", "content": "go"}]}
    out = AnthropicMessages().with_markers(body)
    assert out["tools"] == deferred
    assert list(markers(out["messages"])) == [SHORT]


@pytest.mark.report("BR-042")
@marking
def test_one_marker_among_many_tools_of_which_each_had_one(form: Form) -> None:
    talk = form.talk({"resident": ("invoice_*",)})
    with_marks(talk, "cache_control", dict.fromkeys(talk.names, SHORT))
    talk.user("go")
    talk.send(Move(calls=[search("photo_list")]), Move(text="ok"))
    for body in talk.bodies:
        assert [talk.name(tool) for tool in body["tools"] if "cache_control" in tool] == ["invoice_rename"]


@pytest.mark.report("BR-042", "BR-045")
@marking
def test_the_automatic_marker_is_one_and_stands_on_the_last_tool_in_context(form: Form) -> None:
    talk = form.talk({"cache": "auto", "resident": ("invoice_*",)})
    talk.user("go")
    talk.send(Move(calls=[search("photo_list")]), Move(calls=[search("event_create")]), Move(text="ok"))
    assert len(talk.bodies) == 3, "the emulator refuses a marker on a deferred tool"
    for body in talk.bodies:
        assert [talk.name(tool) for tool in body["tools"] if "cache_control" in tool] == [talk.in_context(body)[-1]]
    assert bool(talk.declared()) == (form.strategy == "native"), "and behind it stand deferred ones"


@pytest.mark.report("BR-043")
@everywhere
@pytest.mark.parametrize("odd", ["true", 1, {"defer_loading": True}], ids=["text", "number", "object"])
def test_only_a_literal_true_defers(form: Form, odd: Any) -> None:
    talk = form.talk({"defer": ()})
    with_marks(talk, "defer_loading", {"photo_list": odd, TOOL: True})
    talk.user("go")
    sent = len(talk.names) - 1
    if form.dialect == MESSAGES:
        assert len(talk.in_context(counted(talk))) == sent + 1
    talk.send(Move(text="ok"))
    assert len(talk.in_context()) == sent + 1, "all but one, and the loader"
    assert TOOL not in talk.in_context()
    assert "photo_list" in talk.in_context()


@pytest.mark.report("BR-043")
@everywhere
@pytest.mark.parametrize(
    ("key", "odd"),
    [
        ("defer_loading", "true"),
        ("defer_loading", 1),
        ("defer_loading", {"defer_loading": True}),
        ("x-options", {"defer_loading": True}),
    ],
    ids=["text", "number", "object", "another key"],
)
def test_a_list_without_a_literal_true_is_not_deferred_even_after_one_with_it(form: Form, key: str, odd: Any) -> None:
    talk = form.talk({"defer": ()})
    with_marks(talk, "defer_loading", dict.fromkeys(talk.names, True))
    talk.user("go")
    talk.send(Move(text="ok"))
    assert talk.report.deferred == len(talk.names)
    other = form.talk({"defer": ()}, session=talk.session, reports=talk.reports)
    with_marks(other, key, dict.fromkeys(talk.names, odd))
    other.user("something else")
    call = other.begun()
    assert call.untouched, "what it means is the provider's to say"
    assert call.report.deferred == 0


@pytest.mark.report("BR-046")
@marking
def test_a_marker_on_a_deferred_tool_moves_with_its_lifetime_and_is_reported(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list", "contact_list")})
    with_marks(talk, "cache_control", {TOOL: LONG})
    talk.user("go")
    talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    for body in talk.bodies:
        marked = {talk.name(tool): tool["cache_control"] for tool in body["tools"] if "cache_control" in tool}
        assert marked == {"ledger_list": LONG}
    (warning,) = [text for text in talk.report.warnings if "marker" in text]
    assert TOOL in warning
    talk.user("more")
    talk.send(Move(text="ok"))
    assert not talk.report.warnings, "said once in a conversation"
    assert talk.report.prefix.stable
