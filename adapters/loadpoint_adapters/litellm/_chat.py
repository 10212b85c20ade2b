"""Chat completions as litellm has them: thinking comes in `thinking_blocks`, which stream in pieces.

A hidden turn is sent back verbatim, so its thinking has to be put together as the provider signed it.
"""

from __future__ import annotations

from typing import Any

from loadpoint._dialect import Decider
from loadpoint._json import Json, as_object, objects
from loadpoint._models import parse
from loadpoint._prices import cache_rule

from .._dialects._openai_chat_stream import ChatMerger, ChatRound
from .._dialects.openai_chat import OpenAIChat

_THINKING = "thinking_blocks"


class LiteLLMChat(OpenAIChat):
    """The dialect `openai.chat` with what litellm adds to messages."""

    def at(self, load_point: str | None, variant: str = "") -> LiteLLMChat:
        """The variant that writes this load point; see `Dialect.at`."""
        known = load_point if load_point in self.renders else None
        same = known == self.load_point and variant in ("", self.gateway)
        return self if same else LiteLLMChat(known, variant)

    def merger(self, decider: Decider, body: Json) -> _Merger:
        """The stream merger of one logical call."""
        options = as_object(body.get("stream_options")) or {}
        return _Merger(decider, wants_usage=options.get("include_usage") is True)

    def is_marked(self, body: Json) -> bool:
        """Whether anything will be cached: Claude caches what is marked, and litellm hands such marks on."""
        if not _caches_by_marks(str(body.get("model") or "")) or body.get("cache_control_injection_points"):
            return True
        messages = objects(body.get("messages"))
        marked = [*messages, *(part for message in messages for part in objects(message.get("content")))]
        return any("cache_control" in part for part in marked) or any(map(self.marker, objects(body.get("tools"))))

    def with_markers(self, body: Json) -> Json:
        """A copy with markers on the last tool that does not wait and on the end of the conversation."""
        marker: Json = {"type": "ephemeral"}
        tools, messages = objects(body.get("tools")), objects(body.get("messages"))
        at = max((i for i, tool in enumerate(tools) if not self.marked(tool)), default=None)
        if at is not None:
            tools[at] = self.with_marker(tools[at], marker)
        out = {**body, "tools": tools} if at is not None else dict(body)
        if messages and messages[-1].get("role") in ("user", "tool"):
            out["messages"] = [*messages[:-1], _with_marker(messages[-1], marker)]
        return out

    def thought(self, messages: Any) -> bool:
        """Whether any of these messages holds thinking."""
        return any(message.get(_THINKING) for message in messages)


def _caches_by_marks(model: str) -> bool:
    """Whether a model, by whatever route, caches only what is marked. Nothing is said of models nobody knows."""
    rule = cache_rule(model, "anthropic.messages")
    return parse(model) is not None and rule.breakpoints > 0 and not rule.automatic


def _with_marker(message: Json, marker: Json) -> Json:
    """The message with a marker at its end: litellm takes one on a message where that is a tool's, else on a part."""
    if message["role"] == "tool":
        return {**message, "cache_control": marker}
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else objects(content)
    if not parts or parts[-1].get("text") == "":
        return message
    return {**message, "content": [*parts[:-1], {**parts[-1], "cache_control": marker}]}


class _Merger(ChatMerger):
    def round(self) -> ChatRound:
        self.fresh = True
        return _Round(self)


class _Round(ChatRound):
    def _collect(self, delta: Json) -> None:
        super()._collect({key: value for key, value in delta.items() if key != _THINKING})
        for block in objects(delta.get(_THINKING)):
            self.message[_THINKING] = _joined(self.message.get(_THINKING) or [], block)


def _joined(blocks: list[Json], piece: Json) -> list[Json]:
    """The blocks with one more piece: of the last block, until that is signed."""
    last = blocks[-1] if blocks else None
    if last is None or piece.get("type") != "thinking" or last.get("type") != "thinking" or last.get("signature"):
        return [*blocks, piece]
    text = str(last.get("thinking") or "") + str(piece.get("thinking") or "")
    return [*blocks[:-1], {**last, **piece, "thinking": text}]
