"""What an agent starts with in each mode, and that nothing but the user's choice and a search changes it."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, WIRES, Conversation, Form, everywhere, search, tools

import loadpoint
from loadpoint import Policy, emulator, modes
from loadpoint.emulator import Move, Script

CODING = ("Read", "Bash", "Edit", "Write", "Glob", "Grep")
OPTIONAL = ("BrowserPreview", "Skill", "plugin__lint", "create_plugin", "mcp__github__create_issue")
EVERY = (*CODING, "ExitPlanMode", "UpdateGoal", "new_context", *OPTIONAL, *NAMES)


def started(form: Form, mode: tuple[str, ...]) -> Conversation:
    """A conversation in a mode, after its first request."""
    talk = form.talk({"resident": mode}, names=EVERY)
    talk.user("hello")
    talk.send(Move(text="hi"))
    return talk


@everywhere
@pytest.mark.requirement("N2", "O16")
def test_the_agent_starts_with_the_file_and_shell_tools_and_the_loader(form: Form) -> None:
    talk = started(form, modes.AGENT)
    assert sorted(talk.in_context()) == sorted(["ToolSearch", *CODING, "new_context"])
    assert form.declares_all or talk.declared() == []


@everywhere
@pytest.mark.requirement("N3")
def test_a_chat_starts_with_what_reads_and_searches(form: Form) -> None:
    assert sorted(started(form, modes.CHAT).in_context()) == ["Glob", "Grep", "Read", "ToolSearch", "new_context"]


@everywhere
@pytest.mark.requirement("N4")
def test_plan_and_goal_have_sets_of_their_own(form: Form) -> None:
    plan, goal = (set(started(form, mode).in_context()) for mode in (modes.PLAN, modes.GOAL))
    assert plan == {"ToolSearch", "Read", "Glob", "Grep", "ExitPlanMode", "new_context"}
    assert goal == {"ToolSearch", *CODING, "UpdateGoal", "new_context"}


@pytest.mark.requirement("N6")
@pytest.mark.parametrize("mode", ["AGENT", "CHAT", "PLAN", "GOAL"])
def test_the_compaction_tool_is_there_in_every_mode(mode: str) -> None:
    assert "new_context" in started(Form(MESSAGES, "native", stream=False), getattr(modes, mode)).in_context()


@everywhere
@pytest.mark.requirement("N7")
@pytest.mark.parametrize(
    "mode", [modes.AGENT, modes.CHAT, modes.PLAN, modes.GOAL], ids=["agent", "chat", "plan", "goal"]
)
def test_previews_plugins_and_skills_have_to_be_searched_for(form: Form, mode: tuple[str, ...]) -> None:
    talk = started(form, mode)
    assert not talk.callable() & set(OPTIONAL)
    talk.user("with all you have")
    talk.send(*(Move(calls=[search(name)]) for name in OPTIONAL[:3]), Move(text="here"))
    assert set(OPTIONAL[:3]) <= talk.callable()


@pytest.mark.requirement("O14", "O15")
@pytest.mark.parametrize("dialect", [CHAT, MESSAGES])
def test_only_a_wrapped_client_defers(dialect: str) -> None:
    server = emulator.Emulator(Script(lambda turn: Move(text="hi")))
    sdk = "openai" if dialect == CHAT else "anthropic"
    http: Any = emulator.http_client(sdk, server)  # type: ignore[arg-type]
    bare: Any = (openai.OpenAI if dialect == CHAT else anthropic.Anthropic)(api_key="k", http_client=http)
    wrapped: Any = loadpoint.wrap(bare, Policy(strategy="resend"))
    request = {"model": WIRES[dialect][2], "messages": [{"role": "user", "content": "hello"}], "tools": tools(dialect)}
    for client in (wrapped, bare, loadpoint.unwrap(wrapped)):
        api = client.chat.completions if dialect == CHAT else client.messages
        api.create(**request, **({} if dialect == CHAT else {"max_tokens": 99}))
    bodies: list[Any] = [exchange.request for exchange in server.exchanges]
    sent = [body["tools"] for body in bodies]
    assert [len(listed) for listed in sent] == [1, len(NAMES), len(NAMES)]
    assert sent[1] == sent[2] == request["tools"]


@everywhere
@pytest.mark.requirement("N42")
def test_neither_everything_nor_what_the_words_suggest_is_sent(form: Form) -> None:
    """Three designs that were turned down: sending all, guessing from the prompt, and native forms only."""
    talk = form.talk()
    talk.user("Please export invoice 4 with invoice_export, then delete photo 3 with photo_delete.")
    talk.send(Move(text="Shall I?"))
    assert talk.in_context() == ["ToolSearch"]
    assert form.declares_all or talk.declared() == []
    talk.user("yes")
    talk.send(Move(calls=[search("invoice_export")]), Move(calls=[("invoice_export", {"id": 4})]))
    assert "invoice_export" in talk.callable()
    assert "photo_delete" not in talk.callable()
