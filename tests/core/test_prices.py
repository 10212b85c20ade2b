"""Prices and cache rules: from the data, from litellm's table where it is loaded, overridable."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from loadpoint._prices import CacheRule, Prices, cache_rule, cost, price
from loadpoint._usage import Usage

MESSAGES, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"


def per_million(prices: Prices) -> tuple[float, float, float, float]:
    return (
        round(prices.input * 1e6, 4),
        round(prices.cached * 1e6, 4),
        round(prices.written * 1e6, 4),
        round(prices.output * 1e6, 4),
    )


PRICES = [
    ("claude-sonnet-4-5-20250929", MESSAGES, (3, 0.3, 3.75, 15)),
    ("us.anthropic.claude-opus-4-5-20251101-v1:0", MESSAGES, (5, 0.5, 6.25, 25)),
    ("claude-opus-4-1", MESSAGES, (15, 1.5, 18.75, 75)),
    ("claude-opus-5-5", MESSAGES, (4, 0.2, 5, 20)),
    ("claude-sonnet-5", MESSAGES, (2, 0.2, 2.5, 10)),
    ("claude-sonnet-5-5", MESSAGES, (2, 0.1, 2.5, 10)),
    ("claude-haiku-4-5", MESSAGES, (1, 0.1, 1.25, 5)),
    ("claude-haiku-5-5", MESSAGES, (0.1, 0.01, 0.125, 0.5)),
    ("claude-3-5-haiku-20241022", MESSAGES, (0.8, 0.08, 1, 4)),
    ("claude-3-haiku-20240307", MESSAGES, (0.25, 0.03, 0.3, 1.25)),
    ("claude-fable-5", MESSAGES, (10, 1, 12.5, 50)),
    ("claude-mythos-5-1", MESSAGES, (10, 0.25, 12.5, 50)),
    ("gpt-5.4", CHAT, (2.5, 0.25, 2.5, 15)),
    ("gpt-5.4-mini-2026-03-17", CHAT, (0.75, 0.075, 0.75, 4.5)),
    ("gpt-5.6-sol", CHAT, (4, 0.4, 5, 20)),
    ("gpt-6.1-sol", CHAT, (2, 0.1, 2.5, 10)),
    ("gpt-5", CHAT, (1.25, 0.125, 1.25, 10)),
    ("gpt-5-2025-08-07", CHAT, (1.25, 0.125, 1.25, 10)),
    ("gpt-5-nano-2025-08-07", CHAT, (0.05, 0.005, 0.05, 0.4)),
    ("gpt-5.2-pro", RESPONSES, (21, 21, 21, 168)),
    ("gpt-4o-2024-08-06", CHAT, (2.5, 1.25, 2.5, 10)),
    ("gpt-4o-mini", CHAT, (0.15, 0.075, 0.15, 0.6)),
    ("gpt-4.1", CHAT, (2, 0.5, 2, 8)),
    ("o3-mini", CHAT, (1.1, 0.55, 1.1, 4.4)),
    ("o4-mini-2025-04-16", CHAT, (1.1, 0.275, 1.1, 4.4)),
    ("kimi-k3", CHAT, (3, 0.3, 3, 15)),
]


@pytest.fixture(autouse=True)
def _without_litellm(monkeypatch):
    monkeypatch.delitem(sys.modules, "litellm", raising=False)


@pytest.mark.parametrize(("model", "dialect", "expected"), PRICES)
def test_list_prices(model, dialect, expected):
    found = price(model, dialect)
    assert found is not None
    assert per_million(found) == expected


@pytest.mark.parametrize("model", ["llama-4", "gpt-7-nova", "", "claude-instant-1.2"])
def test_an_unknown_price_is_none_not_a_guess(model):
    assert price(model, CHAT) is None


def test_an_override_wins_and_litellm_comes_before_our_data(monkeypatch):
    table = {
        "gpt-5.4": {"input_cost_per_token": 9e-6, "output_cost_per_token": 8e-6, "cache_read_input_token_cost": 7e-6},
        "half": {"input_cost_per_token": 1e-6},
        "odd": None,
    }
    monkeypatch.setitem(sys.modules, "litellm", types.SimpleNamespace(model_cost=table))
    assert price("openai/gpt-5.4", CHAT) == Prices(9e-6, 7e-6, 9e-6, 8e-6)
    mine = Prices(1.0, 1.0, 1.0, 1.0)
    assert price("gpt-5.4", CHAT, overrides={"gpt-5.4": mine}) is mine
    assert price("gpt-4o", CHAT) is not None
    assert price("half", CHAT) is None
    assert price("odd", CHAT) is None
    monkeypatch.setitem(sys.modules, "litellm", types.SimpleNamespace())
    assert per_million(price("gpt-5.4", CHAT) or Prices(0, 0, 0, 0)) == (2.5, 0.25, 2.5, 15)


def test_litellm_is_never_imported():
    code = (
        "import sys; from loadpoint._prices import price, cache_rule; price('gpt-5.4', 'openai.chat'); "
        "cache_rule('gpt-5.4', 'openai.chat'); print('litellm' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "False"


def test_cost_bills_every_token_once():
    prices = Prices(10e-6, 1e-6, 12.5e-6, 50e-6)
    usage = Usage(input_tokens=10_000, cached=8000, written=1000, output=0)
    assert cost(usage, prices) == pytest.approx(0.0305)
    assert cost(Usage(output=1000), prices) == pytest.approx(0.05)
    assert cost(Usage(), prices) == 0


RULES = [
    ("claude-sonnet-4-5", MESSAGES, (1024, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-4-6", MESSAGES, (4096, 1, 0.1, 1.25, 4, False)),
    ("claude-haiku-4-5", MESSAGES, (4096, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-4-7-20260416", MESSAGES, (2048, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-4-8", MESSAGES, (1024, 1, 0.1, 1.25, 4, False)),
    ("claude-sonnet-5", MESSAGES, (1024, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-5", MESSAGES, (512, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-5-5", MESSAGES, (512, 1, 0.05, 1.25, 4, False)),
    ("claude-sonnet-5-5", MESSAGES, (512, 1, 0.05, 1.25, 4, False)),
    ("claude-fable-5-1", MESSAGES, (512, 1, 0.025, 1.25, 4, False)),
    ("claude-mythos-preview", MESSAGES, (2048, 1, 0.1, 1.25, 4, False)),
    ("claude-opus-4-1", MESSAGES, (1024, 1, 0.1, 1.25, 4, False)),
    ("unheard-of", MESSAGES, (1024, 1, 0.1, 1.25, 4, False)),
    ("gpt-5.4", CHAT, (1024, 128, 0.1, 1.0, 0, True)),
    ("gpt-5.5", CHAT, (2048, 128, 0.1, 1.0, 0, True)),
    ("gpt-5.6-terra", CHAT, (1024, 1, 0.1, 1.25, 4, True)),
    ("gpt-6.1-sol", CHAT, (1024, 1, 0.05, 1.25, 4, True)),
    ("gpt-4o", CHAT, (1024, 128, 0.5, 1.0, 0, True)),
    ("gpt-4.1-mini", CHAT, (1024, 128, 0.25, 1.0, 0, True)),
    ("gpt-5.2-pro", RESPONSES, (1024, 128, 1.0, 1.0, 0, True)),
    ("unheard-of", CHAT, (1024, 128, 0.5, 1.0, 0, True)),
    ("unheard-of", "no.dialect", (1024, 1, 1.0, 1.0, 0, True)),
]


@pytest.mark.parametrize(("model", "dialect", "expected"), RULES)
def test_cache_rules(model, dialect, expected):
    rule = cache_rule(model, dialect)
    assert (rule.minimum, rule.block, rule.read, rule.write, rule.breakpoints, rule.automatic) == expected


def test_a_rule_follows_the_model_behind_an_unknown_endpoint():
    assert cache_rule("gpt-4o", CHAT, "https://gateway.example") == cache_rule("gpt-4o", CHAT)
    assert cache_rule("claude-opus-5", MESSAGES).lookback == 20
    assert isinstance(cache_rule("gpt-4o", CHAT), CacheRule)
