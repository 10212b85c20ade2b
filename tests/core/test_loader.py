"""The loader: what it costs, what it understands, what it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint import Match, Tool, ToolIndex
from loadpoint._json import dumps
from loadpoint._loader import (
    LOADER_NAME,
    Answer,
    LoaderQuery,
    answer,
    loader_description,
    loader_name,
    loader_schema,
    parse_answer,
    parse_arguments,
)
from loadpoint._schema import validate
from loadpoint._tokens import exact

TOOLS = [
    Tool("github__create_issue", "Create an issue in a repository."),
    Tool("github__list_issues", "List the issues of a repository."),
    Tool("github__close_issue", "Close an issue."),
    Tool("github__comment_issue", "Write a comment on an issue."),
    Tool("github__label_issue", "Put a label on an issue."),
    Tool("github__lock_issue", "Lock the conversation of an issue."),
    Tool("mail__send", "Send a mail."),
    Tool("mail__search", "Search the mailbox."),
]
READ = Tool("Read", "Read a file.")


def ask(query: str | LoaderQuery, **changes: Any) -> Answer:
    settings: dict[str, Any] = {
        "deferred": TOOLS, "loaded": (), "resident": [READ], "load_at_most": 4, "load_tokens": 4_000,
        "size_of": lambda name: 100,
    } | changes  # fmt: skip
    index = settings.pop("index", None) or ToolIndex([*settings["resident"], *settings["deferred"]])
    return answer(LoaderQuery(query) if isinstance(query, str) else query, index, **settings)


def wire(description: str = "") -> str:
    function = {"name": LOADER_NAME, "description": loader_description(description), "parameters": loader_schema()}
    return dumps({"type": "function", "function": function})


# The definition


@pytest.mark.requirement("O1", "O2", "O3")
def test_the_definition():
    schema = loader_schema()
    assert loader_name(()) == "ToolSearch"
    assert schema["properties"] == {"query": {"type": "string"}, "max_results": {"type": "integer"}}
    assert schema["required"] == ["query"]
    assert validate(schema, {"query": "a", "max_results": 20}) == []
    assert validate(schema, {"max_results": 20})
    nothing: tuple[object, ...] = ("", " ", None, [], {})
    for empty in nothing:
        assert "no query" in str(parse_arguments({"query": empty})), "one character or more"
    given = [parse_arguments({"query": "a", "max_results": count}) for count in (-3, 0, 1, 20, 21, "7", None)]
    assert [found.max_results for found in given if not isinstance(found, str)] == [1, 1, 1, 20, 20, 7, 5]
    assert loader_schema() is not schema


@pytest.mark.requirement("O17")
def test_the_definition_is_small():
    assert len(wire()) < 400
    count = exact("gpt-4o")
    if count is not None:
        assert count(wire()) <= 95


@pytest.mark.requirement("O19")
def test_the_description_says_to_search_first_and_how():
    text = loader_description("")
    assert "before using one" in text
    assert "exact name, several names, or capability words" in text


def test_the_catalog_stands_at_the_end():
    assert loader_description("# On-demand tools\n- a").endswith("\n\n# On-demand tools\n- a")


@pytest.mark.report("BR-004")
def test_a_tool_of_the_caller_keeps_its_name():
    assert loader_name(["ToolSearch"]) == "ToolSearch2"
    assert loader_name({"ToolSearch", "ToolSearch2", "x"}) == "ToolSearch3"
    assert loader_name(["toolsearch"]) == "ToolSearch"


# Arguments


@pytest.mark.report("BR-091")
@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ('{"query": "send mail"}', LoaderQuery("send mail")),
        ('{"query": "send mail", "max_results": 3}', LoaderQuery("send mail", 3)),
        ({"query": " send mail "}, LoaderQuery("send mail")),
        ('{"queries": ["send", "mail"]}', LoaderQuery("send, mail")),
        ('{"queries": "noop"}', LoaderQuery("noop")),
        ({"q": "x"}, LoaderQuery("x")),
        ({"name": "mail__send"}, LoaderQuery("mail__send")),
        ({"names": ["mail__send", "Read"]}, LoaderQuery("mail__send, Read")),
        ('["mail__send", "Read"]', LoaderQuery("mail__send, Read")),
        ("mail__send", LoaderQuery("mail__send")),
        ('"mail__send"', LoaderQuery("mail__send")),
        ('{"arguments": {"query": "x", "max_results": 2}}', LoaderQuery("x", 2)),
        ('{"query": "{\\"query\\": \\"inner\\"}"}', LoaderQuery("inner")),
        ({"query": ["a", "b"]}, LoaderQuery("a, b")),
        ({"query": "x", "max_results": "7"}, LoaderQuery("x", 7)),
        ({"query": "x", "max_results": 0}, LoaderQuery("x", 1)),
        ({"query": "x", "max_results": 999}, LoaderQuery("x", 20)),
        ({"query": "x", "max_results": "many"}, LoaderQuery("x", 5)),
        ({"query": "x", "max_results": None}, LoaderQuery("x", 5)),
        ({"query": "x", "max_results": float("inf")}, LoaderQuery("x", 5)),
        ({"query": "x", "limit": 2.0}, LoaderQuery("x", 2)),
    ],
)
def test_obvious_shapes_are_understood(raw: Any, expected: LoaderQuery):
    assert parse_arguments(raw) == expected


@pytest.mark.report("BR-091")
@pytest.mark.parametrize(
    "raw", ["", "{}", "{", '{"query": "x"', "[]", "null", "3", None, 3, {"query": ""}, {"other": 1}, [[]]]
)
def test_anything_else_is_answered_with_what_is_expected(raw: Any):
    text = parse_arguments(raw)
    assert isinstance(text, str)
    assert '{"query": string, "max_results"?: integer from 1 to 20}' in text


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["query", "args", "x", "limit"]), inner),
)


@given(st.text() | json_values)
def test_parsing_never_raises(raw: Any):
    found = parse_arguments(raw)
    assert isinstance(found, str) or (found.query and 1 <= found.max_results <= 20)


def test_deep_arguments_do_no_harm():
    assert isinstance(parse_arguments("[" * 100_000), str)
    deep: Any = "x"
    for _ in range(5_000):
        deep = {"query": deep}
    assert isinstance(parse_arguments(deep), str)


# Answers


@pytest.mark.requirement("N11", "N15", "O8", "O9", "O10")
def test_an_exact_name_loads_that_tool_and_no_other():
    found = ask("github__create_issue")
    assert found.as_json() == {
        "query": "github__create_issue",
        "matches": [
            {"name": "github__create_issue", "description": "Create an issue in a repository.", "loaded": True}
        ],
        "total_available": 9,
        "addedToolNames": ["github__create_issue"],
    }
    assert json.loads(found.as_text()) == found.as_json()
    assert ": " not in found.as_text().replace("repository.", "")


@pytest.mark.requirement("N12")
def test_words_for_a_capability_find_the_tool():
    assert ask("send a mail").added[0] == "mail__send"


def test_several_names_load_together():
    assert ask("mail__send, github__lock_issue").added == ("mail__send", "github__lock_issue")
    assert ask("select:mail__send,lock_issue").added == ("mail__send", "github__lock_issue")


@pytest.mark.requirement("N14")
@pytest.mark.report("BR-099")
@pytest.mark.parametrize("most", [1, 2, 4])
def test_one_search_loads_a_few_tools_at_most(most: int):
    found = ask(LoaderQuery("github issue", 20), load_at_most=most)
    assert len(found.added) == most
    assert [match.name for match in found.matches] == list(found.added)


def test_max_results_bounds_the_answer():
    assert len(ask(LoaderQuery("issue", 2)).matches) == 2


def test_the_best_match_loads_whatever_its_size_and_others_as_the_budget_goes():
    sizes = {tool.name: 3_000 for tool in TOOLS} | {"github__lock_issue": 500}
    found = ask(LoaderQuery("github issue", 20), size_of=sizes.__getitem__, load_tokens=3_600)
    assert len(found.added) == 2
    assert "github__lock_issue" in found.added
    assert len(ask("github__create_issue", size_of=lambda name: 50_000).added) == 1


LESS = [
    Tool("chat__post_message", "Post a message to a channel."),
    Tool("chat__read_channel", "Read what was written."),
    Tool("chat__mute_channel", "Silence it."),
]


class Scored:
    """An index in which every query has these scores; what a query names comes first, as exact."""

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def search(self, query: str, limit: int = 4) -> list[Match]:
        named = [Match(name, 1000.0, "exact name") for name in self.scores if name in query]
        words = [Match(name, score, "words") for name, score in self.scores.items() if name not in query]
        return (named + (words if " " in query else []))[:limit]


def weak(query: str = "post a message to a channel", **changes: Any) -> Answer:
    scores = Scored(chat__post_message=10, chat__read_channel=4.9, chat__mute_channel=3)
    return ask(query, **{"deferred": LESS, "index": scores, **changes})


@pytest.mark.requirement("N14")
def test_what_fits_much_less_than_the_best_is_named_and_not_loaded():
    found = weak()
    assert found.added == ("chat__post_message",)
    named = [match["name"] for match in found.as_json()["matches"] if not match["loaded"]]
    assert set(named) == {"chat__read_channel", "chat__mute_channel"}
    assert "Silence it" not in found.as_text(), "its name is enough to ask for it"
    assert parse_answer(found.as_text()) == found.added


@pytest.mark.parametrize(("size", "score", "loads"), [(256, 5, 2), (512, 5.9, 1), (512, 6, 2), (99_000, 8.9, 1)])
def test_a_large_schema_has_to_fit_better(size: int, score: float, loads: int):
    sizes = {"chat__post_message": 100, "chat__read_channel": size}
    index = Scored(chat__post_message=10, chat__read_channel=score)
    assert len(weak(index=index, size_of=sizes.__getitem__, load_tokens=100_000).added) == loads


def test_what_is_named_exactly_falls_behind_nothing():
    found = weak("chat__mute_channel: post a message to a channel")
    assert {"chat__mute_channel", "chat__post_message"} <= set(found.added)
    assert weak("chat__mute_channel,chat__read_channel").added == ("chat__read_channel", "chat__mute_channel")


def test_what_is_callable_is_no_worse_for_fitting_less():
    found = weak(loaded=["chat__mute_channel"])
    told = {match.name: match.loaded for match in found.matches}
    assert told["chat__mute_channel"]
    assert not told["chat__read_channel"]


@pytest.mark.parametrize(("short", "loads"), [(0, 1), (100, 1), (101, 2), (200, 2), (201, 3), (300, 3), (301, 1)])
def test_a_prompt_too_short_for_the_cache_takes_more_as_far_as_it_gets_there(short: int, loads: int):
    assert len(weak(short_of_cache=short).added) == loads


def test_the_bounds_of_a_load_hold_for_short_prompts_too():
    assert len(weak(short_of_cache=250, load_at_most=2).added) == 1, "two cannot reach it"
    assert len(weak(short_of_cache=250, load_at_most=3).added) == 3
    assert len(weak(short_of_cache=250, load_tokens=200).added) == 1


@pytest.mark.report("BR-081")
def test_a_loaded_tool_is_reported_as_loaded_and_not_added_again():
    found = ask("mail__send", loaded=["mail__send"])
    assert found.added == ()
    assert [(match.name, match.loaded) for match in found.matches] == [("mail__send", True)]
    assert not found.no_match


@pytest.mark.requirement("O5")
@pytest.mark.report("BR-106")
def test_resident_tools_are_found_too():
    found = ask("read a file")
    assert [match.name for match in found.matches] == ["Read"]
    assert found.added == ()


@pytest.mark.report("BR-085", "BR-199", "BR-202")
def test_what_is_not_offered_is_neither_found_nor_loaded():
    found = ask("send mail", index=ToolIndex([READ, *TOOLS]), deferred=[t for t in TOOLS if t.name != "mail__send"])
    assert "mail__send" not in found.as_text().replace('"query":"send mail"', "")
    assert "mail__send" not in found.added


def test_a_search_is_not_exhausted_by_what_it_may_not_show():
    hidden = [Tool(f"mail__send_{i}", "Send a mail.") for i in range(12)]
    index = ToolIndex([*hidden, Tool("post__send", "Send a mail.")])
    found = ask("send a mail", index=index, deferred=[Tool("post__send", "Send a mail.")], resident=[])
    assert found.added == ("post__send",)


@pytest.mark.report("BR-226", "BR-103")
def test_no_match_says_what_to_try_and_lists_no_hidden_tool():
    found = ask("quantum entanglement")
    body = found.as_json()
    assert found.no_match
    assert body["matches"] == []
    assert body["addedToolNames"] == []
    assert body["total_available"] == 9
    assert "github" in body["hint"]
    assert not any(tool.name in found.as_text() for tool in TOOLS)
    assert len(found.as_text()) < 400


@pytest.mark.requirement("O11")
def test_pending_servers_appear_only_when_there_are_some():
    assert "pending_mcp_servers" not in ask("mail__send").as_json()
    body = ask("zebra", pending_servers=["slow\nserver"]).as_json()
    assert body["pending_mcp_servers"] == ["slow server"]


def test_the_answer_is_a_pure_function():
    first = ask("github issue").as_text()
    assert all(ask("github issue").as_text() == first for _ in range(5))


def test_long_texts_are_cut():
    found = ask("x" * 50_000 + "\n# hi", deferred=[Tool("long", "word " * 2_000)])
    assert len(found.query) <= 200
    found = ask("long", deferred=[Tool("long", "word\n" * 2_000)], resident=[])
    assert len(found.matches[0].description) <= 120
    assert "\n" not in found.matches[0].description


@pytest.mark.report("BR-253")
def test_the_answer_is_well_formed_text():
    ask("bro\ud800ken", deferred=[Tool("broken", "lone \udc00 surrogate")]).as_text().encode("utf-8")


class Reversed:
    """A ranker that likes the last tools best, and invents one."""

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        return [Match("invented", 9.0, "?"), *(Match(tool.name, 1.0, "last") for tool in reversed(tools))][:limit]


class Broken:
    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        raise RuntimeError("no model")


def test_a_foreign_ranker_is_fused_and_exact_names_stay_first():
    assert ask("something else entirely", index=Reversed()).added[0] == "mail__search"
    assert ask("github__create_issue", index=Reversed()).added == ("github__create_issue",)
    assert "invented" not in ask("mail", index=Reversed()).as_text()


def test_a_ranker_that_fails_costs_nothing_but_a_warning():
    with pytest.warns(RuntimeWarning, match="Broken failed"):
        assert ask("send a mail", index=Broken()).added[0] == "mail__send"


# Reading answers back


@pytest.mark.requirement("N23", "N33")
def test_an_answer_is_read_back():
    assert parse_answer(ask("mail__send, github__lock_issue").as_text()) == ("mail__send", "github__lock_issue")
    assert parse_answer(ask("nothing here").as_text()) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "prose with addedToolNames: [mail__send]",
        '{"addedToolNames": ["mail__send"]}',
        '{"query": "x", "matches": [], "total_available": 1}',
        '{"query": "x", "matches": [], "total_available": 1, "addedToolNames": "mail__send"}',
        '{"query": "x", "matches": [], "total_available": 1, "addedToolNames": [1]}',
        '{"query": "x", "matches": {}, "total_available": 1, "addedToolNames": []}',
        '{"query": "x", "matches": [], "total_available": true, "addedToolNames": []}',
        '{"query": 1, "matches": [], "total_available": 1, "addedToolNames": []}',
        '[{"query": "x", "matches": [], "total_available": 1, "addedToolNames": []}]',
        'Result: {"query": "x", "matches": [], "total_available": 1, "addedToolNames": []}',
    ],
)
def test_other_texts_are_no_answer(text: str):
    assert parse_answer(text) is None
