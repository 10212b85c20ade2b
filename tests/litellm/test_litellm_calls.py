"""Calls through the wrapped module, against the emulator: every way to call, and what the caller gets of the rounds."""

from __future__ import annotations

import gc
import importlib.util
import weakref
from typing import Any

import anyio
import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, search
from tests.litellm.talking import ROUTES, SEARCHES, Program, dumped, talking, text_of

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Move
from loadpoint_adapters.litellm import _streams

WAYS = ("sync", "async", "sync stream", "async stream")
PROXY = all(importlib.util.find_spec(name) for name in ("fastapi", "orjson", "soundfile", "backoff", "redis"))


async def said(program: Program, litellm: Any, way: str) -> tuple[dict[str, Any], Any, Any]:
    """One call: the reply as JSON (rebuilt by litellm itself from a stream), and what the caller was given."""
    dialect = program.route.dialect
    streamed = {"stream": True} if "stream" in way else {}
    if dialect == CHAT and streamed:
        streamed["stream_options"] = {"include_usage": True}  # type: ignore[assignment]
    given = program.call(**streamed) if "async" not in way else await program.acall(**streamed)
    if not streamed:
        return dumped(dialect, given), given, given
    items = [item async for item in given] if "async" in way else list(given)
    if dialect == CHAT:
        built = litellm.stream_chunk_builder(items)
        return dumped(dialect, built), given, built
    if dialect == RESPONSES:
        built = given.completed_response.response
        assert items[-1] is given.completed_response
        return dumped(dialect, built), given, built
    return _message(b"".join(items)), given, given


def _message(raw: bytes) -> dict[str, Any]:
    from tests.core.streams import rebuilt

    found: dict[str, Any] = rebuilt(MESSAGES, raw)
    return found


def possible(route: str, way: str) -> None:
    """Skip what litellm itself has no way for."""
    if ROUTES[route].dialect == MESSAGES and "async" not in way:
        pytest.skip("litellm has no synchronous anthropic.messages")
    if ROUTES[route].dialect == MESSAGES and "stream" in way and not PROXY:
        pytest.skip("litellm has no such stream without the extra loadpoint[proxy-tests]")


@pytest.mark.requirement("N19")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.anyio
async def test_a_session_of_every_kind(litellm: Any, route: str, way: str):
    possible(route, way)
    expected = ROUTES[route]
    with talking(litellm, expected, *SEARCHES) as program:
        program.user("please create an invoice")
        before = program.arguments()
        reply, given, _ = await said(program, litellm, way)
        assert program.arguments() == before, "the caller's arguments were changed"
        assert text_of(expected.dialect, reply) == "let me look"
        assert program.echo(reply) == [("invoice_create", {"id": 7})]
        report = loadpoint.report(given)
        assert (report.strategy, report.load_point) == (expected.strategy, expected.load_point)
        assert report.loaded[0].name == "invoice_create"
        assert report.added_rounds == 1
        assert report.searches[0].query == "create invoice"
        reply, given, _ = await said(program, litellm, way)
        assert text_of(expected.dialect, reply) == "done"
        assert loadpoint.report(given).prefix.stable
        assert len(program.server.exchanges) == 3
        assert [exchange.status for exchange in program.server.exchanges] == [200] * 3
        assert len(program.names_sent(0)) == 1
        assert len(program.reports) == 2


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("route", ["openai completion", "claude completion", "openai responses", "claude messages"])
@pytest.mark.anyio
async def test_usage_and_cost_are_the_sum_of_the_rounds(litellm: Any, route: str, way: str):
    possible(route, way)
    with talking(litellm, ROUTES[route], *SEARCHES) as program:
        program.user("please create an invoice")
        reply, _, built = await said(program, litellm, way)
        first, second = program.server.exchanges
        usage = reply["usage"]
        inputs, outputs = ("prompt_tokens", "completion_tokens") if ROUTES[route].dialect == CHAT else (
            "input_tokens", "output_tokens",
        )  # fmt: skip
        assert usage[inputs] == first.input_tokens + second.input_tokens
        assert usage[outputs] == first.output_tokens + second.output_tokens
        report = program.reports[-1]
        assert len(report.rounds) == 2
        if "stream" in way or ROUTES[route].dialect == MESSAGES:
            return  # litellm prices the chunks that it builds a reply from; messages are plain dicts
        each = [one.cost for one in report.rounds]
        assert built._hidden_params["response_cost"] == pytest.approx(sum(each))
        assert built._hidden_params["additional_headers"], "what else litellm notes is kept"


@pytest.mark.parametrize("asked", [True, False])
def test_a_chat_stream_is_litellms_own(litellm: Any, asked: bool):
    with talking(litellm, ROUTES["openai completion"], *SEARCHES[:2]) as program:
        program.user("please create an invoice")
        more = {"stream_options": {"include_usage": True}} if asked else {}
        stream = program.call(stream=True, **more)
        assert isinstance(stream, litellm.CustomStreamWrapper)
        assert type(stream).__name__ == "CustomStreamWrapper"
        assert stream.model == "gpt-5.4"
        assert stream.custom_llm_provider == "openai"
        with stream as entered:
            chunks = list(entered)
        assert {type(chunk) for chunk in chunks} == {litellm.ModelResponseStream}
        assert len({chunk.id for chunk in chunks}) == 1
        assert stream.chunks == chunks
        assert [hasattr(chunk, "usage") and chunk.usage is not None for chunk in chunks].count(True) == int(asked)
        names = [
            call.function.name for chunk in chunks for choice in chunk.choices for call in choice.delta.tool_calls or ()
        ]
        assert [name for name in names if name] == ["invoice_create"]
        assert all(chunk._hidden_params.get("custom_llm_provider") == "openai" for chunk in chunks)
        if asked:
            costs = [one.cost for one in program.reports[-1].rounds]
            assert chunks[-1]._hidden_params["response_cost"] == pytest.approx(sum(costs))


def test_a_class_that_litellm_makes_for_one_call_is_let_go():
    def once() -> weakref.ref[Any]:
        made = _streams._class(type("Stream", (), {}))
        assert _streams._class(made.__mro__[1]) is made
        return weakref.ref(made)

    left = once()
    gc.collect()
    assert left() is None


@pytest.mark.anyio
async def test_a_stream_that_is_left_starts_no_further_round(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], *SEARCHES) as program:
        program.user("please create an invoice")
        stream = program.call(stream=True)
        next(stream)
        stream.close()
        assert list(stream) == []
        stream = await program.acall(stream=True)
        await anext(stream)
        await stream.aclose()
        assert [item async for item in stream] == []
        assert len(program.server.exchanges) == 2


def test_a_call_without_a_search_is_handed_over_as_it_came(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], Move(text="hello"), Move(text="hello")) as program:
        program.user("hi")
        bare = litellm.completion(**program.arguments())
        mine = program.call()
        assert type(mine) is type(bare)
        assert mine.choices[0].message.content == "hello"
        assert set(mine._hidden_params) == set(bare._hidden_params)
        stream = program.server.exchanges[1].request
        assert stream
        assert program.names_sent(1) == ["ToolSearch"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"n": 2}, "n > 1"),
        ({"mock_response": "mocked"}, "mocked"),
        ({"caching": True}, "cache"),
        ({"extra_body": {"tools": []}}, "extra_body"),
    ],
)
def test_what_cannot_be_improved_is_passed_with_the_reason(litellm: Any, more: dict[str, Any], why: str):
    with talking(litellm, ROUTES["openai completion"], Move(text="hello")) as program:
        program.user("hi")
        if "extra_body" in more:
            more = {"extra_body": {"tools": program.arguments()["tools"]}}
        reply = program.call(**more)
        assert reply.choices[0].message.content in ("hello", "mocked")
        report = program.reports[-1]
        assert report.strategy == "eager"
        assert why in report.reason
        if program.server.exchanges:
            assert program.names_sent(0) == list(NAMES), "half-deferred"


def test_functions_that_call_litellms_own_say_so(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], Move(text="a"), Move(text="b")) as program:
        program.user("hi")
        given = program.arguments()
        messages = [given.pop("messages")] * 2
        replies = program.client.batch_completion(messages=messages, **given)
        assert [reply.choices[0].message.content for reply in replies] in (["a", "b"], ["b", "a"])
        assert program.names_sent(0) == program.names_sent(1) == list(NAMES)
        assert "call `completion`" in program.reports[-1].reason


def test_retries_and_dropped_params_are_litellms_in_each_round(litellm: Any):
    moves = (SEARCHES[0], Move(status=500), SEARCHES[1])
    with talking(litellm, ROUTES["openai completion"], *moves) as program:
        program.user("please create an invoice")
        reply = program.call(num_retries=2, drop_params=True, temperature=0.5)
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        assert [exchange.status for exchange in program.server.exchanges] == [200, 500, 200]


@pytest.mark.parametrize("way", ["sync", "async", "sync stream"])
@pytest.mark.anyio
async def test_an_error_of_a_later_round_is_litellms_and_what_was_paid_for_is_kept(litellm: Any, way: str):
    moves = (SEARCHES[0], Move(status=400), SEARCHES[1])
    with talking(litellm, ROUTES["openai completion"], *moves) as program:
        program.user("please create an invoice")
        with pytest.raises(litellm.BadRequestError):
            await said(program, litellm, way)
        reply, given, _ = await said(program, litellm, way)
        assert program.echo(reply) == [("invoice_create", {"id": 7})]
        assert len(program.server.exchanges) == 3, "the search was paid for once"
        assert loadpoint.report(given).added_rounds == 1


@pytest.mark.anyio
async def test_arguments_that_litellm_refuses_are_refused_by_litellm(litellm: Any):
    wrapped = loadpoint.wrap(litellm)
    with pytest.raises(litellm.BadRequestError, match="LLM Provider NOT provided"):
        wrapped.completion(model="nobody-knows-this", messages=[], tools=[{}])
    with pytest.raises(TypeError):
        wrapped.completion()
    with pytest.raises(TypeError, match="multiple values"):
        wrapped.completion("gpt-5.4", model="gpt-5.4")
    with pytest.raises(ValueError, match="sync"):
        wrapped.anthropic.messages.create(max_tokens=9, messages=[], model="claude-opus-5", tools=[{"name": "a"}])


def test_positional_arguments_are_taken(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], *SEARCHES) as program:
        given = program.arguments()
        program.user("please create an invoice")
        reply = program.client.completion(given.pop("model"), given.pop("messages"), **given)
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        assert len(program.server.exchanges) == 2


def test_the_objects_of_replies_can_be_sent_back(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], *SEARCHES) as program:
        program.user("please create an invoice")
        message = program.call().choices[0].message
        program.history += [message, {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "ok"}]
        reply = program.call()
        assert reply.choices[0].message.content == "done"
        assert loadpoint.report(reply).prefix.stable
        assert program.history[1] is message


def test_our_headers_are_ours(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], Move(text="hello"), Move(text="hello")) as program:
        program.user("hi")
        program.call(extra_headers={"X-Loadpoint": "off", "x-own": "1"})
        assert program.names_sent(0) == list(NAMES)
        assert "switched off" in program.reports[-1].reason
        program.call(extra_headers={"x-loadpoint-conversation": "c1"})
        for exchange in program.server.exchanges:
            assert not [name for name in exchange.headers if name.lower().startswith("x-loadpoint")]
        assert program.server.exchanges[0].headers["x-own"] == "1"


@pytest.mark.anyio
async def test_callbacks_see_every_round_as_a_call(litellm: Any):
    from litellm.integrations.custom_logger import CustomLogger

    class Seen(CustomLogger):  # type: ignore[misc,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.models: list[str] = []
            self.costs: list[float] = []

        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            if (kwargs.get("optional_params") or {}).get("seed") == 4711:  # others of before may still be told
                self.models.append(kwargs["model"])
                self.costs.append(kwargs["response_cost"])

    seen = Seen()
    litellm.callbacks = [seen]
    with talking(litellm, ROUTES["openai completion"], *SEARCHES) as program:
        program.user("please create an invoice")
        reply = await program.acall(seed=4711)
        for _ in range(200):  # told in the background
            if len(seen.models) == 2:
                break
            await anyio.sleep(0.05)
        assert seen.models == ["gpt-5.4"] * 2
        assert reply._hidden_params["response_cost"] == pytest.approx(sum(seen.costs))


def test_structured_output_by_a_class(litellm: Any):
    from pydantic import BaseModel

    class Answer(BaseModel):
        total: int

    moves = (Move(text="First I look.", calls=[search("create invoice")]), Move(text='{"total": 3}'))
    with talking(litellm, ROUTES["openai completion"], *moves) as program:
        program.user("how many?")
        reply = program.call(response_format=Answer)
        assert Answer.model_validate_json(reply.choices[0].message.content) == Answer(total=3)
        assert all(
            (exchange.request or {})["response_format"]["type"] == "json_schema"
            for exchange in program.server.exchanges
        )


def test_a_refused_form_is_answered_in_the_next_one(litellm: Any):
    route = ROUTES["openai responses"]
    message = "Tool 'tool_search' is not supported with this model."
    refusal = {"error": {"message": message, "type": "invalid_request_error"}}
    moves = (Move(status=400, error=refusal), *SEARCHES[:2])
    with talking(litellm, route, *moves) as program:
        program.user("please create an invoice")
        reply = program.call()
        assert program.echo(dumped(RESPONSES, reply)) == [("invoice_create", {"id": 7})]
        report = loadpoint.report(reply)
        assert report.load_point != "tool_search"
        assert any("refused tool_search" in text for text in report.warnings)


def test_the_policy_decides_here_too(litellm: Any):
    with talking(litellm, ROUTES["claude completion"], Move(text="hello"), policy=Policy(strategy="eager")) as program:
        program.user("hi")
        program.call()
        assert program.names_sent(0) == list(NAMES)
    unknown = Policy(threshold_tokens=0)
    with talking(litellm, ROUTES["claude completion"], Move(text="hello"), policy=unknown) as program:
        program.user("hi")
        program.call()
        assert program.reports[-1].strategy in ("resend", "eager")
        assert "not an endpoint the data knows" in program.reports[-1].reason


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.anyio
async def test_thinking_of_a_hidden_round_goes_back_as_it_was_signed(litellm: Any, way: str):
    moves = (SEARCHES[0].but(thinking="I should look for an invoice tool first."), *SEARCHES[1:])
    with talking(litellm, ROUTES["claude completion"], *moves) as program:
        program.extra = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
        program.user("please create an invoice")
        reply, given, _ = await said(program, litellm, way)
        assert program.echo(reply) == [("invoice_create", {"id": 7})]
        await said(program, litellm, way)
        said_first = (program.server.exchanges[0].reply or {})["content"]
        signed = [block for block in said_first if block["type"] == "thinking"]
        assert len(signed) == 1
        assert signed[0]["signature"]
        for exchange in program.server.exchanges[1:]:
            turn = next(each for each in (exchange.request or {})["messages"] if each["role"] == "assistant")
            assert [block for block in turn["content"] if block["type"] == "thinking"] == signed
        assert [text for text in loadpoint.report(given).warnings if "cache marker" not in text] == []


def test_a_policy_that_insists_gets_no_form_that_does_not_arrive(litellm: Any):
    route = ROUTES["claude responses"]
    for policy in (route.policy, route.policy.replace(strategy="native")):
        with talking(litellm, route, *SEARCHES[:2], policy=policy) as program:
            program.user("please create an invoice")
            reply = program.call()
            assert program.echo(dumped(RESPONSES, reply)) == [("invoice_create", {"id": 7})]
            report = program.reports[-1]
            assert report.strategy == "resend"
            assert "moves loaded tools into the list" in report.reason
            assert not any(name.endswith("*") for name in program.names_sent(1))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.anyio
async def test_a_conversation_that_the_server_holds_goes_on_by_litellms_own_ids(litellm: Any, way: str):
    with talking(litellm, ROUTES["openai responses"], *SEARCHES) as program:
        program.history = "please create an invoice"  # type: ignore[assignment]
        reply, _, _ = await said(program, litellm, way)
        call = next(item for item in reply["output"] if item["type"] == "function_call")
        assert call["name"] == "invoice_create"
        assert reply["id"].startswith("resp_")
        program.history = [{"type": "function_call_output", "call_id": call["call_id"], "output": "ok"}]
        program.extra = {"previous_response_id": reply["id"]}
        reply, given, _ = await said(program, litellm, way)
        assert text_of(RESPONSES, reply) == "done"
        assert [exchange.status for exchange in program.server.exchanges] == [200] * 3
        assert len((program.server.exchanges[2].request or {})["input"]) == 1
        assert loadpoint.report(given).load_point == "tool_search"
