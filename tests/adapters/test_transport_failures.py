"""Retries, errors and early ends over the transport, where the SDK's own retries stand outside of the rounds."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import httpx
import httpx2
import pytest
from tests.adapters.doubles import FakeSession, Fault, Provider, chat_events, message_events
from tests.adapters.paths import each, settle
from tests.adapters.rig import CLASSES, MODULES, SDKS, Rig, request, rig, said, search, text_of, texts

from loadpoint_adapters.httpx import Transport
from loadpoint_adapters.httpx._adapter import speaks
from loadpoint_adapters.httpx._transport import Driver

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)
streams = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


def over(sdk: str, *script: Any, asynchronous: bool = False, **options: Any) -> Rig:
    """A client that nobody has wrapped, over the transport, in front of a scripted provider."""
    provider = Provider(chat_events if sdk == "openai" else message_events, list(script) or [search(sdk), said(sdk)])
    session = FakeSession()
    inner = httpx2.MockTransport(provider.answer if asynchronous else provider)
    made: Any = Transport(Driver(session, speaks()), inner, {})
    http = (httpx2.AsyncClient if asynchronous else httpx2.Client)(transport=made)
    client = CLASSES[sdk, asynchronous](api_key="k", http_client=http, **options)
    return Rig(sdk, client, client, provider, session)


async def read(stream: Any) -> list[str]:
    return [text async for item in each(stream) for text in texts(item)]


@both
@sdks
@streams
@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_no_retry_repeats_a_round_that_was_paid_for(
    sdk: str, asynchronous: bool, stream: bool, status: int, later: bool
):
    script = [Fault(status), search(sdk), said(sdk)] if not later else [search(sdk), Fault(status), said(sdk)]
    given = over(sdk, *script, asynchronous=asynchronous)
    if stream:
        assert await read(await settle(given.create(stream=True))) == ["hello", "big", "world"]
    else:
        assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 3
    if later:
        assert given.provider.seen[1] == given.provider.seen[2] != given.provider.seen[0]


@both
@sdks
@streams
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_errors_are_the_sdks_own(sdk: str, asynchronous: bool, stream: bool, later: bool):
    given = over(sdk, *([search(sdk)] if later else []), Fault(400), asynchronous=asynchronous)
    module = MODULES[sdk]
    typed = not (later and stream)  # a stream that is open has its status already
    with pytest.raises(module.BadRequestError if typed else module.APIError, match="no 400"):
        await (read(await settle(given.create(stream=True))) if stream else settle(given.create()))
    assert len(given.provider.requests) == 1 + later
    assert given.call.failures >= 1


@both
@sdks
async def test_in_an_open_stream_the_retries_end(sdk: str, asynchronous: bool):
    given = over(sdk, search(sdk), Fault(503), asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    with pytest.raises(MODULES[sdk].APIError, match="no 503"):
        await read(stream)
    assert len(given.provider.requests) == 4
    given.provider.script = [said(sdk)]
    assert text_of(await settle(given.create())) == "hello big world"


@both
@sdks
async def test_a_connection_that_fails_in_an_open_stream_is_tried_again(sdk: str, asynchronous: bool, quick: None):
    gone = Fault(error=lambda request: httpx2.ConnectError("gone", request=request))
    given = over(sdk, search(sdk), gone, said(sdk), asynchronous=asynchronous)
    assert await read(await settle(given.create(stream=True))) == ["hello", "big", "world"]
    given = over(sdk, search(sdk), gone, asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    with pytest.raises((httpx2.ConnectError, MODULES[sdk].APIConnectionError)):
        await read(stream)
    assert len(given.provider.requests) == 4


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loadpoint_adapters.httpx._patience._FIRST", 0.001)


@both
@sdks
async def test_a_request_that_may_have_arrived_is_not_sent_again(sdk: str, asynchronous: bool, quick: None):
    slow = Fault(error=lambda request: httpx2.ReadTimeout("slow", request=request))
    given = over(sdk, search(sdk), slow, asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    with pytest.raises((httpx2.ReadTimeout, MODULES[sdk].APIConnectionError)):
        await read(stream)
    assert len(given.provider.requests) == 2


@both
@sdks
@streams
async def test_a_connection_error_is_retried_by_the_sdk_from_where_it_was(sdk: str, asynchronous: bool, stream: bool):
    gone = Fault(error=lambda request: httpx2.ConnectError("gone", request=request))
    script = [gone, search(sdk), said(sdk)] if stream else [search(sdk), gone, said(sdk)]
    given = over(sdk, *script, asynchronous=asynchronous)
    reply = await settle(given.create(stream=stream))
    assert (await read(reply) == ["hello", "big", "world"]) if stream else (text_of(reply) == "hello big world")
    assert len(given.provider.requests) == 3


@both
@sdks
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_a_cut_stream_never_ends_quietly(sdk: str, asynchronous: bool, later: bool):
    cut = Fault(cut=said(sdk), after=4)
    bare = rig(sdk, cut, asynchronous=asynchronous)
    with pytest.raises(Exception) as expected:
        await read(await settle(bare.create(bare.plain, stream=True)))
    given = over(sdk, *([search(sdk)] if later else []), cut, asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    with pytest.raises(type(expected.value)):
        await read(stream)
    assert given.call.failures >= 1
    assert all(body.closed for body in given.provider.bodies)


@both
@sdks
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_closing_closes_the_open_upstream_and_starts_nothing(sdk: str, asynchronous: bool, later: bool):
    script = [search(sdk), said(sdk)] if later else [said(sdk), search(sdk)]
    given = over(sdk, *script, asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    async for item in each(stream):
        if texts(item):
            break
    await settle(stream.close())
    assert [body.closed for body in given.provider.bodies] == [True] * (1 + later)
    assert given.provider.bodies[-1].read < len(given.provider.bodies[-1].events)
    assert given.call.failures == 1
    assert len(given.provider.requests) == 1 + later


@sdks
def test_a_dropped_stream_is_closed(sdk: str):
    given = over(sdk, said(sdk))
    stream = given.create(stream=True)
    next(stream)
    del stream
    gc.collect()
    assert [body.closed for body in given.provider.bodies] == [True]
    assert given.call.failures == 1


@sdks
async def test_a_cancelled_call_keeps_what_was_paid_for(sdk: str):
    given = over(sdk, asynchronous=True)
    arrived = asyncio.Event()
    answer = given.provider.answer

    async def hang(asked: httpx2.Request) -> httpx2.Response:
        if given.provider.requests:
            arrived.set()
            await asyncio.Event().wait()
        return await answer(asked)

    made: Any = Transport(Driver(given.session, speaks()), httpx2.MockTransport(hang), {})
    client = given.client.with_options(http_client=httpx2.AsyncClient(transport=made))
    task = asyncio.ensure_future(given.create(client))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert given.call.failures == 1
    assert len(given.provider.requests) == 1
    assert text_of(await given.create()) == "hello big world"  # by the first client, which goes on where it was
    assert len(given.provider.requests) == 2


@both
@sdks
async def test_a_reply_that_is_no_json_is_what_the_sdk_makes_of_it(sdk: str, asynchronous: bool):
    def html(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/html"}, content=b"<html>sorry</html>")

    async def html_async(asked: httpx2.Request) -> httpx2.Response:
        return html(asked)

    given = over(sdk, asynchronous=asynchronous)
    inner = httpx2.MockTransport(html_async if asynchronous else html)
    made: Any = Transport(Driver(given.session, speaks()), inner, {})
    http = (httpx2.AsyncClient if asynchronous else httpx2.Client)(transport=made)
    for stream in (False, True):
        reply = await settle(given.create(given.client.with_options(http_client=http), stream=stream))
        if not stream:
            assert reply == "<html>sorry</html>"
        assert given.call.failures == 1


@both
@sdks
@streams
async def test_a_json_reply_to_a_request_for_a_stream_is_driven_as_well(sdk: str, asynchronous: bool, stream: bool):
    """Some gateways do not stream; what the SDK makes of that is its own business."""
    given = over(sdk, asynchronous=asynchronous)
    replies = [search(sdk), said(sdk)]

    def plain(asked: httpx2.Request) -> httpx2.Response:
        given.provider.requests.append(asked)
        return httpx2.Response(200, json=replies.pop(0))

    async def plain_async(asked: httpx2.Request) -> httpx2.Response:
        return plain(asked)

    inner = httpx2.MockTransport(plain_async if asynchronous else plain)
    made: Any = Transport(Driver(given.session, speaks()), inner, {})
    http: Any = (httpx2.AsyncClient if asynchronous else httpx2.Client)(transport=made)
    path = "/v1/chat/completions" if sdk == "openai" else "/v1/messages"
    reply = await settle(http.post(f"https://x.example{path}", json={**request(sdk), "stream": stream}))
    assert "hello big world" in reply.text
    assert len(given.provider.requests) == 2


@both
@sdks
async def test_every_body_has_its_own_idempotency_key(sdk: str, asynchronous: bool):
    given = over(sdk, search(sdk), Fault(500), said(sdk), asynchronous=asynchronous)
    await settle(given.create(extra_headers={"Idempotency-Key": "mine"}))
    first, second, third = [asked.headers["idempotency-key"] for asked in given.provider.requests]
    assert first.startswith("mine-")
    assert first != second == third


@both
@sdks
@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_a_reply_that_breaks_off_is_closed(library: Any, sdk: str, asynchronous: bool):
    class Broken(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[misc]
        closed = 0

        def __iter__(self) -> Any:
            yield b'{"id":'
            raise library.ReadError("cut")

        async def __aiter__(self) -> Any:
            for chunk in self:
                yield chunk

        def close(self) -> None:
            self.closed += 1

        async def aclose(self) -> None:
            self.closed += 1

    def answer(_: Any) -> Any:
        return library.Response(200, headers={"content-type": "application/json"}, stream=broken)

    async def answer_async(asked: Any) -> Any:
        return answer(asked)

    broken = Broken()
    given = over(sdk, asynchronous=asynchronous)
    inner = library.MockTransport(answer_async if asynchronous else answer)
    made: Any = Transport(Driver(given.session, speaks()), inner, {})
    http: Any = (library.AsyncClient if asynchronous else library.Client)(transport=made)
    path = "/v1/chat/completions" if sdk == "openai" else "/v1/messages"
    with pytest.raises(library.ReadError):
        await settle(http.post(f"https://x.example{path}", json=request(sdk)))
    assert broken.closed
    assert given.call.failures == 1
