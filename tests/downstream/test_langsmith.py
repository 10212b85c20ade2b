"""LangSmith's `wrap_openai` and `wrap_anthropic`: they replace methods of one client object and know nothing of copies.

Ours first, theirs on top (`wrap_openai(loadpoint.wrap(client))`): both work. A run of theirs is one logical call, with
the usage of all its rounds. Theirs first, ours on top: tools are deferred, but the wrapped client is a new one, on
which their replaced methods are not; the client that they were given still traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic
import pytest
from tests.adapters import paths
from tests.downstream import scene

import loadpoint
from loadpoint.emulator import Emulator, Move, Script

langsmith = scene.package("langsmith")
wrappers = scene.package("langsmith.wrappers")

pytestmark = pytest.mark.anyio
sdks = pytest.mark.parametrize("sdk", scene.SDKS)
CALLED = [("calendar_move", {"subject": "offsite"})]
CREATE = {"openai": paths.chat_create, "anthropic": paths.create}


class Verdict(pydantic.BaseModel):
    """What came of it."""

    moved: bool


class Recorder:
    """Runs as they end, by name; sends nothing."""

    def __init__(self) -> None:
        self.ended: list[dict[str, Any]] = []
        recorder = self

        class Client(langsmith.Client):  # type: ignore[misc, name-defined]
            def create_run(self, *args: Any, **run: Any) -> None:
                """Nothing to send."""

            def update_run(self, *args: Any, **run: Any) -> None:
                recorder.ended.append(run)

        self.client = Client(api_url="http://127.0.0.1:9", api_key="k", auto_batch_tracing=False)

    def usage(self) -> list[int]:
        """Input tokens of each run."""
        return [int(run["outputs"]["usage_metadata"]["input_tokens"]) for run in self.ended]


@pytest.fixture
def traced() -> Iterator[Recorder]:
    recorder = Recorder()
    with langsmith.tracing_context(enabled=True, client=recorder.client):
        yield recorder


def over(sdk: str, client: Any) -> Any:
    return wrappers.wrap_openai(client) if sdk == "openai" else wrappers.wrap_anthropic(client)


def api(sdk: str, client: Any) -> Any:
    return client.chat.completions if sdk == "openai" else client.messages


def billed(server: Emulator) -> int:
    return sum(item.input_tokens for item in server.exchanges)


def assert_searched(sdk: str, server: Emulator) -> None:
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@sdks
async def test_theirs_on_top_a_run_is_a_logical_call_with_the_usage_of_its_rounds(
    sdk: str, asynchronous: bool, traced: Recorder
):
    ours, server = scene.wrapped(sdk, asynchronous=asynchronous)
    client = over(sdk, ours)
    assert client is ours
    assert isinstance(client, scene.CLIENTS[sdk, asynchronous])
    calls, reply = await CREATE[sdk](api(sdk, client), scene.request(sdk))
    assert calls == CALLED
    assert_searched(sdk, server)
    assert loadpoint.report(reply).added_rounds == 1
    assert traced.usage() == [billed(server)]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@sdks
async def test_theirs_on_top_streams(sdk: str, asynchronous: bool, traced: Recorder):
    skip_unless_it_traces_streams_of_a_bare_client(sdk)
    traced.ended.clear()
    ours, server = scene.wrapped(sdk, asynchronous=asynchronous)
    given = scene.request(sdk) | {"stream": True}
    if sdk == "openai":
        given["stream_options"] = {"include_usage": True}
    stream = await paths.settle(api(sdk, over(sdk, ours)).create(**given))
    calls = await (paths.chunk_calls if sdk == "openai" else paths.event_calls)(stream)
    assert calls == CALLED
    assert_searched(sdk, server)
    assert traced.usage() == [billed(server)]


def skip_unless_it_traces_streams_of_a_bare_client(sdk: str) -> None:
    """Their newest release may be behind the newest SDK: what fails without us is not asked of us."""
    client = over(sdk, scene.plain(sdk, Emulator([Move(text="hello")])))
    try:
        list(api(sdk, client).create(**scene.request(sdk), stream=True))
    except TypeError as error:
        pytest.skip(f"langsmith {langsmith.__version__} fails on a stream of the bare SDK: {error}")


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
async def test_theirs_on_top_the_stream_helper_of_messages(asynchronous: bool, traced: Recorder):
    moves = [Move.call(scene.LOADER, {"query": "calendar_move"}), Move(text=scene.DONE)]
    ours, server = scene.wrapped("anthropic", Script.sequence(moves), asynchronous=asynchronous)
    async with paths.entered(over("anthropic", ours).messages.stream(**scene.request("anthropic"))) as stream:
        text = "".join([part async for part in paths.each(stream.text_stream)])
        final = await paths.settle(stream.get_final_message())
    assert text == final.content[0].text == scene.DONE
    assert_searched("anthropic", server)
    assert traced.usage() == [billed(server)]


@sdks
def test_theirs_on_top_raw_responses(sdk: str, traced: Recorder):
    ours, server = scene.wrapped(sdk)
    raw = api(sdk, over(sdk, ours)).with_raw_response.create(**scene.request(sdk))
    assert raw.status_code == 200
    assert (paths.chat_calls if sdk == "openai" else paths.message_calls)(raw.parse()) == CALLED
    assert_searched(sdk, server)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")  # of their dump of a parsed reply
def test_theirs_on_top_parse(traced: Recorder):
    moves = [
        Move.call(scene.LOADER, {"query": "calendar_move"}),
        Move(text='{"moved": true}'),
    ]
    ours, server = scene.wrapped("openai", Script.sequence(moves))
    tools = [{**tool, "function": {**tool["function"], "strict": True}} for tool in scene.definitions("openai")]
    reply = over("openai", ours).chat.completions.parse(
        **scene.request("openai") | {"tools": tools}, response_format=Verdict
    )
    assert reply.choices[0].message.parsed == Verdict(moved=True)
    assert traced.usage() == [billed(server)]


@sdks
def test_theirs_first_tools_are_deferred_and_only_their_own_client_traces(sdk: str, traced: Recorder):
    server = Emulator(Script.agent(scene.PLAN))
    theirs = over(sdk, scene.plain(sdk, server))
    ours = loadpoint.wrap(theirs, scene.POLICY)
    api(sdk, ours).create(**scene.request(sdk))
    assert_searched(sdk, server)
    assert traced.ended == []
    assert loadpoint.unwrap(ours) is theirs
    api(sdk, theirs).create(**scene.request(sdk))
    assert len(traced.ended) == 1


@sdks
def test_wrapping_again_loses_their_methods_and_wrapping_over_brings_them_back(sdk: str, traced: Recorder):
    """The remedy for the wrong order: ask them again, for the wrapped client."""
    server = Emulator(Script.agent(scene.PLAN))
    client = over(sdk, loadpoint.wrap(over(sdk, scene.plain(sdk, server)), scene.POLICY))
    api(sdk, client).create(**scene.request(sdk))
    assert_searched(sdk, server)
    assert traced.usage() == [billed(server)]


@sdks
def test_copies_of_such_a_client_defer_and_do_not_trace(sdk: str, traced: Recorder):
    """So it is with a bare client: `with_options` gives a new client, which never had their methods."""
    ours, server = scene.wrapped(sdk)
    api(sdk, over(sdk, ours).with_options(timeout=5)).create(**scene.request(sdk))
    assert_searched(sdk, server)
    assert traced.ended == []
