"""What the transport leaves alone: it goes out byte for byte, and where there were tools the report says why."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.adapters import paths
from tests.adapters.paths import settle
from tests.adapters.test_transport import PATHS, RESEND, body, both, called, echo, libraries, opened
from tests.adapters.wire import Seen, Wire

pytestmark = pytest.mark.anyio

OTHER = b'{ "model":"m",\n "input": [1, 2.50] }'


def pieces() -> Iterator[bytes]:
    content = json.dumps(body("chat")).encode()
    yield content[:1000]
    yield content[1000:]


async def pieces_async() -> Any:
    for piece in pieces():
        yield piece


ALONE: dict[str, tuple[str, Callable[[bool], dict[str, Any]], str | None]] = {
    "another address": ("/v1/embeddings", lambda _: {"content": OTHER}, None),
    "no tools, odd spaces": ("/v1/chat/completions", lambda _: {"content": OTHER}, None),
    "no object": ("/v1/chat/completions", lambda _: {"content": b"[1, 2]"}, None),
    "no JSON at all": ("/v1/chat/completions", lambda _: {"content": b'{"tools": '}, None),
    "another kind": ("/v1/chat/completions", lambda _: {"data": {"a": "b"}}, "no JSON"),
    "multipart": ("/v1/responses", lambda _: {"files": {"file": b"\x00\xff" * 9}}, "stream"),
    "a stream": (
        "/v1/chat/completions",
        lambda asynchronous: {"content": pieces_async() if asynchronous else pieces()},
        "stream",
    ),
    "compressed": (
        "/v1/chat/completions",
        lambda _: {
            "content": gzip.compress(json.dumps(body("chat")).encode(), mtime=0),
            "headers": {"content-encoding": "gzip", "content-type": "application/json"},
        },
        "compressed",
    ),
}


@both
@libraries
@pytest.mark.parametrize(("path", "given", "reason"), ALONE.values(), ids=ALONE)
async def test_what_is_not_ours_goes_byte_for_byte(
    path: str, given: Callable[[bool], dict[str, Any]], reason: str | None, library: Any, asynchronous: bool
):
    told: list[Any] = []
    with Wire(echo) as wire:
        for way in ("bare", "client", "transport"):
            asked = given(asynchronous)
            asked["headers"] = {"content-type": "multipart/form-data; boundary=b", **asked.get("headers", {})}
            if "files" not in asked:
                asked["headers"].setdefault("accept", "*/*")
                if asked["headers"]["content-type"].startswith("multipart"):
                    asked["headers"].pop("content-type")
            if way == "bare":
                kind = library.AsyncClient if asynchronous else library.Client
                async with paths.entered(kind()) as client:
                    await settle(client.post(wire.url + path, **asked))
            else:
                async with opened(library, way, RESEND, asynchronous, on_report=told.append) as client:
                    await settle(client.post(wire.url + path, **asked))
    bare, *others = wire.seen
    assert others == [bare, bare]
    reasons = [report.reason for report in told if report.strategy != "resend"]
    assert [reason is not None and reason in said for said in reasons] == ([True, True] if reason else [])


@both
@libraries
async def test_our_headers_never_leave(library: Any, asynchronous: bool):
    ours = {"x-loadpoint": "off", "X-Loadpoint-Conversation": "7"}
    with Wire(echo) as wire:
        async with opened(library, "client", RESEND, asynchronous) as client:
            for path, sent in (("/v1/chat/completions", body("chat")), ("/v1/other", {"a": 1})):
                reply = await settle(client.post(wire.url + path, json=sent, headers=ours))
                assert json.loads(wire.seen[-1].body) == sent
                assert not [name for name in wire.seen[-1].headers if "loadpoint" in name]
            assert "choices" in reply.json()


SIGNED: dict[str, dict[str, Any]] = {
    "sigv4": {"headers": {"authorization": "AWS4-HMAC-SHA256 Credential=k/20261130/us-east-1/bedrock/aws4_request"}},
    "sigv4 in the address": {"params": {"X-Amz-Signature": "abc"}},
    "digest": {"headers": {"authorization": 'Digest username="u", nc=00000001'}},
    "rfc 9421": {"headers": {"signature-input": "sig=()", "signature": "sig=:abc:"}},
}


@both
@libraries
@pytest.mark.parametrize("given", SIGNED.values(), ids=SIGNED)
async def test_a_signed_request_passes_with_the_reason(given: dict[str, Any], library: Any, asynchronous: bool):
    told: list[Any] = []
    with Wire(echo) as wire:
        async with opened(library, "transport", RESEND, asynchronous, on_report=told.append) as client:
            await settle(client.post(wire.url + PATHS["chat"], json=body("chat"), **given))
    assert json.loads(wire.seen[0].body) == body("chat")
    assert "the request is signed" in told[0].reason
    assert len(told) == len(wire.seen) == 1


@both
@libraries
async def test_an_auth_flow_that_reads_the_body_is_a_signature(library: Any, asynchronous: bool):
    class Signing(library.Auth):  # type: ignore[misc]
        requires_request_body = True

        def auth_flow(self, request: Any) -> Any:
            request.headers["x-my-signature"] = str(sum(request.content))
            yield request

    class Bearer(library.Auth):  # type: ignore[misc]
        def auth_flow(self, request: Any) -> Any:
            request.headers["authorization"] = "Bearer k"
            yield request

    told: list[Any] = []
    with Wire(echo) as wire:
        async with opened(library, "client", RESEND, asynchronous, on_report=told.append) as client:
            await settle(client.post(wire.url + PATHS["chat"], json=body("chat"), auth=Signing()))
            await settle(client.post(wire.url + PATHS["chat"], json=body("chat"), auth=Bearer()))
    signed, driven = wire.seen
    assert signed.headers["x-my-signature"] == str(sum(signed.body))
    assert "auth= flow" in told[0].reason
    assert len(driven.body) < len(signed.body) / 2
    assert driven.headers["authorization"] == "Bearer k"


@both
@libraries
async def test_digest_authentication_works(library: Any, asynchronous: bool):
    def challenge(seen: Seen) -> tuple[int, dict[str, str], bytes]:
        if "authorization" in seen.headers:
            return echo(seen)
        return 401, {"www-authenticate": 'Digest realm="r", nonce="n", qop="auth", algorithm=MD5'}, b""

    with Wire(challenge) as wire:
        async with opened(library, "client", RESEND, asynchronous) as client:
            auth = library.DigestAuth("u", "p")
            reply = await settle(client.post(wire.url + PATHS["chat"], json=body("chat"), auth=auth))
    assert called("chat", reply.json()) == ["svc_tool_7"]
    assert json.loads(wire.seen[-1].body) == body("chat")
