"""The dialect `anthropic.messages`: POST */v1/messages, /count_tokens, /batches; also on Vertex and Bedrock paths."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .._json import Json, as_list, objects, parse_object
from . import _gateway_search, _messages_changes, _messages_prompt, _messages_rules, _messages_stream, _threads
from ._answer import Piece, sse
from ._cache import Bill
from ._count import tokens
from ._dialect import Asked, Played, Prompt
from ._hosted_search import search
from ._ids import Ids
from ._messages_prompt import is_search_tool
from ._rules import Broken, Violation
from ._script import Move
from ._signature import sign

_STOPS = {"end": "end_turn", "tool": "tool_use", "content_filter": "refusal"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MODEL_PATH = re.compile(r"/models?/([^/:]+(?::\d+)?)(?:/invoke|:rawPredict|:streamRawPredict)$")
_ENDPOINTS = {"": "create", "/count_tokens": "count_tokens", "/batches": "batches"}


class Messages:
    """The Messages API as Anthropic serves it."""

    name = "anthropic.messages"
    without_body: frozenset[str] = frozenset()

    def route(self, method: str, path: str) -> str | None:
        """One of "create", "count_tokens", "batches", or None."""
        if method != "POST":
            return None
        _, found, tail = path.partition("/v1/messages")
        if found and tail in _ENDPOINTS:
            return _ENDPOINTS[tail]
        return "create" if _MODEL_PATH.search(path) else None

    def request_id(self, ids: Ids) -> tuple[str, str]:
        """`request-id` and a new id."""
        return "request-id", ids.make("req_", 24, "011C")

    def error(self, status: int, message: str, violation: Violation | None, request_id: str) -> Json:
        """An error body; a rule with a code carries it in `details`."""
        error: Json = {"type": _TYPES.get(status, "api_error"), "message": message}
        if violation is not None:
            error["type"] = violation.rule.type
            if violation.rule.code is not None:
                error["details"] = {"error_code": violation.rule.code}
        return {"type": "error", "error": error, "request_id": request_id}

    def stream_error(self, message: str, sent: Sequence[Piece], request_id: str) -> tuple[Piece, ...]:
        """An event `error`."""
        del sent
        return (Piece(sse(self.error(529, message, None, request_id), event="error")),)

    def resolve(self, asked: Asked) -> None:
        """Takes the model from the path where it stands there, and the history of a thread from memory."""
        found = _MODEL_PATH.search(asked.path)
        if found:
            asked.body = {"model": found[1], **asked.body}
        if asked.endpoint == "create":
            _threads.resolve(asked)

    def check(self, asked: Asked) -> Iterable[Broken]:
        """Every rule that the request breaks."""
        return _messages_rules.check(asked)

    def prompt(self, asked: Asked) -> Prompt:
        """What the model gets."""
        made = _messages_prompt.prompt(asked.body)
        search = _gateway_search.search_of(asked, self.name)
        return made if search is None else replace(made, search=search)

    def count(self, asked: Asked, prompt: Prompt) -> Json | None:
        """The replies of count_tokens and batches."""
        if asked.endpoint == "count_tokens":
            return {"input_tokens": prompt.segments.total}
        return _batch(asked) if asked.endpoint == "batches" else None

    def play(self, asked: Asked, move: Move, bill: Bill) -> Played:
        """A message, and the events that stream it."""
        move, bill = _gateway_search.played(asked, self.name, move, bill)
        content, raw = _content(asked, move)
        stop = move.stop or ("refusal" if move.refusal else "tool" if raw else "end")
        stop = _STOPS.get(stop, stop)
        out = tokens(move.text) + tokens(move.thinking) + sum(tokens(text) for text in raw.values()) + 1
        billed = _passes(asked.body, content, bill)
        reply: Json = {
            "id": asked.ids.make("msg_", 24, "01"),
            "type": "message",
            "role": "assistant",
            "model": asked.model,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "stop_details": _stop_details(stop, move),
            "container": None,
            "diagnostics": None,
            "usage": _usage(billed, out, move),
            **move.message,
        }
        _remember(asked, reply)
        pieces: tuple[Piece, ...] = ()
        if asked.body.get("stream") is True:
            pieces = _messages_stream.pieces(reply, raw, _usage(bill, 1, move))
        return Played(reply, billed, pieces, out)


def _content(asked: Asked, move: Move) -> tuple[list[Json], dict[int, str]]:
    """The content blocks, and by index the text that a stream sends as the input of a call."""
    content: list[Json] = [dict(block) for block in move.before]
    if move.thinking:
        signature = sign(move.thinking, asked.ids.text(12))
        content.append({"type": "thinking", "thinking": move.thinking, "signature": signature})
    text = move.text or move.refusal
    if text:
        content.append({"type": "text", "text": text})
    content += [dict(block) for block in move.blocks]
    raw: dict[int, str] = {}
    hosted = {str(tool.get("name")) for tool in objects(asked.body.get("tools")) if is_search_tool(tool)}
    for name, arguments, *own in move.calls:
        if name in hosted:
            content += _searched(asked, name, _input(arguments), own[0] if own else None)
            continue
        raw[len(content)] = arguments if isinstance(arguments, str) else _spaced(arguments)
        id_ = own[0] if own else asked.ids.make("toolu_", 24, "01")
        content.append(
            {"type": "tool_use", "id": id_, "name": name, "input": _input(arguments), "caller": {"type": "direct"}}
        )
    return content, raw


def _searched(asked: Asked, name: str, wanted: Json, id_: str | None) -> list[Json]:
    """The call of a search that the service runs itself, and what it finds."""
    id_ = id_ or asked.ids.make("srvtoolu_", 24, "01")
    found = search(name, wanted, objects(asked.body.get("tools")))
    return [
        {"type": "server_tool_use", "id": id_, "name": name, "input": wanted, "caller": {"type": "direct"}},
        {"type": "tool_search_tool_result", "tool_use_id": id_, "content": found},
    ]


def _passes(body: Json, content: list[Json], bill: Bill) -> Bill:
    """What is billed when the service itself searched: the model then reads the prompt a second time, with the search.

    Seen in the recorded streams of pydantic-ai: 702 input tokens at the start, 1,591 in the end.
    """
    kinds = [str(block.get("type")) for block in content]
    if "tool_search_tool_result" not in kinds:
        return bill
    searched = content[: len(kinds) - kinds[::-1].index("tool_search_tool_result")]
    messages = [*as_list(body.get("messages")), {"role": "assistant", "content": searched}]
    return bill.again(_messages_prompt.prompt({**body, "messages": messages}).segments.total)


def _spaced(value: Any) -> str:
    """JSON with spaces, as the models write it."""
    import json

    return json.dumps(value, ensure_ascii=False)


def _input(arguments: Any) -> Json:
    """The arguments as the object that a whole message carries; text that is none is wrapped as the vendor does."""
    if not isinstance(arguments, str):
        return dict(arguments)
    parsed = parse_object(arguments)
    return {"INVALID_JSON": arguments} if parsed is None else parsed


def _stop_details(stop: str, move: Move) -> Json | None:
    if stop != "refusal":
        return None
    return {"type": "refusal", "category": None, "explanation": move.refusal or None}


def _usage(bill: Bill, out: int, move: Move) -> Json:
    return {
        "input_tokens": bill.uncached,
        "cache_creation_input_tokens": bill.writes,
        "cache_read_input_tokens": bill.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": bill.written.get("5m", 0),
            "ephemeral_1h_input_tokens": bill.written.get("1h", 0),
        },
        "output_tokens": out,
        "service_tier": "standard",
        **move.usage,
    }


def _remember(asked: Asked, reply: Json) -> None:
    """Keeps what later requests are judged by: thinking, and the thread if there is one."""
    thinking = [block for block in reply["content"] if block.get("type") in ("thinking", "redacted_thinking")]
    for block in reply["content"]:
        if block.get("type") == "tool_use":
            asked.memory.issued[block["id"]] = thinking
    if thinking:
        digest = _messages_prompt.digests(asked.body)[-1]
        for block in thinking:
            asked.memory.bound[str(block.get("signature"))] = digest
    _messages_changes.remember(asked, reply)
    _threads.remember(asked, reply)


def _batch(asked: Asked) -> Json:
    count = len(as_list(asked.body.get("requests")))
    return {
        "id": asked.ids.make("msgbatch_", 24, "01"),
        "type": "message_batch",
        "processing_status": "in_progress",
        "request_counts": {"processing": count, "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0},
        "created_at": "2026-11-30T00:00:00Z",
        "expires_at": "2026-12-01T00:00:00Z",
        "ended_at": None,
        "archived_at": None,
        "cancel_initiated_at": None,
        "results_url": None,
    }
