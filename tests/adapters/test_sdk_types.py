"""Every reply that is put together here, in every form and on every way of the SDKs, is one that the SDKs know.

An SDK never refuses what it does not know: it makes the first member of the union of it. So each object is asked
whether its class is the one of its `type`, whether it has fields that its class has not, and validated once more.
"""

from __future__ import annotations

import json
import typing
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import anthropic
import openai
import pydantic
import pytest
from tests.core.conversation import ADDS, BASETEN, CHAT, HOSTS, INLINE, KIMI, MESSAGES, RESPONSES, search, tools

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move, Script

Json = dict[str, Any]
TOOL = "invoice_export"
FORMS: dict[str, tuple[str, Json, str]] = {
    "chat-list": (CHAT, {"strategy": "resend"}, "gpt-5.4"),
    "chat-system": (CHAT, {}, KIMI),
    "chat-references": (CHAT, {}, BASETEN),
    "messages-list": (MESSAGES, {"strategy": "resend"}, "claude-opus-4-8"),
    "messages-references": (MESSAGES, {}, "claude-opus-4-8"),
    "messages-changes": (MESSAGES, {"load_point": "tool_addition"}, INLINE),
    "messages-hosted": (MESSAGES, {"search": "hosted"}, "claude-opus-4-8"),
    "responses-list": (RESPONSES, {"strategy": "resend"}, "gpt-5.4"),
    "responses-search": (RESPONSES, {}, "gpt-5.4"),
    "responses-adds": (RESPONSES, {}, ADDS),
    "responses-hosted": (RESPONSES, {"search": "hosted"}, "gpt-5.4"),
}
SEEK: dict[str, Any] = {
    "messages-hosted": ("tool_search_tool_bm25", {"query": TOOL}),
    "responses-hosted": ("tool_search", {"paths": ["lp_invoice"]}),
}
USE = (TOOL, {"id": 1})


def moves(form: str) -> list[list[Move]]:
    """What the model does in each of three turns: it finds a tool and calls it; searches in vain and talks; talks."""
    if form in SEEK:
        return [[Move(text="Let me see.", calls=[SEEK[form], USE])], [Move(text="Done.")], [Move(text="Bye.")]]
    seek = search(TOOL)
    if form == "responses-search":
        seek = ("tool_search", seek[1])
    return [
        [Move(text="Let me see.", calls=[seek, (seek[0], {"query": "zzqx vvkw"})]), Move(calls=[USE])],
        [Move(calls=[(seek[0], {"query": "photo_list"})]), Move(text="Done.")],
        [Move(calls=[(seek[0], {"query": "event_list"}), USE])],
    ]


UNTYPED = {
    ("Response", "store"),  # what the service sends, and the emulator with it
    ("ParsedResponse", "store"),
    ("ResponseTextDeltaEvent", "obfuscation"),
    ("ResponseFunctionCallArgumentsDeltaEvent", "obfuscation"),
    ("ParsedFunctionToolCall", "index"),  # the SDK's own helper leaves it there
    ("Usage", "iterations"),  # the rounds of a reply, typed on the beta surface of the same endpoint
    ("MessageDeltaUsage", "iterations"),
}


OLDER = {  # declared by older versions of an SDK as always there, never seen from the service
    ("ResponseFunctionCallArgumentsDoneEvent", "name"): "",
}


def unknown(value: Any, path: str = "") -> Iterator[str]:
    """What in a value the SDK's classes do not know."""
    if isinstance(value, (list, tuple)):
        for at, each in enumerate(typing.cast("list[Any]", value)):
            yield from unknown(each, f"{path}[{at}]")
    if not isinstance(value, pydantic.BaseModel):
        return
    fields = type(value).model_fields
    for name in ("type", "object", "role"):
        wanted = _literals(fields[name].annotation) if name in fields else ()
        if wanted and getattr(value, name) is not None and getattr(value, name) not in wanted:
            yield f"{path}: {type(value).__name__} with {name}={getattr(value, name)!r}"
    for name in value.model_extra or {}:
        if (type(value).__name__.partition("[")[0], name) not in UNTYPED:
            yield f"{path}: {type(value).__name__} has no field {name}"
    for name in fields:
        yield from unknown(getattr(value, name, None), f"{path}.{name}")


def _literals(annotation: Any) -> tuple[Any, ...]:
    if typing.get_origin(annotation) is Literal:
        return typing.get_args(annotation)
    return tuple(value for inner in typing.get_args(annotation) for value in _literals(inner))


def known(value: pydantic.BaseModel) -> None:
    assert list(unknown(value)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what a serializer did not expect
        dumped = value.model_dump(mode="json", by_alias=True)
    fields = type(value).model_fields
    older = {name: text for (kind, name), text in OLDER.items() if kind == type(value).__name__ and name in fields}
    again = type(value).model_validate(json.loads(json.dumps(dumped | older)))
    assert again.model_dump(mode="json", by_alias=True) == dumped | older
    assert list(unknown(again)) == []


class Talk:
    """One conversation on a wrapped SDK client, in one form and by one of the SDK's ways."""

    def __init__(self, form: str, way: str, discovery: str) -> None:
        self.form, self.way = form, way
        self.dialect, fields, self.model = FORMS[form]
        self.turns = moves(form)
        self.server = emulator.Emulator(Script.sequence([move for turn in self.turns for move in turn]))
        base = {"base_url": HOSTS[self.model]} if self.model in HOSTS else {}
        policy = Policy(**{"strategy": "native", "discovery": discovery, **fields})
        self.sdk = "anthropic" if self.dialect == MESSAGES else "openai"
        http: Any = emulator.http_client(self.sdk, self.server)  # type: ignore[arg-type]
        make: Any = anthropic.Anthropic if self.sdk == "anthropic" else openai.OpenAI
        self.client: Any = loadpoint.wrap(make(api_key="k", http_client=http, **base), policy)
        self.said: list[Any] = []

    def turn(self, text: str) -> Any:
        self.said.append({"role": "user", "content": text})
        if self.dialect == CHAT:
            return self._chat()
        return self._messages() if self.dialect == MESSAGES else self._responses()

    def _chat(self) -> Any:
        body: Json = {"model": self.model, "messages": self.said, "tools": tools(CHAT)}
        api = self.client.chat.completions
        if self.way == "stream":
            for chunk in api.create(**body, stream=True, stream_options={"include_usage": True}):
                known(chunk)
        if self.way == "helper":
            with api.stream(**body) as stream:
                for event in stream:
                    if event.type == "chunk":
                        known(event.chunk)
                reply = stream.get_final_completion()
        else:
            reply = api.create(**body) if self.way == "whole" else None
        if reply is not None:
            message = reply.choices[0].message
            self.said.append(message)
            for call in message.tool_calls or []:
                self.said.append({"role": "tool", "tool_call_id": call.id, "content": "done"})
        return reply

    def _messages(self) -> Any:
        body: Json = {"model": self.model, "max_tokens": 900, "messages": self.said, "tools": tools(MESSAGES)}
        api = self.client.beta.messages if self.way.startswith("beta") else self.client.messages
        if self.way.endswith("stream"):
            events = list(api.create(**body, stream=True))
            for event in events:
                known(event)
            return None
        if self.way.endswith("helper"):
            with api.stream(**body) as stream:
                for event in stream:
                    assert list(unknown(event)) == []
                reply = stream.get_final_message()
        else:
            reply = api.create(**body)
        self.said.append({"role": "assistant", "content": reply.content})
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": "done"}
            for block in reply.content
            if block.type == "tool_use"
        ]
        self.said += [{"role": "user", "content": results}] if results else []
        return reply

    def _responses(self) -> Any:
        body: Json = {"model": self.model, "input": self.said, "tools": tools(RESPONSES)}
        if self.way == "stream":
            reply: Any = None
            for event in self.client.responses.create(**body, stream=True):
                known(event)
                reply = event.response if event.type == "response.completed" else reply
        elif self.way == "helper":
            with self.client.responses.stream(**body) as stream:
                for event in stream:
                    assert list(unknown(event)) == []
                reply = stream.get_final_response()
        else:
            reply = self.client.responses.create(**body)
        self.said += reply.output
        for item in reply.output:
            if item.type == "function_call":
                self.said.append({"type": "function_call_output", "call_id": item.call_id, "output": "done"})
        return reply


WAYS = {
    CHAT: ("whole", "stream", "helper"),
    MESSAGES: ("whole", "stream", "helper", "beta", "beta stream", "beta helper"),
    RESPONSES: ("whole", "stream", "helper"),
}
CASES = [(form, way) for form, (dialect, _, _) in FORMS.items() for way in WAYS[dialect]]


@pytest.mark.parametrize(("form", "way"), CASES)
@pytest.mark.parametrize("discovery", ["hidden", "shown"])
def test_every_reply_is_one_that_the_sdk_knows(form: str, way: str, discovery: str) -> None:
    talk = Talk(form, way, discovery)
    for text in ("go", "and?", "so?"):
        reply = talk.turn(text)
        if reply is None:
            break  # what was only streamed has no final object to go on with
        known(reply)
    assert all(exchange.status == 200 for exchange in talk.server.exchanges)


@pytest.mark.parametrize(("form", "way"), [case for case in CASES if case[0] not in SEEK])
def test_a_loader_call_for_the_application_is_one_that_the_sdk_knows(form: str, way: str) -> None:
    talk = Talk(form, way, "caller")
    reply = talk.turn("go")
    if reply is not None:
        known(reply)
    assert len(talk.server.exchanges) == 1


def test_the_check_sees_what_the_sdk_lets_through() -> None:
    """The SDKs make an object of anything, and say nothing."""
    odd: Any = openai.types.responses.Response.construct(output=[{"type": "tool_of_tomorrow", "id": "x"}])
    assert any("tool_of_tomorrow" in line for line in unknown(odd))
    more: Any = anthropic.types.Message.construct(content=[{"type": "text", "text": "x", "shiny": 1}])
    assert any("shiny" in line for line in unknown(more))
