"""The simulated prompt caches follow each provider's rules, and usage says so in the provider's fields."""

from __future__ import annotations

from typing import Any

import pytest
from tests.emulator.support import (
    CLAUDE,
    chat_client,
    chat_tool,
    claude_client,
    deferred,
    reference,
    result,
    tool,
    turns,
    use,
    user,
)

from loadpoint.emulator import Emulator, Exchange, Move, Script
from loadpoint.emulator._cache import Part, PromptCache
from loadpoint.emulator._rules import book

MARK = {"cache_control": {"type": "ephemeral"}}
FILLER = "The quick brown fox jumps over the lazy dog near the old river bank. "
LONG = FILLER * 200
SHORT = FILLER * 3


def chat(server: Emulator, *messages: Any, **extra: Any) -> tuple[Any, Exchange]:
    request = {"model": "gpt-5.4", "messages": list(messages), **extra}
    return chat_client(server).chat.completions.create(**request).usage, server.exchanges[-1]


def claude(server: Emulator, *messages: Any, **extra: Any) -> tuple[Any, Exchange]:
    request = {"model": CLAUDE, "max_tokens": 99, "messages": list(messages), **extra}
    return claude_client(server).messages.create(**request).usage, server.exchanges[-1]


def block(text: str, **extra: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **extra}


@pytest.fixture
def server() -> Emulator:
    return Emulator(Script.sequence([], then=Move(text="ok")), rules="all")


def test_automatic_prefixes_are_read_in_blocks(server: Emulator):
    first, _ = chat(server, user(LONG))
    assert first.prompt_tokens_details.cached_tokens == 0
    history = [user(LONG), {"role": "assistant", "content": "ok"}, user("and?")]
    second, exchange = chat(server, *history)
    assert second.prompt_tokens_details.cached_tokens % 128 == 0
    assert exchange.common_tokens - 128 < second.prompt_tokens_details.cached_tokens <= exchange.common_tokens
    assert second.prompt_tokens_details.cached_tokens == exchange.cached_tokens > 1024
    assert exchange.written_tokens == 0


def test_a_change_inside_a_message_keeps_what_stands_before_it(server: Emulator):
    chat(server, user(LONG + "a"))
    _, exchange = chat(server, user(LONG[: len(LONG) // 2] + "other" + LONG))
    assert 1024 < exchange.cached_tokens < exchange.input_tokens // 2 + 200


def test_tools_stand_first_so_adding_one_loses_everything_after(server: Emulator):
    tools = [chat_tool("ping"), chat_tool("pong")]
    chat(server, user(LONG), tools=tools[:1])
    _, grown = chat(server, user(LONG), tools=tools)
    assert grown.cached_tokens == 0
    _, same = chat(server, user(LONG), tools=tools)
    assert same.cached_tokens > 1024
    _, reordered = chat(server, user(LONG), tools=tools[::-1])
    assert reordered.cached_tokens == 0
    _, other = chat(server, user(LONG), tools=tools, parallel_tool_calls=False)
    assert other.cached_tokens == 0
    _, choice = chat(server, user(LONG), tools=tools, tool_choice="none")
    assert choice.cached_tokens == same.cached_tokens


def test_short_prompts_other_keys_and_other_models_share_nothing(server: Emulator):
    chat(server, user(SHORT))
    assert chat(server, user(SHORT))[1].cached_tokens == 0
    chat(server, user(LONG))
    assert chat(server, user(LONG), prompt_cache_key="mine")[1].cached_tokens == 0
    assert chat(server, user(LONG), model="gpt-5.4-mini")[1].cached_tokens == 0
    assert chat(server, user(LONG))[1].cached_tokens > 1024
    server.forget_caches()
    assert chat(server, user(LONG))[1].cached_tokens == 0


def test_equal_content_in_another_shape_is_the_same_prefix(server: Emulator):
    chat(server, user(LONG))
    parts = {"content": [block(LONG)], "role": "user"}
    assert chat(server, parts)[1].cached_tokens > 1024


def test_newer_models_write_at_message_ends(server: Emulator):
    first, _ = chat(server, user(LONG), model="gpt-6-sol")
    assert first.prompt_tokens_details.cache_write_tokens == first.prompt_tokens
    history = [user(LONG), {"role": "assistant", "content": "ok"}, user("and?")]
    second, exchange = chat(server, *history, model="gpt-6-sol")
    assert second.prompt_tokens_details.cached_tokens == first.prompt_tokens
    assert second.prompt_tokens_details.cache_write_tokens == second.prompt_tokens - first.prompt_tokens
    assert exchange.uncached_tokens == 0
    edited, _ = chat(server, user(LONG + "!"), model="gpt-6-sol")
    assert edited.prompt_tokens_details.cached_tokens == 0
    explicit, _ = chat(server, *history, model="gpt-6-sol", prompt_cache_options={"mode": "explicit"})
    assert explicit.prompt_tokens_details.cached_tokens == 0


def test_without_a_marker_nothing_is_cached(server: Emulator):
    claude(server, user(LONG))
    usage, exchange = claude(server, user(LONG))
    assert (usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (0, 0)
    assert usage.input_tokens == exchange.input_tokens == exchange.common_tokens


def test_markers_write_and_later_ones_read(server: Emulator):
    first, _ = claude(server, user("hi"), system=[block(LONG, **MARK)])
    assert first.cache_creation_input_tokens > 1024
    assert first.cache_creation.ephemeral_5m_input_tokens == first.cache_creation_input_tokens
    second, exchange = claude(server, *turns("hi", "ok", [block("and?", **MARK)]), system=[block(LONG, **MARK)])
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens == exchange.cached_tokens
    assert second.cache_creation_input_tokens == exchange.written_tokens > 0
    assert second.input_tokens == 0
    hour = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    third, _ = claude(server, user("hi"), system=[block("Else. " + LONG, **hour)])
    assert third.cache_creation.ephemeral_1h_input_tokens == third.cache_creation_input_tokens > 1024


def test_the_marker_on_the_request_stands_on_its_last_block(server: Emulator):
    first, _ = claude(server, user(LONG), cache_control={"type": "ephemeral"})
    assert first.input_tokens == 0
    second, _ = claude(server, *turns(LONG, "ok", "and?"), cache_control={"type": "ephemeral"})
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens


def test_below_the_models_minimum_nothing_is_cached_and_nobody_says_so(server: Emulator):
    text = FILLER * 120  # between 1,024 and 4,096 tokens however they are counted
    for model, cached in [("claude-opus-5", True), ("claude-sonnet-4-6", True), ("claude-haiku-4-5", False)]:
        usage, _ = claude(server, user([block(text, **MARK)]), model=model)
        assert (usage.cache_creation_input_tokens > 0) is cached, model


def test_reads_look_back_twenty_positions(server: Emulator):
    def spread(count: int) -> list[Any]:
        blocks = [block(LONG, **MARK), *(block(f"b{at}") for at in range(count - 2)), block("end", **MARK)]
        return [{"role": "user", "content": [dict(item) for item in blocks]}]

    claude(server, user([block(LONG, **MARK)]))
    near = spread(20)
    del near[0]["content"][0]["cache_control"]
    assert claude(server, *near)[0].cache_read_input_tokens > 0
    far = spread(22)
    del far[0]["content"][0]["cache_control"]
    assert claude(server, *far)[0].cache_read_input_tokens == 0


def test_a_run_of_results_is_one_position(server: Emulator):
    calls = [use(f"toolu_{at}") for at in range(30)]
    answers = [result(f"toolu_{at}") for at in range(30)]
    claude(server, user([block(LONG, **MARK)]), tools=[tool("ping")])
    answers[-1] |= MARK
    usage, _ = claude(server, *turns(LONG, calls, answers), tools=[tool("ping")])
    assert usage.cache_read_input_tokens > 1024


def test_what_voids_what(server: Emulator):
    base: dict[str, Any] = {"tools": [tool("ping", LONG, **MARK)], "system": [block(LONG, **MARK)]}
    marked = user([block(LONG, **MARK)])
    first, _ = claude(server, marked, **base)
    everything = first.cache_creation_input_tokens
    assert claude(server, marked, **base)[0].cache_read_input_tokens == everything
    choice = claude(server, marked, **base, tool_choice={"type": "none"})[0].cache_read_input_tokens
    assert 0 < choice < everything
    thinking = claude(server, marked, **base, thinking={"type": "adaptive"})[0].cache_read_input_tokens
    assert thinking == choice
    system = claude(server, marked, **{**base, "system": [block("Other. " + LONG, **MARK)]})[0]
    assert 0 < system.cache_read_input_tokens < choice
    tools = claude(server, marked, **{**base, "tools": [tool("pong"), *base["tools"]]})[0]
    assert tools.cache_read_input_tokens == 0


def test_deferred_definitions_are_outside_the_prefix_until_they_are_loaded(server: Emulator):
    def send(*messages: Any, late: str) -> tuple[Any, Exchange]:
        tools = [tool("ping", LONG, **MARK), deferred("late", late), deferred("never", LONG)]
        return claude(server, *messages, tools=tools)

    first, plain = send(user("hi"), late=LONG)
    assert plain.tokens.tools < 2 * first.cache_creation_input_tokens
    edited, _ = send(user("hi"), late=LONG + "edited")
    assert edited.cache_read_input_tokens == first.cache_creation_input_tokens
    history = turns("hi", [use()], [result(content=[reference("late")], **MARK)])
    loaded, exchange = send(*history, late=LONG)
    assert exchange.loaded == ("late",)
    assert exchange.tokens.tools == plain.tokens.tools
    assert exchange.tokens.messages > 1024
    assert loaded.cache_read_input_tokens == first.cache_creation_input_tokens
    again, _ = send(*history, late=LONG)
    assert again.cache_read_input_tokens == loaded.cache_read_input_tokens + loaded.cache_creation_input_tokens
    changed, _ = send(*history, late=LONG + "edited")
    assert changed.cache_read_input_tokens == first.cache_creation_input_tokens


def test_the_bill_adds_up_whatever_the_cache_does():
    cache = PromptCache()
    rows = book().cache
    prompts = [[Part("tools", LONG), Part("messages", text, "5m", eligible=True)] for text in (LONG, SHORT, LONG)]
    for row in rows:
        for parts in prompts:
            bill = cache.bill(row["models"][0], row, parts)
            assert bill.total == sum(part.tokens for part in parts)
            assert bill.cached + bill.writes + bill.uncached == bill.total
            assert bill.cached <= bill.common <= bill.total
    assert PromptCache().bill("empty", rows[0], []).total == 0
