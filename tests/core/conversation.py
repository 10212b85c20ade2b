"""A user's agent loop over the core: requests go to the emulator, replies are echoed in any style, bodies are kept.

No SDK is involved, so that many conversations fit into a test; `tests/adapters` drives the same core by the SDKs.
Over 400 lines because one loop drives every form, and reads each of them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.core.streams import rebuilt

from loadpoint import Policy
from loadpoint._agreeing import agreed
from loadpoint._plan import Request
from loadpoint._session import Session
from loadpoint.emulator import Emulator, Move, Script
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages
from loadpoint_adapters._dialects.openai_chat import OpenAIChat
from loadpoint_adapters._dialects.openai_responses import OpenAIResponses

Json = dict[str, Any]
CHAT, MESSAGES, RESPONSES = "openai.chat", "anthropic.messages", "openai.responses"
WIRES = {
    CHAT: ("https://api.openai.com/v1", "/chat/completions", "gpt-5.4"),
    MESSAGES: ("https://api.anthropic.com", "/v1/messages", "claude-opus-4-8"),
    RESPONSES: ("https://api.openai.com/v1", "/responses", "gpt-5.4"),
}
ADDS = "gpt-5.2"
"""A model that takes `additional_tools` and no search."""
KIMI, BASETEN = "kimi-k3", "an-open-model"
"""Models that take tools in system messages, and references in chat."""
INLINE = "claude-opus-5"
"""A model that takes tools in system messages of a Messages conversation; here it is asked to."""
LOADS, CALLS = "load_tools", "call_tool"
"""The bridge of the frozen strategy. In these tests its loader is called `ToolSearch`, as everywhere."""
HOSTS = {KIMI: "https://api.moonshot.ai/v1", BASETEN: "https://inference.baseten.co/v1"}
"""Where models are that are not where their dialect's own ones are."""
THINGS = ("invoice", "ticket", "branch", "contact", "metric", "page", "event", "parcel", "ledger", "photo")
ACTS = ("create", "delete", "list", "archive", "rename", "export")
NAMES = tuple(f"{thing}_{act}" for thing in THINGS for act in ACTS)


def tools(dialect: str, names: Sequence[str] = NAMES) -> list[Json]:
    """Wire tools of one dialect."""
    made: list[Json] = []
    for name in names:
        thing, _, act = name.partition("_")
        schema = {
            "type": "object",
            "properties": {"id": {"type": "integer", "description": f"Number of the {thing}"}},
            "required": ["id"],
        }
        text = f"{act.capitalize()} one {thing}. " + "It keeps an audit trail of what was done and by whom. " * 3
        if dialect == CHAT:
            made.append({"type": "function", "function": {"name": name, "description": text, "parameters": schema}})
        elif dialect == RESPONSES:
            plain = {"type": "function", "name": name, "description": text, "parameters": schema}
            made.append({**plain, "strict": False})
        else:
            made.append({"name": name, "description": text, "input_schema": schema})
    return made


class UpstreamError(AssertionError):
    """The emulator refused a request or played a failure."""


@dataclass(frozen=True)
class Form:
    """One way of sending: a dialect, a strategy, streamed or not."""

    dialect: str
    strategy: str
    stream: bool
    model: str = ""

    def talk(self, policy: Json | None = None, **given: Any) -> Conversation:
        """A conversation in this form; `policy` are fields of the policy."""
        asked = {"load_point": self.load_point} if self.model == INLINE else {}
        chosen = Policy(**{"strategy": self.strategy, **asked, **(policy or {})})
        return Conversation(self.dialect, chosen, stream=self.stream, **{"model": self.model, **given})

    @property
    def by_value(self) -> bool:
        """Whether what is loaded stands in the conversation alone."""
        return self.strategy == "native" and (self.dialect == RESPONSES or self.model in (KIMI, INLINE))

    @property
    def load_point(self) -> str | None:
        """Where what is loaded stands."""
        own = {ADDS: "additional_tools", KIMI: "system_tools", INLINE: "tool_addition"}
        usual = "tool_search" if self.dialect == RESPONSES else "tool_reference"
        return own.get(self.model, usual) if self.strategy == "native" else None

    @property
    def additive(self) -> bool:
        """Whether tools can be placed in the conversation without a search."""
        return self.strategy == "native" and self.model != BASETEN

    @property
    def frozen(self) -> bool:
        """Whether tools are called through the bridge, so that the list of tools never changes."""
        return self.strategy == "frozen"

    @property
    def keeps(self) -> bool:
        """Whether what has to be there without a search leaves the list of tools as it is."""
        return self.additive or self.frozen

    @property
    def loader(self) -> str:
        """The name of what loads tools, as the caller sees it where he answers it himself."""
        return LOADS if self.frozen else "ToolSearch"

    @property
    def declares_all(self) -> bool:
        """Whether every request declares all that may be loaded."""
        return self.model == BASETEN

    def choice(self, mode: str, name: str = "") -> Json:
        """A `tool_choice`: none, auto, required, or named."""
        if self.dialect == MESSAGES:
            kind = {"required": "any", "named": "tool"}.get(mode, mode)
            return {"tool_choice": {"type": kind, "name": name} if name else {"type": kind}}
        inner = {"function": {"name": name}} if self.dialect == CHAT else {"name": name}
        return {"tool_choice": {"type": "function", **inner} if name else mode}


WAYS = (
    (CHAT, "resend", ""),
    (CHAT, "frozen", ""),
    (CHAT, "native", KIMI),
    (CHAT, "native", BASETEN),
    (MESSAGES, "native", ""),
    (MESSAGES, "native", INLINE),
    (MESSAGES, "resend", ""),
    (MESSAGES, "frozen", ""),
    (RESPONSES, "native", ""),
    (RESPONSES, "native", ADDS),
    (RESPONSES, "resend", ""),
    (RESPONSES, "frozen", ""),
)
FORMS = [Form(dialect, strategy, stream, model) for dialect, strategy, model in WAYS for stream in (False, True)]


def form_id(form: Form) -> str:
    """The form's name in test ids."""
    way = {ADDS: "adds", KIMI: "system", BASETEN: "references", INLINE: "changes"}.get(form.model, form.strategy)
    return f"{form.dialect.split('.')[1]}-{way}{'-stream' if form.stream else ''}"


everywhere = pytest.mark.parametrize("form", FORMS, ids=form_id)
unstreamed = pytest.mark.parametrize("form", [form for form in FORMS if not form.stream], ids=form_id)


def search(query: str, **more: Any) -> tuple[str, Json]:
    """A loader call."""
    return ("ToolSearch", {"query": query, **more})


@dataclass
class Conversation:
    """One conversation of one user through one session."""

    dialect: str
    policy: Policy = field(default_factory=lambda: Policy(strategy="native"))
    stream: bool = False
    session: Any = None
    names: Sequence[str] = NAMES
    model: str = ""
    extra: Json = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    visible: list[Json] = field(default_factory=list)
    bodies: list[Json] = field(default_factory=list)
    replies: list[Json] = field(default_factory=list)
    reports: list[Any] = field(default_factory=list)
    shown: list[bytes] = field(default_factory=list)
    style: Callable[[Json], Json] | None = None
    cut: Callable[[bytes], list[bytes]] | None = None
    refuses: Callable[[Json, Json], str | None] = lambda _body, _headers: None
    """What the endpoint says against a body and its headers; None if it takes them."""
    refused: list[Json] = field(default_factory=list)
    """The bodies that it did not take."""

    def __post_init__(self) -> None:
        self.edits: dict[str, Any] = {}
        self.base, self.path, model = WIRES[self.dialect]
        self.model = self.model or model
        self.base = HOSTS.get(self.model, self.base)
        self.session = self.session or self.fresh()
        self.server = Emulator(Script(lambda turn: self.played(self.moves.pop(0), turn.search)))
        self.served = True

    def played(self, move: Move, name: str | None) -> Move:
        """The move, with the loader called by the name that the emulator has for the model's own search."""
        if self.frozen:
            return move.but(calls=[self.bridged(*call) for call in move.calls])
        if name is None or not self.served:
            return move
        return move.but(calls=[(name if call[0] == "ToolSearch" else call[0], *call[1:]) for call in move.calls])

    def bridged(self, name: str, arguments: Any, *more: Any) -> Any:
        """A call as a model makes it that sees the bridge and the residents."""
        if name.startswith("="):
            return (name[1:], arguments, *more)
        sent = [self.name(tool) for tool in self.body.get("tools") or []]
        if CALLS not in sent or (name in sent and name != "ToolSearch"):
            return (name, arguments, *more)
        if name == "ToolSearch":
            return (LOADS, arguments, *more)
        if isinstance(arguments, str):
            params = f',"params":{arguments}' if arguments else ""
            return (CALLS, f'{{"tool":{json.dumps(name)}{params}}}', *more)
        return (CALLS, {"tool": name, "params": arguments}, *more)

    def fresh(self, **given: Any) -> Session:
        """A session that knows nothing: another process."""
        spoken: list[Any] = [OpenAIChat(), AnthropicMessages(), OpenAIResponses()]
        return Session(spoken, self.policy, on_report=self.reports.append, **given)

    @property
    def key(self) -> str:
        """Where a body has its conversation."""
        return "input" if self.dialect == RESPONSES else "messages"

    def request(self, headers: Json | None = None) -> Request:
        body = {"model": self.model, self.key: self.visible, "tools": tools(self.dialect, self.names), **self.extra}
        body = {key: value for key, value in body.items() if value is not None}
        if self.dialect == MESSAGES:
            body.setdefault("max_tokens", 1000)
        if self.stream:
            body["stream"] = True
        copy = json.loads(json.dumps(body))
        return Request("POST", self.path, copy, {**self.headers, **(headers or {})}, self.base, "key")

    def send(self, *moves: Move, headers: Json | None = None) -> Json:
        """One logical call of the user, played by `moves`; the visible reply."""
        self.moves = list(moves)
        request = self.request(headers)
        before = json.dumps(request.body)
        call = self.session.begin(request)
        self.edits = {} if call is None else dict(call.headers)
        body: Json | None = request.body if call is None else call.body
        if call is None or not self.stream:
            while body is not None:
                raw = self._ok(call, body)
                reply = rebuilt(self.dialect, raw) if self.stream else json.loads(raw)
                body = None if call is None else call.feed(reply)
                if call is not None and call.question is not None:
                    body = call.decided(asyncio.run(agreed(call)))
            result = reply if call is None else call.result
        else:
            result = self._streamed(call, body)
        assert json.dumps(request.body) == before, "the caller's body was changed"
        assert not self.moves, "not every move was played"
        self.replies.append(result)
        self.visible += self.echo(result)
        return result

    def post(self, body: Json, path: str | None = None) -> tuple[int, bytes]:
        """What the emulator answers to a body."""
        raw = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
        self.bodies.append(json.loads(raw))
        headers = {
            "content-type": "application/json",
            "authorization": "Bearer k",
            "x-api-key": "k",
            "anthropic-version": "2023-06-01",
            **self.headers,
            **self.edits,
        }
        answer = self.server.handle("POST", self.base + (path or self.path), headers, raw)
        return answer.status, b"".join(answer.chunks)

    def _streamed(self, call: Any, body: Json | None) -> Json:
        splice = call.splice()
        self.shown = out = splice.replayed()
        body = call.body
        while body is not None:
            raw = self._ok(call, body)
            for chunk in self.cut(raw) if self.cut else [raw]:
                out += splice.feed(chunk)
            body = splice.end()
            if call.question is not None:
                body = splice.decided(asyncio.run(agreed(call)))
            out += splice.closing()
        return rebuilt(self.dialect, b"".join(out))

    def _ok(self, call: Any, body: Json) -> bytes:
        """The bytes of a good answer; an error is told to the call, and raised unless it goes on."""
        while True:
            said = self.refuses(body, self.edits)
            status, raw = self.post(body) if said is None else (400, json.dumps({"error": {"message": said}}).encode())
            if status == 200:
                return raw
            self.refused.append(body)
            again = None if call is None else call.rejected(status, raw.decode())
            if again is None:
                if call is not None:
                    call.failed()
                raise UpstreamError(raw.decode())
            body, self.edits = again, dict(call.headers)

    # -- reading what was sent and shown --------------------------------------------------------------------------

    @property
    def report(self) -> Any:
        """The report of the last call."""
        return self.reports[-1]

    @property
    def body(self) -> Json:
        """The last upstream body."""
        return self.bodies[-1]

    def name(self, tool: Json) -> str:
        """The name of a wire tool."""
        inner = tool.get("function") or tool.get("custom") or tool
        loads = tool.get("type") == "tool_search" or (self.frozen and inner.get("name") == LOADS)
        return "ToolSearch" if loads else str(inner.get("name"))

    @property
    def frozen(self) -> bool:
        """Whether tools are called through the bridge."""
        return self.policy.strategy == "frozen"

    def through(self, body: Json | None = None) -> set[str]:
        """The names that the bridge reaches: those that a load has told of, and those that were called."""
        asked = {call_id: (name, said) for call_id, name, said in self.called(body)}
        found: set[str] = set()
        for call_id, result in self.results(body).items():
            name, said = asked.get(call_id, ("", {}))
            text = result["content"]
            if name == CALLS and "isError" not in text and not result.get("is_error"):
                found.add(said["tool"])
            elif name == LOADS and text.startswith("Loaded: "):
                found |= set(text.partition("\n")[0].removeprefix("Loaded: ").split(", "))
        return found

    def called(self, body: Json | None = None) -> list[tuple[str, str, Json]]:
        """The calls in a body: id, name, arguments."""
        out: list[tuple[str, str, Json]] = []
        for message in (body or self.body)[self.key]:
            if message.get("type") == "function_call":
                out.append((message["call_id"], message["name"], json.loads(message["arguments"] or "{}")))
            for call in message.get("tool_calls") or []:
                inner = call["function"]
                out.append((call["id"], inner["name"], json.loads(inner["arguments"] or "{}")))
            content = message.get("content")
            blocks = (
                [block for block in content if block.get("type") == "tool_use"] if isinstance(content, list) else []
            )
            out += [(block["id"], block["name"], block["input"]) for block in blocks]
        return out

    def in_context(self, body: Json | None = None) -> list[str]:
        """The names of the tools that stand in the model's context from the start."""
        tools_sent = (body or self.body).get("tools") or []
        names = [self.name(tool) for tool in tools_sent if tool.get("defer_loading") is not True]
        return [name for name in names if not (self.frozen and name == CALLS)]

    def declared(self, body: Json | None = None) -> list[str]:
        """The names of the caller's tools that are sent deferred."""
        held = [self.name(t) for t in (body or self.body).get("tools") or [] if t.get("defer_loading") is True]
        return [name for name in held if not name.startswith("loadpoint_placeholder")]

    def callable(self, body: Json | None = None) -> set[str]:
        """The names that the model can call: in context, or declared and referred to in a result."""
        if self.frozen:
            return {*self.in_context(body), *self.through(body)}
        if self.dialect == RESPONSES:
            items = (body or self.body)["input"]
            return {*self.in_context(body), *(self.name(t) for item in items for t in item.get("tools") or [])}
        if self.dialect == CHAT and self.model == KIMI:
            late = [tool for message in (body or self.body)["messages"] for tool in message.get("tools") or []]
            return {*self.in_context(body), *map(self.name, late)}
        added: set[str] = set()
        if self.dialect == MESSAGES:
            added = {self.name(tool) for message in (body or self.body)["messages"] for tool in additions(message)}
        referred = {name for result in self.results(body).values() for name in references(result)}
        return {*self.in_context(body), *added, *(referred & set(self.declared(body)))}

    def results(self, body: Json | None = None) -> dict[str, Json]:
        """The tool results of a body by call id."""
        out: dict[str, Json] = {}
        if self.dialect == RESPONSES:
            return _outputs((body or self.body)["input"])
        for message in (body or self.body)["messages"]:
            if self.dialect == CHAT and message["role"] == "tool":
                out[message["tool_call_id"]] = message
            elif isinstance(message.get("content"), list):
                out.update({b["tool_use_id"]: b for b in message["content"] if b.get("type") == "tool_result"})
        return out

    def calls(self, reply: Json) -> list[tuple[str, Any]]:
        """The visible calls of a reply: name and arguments."""
        if self.dialect == CHAT:
            found = reply["choices"][0]["message"].get("tool_calls") or []
            return [(call["function"]["name"], json.loads(call["function"]["arguments"] or "{}")) for call in found]
        if self.dialect == RESPONSES:
            made = [item for item in reply["output"] if item["type"].endswith("_call")]
            searched = [item["arguments"] if "name" not in item else None for item in made]
            return [
                (item.get("name", "ToolSearch"), json.loads(item["arguments"] or "{}") if own is None else own)
                for item, own in zip(made, searched, strict=True)
            ]
        return [(block["name"], block["input"]) for block in reply["content"] if block["type"] == "tool_use"]

    def text(self, reply: Json) -> str:
        """The visible text of a reply."""
        if self.dialect == CHAT:
            return reply["choices"][0]["message"].get("content") or ""
        if self.dialect == RESPONSES:
            parts = [part for item in reply["output"] if item["type"] == "message" for part in item["content"]]
            return "".join(part.get("text", "") for part in parts)
        return "".join(block["text"] for block in reply["content"] if block["type"] == "text")

    def stop(self, reply: Json) -> str:
        """The provider's reason to end."""
        if self.dialect == RESPONSES:
            return (reply["incomplete_details"] or {}).get("reason") or ("tool_calls" if self.calls(reply) else "stop")
        return str(reply["choices"][0]["finish_reason"] if self.dialect == CHAT else reply["stop_reason"])

    def load(self, name: str, arguments: Json | None = None) -> Json:
        """A whole user turn in which the model finds `name`, calls it, and answers."""
        self.user(f"please do {name}")
        result = self.send(Move(calls=[search(name)]), Move(calls=[(name, arguments or {"id": 1})]))
        self.answer(result)
        return self.send(Move(text=f"{name} is done"))

    def restart(self, **given: Any) -> None:
        """From here on another process, which knows nothing unless a ledger is `given`."""
        self.session = self.fresh(**given)

    def begun(self, headers: Json | None = None) -> Any:
        """The call for the visible history, not sent."""
        call = self.session.begin(self.request(headers))
        self.edits = {} if call is None else dict(call.headers)
        return call

    def user(self, text: str) -> None:
        self.visible.append({"role": "user", "content": text})

    def answer(self, result: Json, *, text: str = "done", skip: int = 0) -> None:
        """Results for the visible calls of a reply."""
        if self.dialect == CHAT:
            for call in result["choices"][0]["message"].get("tool_calls") or []:
                self.visible.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            return
        if self.dialect == RESPONSES:
            for item in result["output"]:
                if item["type"] == "function_call":
                    made = {"type": "function_call_output", "call_id": item["call_id"], "output": text}
                    self.visible.append(made)
            return
        blocks = [b for b in result["content"] if b["type"] == "tool_use"]
        content = [{"type": "tool_result", "tool_use_id": block["id"], "content": text} for block in blocks]
        if content:
            self.visible.append({"role": "user", "content": content})

    def echo(self, result: Json) -> list[Json]:
        """The reply as the caller puts it into its history."""
        if self.dialect == RESPONSES:
            items = json.loads(json.dumps(result["output"]))
            return [self.style(item) for item in items] if self.style else items
        if self.dialect == CHAT:
            message = {k: v for k, v in result["choices"][0]["message"].items() if v is not None or k == "content"}
        else:
            message = {"role": "assistant", "content": result["content"]}
        message = json.loads(json.dumps(message))
        return [self.style(message) if self.style else message]

    def bare(self) -> tuple[int, bytes]:
        """What the provider says to the visible history without us, all tools declared."""
        self.moves = [Move(text="fine")]
        body = self.request().body
        if body[self.key][-1].get("role") == "assistant":
            body[self.key].append({"role": "user", "content": "and now?"})
        body.pop("stream", None)
        sent = list(self.bodies)
        answer = self.post(body)
        self.bodies = sent
        return answer


def _outputs(items: Sequence[Json]) -> dict[str, Json]:
    """The results in an input by call id; the words that stand for a search without a result are its content."""
    out = {item["call_id"]: dict(item) for item in items if item.get("type", "").endswith("_output")}
    notes = [item["content"] for item in items if item.get("role") == "developer" and "content" in item]
    for item in out.values():
        if item["type"] == "tool_search_output" and not item["tools"] and notes:
            item["content"] = notes.pop(0)
        elif "output" in item:
            item["content"] = item["output"]
    return out


def additions(message: Json) -> list[Json]:
    """The tools that a message adds by value."""
    if message.get("role") != "system" or not isinstance(message.get("content"), list):
        return message.get("tools") or []
    return [block["tool"]["definition"] for block in message["content"] if "definition" in block.get("tool", {})]


def references(result: Json) -> Iterator[str]:
    """The names that a result refers to."""
    content = result.get("content")
    for part in content if isinstance(content, list) else []:
        if part.get("type") == "tool_reference":
            yield part["tool_name"]
