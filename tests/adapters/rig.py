"""One SDK client, wrapped with the session double, in front of a scripted provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import anthropic
import openai
from tests.adapters.doubles import LOADER, FakeSession, Provider, chat, chat_events, message, message_events

from loadpoint_adapters.anthropic import adapter as anthropic_adapter
from loadpoint_adapters.openai import adapter as openai_adapter

SDKS = ("openai", "anthropic")
ADAPTERS: dict[str, Any] = {"openai": openai_adapter, "anthropic": anthropic_adapter}
MODULES: dict[str, Any] = {"openai": openai, "anthropic": anthropic}
CLASSES: dict[tuple[str, bool], type[Any]] = {
    ("openai", False): openai.OpenAI,
    ("openai", True): openai.AsyncOpenAI,
    ("anthropic", False): anthropic.Anthropic,
    ("anthropic", True): anthropic.AsyncAnthropic,
}


def search(sdk: str) -> dict[str, Any]:
    """A reply that is a round to hide."""
    return (
        chat(None, (LOADER, {}), reply="chatcmpl-0") if sdk == "openai" else message(None, (LOADER, {}), reply="msg_0")
    )


def said(sdk: str, text: str = "hello big world") -> dict[str, Any]:
    """A reply for the caller."""
    return chat(text) if sdk == "openai" else message(text)


def text_of(reply: Any) -> str:
    return str(reply.choices[0].message.content if hasattr(reply, "choices") else reply.content[0].text)


def texts(item: Any) -> list[str]:
    """The text in one streamed item."""
    if hasattr(item, "choices"):
        return [choice.delta.content for choice in item.choices if choice.delta.content]
    return [item.delta.text] if item.type == "content_block_delta" and item.delta.type == "text_delta" else []


@dataclass
class Rig:
    """`plain` is the caller's client, `client` the wrapped one."""

    sdk: str
    plain: Any
    client: Any
    provider: Provider
    session: FakeSession

    def api(self, client: Any = None) -> Any:
        client = client or self.client
        return client.chat.completions if self.sdk == "openai" else client.messages

    def create(self, client: Any = None, **more: Any) -> Any:
        return self.api(client).create(**self.request(), **more)

    def request(self) -> dict[str, Any]:
        return request(self.sdk)

    @property
    def call(self) -> Any:
        """The last logical call."""
        return self.session.calls[-1]


def request(sdk: str) -> dict[str, Any]:
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    if sdk == "openai":
        return {**body, "tools": [{"type": "function", "function": {"name": "a", "parameters": {}}}]}
    return {**body, "max_tokens": 9, "tools": [{"name": "a", "input_schema": {"type": "object"}}]}


def rig(
    sdk: str,
    *script: Any,
    asynchronous: bool = False,
    edits: dict[str, str | None] | None = None,
    kind: Any = None,
    **options: Any,
) -> Rig:
    """A rig whose provider plays `script` (default: a round to hide, then a text)."""
    provider = Provider(chat_events if sdk == "openai" else message_events, list(script) or [search(sdk), said(sdk)])
    http = provider.async_client() if asynchronous else provider.client()
    plain = (kind or CLASSES[sdk, asynchronous])(**{"api_key": "k", "http_client": http, **options})
    session = FakeSession(edits)
    return Rig(sdk, plain, ADAPTERS[sdk].wrap(plain, lambda _: session), provider, session)
