"""Many calls at once on one wrapped client."""

from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from tests.adapters.doubles import LOADER, chat, message
from tests.adapters.paths import each, settle
from tests.adapters.rig import SDKS, Rig, rig, text_of, texts

sdks = pytest.mark.parametrize("sdk", SDKS)
WORKERS, CALLS = 12, 30


def echo(given: Rig) -> Any:
    """Searches once, then answers with the text of the first message, whatever is asked and in whichever order."""
    lock = threading.Lock()

    def answer(request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        make = chat if given.sdk == "openai" else message
        ready = len(body["messages"]) > 1
        reply = make(body["messages"][0]["content"]) if ready else make(None, (LOADER, {}))
        with lock:
            given.provider.requests.append(request)
        if not body.get("stream"):
            return httpx2.Response(200, stream=httpx2.ByteStream(json.dumps(reply).encode()), headers=JSON)
        return httpx2.Response(200, content=b"".join(given.provider.events(reply)), headers=SSE)

    return answer


JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}


async def one(given: Rig, client: Any, number: int) -> str:
    """One of four kinds of call; gives back the text that the caller saw."""
    body = {**given.request(), "messages": [{"role": "user", "content": f"call {number}"}]}
    api = given.api(client)
    if number % 4 == 0:
        return text_of(await settle(api.create(**body)))
    if number % 4 == 1:
        stream = await settle(api.create(**body, stream=True))
        return " ".join([text async for item in each(stream) for text in texts(item)])
    if number % 4 == 2:
        raw = await settle(api.with_raw_response.create(**body))
        return text_of(await settle(raw.parse()))
    return text_of(await settle(given.api(client.with_options(timeout=9)).create(**body)))


@sdks
def test_threads_do_not_see_each_other(sdk: str):
    given = rig(sdk)
    client = given.client.with_options(http_client=httpx2.Client(transport=httpx2.MockTransport(echo(given))))

    def work(worker: int) -> list[str]:
        return [asyncio.run(one(given, client, worker * CALLS + i)) for i in range(CALLS)]

    with ThreadPoolExecutor(WORKERS) as pool:
        seen = [text for texts in pool.map(work, range(WORKERS)) for text in texts]
    assert seen == [f"call {number}" for number in range(WORKERS * CALLS)]
    assert len(given.provider.requests) == 2 * WORKERS * CALLS
    assert all(call.failures == 0 for call in given.session.calls)


@sdks
@pytest.mark.anyio
async def test_tasks_do_not_see_each_other(sdk: str):
    given = rig(sdk, asynchronous=True)
    answer = echo(given)

    async def answer_async(request: httpx2.Request) -> httpx2.Response:
        await asyncio.sleep(0)
        return answer(request)  # type: ignore[no-any-return]

    client = given.client.with_options(http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(answer_async)))
    seen = await asyncio.gather(*(one(given, client, number) for number in range(120)))
    assert seen == [f"call {number}" for number in range(120)]
    assert all(call.failures == 0 for call in given.session.calls)
