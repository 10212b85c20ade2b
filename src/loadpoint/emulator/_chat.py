"""The dialect `openai.chat`: POST */chat/completions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .._json import Json, as_list, as_object, canonical, dumps, parse_object
from . import _chat_rules, _chat_server_tools, _chat_stream
from ._answer import Piece, sse
from ._cache import Bill, Part
from ._chat_references import brought_by, defers, function_of, is_deferred, references
from ._count import tokens
from ._dialect import Asked, Played, Prompt
from ._ids import Ids
from ._rules import Broken, Violation
from ._script import Called, Move, Shown

_SETTINGS = ("parallel_tool_calls", "response_format", "reasoning_effort", "verbosity")
_STOPS = {"end": "stop", "tool": "tool_calls", "max_tokens": "length", "refusal": "stop", "pause_turn": "stop"}
_TYPES = {401: "authentication_error", 429: "requests", 500: "server_error", 503: "server_error", 529: "server_error"}


class Chat:
    """Chat Completions as OpenAI serves it; system messages that carry `tools` as Moonshot does."""

    name = "openai.chat"
    without_body: frozenset[str] = frozenset()

    def route(self, method: str, path: str) -> str | None:
        """The endpoint "create" for */chat/completions, else None."""
        return "create" if method == "POST" and path.endswith("/chat/completions") else None

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
        """An event that is an error body."""
        del sent
        return (Piece(sse(self.error(529, message, None, request_id))),)

    def resolve(self, asked: Asked) -> None:
        """Nothing is held by the server in this dialect."""

    def check(self, asked: Asked) -> Iterable[Broken]:
        """Every rule that the request breaks."""
        return _chat_rules.check(asked)

    def prompt(self, asked: Asked) -> Prompt:
        """Tools, then messages; the parameters that OpenAI lists as part of the prefix stand before them."""
        body = asked.body
        tools = [tool for tool in map(as_object, as_list(body.get("tools"))) if tool]
        messages = [message for message in map(as_object, as_list(body.get("messages"))) if message]
        deferred = {_name(tool): tool for tool in tools if is_deferred(tool)} if defers(asked) else {}
        tools = [tool for tool in tools if _name(tool) not in deferred]
        brought = brought_by(messages, deferred)
        late = [tool for tools_ in brought for tool in tools_]
        parts = [Part("settings", canonical({key: body[key] for key in _SETTINGS if body.get(key) is not None}))]
        parts += [Part("tools", _tool_text(tool)) for tool in tools]
        parts += _message_parts(messages, brought)
        options = as_object(body.get("prompt_cache_options")) or {}
        shown = tuple(item for item in map(_shown, [*tools, *late]) if item is not None)
        loaded = tuple(dict.fromkeys(tool.name for tool in map(_shown, late) if tool is not None))
        choice, allowed = _choice(body)
        return Prompt(
            parts=parts,
            shown=shown,
            deferred=tuple(name for name in deferred if name not in loaded),
            loaded=loaded,
            history=_history(messages),
            texts=_texts(messages),
            choice=choice if shown or deferred else "none",
            allowed=allowed,
            scope=(str(body.get("prompt_cache_key") or ""),),
            search=_chat_server_tools.search_of(asked),
            explicit_only=options.get("mode") == "explicit",
        )

    def count(self, asked: Asked, prompt: Prompt) -> Json | None:
        """None: the dialect has no counting endpoint."""
        del asked, prompt
        return None

    def play(self, asked: Asked, move: Move, bill: Bill) -> Played:
        """A `chat.completion`, and the `chat.completion.chunk`s that stream it."""
        move, bill = _searched(asked, move, bill)
        message, out = _message(asked.ids, move)
        stop = move.stop or ("tool" if move.calls else "end")
        choices = [
            {"index": index, "message": message, "logprobs": None, "finish_reason": _STOPS.get(stop, stop)}
            for index in range(_choices(asked.body))
        ]
        reply: Json = {
            "id": asked.ids.make("chatcmpl-", 29),
            "object": "chat.completion",
            "created": 1_790_000_000 + asked.number,
            "model": asked.model,
            "choices": choices,
            "usage": _usage(bill, out * len(choices), move),
            "service_tier": "default",
            "system_fingerprint": None,
        }
        pieces: tuple[Piece, ...] = ()
        if asked.body.get("stream") is True:
            options = as_object(asked.body.get("stream_options")) or {}
            pieces = _chat_stream.pieces(reply, include_usage=options.get("include_usage") is True)
        return Played(reply, bill, pieces, out * len(choices))


def _searched(asked: Asked, move: Move, bill: Bill) -> tuple[Move, Bill]:
    """The move without the calls of the host's own search, and what its passes over the prompt are billed."""
    search = _chat_server_tools.search_of(asked)
    total = bill.total
    for call in move.calls:
        if search is not None and call[0] == search:
            total += _chat_server_tools.size(_chat_server_tools.found(asked, call[1]))
            bill = bill.again(total)
    return move.but(calls=[call for call in move.calls if search is None or call[0] != search]), bill


def _choices(body: Json) -> int:
    """How many choices a request asks for."""
    wanted = body.get("n")
    return wanted if isinstance(wanted, int) and 1 <= wanted <= 128 else 1


def text_of(content: Any) -> str:
    """The text of a message's content, whether it is text or a list of parts."""
    if isinstance(content, str):
        return content
    parts = [part for part in map(as_object, as_list(content)) if part]
    return "\n".join(str(part.get("text", "")) for part in parts if part.get("type") == "text")


def _name(tool: Json) -> str:
    return str(function_of(tool).get("name"))


def _tool_text(tool: Json) -> str:
    function = {key: value for key, value in function_of(tool).items() if key != "defer_loading"}
    return dumps(function or tool)


def _shown(tool: Json) -> Shown | None:
    function = function_of(tool)
    name = function.get("name")
    if not isinstance(name, str):
        return None
    return Shown(name, str(function.get("description") or ""), as_object(function.get("parameters")) or {})


def _message_parts(messages: Sequence[Json], brought: Sequence[Sequence[Json]]) -> list[Part]:
    """One part per message. Equal content in another shape (text or one text part, key order) is the same part."""
    parts: list[Part] = []
    leading = True
    for at, message in enumerate(messages):
        role = message.get("role")
        following = messages[at + 1].get("role") if at + 1 < len(messages) else None
        leading = leading and role in ("system", "developer")
        eligible = role == "user" or (role == "tool" and following != "tool")
        if leading and following not in ("system", "developer"):
            eligible = True
        segment = "system" if leading else "messages"
        parts.append(Part(segment, _message_text(message, brought[at]), _marker(message), eligible))
    return parts


def _message_text(message: Json, brought: Sequence[Json]) -> str:
    plain = {key: value for key, value in message.items() if value is not None and key not in ("content", "tools")}
    content = message.get("content")
    body = text_of(content)
    if not isinstance(content, str):
        other = [part for part in map(as_object, as_list(content)) if part and part.get("type") != "text"]
        body += "".join(canonical(part) for part in other)
    late = "".join(_tool_text(tool) for tool in brought)
    return canonical(plain) + body + late


def _marker(message: Json) -> str | None:
    for part in map(as_object, as_list(message.get("content"))):
        breakpoint_ = as_object((part or {}).get("prompt_cache_breakpoint"))
        if breakpoint_ is not None:
            return str(breakpoint_.get("ttl") or "30m")
    return None


def _history(messages: Sequence[Json]) -> tuple[Called, ...]:
    results = {str(message.get("tool_call_id")): message for message in messages if message.get("role") == "tool"}
    last_user = max((at for at, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    history: list[Called] = []
    for at, message in enumerate(messages):
        for call in map(as_object, as_list(message.get("tool_calls"))):
            function = as_object((call or {}).get("function")) or {}
            id_ = str((call or {}).get("id"))
            arguments = parse_object(str(function.get("arguments") or "")) or {}
            result = results.get(id_)
            text = None if result is None else text_of(result.get("content"))
            found = () if result is None else tuple(references(result))
            history.append(Called(str(function.get("name")), id_, arguments, text, False, found, at > last_user))
    return tuple(history)


def _texts(messages: Sequence[Json]) -> tuple[str, ...]:
    return tuple(text_of(message.get("content")) for message in messages if message.get("role") == "user")


def _choice(body: Json) -> tuple[str, frozenset[str] | None]:
    choice = body.get("tool_choice")
    if choice is None or isinstance(choice, str):
        return choice or "auto", None
    described = as_object(choice) or {}
    if described.get("type") == "allowed_tools":
        listed = as_object(described.get("allowed_tools")) or {}
        names = [function_of(tool).get("name") for tool in map(as_object, as_list(listed.get("tools"))) if tool]
        return str(listed.get("mode") or "auto"), frozenset(str(name) for name in names)
    return str(function_of(described).get("name")), None


def _message(ids: Ids, move: Move) -> tuple[Json, int]:
    """The reply message and its tokens; thinking is counted, never shown."""
    calls: list[Json] = []
    for name, arguments, *own in move.calls:
        text = arguments if isinstance(arguments, str) else dumps(arguments)
        id_ = own[0] if own else ids.make("call_", 24)
        calls.append({"id": id_, "type": "function", "function": {"name": name, "arguments": text}})
    message: Json = {
        "role": "assistant",
        "content": move.text or (None if calls or move.refusal else ""),
        "refusal": move.refusal or None,
        "annotations": [],
        **({"tool_calls": calls} if calls else {}),
        **move.message,
    }
    out = tokens(move.text) + tokens(move.thinking) + tokens(move.refusal)
    return message, out + sum(tokens(dumps(call["function"])) for call in calls) + 1


def _usage(bill: Bill, out: int, move: Move) -> Json:
    details: Json = {"cached_tokens": bill.cached, "audio_tokens": 0}
    if bill.writes:
        details["cache_write_tokens"] = bill.writes
    return {
        "prompt_tokens": bill.total,
        "completion_tokens": out,
        "total_tokens": bill.total + out,
        "prompt_tokens_details": details,
        "completion_tokens_details": {
            "reasoning_tokens": tokens(move.thinking),
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
        **move.usage,
    }
