"""`loadpoint verify --live` over loopback: the emulator stands in for the provider, the key is a fake one."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.live import CHAT, ENOUGH, KEY, KIMI, MESSAGES, RESPONSES, STANDS, Ran, Stand, plan, ran, serving

from loadpoint import cli, emulator
from loadpoint.verify import _play

each = pytest.mark.parametrize("stand", STANDS, ids=lambda stand: f"{stand.provider}-{stand.short}")
native = pytest.mark.parametrize("stand", [MESSAGES, RESPONSES, KIMI], ids=lambda stand: stand.provider)

Run = Callable[..., Ran]
_known: dict[tuple[Stand, tuple[str, ...], str], Ran] = {}  # the same run twice would say the same thing


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command against a fresh emulator with the fake key."""
    monkeypatch.setattr(_play, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(_play, "LONGEST_WAIT", 0.001)

    def run(stand: Stand, *options: str, script: Any = None, budget: str = ENOUGH) -> Ran:
        monkeypatch.setenv(stand.key, KEY)
        known = _known.get((stand, options, budget)) if script is None else None
        if known is not None:
            return known
        with serving(script) as running:
            result = ran(stand, running, tmp_path, capsys, options, budget)
        if script is None:
            _known[stand, options, budget] = result
        return result

    return run


def searches(exchange: emulator.Exchange) -> bool:
    """Whether our loader, in whatever form, stands in the request."""
    tools = (exchange.request or {}).get("tools", ())
    return any("ToolSearch" in json.dumps(tool) or tool.get("type") == "tool_search" for tool in tools)


@each
def test_a_conversation_that_agrees_is_verified(stand: Stand, run: Run):
    result = run(stand)
    assert result.code == cli.EXIT_OK, result.err
    assert result.record["verified"] is True
    assert result.record["stopped"] is None
    assert result.record["disagreements"] == []
    assert [exchange.error for exchange in result.server.exchanges if exchange.error] == []
    assert "verified" in result.out


@each
def test_the_figures_are_those_of_the_emulators_own_log(stand: Stand, run: Run):
    result = run(stand)
    for name in ("wrapped", "bare"):
        log, told = result.sides[name], result.record["sides"][name]
        assert log, name
        assert told["requests"] == told["rounds"] == len(log)
        assert told["input_tokens"] == sum(item.input_tokens for item in log)
        assert told["cached_tokens"] == sum(item.cached_tokens for item in log)
        assert told["output_tokens"] == sum(item.output_tokens for item in log)
        assert f"{told['input_tokens']:,}" in result.out
        assert f"{told['cached_tokens']:,}" in result.out
    written = [result.record["sides"][name]["written_tokens"] for name in ("wrapped", "bare")]
    logged = [sum(item.written_tokens for item in result.sides[name]) for name in ("wrapped", "bare")]
    assert written in (logged, [0, 0])  # an API without such a figure shows none
    assert (stand is MESSAGES) <= (written == logged)


@each
def test_both_sides_read_a_repeated_prefix_from_the_cache(stand: Stand, run: Run):
    sides = run(stand).record["sides"]
    assert all(side["cached_tokens"] > side["input_tokens"] / 2 for side in sides.values())


@each
def test_the_bare_side_is_bare(stand: Stand, run: Run):
    bare = run(stand).sides["bare"]
    assert len(bare) == 8  # five turns, three of them with one call
    for exchange in bare:
        tools = (exchange.request or {})["tools"]
        assert len(tools) == 60
        assert not searches(exchange)
        assert not any("defer_loading" in tool or tool.get("type") == "tool_search" for tool in tools)


@native
def test_the_wrapped_side_loads_twice_and_follows_up_without_a_search(stand: Stand, run: Run):
    result = run(stand)
    wrapped = result.record["sides"]["wrapped"]
    assert {call["load_point"] for call in wrapped["calls"]} == {stand.native}
    assert [call["turn"] for call in wrapped["calls"] if call["searches"]] == [2, 4]
    assert wrapped["called"] == result.record["sides"]["bare"]["called"]
    assert all(map(searches, result.sides["wrapped"]))
    assert wrapped["input_tokens"] < result.record["sides"]["bare"]["input_tokens"] / 2
    assert stand.native is not None
    assert stand.native in result.out


def test_a_form_can_be_insisted_on(run: Run):
    result = run(CHAT, "--strategy", "resend")
    assert result.code == cli.EXIT_OK, result.err
    calls = result.record["sides"]["wrapped"]["calls"]
    assert {call["strategy"] for call in calls} == {"resend"}
    assert [call["turn"] for call in calls if call["searches"]] == [2, 4]
    assert {call["load_point"] for call in calls} == {None}


def test_where_nothing_was_deferred_the_run_says_so(run: Run):
    result = run(CHAT)
    assert any("loaded nothing (eager)" in note for note in result.record["notes"])


@native
def test_a_run_answers_the_open_questions_of_its_load_point(stand: Stand, run: Run):
    answers = {item["id"]: item for item in run(stand).record["open_questions"]}
    kept = {"anthropic": "declared-on-load", "openai": "search-output-keeps-prefix"}
    answer = answers[kept.get(stand.provider, "system-tools-keep-prefix")]
    assert answer["answer"] == "yes"
    assert answer["grades"]
    assert "tokens read" in answer["because"]


def test_a_load_that_loses_the_prefix_is_told(run: Run):
    agent = emulator.Script.agent(plan())

    def losing(turn: emulator.Turn) -> emulator.Move:
        move = agent(turn)
        after_a_load = any(call.name == "ToolSearch" for call in turn.results)
        return move.but(usage={"cache_read_input_tokens": 0}) if after_a_load else move

    result = run(MESSAGES, script=losing)
    answers = {item["id"]: item["answer"] for item in result.record["open_questions"]}
    assert answers["declared-on-load"] == "no"
    assert result.code == cli.EXIT_FINDINGS
    assert result.record["verified"] is False
    assert "disagreement: wrapped, turn 2" in result.err
    assert "disagrees" in result.out


def test_a_wrapped_side_that_never_reads_the_cache_is_a_disagreement(run: Run):
    agent = emulator.Script.agent(plan())

    def cold(turn: emulator.Turn) -> emulator.Move:
        move = agent(turn)
        return move if len(turn.tools) == 60 else move.but(usage={"cache_read_input_tokens": 0})

    result = run(MESSAGES, script=cold)
    assert result.code == cli.EXIT_FINDINGS
    assert any("the wrapped one never did" in told for told in result.record["disagreements"])


# --------------------------------------------------------------------------------------------------------- the budget


@each
@pytest.mark.parametrize("budget", ["0.00001", "0.03"])
def test_the_budget_ends_the_run_before_it_is_overdrawn(stand: Stand, budget: str, run: Run):
    result = run(stand, budget=budget)
    record = result.record
    assert record["spent"] <= float(budget)
    if record["stopped"] is None:
        assert result.code == cli.EXIT_OK
        return
    assert result.code == cli.EXIT_FINDINGS
    assert record["stopped"].startswith("budget: ")
    assert "stopped: budget: " in result.err
    assert len(record["requests"]) == len(result.server.exchanges)  # what was refused here never left
    assert "not verified" in result.out


def test_a_budget_that_lasts_for_one_side_keeps_what_it_has(run: Run):
    result = run(MESSAGES, budget="0.009")
    assert result.code == cli.EXIT_FINDINGS
    assert result.record["sides"]["wrapped"]["turns"] == 5
    assert result.record["sides"]["bare"]["turns"] < 5
    assert result.record["open_questions"]
    assert result.sides["wrapped"]


def test_a_hidden_round_is_weighed_too(run: Run):
    """The first call takes one request; of the second, which searches, the second round is one too many."""
    whole = run(MESSAGES)
    costs = [row["cost"] for row in whole.record["requests"]]
    worst = 0.0052  # of a wrapped request: between what the first two and the first three can cost
    budgets = [sum(costs[:2]) + worst * share / 10 for share in range(1, 10)]
    ended = [run(MESSAGES, budget=str(budget)).record for budget in budgets]
    stops = {len(record["requests"]) for record in ended}
    assert 2 in stops, stops
    at = next(record for record in ended if len(record["requests"]) == 2)
    assert [row["call"] for row in at["requests"]] == [1, 2]


def test_an_unknown_price_is_said_and_the_budget_holds_nevertheless(run: Run, monkeypatch: pytest.MonkeyPatch):
    stand = Stand("compatible", "openai.chat", "chat", "api.openai.com", "COMPATIBLE_API_KEY")
    result = run(stand, "--model", "house-model-1", budget="100")
    assert result.code == cli.EXIT_OK, result.err
    assert result.record["sides"]["bare"]["cost"] is None
    assert "unknown" in result.out
    assert any("no price is known" in note for note in result.record["notes"])
    assert result.record["spent"] > 1  # at the dearest price there is
    assert run(stand, "--model", "house-model-1", budget="1").code == cli.EXIT_FINDINGS


def test_given_prices_are_taken(run: Run):
    stand = Stand("compatible", "openai.chat", "chat", "api.openai.com", "COMPATIBLE_API_KEY")
    result = run(stand, "--model", "house-model-1", "--price", "1,2", budget="1")
    assert result.code == cli.EXIT_OK, result.err
    bare = result.record["sides"]["bare"]
    assert bare["cost"] == pytest.approx((bare["input_tokens"] + 2 * bare["output_tokens"]) / 1_000_000)


# ------------------------------------------------------------------------------------------------------------- faults


def test_a_storm_of_429_is_waited_out(run: Run):
    agent, left = emulator.Script.agent(plan()), [7]

    def stormy(turn: emulator.Turn) -> emulator.Move:
        if left[0] and len(turn.texts) == 2:
            left[0] -= 1
            return emulator.Move.fault(429)
        return agent(turn)

    result = run(MESSAGES, script=stormy)
    assert result.code == cli.EXIT_OK, result.err
    wrapped = result.record["sides"]["wrapped"]
    assert wrapped["requests"] == wrapped["rounds"] + 7
    assert "next attempt in" in result.err


def test_a_storm_that_does_not_end_is_a_failure(run: Run):
    result = run(MESSAGES, script=lambda turn: emulator.Move.fault(429))
    assert result.code == cli.EXIT_FINDINGS
    assert (
        len(result.server.exchanges) == 3 * _play.ATTEMPTS
    )  # the SDK asks three times, and we have attempts of our own
    assert "429" in result.record["stopped"]
    assert result.record["spent"] == 0
    assert "bare" not in result.record["sides"]


@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_refusal_is_not_repeated(status: int, run: Run):
    result = run(CHAT, script=lambda turn: emulator.Move.fault(status, "no"))
    assert result.code == cli.EXIT_FINDINGS
    assert len(result.server.exchanges) == 1
    assert str(status) in result.record["stopped"]


def test_a_model_that_never_answers_is_left(run: Run):
    def restless(turn: emulator.Turn) -> emulator.Move:
        return emulator.Move.call(next(tool.name for tool in turn.tools if tool.name != "ToolSearch"), {})

    result = run(CHAT, script=restless)
    assert result.code == cli.EXIT_FINDINGS
    assert "gave no answer" in result.record["stopped"]


# ------------------------------------------------------------------------------------------------------------- secrets


@each
def test_the_key_is_in_no_record_and_in_no_output(stand: Stand, run: Run):
    result = run(stand)
    assert any(KEY in value for exchange in result.server.exchanges for value in exchange.headers.values())
    for text in (result.raw.decode(), result.out, result.err):
        assert KEY not in text
        assert KEY[:12] not in text
    assert b"authorization" not in result.raw.lower()
    assert b"handbook" not in result.raw


@pytest.mark.parametrize(
    "echoed",
    [
        f"Incorrect API key provided: {KEY}.",
        "Incorrect API key provided: sk-test-5f0c2e9a********************seen.",
        "Rate limit reached for organization org-Zq8TnPw4 in project proj_81aMn.",
    ],
)
def test_what_a_provider_repeats_of_key_and_account_is_taken_out(echoed: str, run: Run):
    result = run(CHAT, script=lambda turn: emulator.Move.fault(401, echoed))
    for text in (result.raw.decode(), result.out, result.err):
        for secret in (KEY, "sk-test", "5f0c2e9a", "org-Zq8TnPw4", "proj_81aMn"):
            assert secret not in text
    assert "***" in result.record["stopped"]


def test_a_key_that_a_model_repeats_is_taken_out(run: Run):
    agent = emulator.Script.agent(plan())

    def parrot(turn: emulator.Turn) -> emulator.Move:
        move = agent(turn)
        if move.calls and move.calls[0][0] == "ToolSearch":
            return move.but(calls=[("ToolSearch", {"query": f"create ticket {KEY}"})])
        return move

    result = run(MESSAGES, script=parrot)
    assert any(call["searches"] for call in result.record["sides"]["wrapped"]["calls"])
    assert KEY not in result.raw.decode() + result.out + result.err


def test_the_record_is_for_its_owner_only(run: Run, tmp_path: Path):
    result = run(CHAT, "--max-tokens", "500")
    assert stat.S_IMODE((tmp_path / "record.json").stat().st_mode) == 0o600
    assert "record.json" in result.err


# ------------------------------------------------------------------------------------------------------------- probes


@pytest.mark.parametrize(
    "stand", [MESSAGES, RESPONSES, CHAT, KIMI], ids=lambda stand: f"{stand.provider}-{stand.short}"
)
def test_every_probe_can_be_asked_and_is_answered(stand: Stand, run: Run):
    result = run(stand, "--probe", "all")
    asked = [line.split()[1].rstrip(":") for line in result.err.splitlines() if line.startswith("probe ")]
    answers = {item["id"]: item for item in result.record["open_questions"]}
    assert asked
    assert [(name, answers[name]["because"]) for name in asked if answers[name]["answer"] == "open"] == []


def test_probes_see_what_the_service_does(run: Run):
    answers = {item["id"]: item["answer"] for item in run(MESSAGES, "--probe", "all").record["open_questions"]}
    assert answers["reference-in-error"] == "no"  # documented rules of the emulator
    assert answers["reference-length"] == "no"
    assert answers["late-deferred-declaration"] == "yes"


def test_a_probe_is_within_the_budget(run: Run):
    spent = run(MESSAGES).record["spent"]
    result = run(MESSAGES, "--probe", "beta-set", budget=str(spent + 0.001))
    if result.record["stopped"] is None:
        pytest.fail("the probe was not weighed")
    assert result.record["spent"] <= spent + 0.001
    assert result.code == cli.EXIT_FINDINGS


def test_json_goes_to_standard_output_and_nothing_else(run: Run):
    result = run(CHAT, "--json")
    assert json.loads(result.out) == result.record
    assert "turn 1 of 5" in result.err
