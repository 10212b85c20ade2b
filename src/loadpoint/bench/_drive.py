"""Ordinary agent loops over real SDK clients: what a user's program does, nothing that is ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .._json import Json, as_object, parse_object
from ._plan import SYSTEM
from ._toolset import BenchTool

if TYPE_CHECKING:
    from ..emulator import Sdk

ECHOES = ("object", "dump", "dict")
"""How the program puts the model's reply back into its history: as the SDK's object, its `model_dump`, or rebuilt."""

MARK = {"type": "ephemeral"}

RunTool = Callable[[str, Json], str]
"""Executes a tool: name and arguments in, result text out."""


@dataclass(slots=True)
class Chat:
    """A conversation as the user's program holds it."""

    client: Any
    model: str
    tools: Sequence[BenchTool]
    run: RunTool
    echo: str = "object"
    stream: bool = False
    marked: bool = True
    """Whether the program sets cache markers where the API has them."""
    in_body: bool = False
    """Whether the program hands over in `extra_body` what it can: the same bytes, without the SDK's own conversion of
    every tool and item for every request, which takes longer than all the rest of a run."""
    before_call: Callable[[], None] = lambda: None
    messages: list[Any] = field(default_factory=list[Any])

    def given(self, wire: Callable[[BenchTool], Json]) -> dict[str, Any]:
        """The tools as arguments of a call of OpenAI's SDK."""
        tools = [wire(tool) for tool in self.tools]
        return {"extra_body": {"tools": tools}} if self.in_body else {"tools": tools}


class Driver(Protocol):
    """One SDK surface: `say` sends a user message and works until the model ends its turn with text."""

    @property
    def sdk(self) -> Sdk:
        """The SDK, as the emulator calls it."""
        ...

    @property
    def dialect(self) -> str:
        """The dialect that is spoken."""
        ...

    def client(self, http_client: Any, base_url: str | None = None) -> Any:
        """A client of the SDK with its real base_url, or that of another host."""
        ...

    def wire(self, tool: BenchTool) -> Json:
        """The tool in this API's form."""
        ...

    def say(self, chat: Chat, text: str) -> str:
        """The model's last text. Raises the SDK's own errors."""
        ...


class OpenAIChat:
    """`client.chat.completions`."""

    sdk: Sdk = "openai"
    dialect = "openai.chat"

    def client(self, http_client: Any, base_url: str | None = None) -> Any:
        import openai

        return openai.OpenAI(api_key="sk-bench", http_client=http_client, max_retries=0, base_url=base_url)

    def say(self, chat: Chat, text: str) -> str:
        if not chat.messages:
            chat.messages.append({"role": "system", "content": SYSTEM})
        chat.messages.append({"role": "user", "content": text})
        while True:
            chat.before_call()
            reply = self._create(chat, chat.given(self.wire))
            chat.messages.append(_echoed(reply, chat.echo, _chat_dict))
            if not reply.tool_calls:
                return reply.content or ""
            for call in reply.tool_calls:
                result = chat.run(call.function.name, parse_object(call.function.arguments) or {})
                chat.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    @staticmethod
    def wire(tool: BenchTool) -> Json:
        """The tool in this API's form."""
        function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        return {"type": "function", "function": function}

    @staticmethod
    def _create(chat: Chat, tools: dict[str, Any]) -> Any:
        completions = chat.client.chat.completions
        if not chat.stream:
            return completions.create(model=chat.model, messages=chat.messages, **tools).choices[0].message
        with completions.stream(model=chat.model, messages=chat.messages, **tools) as stream:
            return _sendable(stream.get_final_completion().choices[0].message)


class AnthropicMessages:
    """`client.messages`, with cache markers on the last tool, the system prompt and the newest message."""

    sdk: Sdk = "anthropic"
    dialect = "anthropic.messages"

    def client(self, http_client: Any, base_url: str | None = None) -> Any:
        import anthropic

        return anthropic.Anthropic(api_key="sk-ant-bench", http_client=http_client, max_retries=0, base_url=base_url)

    def say(self, chat: Chat, text: str) -> str:
        content: list[Json] = [{"type": "text", "text": text}]
        while True:
            chat.messages.append({"role": "user", "content": content})
            chat.before_call()
            reply = self._create(chat)
            chat.messages.append(_echoed(reply, chat.echo, _messages_dict))
            calls = [block for block in reply.content if block.type == "tool_use"]
            if not calls:
                return "".join(block.text for block in reply.content if block.type == "text")
            content = [
                {"type": "tool_result", "tool_use_id": call.id, "content": chat.run(call.name, dict(call.input))}
                for call in calls
            ]

    @staticmethod
    def wire(tool: BenchTool) -> Json:
        """The tool in this API's form."""
        return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}

    def _create(self, chat: Chat) -> Any:
        tools = [self.wire(tool) for tool in chat.tools]
        system: list[Json] = [{"type": "text", "text": SYSTEM}]
        messages = list(chat.messages)
        if chat.marked:
            tools[-1] = {**tools[-1], "cache_control": MARK}
            system[-1] = {**system[-1], "cache_control": MARK}
            newest = messages[-1]
            last = {**newest["content"][-1], "cache_control": MARK}
            messages[-1] = {**newest, "content": [*newest["content"][:-1], last]}
        asked = {"model": chat.model, "max_tokens": 4096, "system": system, "messages": messages, "tools": tools}
        if not chat.stream:
            return chat.client.messages.create(**asked)
        with chat.client.messages.stream(**asked) as stream:
            return stream.get_final_message()


class OpenAIResponses:
    """`client.responses`; the program keeps the items itself and sends all of them each time."""

    sdk: Sdk = "openai"
    dialect = "openai.responses"

    def client(self, http_client: Any, base_url: str | None = None) -> Any:
        import openai

        return openai.OpenAI(api_key="sk-bench", http_client=http_client, max_retries=0, base_url=base_url)

    def say(self, chat: Chat, text: str) -> str:
        chat.messages.append({"role": "user", "content": text})
        while True:
            chat.before_call()
            reply = self._create(chat, chat.given(self.wire))
            chat.messages += [_item(item, chat.echo) for item in reply.output]
            calls = [item for item in reply.output if item.type == "function_call"]
            if not calls:
                return str(reply.output_text)
            for call in calls:
                result = chat.run(call.name, parse_object(call.arguments) or {})
                chat.messages.append({"type": "function_call_output", "call_id": call.call_id, "output": result})

    @staticmethod
    def wire(tool: BenchTool) -> Json:
        """The tool in this API's form; a function is strict unless it says otherwise, and few schemas are."""
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            "strict": False,
        }

    @staticmethod
    def _create(chat: Chat, tools: dict[str, Any]) -> Any:
        asked: dict[str, Any] = {"model": chat.model, "instructions": SYSTEM, "input": chat.messages, **tools}
        if chat.in_body:
            items = list(map(_dumped, chat.messages))
            asked = {**asked, "input": [], "extra_body": {"input": items, **tools["extra_body"]}}
        if not chat.stream:
            return chat.client.responses.create(**asked)
        with chat.client.responses.create(**asked, stream=True) as events:
            return [event for event in events if event.type == "response.completed"][-1].response


DRIVERS: tuple[Driver, ...] = (OpenAIChat(), AnthropicMessages(), OpenAIResponses())
DIALECTS = tuple(driver.dialect for driver in DRIVERS)


def driver_of(dialect: str) -> Driver:
    """The driver of a dialect. Raises `KeyError` for one that there is none for."""
    known = {driver.dialect: driver for driver in DRIVERS}
    if dialect not in known:
        raise KeyError(f"dialect: {dialect!r}; allowed: {', '.join(known)}")
    return known[dialect]


def _echoed(reply: Any, echo: str, rebuild: Callable[[Any], Json]) -> Any:
    """The reply as the program keeps it in its history."""
    if echo == "dict":
        return rebuild(reply)
    if echo == "dump":
        dumped = reply.model_dump(exclude_none=True)
        return dumped if "content" not in dumped or isinstance(dumped["content"], str) else _message(dumped)
    return reply if hasattr(reply, "tool_calls") else {"role": reply.role, "content": reply.content}


def _sendable(message: Any) -> Any:
    """A streamed message without what the stream helper adds to it: the API refuses those fields in a history."""
    from openai.types.chat import ChatCompletionMessage

    plain = message.model_dump(exclude_none=True)
    plain.pop("parsed", None)
    for call in plain.get("tool_calls", ()):
        call["function"].pop("parsed_arguments", None)
    return ChatCompletionMessage.model_validate(plain)


def _dumped(item: Any) -> Json:
    """A JSON object, or an object of the SDK as the SDK sends it."""
    plain = as_object(item)
    return dict(item.model_dump(exclude_unset=True, mode="json", by_alias=True)) if plain is None else plain


def _item(item: Any, echo: str) -> Any:
    """An output item of the Responses API as the program keeps it in its history."""
    if echo == "object":
        return item
    if echo == "dict" and item.type == "message":
        return {"role": "assistant", "content": "".join(part.text for part in item.content)}
    dumped: Json = item.model_dump(exclude_none=True)
    if echo == "dict" and item.type == "function_call":
        return {key: dumped[key] for key in ("type", "call_id", "name", "namespace", "arguments") if key in dumped}
    return dumped


def _message(dumped: Json) -> Json:
    return {"role": dumped["role"], "content": dumped["content"]}


def _chat_dict(reply: Any) -> Json:
    made: Json = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in reply.tool_calls
        ]
    return made


def _messages_dict(reply: Any) -> Json:
    blocks: list[Json] = []
    for block in reply.content:
        if block.type == "text":
            blocks.append({"type": "text", "text": block.text})
        elif block.type == "tool_use":
            blocks.append({"type": "tool_use", "id": block.id, "name": block.name, "input": block.input})
        else:  # what the provider itself did has to be sent back
            blocks.append(block.model_dump(exclude_none=True))
    return {"role": "assistant", "content": blocks}
