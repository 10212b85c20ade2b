"""Arguments, replies and stream items of litellm as the JSON of a dialect, and back; one object per kind of call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

from loadpoint._json import Json, as_object, dumps, objects, parse_object
from loadpoint._sse import Reader, frame

from .._plain import plain
from . import _compat

ENDED = frame("[DONE]")
_OUTSIDE = frozenset(
    {
        "api_base", "api_key", "api_version", "base_url", "cache", "caching", "client", "custom_llm_provider",
        "extra_headers", "extra_query", "fallbacks", "headers", "logger_fn", "max_retries", "metadata", "model_info",
        "model_list", "num_retries", "request_timeout", "shared_session", "timeout",
    }
)  # fmt: skip
"""Arguments that say how to call, not what to send."""
_PREFIXES = ("aws_", "azure_", "litellm_", "mock_", "vertex_")


class Wire(Protocol):
    """One kind of call."""

    dialect: str
    path: str
    conversation: str
    """The argument that holds the conversation."""

    def body(self, given: Mapping[str, Any]) -> Json | None:
        """The arguments as a request body; None where they are not plain."""
        ...

    def reply(self, value: Any) -> Json:
        """A reply as JSON."""
        ...

    def sent(self, item: Any) -> bytes:
        """A stream item as a server-sent event."""
        ...

    def over(self) -> bytes:
        """What the wire has after the last item."""
        ...

    def items(self, frames: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
        """What the caller is given for server-sent events, each with the bytes of its event; None for what is none."""
        ...


class _Plain:
    """What the kinds share."""

    dialect = ""
    conversation = "messages"

    def body(self, given: Mapping[str, Any]) -> Json | None:
        """The arguments that say what to send; what is no JSON is left out, where it is no part of what is changed."""
        out: Json = {}
        for name, value in given.items():
            if name in _OUTSIDE or name.startswith(_PREFIXES) or value is None:
                continue
            made = plain({name: _dumped(value) if name == "tools" else value}, ())
            if made is not None:
                out.update(made)
            elif name in (self.conversation, "tools", "tool_choice"):
                return None
        return out

    def over(self) -> bytes:
        """Nothing."""
        return b""


class Completion(_Plain):
    """`completion` and `acompletion`."""

    dialect = "openai.chat"
    path = "/v1/chat/completions"

    def body(self, given: Mapping[str, Any]) -> Json | None:
        """The arguments as a body; a class as `response_format` stands for the schema that litellm makes of it."""
        body = super().body(given)
        if body is not None and isinstance(given.get("response_format"), type):
            body["response_format"] = {"type": "json_schema"}
        return body

    def reply(self, value: Any) -> Json:
        """The reply without what litellm adds and has nothing to say with."""
        reply: Json = value.model_dump(mode="json")
        for choice in objects(reply.get("choices")):
            choice["message"] = _told(as_object(choice.get("message")) or {})
        return reply

    def sent(self, item: Any) -> bytes:
        """The chunk, without absent members: an empty text beside a call would be shown as a chunk of its own."""
        payload: Json = item.model_dump(mode="json", exclude_none=True)
        for choice in objects(payload.get("choices")):
            delta = _told(as_object(choice.get("delta")) or {}, keep=())
            if delta.get("tool_calls") and delta.get("content") == "":
                del delta["content"]
            choice["delta"] = delta
        return frame(dumps(payload))

    def over(self) -> bytes:
        """The event by which the API says that nothing follows."""
        return ENDED

    def items(self, frames: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
        """The chunks."""
        for raw, payload in _payloads(frames):
            yield raw, None if payload is None else _compat.chunk(payload)


class Responses(_Plain):
    """`responses` and `aresponses`."""

    dialect = "openai.responses"
    path = "/v1/responses"
    conversation = "input"

    def body(self, given: Mapping[str, Any]) -> Json | None:
        """The arguments as a body; a class as `text_format` stands for the schema that litellm makes of it."""
        body = super().body(given)
        if body is not None and given.get("text_format") is not None:
            body = {key: value for key, value in body.items() if key != "text_format"}
            body["text"] = {**(as_object(body.get("text")) or {}), "format": {"type": "json_schema"}}
        return body

    def reply(self, value: Any) -> Json:
        """What the provider has said: members that are only defaults would be refused as a part of the next request."""
        reply: Json = value.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return reply

    def sent(self, item: Any) -> bytes:
        """The event."""
        payload: Json = item.model_dump(mode="json", by_alias=True, exclude_unset=True)
        return frame(dumps(payload), str(payload.get("type")))

    def items(self, frames: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
        """The events."""
        for raw, payload in _payloads(frames):
            yield raw, None if payload is None else _compat.event(payload)


class Messages(_Plain):
    """`anthropic.messages.acreate` and `anthropic_messages`."""

    dialect = "anthropic.messages"
    path = "/v1/messages"

    def reply(self, value: Any) -> Json:
        """The reply, which is a dict already."""
        found: Json = as_object(value) or value.model_dump(mode="json")
        return {key: item for key, item in found.items() if not key.startswith("_")}

    def sent(self, item: Any) -> bytes:
        """The bytes, which are server-sent events already; some routes give the event itself."""
        if isinstance(item, bytes):
            return item
        if isinstance(item, str):
            return item.encode()
        payload: Json = as_object(item) or item.model_dump(mode="json", exclude_none=True)
        return frame(dumps(payload), str(payload.get("type")))

    def items(self, frames: Iterable[bytes]) -> Iterator[tuple[bytes, Any]]:
        """The bytes."""
        for raw in frames:
            yield raw, raw


def _dumped(tools: Any) -> Any:
    """The tools, with models among them written as litellm does it, with their defaults: a `type` often is one."""
    if not isinstance(tools, (list, tuple)):
        return tools
    return [
        tool.model_dump(mode="json", exclude_none=True)
        if hasattr(tool, "model_dump") and not isinstance(tool, type)
        else tool
        for tool in cast("list[Any]", tools)
    ]


def _payloads(frames: Iterable[bytes]) -> Iterator[tuple[bytes, Json | None]]:
    for text in frames:
        for event in Reader().feed(text):
            yield event.raw, None if event.data == "[DONE]" else parse_object(event.data)


def _told(message: Json, keep: tuple[str, ...] = ("content",)) -> Json:
    """The message without members that say nothing: what is null, and notes of litellm's that hold nothing."""
    out = {key: value for key, value in message.items() if value is not None or key in keep}
    notes = as_object(out.get("provider_specific_fields"))
    if notes is not None:
        notes = {key: value for key, value in notes.items() if value is not None}
        out.pop("provider_specific_fields")
        if notes:
            out["provider_specific_fields"] = notes
    return out
