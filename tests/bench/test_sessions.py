"""The scripted sessions over real SDKs: they come to their end, and the judge says what became of the prefix."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from tests.bench.judge import breaks, check

from loadpoint import Policy, bench, emulator

MODELS = {"openai.chat": "gpt-5.4", "anthropic.messages": "claude-sonnet-5"}
WAYS = [("openai.chat", "eager"), ("openai.chat", "resend"), ("anthropic.messages", "eager")]
WAYS += [("anthropic.messages", "native"), ("anthropic.messages", "resend")]
WHOLE = bench.embedded()
TARGETS = bench.targets(WHOLE)
TOOLS = WHOLE.sized(60, keep=[target.tool for target in TARGETS])


@cache
def _play(dialect: str, strategy: str, session: str = "short", loads: int = 2, **more: Any) -> bench.Played:
    policy = None if strategy == "eager" else Policy(strategy=strategy)
    plan = bench.plan(session, TARGETS, loads)
    case = bench.Case(dialect=dialect, model=MODELS[dialect], policy=policy, tools=TOOLS.tools, plan=plan, **more)
    return bench.play(case)


@pytest.mark.parametrize("echo", bench.ECHOES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_short_session_keeps_its_prefix(dialect: str, strategy: str, stream: bool, echo: str) -> None:
    played = _play(dialect, strategy, stream=stream, echo=echo)
    assert played.problems == []
    assert check(played.bodies, strategy) == []
    assert breaks(played.bodies) == (2 if strategy == "resend" else 0)
    assert len(played.bodies) == (7 if strategy == "eager" else 9)


@pytest.mark.parametrize("loads", bench.LOADS)
@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_long_session_breaks_once_per_search_that_loads(dialect: str, strategy: str, loads: int) -> None:
    played = _play(dialect, strategy, "long", loads)
    assert played.problems == []
    assert check(played.bodies, strategy) == []
    assert len(played.case.plan.turns) == 40
    if strategy != "resend":
        assert breaks(played.bodies) == 0
        return
    loaded = [report.searches for report in played.reports]
    answered = [search for searches in loaded for search in searches if search.hits]
    assert 0 < breaks(played.bodies) <= len(answered)


@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_long_session_has_what_it_promises(dialect: str, strategy: str) -> None:
    played = _play(dialect, strategy, "long", 6)
    results = [
        len(str(message))
        for message in played.history
        if "tool_result" in str(message) or "tool_call_id" in str(message)
    ]
    assert max(results) > 8_000
    if strategy == "eager":
        assert played.searches == 0
        return
    searches = [search for report in played.reports for search in report.searches]
    assert sum(search.no_match for search in searches) == 1
    assert any(report.rounds and len(report.searches) == 2 for report in played.reports)


@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_history_of_a_session_is_valid_for_the_bare_sdk(dialect: str, strategy: str) -> None:
    played = _play(dialect, strategy, "long", 6)
    server = emulator.Emulator([emulator.Move(text="fine")], ignore=("chat.too_many_tools",))
    driver = bench.driver_of(dialect)
    client = driver.client(emulator.http_client(driver.sdk, server))
    chat = bench.Chat(client, MODELS[dialect], TOOLS.tools, lambda *_: "", messages=list(played.history))
    assert driver.say(chat, "and now without loadpoint") == "fine"
    assert "ToolSearch" not in json.dumps(server.requests[0])


def test_a_session_is_the_same_bytes_every_time() -> None:
    for dialect, strategy in WAYS:
        once, again = _play(dialect, strategy), _play.__wrapped__(dialect, strategy)
        assert [item.exchange.raw for item in once.sent] == [item.exchange.raw for item in again.sent]


def test_without_tools_in_sight_the_model_gives_up_and_the_run_says_so() -> None:
    plan = bench.plan("short", TARGETS, 2)
    others = [tool for tool in TOOLS.tools if tool.name != "git__log"]
    case = bench.Case(dialect="openai.chat", model="gpt-5.4", policy=None, tools=others, plan=plan)
    assert bench.play(case).problems == ["git__log: never visible to the model"]


def test_a_refused_request_ends_the_session_and_stands_in_the_problems() -> None:
    plan = bench.plan("short", TARGETS, 2)
    case = bench.Case(dialect="openai.chat", model="gpt-5.4", policy=None, tools=[TOOLS.tools[0]] * 2, plan=plan)
    played = bench.play(case)
    assert played.problems  # two tools of one name: refused, or never the right one
    assert len(played.sent) <= 4


def test_queries_of_foreign_tools_come_from_their_descriptions() -> None:
    tools = bench.ToolSet(tuple(tool for tool in WHOLE.tools if tool.server in {"wiki", "mail", "ci"}))
    found = bench.targets(tools)
    assert len(found) == 6
    assert {target.tool.server for target in found} == {"wiki", "mail", "ci"}
    for target in found:
        assert set(target.query.split()) <= set(target.tool.description.replace(",", " ").replace(".", " ").split())
