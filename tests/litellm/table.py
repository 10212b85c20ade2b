"""The table of routes in docs/litellm.md, made from the data: what `auto` does there with many tools, and why.

python -m tests.litellm.table            write it
python -m tests.litellm.table --check    exit 1 if it is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from loadpoint import Policy, _models, _prices
from loadpoint._capability import capability
from loadpoint._strategy import choose
from loadpoint_adapters.litellm import _routes
from loadpoint_adapters.litellm._chat import LiteLLMChat

PAGE = Path(__file__).resolve().parents[2] / "docs" / "litellm.md"
START, END = "<!-- routes: made by tests/litellm/table.py -->\n", "<!-- end of routes -->\n"
CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"
CALLS = {CHAT: "completion", RESPONSES: "responses", MESSAGES: "anthropic.messages"}
BREAKS = {"native": "none", "frozen": "none", "resend": "one per load", "eager": "none"}
TOOLS, TOKENS = 300, 45_000
MODELS = (
    # litellm's model, its provider and way, where that is
    ("openai/gpt-5.4", "openai", "", "https://api.openai.com/v1"),
    ("azure/gpt-5.4", "azure", "responses", "https://unnamed.openai.azure.com"),
    ("anthropic/claude-opus-5", "anthropic", "", "https://api.anthropic.com"),
    ("azure_ai/claude-opus-4-8", "azure_ai", "", "https://unnamed.services.ai.azure.com"),
    ("vertex_ai/claude-opus-4-8", "vertex_ai", "", "https://aiplatform.googleapis.com"),
    ("bedrock/invoke/anthropic.claude-opus-4-8", "bedrock", "invoke", "https://bedrock-runtime.us-east-1.amazonaws.com"),
    ("bedrock/converse/anthropic.claude-opus-4-8", "bedrock", "converse", "https://bedrock-runtime.us-east-1.amazonaws.com"),
    ("moonshot/kimi-k3", "moonshot", "", "https://api.moonshot.ai/v1"),
    ("openrouter/anthropic/claude-opus-4.8", "openrouter", "", "https://openrouter.ai/api/v1"),
    ("deepseek/deepseek-chat", "deepseek", "", "https://api.deepseek.com/beta"),
    ("mistral/mistral-large-latest", "mistral", "", "https://api.mistral.ai/v1"),
    ("xai/grok-4.3", "xai", "", "https://api.x.ai/v1"),
    ("groq/openai/gpt-oss-120b", "groq", "", "https://api.groq.com/openai/v1"),
    ("gemini/gemini-3-pro", "gemini", "", "https://generativelanguage.googleapis.com"),
    ("hosted_vllm/some-model", "hosted_vllm", "", "http://127.0.0.1:8000/v1"),
)  # fmt: skip


def tried(provider: str, mode: str) -> str:
    """How far the tests run a route; `test_litellm_sessions.py` and `test_litellm_routes.py` do it."""
    if provider == "vertex_ai":
        return "arrival"  # no session: its addresses and its sign-in are Google's own
    return "session, stub" if provider == "gemini" or mode == "converse" else "session"


def rows() -> list[str]:
    """One line per call and route."""
    version = _models.table("litellm_routes")["route"][0]["version"]
    out: list[str] = []
    for dialect, call in CALLS.items():
        for model, provider, mode, url in MODELS:
            carrier = _routes.carrier(provider, mode, model, dialect, version)
            spoken = carrier.speaks or dialect
            able = carrier.narrowed(capability(model, spoken, url))
            chosen, frozen = (
                choose(
                    policy=policy,
                    capability=able,
                    deferrable_tokens=TOKENS,
                    resident_tokens=0,
                    deferrable_count=TOOLS if able.limits.functions is None else able.limits.functions - 1,
                    cache_rule=_prices.cache_rule(model, spoken, url),
                    pinned=None,
                    evidence=False,
                    renders=LiteLLMChat.renders if dialect == CHAT else None,
                )
                for policy in (Policy(), Policy(strategy="frozen"))
            )
            form = f" by `{chosen.load_point}`" if chosen.load_point else ""
            reason = chosen.reason.partition("; deferral would")[0]
            known = carrier.grade if chosen.strategy == "native" or able.reason == carrier.reason else able.grade
            known = known.upper() if known == "unverified" else known
            told = (
                f"{chosen.strategy}{form}",
                BREAKS[chosen.strategy],
                f"{frozen.strategy}: {BREAKS[frozen.strategy]}",
            )
            out.append(f"| `{call}` | `{model}` | {' | '.join(told)} | {reason} | {known} | {tried(provider, mode)} |")
    return out


def section() -> str:
    """The generated lines."""
    names = ("call", "model", "with auto", "prefix breaks", "told frozen", "why auto does so", "known", "run")
    head = f"| {' | '.join(names)} |\n|{' --- |' * len(names)}\n"
    return head + "".join(f"{row}\n" for row in rows())


def page(text: str) -> str:
    """`text` with the table as it should be. Raises `ValueError` where the marks are missing."""
    before, mark, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise ValueError(f"{PAGE.name}: the marks around the table are missing")
    return before + mark + section() + end + after


def main() -> int:
    """Write the page, or say whether it is current."""
    text = PAGE.read_text(encoding="utf-8")
    made = page(text)
    if "--check" in sys.argv[1:]:
        return int(made != text)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
