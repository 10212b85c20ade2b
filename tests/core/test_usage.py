"""Usage: the sum over rounds is what is billed, the breakdown is the API's own form, neutral figures are all input."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint._usage import Usage, UsageFields, add, read, with_iterations

CHAT = UsageFields(
    input="prompt_tokens",
    output="completion_tokens",
    cached="prompt_tokens_details.cached_tokens",
    written="prompt_tokens_details.cache_write_tokens",
)
SPLIT = UsageFields(
    input="input_tokens",
    output="output_tokens",
    cached="cache_read_input_tokens",
    written="cache_creation_input_tokens",
    input_is_total=False,
)


def test_nested_counters_are_summed_and_text_is_the_last():
    first = {
        "input_tokens": 10,
        "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
        "service_tier": "standard",
        "flag": True,
    }
    second = {
        "input_tokens": 5,
        "cache_creation": {"ephemeral_5m_input_tokens": 4},
        "service_tier": "priority",
        "flag": True,
        "cost": 0.5,
    }
    assert add([first, second]) == {
        "input_tokens": 15,
        "cache_creation": {"ephemeral_5m_input_tokens": 7, "ephemeral_1h_input_tokens": 0},
        "service_tier": "priority",
        "flag": True,
        "cost": 0.5,
    }


@pytest.mark.parametrize(
    ("usages", "total"),
    [
        ([], {}),
        ([{"a": None}], {"a": None}),
        ([{"a": None}, {"a": None}], {"a": None}),
        ([{"a": None}, {"a": 2}], {"a": 2}),
        ([{"a": 2}, {"a": None}], {"a": 2}),
        ([{"a": 2}, {}], {"a": 2}),
        ([{"d": None}, {"d": {"x": 1}}], {"d": {"x": 1}}),
        ([{"d": {"x": 1}}, {"d": None}], {"d": {"x": 1}}),
        ([{"d": {"x": 1}}, {"d": {"y": 2}}], {"d": {"x": 1, "y": 2}}),
        ([{"a": "text"}, {"a": 2}], {"a": 2}),
        ([{"a": 2}, {"a": "text"}], {"a": "text"}),
        ([{"a": [1]}, {"a": [2]}], {"a": [2]}),
        ([{"a": True}, {"a": False}], {"a": False}),
        ([{"a": {"x": 1}}, {"a": 3}], {"a": 3}),
        ([{"a": 3}, {"a": {"x": 1}}], {"a": {"x": 1}}),
    ],
)
def test_sums(usages, total):
    assert add(usages) == total


counters = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 10**9) | st.none(), max_size=4)
usages = st.dictionaries(st.sampled_from("efgh"), st.integers(0, 10**9) | st.none() | counters, max_size=4)


@given(st.lists(usages, max_size=4))
def test_the_inputs_are_not_touched_and_one_usage_is_itself(given_usages):
    before = copy.deepcopy(given_usages)
    add(given_usages)
    assert given_usages == before
    for usage in given_usages:
        total = add([usage])
        assert total == usage
        assert list(total) == list(usage)


@given(st.lists(counters, min_size=1, max_size=5))
def test_every_counter_is_the_sum_of_its_rounds(rounds):
    total = add(rounds)
    for key in total:
        values = [one[key] for one in rounds if one.get(key) is not None]
        assert total[key] == (sum(values) if values else None)


def test_iterations_are_one_entry_per_pass():
    first = {
        "input_tokens": 7,
        "output_tokens": 2,
        "cache_read_input_tokens": None,
        "service_tier": "standard",
        "cache_creation": {"ephemeral_5m_input_tokens": 1},
        "server_tool_use": {"web_search_requests": 1},
    }
    passes = [{"type": "message", "input_tokens": 1, "output_tokens": 1}, {"type": "compaction", "input_tokens": 2}]
    second = {"input_tokens": 3, "output_tokens": 4, "iterations": passes}
    total = add([first, second])
    merged = with_iterations(total, [first, second])
    assert merged["iterations"] == [
        {"type": "message", "input_tokens": 7, "output_tokens": 2, "cache_read_input_tokens": 0,
         "cache_creation": {"ephemeral_5m_input_tokens": 1}},
        *passes,
    ]  # fmt: skip
    assert merged["input_tokens"] == 10
    assert "iterations" not in add([first])
    assert total["iterations"] is passes


def test_all_input_is_input_in_both_conventions():
    chat = {
        "prompt_tokens": 12000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 8000, "cache_write_tokens": 3000},
    }
    split = {
        "input_tokens": 1000,
        "output_tokens": 50,
        "cache_read_input_tokens": 8000,
        "cache_creation_input_tokens": 3000,
    }
    expected = Usage(input_tokens=12000, cached=8000, written=3000, output=50)
    assert read(chat, CHAT) == expected
    assert read(split, SPLIT) == expected
    assert expected.uncached == 1000


def test_what_is_absent_null_or_malformed_counts_as_nothing():
    assert read({}, CHAT) == Usage()
    assert read({"prompt_tokens": None, "prompt_tokens_details": None}, CHAT) == Usage()
    assert read({"prompt_tokens": "many", "prompt_tokens_details": [1], "completion_tokens": True}, CHAT) == Usage()
    assert read({"prompt_tokens": 5}, UsageFields("prompt_tokens", "completion_tokens")) == Usage(5)
    assert Usage(input_tokens=1, cached=5).uncached == 0


def test_usages_add_up():
    assert Usage(1, 2, 3, 4) + Usage(10, 20, 30, 40) == Usage(11, 22, 33, 44)
