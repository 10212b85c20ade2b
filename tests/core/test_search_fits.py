"""When the local search is silent, what it says then, and what bad queries get."""

from __future__ import annotations

from typing import Any

import pytest

from loadpoint import Tool, ToolIndex
from loadpoint._loader import LoaderQuery, answer

OFFICE = [
    Tool("trello__add_card", "Add a card to a list of a board.", server="trello"),
    Tool("trello__create_checklist", "Create a checklist on a card.", server="trello"),
    Tool("billing__create_invoice", "Create an invoice for a customer.", server="billing"),
    Tool("billing__list_invoices", "List invoices.", server="billing"),
    Tool("math__calculate", "Calculate the value of an expression.", server="math"),
    Tool("files__delete_project", "Delete a project.", server="files"),
    Tool("files__delete_project_label", "Delete a label of a project.", server="files"),
]
INDEX = ToolIndex(OFFICE)


def found(query: Any, limit: int = 4, index: ToolIndex = INDEX) -> list[str]:
    return [match.name for match in index.search(query, limit)]


@pytest.mark.parametrize("query", ["pubmed articles", "jenkins start build", "list pagerduty shifts"])
def test_the_name_of_a_product_that_no_tool_knows_speaks_against_all(query: str):
    assert found(query) == []


def test_the_same_name_in_a_story_is_a_value_to_fill_in():
    assert (
        found("please create an invoice for our customer Kowalczyk over the two trips")[0] == "billing__create_invoice"
    )


def test_numbers_are_values_and_speak_against_nothing():
    assert found("calculate 25*3+7/3") == ["math__calculate"]


def test_of_two_names_the_one_without_more_than_was_asked_comes_first():
    assert found("delete the project")[0] == "files__delete_project"
    assert found("delete the label of a project")[0] == "files__delete_project_label"
    turned = ToolIndex(OFFICE[::-1])
    assert found("delete the project", index=turned)[0] == "files__delete_project"


@pytest.mark.parametrize(
    "query", ["create an invoice", "a card for the board", "pubmed articles", "remove the project"]
)
def test_how_many_are_asked_for_changes_none_of_the_first(query: str):
    many = [Tool(f"s{at}__create_thing_{at}", f"Create the thing number {at} for a board.") for at in range(80)]
    index = ToolIndex([*OFFICE, *many])
    longest = found(query, 100, index)
    for limit in (1, 2, 5, 20, 40, 64):
        assert found(query, limit, index) == longest[:limit]


def test_among_many_tools_more_must_fit_since_some_fit_by_chance():
    def needed(count: int) -> float:
        return ToolIndex([Tool(f"job_{at}") for at in range(count)])._enough()

    assert needed(1) == needed(100) < needed(400) < needed(2_000)


# Bad input


BAD = {
    "empty": "",
    "white space": " \t\n\u00a0\u3000",
    "100 KB": "invoice " * 12_800,
    "100 KB without a space": "invoice" * 14_600,
    "stop words": "please could you help me with this and that",
    "control characters": "create\x00an\x1b[31m\x07invoice\x7f",
    "regex": r"^(create|add)_.*invoice\b",
    "JSON": '{"query": "create an invoice", "max_results": 3}',
    "Spanish": "crear una factura para el cliente",
    "German": "eine Rechnung f\u00fcr den Kunden schreiben",
    "Japanese": "\u8acb\u6c42\u66f8\u3092\u4f5c\u6210\u3059\u308b",
    "Arabic": "\u0623\u0646\u0634\u0626 \u0641\u0627\u062a\u0648\u0631\u0629",
    "surrogates": "\ud800invoice\udfff",
    "no text": None,
    "a number": 7,
    "a list": ["invoice"],
}


@pytest.mark.parametrize("query", BAD.values(), ids=list(BAD))
def test_bad_input_gets_at_most_the_limit_and_never_an_error(query: Any):
    assert len(found(query, 2)) <= 2
    assert set(found(query)) <= {tool.name for tool in OFFICE}
    assert set(INDEX.closest_servers(query)) <= {"trello", "billing", "math", "files"}


@pytest.mark.parametrize("kind", ["100 KB", "control characters", "regex", "JSON"])
def test_bad_input_with_usable_words_finds_their_tool(kind: str):
    assert "billing__create_invoice" in found(BAD[kind])


@pytest.mark.parametrize("kind", ["empty", "white space", "stop words", "Japanese", "Arabic", "no text", "a number"])
def test_bad_input_without_usable_words_finds_nothing(kind: str):
    assert found(BAD[kind]) == []


# What a model is told then


def told(query: str, allowed: list[Tool]) -> str:
    return answer(
        LoaderQuery(query, 5),
        INDEX,
        deferred=allowed,
        loaded=(),
        resident=(),
        load_at_most=4,
        load_tokens=10_000,
        size_of=lambda name: 100,
    ).as_text()


@pytest.mark.report("BR-103")
def test_a_no_match_answer_names_the_closest_servers_and_what_to_try():
    text = told("customer debts pubmed", OFFICE)
    assert "Closest servers: billing" in text
    assert "other words for the action and its object" in text


def test_a_no_match_answer_names_no_server_that_the_request_may_not_use():
    text = told("customer debts pubmed", [tool for tool in OFFICE if tool.server != "billing"])
    assert "No tool fits" in text
    assert "billing" not in text
