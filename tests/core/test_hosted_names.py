"""Where the provider searches: no catalog of ours, and tools of the caller that have the name of the search."""

from __future__ import annotations

import json

import pytest
from tests.core.conversation import MESSAGES, NAMES, RESPONSES, Conversation

from loadpoint import Policy
from loadpoint.emulator import Move

HOSTED = Policy(strategy="native", search="hosted")
BM25 = "tool_search_tool_bm25"
streams = pytest.mark.parametrize("stream", [False, True])


@streams
@pytest.mark.parametrize("dialect", [MESSAGES, RESPONSES])
def test_a_provider_that_searches_needs_no_catalog(dialect: str, stream: bool) -> None:
    system = {"system": "Be brief."} if dialect == MESSAGES else {"instructions": "Be brief."}
    talk = Conversation(dialect, HOSTED.replace(catalog="system"), stream=stream, extra=system)
    talk.user("go")
    talk.send(Move(text="ok"))
    assert talk.report.load_point == "hosted_search"
    assert {key: talk.body[key] for key in system} == system
    assert "On-demand" not in json.dumps(talk.body)


@streams
def test_a_tool_with_the_name_of_the_search_takes_the_next_form_with_the_reason(stream: bool) -> None:
    """The API takes no two tools of one name."""
    talk = Conversation(MESSAGES, HOSTED, stream=stream, names=(*NAMES, BM25))
    talk.load("invoice_export")
    assert talk.report.load_point == "tool_reference"
    assert "hosted_search has the name of one of the tools" in talk.report.reason
    assert all(tool.get("type", "custom") == "custom" for tool in talk.body["tools"])


@streams
def test_a_resident_tool_of_that_name_does_so_too(stream: bool) -> None:
    talk = Conversation(MESSAGES, HOSTED.replace(resident=(BM25,)), stream=stream, names=(*NAMES, BM25))
    talk.load("invoice_export")
    assert talk.report.load_point == "tool_reference"


@streams
def test_who_did_not_ask_for_a_hosted_search_hears_nothing_of_it(stream: bool) -> None:
    talk = Conversation(MESSAGES, Policy(strategy="native"), stream=stream, names=(*NAMES, BM25))
    talk.load("invoice_export")
    assert "name of one of the tools" not in talk.report.reason


@streams
def test_a_hosted_conversation_that_such_a_tool_joins_goes_on(stream: bool) -> None:
    talk = Conversation(MESSAGES, HOSTED, stream=stream)
    talk.user("go")
    reply = talk.send(Move(calls=[(BM25, {"query": "invoice export"}), ("invoice_export", {"id": 1})]))
    talk.names = (*NAMES, BM25)
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.report.load_point == "tool_reference"
    assert "invoice_export" in talk.callable()


@streams
def test_so_it_does_where_only_the_record_asks_for_a_hosted_search(stream: bool) -> None:
    talk = Conversation(MESSAGES, Policy(search="hosted", threshold_tokens=0), stream=stream)
    talk.user("go")
    talk.send(Move(text="ok"))
    assert talk.report.load_point == "hosted_search"
    talk.policy = Policy(threshold_tokens=0)
    talk.names = (*NAMES, BM25)
    talk.session = talk.fresh(ledger=talk.session.ledger)
    talk.load("invoice_export")
    assert talk.report.load_point == "tool_reference"
    assert "has the name of one of the tools" in talk.reports[1].reason


@streams
def test_no_function_of_the_responses_api_has_the_name_of_the_search(stream: bool) -> None:
    """There it has a type and no name."""
    name = "tool_search"
    talk = Conversation(RESPONSES, HOSTED.replace(resident=(name,)), stream=stream, names=(*NAMES, name))
    talk.user("go")
    reply = talk.send(Move(calls=[(name, {"id": 1})]))
    assert talk.report.load_point == "hosted_search"
    assert talk.calls(reply) == [(name, {"id": 1})]
