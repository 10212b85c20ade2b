"""The callback for the LiteLLM Proxy: `callbacks: loadpoint_adapters.litellm.proxy_hook` in its configuration.

What the hooks of the Proxy allow, read in litellm 1.110.2: `async_pre_call_hook` edits a request, and the Proxy sends
it; `async_post_call_success_hook` gets the reply and may put another one in its place, and so does
`async_post_call_streaming_iterator_hook` with a stream. So the first round of a call is the Proxy's own, with its
retries and fallbacks, and further rounds are calls of the same Router from within the second hook. No hook can answer
a request that failed: where a provider refuses the form of a first round, that call fails, and the next one goes in
another form.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from litellm.integrations.custom_logger import CustomLogger

from loadpoint import InProcessLedger, Policy, RedisLedger
from loadpoint._adapter import session_factory
from loadpoint._json import parse_object
from loadpoint.errors import PolicyError, UnsupportedClientError

from . import _compat, _routes
from ._adapter import ROUTED, LiteLLM
from ._proxy_calls import ProxyCall, ProxyExchange, plain_of, whole

if TYPE_CHECKING:
    from loadpoint import CallReport, Ledger
    from loadpoint._driven import Beginner

log = logging.getLogger("loadpoint")
REDIS_URL, POLICY = "LOADPOINT_REDIS_URL", "LOADPOINT_POLICY"
_ROUTES = ("acompletion", "aresponses", "anthropic_messages")
_NAME = "litellm_logging_obj"
"""What the hooks of one request have in common. Its id would be the client's own choice, and may come twice."""
_TENANTS = 64
_HELD = (
    "the Proxy gives a client other ids of replies than it gets, so a conversation that the provider holds is not known"
)
_GUARDED = "a guardrail checks replies, and would see the first round only"


class ProxyHook(CustomLogger):
    """A callback of the Proxy that defers tools; `proxy_hook` is one with the settings of the environment.

    `policy` holds for every call; None takes the fields that LOADPOINT_POLICY names in a JSON object. `ledger_of` gives
    the ledger of a tenant (a team, else a virtual key, by a name that is no secret); without it there is one in Redis
    if LOADPOINT_REDIS_URL is set, else one in the process. `on_report` is called with the report of every call. Make an
    object of it, no subclass: the Proxy looks for the hooks in the class itself. Raises `PolicyError` for a setting
    that cannot be used, `UnsupportedClientError` for a version of litellm that is not supported.
    """

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        ledger_of: Callable[[str], Ledger] | None = None,
        on_report: Callable[[CallReport], None] | None = None,
    ) -> None:
        cast("Any", super()).__init__()
        reason = _compat.unsupported()
        if reason is not None:
            raise UnsupportedClientError(reason)
        self._policy = policy if policy is not None else _policy_from_environment()
        self._ledger_of = ledger_of or _ledger_from_environment()
        self._on_report = on_report or told
        self._dialects = LiteLLM().dialects()
        self._sessions: OrderedDict[str, Beginner] = OrderedDict()
        self._calls: WeakKeyDictionary[object, ProxyCall] = WeakKeyDictionary()
        self._lock = threading.Lock()
        self._session("")  # what is wrong with a setting is said now

    # -- the Proxy's hooks -----------------------------------------------------------------------------------------

    async def async_pre_call_hook(
        self, user_api_key_dict: Any, cache: Any, data: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """The request of the first round; None for one that is left as it is."""
        name: object = data.get(_NAME)
        route = str(call_type)
        if route not in _ROUTES or name is None or not data.get("tools"):
            return None
        known = self._call(data)
        if known is not None:
            if known.own(data):
                return None  # the hook came twice
            data = known.restored(data)  # ... with another model: it is begun again
        try:
            call = await asyncio.to_thread(self._begun, route, data, tenant_of(user_api_key_dict))
            edited = data if call is None else call.edited(data)
            if call is not None:
                self._calls[name] = call
        except Exception:
            log.exception("this request cannot be improved because of a fault in loadpoint; it is sent as it is")
            return data
        return edited

    async def async_post_call_success_hook(self, data: dict[str, Any], user_api_key_dict: Any, response: Any) -> Any:
        """The reply that stands for all rounds; None for one that stays."""
        call = self._call(data)
        if call is None or not call.drives:
            return None
        if call.answered:
            return call.result if response is call.first else None  # the hook came twice
        call.answered, call.first = True, response
        call.result = await call.finished(self._router(), response, data)
        return call.result

    async def async_post_call_streaming_iterator_hook(
        self, user_api_key_dict: Any, response: Any, request_data: dict[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """The stream that shows all rounds."""
        call = self._call(request_data)
        shown = response
        if call is not None and call.drives and not call.answered:
            call.answered = True
            shown = call.shown(self._router(), response, request_data)
        try:
            async for item in shown:
                yield item
        finally:
            if shown is not response:
                await shown.aclose()
                self._calls.pop(request_data.get(_NAME), None)

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        *args: Any,
        **more: Any,
    ) -> None:
        """Nothing: a failed request stays one. What it says of the form that was used is noted."""
        call = self._call(request_data)
        if call is not None:
            self._calls.pop(request_data.get(_NAME), None)
            call.failed(original_exception)

    # -- what they share -------------------------------------------------------------------------------------------

    def _call(self, data: Mapping[str, Any]) -> ProxyCall | None:
        name: object = data.get(_NAME)
        return None if name is None else self._calls.get(name)

    def _begun(self, route: str, data: dict[str, Any], tenant: str) -> ProxyCall | None:
        wire = ROUTED[route]
        plain = plain_of(data)
        router = self._router()
        place = None if router is None else _routes.of_router(router, plain, wire.dialect)
        if place is None:
            log.info("sent as it is: %r is no model of the Proxy's Router", data.get("model"))
            return None
        reason = _obstacle(data)
        exchange = ProxyExchange(wire, self._session(tenant), plain, whole(place, reason) if reason else place, tenant)
        return ProxyCall(route, exchange, data, plain)

    def _session(self, tenant: str) -> Beginner:
        with self._lock:
            known = self._sessions.get(tenant)
            if known is None:
                make = session_factory(self._policy, ledger=self._ledger_of(tenant), on_report=self._on_report)
                known = self._sessions[tenant] = make(self._dialects)
                while len(self._sessions) > _TENANTS:
                    self._sessions.popitem(last=False)
            self._sessions.move_to_end(tenant)
            return known

    @staticmethod
    def _router() -> Any:
        """The Router of the Proxy in this process; it makes another one when its models change."""
        return getattr(sys.modules.get("litellm.proxy.proxy_server"), "llm_router", None)


def tenant_of(key: Any) -> str:
    """Whose call it is: the team of the virtual key, else the key itself, which the Proxy has as a digest."""
    for name in ("team_id", "api_key", "user_id"):
        value: object = getattr(key, name, None)
        if isinstance(value, str) and value:
            return f"{name}:{value}"
    return ""


def told(report: CallReport) -> None:
    """Write a line about a call into the log."""
    log.info("%s: %s; %d rounds", report.strategy, report.reason, len(report.rounds))


def _policy_from_environment() -> Policy:
    text = os.environ.get(POLICY, "").strip()
    fields = parse_object(text) if text else {}
    if fields is None:
        raise PolicyError(f"environment variable {POLICY}: {text!r} is not usable; allowed: a JSON object, or unset")
    try:
        return Policy(**fields)
    except TypeError as error:  # a field that there is not
        raise PolicyError(f"environment variable {POLICY}: {error}") from None


def _ledger_from_environment() -> Callable[[str], Ledger]:
    url = os.environ.get(REDIS_URL, "").strip()
    if not url:
        own = InProcessLedger()
        return lambda _: own
    shared = RedisLedger(url, tenant="nobody")
    return lambda tenant: shared.for_tenant(tenant or "nobody")


def _obstacle(data: Mapping[str, Any]) -> str | None:
    """Why a request must go through the Proxy as it came; None if it need not."""
    if data.get("previous_response_id") or data.get("conversation"):
        return _HELD
    if any(_compat.checks_replies(callback, data) for callback in getattr(_compat.module(), "callbacks", ())):
        return _GUARDED
    return None
