"""Histories of the Responses API that name items which the server keeps, instead of bringing them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.adapters.paths import each, entered, settle
from tests.adapters.test_response_paths import TOOL, client, request, served

import loadpoint
from loadpoint.emulator import Emulator, Move

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
streams = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
models = pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.2"])
Json = dict[str, Any]


def conversation() -> Emulator:
    found = Move.call("find", {"query": TOOL}, thinking="where is it")
    used = Move.call(TOOL, {"city": "Rome"}, thinking="there it is")
    return served(found, used, Move(text="done"), Move.call(TOOL, {"city": "Oslo"}))


def named(reply: Any) -> list[Json]:
    """The items of a reply as references, and the results of its calls by value: results are not the server's yet."""
    out: list[Json] = [{"type": "item_reference", "id": item.id} for item in reply.output]
    calls = [item.call_id for item in reply.output if item.type == "function_call"]
    return [*out, *({"type": "function_call_output", "call_id": id_, "output": "done"} for id_ in calls)]


async def asked(wrapped: Any, given: Json, stream: bool) -> Any:
    if not stream:
        return await settle(wrapped.responses.create(**given))
    async with entered(wrapped.responses.stream(**given)) as events:
        assert [event async for event in each(events)]
        return await settle(events.get_final_response())


async def walked(server: Emulator, wrapped: Any, model: str, stream: bool, more: Json) -> list[Any]:
    given = {**request(model), **more, "input": [{"role": "user", "content": "Do thing 7 in Rome."}]}
    replies = [await asked(wrapped, given, stream)]
    given["input"] += named(replies[-1])
    replies.append(await asked(wrapped, given, stream))
    given["input"] += [*named(replies[-1]), {"role": "user", "content": "and in Oslo"}]
    replies.append(await asked(wrapped, given, stream))
    return replies


@pytest.mark.requirement("N22")
@both
@streams
@models
async def test_a_turn_that_is_named_is_sent_as_it_was(model: str, stream: bool, asynchronous: bool) -> None:
    server = conversation()
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous))
    replies = await walked(server, wrapped, model, stream, {})
    assert [item.name for item in replies[-1].output if item.type == "function_call"] == [TOOL]
    assert all(TOOL in exchange.loaded for exchange in server.exchanges[1:])
    report = loadpoint.report(replies[-1])
    assert (report.prefix.stable, report.prefix.broke) == (True, None)
    assert [tool.name for tool in report.loaded] == [TOOL]


@both
async def test_what_no_record_knows_goes_as_it_came(asynchronous: bool) -> None:
    server = conversation()
    first = loadpoint.wrap(client(server, asynchronous=asynchronous))
    reply = await asked(first, request(), False)
    other = loadpoint.wrap(client(server, asynchronous=asynchronous))
    given = {**request(), "input": [{"role": "user", "content": "x"}, *named(reply), {"role": "user", "content": "y"}]}
    await settle(other.responses.create(**given))
    sent = (server.exchanges[-1].request or {})["input"]
    assert [item for item in sent if item.get("type") == "item_reference"] == named(reply)[:-1]


@both
async def test_what_the_server_does_not_keep_has_no_name(asynchronous: bool) -> None:
    """`store: false`: nothing is kept under the ids of its items, here or there."""
    server = served(Move.call("find", {"query": TOOL}), Move.call(TOOL, {"city": "Rome"}))
    ledger = Counting()
    wrapped = loadpoint.wrap(client(server, asynchronous=asynchronous), ledger=ledger)
    await settle(wrapped.responses.create(**request(), store=False))
    kept = len(ledger.keys)
    await settle(
        loadpoint.wrap(client(conversation(), asynchronous=asynchronous), ledger=ledger).responses.create(**request())
    )
    assert len(ledger.keys) - kept == kept + 2, "the reply's id and that of its last item"


class Counting(loadpoint.InProcessLedger):
    """Knows the keys of its records."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[str] = []

    def add(self, key: str, record: Any) -> None:
        self.keys.append(key)
        super().add(key, record)
