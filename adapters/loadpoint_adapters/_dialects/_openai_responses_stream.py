"""Responses streams: several upstream replies shown to the caller as one.

Event facts: `openai/types/responses/response_stream_event.py` (3.57.0). Every event has a `sequence_number`, those of
an item its `output_index`; the last one holds the whole response. The call_id of a search may differ between the first
and the last event of its item (seen in March 2026): one that the caller sees is held to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from loadpoint._dialect import Decider, Shown
from loadpoint._json import Json, as_object, dumps, objects, parse_object
from loadpoint._sse import Event, frame

from ._openai_responses_items import call_view, called, completed, echoed, without_namespace
from ._openai_responses_shown import shown_items
from ._openai_responses_tools import namespaces, qualified

_OPENING = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_TEXT = "response.output_text.delta"
_ARGUMENTS = "response.function_call_arguments.done"
_STARTS = "response.output_item.added"
_DONE = "response.output_item.done"


class ResponsesMerger:
    """One visible stream made of several rounds; `body` is the caller's request."""

    def __init__(self, decider: Decider, body: Json) -> None:
        self.decider = decider
        self.body = body
        self.namespaces = namespaces(body.get("tools"))
        self.visible_id: str | None = None
        self.opened = False
        self.number = 0
        self.places: dict[str, int] = {}
        self.count = 0

    def round(self) -> ResponsesRound:
        return ResponsesRound(self)

    def searched(self, reply: Json, round_index: int, shown: Sequence[Shown]) -> Iterator[bytes]:
        """The frames of two items for each search: there are no other events for them (seen in recordings)."""
        for item in shown_items(reply, round_index, shown, self.body.get("tools")):
            index = self.places[str(item["id"])] = self.count
            self.count += 1
            begun = {**item, "status": "in_progress"}
            if "arguments" in item:
                begun["arguments"] = {}  # whole in the last event only
            for kind, stage in ((_STARTS, begun), (_DONE, item)):
                yield self.numbered(None, {"type": kind, "output_index": index, "item": stage})

    def terminal(self, result: Json) -> Iterator[bytes]:
        status = str(result.get("status"))
        kind = f"response.{status}" if f"response.{status}" in _ENDS else "response.completed"
        # In the order in which they were shown: text that was held comes behind what was not.
        output = sorted(
            objects(result.get("output")), key=lambda item: self.places.get(str(item.get("id")), self.count)
        )
        response = {**result, "id": self.visible_id or result.get("id"), "output": output}
        yield self.numbered(None, {"type": kind, "response": response})

    def numbered(self, event: Event | None, data: Json) -> bytes:
        """One visible event; its own bytes where nothing of it has changed."""
        old = data.get("sequence_number")
        if event is not None and event.raw and old is None:
            return event.raw  # a server that numbers nothing
        number, self.number = self.number, self.number + 1
        if event is not None and event.raw and old == number:
            return event.raw
        named = event is None or event.name is not None
        return frame(dumps({**data, "sequence_number": number}), str(data.get("type")) if named else None)


class ResponsesRound:
    """Reads one upstream stream."""

    def __init__(self, merger: ResponsesMerger) -> None:
        self.merger = merger
        self.response: Json | None = None
        self.done: dict[int, Json] = {}
        self.indices: dict[int, int] = {}
        self.waiting: dict[int, list[tuple[Event, Json]]] = {}
        self.texts: dict[int, list[tuple[Event, Json]]] = {}
        self.holding_text = merger.decider.structured
        self.text = ""
        self.last: list[bytes] = []
        self.failed = False

    def feed(self, event: Event) -> Iterable[bytes]:
        data = parse_object(event.data)
        if data is None:
            return (event.raw,)
        kind = str(data.get("type"))
        if kind in _OPENING:
            return self._open(event, data)
        if kind in _ENDS:
            self.response = as_object(data.get("response"))
            self.last = [event.raw] if data.get("sequence_number") == self.merger.number else []
            return ()
        if "output_index" in data:
            return self._item(event, data, kind)
        self.failed = self.failed or kind == "error"
        return (self.merger.numbered(event, data),)

    def _open(self, event: Event, data: Json) -> Iterable[bytes]:
        response = as_object(data.get("response")) or {}
        if self.merger.visible_id is None:
            self.merger.visible_id = str(response.get("id") or "")
        # The events that open a later round are none of the caller's reply.
        if response.get("id") != self.merger.visible_id:
            return ()
        shown = {**data, "response": echoed(response, self.merger.body)}
        return (self.merger.numbered(event if shown == data else _named(event), shown),)

    def _item(self, event: Event, data: Json, kind: str) -> Iterable[bytes]:
        at: int = data["output_index"]
        item = as_object(data.get("item"))
        if kind == _DONE and item is not None:
            self.done[at] = item
        if kind == _STARTS and item is not None:
            return self._added(event, data, item)
        if at in self.waiting:
            self.waiting[at].append((event, data))
            return self._decide(at) if kind == _DONE else ()
        if kind == _TEXT:
            self.text += str(data.get("delta") or "")
        if at in self.texts:
            self.texts[at].append((event, data))
            return self.release() if self.text.lstrip()[:1] in ("{", "[") else ()
        return (self._shown(event, data),)

    def _added(self, event: Event, data: Json, item: Json) -> Iterable[bytes]:
        at: int = data["output_index"]
        if item.get("type") == "tool_search_call" and item.get("execution") != "server":
            held = True  # its call_id may be another one at its end
        else:
            is_call = item.get("type") in ("function_call", "custom_tool_call")
            held = is_call and self.merger.decider.holds(qualified(item.get("name"), item.get("namespace")))
            if is_call and not held:
                # A real call makes this the last round, so that its text is shown, in its place before the call.
                return [*self.release(), self._shown(event, data)]
        if held:
            self.waiting[at] = [(event, data)]
            return ()
        if item.get("type") == "message" and self.holding_text:
            self.texts[at] = [(event, data)]
            return ()
        return (self._shown(event, data),)

    def _shown(self, event: Event, data: Json) -> bytes:
        at: int = data["output_index"]
        if at not in self.indices:
            self.indices[at] = self.merger.count
            self.merger.count += 1
        index = self.indices[at]
        changed = data if index == at else {**data, "output_index": index}
        item = as_object(data.get("item"))
        if item is not None:
            self.merger.places[str(item.get("id"))] = index
            bare = without_namespace(item, self.merger.namespaces)
            bare = bare if data.get("type") == _STARTS else completed(bare)
            changed = changed if bare is item else {**changed, "item": bare}
        elif data.get("type") == _ARGUMENTS and not str(data.get("arguments") or "").strip():
            changed = {**changed, "arguments": "{}"}
        return self.merger.numbered(event if changed is data else _named(event), changed)

    def _decide(self, at: int) -> Iterator[bytes]:
        """A held call at its end: ours is dropped, the caller's is shown as it came."""
        events = self.waiting.pop(at)
        call = call_view(self.done[at])
        if call is not None and self.merger.decider.hides(call):
            return
        yield from self.release()
        seen = call if call is None else self.merger.decider.as_seen(call)
        if seen is not None and seen != call:
            events = _anew(events, called(self.done[at], seen))
        for event, data in events:
            yield self._shown(*_identified(event, data, self.done[at]))

    def release(self) -> Iterator[bytes]:
        """Show the text that is held and hold no more in this round."""
        self.holding_text = False
        held, self.texts = self.texts, {}
        for events in held.values():
            for event, data in events:
                yield self._shown(event, data)

    def reply(self) -> Json | None:
        if self.response is None or self.failed:
            return None
        if not self.response.get("output") and self.done:
            # Some servers leave the whole output out of the last event.
            return {**self.response, "output": [self.done[at] for at in sorted(self.done)]}
        return self.response

    def ending(self) -> Sequence[bytes]:
        return self.last

    def flush(self) -> Iterator[bytes]:
        yield from self.release()


def _identified(event: Event, data: Json, done: Json) -> tuple[Event, Json]:
    """An event of a held item under the call_id that its item has at the end: the SDK's stream helper wants one."""
    item = as_object(data.get("item"))
    if item is None or item.get("call_id") == done.get("call_id"):
        return event, data
    return _named(event), {**data, "item": {**item, "call_id": done.get("call_id")}}


def _anew(events: Sequence[tuple[Event, Json]], item: Json) -> list[tuple[Event, Json]]:
    """The events of a held call with another item: its start, its arguments in one piece, its end."""
    (first, start), (last, end) = events[0], events[-1]
    at, arguments = start["output_index"], item.get("arguments")
    begun = {key: value for key, value in item.items() if key != "status"}
    stages = {key: value for key, value in (as_object(start.get("item")) or {}).items() if key == "status"}
    told: Json = {"item_id": item.get("id"), "output_index": at}
    done = next((data for _, data in events if data.get("type") == _ARGUMENTS), {"type": _ARGUMENTS, **told})
    piece: Json = {"type": "response.function_call_arguments.delta", **told, "delta": arguments}
    number = start.get("sequence_number")
    if number is not None:
        piece, done = {**piece, "sequence_number": number}, {"sequence_number": number, **done}
    named = {"name": item.get("name")} if "name" in done else {}
    return [
        (_named(first), {**start, "item": {**begun, **stages, "arguments": ""}}),
        (_named(first), piece),
        (_named(first), {**done, **named, "arguments": arguments}),
        (_named(last), {**end, "item": item}),
    ]


def _named(event: Event) -> Event:
    """The event without its bytes: they are no longer what it says."""
    return Event(event.name, "", b"")
