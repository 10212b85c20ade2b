"""How each form of the Messages API reads and writes what the others have loaded."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from tests.core.conversation import MESSAGES, tools

from loadpoint._loaded import evidence
from loadpoint._views import CallView, Outcome, ResultView
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages

Json = dict[str, Any]
BASE = AnthropicMessages()
TOOL, OTHER = "invoice_export", "parcel_rename"
DEFINED, ANOTHER = tools(MESSAGES, [TOOL, OTHER])
FORMS: dict[str, AnthropicMessages] = {
    "list": BASE,
    "reference": BASE.at("tool_reference"),
    "fixed": BASE.at("tool_reference", "fixed"),
    "value": BASE.at("tool_addition"),
    "by name": BASE.at("tool_addition", "reference"),
    "hosted": BASE.at("hosted_search"),
}
PAIRS = list(itertools.permutations(FORMS, 2))
CALL = CallView("toolu_1", "ToolSearch", {"query": TOOL})
TEXT = json.dumps({"query": "", "matches": [], "total_available": 1, "addedToolNames": [TOOL]}, separators=(",", ":"))
FOUND = Outcome(TEXT, (TOOL,), (DEFINED,))
USER: Json = {"role": "user", "content": "and?"}


def changed(*blocks: Json) -> Json:
    return {"role": "system", "content": list(blocks)}


def by_value(tool: Json) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def by_name(name: str, kind: str = "tool_addition") -> Json:
    return {"type": kind, "tool": {"type": "tool_reference", "name": name}}


def called() -> Json:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}]}


def shape(form: AnthropicMessages, messages: list[Json]) -> list[Any]:
    """Roles and how each tool got there: `r` a reference in a result, `v` by value, `n` by name, `t` text."""
    out: list[Any] = []
    for message in messages:
        seen: list[str] = []
        for block in message["content"] if isinstance(message["content"], list) else []:
            tool = block.get("tool", {})
            if block["type"] == "tool_result":
                seen.append("r" if isinstance(block["content"], list) and "tool_name" in block["content"][0] else "t")
            elif tool:
                seen.append("v" if "definition" in tool else "n")
        out.append((message["role"][0], "".join(seen)))
    return out


LOADED: dict[str, list[tuple[str, str]]] = {
    "list": [("u", "t")],
    "reference": [("u", "r")],
    "fixed": [("u", "r")],
    "value": [("u", "t"), ("s", "v")],
    "by name": [("u", "t"), ("s", "n")],
    "hosted": [("u", "r")],
}


@pytest.mark.parametrize("name", FORMS)
def test_what_a_load_looks_like(name: str) -> None:
    form = FORMS[name]
    assert shape(form, form.join(form.result(CALL, FOUND), ())) == LOADED[name]


@pytest.mark.parametrize(("before", "now"), PAIRS)
def test_a_load_that_waited_for_the_callers_results_in_another_form(before: str, now: str) -> None:
    """The record was written by one model's form and is answered in another's."""
    form = FORMS[now]
    pending = FORMS[before].result(CALL, FOUND)
    messages = [sent for m in form.join(pending, [USER]) for sent in form.incoming(m, loader="ToolSearch")]
    seen = shape(form, messages)
    assert seen[0][0] == "u"
    assert len(seen[0][1]) == 1, "one result for the call, whatever form it has"
    assert [role for role, _ in seen[1:]] == ["s"] * (len(seen) - 1), "and nothing of ours before a user message"
    if now == "list":
        assert seen == [("u", "t")]
    elif now in ("reference", "fixed", "hosted"):
        assert seen == [("u", "r")]
    elif now == "by name":
        assert "v" not in str(seen)
    views = [form.view(message) for message in (called(), *messages)]
    proofs = evidence(views, is_deferred=lambda name: name == TOOL, loaders=("ToolSearch",))
    assert [proof.name for proof in proofs] == [TOOL], "it counts in every form"


@pytest.mark.parametrize(("before", "now"), PAIRS)
def test_a_load_of_an_earlier_turn_in_another_form(before: str, now: str) -> None:
    form, other = FORMS[now], FORMS[before]
    turn = [called(), *other.join(other.result(CALL, FOUND), ()), {"role": "assistant", "content": "ok"}]
    sent = [wire for m in turn for wire in form.incoming(m, loader="ToolSearch", ours=True)]
    assert [message["role"] for message in sent if message["role"] != "system"] == ["assistant", "user", "assistant"]
    if now in ("list", "reference", "fixed", "hosted"):
        assert "system" not in [message["role"] for message in sent]
    views = [form.view(message) for message in sent]
    (proof,) = evidence(views, is_deferred=lambda name: name == TOOL, loaders=("ToolSearch",))
    assert proof.placed is (now != "list" and (before != "list" or now not in ("value", "by name")))


@pytest.mark.parametrize("name", FORMS)
def test_changes_of_the_caller_are_his_where_they_can_be_sent(name: str) -> None:
    form = FORMS[name]
    text = {"type": "text", "text": "Now."}
    message = changed(text, by_value(DEFINED), by_name(OTHER, "tool_removal"))
    sent = form.incoming(message, loader="ToolSearch")
    assert sent == ([changed(text)] if name == "fixed" else [message])
    assert form.incoming(changed(by_name(TOOL)), loader="ToolSearch") == (
        [] if name == "fixed" else [changed(by_name(TOOL))]
    )


def test_views_of_changes() -> None:
    view = BASE.view(changed(by_value(DEFINED), by_name(OTHER), by_name(TOOL, "tool_removal")))
    assert view.role == "system"
    assert view.results == (
        ResultView("", "", search=True, names=(TOOL,), tools=(DEFINED,)),
        ResultView("", "", search=True, names=(OTHER,)),
        ResultView("", "", search=True, removed=(TOOL,)),
    )
    proofs = evidence([view], is_deferred=bool, loaders=())
    assert [(proof.name, proof.placed) for proof in proofs] == [(OTHER, True)], "what was taken back is not loaded"
    of_server = {"type": "tool_addition", "tool": {"type": "mcp_tool_reference", "server_name": "crm", "name": "list"}}
    odd: list[Json] = [
        of_server,
        {"type": "tool_addition"},
        {"type": "tool_addition", "tool": {"type": "tool_reference"}},
    ]
    assert BASE.view(changed(*odd)).results == ()
    elsewhere = {"role": "user", "content": [by_value(DEFINED)]}
    assert BASE.view(elsewhere).results == (), "only a system message can change the tools"


def test_a_compaction_keeps_the_tools_that_it_names_and_no_others() -> None:
    earlier = BASE.view({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [
        {"type": "tool_reference", "tool_name": TOOL}]}]})  # fmt: skip
    block = {"type": "compaction", "content": "So far.", "tool_changes": [by_name(OTHER)]}
    message = {"role": "assistant", "content": [block, {"type": "text", "text": "ok"}]}
    assert BASE.at("tool_addition").incoming(message, loader="ToolSearch") == [message], "it goes back unchanged"

    def loaded(*messages: Json) -> list[str]:
        views = [earlier, *map(BASE.view, messages)]
        return [proof.name for proof in evidence(views, is_deferred=bool, loaders=())]

    assert loaded(message) == [OTHER]
    assert loaded({"role": "assistant", "content": [{**block, "tool_changes": []}]}) == []
    assert loaded({"role": "assistant", "content": [{**block, "content": None}]}) == [TOOL], "it failed"


def test_pushed_tools_and_tools_taken_back() -> None:
    both = FORMS["value"].changes([DEFINED], [OTHER], by_value=True)
    assert both == [changed(by_name(OTHER, "tool_removal"), by_value(DEFINED))]
    named = FORMS["reference"].changes([DEFINED], [OTHER], by_value=False)
    assert named == [changed(by_name(OTHER, "tool_removal"), by_name(TOOL))]
    assert FORMS["value"].changes([], [], by_value=True) == []
    assert FORMS["list"].changes([DEFINED], [], by_value=True) == []
    assert FORMS["fixed"].changes([DEFINED], [], by_value=True) == []


def test_a_caller_who_answers_the_loader_himself_loads_in_the_form_of_the_request() -> None:
    message = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": TEXT}]}
    for name, form in FORMS.items():
        if name != "list":
            assert shape(form, form.answered(message, "toolu_1", FOUND)) == LOADED[name]


def test_markers_are_not_a_part_of_what_was_said() -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    inside = changed(by_value({**DEFINED, **marker}))
    assert BASE.bare(inside) == BASE.bare(changed({**by_value(DEFINED), **marker})) == changed(by_value(DEFINED))


def test_a_variant_that_is_not_known_is_the_plain_one() -> None:
    assert BASE.at("no such point") is BASE
    assert FORMS["value"].at("tool_addition") is FORMS["value"]
    assert FORMS["value"].at("tool_addition", "reference").by_reference
    assert not FORMS["value"].by_reference
    assert BASE.at("tool_reference", "no such variant").load_point == "tool_reference"


def test_the_definition_of_a_resident_is_marked_and_the_placeholder_is_not() -> None:
    body = FORMS["value"].with_tools({"messages": [USER]}, [DEFINED])
    assert [tool.get("defer_loading") for tool in body["tools"]] == [None, True]
    marked = FORMS["value"].with_markers(body)
    assert [("cache_control" in tool) for tool in marked["tools"]] == [True, False]
    assert FORMS["value"].with_tools({}, [])["tools"] == [], "alone it would be a list of deferred tools"
