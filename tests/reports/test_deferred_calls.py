"""Field reports about the life of a deferred call: from the search, or without one, to a result that counts."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest
from tests.core.conversation import CHAT, LOADS, MESSAGES, NAMES, Conversation, Form, everywhere, form_id, search, tools

import loadpoint
from loadpoint import Policy, emulator
from loadpoint._json import Json
from loadpoint.emulator import Move, Script, Turn

TOOL = "invoice_export"
OWN_SEARCH = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
MODELS = [
    *((Form(CHAT, "resend", stream=False), model) for model in ("gpt-5.4", "gpt-4o-mini", "some-model-of-tomorrow")),
    *((Form(MESSAGES, "native", stream=False), model) for model in ("claude-opus-4-8", "claude-sonnet-4-5")),
    *((Form(MESSAGES, "resend", stream=False), model) for model in ("claude-opus-4-8", "claude-sonnet-4-5")),
]


LOADERS = ("ToolSearch", "tool_search", LOADS)


def texts(talk: Conversation) -> str:
    """All results of the last body, readable."""
    return json.dumps(talk.results()).replace("\\", "")


class Converting:
    """A layer above the wrapped client that rewrites tool specs, and drops what is no ordinary function of its own."""

    def __init__(self, client: Any, known: set[str]) -> None:
        self._client = client
        self._known = known

    def create(self, **request: Any) -> Any:
        kept = [tool for tool in request["tools"] if tool["type"] == "function"]
        specs = [
            {
                "type": "function",
                "function": {key: tool["function"][key] for key in ("name", "description", "parameters")},
            }
            for tool in kept
            if tool["function"]["name"] in self._known
        ]
        return self._client.chat.completions.create(**{**request, "tools": specs})


@pytest.mark.report("BR-078")
def test_a_layer_that_converts_tool_specs_cannot_drop_the_loader() -> None:
    server = emulator.Emulator(
        Script.sequence([Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]), Move(text="done")])
    )
    client = openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", server))
    layer = Converting(loadpoint.wrap(client, Policy(strategy="resend")), set(NAMES))
    messages: list[Json] = [{"role": "user", "content": "export it"}]
    request: Json = {"model": "gpt-5.4", "tools": [*tools(CHAT), {"type": "custom", "custom": {"name": "exec"}}]}
    reply = layer.create(**request, messages=messages)
    (call,) = reply.choices[0].message.tool_calls
    assert call.function.name == TOOL
    messages += [reply.choices[0].message.model_dump(exclude_none=True)]
    messages += [{"role": "tool", "tool_call_id": call.id, "content": "ok"}]
    assert layer.create(**request, messages=messages).choices[0].message.content == "done"
    sent: list[Any] = [exchange.request for exchange in server.exchanges]
    assert all("ToolSearch" in [tool["function"]["name"] for tool in body["tools"]] for body in sent)


@pytest.mark.report("BR-078")
@everywhere
def test_where_anything_is_deferred_the_loader_is_sent(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.names = NAMES[:20]  # a layer in between shows another part of the list
    talk.user("and now")
    talk.send(Move(text="fine"))
    talk.restart()
    talk.names = NAMES
    talk.user("and now")
    talk.send(Move(text="fine"))
    assert all("ToolSearch" in talk.in_context(body) for body in talk.bodies)


@pytest.mark.report("BR-079")
@everywhere
def test_what_a_search_found_can_be_called_from_the_next_request_on(form: Form) -> None:
    talk = form.talk()
    talk.user("what do you have?")
    talk.send(Move(calls=[search(TOOL)]), Move(text="I can export invoices."))
    assert TOOL in talk.callable()
    if form.strategy == "resend":
        assert TOOL in talk.in_context(), "a full definition in the list, not just a text in a result"
    talk.user("then do it")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})], "no empty turn"
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert all(TOOL in talk.callable(body) for body in talk.bodies[1:])


@pytest.mark.report("BR-081")
@everywhere
def test_what_a_search_loads_is_called_in_the_very_next_step(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(
        Move(calls=[search(TOOL)]), Move(calls=[search(f"{TOOL}, photo_list")]), Move(calls=[(TOOL, {"id": 1})])
    )
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert TOOL in talk.callable(talk.bodies[1])
    assert [tool.name for tool in talk.report.loaded] == [TOOL, "photo_list"], "found again, loaded once"


@pytest.mark.report("BR-082")
@everywhere
def test_instructions_that_name_a_deferred_tool_are_warned_about(form: Form) -> None:
    told = "Answer invoices by calling invoice_export directly. You may list and create, and fetch ledger_list."
    talk = form.talk({"resident": ("ledger_list",)})
    if form.dialect == CHAT:
        talk.visible.append({"role": "system", "content": told})
    else:
        talk.extra["system" if form.dialect == MESSAGES else "instructions"] = told
    talk.user("hello")
    talk.send(Move(text="hi"))
    (warning,) = [text for text in talk.report.warnings if TOOL in text]
    assert "resident" in warning
    assert "ledger_list" not in warning
    talk.user("more")
    talk.send(Move(text="ok"))
    assert not [text for text in talk.report.warnings if TOOL in text], "said once"


@pytest.mark.report("BR-084")
@pytest.mark.parametrize(
    ("dialect", "policy", "extra"),
    [
        (CHAT, {"max_rounds": 1}, {}),
        (MESSAGES, {"max_rounds": 1}, {}),
        (CHAT, {}, {"n": 2}),
        (CHAT, {}, {"functions": [{"name": "old", "parameters": {}}]}),
        (MESSAGES, {}, {"tools": [OWN_SEARCH, *({**tool, "defer_loading": True} for tool in tools(MESSAGES))]}),
    ],
    ids=["no round", "no round here either", "several choices", "legacy functions", "the provider's own search"],
)
@pytest.mark.parametrize("stream", [False, True])
def test_where_the_loader_cannot_be_called_everything_is_sent(
    dialect: str, policy: Json, extra: Json, stream: bool
) -> None:
    talk = Form(dialect, "resend", stream).talk(policy, extra=dict(extra))
    talk.user("go")
    call = talk.begun()
    assert call.untouched
    assert call.body["tools"] == talk.request().body["tools"]
    assert call.report.strategy == "eager"
    assert call.report.reason


@pytest.mark.report("BR-084")
@pytest.mark.parametrize("stream", [False, True])
def test_a_filter_that_leaves_the_loader_out_gets_it_back(stream: bool) -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": TOOL}}]}
    talk = Form(CHAT, "resend", stream).talk()
    talk.extra["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    names = [
        [tool["function"]["name"] for tool in body["tool_choice"]["allowed_tools"]["tools"]] for body in talk.bodies
    ]
    assert names == [["ToolSearch"], [TOOL, "ToolSearch"]]


@pytest.mark.report("BR-085")
@pytest.mark.parametrize(("form", "model"), MODELS, ids=[f"{form_id(form)}-{model}" for form, model in MODELS])
def test_every_model_finds_and_calls_all_that_is_deferred_and_nothing_else(form: Form, model: str) -> None:
    """Custom tools of an extension beside the built-in ones, which are resident."""
    built_in = ("ledger_*", "photo_*")
    custom = [name for name in NAMES if not name.startswith(("ledger_", "photo_"))]
    talk = form.talk({"resident": built_in, "max_rounds": 20}, model=model)
    talk.user("everything, please")
    groups = [custom[at : at + 4] for at in range(0, len(custom), 4)]
    talk.send(*(Move(calls=[search(", ".join(group))]) for group in groups), Move(text="all there"))
    assert {tool.name for tool in talk.report.loaded} == set(custom)
    assert talk.callable() == {*NAMES, "ToolSearch"}
    assert talk.report.deferred == len(custom)


@pytest.mark.report("BR-087")
@everywhere
def test_a_tool_of_another_conversation_does_not_exist_in_this_one(form: Form) -> None:
    other = form.talk(names=(*NAMES, "rocket_launch"))
    other.load("rocket_launch")
    talk = form.talk(session=other.session, reports=other.reports)
    talk.user("launch")
    reply = talk.send(Move(calls=[search("rocket_launch")]), Move(text="I have no such tool."))
    assert talk.text(reply) == "I have no such tool."
    assert talk.report.searches[0].no_match
    assert "rocket_launch" not in talk.callable()
    echo = 'No tool fits "rocket_launch"' if form.frozen else '"query":"rocket_launch"'
    assert "rocket_launch" not in texts(talk).replace(echo, "")


@pytest.mark.report("BR-087")
@everywhere
def test_a_tool_that_was_switched_off_is_refused_for_good(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.names = [name for name in NAMES if name != TOOL]
    talk.user("once more")
    reply = talk.send(Move(calls=[(TOOL, {"id": 2})]), Move(calls=[search(TOOL)]), Move(text="It is gone."))
    assert talk.text(reply) == "It is gone."
    answers = [text for text in texts(talk).split("tool_use_id") if "no longer available" in text]
    assert answers
    assert not any("ToolSearch" in text for text in answers), "no next call is promised"


@pytest.mark.report("BR-087")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("policy", ["load", "refuse"])
def test_a_tool_that_is_not_allowed_now_is_refused_for_good(stream: bool, policy: str) -> None:
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "photo_list"}}]}
    talk = Form(CHAT, "resend", stream).talk({"unloaded_call": policy})
    talk.extra["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    talk.user("go")
    bad = Move(calls=[(TOOL, {"id": "three"})])
    reply = talk.send(bad, Move(calls=[search(TOOL)]), Move(text="I may not."))
    assert talk.text(reply) == "I may not."
    (refusal, found) = [result["content"] for result in talk.results().values()]
    assert json.loads(refusal) == {"isError": True, "error": f"{TOOL} is not available in this request."}
    assert TOOL not in json.loads(found)["addedToolNames"]


@pytest.mark.report("BR-088")
@everywhere
def test_the_history_holds_calls_of_the_tools_themselves(form: Form) -> None:
    """What slims a history or restores files reads the top-level arguments of a call, and whether its id succeeded."""
    asked: list[Turn] = []

    def model(turn: Turn) -> Move:
        asked.append(turn)
        return talk.played(talk.moves.pop(0), turn.search)

    talk = form.talk()
    talk.server = emulator.Emulator(Script(model))
    talk.load(TOOL, {"id": 41})
    talk.user("now one that fails")
    reply = talk.send(Move(calls=[search("photo_delete")]), Move(calls=[("photo_delete", {"id": 42})]))
    talk.answer(reply, text=json.dumps({"isError": True, "error": "denied"}))
    if form.dialect == MESSAGES:
        talk.visible[-1]["content"][0]["is_error"] = True
    talk.send(Move(text="it was denied"))
    calls = [call for each in talk.replies for call in talk.calls(each)]
    assert calls == [(TOOL, {"id": 41}), ("photo_delete", {"id": 42})], "no envelope, no loader"
    assert "ToolSearch" not in json.dumps(talk.visible)
    ids = {found.id: found.is_error for found in asked[-1].history if found.name not in LOADERS}
    assert [key for key in ids if f'"{key}"' in json.dumps(talk.visible)] == list(ids), "under the model's own ids"
    if form.dialect == MESSAGES:
        assert list(ids.values()) == [False, True]


@pytest.mark.report("BR-088")
@everywhere
def test_a_denied_call_is_no_success(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    talk.answer(reply, text=json.dumps({"isError": True, "error": "denied by the user"}))
    if form.dialect == MESSAGES:
        talk.visible[-1]["content"][0]["is_error"] = True
    talk.send(Move(text="it was denied"))
    assert not talk.report.loaded
    assert TOOL not in talk.callable()


@pytest.mark.report("BR-090")
@everywhere
@pytest.mark.parametrize("policy", ["load", "refuse"])
def test_a_deferred_namespaced_tool_called_at_once_does_not_end_the_run(form: Form, policy: str) -> None:
    names = [f"crm__{name}" for name in NAMES]
    tool = f"crm__{TOOL}"
    talk = form.talk({"unloaded_call": policy}, names=names)
    if form.dialect != MESSAGES:
        talk.extra["parallel_tool_calls"] = False
    else:
        talk.extra["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
    talk.user("go")
    moves = [Move(calls=[(tool, {"id": 1})])]
    if policy == "refuse":
        moves += [Move(calls=[search(tool)]), Move(calls=[(tool, {"id": 1})])]
    reply = talk.send(*moves)
    assert talk.calls(reply) == [(tool, {"id": 1})]
    talk.answer(reply)
    assert talk.text(talk.send(Move(text="done"))) == "done"
    assert tool in talk.callable()


@pytest.mark.report("BR-090")
def test_the_sdks_own_stream_helper_goes_on_after_such_a_call() -> None:
    def model(turn: Turn) -> Move:
        return Move(text="done") if turn.results else Move(calls=[(TOOL, {"id": 1})])

    server = emulator.Emulator(Script(model))
    client = openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", server))
    wrapped: Any = loadpoint.wrap(client, Policy(strategy="resend"))
    messages: list[Json] = [{"role": "user", "content": "export it"}]
    request: Json = {"model": "gpt-5.4", "tools": tools(CHAT), "parallel_tool_calls": False}
    for expected in (None, "done"):
        stream = wrapped.chat.completions.create(**request, messages=messages, stream=True)
        deltas = [chunk.choices[0].delta for chunk in stream if chunk.choices]
        text = "".join(delta.content or "" for delta in deltas) or None
        assert text == expected
        calls = [call for delta in deltas for call in delta.tool_calls or []]
        if calls:
            arguments = "".join(call.function.arguments or "" for call in calls)
            assert json.loads(arguments) == {"id": 1}
            call = {"id": calls[0].id, "type": "function", "function": {"name": TOOL, "arguments": arguments}}
            messages += [{"role": "assistant", "content": None, "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_call_id": calls[0].id, "content": "exported"}]
    assert len(server.exchanges) == 2
