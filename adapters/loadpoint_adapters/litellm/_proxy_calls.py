"""One call through the LiteLLM Proxy: its first round is the Proxy's own, further ones are calls of the same Router."""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from loadpoint._agreeing import agreed
from loadpoint._carrier import Carrier
from loadpoint._json import Json, as_object, digest

from .._aside import aside, fed
from ._exchange import OURS, Exchange
from ._streams import Rounds, aclose

if TYPE_CHECKING:
    from loadpoint._driven import Beginner
    from loadpoint._plan import Request

    from ._routes import Place
    from ._wire import Wire

log = logging.getLogger("loadpoint")
_PROXYS = frozenset(
    {"deployment", "guardrails", "litellm_call_id", "litellm_logging_obj", "proxy_server_request", "secret_fields"}
)
"""What the Proxy puts beside the arguments of a request: of one round, or no business of the provider's."""
_BUCKETS = ("metadata", "litellm_metadata")


class ProxyExchange(Exchange):
    """The exchange of a call that belongs to a tenant: the deployments' own keys do not tell tenants apart."""

    def __init__(self, wire: Wire, session: Beginner, given: dict[str, Any], place: Place, tenant: str) -> None:
        self.tenant = tenant
        super().__init__(wire, session, given, place)

    def avoid(self) -> None:
        """Remember what the endpoint has just refused; else that is done once a call has gone through without it."""
        remember = getattr(self.session, "accepted", None)
        if remember is not None:
            remember(getattr(self.running, "request", None), getattr(self.running, "_refusals", ()))

    def _request(self, headers: Mapping[str, str], place: Place) -> Request:
        made = super()._request(headers, place)
        return replace(made, credential="\n".join((made.credential, digest("tenant", self.tenant))))


class ProxyCall:
    """A call between the hooks. `route` is the method of the Router that the Proxy calls."""

    def __init__(self, route: str, exchange: ProxyExchange, data: Mapping[str, Any], plain: dict[str, Any]) -> None:
        self.route = route
        self.exchange = exchange
        self.plain = plain
        self.model: object = data.get("model")
        self.sent: Json = {}
        self.body: Json = {}
        self.rounds: Rounds | None = None
        self.answered = False
        """Whether a hook has seen the reply of the first round, or its stream."""
        self.first: Any = None
        self.result: Any = None
        """That reply, and what the client gets for it."""

    @property
    def drives(self) -> bool:
        """Whether the replies of the call are to be looked at."""
        return self.exchange.call is not None and self.exchange.running.exchange

    def edited(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The Proxy's data with the arguments of the first round."""
        running = self.exchange.call
        if running is not None and self.drives and running.streaming:
            self.rounds = Rounds(self.exchange)  # before the body is read: a retry begins with a later round
        self.body = running.body if running is not None else {}
        given = self.exchange.once()
        self.sent = {name: value for name, value in given.items() if self.plain.get(name) is not value}
        gone = self.plain.keys() - given.keys()
        return {**{name: value for name, value in data.items() if name not in gone}, **self.sent}

    def own(self, data: Mapping[str, Any]) -> bool:
        """Whether these data are those of the first round already."""
        return self.model == data.get("model") and all(data.get(name) is value for name, value in self.sent.items())

    def restored(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data as they came, where a part of them is ours."""
        ours = {name for name, value in self.sent.items() if data.get(name) is value}
        kept = {name: value for name, value in data.items() if name not in ours}
        return {**kept, **{name: self.plain[name] for name in ours if name in self.plain}}

    def arguments(self, body: Json, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a further round: those of the first one, but for what the body has otherwise.

        What others have changed in the messages since (a guardrail that masks names, say) stays changed.
        """
        where = self.exchange.wire.conversation
        before, now = self.body.get(where), data.get(where)
        if before is not None and now is not None and now is not before and now != before:
            known = len(before)
            if body[where][:known] != before:
                raise RuntimeError(
                    "the messages were changed after loadpoint, and the next round does not continue them"
                )
            body = {**body, where: [*now, *body[where][known:]]}
        given = self.exchange.next(body)
        kept = {name: value for name, value in data.items() if name not in _PROXYS and not name.startswith("_")}
        gone = self.plain.keys() - given.keys()
        out = {**{name: value for name, value in kept.items() if name not in gone}, **given}
        for name in _BUCKETS:  # the Router writes into it
            if isinstance(out.get(name), dict):
                out[name] = dict(out[name])
        return {**out, "litellm_call_id": str(uuid.uuid4())}

    async def send(self, router: Any, body: Json, data: Mapping[str, Any]) -> Any:
        """The reply to a further round; a round whose form is refused is sent again in the next one."""
        while True:
            try:
                return await getattr(router, self.route)(**self.arguments(body, data))
            except BaseException as error:  # noqa: BLE001 - raised again, unless it refuses our form
                body = self.exchange.instead(error)

    async def finished(self, router: Any, reply: Any, data: Mapping[str, Any]) -> Any:
        """The reply that stands for all rounds, the first of which this one answers."""
        body = await self.exchange.feed_async(reply)
        while (body := await self.exchange.decided_async(body)) is not None:
            body = await self.exchange.feed_async(await self.send(router, body, data))
        return self.exchange.merged()

    async def shown(self, router: Any, stream: Any, data: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """The items of a stream that shows all rounds, the first of which this one answers."""
        rounds = self.rounds or Rounds(self.exchange)
        rounds.upstream = stream
        try:
            for item in rounds.opening():
                yield item
            while True:
                async for item in rounds.upstream:
                    for shown in rounds.shown(item):
                        yield shown
                items, body = await fed(rounds.exchange.session, rounds.ended)
                for shown in items:
                    yield shown
                if rounds.call.question is not None:
                    items, body = await aside(rounds.exchange.session, rounds.decided, await agreed(rounds.call))
                    for shown in items:
                        yield shown
                if body is None:
                    return
                rounds.upstream = await self.send(router, body, data)
        finally:
            rounds.leave()
            await aclose(rounds.upstream)

    def failed(self, error: BaseException) -> None:
        """Note that the first round failed: a form that was refused is not used again."""
        if not self.drives or self.answered:
            return
        running = self.exchange.running
        status: object = getattr(error, "status_code", None)
        if isinstance(status, int) and running.rejected(status, str(error)) is not None:
            log.warning("the Proxy cannot send this call again; the next one goes without what was refused")
            self.exchange.avoid()
        running.failed()
        if self.rounds is not None:
            self.rounds.leave()


def plain_of(data: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a request among the Proxy's data, with our own headers out of those of the client."""
    plain = {name: value for name, value in data.items() if name not in _PROXYS and not name.startswith("_")}
    request = as_object(data.get("proxy_server_request")) or {}
    sent = as_object(request.get("headers")) or {}
    ours = {name.lower(): value for name, value in sent.items() if name.lower() in OURS}
    if ours:
        plain["extra_headers"] = {**(plain.get("extra_headers") or {}), **ours}
    return plain


def whole(place: Place, reason: str) -> Place:
    """The place, to which a call has to go as it came."""
    return place._replace(carrier=Carrier(place.carrier.speaks, obstacle=reason))
