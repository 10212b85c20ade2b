"""Troubles that people reported of litellm itself, where a wrapped call meets the same code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, search, tools
from tests.litellm.talking import ROUTES, SEARCHES, Route, dumped, talking

from loadpoint.emulator import Move


@pytest.mark.report("BR-027")
def test_on_the_way_to_chat_the_loader_and_the_callers_options_arrive(litellm: Any):
    route = Route(RESPONSES, "hosted_vllm/some-model", "/v1", "vllm", "resend")
    bridged = Route(RESPONSES, "deepseek/deepseek-chat", "/v1", "api.deepseek.com", "resend")
    for each, path in ((route, "/v1/responses"), (bridged, "/v1/chat/completions")):
        with talking(litellm, each, *SEARCHES[:2]) as program:
            program.user("please create an invoice")
            reply = program.call(
                temperature=0.25, parallel_tool_calls=True, allowed_openai_params=["parallel_tool_calls"]
            )
            assert program.echo(dumped(RESPONSES, reply)) == [("invoice_create", {"id": 7})]
            assert program.reports[-1].strategy == "resend"
            first, second = (exchange.request or {} for exchange in program.server.exchanges)
            assert program.server.exchanges[0].path == path
            assert program.names_sent(0) == ["ToolSearch"]
            assert program.names_sent(1)[:2] == ["ToolSearch", "invoice_create"]
            assert not any(name.endswith("*") for name in program.names_sent(1)), "a mark that nobody takes"
            for sent in (first, second):
                assert (sent["temperature"], sent["parallel_tool_calls"]) == (0.25, True)


@pytest.mark.report("BR-024")
@pytest.mark.anyio
async def test_a_search_result_does_not_vanish_on_the_way_to_responses(litellm: Any):
    with talking(litellm, Route(MESSAGES, "openai/gpt-5.4", "/v1", None, "resend"), *SEARCHES[:2]) as program:
        program.user("please create an invoice")
        reply = await program.acall()
        assert program.echo(reply) == [("invoice_create", {"id": 7})]
        items = (program.server.exchanges[1].request or {})["input"]
        calls = [item["call_id"] for item in items if item["type"] == "function_call"]
        outputs = [item for item in items if item["type"] == "function_call_output"]
        assert [item["call_id"] for item in outputs] == calls
        assert "invoice_create" in json.dumps(outputs[0]["output"])


@pytest.mark.report("BR-022")
def test_block_style_history_is_judged_by_litellm_as_it_is_without_us(litellm: Any):
    route = ROUTES["claude completion"]
    history: list[Any] = [
        {"role": "user", "content": "please"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_01", "name": NAMES[0], "input": {"id": 1}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "made"}]},
    ]
    said: list[str] = []
    for wrapped in (False, True):
        with talking(litellm, route, wrapped=wrapped) as program:
            program.history = list(history)
            with pytest.raises(Exception, match="Invalid user message") as refused:  # litellm's own word
                program.call(max_tokens=50)
            said.append(str(refused.value).partition("\n")[0])
            assert program.server.exchanges == []
            assert program.history == history
    assert said[0] == said[1]


@pytest.mark.report("BR-039")
def test_a_marker_on_a_tool_that_waits_stands_on_one_that_does_not(litellm: Any):
    with talking(litellm, ROUTES["claude completion"], *SEARCHES[:2]) as program:
        program.user("please create an invoice")
        given = program.arguments(max_tokens=50)
        given["tools"][-1]["cache_control"] = {"type": "ephemeral"}
        program.client.completion(**given)
        for exchange in program.server.exchanges:
            listed = (exchange.request or {})["tools"]
            marked = [tool["name"] for tool in listed if "cache_control" in tool]
            assert marked == ["ToolSearch"]
            assert json.dumps(exchange.request).count('"cache_control"') == 1


@pytest.mark.report("BR-247")
def test_retries_and_fallbacks_change_nothing_of_the_callers(litellm: Any):
    moves = (SEARCHES[0], Move(status=500), Move(status=500), SEARCHES[1])
    with talking(litellm, ROUTES["openai completion"], *moves) as program:
        program.user("please create an invoice")
        given = program.arguments(num_retries=3)
        before = json.dumps(given, default=str)
        reply = program.client.completion(**given)
        assert json.dumps(given, default=str) == before
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        later = [exchange.request for exchange in program.server.exchanges[1:]]
        assert later[0] == later[1] == later[2], "a retry sends what the first try has sent"


@pytest.mark.report("BR-252", "BR-256", "BR-258")
@pytest.mark.parametrize("name", ["openai completion", "claude completion"])
def test_streamed_arguments_of_a_call_without_arguments_are_an_empty_object(litellm: Any, name: str):
    route = ROUTES[name]
    moves = (Move(calls=[search("ping the server")]), Move(calls=[("server_ping", {})]))
    with talking(litellm, route, *moves) as program:
        ping = {
            "name": "server_ping",
            "description": "Ping the server",
            "parameters": {"type": "object", "properties": {}},
        }
        program.user("ping it")
        given = program.arguments(stream=True, max_tokens=60)
        given["tools"] = [*tools(CHAT), {"type": "function", "function": ping}]
        chunks = list(program.client.completion(**given))
        reply = dumped(CHAT, litellm.stream_chunk_builder(chunks))
        assert program.echo(reply) == [("server_ping", {})]
