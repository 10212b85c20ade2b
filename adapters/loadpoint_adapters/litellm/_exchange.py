"""The part of one wrapped call that does no IO: the arguments of each round, and what the caller gets."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from loadpoint._adapter import reports
from loadpoint._agreeing import agreed, unheard
from loadpoint._carrier import Carrier
from loadpoint._json import Json
from loadpoint._plan import Request

from .._aside import aside, fed
from . import _compat

if TYPE_CHECKING:
    from loadpoint._driven import Beginner, Driven

    from ._routes import Place
    from ._wire import Wire

log = logging.getLogger("loadpoint")
OURS = ("x-loadpoint", "x-loadpoint-conversation")
_HEADERS = ("extra_headers", "headers")
_ACCOUNT = ("api_key", "azure_ad_token", "organization")
_SECRET = frozenset({"authorization", "x-api-key", "api-key"})
_WHOLE = {
    "mock_response": "a mocked reply",
    "mock_tool_calls": "a mocked reply",
    "caching": "caching=True: a reply from the cache stands for a whole call, not for one round of it",
}
"""Arguments with which a call is left alone, and why."""


def obstacle(given: Mapping[str, Any], body: Json | None, conversation: str) -> str | None:
    """Why a call must go as it came; None if it need not."""
    if body is None:
        return f"`{conversation}` or `tools` hold what is no JSON"
    extra = given.get("extra_body")
    if isinstance(extra, Mapping) and {"tools", conversation} & set(cast("Mapping[str, Any]", extra)):
        return "`extra_body` brings tools or messages of its own"
    return next((why for name, why in _WHOLE.items() if given.get(name)), None)


class Exchange:
    """One call. `given` are its arguments by name; they are never changed."""

    def __init__(self, wire: Wire, session: Beginner, given: dict[str, Any], place: Place | None) -> None:
        self.wire = wire
        self.session = session
        self.given, headers = _without_ours(given)
        self._asked: Json = {}
        self._sent = 0.0
        self.costs: list[float | None] = []
        self.last: Any = None
        self.call: Driven | None = None
        if place is not None:
            self.call = session.begin(self._request(headers, place))

    def _request(self, headers: Mapping[str, str], place: Place) -> Request:
        body = self.wire.body(self.given)
        why = obstacle(self.given, body, self.wire.conversation)
        tools: list[Json] = [{}] if self.given.get("tools") else []
        self._asked = body if body is not None else {"tools": tools, self.wire.conversation: []}
        self._asked["model"] = place.model  # for look-ups: what is sent keeps the caller's name for it
        carrier = place.carrier
        if why is not None:
            carrier = Carrier(carrier.speaks, obstacle=why)
        secrets = [str(self.given.get(name) or "") for name in _ACCOUNT]
        secrets += [value for name, value in sorted(headers.items()) if name in _SECRET]
        shown = {name: value for name, value in headers.items() if name not in _SECRET}
        return Request("POST", self.wire.path, self._asked, shown, place.base_url, "\n".join(secrets), carrier)

    @property
    def running(self) -> Driven:
        """The call, for drivers that have checked that there is one."""
        return cast("Driven", self.call)

    def once(self) -> dict[str, Any]:
        """The arguments of a call that takes one request, whose reply goes back as it is."""
        return self.given if self.call is None else self.next(self.running.body)

    def next(self, body: Json) -> dict[str, Any]:
        """The arguments of a round with this body: the caller's own, but for what the body has otherwise."""
        asked = self._asked
        changed = {name: value for name, value in body.items() if name not in asked or not _same(value, asked[name])}
        out = {**self.given, **changed}
        for name in asked.keys() - body.keys():
            out.pop(name, None)
        self._edit_headers(out)
        self._sent = time.perf_counter()
        return out

    def _edit_headers(self, out: dict[str, Any]) -> None:
        edits = {name.lower(): value for name, value in self.running.headers.items()}
        if not edits:
            return
        for argument in _HEADERS:
            known: Any = out.get(argument)
            if isinstance(known, Mapping):
                out[argument] = {k: v for k, v in cast("Mapping[str, Any]", known).items() if k.lower() not in edits}
        more = {name: value for name, value in edits.items() if value is not None}
        if more:
            out["extra_headers"] = {**(out.get("extra_headers") or {}), **more}

    # -- what comes back -----------------------------------------------------------------------------------------

    def instead(self, error: BaseException) -> Json:
        """The next body after an error that refuses the form of the round; raises any other error again."""
        status: object = getattr(error, "status_code", None)
        body = self.running.rejected(status, str(error)) if isinstance(status, int) else None
        if body is None:
            self.running.failed()
            raise error
        return body

    def feed(self, value: Any) -> Json | None:
        """Give a reply to the call: the next body, or None."""
        self.last = value
        self.costs.append(_compat.cost(value))
        try:
            reply = self.wire.reply(value)
        except Exception:  # noqa: BLE001 - a callback's own object, say: whatever it is, it is the caller's
            self.running.failed()
            return None
        return self.running.feed(reply, request_id=_compat.request_id(value), ms=self.elapsed)

    async def feed_async(self, value: Any) -> Json | None:
        """The same beside the event loop, where the ledger may wait."""
        return await fed(self.session, self.feed, value, left=self.running.failed)

    def decided(self, body: Json | None) -> Json | None:
        """The next body, once a question of the call is answered; here nobody can wait for the answer."""
        call = self.running
        return body if call.question is None else call.decided(unheard(call))

    async def decided_async(self, body: Json | None) -> Json | None:
        """The same for a coroutine function, which waits for it."""
        call = self.running
        return body if call.question is None else await aside(self.session, call.decided, await agreed(call))

    @property
    def elapsed(self) -> float:
        """Milliseconds since the last round was sent."""
        return (time.perf_counter() - self._sent) * 1000

    def merged(self) -> Any:
        """What the caller gets: the only reply as it came, or one that stands for all rounds."""
        value = self.last
        if self.running.changed:
            try:
                value = _compat.again(value, self.running.result)
            except Exception:
                log.exception("a fault in loadpoint: the last reply is handed over as it came")
            else:
                self.priced(value)
        reports.remember(value, self.running.report)
        return value

    def priced(self, value: Any) -> None:
        """Note the cost of all rounds beside a value; None if that of one is not known."""
        if isinstance(value, dict):
            return
        known = [cost for cost in self.costs if cost is not None]
        total = sum(known) if len(known) == len(self.costs) else None
        _compat.note(value, {**_compat.hidden(value), "response_cost": total})


def _same(one: object, other: object) -> bool:
    return one is other or one == other


def _without_ours(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The arguments without headers that are meant for us, and all headers by lower-case name."""
    out, headers = given, dict[str, str]()
    for argument in _HEADERS:
        known: Any = given.get(argument)
        if not isinstance(known, Mapping):
            continue
        named = cast("Mapping[str, Any]", known)
        headers.update({name.lower(): value for name, value in named.items() if isinstance(value, str)})
        if any(name.lower() in OURS for name in named):
            kept = {name: value for name, value in named.items() if name.lower() not in OURS}
            out = {**out, argument: kept}
            if not kept:
                del out[argument]
    return out, headers
