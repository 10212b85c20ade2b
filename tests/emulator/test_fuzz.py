"""Whatever a client sends is answered: never an exception, always a status and a body that is JSON or events."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loadpoint.emulator import Emulator

WORDS = (
    "role content tool_calls id type function name arguments tool_call_id text tool_use tool_result tool_use_id input "
    "tool_reference tool_name user assistant system tool developer is_error cache_control ephemeral ttl defer_loading "
    "input_schema parameters properties object description strict thinking signature server_tool_use thread continue "
    "create previous_message_id tool_addition tool_removal tool_definition definition tool_choice allowed_tools mode "
    "auto any none required tool_search_tool_result tool_references srvtoolu_1 toolu_1 call_1 ping ToolSearch "
    "custom_id function_call function_call_output custom_tool_call custom call_id output namespace tool_search "
    "tool_search_call tool_search_output additional_tools reasoning summary encrypted_content item_reference execution "
    "client paths message compaction status tools output_text input_text"
).split()
SCALARS = st.none() | st.booleans() | st.integers(-2, 9) | st.sampled_from(WORDS) | st.text(max_size=4)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=10,
)
FIELDS = (
    "model messages tools tool_choice system thinking stream max_tokens thread cache_control stream_options n requests "
    "output_config prompt_cache_options parallel_tool_calls container instructions previous_response_id conversation "
    "store background text reasoning"
).split()
OBJECTS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=6)
TYPES = st.sampled_from([word for word in WORDS if "_" in word or word in ("text", "thinking", "function")])
BLOCKS = st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, OBJECTS)
CONTENT = st.lists(BLOCKS | VALUES, max_size=4) | SCALARS
ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
MESSAGES = st.lists(
    st.builds(lambda role, content, rest: {**rest, "role": role, "content": content}, ROLES, CONTENT, OBJECTS) | VALUES,
    max_size=5,
)
TOOLS = st.lists(st.builds(lambda inner, rest: {**rest, "function": inner}, OBJECTS, OBJECTS) | VALUES, max_size=4)
BODIES = st.builds(
    lambda rest, messages, tools, thread: {**rest, "messages": messages, "tools": tools, **thread},
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
    MESSAGES,
    TOOLS,
    st.just({}) | st.builds(lambda held: {"thread": held}, OBJECTS),
)
ITEMS = st.lists(st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, OBJECTS) | MESSAGES | VALUES, max_size=5)
FLAT = st.lists(st.builds(lambda kind, rest: {**rest, "type": kind}, TYPES, OBJECTS) | VALUES, max_size=4)
RESPONSES = st.builds(
    lambda rest, items, tools: {**rest, "input": items, "tools": tools},
    st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=6),
    ITEMS | SCALARS,
    FLAT | SCALARS,
)
HEADERS = {"authorization": "Bearer k", "x-api-key": "k", "anthropic-version": "2023-06-01"}
URLS = (
    "https://api.openai.com/v1/chat/completions",
    "https://api.anthropic.com/v1/messages",
    "https://api.anthropic.com/v1/messages/count_tokens",
    "https://api.anthropic.com/v1/messages/batches",
    "https://api.openai.com/v1/responses",
)


@given(
    url=st.sampled_from(URLS),
    body=BODIES,
    rules=st.sampled_from(["strict", "off"]),
)
def test_any_json_is_answered(url: str, body: dict[str, Any], rules: Any):
    server = Emulator(rules=rules)
    answer = server.handle("POST", url, HEADERS, json.dumps(body).encode())
    payload = b"".join(answer.chunks)
    assert answer.status in (200, 400, 404)
    if answer.headers["content-type"].startswith("application/json"):
        json.loads(payload)
    else:
        assert payload.endswith(b"\n\n")
    assert server.exchanges[0].delivery == "complete"


@given(
    path=st.sampled_from(["", "/compact", "/input_tokens"]),
    body=RESPONSES,
    rules=st.sampled_from(["strict", "off"]),
)
def test_any_json_of_a_response_is_answered(path: str, body: dict[str, Any], rules: Any):
    server = Emulator(rules=rules)
    answer = server.handle("POST", "https://api.openai.com/v1/responses" + path, HEADERS, json.dumps(body).encode())
    payload = b"".join(answer.chunks)
    assert answer.status in (200, 400, 404)
    assert payload.endswith((b"}", b"\n\n"))
    json.dumps(server.exchanges[0].reply)


@given(st.binary(max_size=40))
def test_any_bytes_are_answered(raw: bytes):
    for url in URLS:
        assert Emulator().handle("POST", url, HEADERS, raw).status in (200, 400)
