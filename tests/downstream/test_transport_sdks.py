"""SDKs that no adapter knows, over an HTTP client of ours: Mistral's speaks Chat Completions, Google's does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import httpx2
import pytest
from tests.core.conversation import CHAT, NAMES, search, tools
from tests.downstream import scene
from tests.litellm.foreign import playing

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move, Script
from loadpoint_adapters.httpx import transport

pytestmark = pytest.mark.anyio
POLICY = Policy(threshold_tokens=0)
MODEL = "mistral-large-latest"
MOVES = (
    Move(text="let me look", calls=[search("create invoice")]),
    Move(calls=[("invoice_create", {"id": 7})]),
    Move(text="done"),
)


class Talk:
    """A conversation of Mistral's SDK with the emulator."""

    def __init__(self, client: Any, server: Emulator, reports: list[Any]) -> None:
        self.client, self.server, self.reports = client, server, reports
        self.messages: list[Any] = [{"role": "user", "content": "please create an invoice"}]

    def given(self) -> dict[str, Any]:
        return {"model": MODEL, "messages": self.messages, "tools": tools(CHAT)}

    def took(self, message: Any) -> None:
        """Its own object goes back, and a result for the call in it."""
        (call,) = message.tool_calls
        assert call.function.name == "invoice_create"
        assert json.loads(call.function.arguments) == {"id": 7}
        self.messages += [message, {"role": "tool", "tool_call_id": call.id, "name": "invoice_create", "content": "ok"}]

    def judged(self) -> None:
        first, second, third = (exchange.request or {} for exchange in self.server.exchanges)
        assert [tool["function"]["name"] for tool in first["tools"]] == ["ToolSearch"]
        assert third["tools"] == second["tools"]
        assert third["messages"][: len(second["messages"])] == second["messages"]
        assert [report.added_rounds for report in self.reports] == [1, 0]
        assert self.reports[-1].prefix.stable


@pytest.fixture(params=["client", "transport"])
def talk(request: pytest.FixtureRequest) -> Iterator[Talk]:
    kind = scene.package("mistralai.client").Mistral
    server = Emulator(Script.sequence(list(MOVES)))
    reports: list[Any] = []
    made: dict[str, Any] = {}
    for name, client in (("client", httpx2.Client), ("async_client", httpx2.AsyncClient)):
        if request.param == "client":
            made[name] = loadpoint.wrap(client(follow_redirects=True), POLICY, on_report=reports.append)
        else:
            made[name] = client(transport=transport(POLICY, on_report=reports.append), follow_redirects=True)
    with emulator.serve(server) as running:
        yield Talk(kind(api_key="k", server_url=running.url, **made), server, reports)
        made["client"].close()


def test_mistral(talk: Talk):
    reply = talk.client.chat.complete(**talk.given())
    assert reply.choices[0].message.content == "let me look"
    assert loadpoint.report(reply).added_rounds == 1
    talk.took(reply.choices[0].message)
    assert talk.client.chat.complete(**talk.given()).choices[0].message.content == "done"
    talk.judged()


async def test_mistral_asynchronously(talk: Talk):
    reply = await talk.client.chat.complete_async(**talk.given())
    talk.took(reply.choices[0].message)
    assert (await talk.client.chat.complete_async(**talk.given())).choices[0].message.content == "done"
    talk.judged()


def events(text: str, name: str, arguments: str) -> bytes:
    """A stream as Mistral's own API has it: a call comes whole, in one event, which its SDK insists on."""
    call = {"id": f"id_{name}", "type": "function", "index": 0, "function": {"name": name, "arguments": arguments}}
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text}, {"content": "", "tool_calls": [call]}]
    out = ""
    for at, delta in enumerate(deltas):
        choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls" if at else None}
        chunk: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "model": MODEL, "created": 1}
        if at:
            chunk["usage"] = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        out += f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
    return f"{out}data: [DONE]\n\n".encode()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_mistral_streamed(asynchronous: bool):
    kind = scene.package("mistralai.client").Mistral
    bodies: list[Any] = []
    reports: list[Any] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        made = (
            events("let me look", "ToolSearch", '{"query": "create invoice"}')
            if len(bodies) == 1
            else events("", "invoice_create", '{"id": 7}')
        )
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=made)

    over = transport(POLICY, inner=httpx2.MockTransport(answer), on_report=reports.append)
    given = {
        "model": MODEL,
        "messages": [{"role": "user", "content": "please create an invoice"}],
        "tools": tools(CHAT),
    }
    if asynchronous:
        async with httpx2.AsyncClient(transport=over) as http_async:
            client = kind(api_key="k", async_client=http_async)
            async with await client.chat.stream_async(**given) as stream:
                deltas = [event.data.choices[0].delta async for event in stream if event.data.choices]
    else:
        with httpx2.Client(transport=over) as http:
            client = kind(api_key="k", client=http)
            with client.chat.stream(**given) as stream:
                deltas = [event.data.choices[0].delta for event in stream if event.data.choices]
    assert "".join(delta.content or "" for delta in deltas) == "let me look"
    calls = [call.function for delta in deltas for call in delta.tool_calls or ()]
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [("invoice_create", {"id": 7})]
    assert [report.added_rounds for report in reports] == [1]
    assert "invoice_create" in [tool["function"]["name"] for tool in bodies[1]["tools"]]


def test_an_error_of_ours_is_mistrals_and_not_retried(talk: Talk):
    errors = scene.package("mistralai.client.errors")
    with loadpoint.using(Policy(search="hosted", confirm="model")), pytest.raises(errors.HTTPValidationError) as raised:
        talk.client.chat.complete(**talk.given())
    assert raised.value.status_code == 422
    assert "PolicyError" in raised.value.body
    assert list(talk.server.exchanges) == []


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_google_speaks_an_api_of_its_own_and_is_left_alone(asynchronous: bool):
    genai = scene.package("google.genai")
    declared = [
        {"name": tool["function"]["name"], "parameters_json_schema": tool["function"]["parameters"]}
        for tool in tools(CHAT)
    ]
    reports: list[Any] = []
    with playing(Move(calls=[("invoice_create", {"id": 7})])) as (url, bodies):
        kind = httpx.AsyncClient if asynchronous else httpx.Client
        http: Any = loadpoint.wrap(kind(), POLICY, on_report=reports.append)
        name = "httpx_async_client" if asynchronous else "httpx_client"
        client = genai.Client(api_key="k", http_options={"base_url": url, name: http})
        asked = {
            "model": "gemini-3-pro",
            "contents": "please create an invoice",
            "config": {"tools": [{"function_declarations": declared}], "automatic_function_calling": {"disable": True}},
        }
        if asynchronous:
            reply = await client.aio.models.generate_content(**asked)
            await http.aclose()
        else:
            reply = client.models.generate_content(**asked)
            http.close()
    assert [call.name for call in reply.function_calls] == ["invoice_create"]
    (body,) = bodies
    assert [each["name"] for tool in body["tools"] for each in tool["functionDeclarations"]] == list(NAMES)
    assert [report.strategy for report in reports] == ["eager"]
    assert "no dialect is known that has addresses like /v1/models/gemini-3-pro:generateContent" in reports[0].reason
