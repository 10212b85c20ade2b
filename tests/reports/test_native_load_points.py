"""Field reports about native load points: where they stand, what they are made of, and what becomes of foreign ones."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.bench import judge
from tests.core.conversation import (
    ADDS,
    CHAT,
    INLINE,
    KIMI,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    UpstreamError,
    form_id,
    search,
    tools,
    unstreamed,
)
from tests.core.loads import WRITTEN, Load, said, used
from tests.core.test_form_round_trips import WAYS, history, talk_in, visible_to_the_model

from loadpoint import Policy
from loadpoint.emulator import Move

Json = dict[str, Any]
TOOL, OTHER = "invoice_export", "photo_list"
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].split('.')[1]}-{way[1]}-{way[3]}")
ADDITIVE = [
    Form(MESSAGES, "native", False, INLINE),
    Form(CHAT, "native", False, KIMI),
    Form(RESPONSES, "native", False),
]
additive = pytest.mark.parametrize("form", [*ADDITIVE, Form(RESPONSES, "native", False, ADDS)], ids=form_id)


def sent(talk: Conversation) -> str:
    return json.dumps(talk.body)


# ------------------------------------------------------------------------------------ references and their back ends


@pytest.mark.report("BR-001", "BR-024")
@pytest.mark.parametrize(
    ("dialect", "model", "base"),
    [
        (MESSAGES, "claude-opus-4-8", "https://gateway.example"),
        (MESSAGES, "claude-3-haiku-20240307", "https://api.anthropic.com"),
        (CHAT, "gpt-5.4", "https://api.openai.com/v1"),
        (CHAT, KIMI, "https://api.moonshot.ai/v1"),
    ],
)
def test_a_back_end_without_references_gets_the_names_in_words(dialect: str, model: str, base: str) -> None:
    """A result that holds references only stays one result, and what it loaded can be called."""
    talk = Conversation(dialect, Policy(strategy="auto", threshold_tokens=1), model=model)
    talk.base = base
    talk.visible = history(dialect, ["tool_reference"], [(TOOL, OTHER)])
    talk.user("now")
    talk.send(Move(text="ok"))
    (result,) = talk.results().values()
    assert "tool_reference" not in sent(talk)
    assert TOOL in json.dumps(result)
    assert OTHER in json.dumps(result)
    assert {TOOL, OTHER} <= visible_to_the_model(talk)


@pytest.mark.report("BR-001")
@pytest.mark.parametrize("model", ["claude-opus-4-8", "claude-sonnet-4-5"])
def test_a_reference_to_what_nobody_knows_loads_nothing_and_breaks_nothing(model: str) -> None:
    talk = Conversation(MESSAGES, Policy(strategy="native"), model=model)
    talk.visible = history(MESSAGES, ["tool_reference"], [(TOOL,)])
    reference = talk.visible[2]["content"][0]["content"]
    reference.append({"type": "tool_reference", "tool_name": "nobody_knows"})
    talk.user("now")
    reply = talk.send(Move(calls=[("nobody_knows", {})]), Move(text="So be it."))
    assert talk.calls(reply) == [], "the application has no such tool"
    assert [tool.name for tool in talk.report.loaded] == [TOOL]


@pytest.mark.report("BR-024")
@ways
def test_every_call_of_a_history_keeps_exactly_one_result(way: Any) -> None:
    for form in WRITTEN[way[0]]:
        talk = talk_in(way, [*history(way[0], [form], [(TOOL,)]), *used(way[0], TOOL, 1)])
        talk.send(Move(text="ok"))
        body = talk.body
        if way[0] == RESPONSES:
            kinds = [(item.get("type", ""), item.get("call_id")) for item in body["input"]]
            calls = [call_id for kind, call_id in kinds if kind.endswith("_call")]
            outputs = [call_id for kind, call_id in kinds if kind.endswith("_output")]
        elif way[0] == CHAT:
            calls = [call["id"] for message in body["messages"] for call in message.get("tool_calls") or []]
            outputs = [message["tool_call_id"] for message in body["messages"] if message["role"] == "tool"]
        else:
            blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
            calls = [b["id"] for b in blocks if b["type"].endswith("tool_use")]
            outputs = [b["tool_use_id"] for b in blocks if b["type"].endswith("tool_result")]
        assert sorted(map(str, calls)) == sorted(map(str, outputs)), form
        assert '"done"' in sent(talk)


# -------------------------------------------------------------------------------- changes in the middle of a talk


@pytest.mark.report("BR-009")
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("base", ["https://api.anthropic.com", "https://us-east5-aiplatform.googleapis.com"])
def test_changes_stand_where_the_api_takes_them_and_name_what_is_declared(stream: bool, base: str) -> None:
    """Mixed turns, parallel loads, a removal, a direct call: the emulator's rules of place are on."""
    talk = Conversation(MESSAGES, Policy(strategy="native", load_point="tool_addition"), stream=stream, model=INLINE)
    talk.base = base
    talk.load(TOOL)
    talk.user("both")
    talk.answer(talk.send(Move(calls=[search(OTHER), (TOOL, {"id": 1})])))
    talk.user("in a hurry")
    talk.send(Move(text="ok"))
    talk.names = [name for name in NAMES if name != TOOL]
    talk.user("directly")
    talk.answer(talk.send(Move(calls=[("event_list", {"id": 1})])))
    talk.send(Move(text="done"))
    talk.user("and?")
    talk.send(Move(text="done"))
    for body in talk.bodies:
        messages = body["messages"]
        places = [at for at, message in enumerate(messages) if message["role"] == "system"]
        for at in places:
            following = messages[at + 1]["role"] if at + 1 < len(messages) else "assistant"
            assert following in ("assistant", "system")
            assert messages[at - 1]["role"] in ("user", "system")
        named = [
            block["tool"]["name"]
            for at in places
            for block in messages[at]["content"]
            if block["type"] == "tool_addition" and block["tool"]["type"] == "tool_reference"
        ]
        declared = [tool["name"] for tool in body["tools"] if tool.get("defer_loading")]
        assert set(named) <= set(declared)
    assert '"tool_removal"' in sent(talk), "what left is taken back"


@pytest.mark.report("BR-009")
@pytest.mark.parametrize("strategy", ["native", "resend"])
@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "claude-3-haiku-20240307"])
def test_changes_that_a_model_does_not_take_put_the_tools_into_the_list(model: str, strategy: str) -> None:
    talk = Conversation(MESSAGES, Policy(strategy=strategy), model=model)
    talk.visible = history(MESSAGES, ["tool_addition", "tool_addition by name"], [(TOOL,), (OTHER,)])
    for text in ("now", "and now"):
        talk.user(text)
        reply = talk.send(Move(calls=[(TOOL, {"id": 1}), (OTHER, {"id": 2})]))
        assert len(talk.calls(reply)) == 2
        talk.answer(reply)
    talk.send(Move(text="ok"))
    assert "tool_addition" not in sent(talk)
    assert [talk.in_context(body)[1:] for body in talk.bodies] == [[TOOL, OTHER]] * 3, "before they are called, too"
    assert talk.report.prefix.stable


@additive
@pytest.mark.report("BR-012")
def test_after_a_failed_call_what_was_added_stands_behind_the_new_question(form: Form) -> None:
    talk = form.talk()
    talk.load(TOOL)
    talk.user("at once")
    talk.answer(talk.send(Move(calls=[(OTHER, {"id": 1})])))
    before = len(talk.bodies)
    with pytest.raises(UpstreamError):
        talk.send(Move.fault(500))
    talk.user("so?")
    talk.send(Move(text="done"))
    first, second = (body[talk.key] for body in talk.bodies[before:])
    assert OTHER in visible_to_the_model(talk)
    if form.model == ADDS:
        assert "tool_search_" not in sent(talk), "a model without a search has no items of one"
    asked = next(at for at, message in enumerate(second) if "so?" in json.dumps(message))
    added = [at for at, message in enumerate(second) if OTHER in json.dumps(message) and _adds(message)]
    assert added
    assert min(added) > asked, "never before a message that the provider has seen without it"
    shared = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), len(first))
    assert not any(_adds(message) for message in second[shared:asked])
    assert first[:shared] == second[:shared]
    assert not judge.check(talk.bodies[before + 1 :], mode="native")


def _adds(message: Json) -> bool:
    return message.get("role") == "system" or message.get("type") in ("additional_tools", "tool_search_output")


# -------------------------------------------------------------------------- the provider's own search, with its parts


@pytest.mark.report("BR-010")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == MESSAGES], ids=lambda way: f"{way[1]}-{way[3]}")
@pytest.mark.parametrize("last", [False, True], ids=["as it came", "use last"])
@pytest.mark.parametrize("form", ["hosted", "shown"])
def test_a_search_of_the_services_beside_a_call_is_replayed_as_it_is_taken(way: Any, last: bool, form: str) -> None:
    (message,) = WRITTEN[MESSAGES][form](Load((TOOL,)))
    call, result, text = message["content"]
    use = {"type": "tool_use", "id": "toolu_01abcdefghijklmno", "name": OTHER, "input": {"id": 1}}
    blocks = [text, call, result, use] if last else [text, use, call, result]
    answer = {"type": "tool_result", "tool_use_id": use["id"], "content": "done"}
    talk = talk_in(way, [said(MESSAGES, "user", "go"), {"role": "assistant", "content": blocks}])
    talk.visible.append({"role": "user", "content": [answer]})
    talk.send(Move(text="ok"))
    assert "done" in sent(talk)
    assert TOOL in visible_to_the_model(talk)
    assert OTHER in [tool.name for tool in talk.report.loaded]


@pytest.mark.report("BR-015")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == MESSAGES], ids=lambda way: f"{way[1]}-{way[3]}")
@pytest.mark.parametrize("form", ["hosted", "shown"])
@pytest.mark.parametrize("headers", [{}, {"x-loadpoint": "off"}], ids=["on", "off"])
def test_what_the_service_ran_is_forwarded_whole_or_not_at_all(way: Any, form: str, headers: Json) -> None:
    """Its searches for tools, and beside them a search of the web, which is none of ours."""
    talk = talk_in(way, history(MESSAGES, [form], [(TOOL,)]))
    web: list[Json] = [
        {"type": "server_tool_use", "id": "srvtoolu_01web", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01web", "content": []},
    ]
    talk.visible[1]["content"] = [*web, *talk.visible[1]["content"]]
    search_tool = {"type": "web_search_20250305", "name": "web_search"}
    talk.extra = {"tools": [search_tool, *tools(MESSAGES)]}
    talk.user("now")
    call = talk.begun(headers)
    body = talk.request().body if call is None else call.body
    blocks = [b for m in body["messages"] if isinstance(m["content"], list) for b in m["content"]]
    uses = {b["id"] for b in blocks if b["type"] == "server_tool_use"}
    results = {b["tool_use_id"] for b in blocks if b["type"].endswith("search_tool_result")}
    assert uses == results
    assert web[0] in blocks
    assert web[1] in blocks
    assert not any(item.startswith("srvtoolu_lp") for item in uses)


# ------------------------------------------------------------------------------------------ blocks in the wrong API


@pytest.mark.report("BR-022")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == CHAT], ids=lambda way: f"{way[1]}-{way[3]}")
def test_blocks_of_another_api_are_sent_as_they_came(way: Any) -> None:
    """What it makes of them is the endpoint's to say; nothing is judged to be an orphan and dropped."""
    block = {"type": "tool_use", "id": "toolu_1", "name": TOOL, "input": {"id": 1}}
    foreign: list[Json] = [
        {"role": "assistant", "content": [{"type": "text", "text": "One moment."}, block]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}]},
    ]
    talk = talk_in(way, [said(CHAT, "user", "go"), *foreign])
    talk.user("now")
    call = talk.begun()
    assert call.body["messages"][1:3] == foreign


@pytest.mark.report("BR-025")
@pytest.mark.parametrize("way", [way for way in WAYS if way[0] == RESPONSES], ids=lambda way: way[1])
def test_calls_are_sent_with_the_namespace_that_their_tool_has_now(way: Any) -> None:
    """The caller echoes the short name; a flat function of that name in another place is another tool."""
    functions = {wire["name"]: wire for wire in tools(RESPONSES)}
    crm = {"type": "namespace", "name": "crm", "description": "CRM.", "tools": [functions[TOOL], functions[OTHER]]}
    rest = [wire for name, wire in functions.items() if name not in (TOOL, OTHER)]
    talk = talk_in(way, [])
    talk.extra = {"tools": [crm, *rest]}
    call = {"type": "function_call", "call_id": "call_1", "name": TOOL, "namespace": "crm", "arguments": '{"id": 1}'}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "done"}
    short = {key: value for key, value in call.items() if key != "namespace"}
    for echoed in (call, short):
        if echoed is short:
            talk = talk_in(way, [])
            talk.policy = talk.policy.replace(resident=("crm.*",))
            talk.restart()
            talk.extra = {"tools": [crm, *rest]}
        talk.visible = [said(RESPONSES, "user", "go"), echoed, output, said(RESPONSES, "assistant", "ok")]
        talk.user("now")
        talk.send(Move(text="ok"))
        made = [item for item in talk.body["input"] if item.get("call_id") == "call_1"]
        assert [item["type"] for item in made] == ["function_call", "function_call_output"]
        assert made[0]["namespace"] == "crm"
        at = talk.body["input"].index(made[0])
        assert talk.body["input"][at + 1] == made[1], "the result follows its call"


@unstreamed
@pytest.mark.report("BR-004")
def test_a_callers_own_tool_search_is_never_taken_for_the_loader(form: Form) -> None:
    """In the record as in the request: each call stays with the tool that it was made to."""
    if form.frozen:
        pytest.skip("no tool of a bridge is called so; test_frozen.py has a caller with tools called like the bridge's")
    own = ("ToolSearch", *NAMES)
    talk = form.talk({"resident": ("ToolSearch",)}, extra={"tools": tools(form.dialect, own)})
    talk.served = False
    talk.user("go")
    names = [tool.get("name") or tool.get("function", {}).get("name") for tool in talk.begun().body["tools"]]
    loader = next((name for name in names if name and name != "ToolSearch" and "earch" in name), "tool_search")
    reply = talk.send(Move(calls=[(loader, {"query": TOOL})]), Move(calls=[("ToolSearch", {"id": 1})]))
    assert talk.calls(reply) == [("ToolSearch", {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == [TOOL]
