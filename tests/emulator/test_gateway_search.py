"""The searches that gateways run themselves, on the Responses and Messages APIs: where they are taken, and how."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loadpoint.emulator import Emulator, Move

RESPONSES, MESSAGES = "/responses", "/v1/messages"
ROUTER, ORQ = "https://openrouter.ai/api/v1", "https://my.orq.ai/v3/router"
BASES = {RESPONSES: ROUTER, MESSAGES: "https://openrouter.ai/api"}
SEARCH = {"type": "openrouter:tool_search"}
Json = dict[str, Any]


def tool(path: str, name: str, **more: Any) -> Json:
    schema: Json = {"type": "object", "properties": {}}
    if path == MESSAGES:
        return {"name": name, "description": f"Does {name}", "input_schema": schema, **more}
    return {"type": "function", "name": name, "description": f"Does {name}", "parameters": schema, **more}


def sent(server: Emulator, base: str, path: str, tools: list[Json], **more: Any) -> tuple[int, Json]:
    key = "input" if path == RESPONSES else "messages"
    body: Json = {"model": "a-model", key: [{"role": "user", "content": "hi"}], "tools": tools, **more}
    if path == MESSAGES:
        body["max_tokens"] = 9
    headers = {"authorization": "Bearer k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    answer = server.handle("POST", base + path, headers, json.dumps(body).encode())
    return answer.status, json.loads(b"".join(answer.chunks))


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_a_gateways_search_is_taken_at_its_own_host_only(path: str) -> None:
    tools = [SEARCH, tool(path, "ping"), tool(path, "pong", defer_loading=True)]
    assert sent(Emulator([Move(text="hi")]), BASES[path], path, tools)[0] == 200
    other = {RESPONSES: "https://api.openai.com/v1", MESSAGES: "https://api.anthropic.com"}[path]
    status, error = sent(Emulator([Move(text="hi")]), other, path, tools)
    assert status == 400
    assert SEARCH["type"] in json.dumps(error)


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_one_other_tool_has_to_stay(path: str) -> None:
    hidden = tool(path, "pong", defer_loading=True)
    status, error = sent(Emulator([Move(text="hi")]), BASES[path], path, [SEARCH, hidden])
    assert (status, "must not be deferred" in json.dumps(error)) == (400, True)
    assert sent(Emulator([Move(text="hi")]), BASES[path], path, [SEARCH, tool(path, "ping"), hidden])[0] == 200


def test_another_gateway_takes_a_list_of_deferred_tools() -> None:
    hidden = tool(RESPONSES, "pong", defer_loading=True)
    status, _ = sent(Emulator([Move(text="hi")]), ORQ, RESPONSES, [{"type": "orq:tool_search"}, hidden])
    assert status == 200


@pytest.mark.parametrize("path", [RESPONSES, MESSAGES])
def test_a_search_is_billed_and_what_is_deferred_is_not(path: str) -> None:
    long = tool(path, "pong", defer_loading=True)
    long["description"] = "Plays table tennis. " * 200
    tools = [SEARCH, tool(path, "ping"), long]
    server = Emulator([Move(text="hi"), Move(calls=[(SEARCH["type"], {"query": "tennis"}), ("pong", {})])])
    (_, plain), (_, searched) = (sent(server, BASES[path], path, tools) for _ in range(2))
    assert plain["usage"]["input_tokens"] < 200
    assert searched["usage"]["input_tokens"] > 800
    made = searched["output" if path == RESPONSES else "content"]
    kinds = ["openrouter:tool_search", "function_call"] if path == RESPONSES else ["tool_use"]
    assert [item["type"] for item in made] == kinds
    assert "namespace" not in made[-1]


def test_what_a_search_leaves_may_be_sent_back_to_it() -> None:
    tools = [SEARCH, tool(RESPONSES, "ping")]
    left = {"type": SEARCH["type"], "id": "ts_1", "query": "x", "status": "completed"}
    said: list[Json] = [{"role": "user", "content": "hi"}, left]
    assert sent(Emulator([Move(text="hi")]), ROUTER, RESPONSES, tools, input=said)[0] == 200
    ours = [tool(RESPONSES, "ping")]
    assert sent(Emulator([Move(text="hi")]), "https://api.openai.com/v1", RESPONSES, ours, input=said)[0] == 400
