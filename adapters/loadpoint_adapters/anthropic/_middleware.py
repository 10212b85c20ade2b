"""The second way in: the SDK's public `middleware=`, for clients that somebody else makes.

It runs inside the SDK's retry loop, once per attempt. So an error of a later round goes back to the SDK as it is; when
the SDK tries again, the session resumes with the rounds that are paid for. An open stream has no retry loop around it
any more: its later rounds are sent through a sibling client that has only the middleware behind this one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, cast

import anthropic

from .._aside import aside
from .._driving import alone, alone_async
from .._exchange import Exchange
from .._response import Rounds, spliced
from ._compat import AnthropicCompat, client_behind, is_response, rewrapped, without

if TYPE_CHECKING:
    from loadpoint._driven import Beginner, Driven
    from loadpoint._json import Json
    from loadpoint._ledger import Ledger
    from loadpoint._policy import Policy
    from loadpoint._report import CallReport

_COMPAT = AnthropicCompat()


def middleware(
    policy: Policy | None = None,
    *,
    ledger: Ledger | None = None,
    on_report: Callable[[CallReport], None] | None = None,
) -> anthropic.Middleware:
    """Middleware for `Anthropic(middleware=[...])`, synchronous or asynchronous, that does what `wrap` does.

    The environment variable LOADPOINT is read here. On a client that is also wrapped it stands aside. Raises
    `PolicyError` for a bad LOADPOINT.
    """
    from loadpoint._adapter import session_factory

    return _Middleware(session_factory(policy, ledger=ledger, on_report=on_report)(_COMPAT.dialects()))


class _Attempt(Exchange):
    """One attempt of the SDK at a call; its rounds are requests to the rest of the chain."""

    def __init__(self, session: Beginner | None, request: anthropic.APIRequest, client: object) -> None:
        self._request_given = request
        super().__init__(_COMPAT, client, session, request.options, _COMPAT.body(request.options))

    def asked(self, options: Any) -> anthropic.APIRequest:
        """The attempt's request with other options."""
        given = self._request_given
        if options is given.options:
            return given
        return anthropic.APIRequest(
            options=options,
            cast_to=given.cast_to,
            stream=given.stream,
            stream_cls=given.stream_cls,
            retries_taken=given.retries_taken,
        )

    @contextlib.contextmanager
    def paying(self) -> Generator[None, None, None]:
        """Keep what was paid for if the round in this block fails, for the SDK's next attempt."""
        try:
            yield
        except BaseException:
            self.running.failed()
            raise

    def is_reply(self, result: object) -> bool:
        """Whether this is a reply to go on with; else an error, or other middleware's value."""
        return is_response(result) and cast(Any, result).http_response.is_success

    def in_place_of(self, result: object) -> Json | None:
        """The next body after a result that is no reply and has been read, if it refuses the form of its request."""
        body: Json | None = None
        if is_response(result):
            response = cast(Any, result).http_response
            body = self.running.rejected(response.status_code, response.text)
        if body is None:
            self.running.failed()
        return body

    def handed(self, result: Any, response: Any) -> Any:
        """The SDK's response object around what the rounds amount to."""
        request = self._request_given
        given = self.given(request.cast_to, response, request.stream, request.stream_cls)
        return self.attach(rewrapped(result, response, given["options"]))

    def sibling(self, result: Any, own: anthropic.Middleware) -> Callable[[Json], Any]:
        """Sends a later round of an open stream through a client without this middleware."""
        request, client = self._request_given, without(result, own)

        def send(body: Json) -> Any:
            options = self.next(body)
            return client.request(request.cast_to, options, stream=request.stream, stream_cls=request.stream_cls)

        return send

    def streamed(self, result: Any, rounds: Rounds, own: anthropic.Middleware) -> Any:
        """The caller's stream, the first round being open."""
        rounds.next(self.received(result))
        send = alone(self.sibling(result, own))

        def later(body: Json) -> Any:
            while True:
                try:
                    return self.received(send(body))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = self.instead(error)

        return self.handed(result, spliced(rounds, later, asynchronous=False))

    def streamed_async(self, result: Any, rounds: Rounds, own: anthropic.Middleware) -> Any:
        """The same for an asynchronous client."""
        rounds.next(self.received(result))
        send = alone_async(self.sibling(result, own))

        async def later(body: Json) -> Any:
            while True:
                try:
                    return self.received(await send(body))
                except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                    body = self.instead(error)

        return self.handed(result, spliced(rounds, later, asynchronous=True))


class _Middleware(anthropic.Middleware):
    def __init__(self, session: Beginner) -> None:
        self._session = session

    def _attempt(self, request: anthropic.APIRequest, call_next: object) -> _Attempt:
        client = client_behind(call_next)
        return _Attempt(None if hasattr(client, "_loadpoint") else self._session, request, client)

    def handle(self, request: anthropic.APIRequest, call_next: Callable[..., Any]) -> Any:
        """Drive the rounds of a synchronous client's call."""
        attempt, call_next = self._attempt(request, call_next), alone(call_next)
        call = attempt.call
        if call is None:
            return call_next(attempt.asked(attempt.options))
        if not call.exchange:
            return attempt.attach(call_next(attempt.asked(attempt.once())))
        rounds = _rounds(attempt, call)
        body: Json | None = call.body
        result: Any = None
        read = False
        while body is not None:
            with attempt.paying():
                result = call_next(attempt.asked(attempt.next(body)))
            if not attempt.is_reply(result):
                if is_response(result):
                    result.http_response.read()
                body = attempt.in_place_of(result)
                if body is None:
                    return result
                continue
            if rounds is not None:
                return attempt.streamed(result, rounds, self)
            read, body = attempt.feed(attempt.received(result))
            body = attempt.decided(body)
        response = attempt.merged(result.http_response, read=read)
        response.read()
        return attempt.handed(result, response)

    async def handle_async(self, request: anthropic.APIRequest, call_next: Callable[..., Any]) -> Any:
        """Drive the rounds of an asynchronous client's call."""
        attempt = await aside(self._session, self._attempt, request, call_next)
        call_next = alone_async(call_next)
        call = attempt.call
        if call is None:
            return await call_next(attempt.asked(attempt.options))
        if not call.exchange:
            return attempt.attach(await call_next(attempt.asked(attempt.once())))
        rounds = _rounds(attempt, call)
        body: Json | None = call.body
        result: Any = None
        read = False
        while body is not None:
            with attempt.paying():
                result = await call_next(attempt.asked(attempt.next(body)))
            if not attempt.is_reply(result):
                if is_response(result):
                    await result.http_response.aread()
                body = attempt.in_place_of(result)
                if body is None:
                    return result
                continue
            if rounds is not None:
                return attempt.streamed_async(result, rounds, self)
            read, body = await attempt.feed_async(attempt.received(result))
            body = await attempt.decided_async(body)
        response = attempt.merged(result.http_response, read=read)
        await response.aread()
        return attempt.handed(result, response)


def _rounds(attempt: _Attempt, call: Driven) -> Rounds | None:
    return attempt.rounds() if call.streaming else None
