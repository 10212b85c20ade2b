"""What Claude caches through litellm's `completion`: what is marked, and a report that says so where nothing is."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.conversation import CHAT
from tests.litellm.talking import ROUTES, SEARCHES, dumped, talking, text_of

from loadpoint_adapters.litellm._chat import LiteLLMChat

CLAUDE = ROUTES["claude completion"]
MARK = {"type": "ephemeral"}
WARNING = "no cache marker"


def _warned(program: Any) -> bool:
    return any(WARNING in text for report in program.reports for text in report.warnings)


def test_a_conversation_of_which_nothing_is_cached_says_so_once(litellm: Any):
    with talking(litellm, CLAUDE, *SEARCHES) as program:
        program.user("please create an invoice")
        program.echo(dumped(CHAT, program.call(max_tokens=50)))
        program.call(max_tokens=50)
        said = [[text for text in report.warnings if WARNING in text] for report in program.reports]
        assert [len(each) for each in said] == [1, 0]


@pytest.mark.parametrize("where", ["tool", "function", "message", "part", "points"])
def test_a_marker_of_the_caller_is_seen_wherever_litellm_takes_one(litellm: Any, where: str):
    with talking(litellm, CLAUDE, *SEARCHES[1:]) as program:
        program.user("please create an invoice")
        given = program.arguments(max_tokens=50)
        if where == "tool":
            given["tools"][0]["cache_control"] = MARK
        elif where == "function":
            given["tools"][0]["function"]["cache_control"] = MARK
        elif where == "message":
            given["messages"].insert(0, {"role": "system", "content": "be brief", "cache_control": MARK})
        elif where == "part":
            given["messages"][0]["content"] = [
                {"type": "text", "text": "please create an invoice", "cache_control": MARK}
            ]
        else:
            given["cache_control_injection_points"] = [{"location": "message", "role": "user"}]
        program.client.completion(**given)
        assert not _warned(program)


@pytest.mark.parametrize("route", ["openai completion", "kimi completion"])
def test_where_the_provider_caches_by_itself_nothing_is_said(litellm: Any, route: str):
    with talking(litellm, ROUTES[route], *SEARCHES[:2]) as program:
        program.user("please create an invoice")
        program.call()
        assert not _warned(program)


def test_markers_are_added_where_the_policy_asks_for_them(litellm: Any):
    policy = CLAUDE.policy.replace(cache="auto")
    with talking(litellm, CLAUDE, *SEARCHES, policy=policy) as program:
        program.user("please create an invoice " * 20)
        program.echo(dumped(CHAT, program.call(max_tokens=50)))
        reply = dumped(CHAT, program.call(max_tokens=50))
        assert text_of(CHAT, reply) == "done"
        assert not _warned(program)
        for exchange in program.server.exchanges:
            sent = exchange.request or {}
            marked = [tool["name"] for tool in sent["tools"] if "cache_control" in tool]
            waiting = [tool["name"] for tool in sent["tools"] if tool.get("defer_loading")]
            assert marked == [tool["name"] for tool in sent["tools"] if tool["name"] not in waiting][-1:]
            assert sent["messages"][-1]["content"][-1]["cache_control"] == MARK
            assert str(sent).count("cache_control") == 2
        assert "cache_control" not in str(program.history)
        assert program.reports[-1].prefix.stable


@pytest.mark.parametrize("last", [{"role": "user", "content": []}, {"role": "assistant", "content": "a"}, None])
def test_an_end_that_takes_no_marker_stays_as_it_is(last: Any):
    body = {"model": "claude-opus-5", "messages": [last] if last else [], "tools": []}
    assert LiteLLMChat().with_markers(body)["messages"] == body["messages"]
    assert LiteLLMChat().is_marked({**body, "model": "claude-opus-5"}) is False
    assert LiteLLMChat().is_marked({**body, "model": "nobody-knows-this"}) is True
