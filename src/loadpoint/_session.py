"""What one wrapped client keeps between calls."""

from __future__ import annotations

import json
import logging
import marshal
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import iscoroutinefunction
from itertools import accumulate
from typing import Any, Protocol, TypeAlias, runtime_checkable

from . import _prices
from ._begin import Beginning
from ._capability import capability
from ._checkpoint import Checkpoints
from ._deciding import scope_of
from ._dialect import Dialect
from ._engine import Call
from ._json import Json, digest, dumps, objects, well_formed
from ._ledger import InProcessLedger, Ledger, Record
from ._paid import PaidRound, PaidRounds
from ._passing import Passing
from ._plan import Request
from ._policy import Policy
from ._records import records
from ._refusal import Doubts, Refusal, Refusals, doubtful
from ._registry import ANY_NAME, NameLimits, Registry, build
from ._replay import Reader, Replayer
from ._report import CallReport
from ._reporting import cached_after_load, passing_report
from ._stored import Stored
from ._tool import Tool
from ._usage import add, read, read_from_cache, with_iterations
from .errors import PolicyError

log = logging.getLogger("loadpoint")
_REGISTRIES, _TOOLS = 32, 40_000
"""Registries that are kept, and tools in all of them: each tool takes some 5 kB, its index included."""
_RegistryKey: TypeAlias = "tuple[str, tuple[str, ...], tuple[str, ...], NameLimits, int]"


@runtime_checkable
class Box(Protocol):
    """What a session asks of a toolbox."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools, with what no wire definition carries."""
        ...

    @property
    def generation(self) -> int:
        """How often tools were pushed."""
        ...

    def pushed(self, since: int) -> tuple[str, ...]:
        """The names that were pushed after `since` pushes."""
        ...

    def wires(self, dialect: Dialect) -> tuple[Json, ...]:
        """The tools as wire definitions of a dialect."""
        ...


class Session:
    """Shared by a wrapped client and its copies; every method is safe to call from any thread.

    `policy` holds unless a `using` block or a header says otherwise. Raises `PolicyError` for a policy that asks for
    what this version cannot do, and for a ledger or callback that is none.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        policy: Policy,
        *,
        ledger: Ledger | None = None,
        toolbox: Box | None = None,
        on_report: Callable[[CallReport], None] | None = None,
    ) -> None:
        _possible(policy)
        _usable(ledger, on_report)
        self.dialects = tuple(dialects)
        self._policy = policy
        self.ledger: Ledger = ledger if ledger is not None else InProcessLedger()
        self.on_report = on_report
        self.toolbox = _a_toolbox(toolbox)
        self._readers = {dialect.name: Reader(dialect) for dialect in dialects}
        self._registries: list[tuple[_RegistryKey, list[Any], Registry]] = []
        self._lock = threading.Lock()
        self._paid = PaidRounds()
        self._checkpoints = Checkpoints()
        self.refusals = Refusals()
        self.doubts = Doubts()

    @property
    def policy(self) -> Policy:
        """The policy of this moment: that of the innermost `using` block, else the client's own."""
        from ._adapter import override

        changed = override()
        if changed is not None:
            _possible(changed)
        return changed or self._policy

    def begin(self, request: Request) -> Call | Passing | None:
        """The call that drives `request`; None to send it as it is. Never raises for what a caller may send."""
        for dialect in self.dialects:
            kind = dialect.operation(request.method, request.path, request.body)
            if kind is None:
                continue
            policy = self.policy
            try:
                whole = self._resolved(dialect, request)
                filled = self._filled(dialect, kind, whole)
                call = Beginning(self, dialect, kind, filled, policy).call()
                if call is None and filled is not whole:
                    report = passing_report("there is nothing to defer", None)
                    return Passing(self, filled, dialect, filled.body, report=report, exchange=kind == "create")
                return call
            except PolicyError as error:  # such as a file of the user's own lines about models
                log.error("this request is sent as it is: %s", error)
            except Exception:
                if _writable(request.body):  # else the SDK says what is wrong with it
                    log.exception(
                        "this request cannot be improved because of a fault in loadpoint; it is sent as it is"
                    )
        return None

    def stored(self, request: Request) -> Stored | None:
        """What drives a request for a stored reply that the caller knows by another id; None for any other request."""
        for dialect in self.dialects:
            shown = dialect.stored(request.method, request.path)
            record = None if shown is None else self.find(digest(scope_of(dialect, request), "reply", shown))
            if shown is not None and record is not None and record.reply_id not in (None, "", shown):
                return Stored(request, shown, str(record.reply_id), streaming=dialect.streaming(request.body))
        return None

    def _resolved(self, dialect: Dialect, request: Request) -> Request:
        """The request with what it names of turns of ours: what was sent for them stands in their records."""
        scope = scope_of(dialect, request)
        found = [self.find(digest(scope, "item", item)) for item in dialect.referred(request.body)]
        known = [item for record in found if record is not None for item in record.turn]
        return replace(request, body=dialect.resolved(request.body, known)) if known else request

    def _filled(self, dialect: Dialect, kind: str, request: Request) -> Request:
        """The request with the toolbox's tools behind the caller's own, which win where the names are the same."""
        held = dialect.held(request.body)
        kept = held is not None and held.previous is not None and dialect.server_keeps_tools
        if self.toolbox is None or kept or kind not in ("create", "count"):
            return request
        own = dialect.tools(request.body)
        names = {dialect.tool_name(tool) for tool in objects(own)}
        more = [wire for wire in self.toolbox.wires(dialect) if dialect.tool_name(wire) not in names]
        return replace(request, body=dialect.with_tools(request.body, [*own, *more])) if more else request

    @property
    def guidelines(self) -> dict[str, tuple[str, ...]]:
        """What the application's tools say of their use, by name: no wire definition carries it."""
        return (
            {tool.name: tool.guidelines for tool in self.toolbox.tools if tool.guidelines}
            if self.toolbox is not None
            else {}
        )

    def reader(self, dialect: Dialect) -> Reader:
        """The reader of a dialect's messages, which remembers those it has read."""
        return self._readers[dialect.name]

    def replayer(self, dialect: Dialect, scope: str, system: str, registry: Registry, *, model: str = "") -> Replayer:
        """What turns visible messages of one scope into upstream ones; `system` is the prompt outside of them."""
        return Replayer(
            dialect,
            self._readers[dialect.name],
            self.ledger,
            scope,
            system=system,
            checkpoints=self._checkpoints,
            define=registry.definitions,
            model=model,
        )

    def registry(self, dialect: Dialect, tools: list[Any], policy: Policy, names: NameLimits = ANY_NAME) -> Registry:
        """The registry of a request's tools; equal lists share one."""
        key = (dialect.name, policy.resident, policy.defer, names, _weight(tools))
        with self._lock:
            kept = self._registries
        for at, (other, known, registry) in enumerate(kept):
            # Comparing takes a fraction of what hashing would, and ends at the first difference.
            if other == key and len(known) == len(tools) and known == tools:
                if at:
                    self._keep_first((key, known, registry))
                return registry
        own: list[Any] = json.loads(dumps(tools))  # what is kept must not change when the caller's objects do
        made = build(dialect, well_formed(own), policy, names=names)
        for text in made.warnings:
            log.warning("%s", text)
        self._keep_first((key, own, made))
        return made

    def _keep_first(self, entry: tuple[_RegistryKey, list[Any], Registry]) -> None:
        with self._lock:
            rest = [other for other in self._registries if other[2] is not entry[2]]
            tools = list(accumulate(len(other[1]) for other in (entry, *rest)))
            fitting = max(sum(total <= _TOOLS for total in tools), 1)
            self._registries = [entry, *rest][: min(fitting, _REGISTRIES)]

    # -- the ledger ----------------------------------------------------------------------------------------------

    def find(self, key: str) -> Record | None:
        """The newest record under a key; None also where the ledger cannot be read."""
        try:
            found = self.ledger.find(key)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the call goes on without it
            log.warning("ledger cannot be read: %s", error)
            return None
        return found[0] if found else None

    def add(self, key: str, record: Record) -> None:
        """Remember a record. Never raises: the reply is paid for."""
        try:
            self.ledger.add(key, record)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the reply is handed over
            log.warning("ledger cannot be written: %s", error)

    def remember(self, call: Call, result: Json) -> None:
        """Write the records of a call that is over, and tell `on_report`."""
        try:
            found = records(call, result)
        except Exception:
            log.exception("a fault in loadpoint: this reply is not remembered, and handed over all the same")
            found = []
        for key, record in found:
            self.add(key, record)
        # Another conversation of the same words may have gone on from here, with other hidden rounds.
        self._checkpoints.forget(call.dialect.messages(call.request.body))
        self.tell(call.report)

    # -- reports -------------------------------------------------------------------------------------------------

    def passed(self, call: Passing) -> CallReport:
        """The report of a call that was left alone, with its one round."""
        report = replace(call.report, rounds=tuple(call.log))
        self.tell(report)
        return report

    def noted(self, reason: str) -> None:
        """Report something that is sent past the session, as a call that was left alone for this reason."""
        self.tell(passing_report(reason, None))

    def tell(self, report: CallReport) -> None:
        """Give a report to `on_report`. Never raises: the reply is paid for."""
        if self.on_report is None:
            return
        try:
            self.on_report(report)
        except Exception:
            log.exception("on_report raised; the reply is handed over all the same")

    # -- usage and money -----------------------------------------------------------------------------------------

    def sum_usage(self, dialect: Dialect, rounds: Sequence[Json]) -> Json:
        """The usage object of a merged reply."""
        total = add(rounds)
        return with_iterations(total, rounds) if len(rounds) > 1 and dialect.lists_iterations else total

    def cost(self, request: Request, dialect: Dialect, usage: Json) -> float | None:
        """USD of one round at list prices; None where the price or the usage is not known."""
        prices = _prices.price(str(request.body.get("model") or ""), dialect.name) if usage else None
        return _prices.cost(read(usage, dialect.usage_fields), prices) if prices else None

    def asks_usage(self, request: Request, dialect: Dialect) -> bool:
        """Whether the endpoint reports usage in streams when it is asked to."""
        return capability(str(request.body.get("model") or ""), dialect.name, self.place(request)).stream_usage

    def place(self, request: Request) -> str:
        """The endpoint as which this request's base_url is treated."""
        return self.policy.endpoint or request.base_url

    # -- what the endpoint refuses ---------------------------------------------------------------------------------

    def accepted(self, request: Request, refusals: Sequence[Refusal]) -> None:
        """Remember what was refused before a call went through without it."""
        if refusals:
            self.refusals.add(self.place(request), str(request.body.get("model") or ""), refusals)

    def doubted(self, call: Call) -> tuple[str, ...]:
        """Count whether the cache was read behind the load of a call; a warning when it has been missed too often."""
        place, model = self.place(call.request), str(call.request.body.get("model") or "")
        if any(read_from_cache(entry.usage, call.dialect.usage_fields) for entry in call.log):
            self.doubts.read(place, model)
        cached = cached_after_load(call)
        if cached is None:
            return ()
        what = doubtful(call.plan)
        if not self.doubts.count(place, model, what, missed=not cached):
            return ()
        instead = "declare every tool from the start" if what.wants_all else "load tools in the next form"
        text = f"behind loads by {what.point} nothing is read from the cache here; new conversations {instead}"
        log.warning("%s", text)
        return (text,)

    # -- rounds that were paid for -------------------------------------------------------------------------------

    def keep_paid(self, call: Call) -> None:
        """Keep the finished rounds of a failed call for a retry."""
        # Where the application was asked, it is asked again: a yes is to one load, not to another attempt at it.
        if call.paid and not callable(call.policy.confirm):
            self._paid.keep(_paid_key(call.request), call.paid)

    def paid_rounds(self, call: Call) -> list[PaidRound]:
        """The rounds that a failed attempt at the same call has paid for; they are handed out once."""
        return self._paid.take(_paid_key(call.request))


def _writable(body: Json) -> bool:
    """Whether a body can be written as JSON: an SDK's own encoder takes more, or refuses it in its own words."""
    try:
        dumps(body)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _weight(tools: list[Any]) -> int:
    """A length that tells 1, true and 1.0 apart, which are equal; the order of keys does not change it."""
    try:
        return len(marshal.dumps(tools, 2))
    except ValueError:  # such as a subclass of dict
        return len(dumps(tools))


def _paid_key(request: Request) -> Callable[[], str]:
    conversation = request.headers.get("x-loadpoint-conversation") or ""
    who = digest(request.credential), conversation
    return lambda: digest(request.base_url, *who, request.path, dumps(request.body))


def _usable(ledger: object, on_report: object) -> None:
    """Refuse at once what every call would only be able to log."""
    if ledger is not None and not (callable(getattr(ledger, "find", None)) and callable(getattr(ledger, "add", None))):
        raise PolicyError(f"ledger: {ledger!r} is not usable; allowed: a Ledger, such as SqliteLedger('loads.db')")
    if on_report is not None and (not callable(on_report) or iscoroutinefunction(on_report)):
        raise PolicyError(f"on_report: {on_report!r} is not usable; allowed: a plain function that takes a CallReport")


def _a_toolbox(toolbox: object) -> Box | None:
    if toolbox is not None and not isinstance(toolbox, Box):
        raise PolicyError(f"toolbox: {toolbox!r} is not usable; allowed: a loadpoint.Toolbox")
    return toolbox


def _possible(policy: Policy) -> None:
    elsewhere = policy.search == "hosted" or policy.load_point in ("hosted_search", "gateway_search")
    if policy.confirm != "never" and elsewhere:
        what = "where the provider searches, its loads cannot be asked about; allowed: 'never'"
        raise PolicyError(f"Policy.confirm: {policy.confirm!r} is not usable: {what}")
