"""instructor on a wrapped client: `from_openai`, `from_anthropic` and `patch`, in its modes.

instructor puts the schema of the wanted answer into the request as the one tool, which must be called; there is nothing
to defer then, and the request passes as it is. Where it offers many (an iterable over a union of types), they are
deferred.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Union

import pydantic
import pytest
from tests.adapters import paths
from tests.downstream import scene

from loadpoint import CallReport
from loadpoint.emulator import Move, Script

instructor = scene.package("instructor")

pytestmark = pytest.mark.anyio
sdks = pytest.mark.parametrize("sdk", scene.SDKS)
modes = pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])


class Verdict(pydantic.BaseModel):
    """What came of it."""

    moved: bool
    steps: int = pydantic.Field(ge=1)


MESSAGES = [{"role": "user", "content": scene.FIRST}]
GOOD = Move.call("Verdict", {"moved": True, "steps": 2})
BAD = Move.call("Verdict", {"moved": True, "steps": 0})
WANTED = {"moved": True, "steps": 2}
"""Compared as data: what instructor gives back is of a subclass."""


def over(sdk: str, client: Any, **options: Any) -> Any:
    return (
        instructor.from_openai(client, **options) if sdk == "openai" else instructor.from_anthropic(client, **options)
    )


def given(sdk: str) -> dict[str, Any]:
    return {"model": scene.MODELS[sdk], "messages": MESSAGES, "max_tokens": 500, "max_retries": 2}


@modes
@sdks
async def test_a_structured_answer_passes_as_it_is(sdk: str, asynchronous: bool):
    reports: list[CallReport] = []
    client, server = scene.wrapped(sdk, Script.sequence([GOOD]), asynchronous=asynchronous, reports=reports)
    made = await paths.settle(over(sdk, client).create(response_model=Verdict, **given(sdk)))
    assert made.model_dump() == WANTED
    assert scene.in_context(server.requests[0]) == ["Verdict"]
    assert [report.strategy for report in reports] == ["eager"]


@modes
@sdks
async def test_an_invalid_answer_is_asked_for_again(sdk: str, asynchronous: bool):
    client, server = scene.wrapped(sdk, Script.sequence([BAD, GOOD]), asynchronous=asynchronous)
    made, reply = await paths.settle(over(sdk, client).create_with_completion(response_model=Verdict, **given(sdk)))
    assert (made.model_dump(), len(server.requests)) == (WANTED, 2)
    assert isinstance(reply.id, str)
    assert "greater than or equal to 1" in str(server.requests[1]["messages"])


@modes
@sdks
async def test_an_answer_that_arrives_in_parts(sdk: str, asynchronous: bool):
    client, server = scene.wrapped(sdk, Script.sequence([GOOD]), asynchronous=asynchronous)
    parts = over(sdk, client).create_partial(response_model=Verdict, **given(sdk))
    seen = [part async for part in paths.each(parts)]
    assert seen[-1].model_dump() == WANTED
    assert server.exchanges[0].stream


@modes
@sdks
async def test_answers_as_json_text_with_tools_of_the_callers_own(sdk: str, asynchronous: bool):
    """In a JSON mode the caller's tools stay in the request; they are deferred, and the answer is read as ever."""
    moves = [Move.call(scene.LOADER, {"query": "calendar_move"}), Move(text='{"moved": true, "steps": 2}')]
    client, server = scene.wrapped(sdk, Script.sequence(moves), asynchronous=asynchronous)
    mode = instructor.Mode.JSON
    call = over(sdk, client, mode=mode).create(response_model=Verdict, tools=scene.definitions(sdk), **given(sdk))
    assert (await paths.settle(call)).model_dump() == WANTED
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])


@modes
@sdks
async def test_one_of_many_answers_is_found(sdk: str, asynchronous: bool):
    """Eighty types of answers, of which the model may give several: eighty tools, and none of them forced."""
    answers = {
        name: pydantic.create_model(name, __doc__=scene.description(name), subject=(str, ...)) for name in scene.NAMES
    }
    found = Move.call("calendar_move", {"subject": "offsite"})
    moves = Script.sequence([Move.call(scene.LOADER, {"query": "calendar_move"}), found])
    client, server = scene.wrapped(sdk, moves, asynchronous=asynchronous)
    mode = instructor.Mode.PARALLEL_TOOLS
    kinds: Any = Iterable[Union[tuple(answers.values())]]  # type: ignore[misc]  # noqa: UP007 - made at run time
    made = await paths.settle(over(sdk, client, mode=mode).create(response_model=kinds, **given(sdk)))
    assert [(type(answer), answer.model_dump()) for answer in made] == [
        (answers["calendar_move"], {"subject": "offsite"})
    ]
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])


@modes
async def test_patch_keeps_the_client(asynchronous: bool):
    client, server = scene.wrapped("openai", Script.sequence([GOOD]), asynchronous=asynchronous)
    patched = instructor.patch(client)
    assert patched is client
    made = await paths.settle(patched.chat.completions.create(response_model=Verdict, **given("openai")))
    assert made.model_dump() == WANTED
    assert len(server.requests) == 1


@modes
@sdks
async def test_calls_without_a_model_defer_as_ever(sdk: str, asynchronous: bool):
    client, server = scene.wrapped(sdk, asynchronous=asynchronous)
    body = scene.request(sdk)
    reply = await paths.settle(over(sdk, client).create(response_model=None, **body))
    called = paths.chat_calls(reply) if sdk == "openai" else paths.message_calls(reply)
    assert called == [("calendar_move", {"subject": "offsite"})]
    scene.assert_deferred(sdk, server, requests=2, loads=scene.LOADED[:1])
