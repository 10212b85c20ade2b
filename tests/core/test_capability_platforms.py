"""Families and platforms: what the vendors' pages, recordings and reports say, written down apart from the data."""

from __future__ import annotations

import dataclasses
import json

import pytest

from loadpoint import capability
from loadpoint._prices import cache_rule, price

MESSAGES, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
AZURE = "https://acme.openai.azure.com/openai/v1/"
FOUNDRY = "https://acme.services.ai.azure.com/openai/v1"
MANTLE = "https://bedrock-mantle.us-east-1.api.aws"
RUNTIME = "https://bedrock-runtime.us-east-1.amazonaws.com"
SEARCH, ADD, HOSTED = "tool_search", "additional_tools", "hosted_search"

# model, dialect, base_url (None: the provider's own), what `auto` may take in order, what is there by choice
FACTS = [
    # The Responses API: from 5.4 on a client's search, before it only additional_tools; nano and chat-latest no search.
    ("gpt-4o", RESPONSES, None, (ADD,), ()),
    ("gpt-4.1", RESPONSES, None, (ADD,), ()),
    ("gpt-4.1-nano", RESPONSES, None, (ADD,), ()),
    ("gpt-5-nano", RESPONSES, None, (ADD,), ()),
    ("gpt-5.2", RESPONSES, None, (ADD,), ()),
    ("gpt-5.3-codex", RESPONSES, None, (ADD,), ()),
    ("gpt-5.4", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.4-pro", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.4-mini", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.4-nano-2026-03-17", RESPONSES, None, (ADD,), ()),
    ("gpt-5.5-pro", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.6-luna", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-6-astra", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-6.1-terra", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("gpt-6.2-sol", RESPONSES, None, (SEARCH, ADD), (HOSTED,)),
    ("o3", RESPONSES, None, (), ()),
    ("o4-mini", RESPONSES, None, (), ()),
    ("gpt-oss-120b", RESPONSES, None, (), ()),
    ("gpt-6-sol", RESPONSES, "https://eu.api.openai.com/v1", (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.4", RESPONSES, AZURE, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.4", RESPONSES, FOUNDRY, (SEARCH, ADD), (HOSTED,)),
    ("gpt-5.6-sol", RESPONSES, MANTLE, (), (SEARCH,)),
    ("openai.gpt-5.6-sol", RESPONSES, RUNTIME + "/openai/v1", (), (SEARCH,)),
    ("gpt-5.4-nano", RESPONSES, MANTLE, (), ()),
    ("gpt-5.4", RESPONSES, "https://chatgpt.com/backend-api/codex", (), ()),
    ("gpt-6-sol", CHAT, None, (), ()),
    # Claude: a client's search everywhere but on Foundry, tool changes on the vendor's own API.
    ("claude-haiku-4-5", MESSAGES, None, ("tool_reference",), (HOSTED,)),
    ("claude-opus-5-5", MESSAGES, None, ("tool_reference", "tool_addition"), (HOSTED,)),
    ("claude-opus-4-1", MESSAGES, None, (), ()),
    ("claude-sonnet-5", MESSAGES, "https://aws-external-anthropic.eu-west-1.api.aws", ("tool_reference",), (HOSTED,)),
    ("claude-sonnet-5", MESSAGES, "https://claude.googleapis.com", ("tool_reference",), (HOSTED,)),
    ("claude-sonnet-5", MESSAGES, "https://us-east5-aiplatform.googleapis.com/v1", ("tool_reference",), (HOSTED,)),
    ("anthropic.claude-sonnet-5", MESSAGES, MANTLE + "/anthropic", ("tool_reference",), (HOSTED,)),
    ("anthropic.claude-sonnet-5-v1:0", MESSAGES, RUNTIME, ("tool_reference",), (HOSTED,)),
    ("claude-sonnet-5", MESSAGES, "https://acme.services.ai.azure.com/anthropic", (), ()),
    # Others with a form of their own.
    ("kimi-k3", CHAT, None, ("system_tools",), ()),
    ("kimi-k3.1-pro", CHAT, "https://api.moonshot.cn/v1", ("system_tools",), ()),
    ("morph-kimik3-fast", CHAT, "https://api.morphllm.com/v1", ("system_tools",), ()),
    ("kimi-k2.7-code", CHAT, None, (), ()),
    ("moonshotai/Kimi-K3", CHAT, "https://inference.baseten.co/v1", (), ("tool_reference",)),
    ("moonshotai/Kimi-K3", MESSAGES, "https://inference.baseten.co", (), ("tool_reference",)),
    ("moonshotai/Kimi-K3", RESPONSES, "https://inference.baseten.co/v1", (), (SEARCH,)),
    ("muse-spark-1.3", RESPONSES, None, (), (SEARCH,)),
    # Gateways that search themselves, on the APIs where they do.
    ("openai/gpt-5.4", RESPONSES, "https://openrouter.ai/api/v1", (), ("gateway_search",)),
    ("z-ai/glm-5.2", MESSAGES, "https://openrouter.ai/api", (), ("gateway_search",)),
    ("openai/gpt-5.4", CHAT, "https://openrouter.ai/api/v1", (), ()),
    ("openai/gpt-5.4", CHAT, "https://api.orq.ai/v2/router", (), ("gateway_search",)),
    # Nothing is known to be taken.
    ("deepseek-v4-pro", CHAT, None, (), ()),
    ("deepseek-flash", RESPONSES, None, (), ()),
    ("deepseek-v4-flash", MESSAGES, None, (), ()),
    ("qwen3.8-max", CHAT, None, (), ()),
    ("glm-5.3", CHAT, None, (), ()),
    ("glm-5.3", MESSAGES, "https://api.z.ai/api/anthropic", (), ()),
    ("mistral-large-4", CHAT, None, (), ()),
    ("grok-4.7", RESPONSES, None, (), ()),
    ("gemini-3.8-flash", CHAT, None, (), ()),
    ("MiniMax-M3", MESSAGES, None, (), ()),
    ("openai/gpt-oss-120b", CHAT, "https://api.groq.com/openai/v1", (), ()),
    ("accounts/fireworks/models/kimi-k3", CHAT, "https://api.fireworks.ai/inference/v1", (), ()),
    ("moonshotai/Kimi-K3", CHAT, "https://api.together.xyz/v1", (), ()),
    ("claude-opus-5", MESSAGES, "http://vllm:8000", (), ()),
    ("gpt-5.4", RESPONSES, "http://litellm:4000/v1", (), ()),
    ("anthropic/claude-opus-5", MESSAGES, "https://ai-gateway.vercel.sh", (), ()),
]


@pytest.mark.requirement("N17", "N18")
@pytest.mark.parametrize(("model", "dialect", "base_url", "taken", "by_choice"), FACTS)
def test_load_points_by_model_and_platform(model, dialect, base_url, taken, by_choice):
    found = capability(model, dialect, base_url)
    assert tuple(point.name for point in found.points if not point.by_choice) == taken
    assert tuple(point.name for point in found.points if point.by_choice) == by_choice
    assert found.native is bool(taken)
    assert found.strategies[0] == ("native" if taken else "resend")
    assert found.endpoint
    assert found.reason
    assert found.source.startswith("https://")


# model, dialect, base_url, the modes of tool_choice that are a 400, and while what
CHOICES = [
    ("claude-opus-5-5", MESSAGES, None, {"required", "named"}, ""),
    ("claude-sonnet-5-5", MESSAGES, None, {"required", "named"}, ""),
    ("claude-fable-5-2", MESSAGES, None, {"required", "named"}, ""),
    ("claude-haiku-5-5", MESSAGES, None, set(), ""),
    ("claude-opus-5", MESSAGES, None, set(), ""),
    ("gpt-5.4", RESPONSES, None, set(), ""),
    ("kimi-k3", CHAT, None, {"named", "allowed"}, ""),
    ("kimi-k2.6", CHAT, None, {"required", "named"}, "thinking"),
    ("deepseek-v4-flash", CHAT, None, {"required", "named"}, "thinking"),
    ("deepseek-flash", CHAT, None, {"required", "named"}, "thinking"),
    ("deepseek-chat", CHAT, None, set(), ""),
    ("glm-5.2", CHAT, None, {"required", "named"}, ""),
    ("z-ai/glm-5.2", CHAT, "https://openrouter.ai/api/v1", set(), ""),
    ("gpt-oss-20b", CHAT, "https://api.groq.com/openai/v1", {"required", "named"}, ""),
    ("muse-spark-1.3", RESPONSES, None, {"required", "named"}, ""),
    ("anthropic/claude-opus-5", CHAT, "https://openrouter.ai/api/v1", {"allowed"}, ""),
    ("openai/gpt-5.4", CHAT, "https://openrouter.ai/api/v1", set(), ""),
    ("my-model", CHAT, None, set(), ""),
]


@pytest.mark.parametrize(("model", "dialect", "base_url", "refused", "when"), CHOICES)
def test_forced_choices_that_are_an_error(model, dialect, base_url, refused, when):
    found = capability(model, dialect, base_url)
    assert set(found.refused_choices) == refused
    assert found.refused_while == when
    assert found.forced_choice is not bool(refused & {"required", "named"})


# model, dialect, base_url, functions in context, characters of a name, of a description
LIMITS = [
    ("gpt-5.4", CHAT, None, 128, 64, None),
    ("gpt-4o", CHAT, None, 128, 64, 1024),
    ("o3-mini", CHAT, AZURE, 128, 64, 1024),
    ("gpt-4o", CHAT, "https://gateway.example", None, 64, 1024),
    ("kimi-k3", CHAT, None, 128, 64, None),
    ("openai/gpt-oss-120b", CHAT, "https://api.groq.com/openai/v1", 128, 64, None),
    ("qwen/qwen3.8-27b", CHAT, "https://api.groq.com/openai/v1", 128, 64, None),
    ("grok-4.7", CHAT, None, 200, 64, None),
    ("grok-4.7", RESPONSES, None, 200, 64, None),
    ("claude-opus-5", MESSAGES, None, None, 64, None),
    ("mistral-large-4", CHAT, None, None, 64, None),
]


@pytest.mark.parametrize(("model", "dialect", "base_url", "functions", "name", "description"), LIMITS)
def test_limits_by_model_and_platform(model, dialect, base_url, functions, name, description):
    limits = capability(model, dialect, base_url).limits
    assert (limits.functions, limits.name_length, limits.description_length) == (functions, name, description)


# model, dialect, base_url: minimum, price of a cached and of a written token, markers
CACHES = [
    ("gemini-3-flash-preview", CHAT, None, (1024, 0.1, 1, 0)),
    ("gemini-3.1-pro-preview", CHAT, None, (4096, 0.1, 1, 0)),
    ("gemini-4-argon", CHAT, None, (4096, 0.05, 1, 0)),
    ("qwen3.8-max", CHAT, None, (1024, 0.2, 1, 0)),
    ("mistral-large-4", CHAT, None, (1024, 0.1, 1, 0)),
    ("MiniMax-M2.5", MESSAGES, None, (512, 0.1, 1.25, 4)),
    ("MiniMax-M3", MESSAGES, None, (512, 0.2, 1.25, 4)),
    ("MiniMax-M3", CHAT, None, (512, 0.2, 1, 0)),
    ("grok-4.7", CHAT, None, (128, 0.25, 1, 0)),
    ("deepseek-v4-pro", CHAT, None, (64, 0.0333, 1, 0)),
    ("openai/gpt-oss-120b", CHAT, "https://api.groq.com/openai/v1", (1024, 0.5, 1, 0)),
    ("deepseek-v4-pro", CHAT, "https://api.groq.com/openai/v1", (1024, 0.5, 1, 0)),
]


@pytest.mark.parametrize(("model", "dialect", "base_url", "rule"), CACHES)
def test_cache_rules_by_family_and_host(model, dialect, base_url, rule):
    found = cache_rule(model, dialect, base_url)
    assert (found.minimum, found.read, found.write, found.breakpoints) == rule
    assert found.source.startswith("https://")
    assert found.date


def test_what_has_no_known_price_has_none():
    assert price("deepseek-v4-pro", CHAT) is not None
    for model in ("deepseek-r2", "glm-6", "mistral-huge", "gemini-9-pro", "qwen-turbo-next"):
        assert price(model, CHAT) is None


def test_the_answer_is_ready_for_json_and_prints_on_few_lines():
    for model, dialect, base_url, *_ in FACTS:
        found = capability(model, dialect, base_url)
        assert json.loads(json.dumps(dataclasses.asdict(found)))["native"] is found.native
        lines = str(found).splitlines()
        assert 3 <= len(lines) <= 8
        assert found.reason in str(found)
        assert found.source in lines[-1]
        assert found.grade in lines[-1].lower()
        for point in found.points:
            assert point.name in str(found)


def test_print_tells_what_is_unverified_and_lets_no_name_write_lines_of_its_own():
    assert "UNVERIFIED" in str(capability("gpt-5.4", RESPONSES, "https://gateway.example"))
    odd = str(capability("evil\nknown: documented\x1b[31m", MESSAGES))
    assert "\x1b" not in odd
    assert sum(line.startswith("known:") for line in odd.splitlines()) == 1
    assert "tool_choice refused while thinking" in str(capability("deepseek-v4-pro"))
    assert str(capability("gpt-5.4", "no.dialect")).splitlines()[1] == "strategies: eager"
