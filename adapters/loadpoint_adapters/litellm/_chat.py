"""Chat completions as litellm has them: thinking comes in `thinking_blocks`, which stream in pieces.

A hidden turn is sent back verbatim, so its thinking has to be put together as the provider signed it.
"""

from __future__ import annotations

from typing import Any

from loadpoint._dialect import Decider
from loadpoint._json import Json, as_object, objects

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

    def thought(self, messages: Any) -> bool:
        """Whether any of these messages holds thinking."""
        return any(message.get(_THINKING) for message in messages)


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
