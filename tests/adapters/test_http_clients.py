"""Wrapping clients of httpx and httpx2: what is shared, what is not, and the private names that it leans on."""

from __future__ import annotations

import gc
import sys
from typing import Any

import httpx
import httpx2
import pytest
from tests.adapters import paths
from tests.adapters.paths import settle
from tests.adapters.test_transport import LIBRARIES, PATHS, RESEND, body, both, called, libraries
from tests.adapters.wire import Seen, Wire

import loadpoint
from loadpoint import Policy
from loadpoint._adapter import dialects as every_dialect
from loadpoint_adapters.httpx import Transport, adapter, transport
from loadpoint_adapters.httpx import _compat as compat
from loadpoint_adapters.httpx._adapter import speaks

pytestmark = pytest.mark.anyio


def fine(_: Seen) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/json", "set-cookie": "seen=1"}, b'{"choices": []}'


def kind_of(library: Any, asynchronous: bool) -> Any:
    return library.AsyncClient if asynchronous else library.Client


@both
@libraries
async def test_the_type_and_the_settings_stay(library: Any, asynchronous: bool):
    kind = kind_of(library, asynchronous)
    given = {"base_url": "https://x.example/v1/", "timeout": 7, "params": {"a": "1"}, "follow_redirects": True}
    async with paths.entered(kind(headers={"x-mine": "1"}, cookies={"c": "1"}, auth=("u", "p"), **given)) as client:
        del client.headers["user-agent"]
        wrapped = loadpoint.wrap(client)
        assert isinstance(wrapped, kind)
        assert (type(wrapped).__name__, type(wrapped).__module__) == (kind.__name__, kind.__module__)
        for name in ("base_url", "timeout", "params", "follow_redirects", "auth", "headers", "trust_env"):
            assert getattr(wrapped, name) == getattr(client, name), name
        assert dict(wrapped.cookies) == dict(client.cookies) == {"c": "1"}
        assert type(wrapped) is type(loadpoint.wrap(kind())) is not kind


@both
@libraries
async def test_the_argument_is_untouched(library: Any, asynchronous: bool):
    hooked: list[Any] = []
    hook = hooked.append

    async def hook_async(request: Any) -> None:
        hook(request)

    with Wire(fine) as wire:
        async with paths.entered(kind_of(library, asynchronous)(event_hooks={"request": []})) as client:
            wrapped = loadpoint.wrap(client, RESEND)
            wrapped.headers["x-more"] = "1"
            wrapped.cookies.set("mine", "1")
            wrapped.event_hooks["request"].append(hook_async if asynchronous else hook)
            wrapped.timeout = 3
            await settle(wrapped.post(wire.url + PATHS["chat"], json=body("chat")))
            assert "x-more" not in client.headers
            assert dict(client.cookies) == {}
            assert client.timeout != wrapped.timeout
            assert len(hooked) == 1
            await settle(client.post(wire.url + PATHS["chat"], json=body("chat")))
    small, whole = wire.seen
    assert len(small.body) < len(whole.body) / 2
    assert len(hooked) == 1  # a round is no request of the client's
    assert wire.connections == 1  # one pool


@both
@libraries
async def test_wrapping_twice_is_wrapping_once_with_the_newer_settings(library: Any, asynchronous: bool):
    told: list[str] = []
    with Wire(fine) as wire:
        async with paths.entered(kind_of(library, asynchronous)()) as client:
            first = loadpoint.wrap(client, RESEND, on_report=lambda _: told.append("first"))
            second = loadpoint.wrap(first, Policy(strategy="eager"), on_report=lambda _: told.append("second"))
            reply = await settle(second.post(wire.url + PATHS["chat"], json=body("chat")))
            assert loadpoint.unwrap(second) is loadpoint.unwrap(first) is loadpoint.unwrap(client) is client
    assert told == ["second"]
    assert loadpoint.report(reply).strategy == "eager"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="newer Pythons keep the last client alive: not understood yet")
@libraries
def test_a_class_that_closes_its_pool_when_it_goes(library: Any):
    """As those of the SDKs do: the pool is the original client's as well."""

    class Closing(library.Client):  # type: ignore[misc]
        def __del__(self) -> None:
            if not self.is_closed:
                closed.append(type(self))
                self.close()

    closed: list[Any] = []
    with Wire(fine) as wire:
        client = Closing()
        wrapped = loadpoint.wrap(client, RESEND)
        wrapped.post(wire.url + PATHS["chat"], json=body("chat"))
        del wrapped
        gc.collect()
        assert closed == []
        client.post(wire.url + PATHS["chat"], json=body("chat"))
        wrapped = loadpoint.wrap(client, RESEND)
        del client
        gc.collect()
        assert closed == []
        wrapped.post(wire.url + PATHS["chat"], json=body("chat"))
        assert wire.connections == 1
        wrapped.close()
        del wrapped
        gc.collect()
        assert closed == [Closing]


@both
@libraries
async def test_mounts_are_the_clients_own(library: Any, asynchronous: bool):
    def answer(request: Any) -> Any:
        return library.Response(200, json={"choices": [], "via": request.url.host, "size": len(request.content)})

    async def answer_async(request: Any) -> Any:
        return answer(request)

    mock = library.MockTransport(answer_async if asynchronous else answer)
    async with paths.entered(kind_of(library, asynchronous)(mounts={"all://a.example": mock})) as client:
        wrapped = loadpoint.wrap(client, RESEND)
        reply = await settle(wrapped.post("https://a.example/v1/chat/completions", json=body("chat")))
    assert reply.json()["via"] == "a.example"
    assert reply.json()["size"] < 6_000
    assert loadpoint.report(reply).strategy == "resend"


@pytest.mark.parametrize("switch", ["off", "eager"])
def test_the_switch_of_the_process(switch: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOADPOINT", switch)
    with Wire(fine) as wire:
        for client in (loadpoint.wrap(httpx2.Client(), RESEND), httpx2.Client(transport=transport(RESEND))):
            with client:
                client.post(wire.url + PATHS["chat"], json=body("chat"))
    assert len({len(seen.body) for seen in wire.seen}) == 1
    assert len(wire.seen[0].body) > 40_000
    monkeypatch.setenv("LOADPOINT", "nonsense")
    with pytest.raises(loadpoint.PolicyError):
        transport()


def test_a_using_block_holds():
    with Wire(fine) as wire, loadpoint.wrap(httpx2.Client(), RESEND) as client:
        with loadpoint.using(Policy(strategy="eager")):
            client.post(wire.url + PATHS["chat"], json=body("chat"))
        client.post(wire.url + PATHS["chat"], json=body("chat"))
        with loadpoint.using(Policy(search="hosted", confirm="model")):  # no session can do both: it raises
            reply = client.post(wire.url + PATHS["chat"], json=body("chat"))
    assert [len(seen.body) > 40_000 for seen in wire.seen] == [True, False]
    assert (reply.status_code, reply.json()["error"]["type"]) == (422, "PolicyError")
    assert isinstance(reply.extensions["loadpoint.error"], loadpoint.PolicyError)


# ------------------------------------------------------------------------------------------------ the transport


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"retires": 1}, "retires is not usable; allowed: cert, http1"),
        ({"inner": httpx2.HTTPTransport(), "http2": True}, "http2 is not usable; allowed: none beside inner="),
    ],
)
def test_options_are_told_at_once(given: dict[str, Any], words: str):
    with pytest.raises(TypeError, match=words):
        transport(**given)


def test_one_transport_under_both_libraries():
    made = transport(RESEND)
    with Wire(fine) as wire:
        for library in LIBRARIES.values():
            client = library.Client(transport=made)
            assert type(client.post(wire.url + PATHS["chat"], json=body("chat"))) is library.Response
        made.close()
        assert made._pools == {}
    assert all(len(seen.body) < 6_000 for seen in wire.seen)


@both
@libraries
async def test_closing_closes_what_it_has_sent_by(library: Any, asynchronous: bool):
    class Inner(library.AsyncHTTPTransport if asynchronous else library.HTTPTransport):  # type: ignore[misc]
        closed = 0

        def close(self) -> None:
            self.closed += 1
            super().close()

        async def aclose(self) -> None:
            self.closed += 1
            await super().aclose()

    inner = Inner()
    client = kind_of(library, asynchronous)(transport=transport(RESEND, inner=inner))
    await settle(client.aclose() if asynchronous else client.close())
    assert inner.closed == 1
    made = transport(RESEND)
    with Wire(fine) as wire:
        async with paths.entered(kind_of(library, asynchronous)(transport=made)) as client:
            await settle(client.post(wire.url + PATHS["chat"], json=body("chat")))
            (pool,) = made._pools.values()
            assert not pool.is_closed
        assert pool.is_closed


def test_dialects_of_other_peoples_adapters_are_spoken(monkeypatch: pytest.MonkeyPatch):
    from loadpoint import _adapter
    from loadpoint_adapters._dialects.openai_chat import OpenAIChat

    class Acme(OpenAIChat):
        name = "acme.chat"

        def operation(self, method: str, path: str, body: Any) -> str | None:
            return "create" if path.endswith("/acme") else None

    class Adapter:
        name = "acme"

        def dialects(self) -> Any:
            return (Acme(), OpenAIChat("system_tools"))

        def matches(self, client: object) -> bool:
            return False

        def wrap(self, client: Any, session_factory: Any) -> Any:
            raise AssertionError

        def unwrap(self, client: Any) -> Any:
            raise AssertionError

    monkeypatch.setitem(_adapter._adapters, "acme", Adapter())
    spoken = {dialect.name: dialect for dialect in speaks()}
    assert set(spoken) == {"acme.chat", "openai.chat", "openai.responses", "anthropic.messages"}
    assert spoken["openai.chat"].load_point is None
    assert {"acme.chat", "openai.chat", "openai.responses", "anthropic.messages"} <= {d.name for d in every_dialect()}
    with Wire(fine) as wire, loadpoint.wrap(httpx2.Client(), RESEND) as client:
        client.post(wire.url + "/acme", json=body("chat"))
    assert len(wire.seen[0].body) < 6_000


# ------------------------------------------------------------------------------------------------- private names


@libraries
def test_the_private_names_are_there(library: Any):
    for kind in (library.Client, library.AsyncClient):
        for name in ("_transport_for_url", "_build_request_auth", "_init_transport", "_init_proxy_transport"):
            assert callable(getattr(kind, name)), name
    with library.Client(trust_env=False) as client:
        assert compat.transport_for(client, library.URL("https://x.example")) is client._transport
        assert compat.library(client.build_request("GET", "https://x.example")) is library


@libraries
def test_what_only_a_transport_takes_reaches_proxies_too(library: Any):
    with compat.pool(
        library, {"proxy": "http://127.0.0.1:9", "retries": 3, "http2": False}, asynchronous=False
    ) as made:
        direct, proxied = made._transport, compat.transport_for(made, library.URL("http://x.example"))
    assert direct is not proxied
    assert direct._pool._retries == 3
    assert type(proxied._pool).__name__ == "HTTPProxy"


def test_what_belongs_to_neither_library():
    assert not adapter.matches(object())
    with pytest.raises(TypeError, match="neither httpx nor httpx2"):
        compat.library(object())
    assert adapter.matches(httpx.Client()) and adapter.matches(httpx2.AsyncClient())  # noqa: PT018
    assert isinstance(transport(), Transport)
    assert called("chat", {"choices": [{"message": {"tool_calls": []}}]}) == []
