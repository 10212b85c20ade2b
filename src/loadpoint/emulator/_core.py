"""The emulator itself: HTTP requests in, HTTP answers out, no sockets. The servers and transports are thin shells."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .._json import Json, as_object, dumps
from ._answer import Answer, Exchange, Piece, RejectedError, json_piece
from ._cache import PromptCache
from ._dialect import Asked, Dialect, Played, Prompt, dialects
from ._ids import Ids
from ._memory import Memory
from ._rules import Rule, RuleBook, Strictness, Violation, book, ignores, rejects
from ._script import Move, Script, Turn

_log = logging.getLogger("loadpoint.emulator")
_EVENTS = "text/event-stream; charset=utf-8"
_NEUTRAL = Rule("emulator", "", 400, "", "", "", "documented")


class Emulator:
    """The services, played by a script.

    `script` is a `Script`, a function from `Turn` to `Move`, or a list of moves; without one the demo model answers.
    `rules` is "strict" (documented and reported rules reject), "all" (assumed ones too) or "off"; `ignore` names rules
    (ids or fnmatch patterns) that only warn. `seed` makes the ids of one emulator differ from another's. `exchanges`
    lists what happened, oldest first. Safe to use from several threads; requests are answered one after the other,
    their bodies are delivered side by side.
    """

    def __init__(
        self,
        script: Script | Callable[[Turn], Move] | Sequence[Move | Callable[[Turn], Move]] | None = None,
        *,
        rules: Strictness = "strict",
        ignore: Iterable[str] = (),
        seed: str = "",
    ) -> None:
        if rules not in ("strict", "all", "off"):
            raise ValueError(f"Emulator.rules: {rules!r}; allowed: 'strict', 'all', 'off'")
        self.script = _as_script(script)
        self.rules: Strictness = rules
        self.ignore = tuple(ignore)
        self.seed = seed
        self.exchanges: list[Exchange] = []
        self._dialects = dialects()
        self._book: RuleBook = book()
        self._lock = threading.RLock()
        self._cache = PromptCache()
        self._memory = Memory()
        self._model_requests = 0

    def reset(self, script: Script | Callable[[Turn], Move] | Sequence[Any] | None = None) -> None:
        """Forget exchanges, caches and held conversations; the script starts again (or is replaced by `script`)."""
        with self._lock:
            self.exchanges.clear()
            self._cache = PromptCache()
            self._memory = Memory()
            self._model_requests = 0
            if script is not None:
                self.script = _as_script(script)
            self.script.reset()

    def forget_caches(self) -> None:
        """What the passing of time does: prompt caches expire, conversations that the server holds stay."""
        with self._lock:
            self._cache = PromptCache()

    @property
    def requests(self) -> list[Json]:
        """The JSON bodies of the requests that ran the model, oldest first, rejected ones included."""
        return [item.request for item in self.exchanges if item.endpoint == "create" and item.request is not None]

    def handle(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The answer to one HTTP request. Never raises for anything that a client can send."""
        lowered = {name.lower(): value for name, value in headers.items()}
        path = urlsplit(url).path
        with self._lock:
            exchange = Exchange(
                number=len(self.exchanges) + 1, method=method.upper(), url=url, path=path, headers=lowered, raw=body
            )
            self.exchanges.append(exchange)
            answer = self._answer(exchange)
        exchange.status = answer.status
        answer.exchange = exchange
        return answer

    def _answer(self, exchange: Exchange) -> Answer:
        ids = Ids(self.seed, exchange.number, exchange.raw)
        served = self._route(exchange)
        if served is None:
            return _plain_error(exchange, 404, f"Invalid URL ({exchange.method} {exchange.path})")
        dialect, exchange.endpoint = served
        exchange.dialect = dialect.name
        header, request_id = dialect.request_id(ids)
        try:
            answer = self._serve(exchange, dialect, ids, request_id)
        except RejectedError as error:
            exchange.error = error.message
            exchange.rule = error.rule
            exchange.reply = error.body
            answer = Answer(error.status, {"content-type": "application/json"}, json_piece(error.body))
        answer.headers = {header: request_id, **answer.headers}
        return answer

    def _route(self, exchange: Exchange) -> tuple[Dialect, str] | None:
        for dialect in self._dialects:
            endpoint = dialect.route(exchange.method, exchange.path)
            if endpoint is not None:
                return dialect, endpoint
        return None

    def _serve(self, exchange: Exchange, dialect: Dialect, ids: Ids, request_id: str) -> Answer:
        bodyless = not exchange.raw and exchange.endpoint in dialect.without_body
        body = {} if bodyless else _parse(exchange.raw)
        if body is None:
            message = "We could not parse the JSON body of your request."
            raise RejectedError(400, dialect.error(400, message, None, request_id), message=message)
        exchange.request = body
        exchange.stream = exchange.endpoint == "create" and body.get("stream") is True
        asked = Asked(
            endpoint=exchange.endpoint,
            host=urlsplit(exchange.url).hostname or "",
            path=exchange.path,
            headers=exchange.headers,
            body=body,
            query=dict(parse_qsl(urlsplit(exchange.url).query)),
            book=self._book,
            memory=self._memory,
            ids=ids,
        )
        dialect.resolve(asked)
        self._judge(exchange, dialect, asked, request_id)
        prompt = dialect.prompt(asked)
        exchange.tokens = prompt.segments
        exchange.loaded = prompt.loaded
        counted = dialect.count(asked, prompt)
        if counted is not None:
            return _served(exchange, counted)
        self._model_requests += 1
        asked.number = self._model_requests
        move = self.script(_turn(dialect, asked, prompt, exchange))
        if move.status != 200:
            return _fault(exchange, dialect, move, request_id)
        return self._play(exchange, dialect, asked, prompt, move, request_id)

    def _judge(self, exchange: Exchange, dialect: Dialect, asked: Asked, request_id: str) -> None:
        warned: list[str] = []
        for fault in dialect.check(asked):
            violation = self._book.violation(fault)
            rule = violation.rule
            if not rule.applies_at(asked.host):
                continue
            if rejects(rule, self.rules, self.ignore):
                exchange.warnings = tuple(warned)
                raise RejectedError(
                    rule.status,
                    dialect.error(rule.status, violation.message, violation, request_id),
                    rule=rule.id,
                    message=violation.message,
                )
            warned.append(rule.id)
            if ignores(rule, self.ignore):
                continue
            _log.warning("request %d breaks %s (%s): %s", exchange.number, rule.id, rule.grade, violation.message)
        exchange.warnings = tuple(warned)

    def _play(
        self, exchange: Exchange, dialect: Dialect, asked: Asked, prompt: Prompt, move: Move, request_id: str
    ) -> Answer:
        row = self._book.cache_row(dialect.name, asked.model)
        scope = dumps([dialect.name, _credential(exchange.headers), asked.model, *prompt.scope])
        bill = self._cache.bill(scope, row, prompt.parts, explicit_only=prompt.explicit_only)
        played = dialect.play(asked, move, bill)
        exchange.reply = played.reply
        exchange.cached_tokens = played.bill.cached
        exchange.written_tokens = played.bill.writes
        exchange.uncached_tokens = played.bill.uncached
        exchange.common_tokens = bill.common
        exchange.output_tokens = played.output_tokens
        if exchange.stream:
            kind, pieces = _EVENTS, played.pieces
        else:
            kind, pieces = "application/json", json_piece(played.reply)
        pieces, cut = _cut(pieces, move)
        if cut and move.stream_error:
            pieces, cut = (*pieces, *dialect.stream_error(move.stream_error, pieces, request_id)), False
        return Answer(200, {"content-type": kind, **move.headers}, _paced(pieces, move), cut)


def _as_script(script: Script | Callable[[Turn], Move] | Sequence[Any] | None) -> Script:
    if isinstance(script, Script):
        return script
    if script is None or callable(script):
        return Script(script)
    return Script.sequence(script)


def _parse(raw: bytes) -> Json | None:
    try:
        return as_object(json.loads(raw))
    except (ValueError, RecursionError):
        return None


def _turn(dialect: Dialect, asked: Asked, prompt: Prompt, exchange: Exchange) -> Turn:
    return Turn(
        dialect=dialect.name,
        model=asked.model,
        number=asked.number,
        text=prompt.texts[-1] if prompt.texts else "",
        texts=prompt.texts,
        tools=prompt.shown,
        deferred=prompt.deferred,
        history=prompt.history,
        choice=prompt.choice,
        search=prompt.search,
        allowed=prompt.allowed,
        stream=exchange.stream,
        body=asked.body,
        headers=exchange.headers,
    )


def _credential(headers: Mapping[str, str]) -> str:
    return headers.get("authorization") or headers.get("x-api-key") or headers.get("api-key") or ""


def _fault(exchange: Exchange, dialect: Dialect, move: Move, request_id: str) -> Answer:
    message = move.text or {429: "Rate limit reached.", 529: "Overloaded"}.get(move.status, "The scripted failure.")
    violation = None if move.status != 400 else Violation(_NEUTRAL, message, None)
    body = dialect.error(move.status, message, violation, request_id) if move.error is None else move.error
    exchange.error = message
    exchange.reply = body
    pieces = json_piece(body, after=move.delay)
    return Answer(move.status, {"content-type": "application/json", **move.headers}, pieces)


def _served(exchange: Exchange, given: Json | Played) -> Answer:
    """The answer of an endpoint that runs no model."""
    if isinstance(given, Played):
        exchange.reply, exchange.stream = given.reply, True
        return Answer(200, {"content-type": _EVENTS}, given.pieces)
    exchange.reply = given
    return Answer(200, {"content-type": "application/json"}, json_piece(given))


def _plain_error(exchange: Exchange, status: int, message: str) -> Answer:
    body: Json = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
    exchange.error = message
    exchange.reply = body
    return Answer(status, {"content-type": "application/json"}, json_piece(body))


def _cut(pieces: tuple[Piece, ...], move: Move) -> tuple[tuple[Piece, ...], bool]:
    cut = False
    if move.cut_events is not None and move.cut_events < len(pieces):
        pieces, cut = pieces[: move.cut_events], True
    if move.cut_bytes is not None and move.cut_bytes < sum(len(piece.data) for piece in pieces):
        kept: list[Piece] = []
        left = move.cut_bytes
        for piece in pieces:
            kept.append(Piece(piece.data[:left], piece.after))
            left -= len(piece.data)
            if left <= 0:
                break
        pieces, cut = tuple(kept), True
    return pieces, cut


def _paced(pieces: tuple[Piece, ...], move: Move) -> tuple[Piece, ...]:
    if not (move.delay or move.pace):
        return pieces
    return tuple(Piece(piece.data, move.pace if at else move.delay) for at, piece in enumerate(pieces))


__all__ = ["Emulator"]
