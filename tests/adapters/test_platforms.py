"""The client classes of the clouds: their URLs, their signatures, their stream framing."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from anthropic.lib.bedrock import AnthropicBedrock, AsyncAnthropicBedrock
from anthropic.lib.vertex import AnthropicVertex, AsyncAnthropicVertex
from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
from botocore.credentials import Credentials  # type: ignore[import-untyped]
from botocore.eventstream import EventStreamBuffer  # type: ignore[import-untyped]
from tests.adapters.doubles import Fault, message_events
from tests.adapters.paths import each, settle
from tests.adapters.rig import Rig, rig, said, search, text_of, texts

from loadpoint_adapters.anthropic._eventstream import EventStream, message

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
AWS: dict[str, Any] = {
    "aws_access_key": "AKIAEXAMPLE",
    "aws_secret_key": "secret",
    "aws_region": "eu-west-1",
    "api_key": None,
}


def bedrock(*script: Any, asynchronous: bool = False, **more: Any) -> Rig:
    kind: Any = AsyncAnthropicBedrock if asynchronous else AnthropicBedrock
    return rig("anthropic", *script, asynchronous=asynchronous, kind=kind, **AWS, **more)


def signed_again(request: httpx2.Request) -> str:
    """The authorization that botocore computes for what was sent."""
    given = request.headers["authorization"]
    signed = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name: request.headers[name] for name in signed if name != "host"}
    again = AWSRequest("POST", str(request.url), headers=headers, data=request.content)
    auth = SigV4Auth(Credentials("AKIAEXAMPLE", "secret"), "bedrock", "eu-west-1")
    again.context["timestamp"] = request.headers["x-amz-date"]
    return str(auth.signature(auth.string_to_sign(again, auth.canonical_request(again)), again))


# ------------------------------------------------------------------------------------------------- bedrock


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_every_round_is_signed_as_it_is_sent(asynchronous: bool, stream: bool):
    given = bedrock(asynchronous=asynchronous)
    if stream:
        serve_event_stream(given)
        shown = [text async for item in each(await settle(given.create(stream=True))) for text in texts(item)]
        assert shown == ["hello", "big", "world"]
    else:
        assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 2
    for sent in given.provider.requests:
        assert sent.url.path == f"/model/m/invoke{'-with-response-stream' if stream else ''}"
        assert sent.headers["authorization"].endswith(f"Signature={signed_again(sent)}")
        assert "model" not in json.loads(sent.content)
    assert given.call.body["model"] == "m"  # the SDK took it from its own copy


@both
async def test_bedrock_reads_beta_headers_of_the_request(asynchronous: bool):
    given = bedrock(asynchronous=asynchronous, edits={"anthropic-beta": "a,b"})
    await settle(given.create())
    assert [json.loads(sent.content)["anthropic_beta"] for sent in given.provider.requests] == [["a", "b"]] * 2


def serve_event_stream(given: Rig) -> None:
    """Let the provider answer with AWS event-stream messages."""

    def framed(reply: dict[str, Any]) -> list[bytes]:
        data = [event.decode().partition("data: ")[2].strip() for event in message_events(reply)]
        return [message(text) for text in data]

    given.provider.events = framed
    provider = given.provider

    def answer(request: httpx2.Request) -> httpx2.Response:
        response = provider(request)
        response.headers["content-type"] = "application/vnd.amazon.eventstream"
        return response

    async def answer_async(request: httpx2.Request) -> httpx2.Response:
        return answer(request)

    client = given.client
    asynchronous = isinstance(client._client, httpx2.AsyncClient)
    http: Any = httpx2.AsyncClient if asynchronous else httpx2.Client
    transport = httpx2.MockTransport(answer_async if asynchronous else answer)
    given.client = client.with_options(http_client=http(transport=transport))


def test_messages_are_what_botocore_reads():
    text = json.dumps({"type": "message_stop", "text": "é"})
    buffer: Any = EventStreamBuffer()
    buffer.add_data(message(text))
    (event,) = list(buffer)
    assert event.headers[":event-type"] == "chunk"
    assert base64.b64decode(json.loads(event.payload)["bytes"]).decode() == text


@pytest.mark.parametrize("size", [1, 7, 50, 10_000])
def test_messages_may_be_cut_anywhere(size: int):
    events = [event.decode().partition("data: ")[2].strip() for event in message_events(said("anthropic"))]
    wire = b"".join(map(message, events))
    framing = EventStream()
    read = b"".join(framing.read(wire[at : at + size]) for at in range(0, len(wire), size))
    assert read == b"".join(message_events(said("anthropic")))
    assert framing.show([read]) == wire
    assert framing.show([]) == b""


def exception_message(kind: str, text: str) -> bytes:
    """An exception as the service frames it."""
    headers = b"".join(
        bytes([len(n)]) + n.encode() + b"\x07" + struct.pack(">H", len(v)) + v.encode()
        for n, v in ((":exception-type", kind), (":content-type", "application/json"), (":message-type", "exception"))
    )
    payload = json.dumps({"message": text}).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    head = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return head + struct.pack(">I", zlib.crc32(head))


@both
async def test_an_exception_inside_the_stream_is_the_sdks_error(asynchronous: bool):
    given = bedrock(search("anthropic"), Fault(cut=said("anthropic"), after=4), asynchronous=asynchronous)
    serve_event_stream(given)
    framed = given.provider.events
    throttled = exception_message("throttlingException", "too many")
    given.provider.events = lambda reply: (
        [*framed(reply)[:3], throttled] if reply == said("anthropic") else framed(reply)
    )
    with pytest.raises(anthropic.APIStatusError, match="too many"):
        async for _ in each(await settle(given.create(stream=True))):
            pass
    assert given.call.failures >= 1


# -------------------------------------------------------------------------------------------- vertex, azure


@both
async def test_vertex_keeps_its_urls(asynchronous: bool):
    kind: Any = AsyncAnthropicVertex if asynchronous else AnthropicVertex
    options: dict[str, Any] = {"region": "europe-west1", "project_id": "p", "access_token": "t", "api_key": None}
    provider_options: dict[str, Any] = {name: value for name, value in options.items() if name != "api_key"}

    def build(**given: Any) -> Any:
        given.pop("api_key")
        return kind(**given)

    given = rig("anthropic", asynchronous=asynchronous, kind=build, **provider_options)
    assert text_of(await settle(given.create())) == "hello big world"
    paths = {sent.url.path for sent in given.provider.requests}
    assert paths == {"/v1/projects/p/locations/europe-west1/publishers/anthropic/models/m:rawPredict"}
    assert isinstance(given.client, kind)
    assert given.session.requests[0].credential.split("\n").count("p") == 1


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_azure_keeps_its_urls_and_its_key(asynchronous: bool, stream: bool):
    kind: Any = openai.AsyncAzureOpenAI if asynchronous else openai.AzureOpenAI
    options: dict[str, Any] = {"azure_endpoint": "https://x.openai.azure.com", "api_version": "2025-01-01"}
    given = rig("openai", asynchronous=asynchronous, kind=kind, **options)
    client = given.client.with_options(max_retries=1)
    if stream:
        shown = [text async for item in each(await settle(given.create(client, stream=True))) for text in texts(item)]
        assert shown == ["hello", "big", "world"]
    else:
        assert text_of(await settle(given.create(client))) == "hello big world"
    for sent in given.provider.requests:
        assert sent.url.path == "/openai/deployments/m/chat/completions"
        assert sent.url.params["api-version"] == "2025-01-01"
        assert sent.headers["api-key"] == "k"
    assert given.session.requests[0].base_url == "https://x.openai.azure.com/openai/"


def test_renewed_tokens_do_not_change_who_the_caller_is():
    tokens = iter(["one", "two", "three", "four"])
    options: dict[str, Any] = {"azure_endpoint": "https://x.openai.azure.com", "api_version": "2025-01-01"}
    given = rig(
        "openai",
        said("openai"),
        kind=openai.AzureOpenAI,
        api_key=None,
        azure_ad_token_provider=lambda: next(tokens),
        **options,
    )
    given.create()
    given.create()
    sent = [request.headers["authorization"] for request in given.provider.requests]
    assert sent == ["Bearer one", "Bearer two"]
    first, second = (request.credential for request in given.session.requests)
    assert first == second
    assert "one" not in first


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_of_the_openai_sdk_signs_what_is_sent(asynchronous: bool, stream: bool):
    provider = pytest.importorskip("openai.providers").bedrock(
        region="eu-west-1", access_key_id="AKIAEXAMPLE", secret_access_key="secret"
    )
    given = rig("openai", asynchronous=asynchronous, api_key=None, provider=provider)
    reply = await settle(given.create(given.client.with_options(timeout=3), stream=stream))
    shown = [text async for item in each(reply) for text in texts(item)] if stream else text_of(reply).split()
    assert shown == ["hello", "big", "world"]
    assert len(given.provider.requests) == 2
    for sent in given.provider.requests:
        assert sent.headers["x-amz-content-sha256"] == hashlib.sha256(sent.content).hexdigest()


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AnthropicFoundry", {"resource": "r", "api_key": "k"}),
        ("AnthropicBedrockMantle", {"aws_region": "eu-west-1", "api_key": "k"}),
    ],
)
def test_the_other_platforms_are_wrapped_alike(name: str, options: dict[str, Any]):
    kind = getattr(anthropic, name)
    given = rig("anthropic", kind=kind, **options)
    assert isinstance(given.client, kind)
    assert text_of(given.create()) == "hello big world"
    assert (
        text_of(given.create(given.client.with_options(timeout=3, http_client=given.plain._client)))
        == "hello big world"
    )
    hosts = {hashlib.sha256(sent.url.host.encode()).hexdigest() for sent in given.provider.requests}
    assert len(hosts) == 1
