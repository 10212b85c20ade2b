"""The sessions of `loadpoint bench`, by litellm and by the provider's own SDK: the same tools, loads and prefix."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import anthropic
import openai
import pytest

import loadpoint
from loadpoint import Policy
from loadpoint.bench._drive import Chat, driver_of
from loadpoint.bench._plan import plan, targets
from loadpoint.bench._player import Player
from loadpoint.bench._run import TOO_MANY, Case, play
from loadpoint.bench._run import _results as results
from loadpoint.bench._toolset import embedded
from loadpoint.emulator import Emulator, Exchange, serve

CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"
HOSTS = {CHAT: "api.openai.com", RESPONSES: "api.openai.com", MESSAGES: "api.anthropic.com"}
MODELS = {CHAT: "gpt-5.4", RESPONSES: "gpt-5.4", MESSAGES: "claude-opus-4-8"}


def _client(module: Any, dialect: str, url: str) -> Any:
    """What the bench takes for the SDK's client, over litellm."""
    where = {"api_base": url if dialect == MESSAGES else f"{url}/v1", "api_key": "k"}
    provider = "anthropic" if dialect == MESSAGES else "openai"

    def given(asked: dict[str, Any]) -> dict[str, Any]:
        return {**asked, "model": f"{provider}/{asked['model']}", **where}

    def chat(**asked: Any) -> Any:
        reply = module.completion(**given(asked))
        return openai.types.chat.ChatCompletion.model_validate(reply.model_dump(mode="json"))

    def responses(**asked: Any) -> Any:
        reply = module.responses(**given(asked))
        return openai.types.responses.Response.model_validate(
            reply.model_dump(mode="json", by_alias=True, exclude_unset=True)
        )

    def messages(**asked: Any) -> Any:
        reply = asyncio.run(module.anthropic.messages.acreate(**given(asked)))
        return anthropic.types.Message.model_validate(reply)

    return SimpleNamespace(
        chat=SimpleNamespace(completions=SimpleNamespace(create=chat)),
        responses=SimpleNamespace(create=responses),
        messages=SimpleNamespace(create=messages),
    )


def by_litellm(module: Any, case: Case) -> list[Exchange]:
    """The session of `case`, played by litellm over HTTP."""
    assert case.policy is not None
    server = Emulator(Player(case.plan), ignore=(TOO_MANY,))
    with serve(server) as running:
        wrapped = loadpoint.wrap(module, case.policy.replace(endpoint=HOSTS[case.dialect]))
        client = _client(wrapped, case.dialect, running.url)
        chat = Chat(client, case.model, case.tools, results(case.plan, 0), echo=case.echo)
        for number, turn in enumerate(case.plan.turns, 1):
            chat.run = results(case.plan, number)
            assert driver_of(case.dialect).say(chat, turn.said) == turn.answer
    return list(server.exchanges)


def _told(exchange: Exchange) -> Any:
    """What an exchange is compared by: the tools that are sent, what is loaded, and what is in context of both."""
    assert exchange.status == 200
    return json.dumps((exchange.request or {})["tools"], sort_keys=True), exchange.loaded, exchange.tokens.tools


@pytest.mark.parametrize("session", ["short", pytest.param("long", marks=pytest.mark.slow)])
@pytest.mark.parametrize("strategy", ["native", "resend"])
@pytest.mark.parametrize("dialect", [CHAT, RESPONSES, MESSAGES])
def test_the_same_as_by_the_providers_own_sdk(litellm: Any, dialect: str, strategy: str, session: str):
    if dialect == CHAT and strategy == "native":
        pytest.skip("no native form")
    tools = embedded()
    case = Case(
        dialect=dialect,
        model=MODELS[dialect],
        policy=Policy(strategy=strategy),
        tools=tools.tools,
        plan=plan(session, targets(tools)),
        echo="dump" if dialect == MESSAGES else "object",  # litellm takes plain blocks
    )
    direct = play(case)
    assert direct.problems == []
    sent, expected = by_litellm(litellm, case), [one.exchange for one in direct.sent]
    assert [_told(one) for one in sent] == [_told(one) for one in expected]
    # Ids are random, and so is what their tokens are; a prefix that breaks at the tools is shorter by thousands.
    shared = [one.common_tokens for one in expected]
    assert [one.common_tokens for one in sent] == pytest.approx(shared, rel=0.02, abs=20)
