"""The table of what litellm carries, held against the litellm that is installed; and how a call finds its row."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.litellm.arriving import CHAT, MESSAGES, PROBES, RESPONSES, Recorder, arguments, arrived, recording

from loadpoint import _models
from loadpoint._capability import capability
from loadpoint._carrier import Carrier
from loadpoint_adapters.litellm import _compat, _routes

V1 = (
    "openai",
    "openrouter",
    "deepseek",
    "moonshot",
    "mistral",
    "xai",
    "groq",
    "hosted_vllm",
    "custom_openai",
    "baseten",
)
MODELS = {
    "openai": "openai/gpt-5.4",
    "openai responses": "openai/responses/gpt-5.4",
    "azure": "azure/gpt-5.4",
    "anthropic": "anthropic/claude-opus-5",
    "azure_ai": "azure_ai/claude-opus-4-8",
    "openrouter": "openrouter/anthropic/claude-opus-4.8",
    "deepseek": "deepseek/deepseek-chat",
    "moonshot": "moonshot/kimi-k3",
    "mistral": "mistral/mistral-large-latest",
    "xai": "xai/grok-4.3",
    "groq": "groq/openai/gpt-oss-120b",
    "hosted_vllm": "hosted_vllm/some-model",
    "custom_openai": "custom_openai/some-model",
    "baseten": "baseten/some-model",
    "gemini": "gemini/gemini-3-pro",
    "vertex_ai": "vertex_ai/claude-opus-4-8",
    "vertex_ai gemini": "vertex_ai/gemini-3-pro",
    "bedrock converse": "bedrock/converse/anthropic.claude-opus-4-8-v1:0",
    "bedrock invoke": "bedrock/invoke/anthropic.claude-opus-4-8-v1:0",
}


def reached(route: str, url: str) -> dict[str, Any]:
    """The arguments by which a call of this route goes to `url`."""
    if route.startswith("bedrock"):
        keys = {"aws_access_key_id": "AKIA", "aws_secret_access_key": "secret", "aws_region_name": "us-east-1"}
        return {**keys, "aws_bedrock_runtime_endpoint": url}
    if route.startswith("vertex"):
        return {"api_base": url, "vertex_project": "p", "vertex_location": "us-east5"}
    more = {"api_version": "2026-01-01-preview"} if route == "azure" else {}
    return {"api_base": url + "/v1" if route.partition(" ")[0] in V1 else url, "api_key": "k", **more}


@pytest.fixture(scope="module")
def kept() -> Any:
    with recording() as recorder:
        yield recorder


@pytest.fixture(autouse=True)
def _vertex_token(litellm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token for Vertex, which is asked for elsewhere before anything is sent."""
    from litellm.llms.vertex_ai.vertex_llm_base import VertexBase

    async def later(*_: Any, **__: Any) -> tuple[str, str]:
        return "token", "p"

    monkeypatch.setattr(VertexBase, "_ensure_access_token", lambda *_, **__: ("token", "p"))
    monkeypatch.setattr(VertexBase, "_ensure_access_token_async", later)


async def send(litellm: Any, dialect: str, route: str, given: dict[str, Any], kept: Recorder) -> None:
    kept.seen.clear()
    call = {CHAT: litellm.acompletion, RESPONSES: litellm.aresponses, MESSAGES: litellm.anthropic.messages.acreate}
    with contextlib.suppress(Exception):  # what is asked for is what arrived; the server refuses it all
        await call[dialect](model=MODELS[route], **given, **reached(route, kept.url), num_retries=0, max_retries=0)


@pytest.mark.report("BR-027", "BR-034")
@pytest.mark.parametrize("route", MODELS)
@pytest.mark.anyio
async def test_what_the_table_says_is_carried_arrives_and_nothing_else_does(litellm: Any, kept: Recorder, route: str):
    found, told = set[tuple[str, str]](), set[tuple[str, str]]()
    for dialect, form in PROBES:
        where = _routes.place({"model": MODELS[route], **reached(route, kept.url)}, dialect)
        await send(litellm, dialect, route, arguments(dialect, form), kept)
        if arrived(dialect, form, kept):
            found.add((dialect, form))
        if form in where.carrier.carries:
            told.add((dialect, form))
    assert found == told


@pytest.mark.parametrize(
    ("provider", "dialect", "model"), [("anthropic", CHAT, "claude-opus-5"), ("openai", RESPONSES, "gpt-5.4")]
)
def test_a_version_that_nobody_tried_carries_nothing(provider: str, dialect: str, model: str):
    assert _routes.carrier(provider, "", model, dialect, "1.110.9").carries
    later = _routes.carrier(provider, "", model, dialect, "1.111.0")
    assert later.carries == ()
    assert "1.111.0" in later.reason
    assert later.grade == "unverified"


def test_a_carrier_leaves_of_a_capability_what_arrives():
    able = capability("claude-opus-5", MESSAGES)
    assert {"tool_reference", "tool_addition"} <= set(able.load_points)
    some = Carrier(carries=("tool_reference",), reason="the rest is lost").narrowed(able)
    assert some.load_points == ("tool_reference",)
    assert some.native
    assert {point.name for point in some.insisted} == {"tool_reference"}
    none = Carrier(reason="all is lost", grade="recorded").narrowed(able)
    assert (none.native, none.load_points, none.insisted) == (False, (), ())
    assert none.strategies == ("resend", "frozen", "eager")
    assert (none.reason, none.grade) == ("all is lost", "recorded")


def test_every_row_that_was_tried_is_of_the_newest_version_in_the_table():
    rows = _models.table("litellm_routes")["route"]
    assert len({row["version"] for row in rows}) == 1


def test_the_address_is_the_callers_the_environments_or_the_providers(litellm: Any, monkeypatch: pytest.MonkeyPatch):
    def address(**given: Any) -> str:
        return _routes.of_call(given, CHAT).base_url

    assert address(model="gpt-5.4") == "https://api.openai.com/v1"
    assert address(model="claude-opus-5") == "https://api.anthropic.com"
    assert address(model="moonshot/kimi-k3").startswith("https://api.moonshot.ai")
    assert address(model="openai/x", base_url="https://gateway.example/v1") == "https://gateway.example/v1"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example")
    assert address(model="claude-opus-5") == "https://proxy.example"
    monkeypatch.setattr(litellm, "api_base", "https://everywhere.example")
    assert address(model="gpt-5.4") == "https://everywhere.example"
    assert address(model="hosted_vllm/x") == "https://everywhere.example"


def test_fallbacks_of_another_kind_take_the_native_form_away(litellm: Any):
    alone = _routes.of_call({"model": "claude-opus-5"}, CHAT)
    assert alone.carrier.carries == ("tool_reference",)
    same = _routes.of_call({"model": "claude-opus-5", "fallbacks": ["anthropic/claude-opus-5-20260101"]}, CHAT)
    assert same.carrier.carries == ("tool_reference",)
    mixed = _routes.of_call({"model": "claude-opus-5", "fallbacks": [{"model": "gpt-5.4"}]}, CHAT)
    assert mixed.carrier.carries == ()
    assert "several kinds" in mixed.carrier.reason


def test_a_router_is_every_deployment_that_it_may_call(litellm: Any):
    def deployment(name: str, model: str, **more: Any) -> dict[str, Any]:
        return {"model_name": name, "litellm_params": {"model": model, "api_key": "k", **more}}

    router = litellm.Router(
        model_list=[
            deployment("smart", "anthropic/claude-opus-5"),
            deployment("smart", "anthropic/claude-opus-5-20260101"),
            deployment("safe", "anthropic/claude-opus-5"),
            deployment("other", "openai/gpt-5.4"),
            deployment("named", "azure/a-deployment", api_base="https://x.openai.azure.com", base_model="gpt-5.4"),
        ],
        fallbacks=[{"safe": ["other"]}],
        model_group_alias={"alias": "smart"},
    )

    def carries(dialect: str = CHAT, **given: Any) -> Any:
        found = _routes.of_router(router, given, dialect)
        return found and found.carrier.carries

    assert carries(model="smart") == carries(model="alias") == ("tool_reference",)
    assert carries(model="safe") == ()
    assert carries(model="smart", fallbacks=[{"smart": ["other"]}]) == ()
    assert carries(model="smart", fallbacks=["other"]) == ()
    assert carries(model="nobody") is None
    found = _routes.of_router(router, {"model": "named"}, RESPONSES)
    assert found
    assert (found.model, found.base_url) == ("gpt-5.4", "https://x.openai.azure.com")
    assert _compat.numbers("nightly") == (0, 0)


@pytest.mark.usefixtures("repo")
def test_the_table_in_the_docs_is_current():
    from tests.litellm import table

    text = table.PAGE.read_text(encoding="utf-8")
    assert table.page(text) == text, "run: python -m tests.litellm.table"
