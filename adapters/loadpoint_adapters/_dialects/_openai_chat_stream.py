"""Chat Completions streams: several upstream replies shown to the caller as one.

Chunk facts: `openai/types/chat/chat_completion_chunk.py`; the usage chunk comes last, with no choices, where
`stream_options.include_usage` asked for it (https://platform.openai.com/docs/api-reference/chat-streaming).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from loadpoint._dialect import CallView, Decider, Shown
from loadpoint._json import Json, as_list, as_object, dumps, objects, parse_object
from loadpoint._sse import Event, frame


class ChatMerger:
    """One visible stream made of several rounds."""

    def __init__(self, decider: Decider, *, wants_usage: bool) -> None:
        self.decider = decider
        self.wants_usage = wants_usage
        self.visible_id: str | None = None
        self.head: Json = {}
        self.shown_calls = 0
        self.shown_role = False
        self.shown_text = False
        self.tail = ""
        self.fresh = True

    def round(self) -> ChatRound:
        self.fresh = True
        return ChatRound(self)

    def searched(self, reply: Json, round_index: int, shown: Sequence[Shown]) -> tuple[bytes, ...]:
        return ()  # this API has no item for a search

    def terminal(self, result: Json) -> Iterator[bytes]:
        choice: Json = result["choices"][0]
        if not self.head:
            kept = ("id", "created", "model", "service_tier", "system_fingerprint")
            self.head = {key: result[key] for key in kept if key in result} | {"object": "chat.completion.chunk"}
        if choice["message"].get("content") == "" and not self.shown_text:
            delta = {"content": ""} if self.shown_role else {"role": "assistant", "content": ""}
            yield self.chunk({"choices": [{"index": 0, "delta": delta, "finish_reason": None, "logprobs": None}]})
        last: Json = {"index": 0, "delta": {}, "finish_reason": choice.get("finish_reason"), "logprobs": None}
        yield self.chunk({"choices": [last]})
        if self.wants_usage and result.get("usage"):
            yield self.chunk({"choices": [], "usage": result["usage"]})
        yield frame("[DONE]")

    def chunk(self, change: Json) -> bytes:
        """A chunk of the visible stream: the head of its first chunk with `change`."""
        return frame(dumps({**self.head, **change}))

    def shown(self, chunk: Json, delta: Json) -> bytes:
        """`chunk` with `delta`, in the name of the visible reply."""
        if self.visible_id is None:
            self.visible_id = str(chunk.get("id") or "")
            self.head = {key: value for key, value in chunk.items() if key not in ("choices", "usage")}
        if self.shown_role:
            delta = {key: value for key, value in delta.items() if key != "role"}
        self.shown_role = self.shown_role or "role" in delta
        self.shown_text = self.shown_text or delta.get("content") is not None
        if delta.get("content"):
            text = str(delta["content"])
            if self.fresh:
                delta = {**delta, "content": seam(self.tail, text) + text}
            self.tail, self.fresh = text, False
        choice = {**chunk["choices"][0], "delta": delta, "finish_reason": None}
        out = {key: value for key, value in chunk.items() if key != "usage"}
        return frame(dumps({**out, "id": self.visible_id, "choices": [choice]}))


def seam(before: str, after: str) -> str:
    """What stands between the texts of two rounds: a blank line, unless one of them brings white space of its own."""
    return "" if not before or not after or before[-1].isspace() or after[0].isspace() else "\n\n"


class ChatRound:
    """Reads one upstream stream."""

    def __init__(self, merger: ChatMerger) -> None:
        self.merger = merger
        self.first: Json | None = None
        self.message: Json = {"role": "assistant", "content": None}
        self.calls: dict[int, Json] = {}
        self.visible_index: dict[int, int] = {}
        self.held_calls: dict[int, list[Json]] = {}
        self.held: list[tuple[Json, Json]] = []
        self.holding_text = merger.decider.structured
        self.finish: str | None = None
        self.usage: Json | None = None
        self.extra: Json = {}
        self.last: list[bytes] = []
        self.as_it_came = True
        self.done = False
        self.failed = False

    def feed(self, event: Event) -> Iterable[bytes]:
        if event.data == "[DONE]":
            self.done = True
            self.last.append(event.raw)
            return ()
        chunk = parse_object(event.data)
        if chunk is None or "choices" not in chunk:
            self.failed = self.failed or (chunk is not None and "error" in chunk)
            return (event.raw,)
        if chunk.get("usage"):
            self.usage = chunk["usage"]
        if self.first is None:
            self.first = chunk
        choices = as_list(chunk["choices"])
        self._note_ending(event, chunk, choices)
        if not choices:
            # Only the usage chunk (and a gateway's leading filter results) have no choices; usage is shown at the end.
            return () if chunk.get("usage") or self.merger.visible_id is not None else (event.raw,)
        return self._choice(chunk, choices[0])

    def _note_ending(self, event: Event, chunk: Json, choices: list[Any]) -> None:
        """The closing chunks, to be shown as they came if nothing of them is ours: usage that only we asked for."""
        delta = as_object(choices[0].get("delta")) or {} if choices else {}
        if not choices and chunk.get("usage") and self.merger.wants_usage:
            self.last.append(event.raw)
        elif choices and choices[0].get("finish_reason"):
            ours = "usage" in chunk and not self.merger.wants_usage
            self.as_it_came = self.as_it_came and not ours and not any(delta.values())
            self.last.append(event.raw)

    def _choice(self, chunk: Json, choice: Json) -> Iterator[bytes]:
        delta = as_object(choice.get("delta")) or {}
        finish = choice.get("finish_reason")
        self.finish = finish or self.finish
        self._collect(delta)
        out = {key: value for key, value in delta.items() if key != "tool_calls"}
        calls = objects(delta.get("tool_calls"))
        if calls:
            shown = [visible for call in calls if (visible := self._call(call)) is not None]
            if shown:
                out["tool_calls"] = shown
        if not out or (finish and not any(out.values())):
            return
        if self.holding_text and "tool_calls" not in out:
            yield from self._hold(chunk, out)
            return
        yield self.merger.shown(chunk, out)

    def _hold(self, chunk: Json, delta: Json) -> Iterator[bytes]:
        """Structured answers: a stream whose text starts with a bracket is released, anything else is preamble."""
        self.held.append((chunk, delta))
        text = str(self.message.get("content") or "").lstrip()
        if text[:1] in ("{", "["):
            yield from self.release()

    def release(self) -> Iterator[bytes]:
        """Show what is held and hold no more text in this round."""
        self.holding_text = False
        for chunk, delta in self.held:
            yield self.merger.shown(chunk, delta)
        self.held.clear()

    def _collect(self, delta: Json) -> None:
        for key, value in delta.items():
            if key == "tool_calls" or value is None:
                continue
            known = self.message.get(key)
            if isinstance(value, str) and isinstance(known, str) and key != "role":
                self.message[key] = known + value
            elif isinstance(value, list) and isinstance(known, list):
                self.message[key] = [*known, *value]
            else:
                self.message[key] = value

    def _call(self, call: Json) -> Json | None:
        """The visible form of one call delta; None while it is held or when it is not the caller's."""
        at = _index(call, self.calls)
        known = self.calls.get(at)
        if known is None:
            known = self.calls[at] = {"id": "", "type": call.get("type") or "function"}
        _extend(known, call)
        if at in self.visible_index:
            return {**call, "index": self.visible_index[at]}
        waiting = self.held_calls.setdefault(at, [])
        waiting.append(call)
        name, holds = _name(known), self.merger.decider.holds
        # Some servers send the name in pieces: it is whole once the arguments begin.
        if not name or holds(name) or (not _arguments(known) and holds(name, whole=False)):
            return None
        return self._show(at)

    def _show(self, at: int) -> Json:
        """The whole call so far, as the first visible delta of it."""
        index = self.visible_index[at] = self.merger.shown_calls
        self.merger.shown_calls += 1
        self.held_calls.pop(at, None)
        return {"index": index, **self.calls[at]}

    def reply(self) -> Json | None:
        if self.first is None or self.failed or (not self.done and self.finish is None):
            return None
        message = dict(self.message)
        if self.calls:
            message["tool_calls"] = [self.calls[at] for at in sorted(self.calls)]
        head = {key: value for key, value in self.first.items() if key not in ("choices", "usage", "obfuscation")}
        choice = {"index": 0, "message": message, "finish_reason": self.finish or "stop", "logprobs": None}
        reply = {**head, "object": "chat.completion", "choices": [choice]}
        return {**reply, "usage": self.usage} if self.usage else reply

    def ending(self) -> Sequence[bytes]:
        return self.last if self.as_it_came else ()

    def flush(self) -> Iterator[bytes]:
        yield from self.release()
        for at in sorted(self.held_calls):
            call = self.calls[at]
            if (
                not self.merger.decider.hides(CallView(str(call["id"]), _name(call), _arguments(call)))
                and self.first is not None
            ):
                yield from self._start_and_arguments(at)

    def _start_and_arguments(self, at: int) -> Iterator[bytes]:
        # A held call is shown as a start without arguments, then the arguments in one piece.
        call = self._as_seen(self._show(at))
        first = self.first or {}
        base = {**first, "choices": [{"index": 0, "logprobs": None}]}
        function = as_object(call.get("function"))
        if function is None:
            yield self.merger.shown(base, {"tool_calls": [call]})
            return
        start = {**call, "function": {**function, "arguments": ""}}
        yield self.merger.shown(base, {"tool_calls": [start]})
        # A tool without parameters may come without arguments; what was checked, and is shown, is an empty object.
        rest = {"index": call["index"], "function": {"arguments": function.get("arguments") or "{}"}}
        yield self.merger.shown(base, {"tool_calls": [rest]})

    def _as_seen(self, call: Json) -> Json:
        """A held call as the caller sees it: with a bridge, that of the tool behind it."""
        name, arguments = _name(call), _arguments(call)
        seen = self.merger.decider.as_seen(CallView(str(call["id"]), name, arguments))
        function = as_object(call.get("function"))
        if function is None or (seen.name, seen.arguments) == (name, arguments):
            return call
        return {**call, "function": {**function, "name": seen.name, "arguments": seen.arguments}}


def _index(call: Json, known: dict[int, Json]) -> int:
    """Some servers leave the index out: an id starts the next call, anything else continues the last one."""
    index = call.get("index")
    if isinstance(index, int):
        return index
    if call.get("id") or not known:
        return len(known)
    return max(known)


def _name(call: Json) -> str:
    inner = as_object(call.get("function")) or as_object(call.get("custom")) or {}
    return str(inner.get("name") or "")


def _arguments(call: Json) -> str:
    inner = as_object(call.get("function")) or as_object(call.get("custom")) or {}
    return str(inner.get("arguments") or inner.get("input") or "")


def _extend(known: Json, call: Json) -> None:
    for key, value in call.items():
        if key == "index" or value is None:
            continue
        inner = as_object(value)
        if key == "id":
            known["id"] = known["id"] or value
        elif inner is not None and key in ("function", "custom"):
            mine: dict[str, Any] = known.setdefault(
                key, {"name": "", "arguments" if key == "function" else "input": ""}
            )
            for part, text in inner.items():
                if isinstance(text, str) and isinstance(mine.get(part), str):
                    # The name comes whole or in pieces; a server that repeats it whole in each piece is no piece.
                    mine[part] = mine[part] if part == "name" and mine[part] == text else mine[part] + text
                elif text is not None:
                    mine[part] = text
        else:
            known[key] = value
