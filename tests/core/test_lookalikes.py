"""Conversations that look alike: found again under the same words and the same ids, and never mixed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bench import judge
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, Conversation, Form, everywhere, form_id, search

from loadpoint.emulator import Move

TOOL = "invoice_export"


@pytest.mark.parametrize("form", [Form(CHAT, "resend", False), Form(CHAT, "resend", True)], ids=form_id)
@settings(max_examples=25)
@given(data=st.data())
def test_conversations_with_the_same_ids_and_words_are_never_mixed(form: Form, data: st.DataObject):
    """One session, ids like `call_0`, the same few words: each conversation only ever sends its own rounds."""
    first = form.talk(names=NAMES[:8])
    others = [
        Conversation(form.dialect, first.policy, stream=form.stream, session=first.session, names=NAMES[:8])
        for _ in "ab"
    ]
    talks = [first, *others]
    own: list[set[str]] = [set() for _ in talks]
    counts = [0] * len(talks)
    for _ in range(data.draw(st.integers(3, 9))):
        at = data.draw(st.integers(0, len(talks) - 1))
        talk = talks[at]
        query = f"{data.draw(st.sampled_from(NAMES[:6]))} c{at}n{counts[at]}"
        counts[at] += 1
        own[at].add(query)
        talk.user(data.draw(st.sampled_from(["yes", "go on"])))
        moves = [Move(calls=[("ToolSearch", {"query": query}, "call_0")])] if data.draw(st.booleans()) else []
        if data.draw(st.booleans()):
            talk.answer(talk.send(*moves, Move(calls=[(TOOL, {"id": 1}, "call_1")])))
            moves = []
        talk.send(*moves, Move(text="done"))
    alike = [{json.dumps(talk.visible[:n]) for n in range(2, len(talk.visible) + 1, 2)} for talk in talks]
    for at, talk in enumerate(talks):
        sent = json.dumps(talk.bodies)
        for other, queries in enumerate(own):
            if other != at and not alike[at] & alike[other]:  # what looks the same to the last byte is the same
                assert not [query for query in queries if f"{query}\\" in sent], f"{at} sent a round of {other}"


@everywhere
def test_many_conversations_with_one_wording_all_keep_their_rounds(form: Form):
    """A popular exchange ("yes", "Done.") must not push out the rounds of conversations that are still running."""
    first = form.talk()
    talks = [first]
    alike: dict[str, Any] = {"stream": form.stream, "model": form.model, "session": first.session}
    talks += [Conversation(form.dialect, first.policy, **alike) for _ in range(24)]
    for at, talk in enumerate(talks):
        talk.user(f"conversation {at}")
        talk.send(Move(text="Hello."))
        talk.user("yes")
        talk.send(Move(calls=[search(f"{NAMES[at]}")]), Move(text="Done."))
    for talk in talks:
        talk.user("and now?")
        talk.send(Move(text="Nothing."))
        assert not judge.check(talk.bodies, mode=form.strategy)


@everywhere
def test_a_named_conversation_is_not_taken_for_another(form: Form):
    first = form.talk()
    other = Conversation(form.dialect, first.policy, stream=form.stream, session=first.session)
    for talk, name in ((first, "one"), (other, "two")):
        talk.user("go")
        headers = {"x-loadpoint-conversation": name}
        talk.send(Move(calls=[search(f"invoice {name}")]), Move(text="Done."), headers=headers)
    for talk, name, foreign in ((first, "one", "two"), (other, "two", "one")):
        talk.user("again")
        talk.send(Move(text="ok"), headers={"x-loadpoint-conversation": name})
        assert f"invoice {name}" in json.dumps(talk.body)
        assert f"invoice {foreign}" not in json.dumps(talk.body)


@everywhere
@pytest.mark.requirement("O18")
def test_a_copy_of_the_session_starts_small(form: Form):
    """A subagent shares the session and nothing of the conversation."""
    talk = form.talk()
    talk.load(TOOL)
    sub = Conversation(form.dialect, talk.policy, stream=form.stream, session=talk.session)
    sub.user("a task of its own")
    sub.send(Move(text="ok"))
    assert sub.in_context() == ["ToolSearch"]
    assert sub.declared() == []


@pytest.mark.parametrize("stream", [False, True])
def test_users_who_say_the_same_words_never_see_each_others_searches(stream: bool):
    """One key, one session, two system prompts: what a search for Alice asked is not sent for Bob."""
    form = Form("anthropic.messages", "native", stream)
    first = form.talk(extra={"system": "You help Alice."})
    other = Conversation(form.dialect, first.policy, stream=stream, session=first.session)
    other.extra = {"system": "You help Bob."}
    other.user("go")
    other.send(Move(text="Done."))
    first.user("go")
    first.send(Move(calls=[search("invoice of Alice")]), Move(text="Done."))
    for talk in (other, first):
        talk.user("again")
        talk.send(Move(text="ok"))
    assert "Alice" not in json.dumps(other.bodies)
    assert "invoice of Alice" in json.dumps(first.body)
    assert first.reports[-2].prefix.stable, "Bob, who has a record of his own"


@pytest.mark.parametrize("stream", [False, True])
def test_ids_that_hold_the_tools_name_are_not_taken_for_random_ones(stream: bool):
    first, other = (Form(CHAT, "resend", stream).talk() for _ in "ab")
    real = [(TOOL, {"id": 1}, f"functions.{TOOL}:0")]
    for talk, moves in ((first, [Move(calls=[search("invoice one")])]), (other, [])):
        talk.user(f"start {len(moves)}")
        talk.send(Move(text="Hello."))
        talk.user("go")
        talk.answer(talk.send(*moves, Move(calls=real)))
    other.visible = other.visible[2:]  # the beginning was cut off
    other.restart(ledger=first.session.ledger)
    other.send(Move(text="ok"))
    assert "invoice one" not in json.dumps(other.body)


@everywhere
def test_a_history_whose_beginning_was_cut_off_keeps_the_rounds_of_its_calls(form: Form):
    """A sliding window: turns with random ids are known by themselves."""
    talk = form.talk()
    for name in (TOOL, "photo_list"):
        talk.load(name)
    talk.visible = talk.visible[4:]
    talk.user("again")
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == ["photo_list"]
    assert len(talk.results()) == 2, "the search and the call"
    assert talk.report.prefix.broke is not None


@everywhere
def test_a_system_prompt_with_a_clock_in_it_loses_no_rounds_with_random_ids(form: Form):
    if form.dialect == CHAT:
        pytest.skip("there the system prompt is a message")
    prompt = "system" if form.dialect == MESSAGES else "instructions"
    talk = form.talk(extra={prompt: "It is 10:00."})
    talk.load(TOOL)
    talk.extra = {prompt: "It is 10:01."}
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke == "system_changed"
    assert [(tool.name, tool.why) for tool in talk.report.loaded] == [(TOOL, "search")]


@everywhere
def test_a_clock_in_the_system_prompt_loses_no_search_either(form: Form):
    """Nothing here has a random id: one search, answered in text, under a prompt that changes with every request."""
    if form.dialect == CHAT:
        pytest.skip("there the system prompt is a message")
    prompt = "system" if form.dialect == MESSAGES else "instructions"
    talk = form.talk(extra={prompt: "It is 10:00."})
    talk.user("is there something for invoices?")
    talk.send(Move(calls=[search(TOOL)]), Move(text="yes, there is"))
    talk.extra = {prompt: "It is 10:01."}
    talk.user("use it")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke == "system_changed"
    assert [tool.name for tool in talk.report.loaded][:1] == [TOOL]


@everywhere
@pytest.mark.parametrize("which", [0, 1])
def test_results_that_the_caller_clears_lose_no_rounds(form: Form, which: int):
    """Clearing old results is how context is saved: one break, and what was found stays found."""
    talk = form.talk()
    talk.load(TOOL)
    talk.load("photo_list")
    talk.user("is there something for events?")
    talk.send(Move(calls=[search("event_list", max_results=1)]), Move(text="yes, there is"))
    results = [m for m in talk.visible if m.get("role") == "tool" or "tool_result" in str(m) or "output" in m]
    block = results[which]["content"][0] if form.dialect == MESSAGES else results[which]
    block["output" if form.dialect == RESPONSES else "content"] = "[cleared]"
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke == "history_rewritten"
    assert {TOOL, "photo_list", "event_list"} <= {tool.name for tool in talk.report.loaded}
    assert {TOOL, "photo_list", "event_list"} <= talk.callable()
    talk.user("and on")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


@pytest.mark.parametrize("stream", [False, True])
def test_what_two_users_said_alike_is_nobodys_once_their_prompts_have_changed(stream: bool):
    """Both prompts hold a clock, no id tells the two apart: rather no search than another user's."""
    form = Form("anthropic.messages", "native", stream)
    first = form.talk()
    other = Conversation(form.dialect, first.policy, stream=stream, session=first.session)
    for talk, user in ((other, "Bob"), (first, "Alice")):
        talk.extra = {"system": f"You help {user}. It is 10:00."}
        talk.user("go")
        talk.send(Move(calls=[search(f"invoice of {user}")]), Move(text="Done."))
    for talk, user, foreign in ((other, "Bob", "Alice"), (first, "Alice", "Bob")):
        talk.extra = {"system": f"You help {user}. It is 10:01."}
        talk.user("again")
        talk.send(Move(text="ok"))
        assert f"invoice of {foreign}" not in json.dumps(talk.body)
