"""The Chat Completions API as a dialect: no native load point, schemas arrive by the resent tool list.

Wire facts: https://platform.openai.com/docs/api-reference/chat and the types of the openai package
(`openai/types/chat`), read at 3.57.0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from loadpoint._dialect import (
    CallView,
    Choice,
    Decider,
    Held,
    Outcome,
    ReplyView,
    ResultView,
    Shown,
    StreamMerger,
    View,
)
from loadpoint._json import Json, as_list, as_object, objects
from loadpoint._tool import Tool
from loadpoint._usage import UsageFields

from ._openai_chat_stream import ChatMerger, seam
from ._openai_results import as_failure, is_failure

_OPERATIONS = {"/chat/completions": "create"}
_CUT = frozenset({"length", "content_filter"})
_DEMANDS = ("required",)


class OpenAIChat:
    """The dialect `openai.chat`."""

    name = "openai.chat"
    usage_fields = UsageFields(
        input="prompt_tokens",
        output="completion_tokens",
        cached="prompt_tokens_details.cached_tokens",
        written="prompt_tokens_details.cache_write_tokens",
        input_is_total=True,
    )
    renders = frozenset[str]()
    lists_iterations = False
    load_point: str | None = None
    by_reference = True
    server_keeps_tools = False

    def at(self, load_point: str | None) -> OpenAIChat:
        return self

    def operation(self, method: str, path: str, body: Json) -> str | None:
        if method.upper() != "POST":
            return None
        return next((kind for end, kind in _OPERATIONS.items() if path.partition("?")[0].endswith(end)), None)

    def obstacle(self, body: Json) -> str | None:
        if (body.get("n") or 1) != 1:
            return "n > 1: several choices cannot share one search"
        if body.get("functions"):
            return "legacy `functions` are passed through"
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
        inner = as_object(wire.get("function")) or as_object(wire.get("custom")) or {}
        name = inner.get("name")
        return name if isinstance(name, str) and name else None

    def marked(self, wire: Json) -> bool:
        function = as_object(wire.get("function")) or {}
        return wire.get("defer_loading") is True or function.get("defer_loading") is True

    def definition(self, wire: Json, *, deferred: bool) -> Json:
        # Chat Completions knows neither field: deferral marks are ours to read, and never sent.
        out = {key: value for key, value in wire.items() if key not in ("defer_loading", "cache_control")}
        function = as_object(wire.get("function"))
        if function is not None and ("defer_loading" in function or "cache_control" in function):
            out["function"] = {k: v for k, v in function.items() if k not in ("defer_loading", "cache_control")}
        return out

    def marker(self, wire: Json) -> Json | None:
        function = as_object(wire.get("function")) or {}
        return as_object(wire.get("cache_control")) or as_object(function.get("cache_control"))

    def with_marker(self, wire: Json, marker: Json) -> Json:
        return {**wire, "cache_control": marker}

    def loader(self, name: str, description: str, schema: Json) -> Json:
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
        tools = [given.get(name) or named for name, named in self._named(body, names)]
        return {**body, "tool_choice": {"type": "allowed_tools", "allowed_tools": {**allowed, "tools": tools}}}

    def _named(self, body: Json, names: Sequence[str]) -> list[tuple[str, Json]]:
        """Each name with the entry that stands for it in a list of allowed tools: functions and custom tools differ."""
        custom = {self.tool_name(tool) for tool in objects(self.tools(body)) if tool.get("type") == "custom"}
        kinds = [(name, "custom" if name in custom else "function") for name in names]
        return [(name, {"type": kind, kind: {"name": name}}) for name, kind in kinds]

    def last_round(self, body: Json, choice: Choice, loader: str, callable_names: Sequence[str]) -> Json:
        own = [name for name in callable_names if name != loader]
        if choice.mode == "named" and loader not in choice.names:
            return body
        if choice.mode == "allowed":
            own = [name for name in own if name in choice.names]
        if not choice.required or not own:
            return {**body, "tool_choice": "none"}
        allowed = {"mode": "required", "tools": [named for _, named in self._named(body, own)]}
        return {**body, "tool_choice": {"type": "allowed_tools", "allowed_tools": allowed}}

    def structured(self, body: Json) -> bool:
        form = as_object(body.get("response_format")) or {}
        return form.get("type") in ("json_schema", "json_object")

    def streaming(self, body: Json) -> bool:
        return body.get("stream") is True

    def prepared(self, body: Json, *, usage: bool) -> Json:
        if not usage or body.get("stream") is not True:
            return body
        options = as_object(body.get("stream_options")) or {}
        return {**body, "stream_options": {**options, "include_usage": True}}

    # -- messages ------------------------------------------------------------------------------------------------

    def view(self, message: Json) -> View:
        role = message.get("role")
        text = _text(message.get("content"))
        if role == "tool":
            result = ResultView(str(message.get("tool_call_id") or ""), text, failed=is_failure(text))
            return View("tool", results=(result,))
        if role == "assistant":
            return View("assistant", text, _calls(message))
        return View("system" if role in ("system", "developer") else "user", text)

    def incoming(self, message: Json, *, loader: str, ours: bool = False) -> list[Json]:
        return [message]

    def unanswered(self, turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
        return list(turn), ()

    def answered(self, message: Json, call_id: str, outcome: Outcome) -> list[Json]:
        return [message]  # results are text here: what the application wrote is already what is sent

    def rebuilt(self, turn: Sequence[Json]) -> list[Json]:
        return list(turn)

    def settled(self, body: Json) -> Json:
        return body

    def thought(self, messages: Sequence[Json]) -> bool:
        return False

    def tolerant(self, body: Json) -> tuple[Json, tuple[str, ...]]:
        return body, ()

    def is_marked(self, body: Json) -> bool:
        return True  # prompts are cached without markers

    def with_markers(self, body: Json) -> Json:
        return body

    def bare(self, message: Json) -> Json:
        if "cache_control" not in message and not isinstance(message.get("content"), list):
            return message
        out = {key: value for key, value in message.items() if key != "cache_control"}
        if isinstance(out.get("content"), list):
            out["content"] = [_without_marker(part) for part in out["content"]]
            if len(out["content"]) == 1 and set(as_object(out["content"][0]) or ()) == {"type", "text"}:
                out["content"] = out["content"][0]["text"]  # the same prompt, as a marker in it makes people write it
        return out

    def carried(self, visible: Sequence[Json], turn: Sequence[Json]) -> tuple[Json, ...]:
        return tuple(turn)

    def turned_back(self, body: Json) -> Json:
        return body  # searches are never shown in this API

    def without_ours(self, messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
        out: list[Json] = []
        for message in messages:
            if message.get("role") == "tool" and message.get("tool_call_id") in call_ids:
                continue
            calls = objects(message.get("tool_calls"))
            kept = [call for call in calls if call.get("id") not in call_ids]
            if len(kept) == len(calls):
                out.append(message)
            elif kept or _text(message.get("content")):
                rest = {key: value for key, value in message.items() if key != "tool_calls"}
                out.append({**rest, "tool_calls": kept} if kept else rest)
        return out

    def call(self, wire: Json) -> CallView | None:
        found = _calls({"tool_calls": [wire]})
        return found[0] if found[0].name else None

    # -- replies -------------------------------------------------------------------------------------------------

    def reply(self, reply: Json) -> ReplyView | None:
        choices = as_list(reply.get("choices"))
        choice = as_object(choices[0]) if len(choices) == 1 else None
        message = as_object(choice.get("message")) if choice else None
        if choice is None or message is None:
            return None
        cut = choice.get("finish_reason") in _CUT or bool(message.get("refusal"))
        return ReplyView(str(reply.get("id") or ""), _text(message.get("content")), _calls(message), cut)

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
            out["tool_calls"] = [_with_arguments({k: v for k, v in c.items() if k != "index"}) for c in calls]
        elif out["content"] is None:
            out["content"] = ""
        return [out]

    def visible(self, reply: Json, body: Json) -> Json:
        return reply

    def result(self, call: CallView, outcome: Outcome) -> list[Json]:
        text = as_failure(outcome.text) if outcome.failed else outcome.text
        return [{"role": "tool", "tool_call_id": call.id, "content": text}]

    def join(self, results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
        return [*results, *following]

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
        for said in (_text(reply["choices"][0]["message"].get("content")) for reply in visible):
            text += seam(text, said) + said
        message["content"] = text or message.get("content")
        made = objects(choice["message"].get("tool_calls"))
        calls = [_with_arguments(call) for at, call in enumerate(made) if at not in hidden[-1]]
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


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in objects(content))


def _calls(message: Json) -> tuple[CallView, ...]:
    calls: list[CallView] = []
    for wire in objects(message.get("tool_calls")):
        inner = as_object(wire.get("function")) or as_object(wire.get("custom")) or {}
        arguments = inner.get("arguments", inner.get("input"))
        calls.append(CallView(str(wire.get("id") or ""), str(inner.get("name") or ""), str(arguments or "")))
    return tuple(calls)


def _with_arguments(call: Json) -> Json:
    """A call with an empty object where its server wrote no arguments: not every server takes nothing back."""
    function = as_object(call.get("function"))
    if function is None or str(function.get("arguments") or "").strip():
        return call
    return {**call, "function": {**function, "arguments": "{}"}}


def _without_marker(part: Any) -> Any:
    wire = as_object(part)
    if wire is None or "cache_control" not in wire:
        return part
    return {key: value for key, value in wire.items() if key != "cache_control"}
