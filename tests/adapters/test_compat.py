"""One test for each name of an SDK that is not public and that an adapter leans on."""

from __future__ import annotations

import inspect
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic._models import FinalRequestOptions as AnthropicOptions
from openai._models import FinalRequestOptions as OpenAIOptions
from tests.adapters.rig import ADAPTERS, MODULES, SDKS, rig, said

from loadpoint_adapters._exchange import RAW
from loadpoint_adapters.anthropic._compat import client_behind, is_response, rewrapped, without

sdks = pytest.mark.parametrize("sdk", SDKS)
OPTIONS: dict[str, Any] = {"openai": OpenAIOptions, "anthropic": AnthropicOptions}


def bases(sdk: str) -> tuple[Any, Any]:
    compat = MODULES[sdk]._base_client
    return compat.SyncAPIClient, compat.AsyncAPIClient


@sdks
def test_final_request_options_have_the_fields(sdk: str):
    fields = OPTIONS[sdk].model_fields
    assert {
        "method",
        "url",
        "headers",
        "json_data",
        "extra_json",
        "files",
        "content",
        "idempotency_key",
        "post_parser",
    } <= set(fields)
    made = OPTIONS[sdk].construct(method="post", url="/x", json_data={"a": 1})
    copied = made.model_copy()
    copied.headers = {"a": "b"}
    assert isinstance(made.headers, MODULES[sdk]._types.NotGiven)
    assert isinstance(made.post_parser, MODULES[sdk]._types.NotGiven)


@sdks
def test_every_call_ends_in_request(sdk: str):
    for base in bases(sdk):
        parameters = list(inspect.signature(base.request).parameters)
        assert parameters == ["self", "cast_to", "options", "stream", "stream_cls"]
        for name in ("post", "get", "put", "patch", "delete", "get_api_list"):
            source = inspect.getsource(getattr(base, name))
            assert "self.request(" in source or "self._request_api_list(" in source


@sdks
def test_process_response_takes_what_it_is_given(sdk: str):
    expected = ["self", "cast_to", "options", "response", "stream", "stream_cls", "retries_taken"]
    for base in bases(sdk):
        assert list(inspect.signature(base._process_response).parameters) == expected
    assert not inspect.iscoroutinefunction(bases(sdk)[0]._process_response)
    assert inspect.iscoroutinefunction(bases(sdk)[1]._process_response)


@sdks
def test_the_type_to_parse_into_can_be_overridden_by_a_header(sdk: str):
    client = rig(sdk).plain
    name = MODULES[sdk]._constants.OVERRIDE_CAST_TO_HEADER
    options = OPTIONS[sdk].construct(method="post", url="/x", headers={name: int, "a": "b"})
    assert client._maybe_override_cast_to(str, options) is int
    assert options.headers == {"a": "b"}


@sdks
def test_the_raw_header_has_its_name_and_value(sdk: str):
    assert MODULES[sdk]._constants.RAW_RESPONSE_HEADER == RAW
    given = rig(sdk, said(sdk))
    given.api(given.plain).with_raw_response.create(**given.request())
    assert given.provider.requests[0].headers[RAW] == ADAPTERS[sdk].compat.raw
    headers = {RAW: ADAPTERS[sdk].compat.raw}
    options = OPTIONS[sdk].construct(method="post", url="/x", json_data={}, headers=headers)
    raw = given.plain.request(object, options)
    assert isinstance(raw.http_response, httpx2.Response)
    assert raw.retries_taken == 0


@sdks
def test_omit_removes_a_header(sdk: str):
    given = rig(sdk, said(sdk), default_headers={"X-Gone": "1"})
    given.client.post("/x", cast_to=object, body={}, options={"headers": {"X-Gone": ADAPTERS[sdk].compat.omit()}})
    assert "x-gone" not in given.provider.requests[0].headers


@sdks
def test_the_http_client_has_its_name(sdk: str):
    given = rig(sdk)
    assert ADAPTERS[sdk].compat.pool(given.plain) is given.plain._client


@sdks
def test_clients_keep_the_headers_they_were_given(sdk: str):
    client = rig(sdk, default_headers={"X-Mine": "1"}).plain
    assert dict(ADAPTERS[sdk].compat.client_headers(client)) == {"X-Mine": "1"}


@sdks
def test_asynchronous_is_a_matter_of_the_class(sdk: str):
    compat = ADAPTERS[sdk].compat
    assert [compat.asynchronous(type(rig(sdk, asynchronous=a).client)) for a in (False, True)] == [False, True]
    # the methods deceive: a decorated one is no coroutine function
    method = rig(sdk, asynchronous=True).plain
    api = method.chat.completions if sdk == "openai" else method.messages
    assert inspect.iscoroutinefunction(api.create) in {True, False}


@pytest.mark.parametrize("name", ["_api_key_provider", "_azure_ad_token", "_azure_ad_token_provider"])
def test_openai_clients_say_where_their_tokens_come_from(name: str):
    plain: Any = openai.OpenAI(api_key=lambda: "t")
    azure: Any = openai.AzureOpenAI(azure_ad_token="t", azure_endpoint="https://x", api_version="v")
    assert any(hasattr(client, name) for client in (plain, azure))


def test_openai_makes_bodies_plain_before_request():
    seen: list[Any] = []

    class Spy(openai.OpenAI):
        def request(self, cast_to: Any, options: Any, **rest: Any) -> Any:
            seen.append(options.json_data)
            return super().request(cast_to, options, **rest)

    given = rig("openai", said("openai"), kind=Spy)
    reply = given.create(given.plain)
    messages = iter([{"role": "user", "content": "a"}, reply.choices[0].message])
    given.api(given.plain).create(model="m", messages=messages, tools=openai.omit)
    assert seen[-1]["messages"][1]["content"] == "hello big world"
    assert "tools" not in seen[-1]


def test_anthropic_prepares_bodies_once():
    client = rig("anthropic").plain
    body = {"tools": iter([{"name": "a"}]), "x": anthropic.omit, "y": anthropic.NOT_GIVEN}
    options = AnthropicOptions.construct(method="post", url="/x", json_data=body, extra_json={"z": 1})
    once = client._copy_and_prepare(options)
    again = client._copy_and_prepare(once)
    assert once.json_data == again.json_data == {"tools": [{"name": "a"}], "z": 1}
    assert set(body) == {"tools", "x", "y"}
    assert inspect.iscoroutinefunction(anthropic.AsyncAnthropic._copy_and_prepare)


def test_anthropic_asks_for_the_exact_class():
    """Why copies are made by a client of the caller's own class."""
    assert "type(client) in" in inspect.getsource(anthropic._client._is_base_client)


def test_a_middleware_chain_closes_over_its_client_and_responses_can_be_rewrapped():
    seen: list[Any] = []

    def look(request: Any, call_next: Any) -> Any:
        seen.append(client_behind(call_next))
        result = call_next(request)
        assert is_response(result)
        again = rewrapped(result, result.http_response, request.options)
        assert type(again) is type(result)
        assert again.parse() == result.parse()
        seen.append(without(result, look))  # type: ignore[arg-type]
        return again

    def behind(request: Any, call_next: Any) -> Any:
        return call_next(request)

    given = rig("anthropic", said("anthropic"), middleware=[look, behind])
    given.create(given.plain)
    assert seen[0] is given.plain
    assert list(seen[1].middleware) == [behind]


@pytest.mark.anyio
async def test_an_asynchronous_chain_closes_over_its_client_too():
    seen: list[Any] = []

    async def look(request: Any, call_next: Any) -> Any:
        seen.append(client_behind(call_next))
        return await call_next(request)

    given = rig("anthropic", said("anthropic"), asynchronous=True, middleware=[look])
    await given.create(given.plain)
    assert seen == [given.plain]


def test_what_closes_over_nothing_has_no_client_behind_it():
    loop: list[Any] = []

    def endless() -> Any:
        return loop, endless

    loop.append(endless)
    assert client_behind(endless) is None
    assert client_behind(3) is None


@sdks
def test_a_raw_response_keeps_what_it_was_parsed_into(sdk: str):
    made = rig(sdk, said(sdk))
    raw = made.api(made.plain).with_raw_response.create(**made.request(), stream=True)
    compat = ADAPTERS[sdk].compat
    assert compat.watched(raw) is None
    stream = raw.parse()
    assert compat.watched(raw) is stream
    stream.close()
