"""The prompt cache of the Responses API: blocks on older models, message ends from GPT-5.6, tools where they load."""

from __future__ import annotations

from typing import Any

import pytest
from tests.emulator.support import (
    Json,
    added,
    chat_client,
    client_search,
    function,
    given,
    late,
    made,
    namespace,
    searched,
    user,
)

from loadpoint.emulator import Emulator, Exchange, Move, Script

FILLER = "The quick brown fox jumps over the lazy dog near the old river bank. "
LONG = FILLER * 200
OLD, BETWEEN, NEW = "gpt-5.4", "gpt-5.5", "gpt-6-sol"
SAID: Json = {"role": "assistant", "content": "ok"}
HOSTED: Json = {"type": "tool_search"}


def send(server: Emulator, *items: Any, model: str = NEW, **extra: Any) -> tuple[Any, Exchange]:
    usage = chat_client(server).responses.create(model=model, input=list(items), **extra).usage
    assert usage.input_tokens_details.cached_tokens == server.exchanges[-1].cached_tokens
    assert usage.input_tokens_details.cache_write_tokens == server.exchanges[-1].written_tokens
    return usage, server.exchanges[-1]


@pytest.fixture
def server() -> Emulator:
    return Emulator(Script.sequence([], then=Move(text="ok")), rules="all")


def test_newer_models_write_at_message_ends(server: Emulator):
    first, exchange = send(server, user(LONG))
    assert exchange.written_tokens == exchange.input_tokens
    details = first.input_tokens_details.cache_write_tokens_details
    assert (details.ttl_30m_tokens, details.ttl_12h_tokens) == (exchange.written_tokens, 0)
    second, after = send(server, user(LONG), SAID, user("and?"))
    assert after.cached_tokens == exchange.input_tokens
    assert after.uncached_tokens == 0
    assert second.input_tokens == after.cached_tokens + after.written_tokens
    assert send(server, user(LONG + "!"))[1].cached_tokens == 0


def test_a_group_of_outputs_is_one_boundary_and_other_items_are_none(server: Emulator):
    head = [user(LONG), made(call_id="a"), made(call_id="b"), given("a")]
    _, first = send(server, *head, given("b"))
    assert first.uncached_tokens == 0
    _, second = send(server, *head, given("b"), {"role": "developer", "content": "Late."})
    assert second.cached_tokens == first.input_tokens
    assert second.uncached_tokens > 0
    _, third = send(server, *head, given("b"), *searched(function("x")))
    assert third.written_tokens == 0
    assert third.uncached_tokens > 0


def test_instructions_and_the_initial_developer_block_are_boundaries(server: Emulator):
    _, first = send(server, {"role": "developer", "content": LONG}, {"role": "developer", "content": "Be brief."})
    assert first.uncached_tokens == 0
    assert first.tokens.messages == 0
    assert send(server, user("hi"), instructions=LONG)[1].tokens.system > 1024


def test_older_models_read_in_blocks_and_write_for_nothing(server: Emulator):
    for model, block in ((OLD, 128), (BETWEEN, 2048)):
        _, first = send(server, user(LONG), model=model)
        assert (first.cached_tokens, first.written_tokens) == (0, 0)
        usage, second = send(server, user(LONG), SAID, user("and?"), model=model)
        assert usage.input_tokens_details.cache_write_tokens_details is None
        assert second.cached_tokens % block == 0
        assert second.common_tokens - block < second.cached_tokens <= second.common_tokens


def test_options(server: Emulator):
    options: Json = {"mode": "explicit"}
    _, none = send(server, user(LONG), prompt_cache_options=options)
    assert (none.cached_tokens, none.written_tokens) == (0, 0)
    marked = user([{"type": "input_text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}])
    usage, explicit = send(server, marked, SAID, user("tail"), prompt_cache_options={**options, "ttl": "12h"})
    assert explicit.uncached_tokens > 0
    assert usage.input_tokens_details.cache_write_tokens_details.ttl_12h_tokens == explicit.written_tokens > 1024
    assert send(server, marked, SAID, user("tail"), prompt_cache_options=options)[1].cached_tokens > 1024
    usage, _ = send(server, user("Other. " + LONG), prompt_cache_options={"ttl": "12h"})
    assert usage.input_tokens_details.cache_write_tokens_details.ttl_12h_tokens > 1024
    assert send(server, user(LONG), prompt_cache_key="mine")[1].cached_tokens == 0


@pytest.mark.parametrize("model", [OLD, NEW])
def test_a_load_keeps_the_prefix_and_an_entry_in_the_list_voids_it(server: Emulator, model: str):
    tools: list[Json] = [client_search()]
    _, before = send(server, user(LONG), tools=tools, model=model)
    loaded = [*searched(late("late", LONG)), made("late", namespace="late"), given()]
    _, after = send(server, user(LONG), *loaded, tools=tools, model=model)
    assert after.cached_tokens > before.input_tokens - 128
    assert after.tokens.tools == before.tokens.tools
    assert after.common_tokens == before.input_tokens
    _, pushed = send(server, user(LONG), *loaded, added(function("more")), user("and?"), tools=tools, model=model)
    assert pushed.cached_tokens > after.input_tokens - 128
    _, listed = send(server, user(LONG), tools=[*tools, function("more")], model=model)
    assert listed.cached_tokens == 0


def test_deferred_schemas_are_outside_the_context(server: Emulator):
    schema: Json = {"properties": {"text": {"type": "string", "description": LONG}}}
    flat = send(server, user("hi"), tools=[late("late", "Short", **schema), HOSTED])[1].tokens.tools
    grouped = send(server, user("hi"), tools=[namespace("crm", late("late", LONG)), HOSTED])[1].tokens.tools
    eager = send(server, user("hi"), tools=[function("late", "Short", **schema)])[1].tokens.tools
    mixed = send(server, user("hi"), tools=[namespace("crm", late("a", LONG), function("b", LONG)), HOSTED])[1]
    assert flat < 60
    assert grouped < 60
    assert eager > 1024
    assert 1024 < mixed.tokens.tools < 2 * eager
    _, first = send(server, user(LONG), tools=[late("late", "Short", **schema), HOSTED])
    _, edited = send(server, user(LONG), tools=[late("late", "Short"), HOSTED])
    assert edited.cached_tokens == first.input_tokens
    assert send(server, user(LONG), tools=[late("late", "Shorter"), HOSTED])[1].cached_tokens == 0


def test_two_passes_read_what_the_first_wrote():
    search = Move(calls=[("tool_search", {"paths": ["late"]}), ("late", {})])
    server = Emulator(Script.sequence([search], then=Move(text="ok")), rules="all")
    usage, exchange = send(server, user(LONG), tools=[late("late", "Short"), HOSTED])
    assert exchange.written_tokens == exchange.tokens.total
    assert exchange.cached_tokens == exchange.tokens.total
    assert usage.input_tokens > 2 * exchange.tokens.total


def test_equal_content_in_another_shape_is_the_same_prefix(server: Emulator):
    _, first = send(server, user(LONG))
    typed: Json = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        **user([{"type": "input_text", "text": LONG}]),
    }
    assert send(server, typed)[1].cached_tokens == first.input_tokens
