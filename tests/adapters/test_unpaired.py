"""Calls and results without their other half, lost tools and lost namespaces, through the real SDKs.

What is the caller's own the provider judges, in the words that the bare client hears; what stands there because of us
is made good before it is sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters import paths
from tests.adapters import response_paths as responses

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Emulator, Move

Json = dict[str, Any]
CHAT, MESSAGES, RESPONSES = "chat", "messages", "responses"
APIS = pytest.mark.parametrize("api", [CHAT, MESSAGES, RESPONSES])
STRATEGIES = pytest.mark.parametrize("strategy", ["native", "resend"])
GONE = "parcel_weigh"
MODELS = {CHAT: "gpt-5.4", MESSAGES: "claude-opus-4-8", RESPONSES: "gpt-5.4"}
ERRORS = (openai.BadRequestError, anthropic.BadRequestError)


def client(api: str, server: Emulator) -> Any:
    if api == MESSAGES:
        return anthropic.Anthropic(api_key="k", http_client=emulator.http_client("anthropic", server))
    return openai.OpenAI(api_key="k", http_client=emulator.http_client("openai", server))


def tools(api: str) -> list[Json]:
    made: dict[str, Any] = {CHAT: paths.chat_tools, MESSAGES: paths.message_tools, RESPONSES: responses.tools}
    found: list[Json] = made[api](60)
    return found


def send(api: str, one: Any, history: list[Json]) -> Any:
    given: Json = {"model": MODELS[api], "tools": tools(api)}
    if api == RESPONSES:
        return one.responses.create(**given, input=history)
    if api == MESSAGES:
        return one.messages.create(**given, messages=history, max_tokens=900)
    return one.chat.completions.create(**given, messages=history)


def call(
    api: str, name: str = "svc_tool_7", id_: str = "call_1", arguments: str = '{"city": "Rome"}', **more: Any
) -> Json:
    if api == RESPONSES:
        return {"type": "function_call", "call_id": id_, "name": name, "arguments": arguments, **more}
    if api == MESSAGES:
        use = {"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)}
        return {"role": "assistant", "content": [use]}
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def result(api: str, id_: str = "call_1", content: Any = "done") -> Json:
    if api == RESPONSES:
        return {"type": "function_call_output", "call_id": id_, "output": content}
    if api == MESSAGES:
        return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": content}]}
    return {"role": "tool", "tool_call_id": id_, "content": content}


def user(text: str = "go on") -> Json:
    return {"role": "user", "content": text}


def said(api: str, one: Any, history: list[Json]) -> str | None:
    """The error of a request, None if it is taken."""
    try:
        send(api, one, history)
    except ERRORS as error:
        return re.sub(r"req_\w+", "", str(error))
    return None


HALVES: dict[str, Callable[[str], list[Json]]] = {
    "a result": lambda api: [user(), result(api), user()],
    "a result behind another": lambda api: [user(), call(api), result(api), result(api, "call_2"), user()],
    "a call": lambda api: [user(), call(api), user()],
    "a call at the end": lambda api: [user(), call(api)],
    "a call of no tool": lambda api: [user(), call(api, GONE), user()],
    "both, the wrong way round": lambda api: [user(), result(api), call(api), user()],
}


@APIS
@STRATEGIES
@pytest.mark.parametrize("half", HALVES)
def test_a_half_of_the_callers_is_judged_by_the_provider_as_without_us(half: str, strategy: str, api: str) -> None:
    history = HALVES[half](api)
    server = Emulator([Move(text="ok")] * 2)
    wrapped = loadpoint.wrap(client(api, server), Policy(strategy=strategy))
    bare = said(api, client(api, server), history)
    assert bare is not None
    assert said(api, wrapped, history) == bare


LOST = {
    CHAT: [
        user(),
        call(CHAT, "ToolSearch", arguments=json.dumps({"query": GONE})),
        result(CHAT, content=json.dumps({"query": GONE, "matches": [], "addedToolNames": [GONE]})),
        user(),
    ],
    MESSAGES: [
        user(),
        call(MESSAGES, "ToolSearch", arguments=json.dumps({"query": GONE})),
        result(MESSAGES, content=[{"type": "tool_reference", "tool_name": GONE}]),
        user(),
    ],
    RESPONSES: [
        user(),
        {"type": "tool_search_call", "execution": "client", "call_id": "call_1", "arguments": {"query": GONE}},
        {
            "type": "tool_search_output",
            "execution": "client",
            "call_id": "call_1",
            "tools": [{**responses.tools(1)[0], "name": GONE, "defer_loading": True}],
        },
        user(),
    ],
}


@APIS
@STRATEGIES
def test_a_load_of_a_tool_that_no_longer_exists_is_replayed_validly(strategy: str, api: str) -> None:
    """In the Messages API the bare client hears of a reference to nothing; ours stands for something that is gone."""
    server = Emulator([Move(text="ok")])
    wrapped = loadpoint.wrap(client(api, server), Policy(strategy=strategy))
    assert said(api, wrapped, LOST[api]) is None
    if api == MESSAGES:
        bare = said(api, client(api, server), LOST[api])
        assert bare is not None
        assert GONE in bare


@pytest.mark.requirement("N34")
@STRATEGIES
@pytest.mark.parametrize("lost", ["call", "output"])
def test_half_of_a_search_is_made_whole(lost: str, strategy: str) -> None:
    """The items of the client's search in the Responses API, which refuses one without the other."""
    history = [item for item in LOST[RESPONSES] if item.get("type") != f"tool_search_{lost}"]
    server = Emulator([Move(text="ok")] * 2)
    wrapped = loadpoint.wrap(client(RESPONSES, server), Policy(strategy=strategy))
    assert said(RESPONSES, client(RESPONSES, server), history) is not None
    assert said(RESPONSES, wrapped, history) is None


@STRATEGIES
@pytest.mark.parametrize("namespace", [None, "svc_tool_7", "lp_svc", "of_another_process"])
def test_a_call_without_its_namespace_or_with_one_of_ours_is_sent_with_the_right_one(
    namespace: str | None, strategy: str
) -> None:
    """A namespace that is neither ours nor declared is the caller's own, and so is what is said of it."""
    more = {} if namespace is None else {"namespace": namespace}
    history = [user(), call(RESPONSES, **more), result(RESPONSES), user()]
    server = Emulator([Move(text="ok")] * 2, rules="all")
    wrapped = loadpoint.wrap(client(RESPONSES, server), Policy(strategy=strategy))
    error = said(RESPONSES, wrapped, history)
    if namespace != "of_another_process":
        assert error is None
        return
    bare = said(RESPONSES, client(RESPONSES, server), history)
    assert bare is not None
    assert error == bare


@APIS
def test_our_half_of_a_mixed_turn_waits_for_the_callers(api: str) -> None:
    """A call of the caller's and a search in one turn: without his result the error is about his call alone."""
    name = "tool_search" if api == RESPONSES else "ToolSearch"
    server = Emulator(
        [Move(calls=[("svc_tool_1", {"city": "Rome"}), (name, {"query": "svc_tool_7"})]), Move(text="ok")]
    )
    wrapped = loadpoint.wrap(client(api, server), Policy(strategy="native", resident=("svc_tool_1",)))
    history = [user("Do it.")]
    reply = send(api, wrapped, history)
    raw = reply.to_dict(warnings=False)
    if api == RESPONSES:
        ids = [item["call_id"] for item in raw["output"]]
        turn = raw["output"]
    elif api == MESSAGES:
        ids = [block["id"] for block in raw["content"]]
        turn = [{"role": "assistant", "content": raw["content"]}]
    else:
        turn = [raw["choices"][0]["message"]]
        ids = [wire["id"] for wire in turn[0]["tool_calls"]]
    assert len(ids) == 1
    error = said(api, wrapped, [*history, *turn, user()])
    assert error is not None
    assert ids[0] in error
    assert error.count("call_") + error.count("toolu_") <= 4
    assert said(api, wrapped, [*history, *turn, result(api, ids[0]), user()]) is None
    assert "svc_tool_7" in server.exchanges[-1].loaded or api == CHAT
