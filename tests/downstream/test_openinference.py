"""OpenInference's instrumentors, with the spans in memory.

That of openai patches `OpenAI.request`, which every round goes through: a span for each round, typed, with its own
tokens. That of anthropic patches the methods of the resources: a span for each logical call,
with the tokens of all its rounds. Whether they are switched on before `wrap` or after makes no difference: they patch
classes, of which ours are subclasses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.adapters import paths
from tests.downstream import scene

from loadpoint.emulator import Emulator

instrumentation = {sdk: scene.package(f"openinference.instrumentation.{sdk}") for sdk in scene.SDKS}
trace = scene.package("opentelemetry.sdk.trace")
export = scene.package("opentelemetry.sdk.trace.export")
memory = scene.package("opentelemetry.sdk.trace.export.in_memory_span_exporter")

pytestmark = pytest.mark.anyio
sdks = pytest.mark.parametrize("sdk", scene.SDKS)
modes = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
CALLED = [("calendar_move", {"subject": "offsite"})]


class Spans:
    """The instrumentors with an exporter that keeps what ends."""

    def __init__(self) -> None:
        self._exporter = memory.InMemorySpanExporter()
        self._provider = trace.TracerProvider()
        self._provider.add_span_processor(export.SimpleSpanProcessor(self._exporter))
        self._on: list[Any] = []

    def switch_on(self, sdk: str) -> None:
        name = {"openai": "OpenAIInstrumentor", "anthropic": "AnthropicInstrumentor"}[sdk]
        instrumentor = getattr(instrumentation[sdk], name)()
        instrumentor.instrument(tracer_provider=self._provider)
        self._on.append(instrumentor)

    def switch_off(self) -> None:
        while self._on:
            self._on.pop().uninstrument()

    def taken(self) -> list[dict[str, Any]]:
        """Name and attributes of the spans since the last time."""
        spans = [{"name": span.name, **span.attributes} for span in self._exporter.get_finished_spans()]
        self._exporter.clear()
        return spans


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.switch_off()


def assert_spans(sdk: str, spans: list[dict[str, Any]], server: Emulator) -> None:
    """One span for each request that was sent (openai), or one for all of them (anthropic)."""
    assert {span["openinference.span.kind"] for span in spans} == {"LLM"}
    sent = [exchange.input_tokens for exchange in server.exchanges]
    counted = [span.get("llm.token_count.prompt") for span in spans]
    assert counted == (sent if sdk == "openai" else [sum(sent)])
    called = [span.get(_CALL) for span in spans]
    assert called == ([scene.LOADER, "calendar_move"] if sdk == "openai" else ["calendar_move"])


_CALL = "llm.output_messages.0.message.tool_calls.0.tool_call.function.name"


def before(spans: Spans, sdk: str, asynchronous: bool) -> tuple[Any, Emulator]:
    spans.switch_on(sdk)
    return scene.wrapped(sdk, asynchronous=asynchronous)


def after(spans: Spans, sdk: str, asynchronous: bool) -> tuple[Any, Emulator]:
    made = scene.wrapped(sdk, asynchronous=asynchronous)
    spans.switch_on(sdk)
    return made


orders = pytest.mark.parametrize(
    "order", [before, after], ids=["instrumented-then-wrapped", "wrapped-then-instrumented"]
)
Order = Callable[[Spans, str, bool], tuple[Any, Emulator]]


@orders
@modes
@sdks
async def test_the_spans_of_a_call(sdk: str, asynchronous: bool, order: Order, spans: Spans):
    client, server = order(spans, sdk, asynchronous)
    api = client.chat.completions if sdk == "openai" else client.messages
    calls, _ = await (paths.chat_create if sdk == "openai" else paths.create)(api, scene.request(sdk))
    assert calls == CALLED
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])
    assert_spans(sdk, spans.taken(), server)


@orders
@modes
@sdks
async def test_the_spans_of_a_stream(sdk: str, asynchronous: bool, order: Order, spans: Spans):
    client, server = order(spans, sdk, asynchronous)
    given = scene.request(sdk) | ({"stream_options": {"include_usage": True}} if sdk == "openai" else {})
    api = client.chat.completions if sdk == "openai" else client.messages
    stream = await paths.settle(api.create(**given, stream=True))
    items = [item async for item in stream] if asynchronous else list(stream)
    assert await (paths.chunk_calls if sdk == "openai" else paths.event_calls)(items) == CALLED
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])
    assert_spans(sdk, spans.taken(), server)


@sdks
def test_switching_off_leaves_a_client_that_defers(sdk: str, spans: Spans):
    client, server = after(spans, sdk, False)
    spans.switch_off()
    api = client.chat.completions if sdk == "openai" else client.messages
    api.create(**scene.request(sdk))
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])
    assert spans.taken() == []
