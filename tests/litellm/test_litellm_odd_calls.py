"""Calls as nobody should make them, and callers who leave in the middle."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from pydantic import BaseModel
from tests.core.conversation import CHAT, NAMES, tools
from tests.litellm.talking import ROUTES, SEARCHES, dumped, talking, text_of
from tests.litellm.test_litellm_router import arguments, router_of

import loadpoint
from loadpoint.emulator import Move

pytestmark = pytest.mark.anyio
OPENAI = ROUTES["openai completion"]
CALLED = [("invoice_create", {"id": 7})]


class Function(BaseModel):
    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool | None = None


class FunctionTool(BaseModel):
    function: Function
    type: str = "function"


def test_tools_that_are_models(litellm: Any):
    """litellm writes them with their defaults; the `type` of these is one."""
    with talking(litellm, OPENAI, *SEARCHES) as program:
        program.user("please create an invoice")
        given = program.arguments()
        given["tools"] = [FunctionTool(function=Function(**tool["function"])) for tool in given["tools"]]
        kept = list(given["tools"])
        reply = program.client.completion(**given)
        assert program.echo(dumped(CHAT, reply)) == CALLED
        assert given["tools"] == kept
        first, second = (exchange.request or {} for exchange in program.server.exchanges)
        assert len(first["tools"]) == 1
        assert second["tools"][1] == tools(CHAT, ["invoice_create"])[0]


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside tools"])
def test_legacy_functions_are_sent_as_they_came(litellm: Any, beside: bool):
    with talking(litellm, OPENAI, Move(text="hello")) as program:
        program.user("hi")
        given = program.arguments()
        given["functions"] = [tool["function"] for tool in given["tools"]]
        given = given if beside else {name: value for name, value in given.items() if name != "tools"}
        program.client.completion(**given)
        sent = program.server.exchanges[0].request or {}
        assert sent["functions"] == given["functions"]
        assert program.names_sent(0) == (list(NAMES) if beside else [])
        assert ["functions" in report.reason for report in program.reports] == ([True] if beside else [])


@pytest.mark.parametrize("stream", [False, True])
def test_callbacks_that_raise_break_nothing(litellm: Any, stream: bool):
    called: list[int] = []

    def bad(*_: Any, **__: Any) -> None:
        called.append(1)
        raise RuntimeError("of the callback's own")

    before = litellm.input_callback
    litellm.input_callback, litellm.success_callback = [bad], [bad]
    try:
        with talking(litellm, OPENAI, *SEARCHES) as program:
            program.user("please create an invoice")
            reply = program.call(stream=stream)
            reply = litellm.stream_chunk_builder(list(reply)) if stream else reply
            assert program.echo(dumped(CHAT, reply)) == CALLED
            assert len(program.server.exchanges) == 2
    finally:
        litellm.input_callback = before
    assert called


async def test_a_call_that_is_cancelled_in_a_later_round_has_paid_for_the_first(
    litellm: Any, monkeypatch: pytest.MonkeyPatch
):
    own, rounds, waiting = litellm.acompletion, [0], asyncio.Event()

    async def second_never_comes(*args: Any, **given: Any) -> Any:
        rounds[0] += 1
        if rounds[0] == 2:
            waiting.set()
            await asyncio.Event().wait()
        return await own(*args, **given)

    monkeypatch.setattr(litellm, "acompletion", second_never_comes)
    with talking(litellm, OPENAI, *SEARCHES) as program:
        program.user("please create an invoice")
        task = asyncio.create_task(program.acall())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reply = await program.acall()
        assert program.echo(dumped(CHAT, reply)) == CALLED
        assert len(program.server.exchanges) == 2, "the search was paid for once"
        assert loadpoint.report(reply).added_rounds == 1


async def test_a_stream_whose_reader_is_cancelled_is_closed(litellm: Any):
    with talking(litellm, OPENAI, *SEARCHES) as program:
        program.user("please create an invoice")
        reading = asyncio.Event()
        streams: list[Any] = []

        async def read() -> None:
            streams.append(await program.acall(stream=True))
            async for _ in streams[0]:
                reading.set()
                await asyncio.Event().wait()

        task = asyncio.create_task(read())
        await reading.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await streams[0].aclose()
        assert [item async for item in streams.pop()] == []
        gc.collect()
        assert len(program.server.exchanges) == 1
        reply = await program.acall()
        assert reply.choices[0].message.tool_calls[0].function.name == "invoice_create"


def test_a_timeout_is_litellms_and_holds_for_each_round(litellm: Any):
    with talking(litellm, OPENAI, *SEARCHES) as program:
        program.user("please create an invoice")
        own, given = litellm.completion, []

        def slow(*args: Any, **more: Any) -> Any:
            given.append(more["timeout"])
            if len(given) == 2:
                raise litellm.Timeout("late", model="gpt-5.4", llm_provider="openai")
            return own(*args, **more)

        litellm.completion = slow
        try:
            with pytest.raises(litellm.Timeout):
                program.call(timeout=7)
            reply = program.call(timeout=7)
        finally:
            litellm.completion = own
        assert program.echo(dumped(CHAT, reply)) == CALLED
        assert given == [7, 7, 7]
        assert len(program.server.exchanges) == 2, "what was paid for before the time-out was kept"


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_conversation_changes_its_provider_and_comes_back(litellm: Any, asynchronous: bool):
    """Its fallbacks make a native form impossible in the second call; the third is another provider's."""
    route = ROUTES["claude completion"]
    with talking(litellm, route, *SEARCHES, Move(text="more"), Move(text="back"), wrapped=False) as program:
        reports: list[Any] = []
        router = litellm.Router(
            model_list=[
                {"model_name": "g0", "litellm_params": {"model": route.model, "api_base": program.url, "api_key": "k"}},
                {
                    "model_name": "g1",
                    "litellm_params": {"model": "openai/gpt-5.4", "api_base": program.url + "/v1", "api_key": "k"},
                },
            ],
            num_retries=0,
        )
        wrapped = loadpoint.wrap(router, route.policy, on_report=reports.append)

        async def said(**more: Any) -> Any:
            given = {**arguments(program), "messages": program.history, "max_tokens": 50, **more}
            reply = await wrapped.acompletion(**given) if asynchronous else wrapped.completion(**given)
            message = reply.choices[0].message.model_dump(exclude_none=True)
            message.pop("provider_specific_fields", None)  # litellm itself sends it to providers that refuse it
            program.history.append(message)
            for call in message.get("tool_calls") or ():
                program.history.append({"role": "tool", "tool_call_id": call["id"], "content": "ok"})
            return text_of(CHAT, dumped(CHAT, reply))

        program.user("please create an invoice")
        assert await said() == "let me look"
        assert await said(fallbacks=[{"g0": ["g1"]}]) == "done"
        program.user("and with the other one?")
        assert await said(model="g1") == "more"
        program.user("and back?")
        assert await said() == "back"
        assert [report.strategy for report in reports] == ["native", "resend", "resend", "resend"]
        assert [exchange.status for exchange in program.server.exchanges] == [200] * 5
        assert all("invoice_create" in str(program.names_sent(at)) for at in range(1, 5))


@pytest.mark.parametrize("way", ["sync", "async", "sync stream", "router"])
@pytest.mark.parametrize(
    ("more", "why"),
    [({"n": 2}, "n > 1"), ({"mock_response": "mocked"}, "mocked"), ({"caching": True}, "cache")],
    ids=["n", "mock", "caching"],
)
async def test_what_cannot_be_improved_passes_on_every_way(litellm: Any, more: dict[str, Any], why: str, way: str):
    with talking(litellm, OPENAI, Move(text="hello"), wrapped=way != "router") as program:
        program.user("hi")
        reports = program.reports
        if way == "router":
            wrapped = loadpoint.wrap(
                router_of(litellm, program, "openai/gpt-5.4"), OPENAI.policy, on_report=reports.append
            )
            wrapped.completion(**arguments(program), **more)
        elif way == "async":
            await program.acall(**more)
        else:
            reply = program.call(**more, stream=way == "sync stream")
            _ = list(reply) if way == "sync stream" else reply
        assert [report.strategy for report in reports] == ["eager"]
        assert why in reports[0].reason
        assert all(program.names_sent(at) == list(NAMES) for at in range(len(program.server.exchanges)))
