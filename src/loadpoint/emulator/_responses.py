"""The dialect `openai.responses`: */responses and below it, and the conversation objects that it continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .._json import Json, as_object, objects, parse_object
from . import _gateway_search, _responses_prompt, _responses_rules, _responses_state, _responses_stream
from ._answer import Piece, RejectedError, sse
from ._cache import Bill
from ._count import tokens
from ._dialect import Asked, Played, Prompt
from ._ids import Ids
from ._responses_output import billed, endings, output, spoken, usage
from ._responses_paths import WITHOUT_BODY, endpoint, target
from ._rules import Broken, Violation
from ._script import Move

_TYPES = {401: "authentication_error", 429: "requests", 500: "server_error", 503: "server_error", 529: "server_error"}
_ECHOED: Json = {
    "background": False,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": None,
    "safety_identifier": None,
    "store": True,
    "temperature": 1.0,
    "tool_choice": "auto",
    "top_logprobs": 0,
    "top_p": 0.98,
    "truncation": "disabled",
    "user": None,
    "metadata": {},
}


class Responses:
    """The Responses API as OpenAI serves it."""

    name = "openai.responses"
    without_body = WITHOUT_BODY

    def route(self, method: str, path: str) -> str | None:
        """The endpoint there, or None."""
        return endpoint(method, path)

    def request_id(self, ids: Ids) -> tuple[str, str]:
        """`x-request-id` and a new id."""
        return "x-request-id", "req_" + ids.text(32).lower()

    def error(self, status: int, message: str, violation: Violation | None, request_id: str) -> Json:
        """An error body; the request id stands in the header only."""
        del request_id
        kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        code: str | None = "rate_limit_exceeded" if status == 429 else None
        param: str | None = None
        if violation is not None:
            kind, code, param = violation.rule.type, violation.rule.code, violation.param
        return {"error": {"message": message, "type": kind, "param": param, "code": code}}

    def stream_error(self, message: str, sent: Sequence[Piece], request_id: str) -> tuple[Piece, ...]:
        """An event `error`, and `response.failed` where the stream had begun; as recorded for an exhausted quota."""
        del request_id
        events = [parse_object(piece.data.partition(b"data: ")[2].decode()) or {} for piece in sent]
        opened = next((as_object(event.get("response")) for event in events if "response" in event), None)
        number = len(sent)
        error = {"type": "server_error", "code": "server_error", "message": message, "param": None}
        ended: list[Json] = [{"type": "error", "sequence_number": number, "error": error}]
        if opened is not None:
            failed = {**opened, "status": "failed", "error": {"code": "server_error", "message": message}}
            ended.append({"type": "response.failed", "sequence_number": number + 1, "response": failed})
        return tuple(Piece(sse(event, event=event["type"])) for event in ended)

    def resolve(self, asked: Asked) -> None:
        """Puts what the service holds before the request's own items. Raises `RejectedError` for unknown ids."""
        lost = _responses_state.missing(asked)
        if lost is not None:
            violation = asked.book.violation(lost)
            rule, message = violation.rule, violation.message
            body = self.error(rule.status, message, violation, "")
            raise RejectedError(rule.status, body, rule=rule.id, message=message)
        _responses_state.resolve(asked)

    def check(self, asked: Asked) -> Iterable[Broken]:
        """Every rule that the request breaks."""
        return _responses_rules.check(asked)

    def prompt(self, asked: Asked) -> Prompt:
        """What the model gets."""
        return _responses_prompt.prompt(asked)

    def count(self, asked: Asked, prompt: Prompt) -> Json | Played | None:
        """The replies of every endpoint but "create"."""
        if asked.endpoint == "create":
            return None
        if asked.endpoint == "input_tokens":
            return {"object": "response.input_tokens", "input_tokens": prompt.segments.total}
        if asked.endpoint == "compact":
            return _compacted(asked, prompt)
        return _talk(asked) if asked.endpoint.startswith("talk.") else _stored(asked)

    def play(self, asked: Asked, move: Move, bill: Bill) -> Played:
        """A response, and the events that stream it."""
        move, bill = _gateway_search.played(asked, self.name, move, bill)
        items = output(asked, move)
        whole = billed(asked, items, bill)
        out = spoken(move, items)
        reply = _reply(asked, move, items, usage(whole, out, tokens(move.thinking), move.usage))
        _responses_state.remember(asked, reply)
        if asked.body.get("background") is True and asked.body.get("stream") is not True:
            return Played(_responses_state.unfinished(reply), whole, (), out)
        pieces: tuple[Piece, ...] = ()
        if asked.body.get("stream") is True:
            options = as_object(asked.body.get("stream_options")) or {}
            hidden = options.get("include_obfuscation") is not False
            pieces = _responses_stream.pieces(reply, changed=_changed(asked, move, items), obfuscated=hidden)
        return Played(reply, whole, pieces, out)


def _reply(asked: Asked, move: Move, items: list[Json], billed_: Json) -> Json:
    body = asked.body
    made_at = 1_790_000_000 + asked.number
    talk = _responses_state.conversation_id(asked)
    text = {"format": {"type": "text"}, "verbosity": "medium", **(as_object(body.get("text")) or {})}
    reasoning = {"effort": None, "summary": None, **(as_object(body.get("reasoning")) or {})}
    reply: Json = {
        "id": asked.ids.make("resp_", 53).lower(),
        "object": "response",
        "created_at": made_at,
        "completed_at": made_at + 1,
        "model": asked.model,
        **{key: body.get(key) if body.get(key) is not None else value for key, value in _ECHOED.items()},
        **endings(move),
        "output": items,
        "reasoning": reasoning,
        "service_tier": "default",
        "text": text,
        "tools": [_echo(tool) for tool in objects(body.get("tools"))],
        "usage": billed_,
        **move.message,
    }
    return reply if talk is None else {**reply, "conversation": {"id": talk}}


def _echo(tool: Json) -> Json:
    """A tool as responses repeat it: what was left out stands there as null."""
    if tool.get("type") == "tool_search":
        return {"description": None, "parameters": None, **tool}
    if tool.get("type") == "function":
        return {"description": None, "parameters": None, "strict": False, **tool}
    return tool


def _changed(asked: Asked, move: Move, items: list[Json]) -> dict[int, str]:
    """Other call ids for the first event of the client's searches, where the script wants them."""
    if not move.changing_call_ids:
        return {}
    searches = [at for at, item in enumerate(items) if item.get("type") == "tool_search_call" and item.get("call_id")]
    return {at: asked.ids.make("call_", 29) for at in searches}


def _compacted(asked: Asked, prompt: Prompt) -> Json:
    items = _responses_state.compacted(asked)
    out = tokens(str(_responses_state.summary_of(items[-1])))
    return {
        "id": asked.ids.make("resp_", 53).lower(),
        "object": "response.compaction",
        "created_at": 1_790_000_000,
        "output": items,
        "usage": usage(Bill(prompt.segments.total), out, 0, {}),
    }


def _stored(asked: Asked) -> Json | Played:
    """What an endpoint of a stored response gives back."""
    id_, _ = target(asked.path)
    stored = asked.memory.responses[id_]
    if asked.endpoint == "delete":
        del asked.memory.responses[id_]
        return {"id": id_, "object": "response", "deleted": True}
    if asked.endpoint == "input_items":
        return _responses_state.listing(stored.sent, dict(asked.query))
    if asked.endpoint == "cancel" and stored.waiting:
        stored.reply = {**_responses_state.unfinished(stored.reply), "status": "cancelled"}
    stored.waiting = False
    if asked.query.get("stream") == "true":
        after = asked.query.get("starting_after", "")
        number = int(after) if after.isdigit() else -1
        return Played(stored.reply, Bill(0), _responses_stream.pieces(stored.reply, after=number))
    return stored.reply


def _talk(asked: Asked) -> Json:
    """What an endpoint of a conversation gives back."""
    kind = asked.endpoint
    if kind == "talk.create":
        return _responses_state.open_talk(asked)
    id_, item = target(asked.path)
    talk = asked.memory.talks[id_]
    if kind == "talk.delete":
        del asked.memory.talks[id_]
        return {"id": id_, "object": "conversation.deleted", "deleted": True}
    if kind == "talk.items":
        return _responses_state.listing(talk.items, dict(asked.query))
    if kind == "talk.add":
        return _responses_state.listing(_responses_state.add_items(asked, talk), {"order": "asc", "limit": "100"})
    if kind == "talk.item":
        return next(kept for kept in talk.items if kept.get("id") == item)
    if kind == "talk.drop":
        talk.items = [kept for kept in talk.items if kept.get("id") != item]
    if kind == "talk.update":
        talk.record = {**talk.record, "metadata": as_object(asked.body.get("metadata")) or {}}
    return talk.record
