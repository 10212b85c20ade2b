"""The Chat Completions API as a dialect: it has no native load point, but services that speak it have three.

Wire facts: https://platform.openai.com/docs/api-reference/chat and the types of the openai package
(`openai/types/chat`), read at 3.57.0; `_openai_chat_messages.py` and `_gateway_search.py` for the load points.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, ClassVar

from loadpoint._dialect import CallView, Choice, Decider, Held, Outcome, ReplyView, Shown, StreamMerger, View
from loadpoint._json import Json, as_list, as_object, objects
from loadpoint._tool import Tool
from loadpoint._usage import UsageFields

from . import _gateway_search as gateway_
from . import _openai_chat_messages as messages_
from ._defaults import Defaults
from ._openai_chat_stream import ChatMerger, seam
from ._openai_results import as_failure

_CUT = frozenset({"length", "content_filter"})
_DEMANDS = ("required",)
_SYSTEM, _REFERENCE, _GATEWAY = "system_tools", "tool_reference", "gateway_search"


class OpenAIChat(Defaults):
    """The dialect `openai.chat`."""

    name = "openai.chat"
    operations: ClassVar = {"/chat/completions": "create"}
    usage_fields = UsageFields(
        input="prompt_tokens",
        output="completion_tokens",
        cached="prompt_tokens_details.cached_tokens",
        written="prompt_tokens_details.cache_write_tokens",
        input_is_total=True,
    )
    # https://developers.openai.com/api/docs/guides/prompt-caching; this API's names for them: inferred
    settings: ClassVar = {
        "parallel_tool_calls": True,
        "response_format": {"type": "text"},
        "reasoning_effort": None,
        "verbosity": None,
    }
    renders = frozenset({_SYSTEM, _REFERENCE, _GATEWAY})
    lists_iterations = False
    server_keeps_tools = False

    def __init__(self, load_point: str | None = None, variant: str = "") -> None:
        self.load_point = load_point
        self.by_reference = load_point != _SYSTEM
        self.gateway = variant or "orq"  # the only one that searches in this API

    def at(self, load_point: str | None, variant: str = "") -> OpenAIChat:
        known = load_point if load_point in self.renders else None
        same = known == self.load_point and variant in ("", self.gateway)
        return self if same else OpenAIChat(known, variant)

    def obstacle(self, body: Json) -> str | None:
        if (body.get("n") or 1) != 1:
            return "n > 1: several choices cannot share one search"
        if body.get("functions"):
            return "legacy `functions` are passed through"
        if any(gateway_.name_of(tool) for tool in objects(body.get("tools"))):
            return "the request brings the gateway's own tool search"
        if not isinstance(body.get("messages"), list) or len(self.messages(body)) != len(as_list(body["messages"])):
            return "the messages are not a list of JSON objects"
        return None

    def held(self, body: Json) -> Held | None:
        return None

    def continues(self, body: Json) -> bool:
        return False

    def continued(self, body: Json, previous: str, messages: Sequence[Json]) -> Json:
        raise NotImplementedError("chat completions hold no conversation")

    def messages(self, body: Json) -> list[Json]:
        return objects(body.get("messages"))

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        return {**body, "messages": list(messages)}

    def system(self, body: Json) -> str:
        return ""

    def with_catalog(self, body: Json, text: str) -> Json | None:
        messages = self.messages(body)
        # Of those at the start: one that comes later would take the catalog along, and rewrite what was sent.
        last = sum(1 for _ in takewhile(lambda message: message.get("role") in ("system", "developer"), messages)) - 1
        if last < 0:
            return None
        content = messages[last].get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        messages[last] = {**messages[last], "content": [*parts, {"type": "text", "text": text}]}
        return {**body, "messages": messages}

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools(self, body: Json) -> list[Any]:
        return as_list(body.get("tools"))

    def with_tools(self, body: Json, tools: Sequence[Json]) -> Json:
        return {**body, "tools": list(tools)}

    def standing(self, tools: Sequence[Json]) -> list[Json]:
        return [wire for wire in tools if not self.marked(wire)]

    def tool(self, wire: Json) -> Tool | None:
        function = as_object(wire.get("function"))
        name = function.get("name") if function else None
        if function is None or wire.get("type", "function") != "function" or not isinstance(name, str) or not name:
            return None
        return Tool(
            name=name,
            description=str(function.get("description") or ""),
            parameters=as_object(function.get("parameters")) or {},
        )

    def tool_name(self, wire: Json) -> str | None:
        return messages_.tool_name(wire) or gateway_.name_of(wire)

    def marked(self, wire: Json) -> bool:
        function = as_object(wire.get("function")) or {}
        return wire.get("defer_loading") is True or function.get("defer_loading") is True

    def definition(self, wire: Json, *, deferred: bool) -> Json:
        # The API as OpenAI has it knows neither mark: they are ours to read, and sent only where a form needs one.
        out = messages_.unmarked(wire)
        return gateway_.deferred(out) if deferred and self.load_point in (_REFERENCE, _GATEWAY) else out

    def marker(self, wire: Json) -> Json | None:
        function = as_object(wire.get("function")) or {}
        return as_object(wire.get("cache_control")) or as_object(function.get("cache_control"))

    def with_marker(self, wire: Json, marker: Json) -> Json:
        return {**wire, "cache_control": marker}

    def loader(self, name: str, description: str, schema: Json) -> Json:
        if self.load_point == _GATEWAY:
            return gateway_.entry(self.gateway)
        return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}

    # -- tool choice ---------------------------------------------------------------------------------------------

    def choice(self, body: Json) -> Choice:
        value = body.get("tool_choice")
        if isinstance(value, str):
            return Choice(value if value in ("auto", "none", "required") else "auto", required=value in _DEMANDS)
        chosen = as_object(value)
        if chosen is None:
            return Choice()
        if chosen.get("type") == "allowed_tools":
            allowed = as_object(chosen.get("allowed_tools")) or {}
            names = tuple(name for tool in objects(allowed.get("tools")) if (name := self.tool_name(tool)))
            return Choice("allowed", names, allowed.get("mode") in _DEMANDS)
        name = self.tool_name(chosen)
        return Choice("named", (name,), True) if name else Choice()

    def with_allowed(self, body: Json, names: Sequence[str]) -> Json:
        chosen = as_object(body.get("tool_choice")) or {}
        allowed = as_object(chosen.get("allowed_tools")) or {}
        given = {self.tool_name(tool): tool for tool in objects(allowed.get("tools"))}
        sent = [name for name in names if name not in gateway_.ENTRIES.values()]  # an entry is no function to name
        tools = [given.get(name) or named for name, named in self._named(body, sent)]
        return {**body, "tool_choice": {"type": "allowed_tools", "allowed_tools": {**allowed, "tools": tools}}}

    def _named(self, body: Json, names: Sequence[str]) -> list[tuple[str, Json]]:
        """Each name with the entry that stands for it in a list of allowed tools: functions and custom tools differ."""
        custom = {self.tool_name(tool) for tool in objects(self.tools(body)) if tool.get("type") == "custom"}
        kinds = [(name, "custom" if name in custom else "function") for name in names]
        return [(name, {"type": kind, kind: {"name": name}}) for name, kind in kinds]

    def with_named(self, body: Json, name: str) -> Json:
        return {**body, "tool_choice": {"type": "function", "function": {"name": name}}}

    def last_round(
        self, body: Json, choice: Choice, loader: str, callable_names: Sequence[str], *, refused: Collection[str] = ()
    ) -> Json:
        own = [name for name in callable_names if name != loader]
        if choice.mode == "named" and loader not in choice.names:
            return body
        if choice.mode == "allowed":
            own = [name for name in own if name in choice.names]
        if not choice.required or not own:
            return {**body, "tool_choice": "none"}
        if "allowed" in refused:  # the loader has to leave for this one request
            return messages_.without_tool(body, loader)
        allowed = {"mode": "required", "tools": [named for _, named in self._named(body, own)]}
        return {**body, "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}

    def structured(self, body: Json) -> bool:
        form = as_object(body.get("response_format")) or {}
        return form.get("type") in ("json_schema", "json_object")

    def prepared(self, body: Json, *, usage: bool) -> Json:
        if not usage or body.get("stream") is not True:
            return body
        options = as_object(body.get("stream_options")) or {}
        return {**body, "stream_options": {**options, "include_usage": True}}

    # -- messages ------------------------------------------------------------------------------------------------

    def view(self, message: Json) -> View:
        return messages_.view(message)

    def incoming(self, message: Json, *, loader: str, ours: bool = False) -> list[Json]:
        # What we have brought, our loader's answer tells as well; what others have is evidence, until it is `settled`.
        left = ours and self.load_point != _SYSTEM and messages_.brings_tools(message)
        return [] if left else [message]

    def unanswered(self, turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
        return list(turn), ()

    def answered(self, message: Json, call_id: str, outcome: Outcome) -> list[Json]:
        if self.load_point == _REFERENCE and outcome.names:
            return [messages_.referring(message, outcome.names)]
        if self.load_point == _SYSTEM and outcome.tools:
            return [messages_.told(message), messages_.bringing(outcome.tools)]
        return [messages_.told(message)]

    def changes(self, added: Sequence[Json], removed: Sequence[str], *, by_value: bool) -> list[Json]:
        # There is no message that takes a tool back.
        return [messages_.bringing(added)] if self.load_point == _SYSTEM and added else []

    def with_calls(self, wire: Json, change: Callable[[CallView], CallView]) -> Json:
        if "choices" not in wire:
            return messages_.with_calls(wire, change)
        choices = objects(wire["choices"])
        made = [messages_.with_calls(as_object(choice.get("message")) or {}, change) for choice in choices]
        if all(new is choice.get("message") for new, choice in zip(made, choices, strict=True)):
            return wire
        return {**wire, "choices": [{**choice, "message": new} for choice, new in zip(choices, made, strict=True)]}

    def rebuilt(self, turn: Sequence[Json]) -> list[Json]:
        return list(turn)

    def settled(self, body: Json) -> Json:
        if self.load_point == _SYSTEM:
            return messages_.brought_alone(body)
        return messages_.settled(body, refers=self.load_point == _REFERENCE)

    def without_thinking(self, messages: Sequence[Json]) -> list[Json]:
        return list(map(messages_.without_thinking, messages))

    def bare(self, message: Json) -> Json:
        return messages_.bare(message)

    def without_ours(self, messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
        return messages_.without_calls(messages, call_ids)

    def call(self, wire: Json) -> CallView | None:
        found = messages_.calls_of({"tool_calls": [wire]})
        return found[0] if found[0].name else None

    # -- replies -------------------------------------------------------------------------------------------------

    def reply(self, reply: Json) -> ReplyView | None:
        choices = as_list(reply.get("choices"))
        choice = as_object(choices[0]) if len(choices) == 1 else None
        message = as_object(choice.get("message")) if choice else None
        if choice is None or message is None:
            return None
        cut = choice.get("finish_reason") in _CUT or bool(message.get("refusal"))
        return ReplyView(
            str(reply.get("id") or ""), messages_.text_of(message.get("content")), messages_.calls_of(message), cut
        )

    def assistant(self, reply: Json, cut: Collection[int]) -> list[Json]:
        message: Json = reply["choices"][0]["message"]
        # Replies carry fields that requests refuse: annotations, and audio beyond its id.
        out: Json = {"role": "assistant", "content": message.get("content")}
        for key, value in message.items():
            if value is None or key in ("role", "content", "annotations", "tool_calls"):
                continue
            audio = as_object(value) if key == "audio" else None
            out[key] = value if audio is None else {"id": audio.get("id")}
        calls = [call for at, call in enumerate(objects(message.get("tool_calls"))) if at not in cut]
        if calls:
            out["tool_calls"] = [messages_.with_arguments({k: v for k, v in c.items() if k != "index"}) for c in calls]
        elif out["content"] is None:
            out["content"] = ""
        return [out]

    def visible(self, reply: Json, body: Json) -> Json:
        return reply

    def result(self, call: CallView, outcome: Outcome) -> list[Json]:
        text = as_failure(outcome.text) if outcome.failed else outcome.text
        answer: Json = {"role": "tool", "tool_call_id": call.id, "content": text}
        return [answer] if outcome.failed else self.answered(answer, call.id, outcome)

    def join(self, results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
        sent = [one for message in results for one in self.incoming(message, loader="", ours=True)]
        return messages_.joined(sent, following)

    def merge(
        self,
        rounds: Sequence[Json],
        hidden: Sequence[Collection[int]],
        usage: Json,
        *,
        body: Json,
        last_text: bool,
        shown: Sequence[Sequence[Shown]] = (),
    ) -> Json:
        last = rounds[-1]
        choice: Json = last["choices"][0]
        message: Json = {k: v for k, v in choice["message"].items() if k != "tool_calls"}
        visible = rounds[-1:] if last_text else rounds
        text = ""
        for said in (messages_.text_of(reply["choices"][0]["message"].get("content")) for reply in visible):
            text += seam(text, said) + said
        message["content"] = text or message.get("content")
        made = objects(choice["message"].get("tool_calls"))
        calls = [messages_.with_arguments(call) for at, call in enumerate(made) if at not in hidden[-1]]
        if calls:
            message["tool_calls"] = calls
        elif any(hidden) and message["content"] is None and not message.get("refusal"):
            message["content"] = ""  # without a call, the API takes no null back
        finish = choice.get("finish_reason")
        if not calls and finish in ("tool_calls", "function_call"):
            finish = "stop"
        merged = {**last, "choices": [{**choice, "message": message, "finish_reason": finish}]}
        return {**merged, "usage": usage} if usage else merged

    def merger(self, decider: Decider, body: Json) -> StreamMerger:
        options = as_object(body.get("stream_options")) or {}
        return ChatMerger(decider, wants_usage=options.get("include_usage") is True)

    def headers(self, caller: Mapping[str, str], betas: Sequence[str]) -> Mapping[str, str | None]:
        return {}
