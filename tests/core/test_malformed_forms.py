"""Loads in a history that are damaged in every way: no exception, nothing of the user's lost, no new refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, UpstreamError
from tests.core.loads import WRITTEN, Load, said, used
from tests.core.test_form_round_trips import DIALECTS, READERS, WAYS, talk_in

from loadpoint.emulator import Move

Json = dict[str, Any]
GARBAGE: list[Any] = [None, "", "x", 0, -1, True, [], [[]], {}, {"type": None}, [None, 1, "x"], {"name": ["x"]}]
DAMAGE = ("lost", "garbage", "twice", "nested", "renamed")


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a message but the message itself."""
    out: list[tuple[Any, ...]] = [path] if path else []
    keys = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in keys:
        out += places(inner, (*path, key))
    return out


def damaged(message: Json, data: st.DataObject) -> Json:
    """A copy of the message with one place of it lost, doubled, replaced, wrapped, or under another name."""
    out: Json = json.loads(json.dumps(message))
    path = data.draw(st.sampled_from(places(out)))
    holder: Any = out
    for key in path[:-1]:
        holder = holder[key]
    key, how = path[-1], data.draw(st.sampled_from(DAMAGE))
    if how == "lost":
        del holder[key]
    elif how == "twice" and isinstance(holder, list):
        holder.append(holder[key])
    elif how == "nested":
        holder[key] = [holder[key]]
    elif how == "renamed" and isinstance(holder[key], str):
        holder[key] = "no_such_thing"
    else:
        holder[key] = data.draw(st.sampled_from(GARBAGE))
    return out


@settings(max_examples=200)
@given(data=st.data())
@pytest.mark.parametrize(("dialect", "point", "variant"), READERS)
def test_no_form_raises_for_a_damaged_load(dialect: str, point: str | None, variant: str, data: st.DataObject) -> None:
    reader = DIALECTS[dialect].at(point, variant)
    form = data.draw(st.sampled_from(sorted(WRITTEN[dialect])))
    messages = [damaged(message, data) for message in WRITTEN[dialect][form](Load(NAMES[:2]))]
    body = reader.with_messages({"model": "m", "tools": []}, messages)
    for message in reader.messages(body):
        reader.view(message)
        reader.bare(message)
        for ours in (False, True):
            reader.incoming(message, loader="ToolSearch", ours=ours)
    reader.without_thinking(messages)
    reader.rebuilt(messages)
    reader.unanswered(messages)
    reader.settled(body)
    reader.turned_back(body)
    reader.without_ours(messages, {"x"})


WORDS = "the user's own words"


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].split('.')[1]}-{way[1]}-{way[3]}")
def test_a_damaged_load_is_judged_by_the_provider_as_without_us(way: Any, data: st.DataObject) -> None:
    dialect = way[0]
    form = data.draw(st.sampled_from(sorted(WRITTEN[dialect])))
    load = WRITTEN[dialect][form](Load(NAMES[:2]))
    at = data.draw(st.integers(0, len(load) - 1))
    load[at] = damaged(load[at], data)
    visible = [said(dialect, "user", WORDS), *load, said(dialect, "assistant", "found"), *used(dialect, NAMES[5], 1)]
    talk = talk_in(way, visible)
    talk.user(f"{WORDS} again")
    bare, _ = talk.bare()
    call = talk.begun()
    assert call is not None
    assert json.dumps(call.body).count(WORDS) == 2, "nothing of the user's is lost"
    if dialect != MESSAGES or "done" in json.dumps(visible):
        assert '"done"' in json.dumps(call.body), "nor a result"
    refused: UpstreamError | None = None
    try:
        talk.send(Move(text="ok"))
    except UpstreamError as error:
        refused = error
    # It may be taken where the bare one is not, and a refusal may name another fault of the same load.
    assert refused is None or bare != 200


ODD: dict[str, list[Json]] = {
    CHAT: [
        {"role": "system", "tools": None},
        {"role": "system", "tools": "all"},
        {"role": "system", "tools": [None, 1, {}, {"function": None}, {"function": {"name": 7}}]},
        {"role": "tool", "tool_call_id": None, "content": [{"type": "tool_reference"}, {"tool_name": []}, None]},
    ],
    MESSAGES: [
        {"role": "system", "content": [{"type": "tool_addition"}, {"type": "tool_removal", "tool": "x"}, None]},
        {"role": "system", "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "nobody"}}]},
        {"role": "system", "content": [{"type": "tool_addition", "tool": {"type": "tool_definition"}}]},
        {"role": "assistant", "content": [{"type": "tool_search_tool_result", "content": [1]}, None, "x"]},
        {"role": "assistant", "content": [{"type": "server_tool_use", "id": ["srvtoolu_lp"], "name": 3}]},
    ],
    RESPONSES: [
        {"type": "tool_search_output", "call_id": 7, "execution": "client"},
        {"type": "tool_search_output", "call_id": None, "tools": [None, {"type": "namespace", "tools": [None]}]},
        {"type": "additional_tools", "tools": {"type": "function", "name": "x"}},
        {"type": "additional_tools", "role": 3, "tools": [{"type": "namespace", "name": None, "tools": "x"}]},
        {"type": "tool_search_call", "id": "tsc_lp0_0_0_", "arguments": 5},
        {"type": ["additional_tools"], "tools": [{}]},
    ],
}


@pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].split('.')[1]}-{way[1]}-{way[3]}")
@pytest.mark.parametrize("alone", [True, False])
def test_nested_garbage_stands_in_the_request_or_is_nobodys_load(
    way: Any, alone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for odd in ODD[way[0]]:
        talk = talk_in(way, [said(way[0], "user", WORDS), odd, *([odd] if not alone else [])])
        talk.user(f"{WORDS} again")
        call = talk.begun()
        body = talk.request().body if call is None else call.body
        assert json.dumps(body).count(WORDS) == 2
    assert "a fault in" not in caplog.text
