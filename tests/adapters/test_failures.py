"""Retries, errors, early ends: in the first round and in a later one, streamed or not."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from tests.adapters.doubles import Fault
from tests.adapters.paths import each, settle
from tests.adapters.rig import MODULES, SDKS, Rig, rig, said, search, text_of, texts

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)


async def read(stream: Any) -> list[str]:
    return [text async for item in each(stream) for text in texts(item)]


async def opened(given: Rig) -> Any:
    return await settle(given.create(stream=True))


async def closed(stream: Any) -> None:
    await settle(stream.close())


# ------------------------------------------------------------------------------------------------- retries


@both
@sdks
@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_each_round_has_the_retries_of_the_sdk(
    sdk: str, asynchronous: bool, status: int, later: bool, stream: bool
):
    script = [Fault(status), search(sdk), said(sdk)] if not later else [search(sdk), Fault(status), said(sdk)]
    given = rig(sdk, *script, asynchronous=asynchronous)
    if stream:
        assert await read(await opened(given)) == ["hello", "big", "world"]
    else:
        assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 3  # no paid round was repeated
    retried = [request.headers["x-stainless-retry-count"] for request in given.provider.requests]
    assert retried == (["0", "0", "1"] if later else ["0", "1", "0"])
    assert given.call.failures == 0


@both
@sdks
async def test_the_retries_of_all_rounds_are_told(sdk: str, asynchronous: bool):
    given = rig(sdk, Fault(500), search(sdk), Fault(500), said(sdk), asynchronous=asynchronous)
    raw = await settle(given.api().with_raw_response.create(**given.request()))
    assert raw.retries_taken == 2


# -------------------------------------------------------------------------------------------------- errors

ERRORS = {400: "BadRequestError", 401: "AuthenticationError", 404: "NotFoundError", 422: "UnprocessableEntityError"}


@both
@sdks
@pytest.mark.parametrize("status", list(ERRORS))
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
async def test_errors_are_the_classes_of_the_sdk(sdk: str, asynchronous: bool, status: int, later: bool, stream: bool):
    script = [search(sdk), Fault(status)] if later else [Fault(status)]
    given = rig(sdk, *script, asynchronous=asynchronous)
    with pytest.raises(getattr(MODULES[sdk], ERRORS[status])) as caught:
        await (read(await opened(given)) if stream else settle(given.create()))
    assert caught.value.status_code == status
    assert caught.value.request_id == f"req_{int(later)}"
    assert caught.value.body is not None
    assert given.call.failures >= 1
    assert len(given.call.rounds) == int(later)
    assert all(body.closed for body in given.provider.bodies)


@both
@sdks
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (lambda request: httpx2.ReadTimeout("slow", request=request), "APITimeoutError"),
        (lambda request: httpx2.ConnectError("gone", request=request), "APIConnectionError"),
    ],
    ids=["timeout", "connection"],
)
async def test_transport_errors_are_the_classes_of_the_sdk(
    sdk: str, asynchronous: bool, later: bool, stream: bool, error: Callable[[Any], Exception], raised: str
):
    script = [search(sdk), Fault(error=error)] if later else [Fault(error=error)]
    given = rig(sdk, *script, asynchronous=asynchronous, max_retries=0)
    with pytest.raises(getattr(MODULES[sdk], raised)):
        await read(await opened(given)) if stream else await settle(given.create())
    assert given.call.failures >= 1
    assert len(given.provider.requests) == 1 + int(later)


@both
@sdks
async def test_a_call_that_failed_late_resumes_when_it_is_made_again(sdk: str, asynchronous: bool):
    given = rig(sdk, search(sdk), Fault(400), said(sdk), asynchronous=asynchronous)
    with pytest.raises(MODULES[sdk].BadRequestError):
        await settle(given.create())
    assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 3
    assert given.provider.seen[1]["messages"] == given.provider.seen[2]["messages"]


@both
@sdks
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_a_cut_stream_never_ends_quietly(sdk: str, asynchronous: bool, later: bool):
    cut = Fault(cut=said(sdk), after=4)
    given = rig(sdk, *([search(sdk), cut] if later else [cut]), asynchronous=asynchronous)
    seen: list[str] = []

    async def collect(stream: Any) -> None:
        async for item in each(stream):
            seen.extend(texts(item))

    bare = rig(sdk, cut, asynchronous=asynchronous)
    with pytest.raises(Exception) as expected:
        await collect(await settle(bare.create(bare.plain, stream=True)))
    seen.clear()
    stream = await opened(given)
    with pytest.raises(type(expected.value)):
        await collect(stream)
    assert seen[:1] == ["hello"]
    assert given.call.failures >= 1
    assert given.provider.bodies[-1].closed


@both
@sdks
async def test_a_reply_that_is_no_json_is_what_the_sdk_makes_of_it(sdk: str, asynchronous: bool):
    given = rig(sdk, said(sdk), asynchronous=asynchronous)
    content = b"<html>sorry</html>"

    def html(request: httpx2.Request) -> httpx2.Response:
        given.provider.requests.append(request)
        return httpx2.Response(200, headers={"content-type": "text/html"}, content=content)

    async def html_async(request: httpx2.Request) -> httpx2.Response:
        return html(request)

    transport = httpx2.MockTransport(html_async if asynchronous else html)
    http = httpx2.AsyncClient(transport=transport) if asynchronous else httpx2.Client(transport=transport)
    reply = await settle(given.create(given.client.with_options(http_client=http)))
    assert reply == content.decode()
    assert given.call.failures == 1


# --------------------------------------------------------------------------------------------- early ends


@both
@sdks
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_closing_closes_the_open_upstream_and_starts_nothing(sdk: str, asynchronous: bool, later: bool):
    script = [search(sdk), said(sdk)] if later else [said(sdk), search(sdk)]
    given = rig(sdk, *script, asynchronous=asynchronous)
    stream = await opened(given)
    async for item in each(stream):
        if texts(item):
            break
    await closed(stream)
    assert [body.closed for body in given.provider.bodies] == [True] * (1 + later)
    assert given.provider.bodies[-1].read < len(given.provider.bodies[-1].events)
    assert given.call.failures == 1
    assert len(given.provider.requests) == 1 + later


@both
@sdks
async def test_closing_before_reading_closes_too(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    stream = await opened(given)
    await closed(stream)
    assert [body.closed for body in given.provider.bodies] == [True]
    assert given.call.failures == 1
    assert len(given.provider.requests) == 1


@sdks
def test_leaving_the_context_early_closes(sdk: str):
    given = rig(sdk, search(sdk), said(sdk))
    with given.create(stream=True) as stream:
        next(iter(stream))
    assert all(body.closed for body in given.provider.bodies)
    assert given.call.failures == 1


@sdks
@pytest.mark.parametrize("started", [False, True])
def test_a_dropped_stream_is_closed(sdk: str, started: bool):
    given = rig(sdk, said(sdk))
    stream = given.create(stream=True)
    if started:
        next(stream)
    del stream
    gc.collect()
    assert [body.closed for body in given.provider.bodies] == [True]
    assert given.call.failures == 1


@sdks
async def test_a_stream_read_to_its_end_has_not_failed(sdk: str):
    given = rig(sdk)
    stream = given.create(stream=True)
    list(stream)
    stream.close()
    del stream
    gc.collect()
    assert given.call.failures == 0


class Slow(httpx2.AsyncByteStream):
    """A body that sends one event and then waits for good."""

    def __init__(self, first: bytes) -> None:
        self.first, self.closed = first, False
        self.waiting = asyncio.Event()

    async def __aiter__(self):
        yield self.first
        self.waiting.set()
        await asyncio.Event().wait()

    async def aclose(self) -> None:
        self.closed = True


@sdks
@pytest.mark.parametrize("how", ["cancel", "timeout"])
async def test_a_cancelled_task_closes_its_stream(sdk: str, how: str):
    given = rig(sdk, said(sdk), asynchronous=True)
    body = Slow(given.provider.events(said(sdk))[0])

    async def slow(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=body)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(slow))
    client = given.client.with_options(http_client=http)
    stream = await given.create(client, stream=True)
    task = asyncio.ensure_future(read(stream))
    if how == "cancel":
        await body.waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(task, 0.05)
    assert body.closed
    assert given.call.failures == 1


@sdks
async def test_a_task_cancelled_between_rounds_starts_nothing(sdk: str):
    given = rig(sdk, asynchronous=True)
    arrived = asyncio.Event()

    async def hang(request: httpx2.Request) -> httpx2.Response:
        if given.provider.requests:
            arrived.set()
            await asyncio.Event().wait()
        return given.provider(request)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(hang))
    task = asyncio.ensure_future(given.create(given.client.with_options(http_client=http)))
    await arrived.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert given.call.failures == 1
    assert len(given.provider.requests) == 1


@sdks
async def test_closing_while_a_round_is_on_its_way_closes_that_round(sdk: str):
    given = rig(sdk, asynchronous=True)
    on_its_way, go_on = asyncio.Event(), asyncio.Event()

    async def wait(request: httpx2.Request) -> httpx2.Response:
        if given.provider.requests:
            on_its_way.set()
            await go_on.wait()
        return given.provider(request)

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(wait))
    stream = await given.create(given.client.with_options(http_client=http), stream=True)
    task = asyncio.ensure_future(read(stream))
    await on_its_way.wait()
    await stream.close()
    go_on.set()
    with pytest.raises(httpx2.StreamClosed):  # what reading a closed response raises
        await task
    assert [body.closed for body in given.provider.bodies] == [True, True]
