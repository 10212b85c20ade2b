"""The prefix verdict where the provider searches: what the model reads of tools that nothing has loaded yet."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import MESSAGES, NAMES, RESPONSES, Conversation, tools

from loadpoint import Policy
from loadpoint.emulator import Move
from loadpoint.emulator._responses_tools import declaration
from loadpoint_adapters._dialects.openai_responses import OpenAIResponses

HOSTED = Policy(strategy="native", search="hosted", catalog="tool")
streams = pytest.mark.parametrize("stream", [False, True])
LONG = "many words are said here " * 400


def begun(stream: bool = False, **given: Any) -> Conversation:
    talk = Conversation(RESPONSES, HOSTED, stream=stream, **given)
    said(talk, LONG)
    return talk


def said(talk: Conversation, text: str) -> Any:
    talk.user(text)
    talk.send(Move(text="ok"))
    return talk.report.prefix


def namespaces(talk: Conversation) -> list[str]:
    return [declaration(wire) for wire in talk.body["tools"]]


@pytest.mark.requirement("N17")
@streams
def test_tools_of_another_server_grow_the_prefix(stream: bool) -> None:
    """Of a new namespace name and description stand in the prefix: the groups before it are shared, no more."""
    talk = begun(stream)
    before = namespaces(talk)
    talk.names = (*NAMES, "zulu__weigh", "zulu__pack")
    found = said(talk, "again")
    assert (found.stable, found.broke) == (False, "tools_grew")
    assert namespaces(talk)[: len(before)] == before
    assert namespaces(talk)[len(before) :]
    cached = talk.server.exchanges[-1].cached_tokens
    assert cached < 1_000 < talk.server.exchanges[-2].input_tokens, "the cache agrees: it ends where the tools grew"
    assert (found.predicted or 0) < 1_000
    assert said(talk, "once more").stable
    assert talk.server.exchanges[-1].cached_tokens > 1_000


@pytest.mark.requirement("N17")
@streams
def test_a_tool_that_joins_a_group_without_a_word_leaves_the_prefix(stream: bool) -> None:
    names = [name for name in NAMES if name != "invoice_rename"]
    talk = begun(stream, names=names)
    before = namespaces(talk)
    talk.names = (*names, "invoice_rename")
    found = said(talk, "again")
    assert namespaces(talk) == before, "its name and its schema are not in the context"
    assert "invoice_rename" in json.dumps(talk.body["tools"])
    assert (found.stable, found.broke) == (True, None)
    assert talk.server.exchanges[-1].cached_tokens > 1_000


@streams
def test_a_tool_that_changes_what_its_group_is_about_grows_the_tools(stream: bool) -> None:
    names = (*NAMES[:20], "zulu__list_ship", "zulu__drop_ship", *NAMES[20:])
    talk = begun(stream, names=names)
    before = namespaces(talk)
    talk.names = (*names, "zulu__list_port")
    found = said(talk, "again")
    assert len(namespaces(talk)) == len(before)
    assert namespaces(talk) != before
    assert (found.stable, found.broke) == (False, "tools_grew")
    assert talk.server.exchanges[-1].cached_tokens < 1_000


def test_the_report_counts_what_stands_in_the_context() -> None:
    """Names and descriptions of the namespaces, as the emulator bills them, and not the schemas behind them."""
    talk = begun()
    counted = talk.server.exchanges[-1].tokens.tools
    assert 60 < counted < 600
    assert counted * 0.6 < talk.report.tokens.sent < counted * 1.6


def test_a_deferred_function_of_its_own_is_counted_by_name_and_description() -> None:
    (wire,) = tools(RESPONSES, NAMES[:1])
    form = OpenAIResponses("tool_search")
    (kept,) = form.standing([{**wire, "defer_loading": True}])
    assert kept == {key: wire[key] for key in ("type", "name", "description")}


@streams
def test_where_nothing_of_deferred_tools_is_shown_the_prefix_holds(stream: bool) -> None:
    talk = Conversation(MESSAGES, HOSTED, stream=stream)
    said(talk, LONG)
    talk.names = (*NAMES, "zulu__weigh", "zulu__pack")
    assert said(talk, "again").stable
