"""The anthropic SDK's own `middleware=`: the second way in."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest
from tests.adapters import paths
from tests.adapters.doubles import FakeSession, Fault, Provider, message_events
from tests.adapters.paths import each, settle
from tests.adapters.rig import Rig, rig, said, search, text_of, texts
from tests.adapters.test_paths import request as asked
from tests.adapters.test_paths import searching

import loadpoint
from loadpoint import emulator
from loadpoint._adapter import report
from loadpoint_adapters.anthropic import adapter, middleware
from loadpoint_adapters.anthropic._middleware import _Middleware

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
SDK = "anthropic"


def middle(*script: Any, asynchronous: bool = False, before: Any = (), behind: Any = (), **options: Any) -> Rig:
    """A client that somebody else made, with our middleware between `before` and `behind`."""
    session = FakeSession()
    chain = [*before, _Middleware(session), *behind]
    given = rig(SDK, *script, asynchronous=asynchronous, middleware=chain, **options)
    return Rig(SDK, given.plain, given.plain, given.provider, session)


@both
@pytest.mark.parametrize(
    "walk", [w for path, ws in paths.PATHS.items() if path.startswith("anthropic:messages") for w in ws]
)
async def test_every_way_through_the_sdk_works(walk: paths.Walk, asynchronous: bool):
    server = searching()
    http = emulator.http_client("anthropic", server, asynchronous=asynchronous)
    kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
    client = kind(api_key="k", http_client=http, middleware=[middleware()])
    calls, reported = await walk(client.messages, asked(SDK))
    assert calls == paths.WANTED
    assert len(server.exchanges) == 2
    assert loadpoint.report(reported).added_rounds == 1


@both
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("later", [False, True], ids=["first", "later"])
async def test_a_retry_does_not_repeat_what_was_paid_for(asynchronous: bool, stream: bool, later: bool):
    script = [Fault(500), search(SDK), said(SDK)] if not later else [search(SDK), Fault(500), said(SDK)]
    given = middle(*script, asynchronous=asynchronous)
    if stream:
        opened = await settle(given.create(stream=True))
        assert [text async for item in each(opened) for text in texts(item)] == ["hello", "big", "world"]
    else:
        assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 3


@both
@pytest.mark.parametrize("stream", [False, True])
async def test_a_later_error_is_the_sdks_own(asynchronous: bool, stream: bool):
    given = middle(search(SDK), Fault(400), asynchronous=asynchronous)

    async def run() -> None:
        opened = await settle(given.create(stream=stream))
        async for _ in each(opened):
            pass

    with pytest.raises(anthropic.BadRequestError):
        await run()
    assert given.call.failures >= 1


@both
async def test_a_connection_error_is_retried_from_where_it_was(asynchronous: bool):
    gone = Fault(error=lambda request: httpx2.ConnectError("gone", request=request))
    given = middle(search(SDK), gone, said(SDK), asynchronous=asynchronous)
    assert text_of(await settle(given.create())) == "hello big world"
    assert len(given.provider.requests) == 3


@both
async def test_closing_closes_and_starts_nothing(asynchronous: bool):
    given = middle(asynchronous=asynchronous)
    stream = await settle(given.create(stream=True))
    await settle(stream.close())
    assert [body.closed for body in given.provider.bodies] == [True]
    assert len(given.provider.requests) == 1


@both
async def test_what_is_not_ours_passes(asynchronous: bool):
    given = middle(said(SDK), asynchronous=asynchronous)
    body = given.request()
    del body["tools"]
    await settle(given.api().create(**body, extra_headers={"x-loadpoint": "off"}))
    assert given.provider.seen == [body]
    assert "x-loadpoint" not in given.provider.requests[0].headers
    reply = await settle(given.create(extra_headers={"x-loadpoint": "off"}))
    assert report(reply).strategy == "fake"
    assert given.session.requests[-1].base_url == "https://api.anthropic.com"


@both
async def test_rounds_go_through_the_middleware_behind_and_not_before(asynchronous: bool):
    seen: list[str] = []

    class Watch(anthropic.Middleware):
        def __init__(self, name: str) -> None:
            self.name = name

        def handle(self, request: Any, call_next: Any) -> Any:
            seen.append(self.name)
            return call_next(request)

        async def handle_async(self, request: Any, call_next: Any) -> Any:
            seen.append(self.name)
            return await call_next(request)

    for stream in (False, True):
        seen.clear()
        given = middle(asynchronous=asynchronous, before=[Watch("before")], behind=[Watch("behind")])
        opened = await settle(given.create(stream=stream))
        if stream:
            async for _ in each(opened):
                pass
        assert seen == ["before", "behind", "behind"]


def test_a_value_that_other_middleware_made_up_is_handed_on():
    ready = anthropic.types.Message.model_validate(said(SDK))
    given = middle(behind=[lambda request, call_next: ready])
    assert given.create() is ready
    assert given.provider.requests == []


def test_a_wrapped_client_takes_a_round_that_other_middleware_made_up():
    replies = [anthropic.types.Message.model_validate(reply) for reply in (search(SDK), said(SDK))]
    given = rig(SDK, middleware=[lambda request, call_next: replies.pop(0)])
    assert text_of(given.create()) == "hello big world"
    assert given.provider.requests == []


def test_on_a_wrapped_client_the_middleware_stands_aside():
    given = middle(search(SDK), said(SDK))
    wrapping = FakeSession()
    client = adapter.wrap(given.plain, lambda _: wrapping)
    assert text_of(given.create(client)) == "hello big world"
    assert (len(wrapping.calls), len(given.session.calls)) == (1, 0)
    assert len(given.provider.requests) == 2


def test_a_client_that_cannot_be_told_has_no_known_endpoint():
    provider = Provider(message_events, [said(SDK)])
    session = FakeSession()
    ours = _Middleware(session)

    class Opaque:
        """Hides what it calls from everyone who looks at closures."""

        def __init__(self, call_next: Any) -> None:
            self.call_next = call_next

        def __call__(self, request: Any) -> Any:
            return self.call_next(request)

    def outer(request: Any, call_next: Any) -> Any:
        return ours.handle(request, Opaque(call_next))

    client = anthropic.Anthropic(api_key="k", http_client=provider.client(), middleware=[outer])
    client.messages.create(**asked(SDK))
    assert session.requests[0].base_url == ""


def test_the_switch_of_the_process_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOADPOINT", "nonsense")
    with pytest.raises(loadpoint.PolicyError, match="'off', 'eager'"):
        middleware()
