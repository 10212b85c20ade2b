"""A wrapped client of either SDK, a scripted provider behind it, eighty tools; what the provider has to have seen."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import anthropic
import openai
import pytest
from tests.bench.judge import breaks, check

import loadpoint
from loadpoint import CallReport, Policy, emulator
from loadpoint.emulator import Emulator, Script, Step

SDKS = ("openai", "anthropic")
MODELS = {"openai": "gpt-5.4", "anthropic": "claude-opus-4-8"}
CLIENTS: dict[tuple[str, bool], type[Any]] = {
    ("openai", False): openai.OpenAI,
    ("openai", True): openai.AsyncOpenAI,
    ("anthropic", False): anthropic.Anthropic,
    ("anthropic", True): anthropic.AsyncAnthropic,
}
LOADER = "ToolSearch"

_SERVICES = ("calendar", "tickets", "invoices", "warehouse", "payroll", "newsletter", "telephony", "vehicles")
_ACTIONS = ("create", "delete", "list", "move", "export", "approve", "archive", "assign", "count", "rename")
NAMES = tuple(f"{service}_{action}" for service in _SERVICES for action in _ACTIONS)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "subject": {"type": "string", "description": "The one entry that this is about, by its full title."}
    },
    "required": ["subject"],
    "additionalProperties": False,
}

FIRST, SECOND = "Move the offsite in the calendar.", "Now approve the invoice of the caterer."
MOVE: Step = ("calendar_move", {"subject": "offsite"}, "move calendar entry")
APPROVE: Step = ("invoices_approve", {"subject": "caterer"}, "approve invoice")
PLAN: Mapping[str, Sequence[Step]] = {FIRST: [MOVE], SECOND: [APPROVE]}
"""What the scripted model does with each text of the user; it searches for what it cannot see and ends with DONE."""
DONE = "Done."
LOADED = ("calendar_move", "invoices_approve")

POLICY = Policy(threshold_tokens=2_500)
"""The default, but for the threshold: on price rows without a native form more tools than these would be needed."""


def package(name: str) -> Any:
    """The module, or a skipped test module where it is not installed; its own deprecations are no business of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def description(name: str) -> str:
    """A description of the length that those of real servers have."""
    service, _, action = name.partition("_")
    return (
        f"Use this to {action} one entry of the {service} system on behalf of the signed-in employee. The entry is "
        f"looked up by its title, permissions are checked against the {service} system first, and everyone who "
        f"follows the entry is told about the change. The answer names the entry, the time of the change and what "
        f"else had to be adjusted because of it. Fails when no entry of that title exists."
    )


def plain(sdk: str, server: Emulator, *, asynchronous: bool = False, **options: Any) -> Any:
    """The caller's own client: the real base_url, every request answered by `server`."""
    http = emulator.http_client(sdk, server, asynchronous=asynchronous)  # type: ignore[arg-type]
    return CLIENTS[sdk, asynchronous](api_key="k", http_client=http, **options)


def wrapped(
    sdk: str,
    plan: Any = PLAN,
    *,
    asynchronous: bool = False,
    policy: Policy | None = POLICY,
    reports: list[CallReport] | None = None,
) -> tuple[Any, Emulator]:
    """A wrapped client and the provider behind it; reports are collected in `reports`."""
    server = Emulator(plan if isinstance(plan, Script) else Script.agent(plan))
    client = plain(sdk, server, asynchronous=asynchronous)
    made = loadpoint.wrap(client, policy, on_report=None if reports is None else reports.append)
    assert isinstance(made, CLIENTS[sdk, asynchronous])
    return made, server


def definitions(sdk: str) -> list[dict[str, Any]]:
    """The eighty tools as the SDK takes them."""
    if sdk == "anthropic":
        return [{"name": name, "description": description(name), "input_schema": SCHEMA} for name in NAMES]
    return [
        {"type": "function", "function": {"name": name, "description": description(name), "parameters": SCHEMA}}
        for name in NAMES
    ]


def request(sdk: str, text: str = FIRST) -> dict[str, Any]:
    """Arguments of `create` with all tools."""
    body = {
        "model": MODELS[sdk],
        "messages": [{"role": "user", "content": text}],
        "tools": definitions(sdk),
    }
    return {**body, "max_tokens": 1000} if sdk == "anthropic" else body


def in_context(body: Mapping[str, Any]) -> list[str]:
    """The names of the tools whose schemas a request sends into the model's context."""
    tools: list[dict[str, Any]] = body.get("tools") or []
    return [str(tool.get("name") or tool["function"]["name"]) for tool in tools if not tool.get("defer_loading")]


def assert_deferred(
    sdk: str, server: Emulator, *, requests: int, loads: Sequence[str], residents: Sequence[str] = ()
) -> None:
    """What was sent is what deferral promises, as seen from the provider and judged by `tests/bench/judge.py`.

    Every request was accepted; the first had the loader and `residents` for tools and was small; one search each
    loaded `loads` (and at most three tools beside each, and once what fills a short prompt); the prefix held over all
    turns from the first request to the last.
    """
    bodies = server.requests
    assert [item.error for item in server.exchanges if item.status != 200] == []
    assert len(bodies) == requests, [in_context(body) for body in bodies]
    assert sorted(in_context(bodies[0])) == sorted([LOADER, *residents]), in_context(bodies[0])
    assert len(json.dumps(bodies[0]["tools"])) < len(json.dumps(definitions(sdk))) / 4
    assert check(bodies, "native" if sdk == "anthropic" else "resend") == [], "the prefix broke"
    if sdk == "anthropic":  # tools are loaded where the model asked for them, the list in context never changes
        assert breaks(bodies) == 0
        loaded = server.exchanges[-1].loaded
    else:
        assert breaks(bodies) == len(loads)
        loaded = tuple(in_context(bodies[-1])[len(in_context(bodies[0])) :])
    assert [name for name in loaded if name in loads] == list(loads), loaded
    assert len(loaded) <= 8 + 4 * len(loads), loaded
