"""The provider's own search over the Responses API: namespaces that we make, what is visible, what is sent again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import ADDS, NAMES, RESPONSES, Conversation, Form, tools

import loadpoint
from loadpoint import Policy
from loadpoint.bench import from_files
from loadpoint.emulator import Move
from loadpoint.emulator._count import tokens
from loadpoint.emulator._responses_tools import declaration
from loadpoint_adapters._dialects._openai_responses_groups import MOST, grouped
from loadpoint_adapters._dialects._openai_responses_tools import regrouped

TOOL, OTHER = "invoice_export", "photo_list"
BOX, OTHER_BOX = "lp_invoice", "lp_photo"
HOSTED = Policy(strategy="native", search="hosted")
NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
streams = pytest.mark.parametrize("stream", [False, True])


def hosted(*paths: str) -> tuple[str, Any]:
    return ("tool_search", {"paths": list(paths)})


def started(stream: bool = False, **given: Any) -> Conversation:
    return Conversation(RESPONSES, given.pop("policy", HOSTED), stream=stream, **given)


def deferred(*names: str) -> list[dict[str, Any]]:
    return [{**wire, "defer_loading": True} for wire in tools(RESPONSES, names)]


def groups(*names: str) -> dict[str, list[str]]:
    """The namespaces of these deferred functions, each with its members."""
    return {wire["name"]: [tool["name"] for tool in wire["tools"]] for wire in regrouped(grouped(deferred(*names)))}


# ----------------------------------------------------------------------------------------------------- the namespaces


@st.composite
def named(draw: st.DrawFn) -> list[str]:
    server = st.sampled_from(["github", "fetch", "functions", "my.srv", "my_srv", "a" * 60, "日本", "_x", "GitHub"])
    tool = st.from_regex(r"[a-z]{3,6}_[a-z]{3,6}", fullmatch=True)
    pairs = draw(st.lists(st.tuples(server, tool), min_size=1, max_size=40))
    loose = draw(st.lists(tool, max_size=12))
    return sorted({*(f"{server}__{name}" for server, name in pairs), *loose, "fetch"})


@settings(max_examples=150)
@given(names=named(), data=st.data())
def test_groups_are_small_valid_and_a_function_of_the_names(names: list[str], data: Any) -> None:
    made = groups(*names)
    assert sorted(tool for members in made.values() for tool in members) == names
    assert all(0 < len(members) <= MOST < 10 for members in made.values())
    assert all(NAME.fullmatch(name) and name.startswith("lp_") and name != "functions" for name in made)
    shuffled = data.draw(st.permutations(names))
    assert {name: sorted(members) for name, members in groups(*shuffled).items()} == {
        name: sorted(members) for name, members in made.items()
    }


@settings(max_examples=60)
@given(names=named(), more=st.lists(st.from_regex(r"zulu__[a-z]{4}", fullmatch=True), min_size=2, unique=True))
def test_a_servers_tools_keep_their_groups_when_another_server_joins(names: list[str], more: list[str]) -> None:
    before, after = groups(*names), groups(*names, *more)
    served = {name: members for name, members in before.items() if not name.startswith("lp__tools")}
    assert all(after[name] == members for name, members in served.items())


def test_what_a_namespace_is_about_is_said_in_a_few_words() -> None:
    wires = regrouped(
        grouped(deferred(*[f"crm__{act}_{thing}" for act in ("list", "drop") for thing in ("ship", "port")]))
    )
    (box,) = wires
    assert (box["name"], box["description"]) == ("lp_crm", "port, ship")
    assert all(len(wire["description"]) <= 32 for wire in regrouped(grouped(deferred(*NAMES))))


def test_a_tool_named_like_its_server_and_the_callers_own_namespaces_bear_it() -> None:
    own = {"type": "namespace", "name": "crm", "description": "Customers.", "tools": tools(RESPONSES, ["find", "drop"])}
    talk = started(extra={"tools": [*tools(RESPONSES, ["notes", "notes_all", "notes_raw", *NAMES]), own]})
    talk.user("go")
    reply = talk.send(Move(calls=[hosted("lp_notes", "crm"), ("notes", {"id": 1}), ("crm.find", {"id": 1})]))
    (sent,) = [wire for wire in talk.body["tools"] if wire.get("name") == "crm"]
    assert (sent["description"], sorted(tool["name"] for tool in sent["tools"])) == ("Customers.", ["drop", "find"])
    calls = [item for item in reply["output"] if item["type"] == "function_call"]
    assert [(call["name"], call.get("namespace")) for call in calls] == [("notes", None), ("find", "crm")]
    talk.answer(reply)
    talk.send(Move(text="done"))
    places = [item.get("namespace") for item in talk.body["input"] if item.get("type") == "function_call"]
    assert places == ["lp_notes", "crm"]


def test_a_callers_namespace_that_looks_like_ours_passes_with_the_reason() -> None:
    own = {
        "type": "namespace",
        "name": "lp_records",
        "description": "LPs.",
        "tools": tools(RESPONSES, ["find", "play"]),
    }
    talk = started(extra={"tools": [*tools(RESPONSES), own]})
    talk.user("go")
    talk.send(Move(text="ok"))
    assert "lp_" in talk.report.reason
    assert own in talk.body["tools"]


# ------------------------------------------------------------------------------------------------ whole conversations


@streams
def test_the_search_is_the_providers_and_the_namespaces_are_not_seen_in_calls(stream: bool) -> None:
    talk = started(stream)
    talk.user("go")
    reply = talk.send(Move(text="Looking.", thinking="where", calls=[hosted(BOX), (TOOL, {"id": 1})]))
    kinds = [item["type"] for item in reply["output"]]
    assert kinds == ["reasoning", "message", "tool_search_call", "tool_search_output", "function_call"]
    assert "namespace" not in reply["output"][-1]
    assert talk.body["tools"][0] == {"type": "tool_search"}
    assert {wire["type"] for wire in talk.body["tools"][1:]} == {"namespace"}
    assert talk.report.load_point == "hosted_search"
    assert talk.server.exchanges[-1].warnings == ()
    talk.answer(reply)
    talk.send(Move(text="done"))
    (call,) = [item for item in talk.body["input"] if item.get("type") == "function_call"]
    assert call["namespace"] == BOX
    assert talk.report.prefix.stable
    assert not talk.report.warnings
    assert TOOL in [tool.name for tool in talk.report.loaded]


@streams
@pytest.mark.report("BR-003")
def test_without_a_ledger_the_same_bytes_are_sent_again(stream: bool) -> None:
    """Everything that a hosted search leaves is visible: nothing is lost with a process but what calls carry."""
    talk = started(stream)
    for name, box in ((TOOL, BOX), (OTHER, OTHER_BOX)):
        talk.user(f"do {name}")
        talk.answer(talk.send(Move(calls=[hosted(box), (name, {"id": 1})])))
        talk.send(Move(text="done"))
    sent = [json.dumps(item, sort_keys=True) for item in talk.body["input"]]
    talk.restart()
    talk.user("again")
    talk.answer(talk.send(Move(calls=[(TOOL, {"id": 2})])))
    again = [json.dumps(item, sort_keys=True) for item in talk.body["input"]]
    assert again[: len(sent)] == sent
    talk.send(Move(text="done"))


@streams
def test_a_call_without_a_search_goes_to_the_caller(stream: bool) -> None:
    """Seen of gpt-5.4: https://github.com/openai/openai-agents-js/issues/1518."""
    talk = started(stream)
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.bare()[0] == 200


@streams
def test_nothing_deferred_means_no_search(stream: bool) -> None:
    """A hosted search without a deferred tool is refused: a forced tool is not deferred."""
    talk = started(stream, names=NAMES[:1], policy=HOSTED.replace(threshold_tokens=0))
    talk.extra = {"tool_choice": {"type": "function", "name": NAMES[0]}}
    talk.user("go")
    reply = talk.send(Move(calls=[(NAMES[0], {"id": 1})]))
    assert [wire["type"] for wire in talk.body["tools"]] == ["function"]
    assert talk.calls(reply) == [(NAMES[0], {"id": 1})]


@streams
def test_a_hosted_history_is_clean_and_valid_without_us(stream: bool) -> None:
    talk = started(stream)
    talk.user("go")
    talk.answer(talk.send(Move(thinking="where", calls=[hosted(BOX), (TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    assert talk.bare()[0] == 200
    talk.visible = loadpoint.clean(talk.visible)
    assert "lp_" not in json.dumps(talk.visible)
    assert TOOL in json.dumps(talk.visible)
    assert talk.bare()[0] == 200


FROM = [
    Form(RESPONSES, strategy, False, model) for strategy, model in (("native", ""), ("native", ADDS), ("resend", ""))
]


@pytest.mark.parametrize("form", FROM, ids=lambda form: form.model or form.strategy)
@pytest.mark.parametrize("known", [True, False], ids=["ledger", "no ledger"])
@pytest.mark.parametrize("discovery", ["hidden", "shown"])
def test_conversations_change_to_a_hosted_search_and_back(form: Form, known: bool, discovery: str) -> None:
    talk = form.talk({"discovery": discovery})
    talk.load(TOOL)
    back = (talk.policy, talk.model)

    def go_on(policy: Policy, model: str) -> None:
        talk.policy, talk.model = policy, model
        talk.restart(**({"ledger": talk.session.ledger} if known else {}))

    go_on(HOSTED, "gpt-5.4")
    talk.user("and now")
    reply = talk.send(Move(calls=[hosted(OTHER_BOX), (OTHER, {"id": 1}), (TOOL, {"id": 2})]))
    assert [name for name, _ in talk.calls(reply)][-2:] == [OTHER, TOOL]
    talk.answer(reply)
    talk.send(Move(text="done"))
    go_on(*back)
    talk.user("back")
    reply = talk.send(Move(calls=[(OTHER, {"id": 3}), (TOOL, {"id": 4})]))
    assert talk.calls(reply) == [(OTHER, {"id": 3}), (TOOL, {"id": 4})]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert {TOOL, OTHER} <= {tool.name for tool in talk.report.loaded}


# ------------------------------------------------------------------------------------------------------- real tools

DATA = os.environ.get("LOADPOINT_DATA")


@pytest.mark.skipif(not DATA, reason="LOADPOINT_DATA is not set")
@pytest.mark.parametrize(("count", "most"), [(20, 150), (200, 1_000), (1_000, 3_200)])
def test_namespaces_cost_a_fraction_of_flat_deferral(count: int, most: int) -> None:
    """A flat deferred function stands in the context with its name and description, a namespace for all its members."""
    found = from_files(sorted((Path(DATA or "") / "catalogs").glob("*.json"))).sized(count)
    flat: list[dict[str, Any]] = [
        {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters}
        | {"strict": False, "defer_loading": True}
        for tool in found.tools
    ]
    made = regrouped(grouped(flat))
    boxed, loose = sum(tokens(declaration(wire)) for wire in made), sum(tokens(declaration(wire)) for wire in flat)
    assert boxed <= min(most, loose / 10)
    assert all(len(wire["tools"]) < 10 for wire in made)


@streams
@pytest.mark.parametrize("by", ["reply", "conversation"])
def test_a_conversation_that_the_server_holds_goes_on(stream: bool, by: str) -> None:
    talk = started(stream)
    if by == "conversation":
        status, raw = talk.post({}, "/conversations")
        assert status == 200
        talk.extra = {"conversation": json.loads(raw)["id"]}
    talk.user("go")
    for name, box in ((TOOL, BOX), (OTHER, OTHER_BOX)):
        reply = talk.send(Move(calls=[hosted(box), (name, {"id": 1}), (TOOL, {"id": 2})]))
        assert talk.calls(reply)[-2:] == [(name, {"id": 1}), (TOOL, {"id": 2})]
        if by == "reply":
            talk.extra = {"previous_response_id": reply["id"]}
        calls = [item for item in reply["output"] if item["type"] == "function_call"]
        talk.visible = [
            {"type": "function_call_output", "call_id": call["call_id"], "output": "done"} for call in calls
        ]
    talk.send(Move(text="done"))
    assert talk.report.prefix.stable
    assert len({json.dumps(body["tools"]) for body in talk.bodies if "tools" in body}) == 1


@streams
def test_allowed_tools_take_another_form_because_no_choice_can_name_the_search(stream: bool) -> None:
    talk = started(stream)
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": TOOL}]}
    talk.extra = {"tool_choice": allowed}
    talk.user("go")
    reply = talk.send(Move(calls=[("ToolSearch", {"query": TOOL})]), Move(calls=[(TOOL, {"id": 1})]))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert talk.report.load_point != "hosted_search"
    assert "tool search" not in json.dumps(talk.bodies)


@streams
@pytest.mark.parametrize("mode", ["required", "named"])
def test_a_demanded_tool_is_called(stream: bool, mode: str) -> None:
    talk = started(stream)
    choice: Any = "required" if mode == "required" else {"type": "function", "name": TOOL}
    talk.extra = {"tool_choice": choice}
    talk.user("go")
    calls = [(TOOL, {"id": 1})] if mode == "named" else [hosted(BOX), (TOOL, {"id": 1})]
    reply = talk.send(Move(calls=calls))
    assert talk.calls(reply)[-1:] == [(TOOL, {"id": 1})]
    assert talk.body["tool_choice"] == choice
    talk.answer(reply)
    talk.extra = {}
    talk.send(Move(text="done"))
