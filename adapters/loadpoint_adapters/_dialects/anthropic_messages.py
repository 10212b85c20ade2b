"""The Messages API as a dialect: schemas load where a reference names them, or where a message carries them.

Wire facts: https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool ("custom tool search"),
https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages,
https://platform.claude.com/docs/en/build-with-claude/prompt-caching, and the types of the anthropic package, read at
2.14.0. A result holds either references or text: both in one result is typed, but no recording of it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from loadpoint._dialect import CallView, Choice, Decider, Held, Outcome, ReplyView, Shown, StreamMerger, View
from loadpoint._json import Json, as_list, as_object, objects
from loadpoint._tool import Tool
from loadpoint._usage import UsageFields

from . import _anthropic_blocks as blocks
from . import _anthropic_changes as changes
from . import _anthropic_choice as choice_
from . import _anthropic_search as search
from . import _gateway_search as gateway_
from ._anthropic_forms import form_of
from ._anthropic_stream import MessagesMerger
from ._defaults import Defaults

_CUT = frozenset({"max_tokens", "refusal", "pause_turn", "model_context_window_exceeded"})
_SEARCH_TOOLS = "tool_search_tool_"
_BETA = "anthropic-beta"
# https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
_BINDING_BETA = "thinking-binding-controls-2026-08-01"


class AnthropicMessages(Defaults):
    """The dialect `anthropic.messages`."""

    name = "anthropic.messages"
    operations: ClassVar = {
        "/messages": "create",
        "/messages/count_tokens": "count",
        "/messages/batches": "batch",
    }
    usage_fields = UsageFields(
        input="input_tokens",
        output="output_tokens",
        cached="cache_read_input_tokens",
        written="cache_creation_input_tokens",
        input_is_total=False,
    )
    # https://platform.claude.com/docs/en/build-with-claude/prompt-caching#what-invalidates-the-cache
    settings: ClassVar = {
        "tool_choice": {"type": "auto"},
        "thinking": None,
        "output_config": None,
        "output_format": None,
        "speed": "standard",
    }
    renders = frozenset({"tool_reference", "tool_addition", "hosted_search", "gateway_search"})
    lists_iterations = True
    server_keeps_tools = True

    def __init__(self, load_point: str | None = None, variant: str = "") -> None:
        self.load_point = load_point
        self.form = form_of(load_point, variant)
        self.by_reference = self.form.by_reference

    def at(self, load_point: str | None, variant: str = "") -> AnthropicMessages:
        known = load_point if load_point in self.renders else None
        same = known == self.load_point and self.form is form_of(known, variant)
        return self if same else type(self)(known, variant)

    def obstacle(self, body: Json) -> str | None:
        for tool in objects(body.get("tools")):
            if str(tool.get("type") or "").startswith(_SEARCH_TOOLS):
                return "the request brings the provider's own tool search"
            if gateway_.name_of(tool):
                return "the request brings the gateway's own tool search"
        if not isinstance(body.get("messages"), list) or len(self.messages(body)) != len(as_list(body["messages"])):
            return "the messages are not a list of JSON objects"
        return None

    def held(self, body: Json) -> Held | None:
        thread = as_object(body.get("thread"))
        previous = (thread or {}).get("previous_message_id")
        return None if thread is None else Held(previous if isinstance(previous, str) else None)

    def continues(self, body: Json) -> bool:
        return self.held(body) is not None

    def continued(self, body: Json, previous: str, messages: Sequence[Json]) -> Json:
        # A continued thread takes system and tools from the server and refuses a request that repeats them.
        kept = {key: value for key, value in body.items() if key not in ("system", "tools")}
        return {**kept, "messages": list(messages), "thread": {"type": "continue", "previous_message_id": previous}}

    def messages(self, body: Json) -> list[Json]:
        return objects(body.get("messages"))

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        return {**body, "messages": list(messages)}

    def system(self, body: Json) -> str:
        return blocks.bare_text(body.get("system"))

    def with_catalog(self, body: Json, text: str) -> Json | None:
        system = body.get("system")
        if not system:
            return None
        parts = [{"type": "text", "text": system}] if isinstance(system, str) else as_list(system)
        return {**body, "system": [*parts, {"type": "text", "text": text}]}

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools(self, body: Json) -> list[Any]:
        return as_list(body.get("tools"))

    def with_tools(self, body: Json, tools: Sequence[Json]) -> Json:
        held = not self.by_reference and len(tools) > 0
        return {**body, "tools": changes.with_placeholder(tools) if held else self._sent(tools)}

    def _sent(self, tools: Sequence[Json]) -> list[Json]:
        if not self.form.gateway:
            return list(tools)
        return gateway_.arranged(tools, self.form.gateway, self.marked, changes.unmarked)

    def standing(self, tools: Sequence[Json]) -> list[Json]:
        return [wire for wire in self._sent(tools) if not self.marked(wire)]

    def tool(self, wire: Json) -> Tool | None:
        name = wire.get("name")
        if wire.get("type") not in (None, "custom") or not isinstance(name, str) or not name:
            return None
        return Tool(
            name=name,
            description=str(wire.get("description") or ""),
            parameters=as_object(wire.get("input_schema")) or {},
        )

    def tool_name(self, wire: Json) -> str | None:
        name = wire.get("name")
        return name if isinstance(name, str) and name else gateway_.name_of(wire)

    def marked(self, wire: Json) -> bool:
        return wire.get("defer_loading") is True

    def definition(self, wire: Json, *, deferred: bool) -> Json:
        out = {key: value for key, value in wire.items() if key not in ("defer_loading", "cache_control")}
        return {**out, "defer_loading": True} if deferred else out

    def marker(self, wire: Json) -> Json | None:
        return as_object(wire.get("cache_control"))

    def with_marker(self, wire: Json, marker: Json) -> Json:
        return {**wire, "cache_control": marker}

    def loader(self, name: str, description: str, schema: Json) -> Json:
        if self.form.search:
            return search.tool(self.form.search)
        if self.form.gateway:
            return gateway_.entry(self.form.gateway)
        return {"name": name, "description": description, "input_schema": schema}

    # -- tool choice ---------------------------------------------------------------------------------------------

    def choice(self, body: Json) -> Choice:
        return choice_.read(body)

    def with_allowed(self, body: Json, names: Sequence[str]) -> Json:
        return body

    def with_named(self, body: Json, name: str) -> Json:
        return choice_.named(body, name)

    def last_round(
        self, body: Json, choice: Choice, loader: str, callable_names: Sequence[str], *, refused: Collection[str] = ()
    ) -> Json:
        own = [name for name in callable_names if name != loader]
        if choice.mode == "named" and loader not in choice.names:
            return body
        servers = any(self.tool_name(tool) is None for tool in objects(self.tools(body)))  # one entry, many tools
        if not choice.required or not (own or servers):
            return {**body, "tool_choice": {"type": "none"}}
        if len(own) == 1 and not servers:
            return choice_.named(body, own[0])
        if "tools" not in body:
            return body  # a thread's tools are at the server
        # This API has no list of allowed tools: the loader has to leave for this one request.
        kept = {**body, "tools": [tool for tool in self.tools(body) if tool.get("name") != loader]}
        return kept if self.by_reference else changes.with_residents(kept, own)

    def structured(self, body: Json) -> bool:
        config = as_object(body.get("output_config")) or {}
        return bool(body.get("output_format") or config.get("format"))

    # -- messages ------------------------------------------------------------------------------------------------

    def view(self, message: Json) -> View:
        return blocks.view(message)

    def incoming(self, message: Json, *, loader: str, ours: bool = False) -> list[Json]:
        if message.get("role") == "system":
            return self._changing(message, ours=ours)
        native = self.load_point is not None and not self.form.gateway
        made = search.turned_back(message, loader, native=native, keep=bool(self.form.search))
        return [search.with_references(sent) for sent in made] if ours and self._refers else made

    @property
    def _refers(self) -> bool:
        """Whether a load is a reference in the result."""
        return self.load_point is not None and not self.form.message and not self.form.gateway

    def _changing(self, message: Json, *, ours: bool) -> list[Json]:
        """A system message as this form takes it: what we changed is ours to say again, the caller's is his."""
        if self.form.fixed or (ours and (self.load_point is None or not self.form.message)):
            return changes.without(message)
        return changes.by_name(message) if ours and self.by_reference else [message]

    def changes(self, added: Sequence[Json], removed: Sequence[str], *, by_value: bool) -> list[Json]:
        """The message that loads these definitions and takes back these tools; none where the form has no changes."""
        if self.load_point is None or self.form.fixed or self.form.gateway:
            return []
        names = [name for tool in added if (name := self.tool_name(tool))]
        adds = changes.added(added) if by_value else changes.referenced(names)
        return changes.message([*changes.referenced(removed, changes.REMOVAL), *adds])

    def unanswered(self, turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
        if not turn or turn[-1].get("role") == "assistant":
            return list(turn), ()
        return list(turn[:-1]), tuple(objects(turn[-1].get("content")))

    def answered(self, message: Json, call_id: str, outcome: Outcome) -> list[Json]:
        if self.form.message:
            return [message, *self.changes(outcome.tools, (), by_value=not self.by_reference)]
        return [blocks.answered(message, call_id, outcome.names)]

    def with_calls(self, wire: Json, change: Callable[[CallView], CallView]) -> Json:
        return blocks.with_calls(wire, change)

    def rebuilt(self, turn: Sequence[Json]) -> list[Json]:
        return [blocks.with_last_thinking(message) for message in turn]

    def settled(self, body: Json) -> Json:
        if self.form.search:
            return search.without_unpaired(body)
        return body if self.by_reference else changes.nameable(body)

    def thought(self, messages: Sequence[Json]) -> bool:
        return any(map(blocks.has_thinking, messages))

    def without_thinking(self, messages: Sequence[Json]) -> list[Json]:
        return list(map(blocks.without_thinking, messages))

    def tolerant(self, body: Json) -> tuple[Json, tuple[str, ...]]:
        thinking = as_object(body.get("thinking"))
        if thinking is None or thinking.get("type") not in ("enabled", "adaptive"):
            return body, ()
        binding = {**(as_object(thinking.get("block_binding")) or {}), "prefix_mismatch_behavior": "drop_block"}
        return {**body, "thinking": {**thinking, "block_binding": binding}}, (_BINDING_BETA,)

    def is_marked(self, body: Json) -> bool:
        return blocks.is_marked(body)

    def with_markers(self, body: Json) -> Json:
        return blocks.with_markers(body)

    def bare(self, message: Json) -> Json:
        return blocks.bare(message)

    def carried(self, visible: Sequence[Json], turn: Sequence[Json]) -> tuple[Json, ...]:
        marker = blocks.last_marker(visible)
        return tuple(turn) if marker is None else blocks.with_last_marker(turn, marker)

    def turned_back(self, body: Json) -> Json:
        return search.body_without_ours(body)

    def without_ours(self, messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
        return search.without_ours(messages, call_ids)

    def call(self, wire: Json) -> CallView | None:
        found = blocks.view({"role": "assistant", "content": [wire]}).calls
        return found[0] if found else None

    # -- replies -------------------------------------------------------------------------------------------------

    def reply(self, reply: Json) -> ReplyView | None:
        content = as_list(reply.get("content"))
        whole = isinstance(reply.get("content"), list) and len(objects(content)) == len(content)
        if reply.get("type") != "message" or not whole:
            return None
        view = blocks.view({"role": "assistant", "content": content})
        return ReplyView(str(reply.get("id") or ""), view.text, view.calls, reply.get("stop_reason") in _CUT)

    def assistant(self, reply: Json, cut: Collection[int]) -> list[Json]:
        kept = blocks.sendable(blocks.without_calls(reply["content"], cut))
        return [{"role": "assistant", "content": blocks.never_empty(kept) if cut else kept}]

    def visible(self, reply: Json, body: Json) -> Json:
        return reply

    def result(self, call: CallView, outcome: Outcome) -> list[Json]:
        block: Json = {"type": "tool_result", "tool_use_id": call.id}
        if outcome.failed:
            return [{**block, "content": outcome.text, "is_error": True}]
        if outcome.names and self._refers:
            return [{**block, "content": [blocks.reference(name) for name in outcome.names]}]
        loads = self.changes(outcome.tools, (), by_value=not self.by_reference) if self.form.message else []
        return [{**block, "content": outcome.text}, *loads]

    def join(self, results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
        answers = [result for result in results if result.get("role") != "system"]
        if self._refers:
            answers = [search.as_references(result) for result in answers]
        ours = [result for result in results if result.get("role") == "system"]
        loads = [block for one in ours for sent in self._changing(one, ours=True) for block in objects(sent["content"])]
        # A system message may not stand before a user message: ours comes behind all of the caller's.
        return [
            *self._joined(answers, following[0] if following else None),
            *following[1:],
            *changes.message(loads),
        ]

    def _joined(self, results: Sequence[Json], message: Json | None) -> list[Json]:
        if not results:
            return [] if message is None else [message]
        if message is None or message.get("role") != "user":
            ours: Json = {"role": "user", "content": [*results]}
            return [ours] if message is None else [ours, message]
        content = message.get("content")
        theirs = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        # Every result of an assistant turn has to stand in the one user message after it, results first.
        return [{**message, "content": [*results, *theirs]}]

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
        content: list[Json] = []
        for at, (reply, cut) in enumerate(zip(rounds, hidden, strict=True)):
            visible = blocks.without_calls(reply["content"], cut)
            if last_text and at < len(rounds) - 1:
                visible = [block for block in visible if block.get("type") != "text"]
            content += visible
            if at < len(shown):
                content += search.shown_items(reply, at, shown[at])
        if any(hidden):
            content = blocks.never_empty(content)
        stop = rounds[-1].get("stop_reason")
        if stop == "tool_use" and not any(block.get("type") == "tool_use" for block in content):
            stop = "end_turn"
        merged = {**rounds[-1], "content": content, "stop_reason": stop}
        return {**merged, "usage": usage} if usage else merged

    def merger(self, decider: Decider, body: Json) -> StreamMerger:
        return MessagesMerger(decider)

    def headers(self, caller: Mapping[str, str], betas: Sequence[str]) -> Mapping[str, str | None]:
        given = [part.strip() for part in caller.get(_BETA, "").split(",") if part.strip()]
        missing = [beta for beta in betas if beta not in given]
        return {_BETA: ",".join([*given, *missing])} if missing else {}
