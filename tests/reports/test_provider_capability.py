"""Field reports about what a provider takes: looked up per platform and model, never assumed from a name."""

from __future__ import annotations

import re
from typing import Any

import anthropic
import openai
import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, Conversation, everywhere, search, tools

import loadpoint
from loadpoint import Policy, capability, emulator
from loadpoint.emulator import Move, Script

RUNTIME = "https://bedrock-runtime.us-east-1.amazonaws.com"
BETA = "tool-search-tool-2025-10-19"
ARN = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/ab12cd34"


def anthropic_client(base_url: str, server: emulator.Emulator, policy: Policy | None = None) -> anthropic.Anthropic:
    http = emulator.http_client("anthropic", server)
    return loadpoint.wrap(anthropic.Anthropic(api_key="k", base_url=base_url, http_client=http), policy)


def asked(base_url: str, model: str) -> Any:
    """The one request of a conversation with sixty tools on that host."""
    server = emulator.Emulator(Script.sequence([Move(text="hello")]))
    client = anthropic_client(base_url, server)
    client.messages.create(model=model, max_tokens=9, tools=wide(), messages=[{"role": "user", "content": "hi"}])
    (exchange,) = server.exchanges
    return exchange


def wide() -> list[Any]:
    """Tools that are worth deferring: sixty of some 300 tokens."""
    return [{**tool, "description": tool["description"] * 6} for tool in tools(MESSAGES)]


@pytest.mark.report("BR-034")
@pytest.mark.parametrize(
    "model",
    [
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0",
        "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "anthropic.claude-opus-4-8",
        "anthropic.claude-haiku-6-v1:0",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-haiku-4-5-20251001-v1:0",
    ],
)
def test_what_a_platform_needs_is_sent_for_every_model_of_the_generation(model):
    found = capability(model, MESSAGES, RUNTIME)
    point = found.point("tool_reference")
    assert found.native
    assert point is not None
    assert point.betas == (BETA,)
    exchange = asked(RUNTIME, model)
    assert BETA in exchange.headers.get("anthropic-beta", "")
    assert "ToolSearch" in [tool["name"] for tool in exchange.request["tools"]]


@pytest.mark.report("BR-034")
@pytest.mark.parametrize("model", [ARN, "my-profile", "anthropic.claude-sonnet-4-20250514-v1:0", "claude-latest"])
def test_an_id_that_tells_no_generation_gets_the_safe_way(model):
    found = capability(model, MESSAGES, RUNTIME)
    assert not found.native
    assert found.strategies == ("resend", "frozen", "eager")
    assert found.reason
    exchange = asked(RUNTIME, model)
    assert BETA not in exchange.headers.get("anthropic-beta", "")
    assert "defer_loading" not in str(exchange.request)


@pytest.mark.report("BR-036")
@pytest.mark.parametrize(
    "base_url", ["https://api.z.ai/api/anthropic", "https://api.deepseek.com/anthropic", "https://gateway.example/v1"]
)
def test_a_compatible_endpoint_gets_no_native_form_and_no_beta_of_ours(base_url):
    found = capability("claude-opus-5", MESSAGES, base_url)
    assert not found.native
    exchange = asked(base_url, "claude-opus-5")
    assert "defer_loading" not in str(exchange.request)
    assert "anthropic-beta" not in exchange.headers
    names = [tool["name"] for tool in exchange.request["tools"]]
    assert set(names) == set(NAMES) or "ToolSearch" in names, "everything, or the list that grows"


@pytest.mark.report("BR-036")
def test_the_native_form_can_be_switched_off_for_one_base_url(tmp_path, monkeypatch):
    first = asked("https://api.anthropic.com", "claude-opus-5")
    assert "ToolSearch" in [tool["name"] for tool in first.request["tools"]]
    file = tmp_path / "models.toml"
    file.write_text(
        '[[denied]]\ndialects = ["anthropic.messages"]\nendpoints = ["api.anthropic.com"]\nreason = "not for us"\n',
        encoding="utf-8",
    )
    monkeypatch.setenv("LOADPOINT_MODELS", str(file))
    exchange = asked("https://api.anthropic.com", "claude-opus-5")
    assert [tool["name"] for tool in exchange.request["tools"]] == list(NAMES)
    assert capability("claude-opus-5", MESSAGES).reason == "not for us"
    assert capability("claude-opus-5", MESSAGES, "https://claude.googleapis.com").native


ODD = [
    pytest.param({"type": "namespace", "name": "multi_agent_v1", "description": "x", "tools": []}, id="namespace"),
    pytest.param({"type": "tool_of_tomorrow", "name": "later", "anything": {"goes": [1]}}, id="unknown"),
]


@pytest.mark.report("BR-031")
@pytest.mark.parametrize("tool", ODD)
@pytest.mark.parametrize("strategy", ["auto", "native", "resend"])
def test_a_tool_type_that_nobody_here_knows_goes_on_untouched(tool, strategy):
    server = emulator.Emulator(Script.sequence([Move(text="hello")]), rules="off")
    http = emulator.http_client("openai", server)
    client = loadpoint.wrap(openai.OpenAI(api_key="k", http_client=http), Policy(strategy=strategy))
    given: list[Any] = [tool, *tools(RESPONSES)]
    client.responses.create(model="gpt-5.4", input="hi", tools=given)
    exchange: Any = server.exchanges[0]
    assert tool in exchange.request["tools"]


PROVIDERS_OWN = [
    pytest.param({"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}, id="search"),
    pytest.param({"type": "web_search_20250305", "name": "web_search"}, id="server"),
    pytest.param({"type": "memory_20250818", "name": "memory"}, id="client"),
]


@pytest.mark.report("BR-033")
@pytest.mark.parametrize("tool", PROVIDERS_OWN)
@pytest.mark.parametrize("strategy", ["auto", "native", "resend"])
def test_a_tool_that_the_provider_runs_is_declared_as_it_was_given(tool, strategy):
    server = emulator.Emulator(Script.sequence([Move(text="hello")]))
    client = anthropic_client("https://api.anthropic.com", server, Policy(strategy=strategy))
    given: list[Any] = [tool, *wide()]
    client.messages.create(
        model="claude-opus-5", max_tokens=9, tools=given, messages=[{"role": "user", "content": "hi"}]
    )
    exchange: Any = server.exchanges[0]
    assert tool in exchange.request["tools"]
    deferred = "ToolSearch" in [each["name"] for each in exchange.request["tools"]]
    assert deferred is not tool["name"].startswith("tool_search"), "whoever brings a search has chosen"


MALFORMED: list[Any] = [
    {"type": "namespace", "name": "n", "description": "d", "tools": [None, "x"]},
    {"type": "namespace", "name": "n", "description": "d", "tools": [None]},
    {"type": "namespace", "name": "n", "description": "d", "tools": ["x"]},
    {"type": "namespace", "name": "n", "description": "d", "tools": "all"},
    {"type": "namespace", "name": None, "tools": [{"type": "function", "name": None}]},
    {"type": "function", "name": ["x"]},
    {"type": None},
    None,
    "x",
]


@pytest.mark.report("BR-030")
@pytest.mark.parametrize("tool", MALFORMED, ids=str)
@pytest.mark.parametrize("strategy", ["auto", "native", "resend"])
@pytest.mark.parametrize("search", ["local", "hosted"])
def test_a_malformed_tool_is_the_providers_to_name(tool, strategy, search, caplog):
    """Also where a choice names one of the others: the caller gets the provider's own words, never a crash of ours."""
    server = emulator.Emulator(Script.sequence([Move(text="hello"), Move(text="hello")]))
    http = emulator.http_client("openai", server)
    bare: Any = openai.OpenAI(api_key="k", http_client=http, max_retries=0)
    given: list[Any] = [tool, *tools(RESPONSES)]
    choice = {"type": "function", "name": NAMES[0]}
    said: list[Any] = []
    for client in (bare, loadpoint.wrap(bare, Policy(strategy=strategy, search=search))):
        try:
            reply = client.responses.create(model="gpt-5.4", input="hi", tools=given, tool_choice=choice)
            said.append(reply.output_text)
        except openai.BadRequestError as error:
            said.append(re.sub(r"\[\d+\]", "[]", error.message))  # the list is in another order
    assert said[0] == said[1]
    exchange: Any = server.exchanges[1]
    assert tool in exchange.request["tools"]
    assert "a fault in" not in caplog.text


@everywhere
@pytest.mark.report("BR-028")
def test_deferral_is_decided_here_and_needs_no_key_of_a_server(form):
    """A list of a server carries names and schemas only: which of them wait is the policy's to say, by name."""
    served = [f"mcp__crm__{name}" for name in NAMES]
    talk = form.talk({"defer": ("mcp__crm__*",)}, names=[*served, "ledger_sum"])
    assert "defer_loading" not in str(talk.request().body)
    talk.load(served[0])
    assert talk.in_context(talk.bodies[0]) == ["ToolSearch", "ledger_sum"]
    assert served[0] in talk.callable()


OPTIONS: dict[str, dict[str, Any]] = {
    CHAT: {"temperature": 0.3, "user": "u1", "metadata": {"a": "b"}, "allowed_openai_params": ["tools"]},
    MESSAGES: {"temperature": 0.3, "metadata": {"user_id": "u1"}, "option_of_tomorrow": [1]},
    RESPONSES: {"temperature": 0.3, "user": "u1", "metadata": {"a": "b"}, "option_of_tomorrow": [1]},
}


@everywhere
@pytest.mark.report("BR-027")
def test_options_of_the_caller_go_with_every_round(form):
    talk = form.talk(extra=OPTIONS[form.dialect])
    talk.server = emulator.Emulator(talk.server.script, rules="off")
    talk.load("invoice_export")
    assert len(talk.bodies) == 3
    for body in talk.bodies:
        assert {key: body[key] for key in OPTIONS[form.dialect]} == OPTIONS[form.dialect]


@pytest.mark.report("BR-027")
@pytest.mark.parametrize("strategy", ["auto", "native", "resend"])
@pytest.mark.parametrize("model", ["gpt-5.4", "gpt-5.2", "gpt-4o"])
def test_entries_that_a_model_cannot_search_are_sent_as_they_are_never_dropped(strategy, model):
    """A namespace and what a server runs, beside functions: all are in the list or found by a search."""
    functions = {wire["name"]: wire for wire in tools(RESPONSES)}
    crm = {"type": "namespace", "name": "crm", "description": "CRM.", "tools": [functions.pop("invoice_export")]}
    server = {"type": "web_search"}
    extra = {"tools": [server, crm, *functions.values()]}
    talk = Conversation(RESPONSES, Policy(strategy=strategy, threshold_tokens=1), model=model, extra=extra)
    talk.user("go")
    call = talk.begun()
    assert server in call.body["tools"]
    wanted = "crm.invoice_export"
    talk.answer(talk.send(Move(calls=[search(wanted)]), Move(calls=[(wanted, {"id": 1})])))
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [wanted]
