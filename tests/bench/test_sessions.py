"""The scripted sessions over real SDKs: they come to their end, and the judge says what became of the prefix."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from tests.bench.judge import breaks, check

from loadpoint import Policy, bench, emulator

WAYS = {
    (dialect, way.load_point or ("eager" if way.policy is None else way.policy.strategy)): way
    for dialect in bench.DIALECTS
    for way in bench.ways(dialect, Policy())
    if way.marked and (way.policy is None or way.policy.strategy != "auto")
}
HOSTED = "hosted_search"
WHOLE = bench.embedded()
TARGETS = bench.targets(WHOLE)
TOOLS = WHOLE.sized(60, keep=[target.tool for target in TARGETS])


@cache
def _play(dialect: str, strategy: str, session: str = "short", loads: int = 2, **more: Any) -> bench.Played:
    way = WAYS[dialect, strategy]
    case = bench.Case(
        dialect=dialect,
        model=way.place.model,
        base_url=way.place.base_url,
        policy=way.policy,
        tools=TOOLS.tools,
        plan=bench.plan(session, TARGETS, loads),
        in_body=session == "long",
        **more,
    )
    return bench.play(case)


def _mode(strategy: str) -> str:
    """The judge's word for it."""
    return strategy if strategy in {"eager", "resend"} else "native"


@pytest.mark.report("BR-075")
@pytest.mark.parametrize("echo", bench.ECHOES)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_short_session_keeps_its_prefix(dialect: str, strategy: str, stream: bool, echo: str) -> None:
    played = _play(dialect, strategy, stream=stream, echo=echo)
    assert played.problems == []
    assert check(played.bodies, _mode(strategy)) == []
    assert breaks(played.bodies) == (2 if strategy == "resend" else 0)
    assert len(played.bodies) == (7 if strategy in {"eager", HOSTED} else 9)
    if strategy not in {"eager", "resend", "frozen"}:
        assert played.load_point == strategy


@pytest.mark.parametrize("loads", bench.LOADS)
@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_the_long_session_breaks_once_per_search_that_loads(dialect: str, strategy: str, loads: int) -> None:
    played = _play(dialect, strategy, "long", loads)
    assert played.problems == []
    assert check(played.bodies, _mode(strategy)) == []
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
        if any(mark in str(message) for mark in ("tool_result", "tool_call_id", "function_call_output"))
    ]
    assert max(results) > 8_000
    if strategy == "eager":
        assert played.searches == 0
        return
    if strategy == HOSTED:
        assert 0 < played.searches <= 20  # by namespace, or in words: what it did not find the provider does not say
        return
    searches = [search for report in played.reports for search in report.searches]
    assert sum(search.no_match for search in searches) == 1
    assert any(report.rounds and len(report.searches) == 2 for report in played.reports)


# Behind a provider's own search its items stay in the history, and Anthropic takes them only with that search declared.
@pytest.mark.parametrize(("dialect", "strategy"), [way for way in WAYS if way[1] != HOSTED])
def test_the_history_of_a_session_is_valid_for_the_bare_sdk(dialect: str, strategy: str) -> None:
    played = _play(dialect, strategy, "long", 6)
    server = emulator.Emulator([emulator.Move(text="fine")], ignore=("chat.too_many_tools",))
    driver = bench.driver_of(dialect)
    client = driver.client(emulator.http_client(driver.sdk, server))
    model = WAYS[dialect, strategy].place.model
    chat = bench.Chat(client, model, TOOLS.tools, lambda *_: "", messages=list(played.history))
    assert driver.say(chat, "and now without loadpoint") == "fine"
    assert "ToolSearch" not in json.dumps(server.requests[0])


@pytest.mark.parametrize(("dialect", "strategy"), WAYS)
def test_a_session_is_the_same_bytes_every_time_and_however_the_tools_are_handed_over(
    dialect: str, strategy: str
) -> None:
    once = _play(dialect, strategy)
    for again in (_play.__wrapped__(dialect, strategy), bench.play(replace(once.case, in_body=True))):
        assert [item.exchange.raw for item in once.sent] == [item.exchange.raw for item in again.sent]


@pytest.mark.parametrize("dialect", bench.DIALECTS)
def test_auto_sends_what_the_way_sends_that_it_takes(dialect: str) -> None:
    policy = Policy(threshold_tokens=1)
    place = bench.PLACES[dialect][0]
    plan = bench.plan("short", TARGETS, 2)
    case = bench.Case(dialect=dialect, model=place.model, policy=policy, tools=TOOLS.tools, plan=plan)
    auto = bench.play(case)
    taken = _play(dialect, auto.load_point or auto.strategy)
    assert [item.exchange.raw for item in auto.sent] == [item.exchange.raw for item in taken.sent]


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
