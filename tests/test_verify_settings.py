"""`loadpoint verify` before anything is sent: usage, the open questions, the meter; and the paths with a real key."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.live import KEY, STANDS

from loadpoint import capability, cli, verify
from loadpoint._prices import Prices, cache_rule, price
from loadpoint._tokens import estimate
from loadpoint._usage import UsageFields
from loadpoint.verify import _meter, _questions, _redact, _script

FIELDS = UsageFields("input_tokens", "output_tokens")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every provider has a fake key, so that a test which gets too far is refused by the guard of the test suite."""
    if os.environ.get("LOADPOINT_LIVE") != "1":
        for row in verify.providers().values():
            monkeypatch.setenv(row["key"], KEY)


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The line on standard error of a command that must end with exit code 2 and say nothing else."""
    assert cli.main(["verify", *arguments]) == cli.EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1, captured.err
    return captured.err


@pytest.mark.parametrize("stand", STANDS, ids=lambda stand: stand.provider + stand.short)
def test_without_a_key_one_line_names_the_variable(stand: Any, capsys: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(stand.key)
    line = told(["--live", stand.provider, "--budget", "1", "--dialect", stand.short], capsys)
    assert stand.key in line


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "--live"),
        (["--live", "nobody", "--budget", "1"], "'nobody'"),
        (["--live", "anthropic"], "--budget"),
        (["--live", "anthropic", "--budget", "0"], "'0'"),
        (["--live", "anthropic", "--budget", "-1"], "'-1'"),
        (["--live", "anthropic", "--budget", "nan"], "'nan'"),
        (["--live", "anthropic", "--budget", "inf"], "'inf'"),
        (["--live", "anthropic", "--budget", "cheap"], "'cheap'"),
        (["--live", "anthropic", "--budget", "1", "--dialect", "chat"], "allowed: messages"),
        (["--live", "openai", "--budget", "1", "--dialect", "soap"], "allowed: responses, chat"),
        (["--live", "compatible", "--budget", "1"], "--base-url and --model"),
        (["--live", "openai", "--budget", "1", "--base-url", "llm.example.com"], "--base-url"),
        (["--live", "openai", "--budget", "1", "--base-url", "http://llm.example.com/v1"], "https"),
        (["--live", "openai", "--budget", "1", "--strategy", "lazy"], "'lazy'"),
        (["--live", "openai", "--budget", "1", "--load-point", "nowhere"], "'nowhere'"),
        (["--live", "openai", "--budget", "1", "--endpoint", "https://x/y"], "endpoint"),
        (["--live", "openai", "--budget", "1", "--price", "1"], "--price"),
        (["--live", "openai", "--budget", "1", "--price", "1,-2"], "--price"),
        (["--live", "openai", "--budget", "1", "--probe", "unknown"], "'unknown'"),
        (["--live", "openai", "--budget", "1", "--probe", "text-and-reference"], "'text-and-reference'"),
        (["--live", "openai", "--budget", "1", "--record", "no/such/folder/file.json"], "--record"),
        (["--open-questions", "--live", "nobody"], "'nobody'"),
    ],
)
def test_unusable_usage_is_one_clear_line(arguments: list[str], expected: str, capsys: pytest.CaptureFixture[str]):
    assert expected in told(arguments, capsys)


def test_a_switched_off_process_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOADPOINT", "off")
    assert "LOADPOINT" in told(["--live", "anthropic", "--budget", "1"], capsys)


def test_credentials_in_an_address_are_not_repeated(capsys: pytest.CaptureFixture[str]):
    line = told(["--live", "openai", "--budget", "1", "--base-url", f"http://me:{KEY}@llm.example.com/v1"], capsys)
    assert KEY not in line


def test_the_help_names_providers_and_exit_codes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["verify", "--help"]) == cli.EXIT_OK
    text = " ".join(capsys.readouterr().out.split())
    assert all(name in text for name in verify.providers())
    assert "Exit codes: 0 verified; 1" in text


# ----------------------------------------------------------------------------------------------------------- the data


def test_default_models_are_cheap_and_have_a_price():
    for name in verify.providers():
        if name == "compatible":
            continue
        for dialect in verify.providers()[name]["dialects"]:
            place = verify.place(verify.Settings(provider=name, budget=1, dialect=dialect))
            prices = price(place.model, dialect)
            assert prices is not None, name
            assert prices.input <= 3 / 1_000_000, name
        best = verify.place(verify.Settings(provider=name, budget=1))
        assert capability(best.model, dialect=best.dialect).load_points, name


@pytest.mark.parametrize(
    "model", ["claude-haiku-4-5", "claude-haiku-5-5", "gpt-5.6-luna", "gpt-5.5", "kimi-k3", "other"]
)
def test_the_system_prompt_is_long_enough_for_the_cache(model: str):
    rule = cache_rule(model, "anthropic.messages" if "claude" in model else "openai.chat")
    assert estimate(_script.system(rule.minimum, "x")) > rule.minimum * 1.2


def test_the_script_finds_its_tools():
    names = [tool.name for tool in _script.tools()]
    assert len(names) == len(set(names)) == 60
    assert {said.expects for said in _script.TURNS if said.expects} == set(_script.ARGUMENTS) <= set(names)
    assert sum(said.follow_up for said in _script.TURNS) == 1


def test_open_questions_are_complete_and_name_what_exists(repo: Path):
    folder = repo / "src/loadpoint/_providers"
    rules = {rule["id"] for rule in tomllib.loads((folder / "rules.toml").read_text("utf-8"))["rule"]}
    listed = verify.questions()
    assert len({item.id for item in listed}) == len(listed)
    for item in listed:
        assert set(item.providers) <= set(verify.providers()), item.id
        assert item.settled in {"run", "probe", "hand"}, item.id
        assert item.how, item.id
        assert item.grades, item.id
        assert item.source.startswith("https://"), item.id
        assert bool(item.bodies) == (item.settled == "probe") == bool(item.path), item.id
        assert bool(item.load_point) == (item.settled == "run"), item.id
        assert len(item.headers) in {0, len(item.bodies)}, item.id
        assert all(isinstance(json.loads(body), dict) for body in item.bodies), item.id
        for row in item.grades:
            file, _, rest = row.partition(": ")
            if file == "rules.toml":
                assert rest in rules, item.id
            elif file.endswith(".toml"):
                assert (folder / file).is_file(), item.id
        if item.settled == "run":
            assert item.reads in _questions._READINGS, item.id
            place = verify.place(verify.Settings(provider=item.providers[0], budget=1, dialect=item.dialect))
            assert item.load_point in capability(place.model, dialect=item.dialect).load_points, item.id


def test_every_assumed_rule_that_a_cheap_request_can_settle_is_asked_about(repo: Path):
    asked = {row.removeprefix("rules.toml: ") for item in verify.questions() for row in item.grades}
    wanted = {"messages.result_mixes_reference", "messages.tool_choice_deferred", "responses.search_twice"}
    assert wanted | {"responses.tool_choice_deferred", "chat.tool_names_unique"} <= asked


def test_open_questions_are_listed_without_a_key(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    for row in verify.providers().values():
        monkeypatch.delenv(row["key"], raising=False)
    assert cli.main(["verify", "--open-questions"]) == cli.EXIT_OK
    out = capsys.readouterr().out
    assert all(item.id in out for item in verify.questions())
    assert cli.main(["verify", "--open-questions", "--live", "moonshot", "--json"]) == cli.EXIT_OK
    listed = json.loads(capsys.readouterr().out)["open_questions"]
    assert listed
    assert all("moonshot" in item["providers"] for item in listed)
    assert {"id", "question", "providers", "dialect", "settled", "how", "grades", "source"} == set(listed[0])


# ----------------------------------------------------------------------------------------------------------- the meter


def body(size: int, limit: int) -> bytes:
    return json.dumps({"max_tokens": limit, "messages": [{"role": "user", "content": "x" * size}]}).encode()


def test_the_worst_case_is_above_any_bill():
    prices = Prices(input=1.0, cached=0.1, written=1.25, output=5.0)
    meter = _meter.Meter(1e9, prices, FIELDS)
    content = body(10_000, 100)
    assert meter.worst(content, "/v1/messages") >= len(content) / 3 * prices.written + 100 * prices.output
    assert meter.worst(content, "/v1/messages/count_tokens") == 0


def test_what_nobody_reported_counts_as_the_worst_case():
    meter = _meter.Meter(1e9, Prices(1.0, 1.0, 1.0, 1.0), FIELDS)
    content = body(100, 10)
    worst = meter.worst(content, "/x")
    lost = meter.leaves("/x", content)  # the connection broke: nobody knows whether it was billed
    assert meter.spent == worst
    assert lost.status is None
    silent = meter.leaves("/x", content)
    meter.answered(silent, 200, None, {}, worst)  # a server that reports no usage
    assert meter.spent == 2 * worst
    refused = meter.leaves("/x", content)
    meter.answered(refused, 429, None, {"error": {}}, worst)
    assert meter.spent == 2 * worst
    paid = meter.leaves("/x", content)
    meter.answered(paid, 200, "r", {"usage": {"input_tokens": 7, "output_tokens": 3}}, worst)
    assert meter.spent == pytest.approx(2 * worst + 10)
    assert paid.cost == 10


def test_the_shape_of_a_request_has_no_words_of_it():
    sent = {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "secret words"}]}]}
    kept = json.dumps(
        _meter.shape(sent | {"tools": [{"name": "hush", "description": "secret", "defer_loading": True}]})
    )
    assert "secret" not in kept
    assert "hush" not in kept
    assert "user[text]" in kept


@pytest.mark.parametrize("text", ["sk-abcdef123", "Bearer abc.def", "org-Ab12Cd", "proj_99aBc1", "key-000111222"])
def test_what_looks_secret_is_taken_out(text: str):
    assert text not in _redact.redacted(f"refused: {text}, again", "")
    assert "***" in _redact.redacted(f"refused: {text}, again", "")


def test_a_key_that_looks_like_nothing_is_taken_out_wherever_it_stands():
    key = "7f3a9c2e5b8d1046"
    text = _redact.redacted("x" * (_redact.LONGEST - 8) + f"{key} and {key}", key)
    assert key[:8] not in text
    assert _redact.redacted(f"no such key:{key}", key) == "no such key:***"


def test_ordinary_words_stay():
    text = "native: tool_reference, slack__user_profile, req_011Cs5hPjJ1gcEFSkxmYpS9M, browser__press_key"
    assert _redact.redacted(text, KEY) == text


# ------------------------------------------------------------------------------------------------------ the real thing


@pytest.mark.live
@pytest.mark.parametrize("provider", [name for name in verify.providers() if name != "compatible"])
def test_a_real_provider_agrees(provider: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Run by LOADPOINT_LIVE=1 with a key in the environment; costs a few cents."""
    key = os.environ.get(verify.providers()[provider]["key"])
    if not key:
        pytest.skip(f"no key for {provider}")
    target = tmp_path / "record.json"
    code = cli.main(["verify", "--live", provider, "--budget", "1", "--probe", "all", "--record", str(target)])
    captured = capsys.readouterr()
    assert key not in target.read_text("utf-8") + captured.out + captured.err
    assert re.search(r"tokens in +[\d,]+ +[\d,]+", captured.out)
    assert code == cli.EXIT_OK, captured.err
