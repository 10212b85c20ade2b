"""The wrapped client, and what it sends: headers, bodies, the caller's objects."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import anthropic
import pydantic
import pytest
from tests.adapters.doubles import message
from tests.adapters.paths import settle
from tests.adapters.rig import ADAPTERS, SDKS, rig, said, text_of

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
