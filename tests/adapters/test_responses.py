"""What comes back: untouched replies, raw responses, streams, and what other wrappers see of it."""

from __future__ import annotations

import gzip
import json
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from tests.adapters.doubles import chat
from tests.adapters.paths import settle
from tests.adapters.rig import ADAPTERS, MODULES, SDKS, request, rig, said, search, text_of, texts

from loadpoint._adapter import report

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)
RAW = "x-stainless-raw-response"


# --------------------------------------------------------------------------------------------- other calls


@sdks
def test_other_calls_pass_untouched(sdk: str):
    given = rig(sdk, {"data": [], "has_more": False, "object": "list"})
    given.client.models.list()
    assert given.session.requests == []
    given.client.post("/v1/other", cast_to=object, body={"a": 1})
    assert given.session.calls == []
    assert RAW not in given.provider.requests[-1].headers


@both
@sdks
async def test_a_call_of_one_request_gives_back_what_the_sdk_makes(sdk: str, asynchronous: bool):
    given = rig(sdk, said(sdk), asynchronous=asynchronous)
    reply = await settle(given.create(extra_headers={"x-loadpoint": "off"}))
    assert text_of(reply) == "hello big world"
    assert report(reply).strategy == "fake"
    assert RAW not in given.provider.requests[-1].headers
    raw = await settle(given.api().with_raw_response.create(**given.request(), extra_headers={"x-loadpoint": "off"}))
    assert report(raw).strategy == "fake"
    assert report(await settle(raw.parse())).strategy == "fake"


# ------------------------------------------------------------------------------------------- raw responses


@both
@sdks
async def test_raw_responses_have_everything(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    raw = await settle(given.api().with_raw_response.create(**given.request()))
    plain = await settle(given.api(given.plain).with_raw_response.create(**given.request()))
    assert type(raw) is type(plain)
    assert raw.status_code == 200
    assert raw.http_response.headers["x-request-id"] == "req_1"
    assert (raw.request_id or raw.headers["request-id"]) == "req_1"
    assert raw.elapsed.total_seconds() > 0
    assert "content-encoding" not in raw.headers
    assert raw.http_version == plain.http_version
    assert raw.method == "POST"
    assert raw.url == plain.url
    assert raw.http_request.headers[RAW] == plain.http_request.headers[RAW]
    assert raw.http_request.content == given.provider.requests[1].content
    parsed = await settle(raw.parse())
    assert parsed is await settle(raw.parse())
    assert report(raw) == report(parsed)


@sdks
def test_streaming_responses_are_unread_until_they_are_read(sdk: str):
    given = rig(sdk)
    with given.api().with_streaming_response.create(**given.request()) as raw:
        assert not raw.http_response.is_stream_consumed
        content = raw.read()
        assert b"hello big world" in content
        assert text_of(raw.parse()) == "hello big world"
    assert raw.is_closed
    assert raw.elapsed.total_seconds() >= 0


@sdks
@pytest.mark.parametrize("rounds", [1, 2])
def test_streaming_responses_can_be_read_raw(sdk: str, rounds: int):
    given = rig(sdk, *([search(sdk), said(sdk)][-rounds:]))
    with given.api().with_streaming_response.create(**given.request()) as raw:
        content = b"".join(raw.http_response.iter_raw())
    assert json.loads(content)["id"] == said(sdk)["id"]


@sdks
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("rounds", [1, 2])
def test_compressed_replies_are_told_uncompressed(sdk: str, stream: bool, rounds: int):
    given = rig(sdk, *([search(sdk), said(sdk)][-rounds:]))

    def compressed(sent: httpx2.Request) -> httpx2.Response:
        reply = given.provider(sent)
        headers = {**reply.headers, "content-encoding": "gzip"}
        return httpx2.Response(200, headers=headers, stream=httpx2.ByteStream(gzip.compress(reply.read())))

    client = given.client.with_options(http_client=httpx2.Client(transport=httpx2.MockTransport(compressed)))
    raw = given.api(client).with_raw_response.create(**given.request(), stream=stream)
    shown = [text for item in raw.parse() for text in texts(item)] if stream else text_of(raw.parse()).split()
    assert shown == ["hello", "big", "world"]
    if stream or rounds == 2:
        assert "content-encoding" not in raw.headers


@sdks
def test_a_stream_knows_its_response(sdk: str):
    given = rig(sdk)
    stream = given.create(stream=True)
    assert stream.response.headers["x-request-id"] == "req_0"
    assert stream.response.status_code == 200
    assert isinstance(stream, MODULES[sdk].Stream)
    assert report(stream).strategy == "fake"
    list(stream)
    assert stream.response.elapsed.total_seconds() > 0
    assert report(stream).added_rounds == 1


@sdks
def test_an_unchanged_reply_is_the_response_of_the_provider(sdk: str):
    given = rig(sdk, said(sdk))
    raw = given.api().with_raw_response.create(**given.request())
    assert raw.http_response.content == json.dumps(said(sdk)).encode()
    reply = given.create()
    assert type(reply) is type(given.create(given.plain))
    assert reply._request_id.startswith("req_")


@sdks
def test_cast_to_is_the_callers(sdk: str):
    given = rig(sdk)
    path = "/chat/completions" if sdk == "openai" else "/v1/messages"
    response = given.client.post(path, cast_to=httpx2.Response, body=given.request())
    assert isinstance(response, httpx2.Response)
    assert response.json()["id"] == said(sdk)["id"]
    assert len(given.provider.requests) == 2
    assert report(response).added_rounds == 1


def test_legacy_http_clients_get_responses_of_their_own_kind():
    """The openai SDK still takes an httpx client, and gives back httpx's responses then."""
    given = rig("openai")

    def answer(sent: httpx.Request) -> httpx.Response:
        reply = given.provider(httpx2.Request("POST", str(sent.url), headers=dict(sent.headers), content=sent.content))
        content = reply.read()
        return httpx.Response(200, headers=dict(reply.headers), stream=httpx.ByteStream(content))

    http: Any = httpx.Client(transport=httpx.MockTransport(answer))
    plain = openai.OpenAI(api_key="k", http_client=http)
    client = ADAPTERS["openai"].wrap(plain, lambda _: given.session)
    raw = given.api(client).with_raw_response.create(**given.request())
    assert isinstance(raw.http_response, httpx.Response)
    assert text_of(raw.parse()) == "hello big world"
    given.provider.requests.clear()
    stream = given.create(client, stream=True)
    assert isinstance(stream.response, httpx.Response)
    assert sum(1 for _ in stream) > 0
    assert len(given.provider.requests) == 2


def test_a_body_that_asks_for_a_stream_behind_the_sdks_back_is_spliced():
    given = rig("openai")
    text: Any = given.client.post(
        "/chat/completions", cast_to=httpx2.Response, body={**request("openai"), "stream": True}
    )
    assert text.text.count("[DONE]") == 1
    assert len(given.provider.requests) == 2


def test_the_stream_ends_where_the_sdk_stops_reading():
    """A gateway that keeps the connection open after the last event must not hold up the next round."""
    given = rig("openai")

    class Endless(httpx2.SyncByteStream):
        def __init__(self, events: list[bytes]) -> None:
            self.events, self.closed = events, False

        def __iter__(self):
            yield from self.events
            raise AssertionError("read past the last event")

        def close(self) -> None:
            self.closed = True

    bodies: list[Endless] = []

    def answer(sent: httpx2.Request) -> httpx2.Response:
        bodies.append(Endless(given.provider.events([search("openai"), said("openai")][len(bodies)])))
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=bodies[-1])

    client = given.client.with_options(http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))
    list(given.create(client, stream=True))
    assert [body.closed for body in bodies] == [True, True]


def test_the_reply_keeps_its_values():
    reply = {**chat("x"), "big": 12345678901234567890, "small": 1e-07, "text": "\u2028é"}
    given = rig("openai", search("openai"), reply)
    parsed = given.create()
    assert parsed.model_extra == {"big": 12345678901234567890, "small": 1e-07, "text": "\u2028é"}


# ------------------------------------------------------------------------------------------ other wrappers


@sdks
@pytest.mark.parametrize("stream", [False, True])
def test_instrumentation_of_request_sees_each_round_typed(sdk: str, stream: bool, monkeypatch: pytest.MonkeyPatch):
    """Tracers patch `request` on the SDK's class, before or after us, and read the typed reply from it."""
    given = rig(sdk)
    kind: Any = type(given.plain)
    original = kind.request
    seen: list[Any] = []

    def traced(self: Any, cast_to: Any, options: Any, **rest: Any) -> Any:
        value = original(self, cast_to, options, **rest)
        seen.append((cast_to, value))
        return value

    monkeypatch.setattr(kind, "request", traced)
    reply = given.create(stream=stream)
    if stream:
        list(reply)
    expected = openai.types.chat.ChatCompletion if sdk == "openai" else anthropic.types.Message
    if not stream:
        assert [cast_to for cast_to, _ in seen] == [expected, expected]
        assert [value.parse().id for _, value in seen] == [search(sdk)["id"], said(sdk)["id"]]
    assert len(seen) == 2


@sdks
def test_a_post_parser_sees_the_final_reply_once(sdk: str, monkeypatch: pytest.MonkeyPatch):
    given = rig(sdk)
    seen: list[Any] = []

    def parser(value: Any) -> Any:
        seen.append(value)
        return value

    given.provider.requests.clear()
    plain: Any = type(given.plain)
    original = plain.request

    def traced(self: Any, *args: Any, **rest: Any) -> Any:
        value = original(self, *args, **rest)
        value.parse()  # as a tracer does, of every round
        return value

    monkeypatch.setattr(plain, "request", traced)
    options = {"post_parser": parser}
    path = "/chat/completions" if sdk == "openai" else "/v1/messages"
    kind = openai.types.chat.ChatCompletion if sdk == "openai" else anthropic.types.Message
    reply = given.client.post(path, cast_to=kind, body=given.request(), options=options)
    assert len(seen) == 1
    assert seen[0] is reply
    assert text_of(reply) == "hello big world"
