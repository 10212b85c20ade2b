"""The part of one wrapped call that does no IO, shared by the synchronous and the asynchronous driver."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from loadpoint._adapter import reports
from loadpoint._agreeing import agreed, unheard
from loadpoint._driven import EXTENSION
from loadpoint._json import Json, digest, dumps
from loadpoint._plan import Request

from ._aside import aside, fed
from ._response import WATCHED, Rounds, from_bytes, reply_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from loadpoint._driven import Beginner, Driven

    from ._compatibility import Compat

T = TypeVar("T")
RAW = "X-Stainless-Raw-Response"
OURS = ("x-loadpoint", "x-loadpoint-conversation")
SECRET = frozenset({"authorization", "x-api-key", "api-key"})
KEY = "idempotency-key"


class Exchange:
    """The part of one wrapped call that does no IO: the options of each round, and what the caller gets."""

    def __init__(self, compat: Compat, client: Any, session: Beginner | None, options: Any, body: Json | None) -> None:
        self._compat = compat
        self._client = client
        self._session = session
        headers = compat.headers(options)
        self.mode = next((value for name, value in headers.items() if name.lower() == RAW.lower()), None)
        self.options = self._without_ours(options, headers)
        # The parameters of a request without a body stand where a body has them.
        self._body: Json = dict(options.params or {}) if body is None else body
        self._retries = 0
        self._sent = time.perf_counter()
        self.call: Driven | None = None
        if session is not None:
            request = self._request(options, self._body)
            self.call = None if body is None else session.begin(request)
            self.call = self.call or session.stored(request)

    def _without_ours(self, options: Any, headers: dict[str, Any]) -> Any:
        """The caller's own options, unless they carry headers that are meant for us alone."""
        kept = {name: value for name, value in headers.items() if name.lower() not in OURS}
        for name in self._client_headers():
            if name.lower() in OURS:
                kept[name] = self._compat.omit()
        if kept == headers:
            return options
        options = options.model_copy()
        options.headers = kept
        return options

    def _request(self, options: Any, body: Json) -> Any:
        layers = (self._client_headers(), self._compat.headers(options))
        given = {name.lower(): value for layer in layers for name, value in layer.items()}
        headers = {name: value for name, value in given.items() if isinstance(value, str)}
        secrets = [value for name, value in sorted(headers.items()) if name in SECRET]
        url = urlsplit(str(options.url))
        return Request(
            method=options.method.upper(),
            path="/" + url.path.lstrip("/"),
            body=body,
            headers={k: v for k, v in headers.items() if k not in SECRET and not k.startswith("x-stainless-")},
            base_url=f"{url.scheme}://{url.netloc}/" if url.scheme else str(getattr(self._client, "base_url", "")),
            credential="\n".join(secrets) or self._compat.credential(self._client),
        )

    def _client_headers(self) -> Mapping[str, Any]:
        return {} if self._client is None else self._compat.client_headers(self._client)

    @property
    def streaming(self) -> bool:
        """Whether the rounds are streams."""
        return self.running.streaming

    @property
    def running(self) -> Driven:
        """The call, for drivers that have checked that there is one."""
        return cast("Driven", self.call)

    def once(self) -> Any:
        """The options of a call that takes one request, whose reply goes back as it is."""
        options = self._edited(self.running.body)
        if not self.streaming:
            self._compat.after(options, self._register)
        return options

    def next(self, body: Json) -> Any:
        """The options of a hidden round with this body."""
        options = self._edited(body)
        headers = {name: value for name, value in options.headers.items() if name.lower() != RAW.lower()}
        # sent raw, but with the caller's own cast_to: instrumentation above the SDK sees a typed reply per round
        options.headers = {**headers, RAW: self._compat.raw}
        self._compat.hide(options)
        self._sent = time.perf_counter()
        return options

    def _edited(self, body: Json) -> Any:
        untouched = body is self._body  # then it goes out byte for byte as the SDK would send it
        options = self.options.model_copy() if untouched else self._compat.with_body(self.options, dict(body))
        if self.running.renames:
            options.url = renamed(str(options.url), self.running.renames)
        edits = {name.lower(): value for name, value in self.running.headers.items()}
        headers: dict[str, Any] = {}
        for name, value in self._compat.headers(options).items():
            if name.lower() not in edits:
                headers[name] = rotated(value, body, self._body) if name.lower() == KEY else value
        # spelled as the client's own header of that name, which some versions would send beside it otherwise
        spelled = {name.lower(): name for name in self._client_headers()}
        for name, value in edits.items():
            headers[spelled.get(name, name)] = self._compat.omit() if value is None else value
        options.headers = headers
        options.idempotency_key = rotated(options.idempotency_key, body, self._body)
        return options

    def received(self, value: Any) -> Any:
        """The HTTP response of a hidden round."""
        self._retries += self._compat.retries(value)
        response = self._compat.http_response(self._client, self.options, value)
        if self.streaming:
            response.extensions[WATCHED] = self._compat.watched(value)
        return response

    def instead(self, error: BaseException) -> Json:
        """The next body after an error of a round that refuses the form of that round; raises any other error again."""
        refused = self._compat.refused(error)
        body = None if refused is None else self.running.rejected(*refused)
        if body is None:
            self.running.failed()
            raise error
        return body

    def rounds(self) -> Rounds:
        """The rounds of a stream; made before the first is sent."""
        return Rounds(self.running, self._compat.framing, self._compat.request_id, session=self._session)

    def feed(self, response: Any) -> tuple[bool, Json | None]:
        """Give a reply to the call: whether it could read it, and the next body."""
        reply = reply_in(response.content)
        if reply is None:  # not for us to judge: the SDK says what it makes of it
            self.running.failed()
            return False, None
        ms = (time.perf_counter() - self._sent) * 1000
        return True, self.running.feed(reply, request_id=response.headers.get(self._compat.request_id), ms=ms)

    async def feed_async(self, response: Any) -> tuple[bool, Json | None]:
        """The same beside the event loop, where the ledger may wait."""
        return await fed(self._session, self.feed, response, left=self.running.failed)

    def decided(self, body: Json | None) -> Json | None:
        """The next body, once a question of the call is answered; here nobody can wait for the answer."""
        call = self.running
        return body if call.question is None else call.decided(unheard(call))

    async def decided_async(self, body: Json | None) -> Json | None:
        """The same for an asynchronous client, which waits for it."""
        call = self.running
        return body if call.question is None else await aside(self._session, call.decided, await agreed(call))

    def merged(self, response: Any, *, read: bool) -> Any:
        """The response that the caller's SDK parses, made of the last round's."""
        if read and self.running.changed:
            return from_bytes(response, dumps(self.running.result).encode(), self.running)
        if self.mode == "stream":  # the caller is going to read it
            return from_bytes(response, response.content, self.running)
        response.extensions[EXTENSION] = self.running
        return response

    def whole(self) -> bool:
        """Whether the SDK expects a response that has been read."""
        return self.mode != "stream"

    def given(self, cast_to: Any, response: Any, stream: bool, stream_cls: Any) -> dict[str, Any]:
        """The arguments with which the SDK makes the caller's value of the response."""
        if response.request.headers.get(RAW) != self.mode:
            response.request = self._as_asked(response.request)
        options = self.options.model_copy()
        if not stream:
            self._compat.after(options, self._register)
        return {
            "cast_to": cast_to,
            "options": options,
            "response": response,
            "stream": stream,
            "stream_cls": stream_cls,
            "retries_taken": self._retries,
        }

    def _as_asked(self, request: Any) -> Any:
        """The request with the caller's raw-response header: the SDK looks there to decide what to hand back.

        A copy: what was sent may be signed, and others may have kept it.
        """
        made: Any = object.__new__(request.__class__)
        made.__dict__.update(request.__dict__)
        made.headers = request.headers.copy()
        made.headers.pop(RAW, None)
        if self.mode is not None:
            made.headers[RAW] = self.mode
        return made

    def _register(self, value: Any) -> None:
        reports.remember(value, self.running.report)

    def attach(self, value: T) -> T:
        """`value`, with its report where `report` looks for that of a stream or a raw response."""
        for name in ("http_response", "response"):
            extensions = getattr(getattr(value, name, None), "extensions", None)
            if isinstance(extensions, dict):
                extensions[EXTENSION] = self.running
        return value


def rotated(key: Any, body: Json, first: Json) -> Any:
    """A caller's idempotency key for this body: another body needs another key, the same one on every retry."""
    if not isinstance(key, str) or body == first:
        return key
    return f"{key}-{digest(dumps(body))[:12]}"


def renamed(url: str, renames: Mapping[str, str]) -> str:
    """A path, or a whole address, with other ids in it."""
    path, mark, query = url.partition("?")
    return "/".join(renames.get(part, part) for part in path.split("/")) + mark + query
