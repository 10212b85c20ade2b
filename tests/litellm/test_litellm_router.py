"""A wrapped Router: a twin whose rounds are calls of the caller's own one, with its retries and fallbacks."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.core.conversation import CHAT, NAMES, RESPONSES, tools
from tests.litellm.talking import ROUTES, SEARCHES, Program, dumped, talking, text_of

import loadpoint
from loadpoint import Policy
from loadpoint.emulator import Move


def router_of(litellm: Any, program: Program, *models: str, **settings: Any) -> Any:
    """A Router with one deployment per model, each a group of its own called g0, g1, ..."""
    listed = [
        {
            "model_name": f"g{at}",
            "litellm_params": {"model": model, "api_key": "k", "api_base": program.url + program.route.path},
        }
        for at, model in enumerate(models)
    ]
    return litellm.Router(model_list=listed, num_retries=0, **settings)


def arguments(program: Program, model: str = "g0") -> dict[str, Any]:
    given = program.arguments(model=model)
    return {name: value for name, value in given.items() if name not in ("api_key", "api_base")}


def test_it_is_a_twin(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], wrapped=False) as program:
        router = router_of(litellm, program, "openai/gpt-5.4")
        before = dict(vars(router))
        wrapped = loadpoint.wrap(router)
        assert wrapped is not router
        assert isinstance(wrapped, litellm.Router)
        assert vars(router) == before
        assert wrapped.registry().names() == router.registry().names()
        assert loadpoint.unwrap(wrapped) is router
        assert loadpoint.unwrap(router) is router
        again = loadpoint.wrap(wrapped, Policy(strategy="eager"))
        assert loadpoint.unwrap(again) is router
        assert wrapped.acompletion.__wrapped__ == router.acompletion
        twice = copy.copy(wrapped)
        assert loadpoint.unwrap(twice) is router
        wrapped.cooldown_time = 7
        assert router.settings().cooldown_time == 7, "settings are the Router's, whoever sets them"


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.anyio
async def test_a_later_round_that_fails_goes_to_the_fallback(litellm: Any, asynchronous: bool, stream: bool):
    route = ROUTES["openai completion"]
    moves = (SEARCHES[0], Move(status=500), SEARCHES[1], SEARCHES[2])
    with talking(litellm, route, *moves, wrapped=False) as program:
        reports: list[Any] = []
        router = router_of(litellm, program, "openai/gpt-5.4", "openai/gpt-5.4-mini", fallbacks=[{"g0": ["g1"]}])
        wrapped = loadpoint.wrap(router, route.policy, on_report=reports.append)
        program.user("please create an invoice")
        more: dict[str, Any] = {"stream": True} if stream else {}
        if asynchronous:
            given = await wrapped.acompletion(**arguments(program), **more)
            items = [item async for item in given] if stream else []
        else:
            given = wrapped.completion(**arguments(program), **more)
            items = list(given) if stream else []
        reply = litellm.stream_chunk_builder(items) if stream else given
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        sent = [(exchange.request or {})["model"] for exchange in program.server.exchanges]
        assert sent == ["gpt-5.4", "gpt-5.4", "gpt-5.4-mini"]
        assert [exchange.status for exchange in program.server.exchanges] == [200, 500, 200]
        assert reports[-1].added_rounds == 1
        reply = wrapped.completion(**arguments(program))
        assert text_of(CHAT, dumped(CHAT, reply)) == "done"
        assert reports[-1].prefix.stable


@pytest.mark.parametrize("name", ["g0", "alias"])
def test_retries_are_per_round(litellm: Any, name: str):
    route = ROUTES["openai completion"]
    with talking(litellm, route, SEARCHES[0], Move(status=500), SEARCHES[1], wrapped=False) as program:
        router = router_of(litellm, program, "openai/gpt-5.4", model_group_alias={"alias": "g0"})
        wrapped = loadpoint.wrap(router, route.policy)
        program.user("please create an invoice")
        reply = wrapped.completion(**arguments(program, name), num_retries=2)
        assert program.echo(dumped(CHAT, reply)) == [("invoice_create", {"id": 7})]
        assert [exchange.status for exchange in program.server.exchanges] == [200, 500, 200]
        assert reply._hidden_params["model_id"] == router.registry().all()[0]["model_info"]["id"]


def test_a_native_form_is_taken_where_every_deployment_gets_it(litellm: Any):
    route = ROUTES["claude completion"]
    for models, settings, expected in (
        (["anthropic/claude-opus-4-8"], {}, "native"),
        (["anthropic/claude-opus-4-8", "openai/gpt-5.4"], {"fallbacks": [{"g0": ["g1"]}]}, "resend"),
    ):
        reports: list[Any] = []
        with talking(litellm, route, *SEARCHES, wrapped=False) as program:
            router = router_of(litellm, program, *models, **settings)
            wrapped = loadpoint.wrap(router, route.policy, on_report=reports.append)
            program.user("please create an invoice")
            wrapped.completion(**arguments(program), max_tokens=100)
            assert reports[-1].strategy == expected
            marked = [name for name in program.names_sent(1) if name.endswith("*")]
            assert bool(marked) is (expected == "native")
            if expected == "resend":
                assert "several kinds" in reports[-1].reason


@pytest.mark.anyio
async def test_responses_and_messages(litellm: Any):
    for name in ("openai responses", "claude messages"):
        route = ROUTES[name]
        with talking(litellm, route, *SEARCHES, wrapped=False) as program:
            reports: list[Any] = []
            router = router_of(litellm, program, route.model)
            wrapped = loadpoint.wrap(router, route.policy, on_report=reports.append)
            program.user("please create an invoice")
            calls = [wrapped.aresponses] if route.dialect == RESPONSES else [wrapped.aanthropic_messages]
            reply = await calls[0](**arguments(program))
            assert program.echo(dumped(route.dialect, reply)) == [("invoice_create", {"id": 7})]
            assert (reports[-1].strategy, reports[-1].load_point) == (route.strategy, route.load_point)
            reply = await calls[0](**arguments(program))
            assert text_of(route.dialect, dumped(route.dialect, reply)) == "done"


def test_a_group_that_the_router_does_not_know_is_its_own_error(litellm: Any):
    with talking(litellm, ROUTES["openai completion"], wrapped=False) as program:
        router = router_of(litellm, program, "openai/gpt-5.4")
        wrapped = loadpoint.wrap(router)
        for client in (router, wrapped):
            with pytest.raises(litellm.BadRequestError):
                client.completion(model="nobody", messages=[{"role": "user", "content": "hi"}], tools=tools(CHAT))


def test_a_small_list_is_sent_whole(litellm: Any):
    route = ROUTES["openai completion"]
    with talking(litellm, route, Move(text="hello"), wrapped=False) as program:
        program.names = NAMES[:2]
        router = router_of(litellm, program, "openai/gpt-5.4")
        reports: list[Any] = []
        wrapped = loadpoint.wrap(router, Policy(endpoint=route.endpoint), on_report=reports.append)
        program.user("hi")
        reply = wrapped.completion(**arguments(program))
        assert program.names_sent(0) == list(NAMES[:2])
        assert loadpoint.report(reply).strategy == reports[-1].strategy == "eager"
