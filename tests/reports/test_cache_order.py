"""Field reports about order: whatever order tools, fields and servers come in, what is sent has one of its own."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any

import pytest
from tests.core.conversation import (
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    everywhere,
    search,
    tools,
    unstreamed,
)

from loadpoint import InProcessLedger, SqliteLedger
from loadpoint._json import Json, dumps
from loadpoint.emulator import Move

TOOL = "invoice_export"
SERVERS = ("crm", "billing", "wiki", "mail")
RESIDENT = ("ledger_list", "photo_list", "contact_create")


def heads(talk: Conversation) -> list[str]:
    """The tools in context and the system prompt of every request, as bytes."""
    found = []
    for body in talk.bodies:
        shown = [tool for tool in body["tools"] if tool.get("defer_loading") is not True]
        found.append(dumps([shown, body.get("system")]))
    return found


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same JSON value with the keys of every object in another order."""
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if not isinstance(value, dict):
        return value
    keys = rng.sample(sorted(value), len(value))
    return {key: shuffled(value[key], rng) for key in keys}


def deep(dialect: str, names: Sequence[str] = NAMES) -> list[Json]:
    """Tools whose schemas are objects within objects, with definitions."""
    listed = tools(dialect, names)
    for tool in listed:
        schema = tool.get("function", tool).get("parameters") or tool["input_schema"]
        schema |= {
            "additionalProperties": False,
            "$defs": {name: {"type": "object", "properties": {"a": {"type": "string"}}} for name in ("one", "two")},
        }
        schema["properties"] |= {
            "first": {"$ref": "#/$defs/one"},
            "second": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/two"}, {"type": "null"}]}},
        }
    return listed


def spoken_by_the_model(message: Json) -> bool:
    return message.get("role") == "assistant" or str(message.get("type")).endswith("_call")


def once_loaded(talk: Conversation) -> int:
    """A conversation that loads a tool, and how many requests that took: from here on nothing may move."""
    talk.load(TOOL)
    return len(talk.bodies) - 1


def more(talk: Conversation, name: str = TOOL) -> None:
    """A turn with a call of a loaded tool."""
    talk.user("again")
    talk.answer(talk.send(Move(calls=[(name, {"id": 2})])))
    talk.send(Move(text="done"))


@pytest.mark.report("BR-060")
@everywhere
def test_the_same_tools_in_any_order_are_the_same_bytes(form: Form) -> None:
    talk = form.talk({"resident": RESIDENT})
    rng = random.Random(7)
    talk.names = rng.sample(NAMES, len(NAMES))
    start = once_loaded(talk)
    first = heads(talk)[0]
    for _ in range(4):
        talk.names = rng.sample(NAMES, len(NAMES))
        more(talk)
        assert talk.report.prefix.stable
    assert len(set(heads(talk)[start:])) == 1
    other = form.talk({"resident": RESIDENT}, names=rng.sample(NAMES, len(NAMES)))
    other.user("hello")
    other.send(Move(text="hi"))
    assert heads(other) == [first], "nor in another process"


@pytest.mark.report("BR-051")
@everywhere
def test_servers_that_answer_in_another_order_change_nothing(form: Form) -> None:
    groups = {server: [f"{server}__{name}" for name in NAMES[at::4]] for at, server in enumerate(SERVERS)}
    talk = form.talk({"resident": ("*_list",)})
    talk.names = [name for server in SERVERS for name in groups[server]]
    talk.user("hello")
    talk.send(Move(text="hi"))
    for order in (("mail", "wiki", "billing", "crm"), ("wiki", "crm", "mail", "billing")):
        talk.names = [name for server in order for name in groups[server]]
        talk.user("and now")
        talk.send(Move(text="still here"))
    assert len(set(heads(talk))) == 1
    fresh = form.talk(
        {"resident": ("*_list",)}, names=[name for server in reversed(SERVERS) for name in groups[server]]
    )
    fresh.user("hello")
    fresh.send(Move(text="hi"))
    assert heads(fresh) == heads(talk)[:1]


@pytest.mark.report("BR-052")
@everywhere
def test_a_listing_that_only_comes_in_another_order_is_no_change(form: Form) -> None:
    talk = form.talk({"resident": ("event_*", "photo_list")})
    once_loaded(talk)
    talk.names = [*NAMES[7:], *NAMES[:7]]
    more(talk)
    assert talk.report.prefix.stable
    assert not talk.report.warnings
    talk.user("find another")
    talk.send(Move(calls=[search("create one")]), Move(text="ok"))
    found = [each.hits for each in talk.report.searches]
    twin = form.talk({"resident": ("event_*", "photo_list")}, names=[*reversed(NAMES)])
    twin.user("find another")
    twin.send(Move(calls=[search("create one")]), Move(text="ok"))
    assert heads(twin)[0] == heads(talk)[0]
    assert found == [each.hits for each in twin.report.searches], "what a search finds does not depend on it either"


@pytest.mark.report("BR-058")
@everywhere
def test_a_new_tool_changes_the_end_and_nothing_else(form: Form) -> None:
    talk = form.talk({"resident": (*RESIDENT, "aaa_*")})
    once_loaded(talk)
    before = talk.body
    talk.names = random.Random(1).sample((*NAMES, "aab_deferred"), len(NAMES) + 1)
    more(talk)
    assert talk.report.prefix.stable, "a deferred one is not in context"
    assert form.declares_all or talk.body["tools"] == before["tools"]
    talk.names = random.Random(2).sample((*NAMES, "aaa_first"), len(NAMES) + 1)
    more(talk)
    shown = [tool for tool in before["tools"] if tool.get("defer_loading") is not True]
    assert dumps(talk.body["tools"]).startswith(dumps(shown)[:-1]), "a resident one stands behind all the others"
    assert ("aaa_first" in talk.callable()) is not form.frozen, "there, the next load tells of it"
    assert (talk.in_context()[-1] == "aaa_first") is not form.keeps, "where it can, it stands in the conversation"


@pytest.mark.report("BR-054")
@everywhere
def test_the_keys_of_a_schema_may_wander_at_every_depth(form: Form) -> None:
    talk = form.talk({"resident": RESIDENT})
    rng = random.Random(3)
    listed = deep(form.dialect)
    talk.extra["tools"] = listed
    talk.load(TOOL, {"id": 1})
    start = len(talk.bodies) - 1
    for _ in range(4):
        talk.extra["tools"] = shuffled(listed, rng)
        more(talk)
        assert talk.report.prefix.stable
        assert not talk.report.warnings
    assert len(set(heads(talk)[start:])) == 1
    assert len({dumps(body["tools"]) for body in talk.bodies[start:]}) == 1, "nor do the declared ones"


@pytest.mark.report("BR-054", "BR-057")
@everywhere
def test_the_keys_of_a_schema_may_wander_between_two_processes(form: Form, tmp_path: Any) -> None:
    talk = form.talk({"resident": RESIDENT})
    rng = random.Random(4)
    listed = deep(form.dialect)
    talk.extra["tools"] = listed
    with closing(SqliteLedger(tmp_path / "ledger.db")) as ledger:
        talk.restart(ledger=ledger)
        start = once_loaded(talk)
        for _ in range(3):
            talk.extra["tools"] = shuffled(listed, rng)
            talk.restart(ledger=ledger)
            more(talk)
            assert talk.report.prefix.stable
    assert len({dumps(body["tools"]) for body in talk.bodies[start:]}) == 1


@pytest.mark.report("BR-057")
@unstreamed
def test_the_part_that_is_read_from_cache_grows_with_every_turn(form: Form) -> None:
    talk = form.talk({"resident": (*RESIDENT, "event_*"), "cache": "auto"})
    rng = random.Random(5)
    listed = deep(form.dialect)
    read = []
    ledger = InProcessLedger()
    for at in range(16):
        talk.extra["tools"] = shuffled(listed, rng)
        talk.restart(ledger=ledger)
        if at == 0:
            talk.load(TOOL, {"id": 1})
        talk.user(f"turn {at}: " + "and what of the next one? " * 20)
        usage = talk.send(Move(text="It is well. " * 30))["usage"]
        cached = usage.get("cache_read_input_tokens")
        details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
        read.append(details["cached_tokens"] if cached is None else cached)
    assert read[-1] > 2_000
    assert all(after > before for before, after in pairwise(read[1:])), read


def key_sorting(value: Any) -> Any:
    """What a store that keeps JSON by its keys gives back, texts that hold JSON included."""
    stored = json.loads(json.dumps(value, sort_keys=True))
    for call in stored.get("tool_calls") or []:
        call["function"]["arguments"] = json.dumps(json.loads(call["function"]["arguments"]), sort_keys=True)
    return stored


def written(talk: Conversation) -> list[Json]:
    """The arguments of all calls that are sent, as the provider reads them."""
    found: list[Json] = []
    if talk.dialect == RESPONSES:
        given = [item["arguments"] for item in talk.body["input"] if "arguments" in item]
        return [json.loads(arguments) if isinstance(arguments, str) else arguments for arguments in given]
    for message in talk.body["messages"]:
        found += [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls") or []]
        blocks = message["content"] if isinstance(message.get("content"), list) else []
        found += [block["input"] for block in blocks if block["type"] == "tool_use"]
    return found


@pytest.mark.report("BR-048")
@everywhere
@pytest.mark.parametrize("restarted", [False, True], ids=["same process", "another process"])
def test_a_history_from_a_store_that_sorts_keys_is_sent_as_it_was(form: Form, restarted: bool) -> None:
    ledger = InProcessLedger()
    talk = form.talk(style=key_sorting)
    talk.restart(ledger=ledger)
    talk.extra["tools"] = deep(form.dialect)
    talk.load(TOOL, {"id": 1, "second": [], "first": {"a": "x"}})
    spoken = [dumps(message) for message in talk.body[talk.key] if spoken_by_the_model(message)]
    wanted = [["query"], ["tool", "params"] if form.frozen else ["id", "second", "first"]]
    assert [list(arguments) for arguments in written(talk)] == wanted
    assert list(written(talk)[1].get("params", written(talk)[1])) == ["id", "second", "first"]
    talk.visible = [key_sorting(message) for message in talk.visible]
    if restarted:
        talk.restart(ledger=ledger)
    talk.user("and now?")
    talk.send(Move(text="all well"))
    again = [dumps(message) for message in talk.body[talk.key] if spoken_by_the_model(message)]
    assert again[: len(spoken)] == spoken
    assert [list(arguments) for arguments in written(talk)] == wanted
    assert talk.report.prefix.stable
    assert [tool.name for tool in talk.report.loaded] == [TOOL]


DAMAGED: list[Json] = [
    {"role": "user", "content": "find it"},
    {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "Looking."},
            {  # its call was lost
                "type": "tool_search_tool_result",
                "tool_use_id": "srvtoolu_01AbC",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [{"type": "tool_reference", "tool_name": TOOL}],
                },
            },
            {
                "type": "server_tool_use",
                "id": "srvtoolu_01Cut",
                "name": "tool_search_tool_bm25",
                "input": {"query": "x"},
            },
            {"type": "text", "text": "There it is."},
        ],
    },
    {"role": "user", "content": "go on"},
]


@pytest.mark.report("BR-055")
@pytest.mark.parametrize("strategy", ["native", "resend"])
def test_a_damaged_history_is_mended_in_the_same_way_each_time(strategy: str) -> None:
    talk = Form(MESSAGES, strategy, stream=False).talk(visible=json.loads(json.dumps(DAMAGED)))
    talk.send(Move(text="one"))
    mended = dumps(talk.body[talk.key])[:-1]
    assert TOOL in talk.callable()
    for _ in range(3):
        talk.restart()  # nothing is remembered: the repair is made anew
        talk.user("and on")
        talk.send(Move(text="more"))
        assert dumps(talk.body[talk.key]).startswith(mended)


@pytest.mark.report("BR-055")
@everywhere
def test_a_history_whose_rounds_are_lost_is_rebuilt_to_the_same_bytes(form: Form) -> None:
    talk = form.talk({"discovery": "shown"})
    talk.load(TOOL)
    sent = []
    for _ in range(3):
        talk.restart()
        talk.user("and on")
        talk.send(Move(text="more"))
        sent.append(dumps(talk.body[talk.key]))
    assert all(after.startswith(before[:-1]) for before, after in pairwise(sent))
