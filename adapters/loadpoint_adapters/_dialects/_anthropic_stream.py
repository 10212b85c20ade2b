"""Messages streams: several upstream replies shown to the caller as one.

Event order: https://platform.claude.com/docs/en/build-with-claude/streaming (usage is cumulative).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadpoint._dialect import CallView, Decider, Shown
from loadpoint._json import Json, as_object, dumps, parse_object, writable
from loadpoint._sse import Event, frame

from ._anthropic_blocks import call_view
from ._anthropic_search import shown_items

_AT_START_ONLY = frozenset({"cache_creation", "service_tier", "speed", "inference_geo"})
"""What the usage at the start of a stream has and that at its end has not (the types of the package, 2.14.0)."""
_TEXT_DELTAS = {"text_delta": "text", "thinking_delta": "thinking"}


class MessagesMerger:
    """One visible stream made of several rounds."""

    def __init__(self, decider: Decider) -> None:
        self.decider = decider
        self.visible_id: str | None = None
        self.shown_blocks = 0

    def round(self) -> MessagesRound:
        return MessagesRound(self)

    def searched(self, reply: Json, round_index: int, shown: Sequence[Shown]) -> Iterator[bytes]:
        for block in shown_items(reply, round_index, shown):
            index = self.shown_blocks
            self.shown_blocks += 1
            start: Json = {**block, "input": {}} if "input" in block else block
            yield _event({"type": "content_block_start", "index": index, "content_block": start})
            if "input" in block:
                delta = {"type": "input_json_delta", "partial_json": dumps(block["input"])}
                yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})

    def terminal(self, result: Json) -> Iterator[bytes]:
        if not self.shown_blocks:
            yield from self._text(result)
        delta = {key: result.get(key) for key in ("stop_reason", "stop_sequence")}
        extra = {key: result[key] for key in ("container", "stop_details") if key in result}
        beside = {key: result[key] for key in ("context_management",) if key in result}
        given: Json = result.get("usage") or {}
        usage = {key: value for key, value in given.items() if key not in _AT_START_ONLY}
        yield _event({"type": "message_delta", "delta": {**delta, **extra}, "usage": usage, **beside})
        yield _event({"type": "message_stop"})

    def _text(self, result: Json) -> Iterator[bytes]:
        """What stands for a reply of which nothing could be shown."""
        for index, block in enumerate(result.get("content") or []):
            self.shown_blocks += 1
            yield _event({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}})
            delta = {"type": "text_delta", "text": block.get("text") or ""}
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
            yield _event({"type": "content_block_stop", "index": index})


class MessagesRound:
    """Reads one upstream stream."""

    def __init__(self, merger: MessagesMerger) -> None:
        self.merger = merger
        self.message: Json | None = None
        self.blocks: dict[int, Json] = {}
        self.arguments: dict[int, str] = {}
        self.shown: dict[int, int] = {}
        self.waiting: set[int] = set()
        self.held: dict[int, list[Json]] = {}
        self.holding_text = merger.decider.structured
        self.delta: Json = {}
        self.last: list[bytes] = []
        self.done = False
        self.failed = False

    def feed(self, event: Event) -> Iterable[bytes]:
        data = parse_object(event.data)
        kind = data.get("type") if data else None
        if data is None or kind == "ping":
            return (event.raw,)
        if kind == "message_start":
            return self._start(event, data)
        if kind == "content_block_start":
            return self._block_start(event, data)
        if kind in ("content_block_delta", "content_block_stop"):
            return self._block(event, data, stop=kind == "content_block_stop")
        if kind == "message_delta":
            self._collect_delta(data)
            self.last.append(event.raw)
            return ()
        if kind == "message_stop":
            self.done = True
            self.last.append(event.raw)
            return ()
        self.failed = self.failed or kind == "error"
        return (event.raw,)

    def _start(self, event: Event, data: Json) -> Iterable[bytes]:
        self.message = data["message"]
        if self.merger.visible_id is not None:
            return ()
        self.merger.visible_id = str(data["message"].get("id") or "")
        return (event.raw,)

    def _block_start(self, event: Event, data: Json) -> Iterable[bytes]:
        at = data["index"]
        block: Json = data["content_block"]
        self.blocks[at] = dict(block)
        self.arguments[at] = ""
        if block.get("type") == "tool_use" and self.merger.decider.holds(str(block.get("name") or "")):
            self.waiting.add(at)
            return ()
        if block.get("type") == "text" and self.holding_text:
            self.held[at] = [data]
            return ()
        if block.get("type") == "tool_use":
            # A real call makes this the last round, so that its text is shown, in its place before the call.
            return [*self.release(), self._shown(event, data)]
        return (self._shown(event, data),)

    def _shown(self, event: Event | None, data: Json) -> bytes:
        at = data["index"]
        if at not in self.shown:
            self.shown[at] = self.merger.shown_blocks
            self.merger.shown_blocks += 1
        if event is not None and self.shown[at] == at:
            return event.raw
        return _event({**data, "index": self.shown[at]})

    def _block(self, event: Event, data: Json, *, stop: bool) -> Iterable[bytes]:
        at = data["index"]
        delta = as_object(data.get("delta"))
        if stop:
            self._finish(at)
        elif delta is None:
            self.failed = True  # what is missing cannot be made up: the SDK says what it makes of it
            return (event.raw,)
        else:
            self._collect(at, delta)
        if at in self.waiting:
            return self._decide(at) if stop else ()
        if at in self.held:
            self.held[at].append(data)
            texts = (str(block.get("text") or "") for _, block in sorted(self.blocks.items()))
            return self.release() if "".join(texts).lstrip()[:1] in ("{", "[") else ()
        return (self._shown(event, data),)

    def _collect(self, at: int, delta: Json) -> None:
        block = self.blocks[at]
        kind = str(delta.get("type"))
        if kind == "input_json_delta":
            self.arguments[at] += str(delta.get("partial_json") or "")
        elif kind in _TEXT_DELTAS:
            field = _TEXT_DELTAS[kind]
            block[field] = str(block.get(field) or "") + str(delta.get(field) or "")
        elif kind == "compaction_delta":
            # All of it in one event, as the SDK takes it: null says that it failed, and both go back as they came.
            block.update({field: delta[field] for field in ("content", "encrypted_content") if field in delta})
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature")
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]

    def _finish(self, at: int) -> None:
        text = self.arguments[at]
        if not text.strip():
            return
        parsed = parse_object(text)
        if parsed is not None and not writable(parsed):
            parsed = None  # NaN or 1e999, which Python reads and no request can carry
        # Unreadable arguments stay a string: the core answers a loader call so, anyone else's goes to the caller.
        self.blocks[at]["input"] = text if parsed is None else parsed

    def _decide(self, at: int) -> Iterator[bytes]:
        """A held call at its end: ours is dropped, the caller's is shown as start, one delta, stop."""
        self.waiting.discard(at)
        block = self.blocks[at]
        call = call_view(block)
        if self.merger.decider.hides(call):
            return
        yield from self.release()
        # The model's own text, where there is some: what the caller gets of it is a piece of it.
        seen = CallView(str(block.get("id") or ""), str(block.get("name") or ""), self.arguments[at] or call.arguments)
        new = self.merger.decider.as_seen(seen)
        if new != seen:
            block, self.arguments[at] = {**block, "name": new.name}, str(new.arguments)
        # Without deltas the block's start has said it all; with them its value is no part of the arguments.
        start: Json = {**block, "input": {}} if self.arguments[at] else block
        yield self._shown(None, {"type": "content_block_start", "index": at, "content_block": start})
        if self.arguments[at]:
            delta = {"type": "input_json_delta", "partial_json": self.arguments[at]}
            yield self._shown(None, {"type": "content_block_delta", "index": at, "delta": delta})
        yield self._shown(None, {"type": "content_block_stop", "index": at})

    def release(self) -> Iterator[bytes]:
        """Show the text that is held and hold no more in this round."""
        self.holding_text = False
        held, self.held = self.held, {}
        for events in held.values():
            for data in events:
                yield self._shown(None, data)

    def _collect_delta(self, data: Json) -> None:
        usage = {**(as_object(self.delta.get("usage")) or {}), **(as_object(data.get("usage")) or {})}
        fields = {**(as_object(self.delta.get("delta")) or {}), **(as_object(data.get("delta")) or {})}
        self.delta = {**self.delta, **data, "usage": usage, "delta": fields}

    def reply(self) -> Json | None:
        if self.message is None or not self.done or self.failed:
            return None
        given = as_object(self.delta.get("usage")) or {}
        usage: Json = {**(self.message.get("usage") or {}), **{k: v for k, v in given.items() if v is not None}}
        content = [self.blocks[at] for at in sorted(self.blocks)]
        beside = {key: value for key, value in self.delta.items() if key not in ("type", "delta", "usage")}
        ends = as_object(self.delta.get("delta")) or {}
        return {**self.message, **beside, **ends, "content": content, "usage": usage}

    def flush(self) -> Iterator[bytes]:
        yield from self.release()

    def ending(self) -> Sequence[bytes]:
        return self.last


def _event(data: Json) -> bytes:
    return frame(dumps(data), str(data["type"]))
