"""What is sent and what comes back: options, headers, bodies, raw responses, types, the caller's objects."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pydantic
import pytest
from tests.adapters.doubles import chat, message
from tests.adapters.paths import settle
from tests.adapters.rig import ADAPTERS, MODULES, SDKS, request, rig, said, search, text_of

from loadpoint._adapter import report

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
sdks = pytest.mark.parametrize("sdk", SDKS)
RAW = "x-stainless-raw-response"


# -------------------------------------------------------------------------------------------- the client


@both
@sdks
def test_the_wrapped_client_is_of_the_same_class(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    plain, client = given.plain, given.client
    assert isinstance(client, type(plain))
    assert (type(client).__name__, type(client).__module__) == (type(plain).__name__, type(plain).__module__)
    assert type(client).__qualname__ == type(plain).__qualname__
    assert type(client) is type(rig(sdk, asynchronous=asynchronous).client)
    assert client._client is plain._client  # one connection pool
    assert type(plain) is not type(client)
    assert "_loadpoint" not in vars(plain)


@sdks
def test_wrapped_clients_pickle_and_copy_like_plain_ones(sdk: str):
    given = rig(sdk)
    for client in (given.plain, given.client):
        with pytest.raises((TypeError, pickle.PicklingError)):
            pickle.dumps(client)
    assert text_of(given.create(copy.copy(given.client))) == "hello big world"
    assert len(given.provider.requests) == 2


@sdks
def test_a_callers_own_class_keeps_what_it_adds(sdk: str):
    base: Any = rig(sdk).plain.__class__

    class Mine(base):  # type: ignore[misc]
        tenant = ""

        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.tenant = "acme"

        def greeting(self) -> str:
            return f"hello {self.tenant}"

    given = rig(sdk, kind=Mine)
    given.plain.tenant = "other"
    again = ADAPTERS[sdk].wrap(given.plain, lambda _: given.session)
    assert again.greeting() == "hello other"
    assert isinstance(again, Mine)
    assert text_of(given.create(again)) == "hello big world"


@sdks
def test_a_constructor_of_the_callers_own_is_not_called(sdk: str):
    base: Any = rig(sdk).plain.__class__

    class Tenants(base):  # type: ignore[misc]
        def __init__(self, tenant: str, http_client: Any) -> None:
            super().__init__(api_key="k", http_client=http_client)
            self.tenant = tenant

    given = rig(sdk)
    plain = Tenants("acme", given.provider.client())
    given.api(plain)  # a resource that is cached now
    client = ADAPTERS[sdk].wrap(plain, lambda _: given.session)
    assert client.tenant == "acme"
    assert text_of(given.create(client)) == "hello big world"
    assert len(given.session.calls) == 1


@sdks
def test_closing_closes_the_shared_pool(sdk: str):
    given = rig(sdk)
    with given.client as client:
        assert not client.is_closed()
    assert client.is_closed()
    assert given.plain.is_closed()


@sdks
def test_unwrap_gives_the_original_and_copies_become_plain(sdk: str):
    given = rig(sdk)
    adapter = ADAPTERS[sdk]
    assert adapter.unwrap(given.client) is given.plain
    assert adapter.unwrap(given.plain) is given.plain
    plain = adapter.unwrap(given.client.with_options(max_retries=7))
    assert type(plain) is type(given.plain)
    assert plain.max_retries == 7
    given.create(plain)
    assert given.session.calls == []


@sdks
def test_copies_share_the_session_and_have_the_base_class_for_everyone_else(sdk: str):
    given = rig(sdk)
    other = given.client.with_options(timeout=1).copy(max_retries=0)
    given.create(other)
    assert len(given.session.calls) == 1
    assert type(other) is type(given.client)


def test_a_copy_keeps_credentials_that_the_sdk_gives_to_its_own_class_only():
    """The SDK hands a token provider on only if the client's class is exactly its own."""
    given = rig("anthropic", api_key=None, credentials=lambda **_: anthropic.AccessToken(token="t", expires_at=None))
    client = given.client.with_options(timeout=3)
    assert client.credentials is given.plain.credentials
    assert text_of(given.create(client)) == "hello big world"
    assert {sent.headers["authorization"] for sent in given.provider.requests} == {"Bearer t"}


# ------------------------------------------------------------------------------------------------- headers


@both
@sdks
async def test_our_headers_reach_the_session_and_never_the_provider(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    ours = {"X-Loadpoint-Conversation": "c1", "x-loadpoint": "on", "X-Mine": "1"}
    await settle(given.create(extra_headers=ours))
    seen = given.session.requests[-1].headers
    assert (seen["x-loadpoint-conversation"], seen["x-loadpoint"], seen["x-mine"]) == ("c1", "on", "1")
    for sent in given.provider.requests:
        assert not [name for name in sent.headers if name.startswith("x-loadpoint")]
        assert sent.headers["x-mine"] == "1"


@sdks
@pytest.mark.parametrize("how", ["untouched", "off"])
def test_our_headers_are_stripped_where_the_call_passes(sdk: str, how: str):
    given = rig(sdk, said(sdk))
    body = given.request()
    if how == "untouched":
        del body["tools"]
    given.api().create(**body, extra_headers={"X-Loadpoint": "off"})
    assert given.session.requests[-1].headers["x-loadpoint"] == "off"
    assert "x-loadpoint" not in given.provider.requests[0].headers
    assert given.provider.seen[0] == body


@sdks
def test_our_headers_work_as_default_headers(sdk: str):
    given = rig(sdk, said(sdk), default_headers={"x-loadpoint-conversation": "c2", "x-kept": "1"})
    given.create()
    assert given.session.requests[-1].headers["x-loadpoint-conversation"] == "c2"
    assert "x-loadpoint-conversation" not in given.provider.requests[0].headers
    assert given.provider.requests[0].headers["x-kept"] == "1"


@sdks
def test_header_edits_apply_to_every_round(sdk: str):
    given = rig(sdk, edits={"x-added": "1", "x-gone": None, "x-mine": "ours"}, default_headers={"X-Gone": "1"})
    given.create(extra_headers={"X-Mine": "theirs"})
    assert len(given.provider.requests) == 2
    for sent in given.provider.requests:
        assert sent.headers.get_list("x-mine") == ["ours"]
        assert sent.headers["x-added"] == "1"
        assert "x-gone" not in sent.headers


@sdks
def test_secrets_are_the_credential_and_not_among_the_headers(sdk: str):
    given = rig(sdk, said(sdk))
    given.create()
    given.create(extra_headers={"X-Api-Key": "other", "Authorization": "Bearer other"})
    first, second = given.session.requests
    assert "k" in first.credential.split("\n")
    assert "other" in second.credential
    assert first.credential != second.credential
    assert not {"authorization", "x-api-key"} & set(second.headers)


@sdks
def test_idempotency_keys_rotate_with_the_body_and_only_with_it(sdk: str):
    given = rig(sdk)
    sent: list[list[str]] = []
    for _ in range(2):
        given.provider.requests.clear()
        given.create(extra_headers={"Idempotency-Key": "mine"})
        sent.append([request.headers["idempotency-key"] for request in given.provider.requests])
    assert sent[0] == sent[1]
    assert len({*sent[0], "mine"}) == 3
    assert all(key.startswith("mine-") for key in sent[0])


@sdks
def test_a_body_that_stays_keeps_its_idempotency_key(sdk: str):
    given = rig(sdk, said(sdk))
    given.create(extra_headers={"Idempotency-Key": "mine", "x-loadpoint": "off"})
    assert given.provider.requests[0].headers["idempotency-key"] == "mine"


# -------------------------------------------------------------------------------------------------- bodies


@both
@sdks
async def test_extra_body_is_part_of_the_body(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    await settle(given.create(extra_body={"top_k": 3, "model": "other"}))
    assert given.session.requests[-1].body["model"] == "other"
    assert [body["top_k"] for body in given.provider.seen] == [3, 3]
    assert [body["model"] for body in given.provider.seen] == ["other", "other"]


@both
async def test_iterators_are_read_once_and_models_become_plain(asynchronous: bool):
    given = rig("anthropic", asynchronous=asynchronous)
    earlier = anthropic.types.Message.model_validate(message("earlier"))
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": earlier.content}]
    pulled: list[str] = []

    def tools():
        for name in ("a", "b"):
            pulled.append(name)
            yield {"name": name, "input_schema": {"type": "object"}}

    turns = iter([*messages, {"role": "user", "content": "b"}])
    await settle(given.api().create(model="m", max_tokens=9, messages=turns, tools=tools()))
    assert pulled == ["a", "b"]
    body = given.session.requests[-1].body
    assert json.loads(json.dumps(body)) == body
    assert body["messages"][1]["content"][0]["text"] == "earlier"
    assert [len(sent["messages"]) for sent in given.provider.seen] == [3, 4]


@both
async def test_a_passed_call_still_has_what_its_iterators_held(asynchronous: bool):
    given = rig("anthropic", said("anthropic"), asynchronous=asynchronous)
    turns = iter([{"role": "user", "content": "a"}])
    await settle(given.api().create(model="m", max_tokens=9, messages=turns))
    assert given.provider.seen[0]["messages"] == [{"role": "user", "content": "a"}]


@sdks
def test_what_only_the_sdk_can_encode_is_left_to_the_sdk(sdk: str):
    given = rig(sdk, said(sdk))
    if sdk == "openai":
        with pytest.raises(TypeError):
            given.client.post("/chat/completions", cast_to=object, body={"tools": [{1, 2}]})
        assert given.session.requests == []
    given.client.post("/x", cast_to=object, content=b"bytes")
    assert given.provider.requests[-1].content == b"bytes"
    assert given.session.requests == []


def test_models_and_dates_in_extra_body_become_what_the_sdk_makes_of_them():
    import datetime as dt

    class Extra(pydantic.BaseModel):
        a: int = 1
        b: int = 2

    given = rig("openai", said("openai"))
    day = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
    given.create(extra_body={"x": Extra(a=5), "at": day, "pair": (1, 2)})
    given.plain.chat.completions.create(**given.request(), extra_body={"x": Extra(a=5), "at": day, "pair": (1, 2)})
    ours, theirs = given.provider.seen
    assert {name: ours[name] for name in ("x", "at", "pair")} == {name: theirs[name] for name in ("x", "at", "pair")}


@sdks
def test_a_passed_request_is_the_bare_request_byte_for_byte(sdk: str):
    given = rig(sdk, said(sdk))
    body = given.request()
    del body["tools"]
    body["messages"] = [
        {"role": "user", "content": "schön \u2028 \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")}
    ]
    for client in (given.plain, given.client):
        given.api(client).create(**body, extra_body={"b": 1.0, "a": [1e30, None]})
    bare, passed = given.provider.requests
    assert bare.content == passed.content
    assert [n for n in passed.headers if n not in bare.headers] == []


@both
@sdks
async def test_the_callers_objects_are_left_as_they_were(sdk: str, asynchronous: bool):
    given = rig(sdk, asynchronous=asynchronous)
    body = given.request()
    headers = {"X-Loadpoint": "on", "Idempotency-Key": "i"}
    extra = {"top_k": 1}
    before = copy.deepcopy((body, headers, extra))
    await settle(given.api().create(**body, extra_headers=headers, extra_body=extra))
    assert (body, headers, extra) == before
    sent = given.session.requests[-1].body
    assert sent["messages"] is not body["messages"]
    assert sent["tools"][0] is not body["tools"][0]


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
def test_a_post_parser_sees_the_final_reply_once(sdk: str):
    given = rig(sdk)
    seen: list[Any] = []

    def parser(value: Any) -> Any:
        seen.append(value)
        return value

    options = {"post_parser": parser}
    path = "/chat/completions" if sdk == "openai" else "/v1/messages"
    kind = openai.types.chat.ChatCompletion if sdk == "openai" else anthropic.types.Message
    reply = given.client.post(path, cast_to=kind, body=given.request(), options=options)
    assert len(seen) == 1
    assert seen[0] is reply
    assert text_of(reply) == "hello big world"
