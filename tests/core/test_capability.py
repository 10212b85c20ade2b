"""Capability: what a model takes on an endpoint, for every spelling of its name, from the data alone."""

from __future__ import annotations

import itertools
import typing

import pytest

from loadpoint import _models
from loadpoint._capability import Limits, LoadPoint, capability

MESSAGES, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
NATIVE, SAFE = ("native", "resend", "frozen", "eager"), ("resend", "frozen", "eager")


def detail(name: str, model: str, dialect: str = MESSAGES, base_url: str | None = None) -> LoadPoint:
    point = capability(model, dialect, base_url).point(name)
    assert point is not None
    return point


NEW = [
    "claude-sonnet-4-5",
    "claude-sonnet-4-5-20250929",
    "claude-sonnet-4-5-latest",
    "claude-sonnet-4-5@20250929",
    "claude-sonnet-4.5",
    "Claude-Sonnet-4-5",
    "anthropic/claude-sonnet-4.5",
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "publishers/anthropic/models/claude-haiku-4-5@20251001",
    "models/claude-haiku-4-5",
    "claude-haiku-4-5-20251001",
    "claude-opus-4-5-20251101",
    "anthropic.claude-opus-4-6-v1",
    "databricks-claude-opus-4-7",
    "claude-opus-4-8",
    "claude-mythos-preview",
    "claude-fable-5-2",
    "claude-opus-5",
    "claude-opus-5-5",
    "anthropic.claude-opus-5-5",
    "claude-sonnet-5",
    "claude-haiku-5-5@default",
    "claude-4.5-sonnet",
    "claude-saga-6",
    "claude-opus-10-2",
]
OLD = [
    "claude-opus-4-1-20250805",
    "claude-opus-4-20250514",
    "claude-sonnet-4-20250514",
    "claude-sonnet-4@20250514",
    "claude-sonnet-4-0",
    "claude-3-7-sonnet-latest",
    "claude-3-5-sonnet-20241022",
    "anthropic.claude-3-5-sonnet-20241022-v2:0",
    "claude-3-5-haiku@20241022",
    "claude-3-opus-20240229",
    "claude-2.1",
    "anthropic.claude-v2:1",
    "claude-instant-1.2",
]
UNKNOWN = ["my-model", "", "claude", "claude-sonnet-latest", "gpt", "llama-4", "arn:aws:bedrock:x:1:application/ab12"]


@pytest.mark.requirement("N17")
@pytest.mark.parametrize("model", NEW)
def test_the_generation_that_takes_references_is_recognised_in_every_spelling(model):
    found = capability(model, MESSAGES)
    assert found.native
    assert found.strategies == NATIVE
    assert found.load_points[0] == "tool_reference"
    assert found.grade in {"documented", "recorded"}
    assert found.source.startswith("https://")
    assert "tool_reference" in found.reason


@pytest.mark.requirement("N18")
@pytest.mark.parametrize("model", OLD)
def test_an_older_model_gets_its_schemas_through_the_tool_list(model):
    found = capability(model, MESSAGES)
    assert not found.native
    assert found.strategies == SAFE
    assert found.load_points == ()
    assert "4.5 generation" in found.reason


@pytest.mark.requirement("N18")
@pytest.mark.parametrize("model", UNKNOWN)
def test_an_unknown_model_gets_the_safe_choice_and_the_reason(model):
    found = capability(model, MESSAGES)
    assert not found.native
    assert found.strategies == SAFE
    assert "not a model the data knows" in found.reason
    assert found.grade == "unverified"


@pytest.mark.requirement("N18")
@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-4o", "o3", "my-deployment", "claude-opus-5-5"])
def test_chat_has_no_native_form_whatever_the_model(model):
    found = capability(model)
    assert found.strategies == SAFE
    assert found.load_points == ()
    assert found.grade == "documented"
    assert "Chat Completions" in found.reason


@pytest.mark.parametrize(
    "base_url",
    [
        "http://127.0.0.1:8080/v1",
        "http://[::1]:9/",
        "https://llm.corp.example/anthropic",
        "https://api.anthropic.com.evil.example",
        "https://user:api.anthropic.com@proxy.example/v1",
        "https://proxy.example/?to=https://api.anthropic.com",
        "",
        "not a url",
    ],
)
def test_an_unknown_endpoint_is_not_assumed_to_take_native_forms(base_url):
    found = capability("claude-opus-5-5", MESSAGES, base_url)
    assert not found.native
    assert found.endpoint is None
    assert found.strategies == SAFE
    assert "not an endpoint the data knows" in found.reason
    assert "user" not in found.reason
    assert [point.name for point in found.insisted][:2] == ["tool_reference", "tool_addition"]


ENDPOINTS = [
    ("https://api.anthropic.com", True),
    ("https://API.Anthropic.com:443/v1/messages", True),
    ("api.anthropic.com", True),
    ("https://aws-external-anthropic.us-east-1.api.aws", True),
    ("https://bedrock-mantle.us-east-1.api.aws/anthropic", True),
    ("https://bedrock-runtime.eu-west-1.amazonaws.com", True),
    ("https://us-east5-aiplatform.googleapis.com/v1", True),
    ("https://aiplatform.googleapis.com/v1", True),
    ("https://aiplatform.eu.rep.googleapis.com/v1", True),
    ("https://claude.googleapis.com", True),
    ("https://acme.services.ai.azure.com/anthropic/", False),
    ("https://api.deepseek.com/anthropic", False),
    ("https://api.z.ai/api/anthropic", False),
    ("https://openrouter.ai/api", False),
]


@pytest.mark.parametrize(("base_url", "native"), ENDPOINTS)
def test_platforms_differ(base_url, native):
    found = capability("claude-opus-4-5", MESSAGES, base_url)
    assert found.native is native
    assert found.endpoint
    assert found.source
    assert not capability("claude-sonnet-4-20250514", MESSAGES, base_url).native


def test_a_platform_that_needs_a_beta_for_the_form_says_so():
    runtime = "https://bedrock-runtime.us-east-1.amazonaws.com"
    there = detail("tool_reference", "us.anthropic.claude-haiku-4-5-20251001-v1:0", MESSAGES, runtime)
    here = detail("tool_reference", "claude-haiku-4-5")
    assert there.betas == ("tool-search-tool-2025-10-19",)
    assert here.betas == ()
    for message in (
        "invalid beta flag",
        "Unexpected value(s) `tool-search-tool-2025-10-19` for the `anthropic-beta` header",
    ):
        assert there.refuses(message)
        assert not here.refuses(message)  # then it was the caller's own beta


def test_tool_changes_are_the_second_load_point_where_they_exist():
    changes = {
        model: "tool_addition" in capability(model, MESSAGES).load_points
        for model in ("claude-opus-4-7", "claude-opus-4-8", "claude-opus-5", "claude-sonnet-5", "claude-sonnet-5-5",
                      "claude-haiku-4-5", "claude-haiku-5-5", "claude-fable-5", "claude-mythos-preview")
    }  # fmt: skip
    assert changes == {
        "claude-opus-4-7": False, "claude-opus-4-8": True, "claude-opus-5": True, "claude-sonnet-5": False,
        "claude-sonnet-5-5": True, "claude-haiku-4-5": False, "claude-haiku-5-5": True, "claude-fable-5": True,
        "claude-mythos-preview": False,
    }  # fmt: skip
    point = detail("tool_addition", "claude-opus-5")
    assert point.betas == ("inline-tools-2026-09-15",)
    assert point.declare == ""


def test_the_providers_own_search_is_known_but_never_taken_by_itself():
    hosted, own = detail("hosted_search", "claude-opus-5"), detail("tool_reference", "claude-opus-5")
    assert (hosted.by_choice, hosted.declare) == (True, "all")
    assert (own.by_choice, own.declare) == (False, "on_load")
    assert capability("claude-opus-5", MESSAGES).point("nothing") is None
    gateway = capability("openai/gpt-5.2", RESPONSES, "https://openrouter.ai/api/v1")
    assert gateway.load_points == ("gateway_search",)
    assert not gateway.native


RESPONSES_POINTS = [
    ("gpt-5.4", ("tool_search", "additional_tools", "hosted_search")),
    ("gpt-5.4-mini-2026-03-17", ("tool_search", "additional_tools", "hosted_search")),
    ("gpt-6.1-sol", ("tool_search", "additional_tools", "hosted_search")),
    ("openai.gpt-6-luna", ("tool_search", "additional_tools", "hosted_search")),
    ("gpt-5.4-nano", ("additional_tools",)),
    ("gpt-5.2", ("additional_tools",)),
    ("gpt-5-2025-08-07", ("additional_tools",)),
    ("gpt-4o-mini", ("additional_tools",)),
    ("ft:gpt-4o-mini-2024-07-18:acme::id", ("additional_tools",)),
    ("gpt-4-turbo", ()),
    ("gpt-4-32k", ()),
    ("gpt-35-turbo", ()),
    ("o3", ()),
    ("gpt-oss-120b", ()),
]


@pytest.mark.parametrize(("model", "points"), RESPONSES_POINTS)
def test_the_responses_api_by_model(model, points):
    assert capability(model, RESPONSES).load_points == points


def test_kimi_from_k3_takes_tools_in_a_system_message():
    assert capability("kimi-k3").load_points == ("system_tools",)
    assert capability("moonshotai/Kimi-K3.1-Pro", CHAT, "https://api.moonshot.cn/v1").native
    assert not capability("kimi-k2.6").native
    assert not capability("kimi-k3", CHAT, "https://inference.example").native


def test_what_a_model_does_otherwise():
    forced = {m: capability(m, MESSAGES).forced_choice for m in ("claude-opus-5", "claude-opus-5-5", "claude-fable-5-1",
              "claude-mythos-preview", "claude-haiku-5-5", "claude-sonnet-4-5", "nonsense")}  # fmt: skip
    assert forced == {"claude-opus-5": True, "claude-opus-5-5": False, "claude-fable-5-1": False,
                      "claude-mythos-preview": False, "claude-haiku-5-5": True, "claude-sonnet-4-5": True,
                      "nonsense": True}  # fmt: skip
    binds = {m: capability(m, MESSAGES).binds_thinking for m in ("claude-opus-5", "claude-opus-5-5", "claude-fable-5-2",
             "claude-sonnet-5-5", "claude-haiku-5-5")}  # fmt: skip
    assert binds == {"claude-opus-5": False, "claude-opus-5-5": True, "claude-fable-5-2": True,
                     "claude-sonnet-5-5": True, "claude-haiku-5-5": False}  # fmt: skip
    # A trait is the model's, wherever it runs.
    assert not capability("anthropic.claude-opus-5-5", MESSAGES, "https://gateway.example").forced_choice


def test_limits():
    assert capability("claude-opus-5", MESSAGES).limits.deferred == 10_000
    assert capability("claude-opus-5", MESSAGES).limits.reference_length == 64
    assert capability("gpt-5.4").limits.functions == 128
    assert capability("gpt-5.4", CHAT, "http://127.0.0.1:1/v1").limits.functions is None
    assert capability("kimi-k3").limits.name_pattern == "[a-zA-Z_][a-zA-Z0-9_-]{2,63}"
    assert capability("x", "no.dialect").limits == Limits()


def test_an_unknown_dialect_is_left_alone():
    found = capability("gpt-5.4", "other.api")
    assert found.strategies == ("eager",)
    assert "not a dialect" in found.reason


REFUSALS = [
    (
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' does not match any "
        "of the expected tags: 'document', 'image', 'search_result', 'text'"
    ),
    "tools.3.custom.defer_loading: Extra inputs are not permitted",
    "400 Some tools are not available",
    "tool search is not supported on this deployment",
]
OTHER_ERRORS = [
    "tools.0.input_schema: JSON schema is invalid",
    "Tool 'x' cannot have both defer_loading=true and cache_control set.",
    "Tools with defer_loading cannot use prompt caching.",
    "invalid beta flag",
    "At least one tool must have defer_loading=false. All tools cannot be deferred.",
    "tools: Tool names must be unique.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "messages: text content blocks must be non-empty",
    "max_tokens: 999999 > 64000, which is the maximum allowed number of output tokens",
    'tool_choice: type "tool" and "any" are not supported for this model.',
    "all content must be type 'text' if 'is_error' is true",
]


@pytest.mark.parametrize("message", REFUSALS)
def test_a_refusal_of_the_form_is_told_from_the_callers_own_errors(message):
    point = detail("tool_reference", "claude-opus-5")
    assert point.refuses(message)
    assert not point.wants_all(message)


@pytest.mark.parametrize("message", OTHER_ERRORS)
def test_the_callers_own_errors_are_no_refusal(message):
    for point in capability("claude-opus-4-5", MESSAGES).points:
        assert not point.refuses(message), point.name
        assert not point.wants_all(message), point.name


def test_refusals_of_the_other_forms():
    search = detail("tool_search", "gpt-5.4", RESPONSES)
    assert search.refuses("Tool 'tool_search' is not supported with gpt-5.4-nano.")
    assert search.refuses("Invalid value: 'tool_search'. Supported values are: 'function' and 'custom'.")
    assert not search.refuses("Invalid Value: 'tools.defer_loading'. Deferred tools require tools.tool_search.")
    changes = detail("tool_addition", "claude-opus-5")
    assert changes.refuses("role 'system' is not supported on this model")
    assert not changes.refuses("role 'system' must precede an 'assistant' message or end the array")
    assert changes.wants_all("tool_addition/tool_removal references unknown tool 'X'")


def test_a_provider_that_wants_every_tool_declared_is_recognised():
    point = detail("tool_reference", "claude-opus-5")
    assert point.wants_all("Tool reference 'invoice_void' not found in available tools")
    assert not point.refuses("Tool reference 'invoice_void' not found in available tools")


def test_the_answer_is_computed_once_and_fast_from_then_on():
    first = capability("claude-opus-5", MESSAGES, "https://api.anthropic.com")
    assert capability("claude-opus-5", MESSAGES, "https://api.anthropic.com") is first


def test_every_model_name_of_the_sdks_is_recognised():
    anthropic = pytest.importorskip("anthropic.types.model")
    shared = pytest.importorskip("openai.types.shared.all_models")
    names = {name for name in literals(anthropic.Model) | literals(shared.AllModels) if "-" in name or name[0] == "o"}
    other = ("computer-use", "codex-mini", "gpt-audio", "gpt-daybreak", "gpt-rosalind", "daybreak", "gpt-realtime")
    unknown = {name for name in names if _models.parse(name) is None and not name.startswith(other)}
    assert unknown == set()


def literals(hint) -> set[str]:
    if isinstance(hint, str):
        return {hint}
    return set(itertools.chain.from_iterable(literals(part) for part in typing.get_args(hint)))


def test_an_unknown_dialect_is_answered_with_the_known_ones():
    assert "allowed: openai.chat, openai.responses, anthropic.messages" in capability("gpt-5.4", "zork").reason
