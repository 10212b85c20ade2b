"""The local search: names first, words by weight, nothing when nothing fits, the same every time."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadpoint import Match, Ranker, Tool, ToolIndex
from loadpoint._search import infer_servers
from loadpoint._search._text import level, stem, terms


def parameters(**described: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": d} for name, d in described.items()},
    }


TOOLS = [
    Tool(
        "github__create_issue",
        "Create a new issue in a repository.",
        parameters(title="The title", labels="Labels to put"),
    ),
    Tool("github__list_issues", "List the issues of a repository."),
    Tool("github__merge_pull_request", "Merge a pull request."),
    Tool("mcp__browser__browser_open", "Open a page."),
    Tool("mcp__browser__browser_close", "Close the page."),
    Tool("addPerson_mcp_pipedrive", "Add a contact to the CRM."),
    Tool("addActivity_mcp_pipedrive", "Add an activity to the CRM."),
    Tool("bitable_v1_appTableRecord_search", "Look for rows."),
    Tool("mcp__plugin_x__ask_codex", "Put a question to another agent."),
    Tool("canvas_create_edge", "Connect two nodes of a drawing."),
    Tool("parseXML", "Read a document.", parameters(xpath="Which nodes")),
    Tool("XMLParserTool", "Another reader."),
    Tool("search_laws", "\u6cd5\u4ee4\u3092\u30ad\u30fc\u30ef\u30fc\u30c9\u3067\u691c\u7d22\u3057\u307e\u3059\u3002"),
    Tool("tra_cuu", "T\u00ecm ki\u1ebfm v\u0103n b\u1ea3n ph\u00e1p lu\u1eadt"),
    Tool("mail_send", "Send a message.", {"properties": {"format": {"enum": ["markdown", "html"]}}}),
    Tool("Read", "Read a file from disk."),
]
INDEX = ToolIndex(TOOLS)


def found(query: str, index: ToolIndex = INDEX, limit: int = 4) -> list[str]:
    return [match.name for match in index.search(query, limit)]


# Names


@pytest.mark.requirement("N11")
@pytest.mark.report("BR-100", "BR-102")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("github__create_issue", "github__create_issue"),
        ("GITHUB__CREATE_ISSUE", "github__create_issue"),
        ("github create issue", "github__create_issue"),
        ("github.create-issue", "github__create_issue"),
        ("githubCreateIssue", "github__create_issue"),
        ("`create_issue`", "github__create_issue"),
        ("ask_codex", "mcp__plugin_x__ask_codex"),
        ("addPerson", "addPerson_mcp_pipedrive"),
        ("addPerson_mcp_pipedrive", "addPerson_mcp_pipedrive"),
        ("browser_open", "mcp__browser__browser_open"),
        ("read", "Read"),
    ],
)
def test_a_name_finds_its_tool_and_nothing_else(query: str, name: str):
    assert found(query) == [name]


@pytest.mark.report("BR-096")
def test_a_displayed_path_in_front_of_a_name_does_no_harm():
    assert found("tools.github.create_issue") == ["github__create_issue"]
    served = ToolIndex([Tool("tools__run", "Run"), Tool("tools__stop", "Stop")])
    assert found("tools.run", served) == ["tools__run"]


@pytest.mark.report("BR-103")
def test_select_takes_several_names_short_or_long():
    assert all(match.why.startswith("exact name") for match in INDEX.search("select:browser_open,browser_close"))
    assert found("select:browser_open,browser_close") == ["mcp__browser__browser_open", "mcp__browser__browser_close"]
    assert found("select: Read , nothing_like_it")[0] == "Read"


@pytest.mark.requirement("N11")
def test_several_names_in_one_query_come_in_the_order_written():
    names = ["mail_send", "github__list_issues", "ask_codex"]
    expected = ["mail_send", "github__list_issues", "mcp__plugin_x__ask_codex"]
    for separator in (",", ", ", " ", "\n", "; "):
        assert found(separator.join(names)) == expected


def test_names_within_a_sentence_come_first():
    assert found("please load mail_send so that I can write to Anna")[0] == "mail_send"
    assert INDEX.search("please load mail_send so that I can write")[0].why == "exact name"


def test_a_sentence_that_begins_with_a_tool_s_name_is_a_sentence():
    assert found("Read the xml document nodes")[0] in ("parseXML", "Read")
    assert len(found("Read the xml document nodes")) > 1


def test_a_bare_name_of_two_servers_finds_both():
    index = ToolIndex([Tool("a__send", "x"), Tool("b__send", "x"), Tool("a__x"), Tool("b__x")])
    assert found("select:send", index) == ["a__send", "b__send"]


# Words


@pytest.mark.requirement("N12", "O6")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("create an issue", "github__create_issue"),
        ("new issues", "github__create_issue"),
        ("labels", "github__create_issue"),
        ("merging pull requests", "github__merge_pull_request"),
        ("markdown", "mail_send"),
        ("xpath", "parseXML"),
        ("contact", "addPerson_mcp_pipedrive"),
    ],
)
def test_words_of_names_descriptions_parameters_and_values_find_the_tool(query: str, name: str):
    assert found(query)[0] == name


@pytest.mark.report("BR-093")
def test_camel_case_is_split_before_it_is_folded():
    assert found("table record") == ["bitable_v1_appTableRecord_search"]
    assert set(found("xml parser")[:2]) >= {"XMLParserTool"}
    assert terms("appTableRecord") == ("app", "table"[:-1], "record", "apptablerecord")
    assert terms("XMLParser")[:2] == ("xml", "parser")


@pytest.mark.report("BR-111")
def test_parts_of_a_name_find_it_and_the_name_outweighs_other_fields():
    assert found("create edge")[0] == "canvas_create_edge"
    wordy = Tool(
        "other", "An edge, edges and edge again: create or create edge, edge, edge.", parameters(edge="create edge")
    )
    assert found("create edge", ToolIndex([wordy, *TOOLS]))[0] == "canvas_create_edge"


@pytest.mark.report("BR-097")
@pytest.mark.parametrize(
    "query", ["\u6cd5\u4ee4", "\u6cd5\u4ee4\u691c\u7d22", "\u30ad\u30fc\u30ef\u30fc\u30c9", "\u691c\u7d22 law"]
)
def test_scripts_without_spaces_are_searched(query: str):
    assert found(query)[0] == "search_laws"


@pytest.mark.report("BR-114")
@pytest.mark.parametrize(
    "query", ["T\u00ecm ki\u1ebfm", "tim kiem", "ph\u00e1p lu\u1eadt", "PH\u00c1P LU\u1eacT", "phap luat"]
)
def test_diacritics_do_not_matter(query: str):
    assert found(query)[0] == "tra_cuu"
    import unicodedata

    assert found(unicodedata.normalize("NFD", query))[0] == "tra_cuu"


@pytest.mark.requirement("O7")
@pytest.mark.parametrize(
    ("query", "name"),
    [("isue", None), ("pul reqest merge", "github__merge_pull_request"), ("pipedriv", "addPerson_mcp_pipedrive")],
)
def test_slips_of_the_keys_and_beginnings_are_forgiven(query: str, name: str | None):
    hits = found(query)
    assert hits[0] == name if name else "issue" in hits[0]


@pytest.mark.report("BR-105")
def test_the_server_s_name_is_searched():
    index = ToolIndex([Tool("run_query", "Runs it", server="warehouse"), Tool("run_job", "Runs it", server="factory")])
    assert found("warehouse", index)[0] == "run_query"


@pytest.mark.report("BR-106")
def test_every_source_is_searched():
    index = ToolIndex([Tool("a__one", "apples", server="a"), Tool("two", "pears")])
    assert found("apples", index) == ["a__one"]
    assert found("pears", index) == ["two"]


def test_a_stuffed_description_does_not_win():
    stuffed = Tool("spam", "weather forecast " * 60 + "weather, forecast, temperature, city, rain")
    honest = Tool("get_weather_forecast", "Forecast for a city.")
    for order in ([stuffed, honest], [honest, stuffed]):
        assert found("weather forecast", ToolIndex([*order, *TOOLS]))[0] == "get_weather_forecast"


# Nothing fits


@pytest.mark.parametrize(
    "query",
    [
        "quantum entanglement",
        "book a flight to Lisbon",
        "zzz",
        "",
        " ",
        "\x00",
        "???",
        "a",
        "the",
        "\u732b",
        "please help me",
    ],
)
def test_nothing_is_found_when_nothing_fits(query: str):
    assert found(query) == []


def test_one_common_word_of_many_is_not_enough():
    assert found("schedule a dentist appointment and order new glasses online") == []


def test_an_empty_registry_finds_nothing():
    assert ToolIndex([]).search("anything") == []
    assert INDEX.search("create issue", limit=0) == []


# The same every time


@pytest.mark.requirement("N13")
def test_results_do_not_depend_on_the_run_or_on_earlier_queries():
    queries = ["create issue", "page", "crm", "search", "document nodes", "github", "isue"]
    expected = [INDEX.search(query) for query in queries]
    dice = random.Random(2)
    for _ in range(5):
        other = ToolIndex(TOOLS)
        order = list(enumerate(queries))
        dice.shuffle(order)
        for place, query in order:
            assert other.search(query) == expected[place]


def test_ties_keep_the_registry_s_order():
    twins = [Tool(f"twin_{letter}", "Paints it purple.") for letter in "dbac"]
    assert found("purple", ToolIndex(twins)) == ["twin_d", "twin_b", "twin_a", "twin_c"]


def test_of_two_tools_with_one_name_the_first_counts():
    index = ToolIndex([Tool("x", "apples"), Tool("x", "pears")])
    assert found("apples", index) == ["x"]
    assert found("pears", index) == []
    assert len(index.tools) == 1


def test_a_match_says_why():
    match = INDEX.search("create issue")[0]
    assert isinstance(match, Match)
    assert "create" in match.why
    assert match.score > 0


def test_the_protocol_of_rankers():
    class Mine:
        def rank(self, query: str, tools: Any, limit: int) -> list[Match]:
            return []

    assert isinstance(Mine(), Ranker)
    assert not isinstance(INDEX, Ranker)


# Any query, any tools, bounded time


@given(st.text(max_size=200))
def test_no_query_raises(query: str):
    assert len(INDEX.search(query)) <= 4


@settings(max_examples=50)
@given(
    st.lists(
        st.builds(
            Tool,
            name=st.text(min_size=1, max_size=30),
            description=st.text(max_size=60),
            parameters=st.dictionaries(
                st.sampled_from(["properties", "items", "enum"]),
                st.none() | st.lists(st.none() | st.text(max_size=5)) | st.dictionaries(st.text(max_size=5), st.none()),
            ),
        ),
        max_size=8,
    ),
    st.text(max_size=30),
)
def test_no_tool_raises_and_every_name_finds_its_tool(tools: list[Tool], query: str):
    index = ToolIndex(tools)
    index.search(query)
    for tool in tools:
        hits = found(tool.name, index, limit=20)
        assert tool.name in hits or not level(tool.name)


@pytest.mark.report("BR-234")
@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000, "create issue " * 10_000, "a_b_" * 30_000, "\u6cd5" * 100_000, "\u00e9" * 100_000,
        "\ud800" * 1_000, " " * 100_000, "_" * 100_000, "a." * 50_000, "(a+)+$", "[" * 100_000, "\x00\x1b[31m",
        '{"query": "create issue"}', "a,b," * 50_000, ".*" * 10_000, "\u0301" * 100_000,
    ],
)  # fmt: skip
def test_strange_queries_take_no_time(query: str):
    start = time.perf_counter()
    INDEX.search(query)
    assert time.perf_counter() - start < 0.5


def test_odd_schemas_are_read():
    deep: dict[str, Any] = {"description": "hidden treasure"}
    for _ in range(5_000):
        deep = {"properties": {"p": deep}}
    odd: list[Any] = [None, 3, [], {"properties": []}, {"properties": {"a": None}}, {"items": {"items": "x"}}, deep]
    index = ToolIndex([Tool(f"t{i}", "", {"properties": {"inner": schema}}) for i, schema in enumerate(odd)])
    assert len(found("inner", index, limit=10)) == len(odd)


def test_a_large_registry_is_quick():
    nouns = "issue page user message file invoice branch event ticket order deployment metric".split()
    verbs = "create delete list get update search send export".split()
    tools = [
        Tool(f"server{i // 20}__{verbs[i % 8]}_{nouns[i % 12]}_{i}", f"{verbs[i % 8]} the {nouns[i % 12]} number {i}.")
        for i in range(10_000)
    ]
    start = time.perf_counter()
    index = ToolIndex(tools)
    built = time.perf_counter() - start
    start = time.perf_counter()
    for i in range(100):
        index.search(f"{verbs[i % 8]} {nouns[i % 12]} {i}")
    assert built < 3.0, "ten times the budget: something is quadratic"
    assert (time.perf_counter() - start) / 100 < 0.05


# Servers


@pytest.mark.parametrize(
    ("names", "servers"),
    [
        (["mcp__slack__send", "mcp__slack__list"], {"mcp__slack__send": "slack", "mcp__slack__list": "slack"}),
        (["jira__a", "jira__b", "other__c"], {"jira__a": "jira", "jira__b": "jira"}),
        (["fs.read", "fs.write"], {"fs.read": "fs", "fs.write": "fs"}),
        (["k8s-get", "k8s-put"], {"k8s-get": "k8s", "k8s-put": "k8s"}),
        (["slack_send", "slack_list"], {"slack_send": "slack", "slack_list": "slack"}),
        (["get_user", "get_page", "Create_a", "Create_b"], {}),
        (["alone_one", "Read", "Bash"], {}),
        (["_a", "_b", "__x", "__y", "a_", "b_"], {}),
    ],
)
def test_servers_are_inferred_from_shared_prefixes(names: list[str], servers: dict[str, str]):
    tools = [Tool(name) for name in names]
    assert infer_servers(tools) == servers
    assert infer_servers(tools[::-1]) == servers


def test_a_stated_server_is_kept():
    tools = [Tool("slack_send", server="work"), Tool("slack_list"), Tool("slack_read")]
    assert infer_servers(tools) == {"slack_send": "work", "slack_list": "slack", "slack_read": "slack"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("issues", "issue"), ("queries", "query"), ("creating", "create"), ("created", "create"), ("running", "run"),
        ("branches", "branch"), ("merged", "merge"), ("searches", "search"), ("translation", "translate"),
    ],
)  # fmt: skip
def test_forms_of_a_word_are_one(first: str, second: str):
    assert stem(first) == stem(second)


@pytest.mark.parametrize(("first", "second"), [("news", "new"), ("notion", "not"), ("status", "stat"), ("bus", "bu")])
def test_different_words_stay_apart(first: str, second: str):
    assert stem(first) != stem(second)
