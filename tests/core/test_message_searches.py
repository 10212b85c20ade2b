"""The search of the Messages API's own service, by choice: everything is declared, and its items are the service's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import MESSAGES, NAMES, Conversation, Form, references, search

from loadpoint import Policy
from loadpoint.emulator import Move
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages

TOOL, OTHER = "invoice_export", "parcel_rename"
BM25, REGEX = "tool_search_tool_bm25", "tool_search_tool_regex"
FORMS = [Form(MESSAGES, "native", stream) for stream in (False, True)]
each = pytest.mark.parametrize("form", FORMS, ids=["whole", "stream"])
HOSTED: dict[str, Any] = {"load_point": "hosted_search"}


def hosted(form: Form, **given: Any) -> Conversation:
    return form.talk({**HOSTED, **given.pop("policy", {})}, **given)


def find(words: str) -> tuple[str, dict[str, Any]]:
    return (BM25, {"query": words})


def kinds(body: dict[str, Any], at: int) -> list[str]:
    return [block["type"] for block in body["messages"][at]["content"]]


@each
def test_the_service_searches_what_is_declared(form: Form) -> None:
    talk = hosted(form)
    talk.user("export it")
    reply = talk.send(Move(calls=[find("invoice export"), (TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert [block["type"] for block in reply["content"]] == ["server_tool_use", "tool_search_tool_result", "tool_use"]
    assert talk.body["tools"][0] == {"type": f"{BM25}_20251119", "name": BM25}
    assert set(talk.declared()) == set(NAMES)
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert kinds(talk.body, 1) == ["server_tool_use", "tool_search_tool_result", "tool_use"], "it goes back as it came"
    assert kinds(talk.body, 2) == ["tool_result"]
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert len(talk.bodies) == 3, "no round of ours"
    assert talk.report.load_point == "hosted_search"
    assert TOOL in [tool.name for tool in talk.report.loaded]
    assert not judge.check(talk.bodies)
    assert all(exchange.status == 200 and not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_parallel_searches_and_words_between_them(form: Form) -> None:
    talk = hosted(form)
    talk.user("two things")
    reply = talk.send(
        Move(text="Let me look.", calls=[find("invoice export"), find("parcel rename"), (TOOL, {"id": 1})])
    )
    assert talk.text(reply) == "Let me look."
    talk.answer(reply)
    talk.send(Move(calls=[find("zzqx"), (OTHER, {"id": 1})]))
    assert kinds(talk.body, 1).count("tool_search_tool_result") == 2
    assert not judge.check(talk.bodies)


@each
def test_another_process_takes_the_items_as_they_are(form: Form) -> None:
    talk = hosted(form)
    talk.user("export it")
    talk.answer(talk.send(Move(calls=[find("invoice export"), (TOOL, {"id": 1})])))
    before = json.dumps(talk.visible)
    talk.restart()
    talk.send(Move(text="done"))
    assert json.dumps(talk.body["messages"]) == before
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


@each
def test_a_search_without_its_result_is_dropped_once_the_turn_has_ended(form: Form) -> None:
    """A stream that was cut. While the turn goes on, the service still runs the search."""
    talk = hosted(form)
    cut = {"type": "server_tool_use", "id": "srvtoolu_1", "name": BM25, "input": {"query": "invoice"}}
    talk.visible = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "text", "text": "Looking."}, cut]},
    ]
    talk.send(Move(text="So."))
    assert kinds(talk.body, 1) == ["text", "server_tool_use"], "paused: the service goes on with it"
    talk.visible = [*talk.visible[:2], {"role": "user", "content": "and now?"}]
    talk.send(Move(text="fine"))
    assert kinds(talk.body, 1) == ["text"]
    talk.visible = [talk.visible[0], {"role": "assistant", "content": [cut]}, {"role": "user", "content": "and?"}]
    talk.send(Move(text="fine"))
    assert [message["role"] for message in talk.body["messages"]] == ["user", "user"], "nothing is left of that turn"
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


@each
def test_client_calls_beside_a_pending_search_are_answered_alone(form: Form) -> None:
    talk = hosted(form, policy={"resident": ("ledger_list",)})
    cut = {"type": "server_tool_use", "id": "srvtoolu_1", "name": BM25, "input": {"query": "invoice"}}
    talk.user("go")
    reply = talk.send(Move(calls=[("ledger_list", {"id": 1})], before=(cut,)))
    assert [block["type"] for block in reply["content"]] == ["server_tool_use", "tool_use"]
    talk.answer(reply)
    found = {"type": "tool_search_tool_search_result", "tool_references": []}
    result = {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": found}
    talk.send(Move(text="nothing found", before=(result,)))
    talk.user("on")
    talk.send(Move(text="ok"))
    assert kinds(talk.body, 1) == ["server_tool_use", "tool_use"], "its result came in the next part of the turn"
    assert kinds(talk.body, 3) == ["tool_search_tool_result", "text"]
    assert not judge.check(talk.bodies)
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


@each
def test_loads_of_our_own_search_stay_as_ordinary_calls(form: Form) -> None:
    """The policy changes in the middle: what was found before is still loaded, and every name is declared."""
    talk = form.talk()
    talk.load(TOOL)
    talk.policy = talk.policy.replace(load_point="hosted_search")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert [name for result in talk.results().values() for name in references(result)] == [TOOL]
    talk.answer(reply)
    talk.send(Move(calls=[find("parcel rename"), (OTHER, {"id": 1})]))
    assert all(exchange.status == 200 and not exchange.warnings for exchange in talk.server.exchanges)


@each
def test_what_the_service_found_is_loaded_where_we_search(form: Form) -> None:
    """And the other way round: its items are turned into calls of the loader."""
    talk = hosted(form)
    talk.user("export it")
    talk.answer(talk.send(Move(calls=[find("invoice export"), (TOOL, {"id": 1})])))
    talk.policy = Policy(strategy="native")
    talk.session = talk.fresh(ledger=talk.session.ledger)
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]))
    assert talk.calls(reply) == [(TOOL, {"id": 2})]
    assert "srvtoolu" not in json.dumps(talk.body)
    assert TOOL in talk.callable()
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


@each
@pytest.mark.parametrize("choice", ["required", "none"])
def test_choices_leave_the_search_declared(form: Form, choice: str) -> None:
    talk = hosted(form, policy={"resident": ("ledger_list",), "max_rounds": 1})
    talk.user("export it")
    talk.answer(talk.send(Move(calls=[find("invoice export"), (TOOL, {"id": 1})])))
    talk.extra = form.choice(choice)
    talk.send(Move(calls=[(TOOL, {"id": 2})]) if choice == "required" else Move(text="no"))
    assert talk.body["tool_choice"] == form.choice(choice)["tool_choice"]
    assert talk.in_context()[0] == BM25


@each
def test_searches_that_we_showed_are_turned_back_here_too(form: Form) -> None:
    """They look like the service's own, which never made them."""
    talk = form.talk({"discovery": "shown"})
    talk.user("export it")
    talk.answer(talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})])))
    assert "srvtoolu_lp" in json.dumps(talk.visible)
    talk.policy = talk.policy.replace(load_point="hosted_search")
    talk.restart()
    talk.send(Move(text="done"))
    assert "srvtoolu_lp" not in json.dumps(talk.body)
    assert [name for result in talk.results().values() for name in references(result)] == [TOOL]
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


def test_where_the_platform_has_only_regular_expressions_those_are_declared() -> None:
    dialect = AnthropicMessages().at("hosted_search", "regex")
    assert dialect.loader("ToolSearch", "", {}) == {"type": f"{REGEX}_20251119", "name": REGEX}
    assert AnthropicMessages().at("hosted_search", "regex").load_point == "hosted_search"
    talk = Conversation(MESSAGES, Policy(strategy="native", **HOSTED))
    talk.base = "https://bedrock-runtime.us-east-1.amazonaws.com"
    talk.user("go")
    call: Any = talk.begun()
    assert call.body["tools"][0]["name"] == REGEX
    assert "tool-search-tool-2025-10-19" in call.headers["anthropic-beta"]


@each
def test_the_loader_is_not_looked_for(form: Form) -> None:
    """A model that was told of our loader before calls it: the call is the caller's, like any unknown name."""
    talk = hosted(form)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]))
    assert [name for name, _ in talk.calls(reply)] == ["ToolSearch"]


@each
@pytest.mark.parametrize("strategy", ["native", "auto"])
def test_a_model_without_search_goes_on_with_a_list_of_its_own(form: Form, strategy: str) -> None:
    talk = hosted(form, policy={"strategy": strategy, "threshold_tokens": 0})
    talk.user("export it")
    talk.answer(talk.send(Move(calls=[find("invoice export"), (TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    talk.model = "claude-3-7-sonnet-20250219"
    talk.user("and now")
    talk.send(Move(text="ok"))
    assert talk.report.strategy == "resend"
    assert talk.in_context()[0] == "ToolSearch", "and not the search of the service"
    assert TOOL in talk.in_context()
    assert not talk.declared()


@each
@pytest.mark.parametrize("lost", [False, True])
def test_a_tool_that_left_before_the_service_searches_gets_a_stub(form: Form, lost: bool) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    talk.names = [name for name in NAMES if name != TOOL]
    talk.policy = talk.policy.replace(load_point="hosted_search")
    talk.session = talk.fresh() if lost else talk.fresh(ledger=talk.session.ledger)
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.load_point == "hosted_search"
    names = [tool["name"] for tool in talk.body["tools"]]
    assert len(names) == len(set(names))
    assert TOOL in names
