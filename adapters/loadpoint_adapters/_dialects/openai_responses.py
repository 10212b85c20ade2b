"""The Responses API as a dialect: loaded schemas stand by value in the items of the input.

Wire facts: https://developers.openai.com/api/docs/guides/tools-tool-search and the types of the openai package
(`openai/types/responses`), read at 3.57.0. Load points: the model's own search, answered by us (`tool_search`);
items that declare tools from their place on (`additional_tools`), which come behind the answer of an ordinary loader;
and the provider's own search over what is declared (`hosted_search`), which happens within one reply. Gateways have a
search of their own (`gateway_search`, see `_gateway_search.py`).
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
from . import _openai_responses_items as items
from . import _openai_responses_paths as paths
from . import _openai_responses_placing as placing
from . import _openai_responses_shown as shown_
from . import _openai_responses_tools as tools_
from ._defaults import Defaults
from ._openai_responses_groups import grouped
from ._openai_responses_stream import ResponsesMerger
from ._openai_results import as_failure

_CUT = frozenset({"incomplete", "failed", "cancelled"})
_DEMANDS = ("required",)
_SEARCH, _ADDED, _HOSTED, _GATEWAY = "tool_search", "additional_tools", "hosted_search", "gateway_search"


class OpenAIResponses(Defaults):
    """The dialect `openai.responses`."""

    name = "openai.responses"
    usage_fields = UsageFields(
        input="input_tokens",
        output="output_tokens",
        cached="input_tokens_details.cached_tokens",
        written="input_tokens_details.cache_write_tokens",
        input_is_total=True,
    )
    # https://developers.openai.com/api/docs/guides/prompt-caching
    settings: ClassVar = {
        "parallel_tool_calls": True,
        "text": {"format": {"type": "text"}},
        "reasoning": None,
        "context_management": None,
    }
    renders = frozenset({_SEARCH, _ADDED, _HOSTED, _GATEWAY})
    lists_iterations = False
    server_keeps_tools = False

    def __init__(self, load_point: str | None = None, variant: str = "") -> None:
        self.load_point = load_point
        self.gateway = (variant if variant in gateway_.ENTRIES else "openrouter") if load_point == _GATEWAY else ""
        self.form = None if self.gateway else load_point
        """How items of a request load tools; a gateway's search has no items that do."""
        self.by_reference = load_point in (_HOSTED, _GATEWAY)
        self.searches = load_point in (_SEARCH, _HOSTED)
        """Whether the requests of this variant may hold the items of a search."""

    def at(self, load_point: str | None, variant: str = "") -> OpenAIResponses:
        made = OpenAIResponses(load_point if load_point in self.renders else None, variant)
        return self if (made.load_point, made.gateway) == (self.load_point, self.gateway) else made

    def operation(self, method: str, path: str, body: Json) -> str | None:
        return paths.operation(method, path)

    def stored(self, method: str, path: str) -> str | None:
        return paths.stored(method, path)

    def referred(self, body: Json) -> Sequence[str]:
        return items.referred(objects(body.get("input")))

    def resolved(self, body: Json, kept: Sequence[Json]) -> Json:
        return {**body, "input": items.resolved(objects(body.get("input")), items.shown(kept, body))}

    def last_item(self, reply: Json) -> str | None:
        return next((str(item["id"]) for item in reversed(objects(reply.get("output"))) if item.get("id")), None)

    def obstacle(self, body: Json) -> str | None:
        given = objects(body.get("tools"))
        if any(tool.get("type") == "tool_search" for tool in given):
            return "the request brings the provider's own tool search"
        if any(map(gateway_.name_of, given)):
            return "the request brings the gateway's own tool search"
        if any(map(tools_.is_automatic, given)):
            return f"a namespace of the request begins with {tools_.AUTOMATIC}, as those do that are made here"
        if body.get("background") is True:
            return "a response in the background is not there to be answered"
        said = as_list(body.get("input"))
        if len(objects(said)) != len(said):
            return "an item is not a JSON object"
        return None

    def held(self, body: Json) -> Held | None:
        previous = body.get("previous_response_id")
        if isinstance(previous, str) and previous:
            return Held(previous)
        talk = body.get("conversation")
        named = (as_object(talk) or {}).get("id", talk)
        return Held(None, named) if isinstance(named, str) and named else None

    def continues(self, body: Json) -> bool:
        return body.get("store") is not False

    def continued(self, body: Json, previous: str, messages: Sequence[Json]) -> Json:
        out = {**body, "input": list(messages)}
        if body.get("conversation") is None:
            out["previous_response_id"] = previous
        return out

    def messages(self, body: Json) -> list[Json]:
        given = body.get("input")
        if isinstance(given, str):
            return [{"role": "user", "content": given}]
        return objects(given) if self.held(body) is not None else placing.paired(objects(given))

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        return {**body, "input": list(messages)}

    def system(self, body: Json) -> str:
        given = body.get("instructions")
        return given if isinstance(given, str) else ""

    def with_catalog(self, body: Json, text: str) -> Json | None:
        instructions = self.system(body)
        if instructions:
            return {**body, "instructions": f"{instructions}\n\n{text}"}
        messages = self.messages(body)
        last = sum(1 for _ in takewhile(lambda message: message.get("role") in ("system", "developer"), messages)) - 1
        if last < 0:
            return None
        content = messages[last].get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else as_list(content)
        messages[last] = {**messages[last], "content": [*parts, {"type": "input_text", "text": text}]}
        return {**body, "input": messages}

    # -- tools ---------------------------------------------------------------------------------------------------

    def tools(self, body: Json) -> list[Any]:
        return tools_.expanded(body.get("tools"))

    def with_tools(self, body: Json, tools: Sequence[Json]) -> Json:
        return {**body, "tools": tools_.regrouped(self._sent(tools))}

    def _sent(self, tools: Sequence[Json]) -> Sequence[Json]:
        if self.gateway:
            return gateway_.arranged(
                tools, self.gateway, tools_.marked, lambda wire: self.definition(wire, deferred=False)
            )
        if self.load_point != _HOSTED:
            # A deferred entry needs a search beside it.
            return [tool for tool in tools if self.searches or not tools_.marked(tool)]
        if not any(tools_.marked(wire) for wire in tools):  # refused then: "requires at least one deferred tool"
            return [tool for tool in tools if self.tool_name(tool) != tools_.SEARCH]
        return grouped(tools)

    def standing(self, tools: Sequence[Json]) -> list[Json]:
        sent = self._sent(tools)
        if self.gateway:  # what it shows of the others is not known
            return tools_.regrouped([wire for wire in sent if not tools_.marked(wire)])
        return tools_.standing(tools_.regrouped(sent))

    def tool(self, wire: Json) -> Tool | None:
        return tools_.tool(wire)

    def tool_name(self, wire: Json) -> str | None:
        return tools_.tool_name(wire) or gateway_.name_of(wire)

    def marked(self, wire: Json) -> bool:
        return tools_.marked(wire)

    def definition(self, wire: Json, *, deferred: bool) -> Json:
        return tools_.definition(wire, deferred=deferred)

    def marker(self, wire: Json) -> Json | None:
        return None  # cache breakpoints cannot stand on tools

    def with_marker(self, wire: Json, marker: Json) -> Json:
        return wire

    def loader(self, name: str, description: str, schema: Json) -> Json:
        if self.gateway:
            return gateway_.entry(self.gateway)
        if self.load_point == _HOSTED:
            return {"type": "tool_search"}  # the other fields are for searches of the client's
        if self.load_point == _SEARCH:
            # Refused without a description, although the type has it optional (seen in pydantic-ai).
            return {"type": "tool_search", "execution": "client", "description": description, "parameters": schema}
        # A function is strict unless it says otherwise, and then may have no optional parameter.
        return {
            "type": "function",
            "name": name,
            "description": description,
            "parameters": schema,
            "strict": False,
        }

    # -- tool choice ---------------------------------------------------------------------------------------------

    def choice(self, body: Json) -> Choice:
        value = body.get("tool_choice")
        if isinstance(value, str):
            return Choice(value if value in ("auto", "none", "required") else "auto", required=value in _DEMANDS)
        chosen = as_object(value)
        if chosen is None:
            return Choice()
        if chosen.get("type") == "allowed_tools":
            names = tuple(name for tool in objects(chosen.get("tools")) if (name := self._chosen(tool)))
            return Choice("allowed", names, chosen.get("mode") in _DEMANDS)
        name = self._chosen(chosen)
        return Choice("named", (name,), True) if name else Choice()

    def _chosen(self, wire: Json) -> str:
        """What a choice names; a tool without a name of its own by its type, which no function has in this form."""
        return (
            self.tool_name(wire) or f"{wire.get('type')} {wire.get('server_label') or wire.get('name') or ''}".strip()
        )

    def with_allowed(self, body: Json, names: Sequence[str]) -> Json:
        chosen = as_object(body.get("tool_choice")) or {}
        listed = objects(chosen.get("tools"))
        given = {self._chosen(tool): tool for tool in listed}
        typed = [tool for tool in listed if self.tool_name(tool) is None]
        named = [name for name in names if name != tools_.SEARCH]  # no choice can name the search
        tools = [given.get(name) or {"type": "function", "name": name} for name in named]
        return {**body, "tool_choice": {**chosen, "tools": [*tools, *(tool for tool in typed if tool not in tools)]}}

    def with_named(self, body: Json, name: str) -> Json:
        return {**body, "tool_choice": {"type": "function", "name": name}}

    def last_round(
        self, body: Json, choice: Choice, loader: str, callable_names: Sequence[str], *, refused: Collection[str] = ()
    ) -> Json:
        own = [name for name in callable_names if name != loader]
        if self.load_point == _HOSTED or (choice.mode == "named" and loader not in choice.names):
            return body  # the provider searches within the reply: there is no round to leave out
        if choice.required and own and loader == tools_.SEARCH:
            # No choice can name the search: it has to leave for this one request, as it may (the guide's examples).
            return {**body, "tools": [tool for tool in objects(body.get("tools")) if self.tool_name(tool) != loader]}
        if choice.mode == "allowed":
            own = [name for name in own if name in choice.names]
        if not choice.required or not own:
            return {**body, "tool_choice": "none"}
        custom = {tool.get("name") for tool in objects(body.get("tools")) if tool.get("type") == "custom"}
        named = [{"type": "custom" if name in custom else "function", "name": name} for name in own]
        return {**body, "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": named}}

    def structured(self, body: Json) -> bool:
        form = as_object((as_object(body.get("text")) or {}).get("format")) or {}
        return form.get("type") in ("json_schema", "json_object")

    # -- items ---------------------------------------------------------------------------------------------------

    def view(self, message: Json) -> View:
        return items.view(message)

    def incoming(self, message: Json, *, loader: str, ours: bool = False) -> list[Json]:
        if gateway_.is_foreign(message, self.gateway):
            return []
        if shown_.is_placed(message):
            return list(shown_.as_sent(message, loader, form=self.form, search=self.searches))
        if shown_.is_ours(message):
            return list(items.from_names(message, loader, form=self.form, search=self.searches))
        if self.load_point == _HOSTED and ours and message.get("type") == _ADDED:
            return self._pair(objects(message.get("tools")))  # its tools are declared, too
        if self.searches:
            return [message]  # what was loaded in the other form is loaded in this one too
        return list(items.turned_back(message, loader, form=self.form, ours=ours))

    def unanswered(self, turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
        return shown_.unanswered(turn)

    def answered(self, message: Json, call_id: str, outcome: Outcome) -> list[Json]:
        return [message, *self.changes(outcome.tools, (), by_value=True)]

    def changes(self, added: Sequence[Json], removed: Sequence[str], *, by_value: bool) -> list[Json]:
        """The items that load definitions where they stand, and the words that take tools back; [] without either.

        Items carry definitions by value whatever `by_value` says: this API has none that names tools.
        There is no item that removes a tool (the guide, read 2026-11-30). A hosted search gets items of a search:
        whether `additional_tools` may repeat what a namespace declares was not seen.
        """
        if self.form is None:
            return []
        out: list[Json] = []
        if added:
            out += self._pair(added) if self.load_point == _HOSTED else [tools_.additional(added)]
        if removed:
            out.append(items.farewell(removed))
        return out

    def _pair(self, wires: Sequence[Json]) -> list[Json]:
        return list(items.search_pair([self.definition(wire, deferred=False) for wire in wires]))

    def with_calls(self, wire: Json, change: Callable[[CallView], CallView]) -> Json:
        return items.with_calls(wire, change)

    def rebuilt(self, turn: Sequence[Json]) -> list[Json]:
        return shown_.whole(turn)

    def settled(self, body: Json) -> Json:
        given, tools = self.messages(body), body.get("tools")
        once = placing.declared_once(given, tools)
        placed = placing.without_namespaces(once, tools) if self.gateway else placing.with_namespaces(once, tools)
        return body if placed is given else {**body, "input": list(placed)}

    def without_thinking(self, messages: Sequence[Json]) -> list[Json]:
        return items.without_reasoning(messages)

    def bare(self, message: Json) -> Json:
        return items.bare(message)

    def turned_back(self, body: Json) -> Json:
        return shown_.body_without_ours(body)

    def without_ours(self, messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
        return shown_.without_ours(messages, call_ids, groups=True)

    def call(self, wire: Json) -> CallView | None:
        return items.call_view(wire)

    # -- replies -------------------------------------------------------------------------------------------------

    def reply(self, reply: Json) -> ReplyView | None:
        if reply.get("object") != "response" or not isinstance(reply.get("output"), list):
            return None
        made = objects(reply["output"])
        parts = [part for item in made if item.get("type") == "message" for part in objects(item.get("content"))]
        text = "".join(str(part.get("text") or "") for part in parts)
        refused = any(part.get("type") == "refusal" for part in parts)
        return ReplyView(
            str(reply.get("id") or ""), text, items.calls(made), refused or str(reply.get("status")) in _CUT
        )

    def assistant(self, reply: Json, cut: Collection[int]) -> list[Json]:
        made = objects(reply.get("output"))
        return items.sendable(items.without_lone_reasoning(items.without_calls(made, cut)) if cut else made)

    def visible(self, reply: Json, body: Json) -> Json:
        output = objects(reply.get("output"))
        shown = items.shown(output, body)
        seen = items.echoed(reply, body)
        return {**seen, "output": shown} if any(a is not b for a, b in zip(shown, output, strict=True)) else seen

    def result(self, call: CallView, outcome: Outcome) -> list[Json]:
        if call.name == tools_.SEARCH:
            answer = tools_.search_output(call.id, outcome.tools)
            return [answer] if outcome.tools else [answer, items.note(outcome.text)]
        text = as_failure(outcome.text) if outcome.failed else outcome.text
        output: Json = {"type": "function_call_output", "call_id": call.id, "output": text}
        return [output, tools_.additional(outcome.tools)] if self.form and outcome.tools else [output]

    def join(self, results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
        return items.joined([sent for item in results for sent in self.incoming(item, loader="", ours=True)], following)

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
        output: list[Json] = []
        for at, (reply, cut) in enumerate(zip(rounds, hidden, strict=True)):
            visible = items.without_calls(objects(reply.get("output")), cut)
            if last_text and at < len(rounds) - 1:
                visible = [item for item in visible if item.get("type") != "message"]
            output += items.shown(visible, body)
            if at < len(shown):
                output += shown_.shown_items(reply, at, shown[at], body.get("tools"))
        asked: Json = {key: rounds[0][key] for key in ("previous_response_id", "tool_choice") if key in rounds[0]}
        merged: Json = {**items.echoed(rounds[-1], body), **asked, "output": output}
        return {**merged, "usage": usage} if usage else merged

    def merger(self, decider: Decider, body: Json) -> StreamMerger:
        return ResponsesMerger(decider, body)

    def headers(self, caller: Mapping[str, str], betas: Sequence[str]) -> Mapping[str, str | None]:
        return {}
