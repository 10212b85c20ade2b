"""Responses that the server keeps, asked for by the id that the caller was shown."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.adapters.paths import each, entered, settle
from tests.adapters.test_response_paths import TOOL, client, request, served

import loadpoint
from loadpoint.emulator import Emulator, Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
paths = pytest.mark.parametrize("api", ["responses", "beta.responses"])


def asked(server: Emulator) -> list[tuple[str, str]]:
    """Method and path of every request behind the two of the call."""
    return [(exchange.method, exchange.path) for exchange in server.exchanges[2:]]


async def streamed(asynchronous: bool, **given: Any) -> tuple[Emulator, Any, str, str]:
    """A streamed call with a hidden round: the server, the client, the id that was shown, that of the last round."""
    server = served(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}), Move(text="done"))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), **given)
    async with entered(wrapped.responses.stream(**request())) as events:
        assert [event async for event in each(events)]
        reply = await settle(events.get_final_response())
    last = str((server.exchanges[1].reply or {})["id"])
    assert reply.id != last
    return server, wrapped, reply.id, last


def resource(wrapped: Any, api: str) -> Any:
    for name in api.split("."):
        wrapped = getattr(wrapped, name)
    return wrapped


@both
@paths
async def test_a_streamed_reply_is_found_by_the_id_that_was_shown(api: str, asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    found = await settle(resource(wrapped, api).retrieve(shown))
    assert found.id == shown
    assert [(item.type, item.name) for item in found.output] == [("function_call", TOOL)]
    assert asked(server) == [("GET", f"/v1/responses/{last}")]


@both
async def test_raw_and_streaming_ways_of_it(asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    raw = await settle(wrapped.responses.with_raw_response.retrieve(shown))
    assert (raw.status_code, raw.parse().id) == (200, shown)
    async with entered(wrapped.responses.with_streaming_response.retrieve(shown)) as found:
        assert (await settle(found.parse())).id == shown
    assert asked(server) == [("GET", f"/v1/responses/{last}")] * 2


@both
async def test_a_stored_reply_is_streamed_under_the_id_that_was_shown(asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    stream = await settle(wrapped.responses.retrieve(shown, stream=True))
    events = [event async for event in each(stream)]
    ids = {event.response.id for event in events if hasattr(event, "response")}
    assert ids == {shown}
    assert events[-1].type == "response.completed"
    assert last not in "".join(event.to_json() for event in events)
    assert asked(server) == [("GET", f"/v1/responses/{last}")]


@both
@paths
async def test_what_was_sent_is_listed_page_by_page(api: str, asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    page = await settle(resource(wrapped, api).input_items.list(shown, limit=1))
    kinds = [item.type async for item in each(page)]
    assert kinds == ["tool_search_output", "tool_search_call", "message"]
    assert {path for _, path in asked(server)} == {f"/v1/responses/{last}/input_items"}
    assert len(asked(server)) == 3


@both
@paths
async def test_a_reply_is_deleted_by_the_id_that_was_shown(api: str, asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    assert await settle(resource(wrapped, api).delete(shown)) is None
    assert asked(server) == [("DELETE", f"/v1/responses/{last}")]
    with pytest.raises(openai.NotFoundError):
        await settle(resource(wrapped, api).retrieve(shown))


@both
async def test_a_cancel_is_asked_by_the_servers_id_and_its_error_is_the_callers(asynchronous: bool) -> None:
    server, wrapped, shown, last = await streamed(asynchronous)
    with pytest.raises(openai.BadRequestError, match="synchronous"):
        await settle(wrapped.responses.cancel(shown))
    assert asked(server) == [("POST", f"/v1/responses/{last}/cancel")]


@both
async def test_an_id_is_known_after_a_restart_with_the_same_ledger(asynchronous: bool) -> None:
    ledger = loadpoint.InProcessLedger()
    server, _, shown, last = await streamed(asynchronous, ledger=ledger)
    again = loadpoint.wrap(client(server, asynchronous=asynchronous), ledger=ledger)
    assert (await settle(again.responses.retrieve(shown))).id == shown
    off = again.with_options(default_headers={"x-loadpoint": "off"})
    assert (await settle(off.responses.retrieve(shown))).id == shown
    assert asked(server) == [("GET", f"/v1/responses/{last}")] * 2


@both
async def test_an_id_is_known_where_everything_is_switched_off(
    asynchronous: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller has kept the id, and may have switched us off since."""
    ledger = loadpoint.InProcessLedger()
    server, _, shown, last = await streamed(asynchronous, ledger=ledger)
    monkeypatch.setenv("LOADPOINT", "off")
    again = loadpoint.wrap(client(server, asynchronous=asynchronous), ledger=ledger)
    assert (await settle(again.responses.retrieve(shown))).id == shown
    assert asked(server) == [("GET", f"/v1/responses/{last}")]


@both
async def test_what_is_not_known_goes_as_it_came(asynchronous: bool) -> None:
    """Without a record, by the server's own id, and with another credential."""
    server, wrapped, shown, last = await streamed(asynchronous)
    first = await settle(loadpoint.wrap(client(server, asynchronous=asynchronous)).responses.retrieve(shown))
    assert [item.type for item in first.output] == ["tool_search_call"]
    assert (await settle(wrapped.responses.retrieve(last))).id == last
    other = wrapped.with_options(api_key="another")
    assert (await settle(other.responses.retrieve(shown))).id == shown
    with pytest.raises(openai.NotFoundError):
        await settle(wrapped.responses.retrieve("resp_unknown"))
    ids = [path.rpartition("/")[2] for _, path in asked(server)]
    assert ids == [shown, last, shown, "resp_unknown"]


@both
async def test_a_reply_that_was_not_streamed_has_the_servers_id(asynchronous: bool) -> None:
    server = served(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}))
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous))
    reply = await settle(wrapped.responses.create(**request()))
    found = await settle(wrapped.responses.retrieve(reply.id))
    assert [item.name for item in found.output] == [TOOL]
    assert asked(server) == [("GET", f"/v1/responses/{reply.id}")]


def test_the_wrapped_clients_other_requests_without_a_body_are_not_touched() -> None:
    server = served()
    wrapped = loadpoint.wrap(client(server))
    with pytest.raises(openai.NotFoundError):
        wrapped.models.list()
    assert [exchange.path for exchange in server.exchanges] == ["/v1/models"]
