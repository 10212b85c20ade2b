"""Tools that load by value in system messages of a Messages conversation: where they stand, and what they carry."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import INLINE, MESSAGES, NAMES, Conversation, Form, additions, search, tools

from loadpoint import Policy
from loadpoint.emulator import Move

TOOL, OTHER = "invoice_export", "parcel_rename"
BETA = "inline-tools-2026-09-15"
FORMS = [Form(MESSAGES, "native", stream, INLINE) for stream in (False, True)]
each = pytest.mark.parametrize("form", FORMS, ids=["whole", "stream"])


def roles(body: dict[str, Any]) -> str:
    return "".join(message["role"][0] for message in body["messages"])


def added(body: dict[str, Any]) -> list[list[str]]:
    """The names that each message adds by value."""
    found = [[tool["name"] for tool in additions(message)] for message in body["messages"]]
    return [names for names in found if names]


@each
def test_a_load_is_a_definition_behind_the_results_and_leaves_the_tools_alone(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    assert [roles(body) for body in talk.bodies] == ["u", "uaus", "uausau"]
    (definition,) = additions(talk.body["messages"][3])
    assert definition == next(tool for tool in tools(MESSAGES) if tool["name"] == TOOL)
    (result,) = talk.body["messages"][2]["content"]
    assert json.loads(result["content"])["addedToolNames"] == [TOOL], "the model is told in words what it has now"
    assert len({json.dumps(body["tools"]) for body in talk.bodies}) == 1
    assert talk.report.load_point == "tool_addition"
    assert not judge.check(talk.bodies)
    assert all(exchange.status == 200 and not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_one_placeholder_stands_deferred_in_every_request_and_is_never_seen(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.load(TOOL)
    for body in talk.bodies:
        (held,) = [tool for tool in body["tools"] if tool.get("defer_loading")]
        assert held["name"] not in NAMES
        assert body["tools"][-1] is held
    assert all(TOOL not in json.dumps(body["tools"]) for body in talk.bodies), "the catalog aside, nothing is declared"
    assert all("loadpoint_placeholder" not in exchange.loaded for exchange in talk.server.exchanges)


@each
def test_a_tool_of_the_caller_may_have_the_placeholders_name(form: Form) -> None:
    name = "loadpoint_placeholder"
    talk = form.talk({"resident": (name,)}, names=(*NAMES, name))
    talk.load(TOOL)
    names = [tool["name"] for tool in talk.body["tools"]]
    assert len(set(names)) == len(names) == 3
    assert name in talk.in_context()
    late = form.talk(names=(*NAMES, name))
    late.load(name)
    assert added(late.body) == [[name]]


@each
def test_the_beta_is_asked_for_from_the_first_request_on(form: Form) -> None:
    talk = form.talk(headers={"anthropic-beta": "context-1m-2025-08-07"})
    talk.load(TOOL)
    for exchange in talk.server.exchanges:
        assert exchange.headers["anthropic-beta"].split(",") == ["context-1m-2025-08-07", BETA]


@each
def test_a_mixed_turn_loads_behind_the_callers_results_and_all_his_messages(form: Form) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.user("both")
    reply = talk.send(Move(calls=[search(TOOL), ("ledger_list", {"id": 1}), search(OTHER)]))
    assert talk.calls(reply) == [("ledger_list", {"id": 1})]
    talk.answer(reply)
    talk.user("and be quick")
    talk.user("very quick")
    talk.visible.append({"role": "system", "content": "The user is in a hurry."})
    talk.send(Move(calls=[(TOOL, {"id": 1}), (OTHER, {"id": 2})]))
    assert roles(talk.body) == "uauuuss"
    assert [block["type"] for block in talk.body["messages"][2]["content"]] == ["tool_result"] * 3
    assert added(talk.body) == [[TOOL, OTHER]], "one message for all loads of a turn"
    talk.answer(talk.replies[-1])
    talk.send(Move(text="done"))
    assert roles(talk.body) == "uauuussau"
    assert not judge.check(talk.bodies)


@each
def test_system_messages_of_the_caller_stay_where_they_are(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    talk.visible.append({"role": "system", "content": [{"type": "text", "text": "Be brief."}]})
    talk.answer(talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    talk.user("next")
    talk.visible.append({"role": "system", "content": "Be very brief."})
    talk.send(Move(calls=[search(OTHER)]), Move(text="ok"))
    assert talk.report.prefix.stable
    assert added(talk.body) == [[TOOL], [OTHER]]
    assert all(not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_thinking_goes_back_with_its_call_and_before_the_load(form: Form) -> None:
    talk = form.talk(model="claude-opus-5-5", policy={"load_point": "tool_addition"})
    talk.extra = {"thinking": {"type": "adaptive"}}
    talk.user("go")
    reply = talk.send(Move(thinking="Hm.", calls=[search(TOOL)]), Move(thinking="Now.", calls=[(TOOL, {"id": 1})]))
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert roles(talk.body) == "uausau"
    kinds = [block["type"] for block in talk.body["messages"][1]["content"]]
    assert kinds == ["thinking", "tool_use"]
    assert talk.report.prefix.stable
    assert not judge.check(talk.bodies)


@each
def test_a_paused_turn_is_resumed_before_anything_is_added(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(text="Let me", calls=[search(TOOL)], stop="pause_turn"))
    assert talk.stop(reply) == "pause_turn"
    talk.send(Move(text=" see."))
    assert roles(talk.body) == "ua", "what was paused is the last turn, and nothing stands behind it"
    assert not added(talk.body)


@each
def test_a_redefined_tool_is_added_again(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    listed = tools(MESSAGES)
    next(tool for tool in listed if tool["name"] == TOOL)["description"] = "Exports in another way."
    talk.extra = {"tools": listed}
    talk.user("again")
    talk.send(Move(calls=[(TOOL, {"id": 5})]))
    assert added(talk.body) == [[TOOL], [TOOL]]
    assert additions(talk.body["messages"][-1])[0]["description"] == "Exports in another way."
    assert talk.report.prefix.stable
    talk.answer(talk.replies[-1])
    talk.send(Move(text="ok"))
    assert not judge.check(talk.bodies)


@each
def test_a_tool_that_left_is_taken_back(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.names = [name for name in NAMES if name != TOOL]
    talk.user("again")
    talk.send(Move(calls=[(TOOL, {"id": 5})]), Move(text="it is gone"))
    assert '"tool_removal"' in json.dumps(talk.bodies[-2]["messages"][-1]), "the model is told where it stands"
    (answer,) = [result for result in talk.results().values() if result.get("is_error")]
    assert "no longer available" in answer["content"], "and a call of it is answered all the same"
    assert not judge.check(talk.bodies)


THREADS = {"anthropic-beta": "message-threads-2026-08-12"}


def thread(form: Form, **policy: Any) -> Conversation:
    talk = form.talk(policy, headers=THREADS)
    talk.extra = {"thread": {"type": "create"}}
    return talk


def go_on(talk: Conversation, reply: dict[str, Any], *messages: dict[str, Any]) -> None:
    talk.visible = list(messages)
    talk.extra = {"thread": {"type": "continue", "previous_message_id": reply["id"]}, "tools": None, "system": None}


def answers(reply: dict[str, Any]) -> dict[str, Any]:
    calls = [block for block in reply["content"] if block["type"] == "tool_use"]
    return {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "done"} for call in calls],
    }


@each
def test_in_a_thread_loads_travel_with_the_new_messages(form: Form) -> None:
    talk = thread(form)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    assert [roles(body) for body in talk.bodies] == ["u", "us"]
    assert "tools" not in talk.body
    go_on(talk, reply, answers(reply))
    reply = talk.send(Move(text="done"))
    assert roles(talk.body) == "u"
    go_on(talk, reply, {"role": "user", "content": "again"})
    reply = talk.send(Move(calls=[search(OTHER), (TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    go_on(talk, reply, answers(reply), {"role": "user", "content": "and the other"})
    reply = talk.send(Move(calls=[(OTHER, {"id": 3})]))
    assert roles(talk.body) == "uus"
    assert added(talk.body) == [[OTHER]]
    assert talk.calls(reply) == [(OTHER, {"id": 3})]
    assert all(exchange.status == 200 and not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_a_removal_by_the_caller_counts_in_a_thread_too(form: Form) -> None:
    talk = thread(form)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="found"))
    removal = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": TOOL}}
    go_on(talk, reply, {"role": "user", "content": "no"}, {"role": "system", "content": [removal]})
    talk.send(Move(text="ok"))
    assert TOOL not in [tool.name for tool in talk.report.loaded]


@each
def test_the_callers_own_changes_are_evidence(form: Form) -> None:
    talk = form.talk(headers={"anthropic-beta": BETA})
    talk.user("go")
    own = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": TOOL}}
    talk.visible.append({"role": "system", "content": [{"type": "text", "text": "Export now."}, own]})
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in talk.declared(), "a name that is referred to has to be declared"
    talk.answer(reply)
    talk.visible.append({"role": "system", "content": [{"type": "tool_removal", "tool": own["tool"]}]})
    talk.send(Move(text="done"))
    assert TOOL not in [tool.name for tool in talk.report.loaded]
    assert TOOL in talk.declared(), "what takes it back refers to it too"
    talk.user("again")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert added(talk.body) == [[TOOL]]
    assert not judge.check(talk.bodies)


@each
def test_a_tool_that_the_caller_alone_defines_is_his(form: Form) -> None:
    talk = form.talk(headers={"anthropic-beta": BETA})
    talk.user("go")
    (own,) = tools(MESSAGES, ["mine_only"])
    definition = {"type": "tool_definition", "definition": own}
    talk.visible.append({"role": "system", "content": [{"type": "tool_addition", "tool": definition}]})
    reply = talk.send(Move(calls=[("mine_only", {"id": "any"})]))
    assert talk.calls(reply) == [("mine_only", {"id": "any"})]
    assert "mine_only" not in talk.declared()


@each
@pytest.mark.parametrize("name", [TOOL, "ledger_list"])
def test_a_choice_may_name_what_a_message_has_loaded(form: Form, name: str) -> None:
    talk = form.talk({"resident": ("ledger_list",)})
    talk.load(TOOL)
    talk.user("again")
    talk.extra = form.choice("named", name)
    reply = talk.send(Move(calls=[(name, {"id": 1})]))
    assert talk.calls(reply) == [(name, {"id": 1})]
    assert (TOOL in talk.declared()) is (name == TOOL), "named beside its definition, deferred"
    talk.answer(reply)
    talk.extra = {}
    talk.send(Move(text="done"))
    assert talk.report.prefix.broke == "settings_changed", "the caller's own change, which voids the cached messages"
    talk.user("more")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable


@each
def test_a_demand_in_the_last_round_leaves_a_tool_in_context(form: Form) -> None:
    talk = form.talk({"max_rounds": 2}, extra=form.choice("required"))
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL), search(OTHER)]), Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert set(talk.in_context()) == {TOOL, OTHER}, "the loader was all that stood in the list"


@each
def test_automatic_markers_stand_on_the_load(form: Form) -> None:
    talk = form.talk({"cache": "auto"})
    talk.user("go " + "with many words in it " * 900)
    talk.send(Move(calls=[search(TOOL)]), Move(text="found"))
    (block,) = talk.body["messages"][-1]["content"]
    assert block["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in json.dumps(block["tool"])
    talk.user("again")
    talk.send(Move(text="ok"))
    first, second = (exchange.cached_tokens for exchange in talk.server.exchanges[1:])
    assert 0 < first < second, "what was written with the load is read with it"


OLDER = "claude-sonnet-4-5"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("point", ["tool_addition", None])
def test_a_model_that_takes_no_changes_goes_on_without_them(point: str | None, stream: bool) -> None:
    """A call without a search was placed by a message; the next model is sent the tool in its list."""
    talk = Conversation(MESSAGES, Policy(strategy="native", load_point=point), stream=stream, model=INLINE)
    talk.load(TOOL)
    talk.user("at once")
    talk.answer(talk.send(Move(calls=[(OTHER, {"id": 1})])))
    talk.send(Move(text="done"))
    assert '"tool_addition"' in json.dumps(talk.body)
    talk.model = OLDER
    talk.user("on")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1}), (OTHER, {"id": 2})]))
    assert len(talk.calls(reply)) == 2
    assert '"tool_addition"' not in json.dumps(talk.body)
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable
    talk.model = INLINE
    talk.user("back")
    talk.send(Move(text="ok"))
    assert [exchange.status for exchange in talk.server.exchanges[-3:]] == [200] * 3


@pytest.mark.parametrize(
    ("model", "base", "headers", "kept"),
    [
        (OLDER, "https://api.anthropic.com", {}, False),
        (INLINE, "https://api.anthropic.com", {}, True),
        (INLINE, "https://proxy.example", {"anthropic-beta": BETA}, True),
        (INLINE, "https://proxy.example", {}, False),
    ],
)
def test_the_callers_changes_are_sent_where_they_can_be(model: str, base: str, headers: Any, kept: bool) -> None:
    talk = Conversation(MESSAGES, Policy(strategy="native"), model=model, headers=headers)
    talk.base = base
    talk.user("go")
    own = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": TOOL}}
    talk.visible.append({"role": "system", "content": [own]})
    talk.send(Move(text="ok"))
    assert ('"tool_addition"' in json.dumps(talk.body["messages"])) is kept


def test_where_changes_go_by_reference_only_the_tool_is_declared() -> None:
    talk = Conversation(MESSAGES, Policy(strategy="native", load_point="tool_addition"), model=INLINE)
    talk.base = "https://us-east5-aiplatform.googleapis.com"
    talk.load(TOOL)
    assert roles(talk.body) == "uausau"
    assert talk.body["messages"][3]["content"] == [
        {"type": "tool_addition", "tool": {"type": "tool_reference", "name": TOOL}}
    ]
    assert talk.declared() == [TOOL]
    talk.user("at once")
    reply = talk.send(Move(calls=[(OTHER, {"id": 1})]))
    assert talk.calls(reply) == [(OTHER, {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.declared() == [TOOL, OTHER]
    assert not added(talk.body)
    assert not judge.check(talk.bodies)
    older = {"mid-conversation-tool-changes-2026-07-01"}
    assert [set(e.headers["anthropic-beta"].split(",")) for e in talk.server.exchanges] == [older] * len(talk.bodies)
    assert all(exchange.status == 200 and not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_a_compaction_of_a_hidden_round_goes_back_as_it_came(form: Form) -> None:
    talk = form.talk()
    talk.load(OTHER)
    (own,) = tools(MESSAGES, [OTHER])
    change = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": own}}
    block = {"type": "compaction", "content": "So far.", "encrypted_content": "opaque", "tool_changes": [change]}
    failed = {"type": "compaction", "content": None, "encrypted_content": None}
    talk.user("go on")
    reply = talk.send(
        Move(calls=[search(TOOL)], before=(block,)),
        Move(calls=[(OTHER, {"id": 1}), (TOOL, {"id": 2})], before=(failed,)),
    )
    assert len(talk.calls(reply)) == 2
    talk.answer(reply)
    talk.send(Move(text="done"))
    sent = [b for message in talk.body["messages"] for b in message["content"] if isinstance(b, dict)]
    assert [b for b in sent if b["type"] == "compaction"] == [block, failed]
    assert {tool.name for tool in talk.report.loaded} == {OTHER, TOOL}
    assert not judge.check(talk.bodies)
