"""Who may see and call what: tenants, removed and disallowed tools, ids and keys of others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, Conversation, Form, everywhere, search, tools

from loadpoint import InProcessLedger, Policy, SqliteLedger, clean
from loadpoint.emulator import Emulator, Move, Script
from loadpoint_adapters._dialects.openai_chat import OpenAIChat

Json = dict[str, Any]
KEY = "Bearer sk-of-somebody"
SERVERS: dict[str, Json] = {
    CHAT: {"type": "mcp", "server_url": "https://tools.example", "headers": {"Authorization": KEY}},
    MESSAGES: {"type": "mcp_toolset", "mcp_server_name": "x", "configs": {}},
    RESPONSES: {"type": "mcp", "server_label": "x", "server_url": "https://tools.example", "authorization": KEY},
}


class WithServer(Conversation):
    """A conversation whose requests also bring an entry without a name: a server that the provider calls."""

    more: int = 1

    def request(self, headers: Json | None = None) -> Any:
        request = super().request(headers)
        request.body["tools"] += [json.loads(json.dumps(SERVERS[self.dialect])) for _ in range(self.more)]
        return request


def upstream(talk: Conversation, *moves: Move) -> Any:
    """The call after these replies, which no emulator has checked."""
    call = talk.begun()
    for move in moves:
        calls = [
            {
                "id": f"call_{at}abcdefghijklmnop",
                "type": "function",
                "function": {"name": n, "arguments": json.dumps(a)},
            }
            for at, (n, a, *_) in enumerate(move.calls)
        ]
        message = {"role": "assistant", "content": move.text or None, **({"tool_calls": calls} if calls else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        call.feed({"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]})
    return call


@pytest.mark.parametrize(("credential", "base", "same"), [("a", 0, True), ("b", 0, False), ("a", 1, False)])
@pytest.mark.parametrize("name", ["1", None])
def test_a_shared_ledger_shows_no_account_the_rounds_of_another(
    credential: str, base: int, same: bool, name: str | None
) -> None:
    ledger = InProcessLedger()
    bases = ("https://api.openai.com/v1", "https://other.example/v1")
    headers = {"x-loadpoint-conversation": name} if name else {}

    def asked(visible: list[Json], who: str, where: int) -> Any:
        talk = Conversation(CHAT, Policy(strategy="resend"))
        talk.visible = visible
        request = replace(talk.request(headers), credential=who, base_url=bases[where])
        return talk.fresh(ledger=ledger).begin(request)

    call = asked([{"role": "user", "content": "hi"}], "a", 0)
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
    wanted = {"id": "call_0", "type": "function", "function": {"name": "ToolSearch", "arguments": '{"query":"secret"}'}}
    call.feed({**head, "choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [wanted]}}]})
    call.feed({**head, "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]})
    visible = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    again = asked([*visible, {"role": "user", "content": "and?"}], credential, base)
    assert ("secret" in json.dumps(again.body)) is same


def test_a_named_conversation_is_not_answered_by_the_paid_rounds_of_another() -> None:
    talk = Conversation(CHAT, Policy(strategy="resend"))
    talk.user("go")
    first = talk.begun({"x-loadpoint-conversation": "1"})
    wanted = {"id": "call_0", "type": "function", "function": {"name": "ToolSearch", "arguments": '{"query":"event"}'}}
    message = {"role": "assistant", "content": None, "tool_calls": [wanted]}
    first.feed({"id": "r", "choices": [{"message": message, "finish_reason": "tool_calls"}]})
    first.failed()
    assert not talk.begun({"x-loadpoint-conversation": "2"}).rounds
    assert len(talk.begun({"x-loadpoint-conversation": "1"}).rounds) == 1


@everywhere
def test_paid_rounds_are_kept_once_and_never_of_a_call_that_is_over(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    kept: list[Any] = []
    begin = talk.session.begin

    def noted(request: Any) -> Any:
        kept.append(begin(request))
        return kept[-1]

    talk.session.begin = noted
    with pytest.raises(AssertionError):
        talk.send(Move(calls=[search("event_list")]), Move.fault(500))
    talk.send(Move(text="ok"))
    for call in kept:
        call.failed()  # a client that is closed late tells it again
    talk.visible.pop()
    sent = len(talk.bodies)
    talk.send(Move(text="alone"))
    assert len(talk.bodies) == sent + 1
    assert talk.text(talk.replies[-1]) == "alone"
    assert talk.report.added_rounds == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_direct_call_of_a_tool_that_is_not_allowed_is_refused(stream: bool) -> None:
    talk = Conversation(CHAT, Policy(strategy="resend"), stream=stream)
    named = [{"type": "function", "function": {"name": NAMES[0]}}]
    talk.extra = {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": named}}}
    talk.user("go")
    reply = talk.send(Move(calls=[(NAMES[5], {"id": 1})]), Move(text="I may not."))
    assert talk.calls(reply) == []
    (told,) = talk.results().values()
    assert "not available" in told["content"]


@everywhere
def test_a_tool_that_the_caller_took_away_is_not_called_in_the_last_round_either(form: Form) -> None:
    talk = form.talk({"max_rounds": 2})
    talk.load(NAMES[3])
    talk.names = [name for name in NAMES if name != NAMES[3]]
    talk.extra = form.choice("required")
    talk.user("again")
    reply = talk.send(Move(calls=[search("photo_list")]), Move(calls=[(NAMES[3], {"id": 1})]))
    assert talk.calls(reply) == []
    assert talk.stop(reply) in ("stop", "end_turn")
    talk.user("and now?")
    talk.extra = {}
    talk.send(Move(text="Nothing."))


def test_a_server_without_a_name_stays_in_its_place_when_tools_load() -> None:
    for dialect, strategy in ((CHAT, "resend"), (MESSAGES, "resend"), (MESSAGES, "native")):
        talk = WithServer(dialect, Policy(strategy=strategy))
        places, visible = [], [{"role": "user", "content": "go"}]
        for _ in range(3):
            talk.visible = visible
            call = talk.begun()
            if dialect == CHAT:
                call = upstream(talk, Move(calls=[search("invoice_export")]), Move(text="ok"))
            else:
                content: list[Json] = [
                    {"type": "tool_use", "id": "toolu_0", "name": "ToolSearch", "input": {"query": "x"}}
                ]
                call.feed({"id": "m", "type": "message", "content": content, "stop_reason": "tool_use"})
                ok = [{"type": "text", "text": "ok"}]
                call.feed({"id": "m", "type": "message", "content": ok, "stop_reason": "end_turn"})
            places.append(
                [at for at, tool in enumerate(call.body["tools"]) if "function" not in tool and "name" not in tool]
            )
            assert call.report.prefix.broke in ("first_request", None)
            visible = [*visible, {"role": "assistant", "content": "ok"}, {"role": "user", "content": "again"}]
        assert places == [[1], [1], [1]]


@pytest.mark.parametrize("more", [1, 2])
def test_the_keys_of_such_a_server_get_into_no_report_and_no_log(more: int, caplog: pytest.LogCaptureFixture) -> None:
    talk = WithServer(CHAT, Policy(strategy="resend"))
    talk.more = more
    talk.user("go")
    call = upstream(talk, Move(text="ok"))
    assert KEY in json.dumps(call.body)
    assert KEY not in json.dumps(call.report.as_json())
    assert KEY not in caplog.text


@pytest.mark.parametrize("demand", ["required", {"type": "any"}])
def test_a_server_without_a_name_is_no_function_to_demand(demand: Any) -> None:
    dialect = CHAT if isinstance(demand, str) else MESSAGES
    talk = WithServer(dialect, Policy(strategy="resend", max_rounds=2, resident=(NAMES[0],)))
    talk.extra = {"tool_choice": demand}
    talk.user("go")
    call = talk.begun()
    if dialect == CHAT:
        call = upstream(talk, Move(calls=[search("zzqx vvkw")]))
        allowed = call.body["tool_choice"]["allowed_tools"]["tools"]
        assert [entry["function"]["name"] for entry in allowed] == [NAMES[0]]
        return
    content = [{"type": "tool_use", "id": "toolu_0", "name": "ToolSearch", "input": {"query": "zzqx vvkw"}}]
    call.feed({"id": "m", "type": "message", "content": content, "stop_reason": "tool_use"})
    assert call.body["tool_choice"] == {"type": "any"}
    assert [tool.get("name") or tool["type"] for tool in call.body["tools"]] == [NAMES[0], "mcp_toolset"]


@pytest.mark.parametrize("kind", ["web_search", "tool_use"])
def test_an_id_that_begins_like_ours_is_not_ours(kind: str) -> None:
    item = "srvtoolu_lp7Q2mJx"
    blocks: list[Json] = [
        {"type": "server_tool_use", "id": item, "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": item, "content": []},
    ]
    if kind == "tool_use":
        blocks = [{"type": "tool_use", "id": item, "name": NAMES[0], "input": {}}]
    messages: list[Json] = [{"role": "user", "content": "go"}, {"role": "assistant", "content": blocks}]
    assert clean(messages) == messages
    talk = Conversation(MESSAGES, Policy(strategy="eager"))
    talk.visible = messages
    assert talk.begun().body["messages"] == messages


def test_texts_that_are_not_ascii_are_counted_by_their_bytes() -> None:
    sizes = []
    for letter in ("x", "\u5b57"):
        wires = tools(CHAT)
        for wire in wires:
            wire["function"]["description"] = letter * 300
        talk = Conversation(CHAT, Policy(strategy="resend"))
        request = talk.request()
        request.body.update(tools=wires, messages=[{"role": "user", "content": letter * 3000}])
        sizes.append(talk.session.begin(request).report.tokens)
    assert sizes[1].eager > 2 * sizes[0].eager
    assert sizes[1].context > 2 * sizes[0].context


def test_a_catalog_in_the_system_prompt_is_counted() -> None:
    sent = []
    for where in ("tool", "system"):
        talk = Conversation(CHAT, Policy(strategy="resend", catalog=where))
        talk.visible = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "go"}]
        sent.append(talk.begun().report.tokens.sent)
    assert abs(sent[0] - sent[1]) < 20


def test_registries_are_bounded_by_the_tools_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from loadpoint import _session

    monkeypatch.setattr(_session, "_TOOLS", 100)
    talk = Conversation(CHAT, Policy(strategy="resend"))
    made = [
        talk.session.registry(OpenAIChat(), tools(CHAT, [f"a{at}_{name}" for name in NAMES]), talk.policy)
        for at in (0, 1)
    ]
    assert talk.session.registry(OpenAIChat(), tools(CHAT, [f"a1_{name}" for name in NAMES]), talk.policy) is made[1]
    assert (
        talk.session.registry(OpenAIChat(), tools(CHAT, [f"a0_{name}" for name in NAMES]), talk.policy) is not made[0]
    )


def test_names_of_others_write_nothing_of_their_own_onto_a_terminal(caplog: pytest.LogCaptureFixture) -> None:
    name = "event\x1b[2J\nwarning: all is well\u202e"
    talk = Conversation(CHAT, Policy(strategy="resend"), names=(name, *NAMES))
    talk.user("go")
    call = upstream(talk, Move(calls=[search("event all is well")]), Move(text="ok"))
    assert name in call.report.resident, "no name that could be loaded here"
    text = str(call.report)
    assert len(text.split("\n")) <= 8
    assert all(line.isprintable() for line in text.split("\n"))
    talk.names = (name, name)
    assert "duplicate" in talk.begun().report.reason
    assert not set("\x1b\u202e") & set(caplog.text)


@everywhere
def test_a_ledger_file_holds_no_keys_of_servers_that_the_provider_calls(form: Form, tmp_path: Path):
    talk = WithServer(form.dialect, Policy(strategy=form.strategy), stream=form.stream, model=form.model)
    ledger = SqliteLedger(tmp_path / "ledger.db")
    talk.session = talk.fresh(ledger=ledger)
    talk.server = Emulator(Script(lambda turn: talk.played(talk.moves.pop(0), turn.search)), rules="off")
    for at in range(3):
        talk.user(f"request {at}")
        talk.send(Move(calls=[("ToolSearch", {"query": NAMES[at]})]), Move(text="done"))
    assert all(SERVERS[form.dialect] in body["tools"] for body in talk.bodies)
    assert not judge.check(talk.bodies, mode=form.strategy)
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    ledger.close()
    assert form.loader.encode() in stored or b"tool_search" in stored
    assert KEY.encode() not in stored
    assert b"mcp_server_name" not in stored
