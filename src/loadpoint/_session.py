"""What one wrapped client keeps between calls, and how a request becomes a call."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _prices
from ._capability import Capability, capability
from ._catalog import catalog
from ._compose import Composer
from ._dialect import Dialect, Held
from ._engine import Call, Plan, Request
from ._json import Json, digest, dumps
from ._ledger import InProcessLedger, Ledger, Record, State
from ._loaded import evidence
from ._loader import loader_description, loader_schema
from ._paid import PaidRound, PaidRounds
from ._passing import Passing
from ._policy import Policy
from ._registry import Registry, build
from ._replay import Reader, Replayer, Transcript, group_level, record_key
from ._report import CallReport
from ._reporting import call_report, passing_report
from ._strategy import Choice as Chosen
from ._strategy import choose
from ._usage import add, with_iterations
from .errors import PolicyError

if TYPE_CHECKING:
    from .toolbox import Toolbox

log = logging.getLogger("loadpoint")
_REGISTRIES = 32
_LATER = {"strategy": ("frozen",), "search": ("hosted",)}


class Session:
    """Shared by a wrapped client and its copies; every method is safe to call from any thread.

    `policy` holds unless a `using` block or a header says otherwise. Raises `PolicyError` for a policy that asks for
    what this version cannot do.
    """

    def __init__(
        self,
        dialects: Sequence[Dialect],
        policy: Policy,
        *,
        ledger: Ledger | None = None,
        toolbox: Toolbox | None = None,
        on_report: Callable[[CallReport], None] | None = None,
    ) -> None:
        _possible(policy)
        self.dialects = tuple(dialects)
        self._policy = policy
        self.ledger: Ledger = ledger if ledger is not None else InProcessLedger()
        self.toolbox = toolbox
        self.on_report = on_report
        self._readers = {dialect.name: Reader(dialect) for dialect in dialects}
        self._registries: OrderedDict[str, Registry] = OrderedDict()
        self._lock = threading.Lock()
        self._paid = PaidRounds()

    @property
    def policy(self) -> Policy:
        """The policy of this moment: that of the innermost `using` block, else the client's own."""
        from ._adapter import override

        changed = override()
        if changed is not None:
            _possible(changed)
        return changed or self._policy

    # -- a request becomes a call --------------------------------------------------------------------------------

    def begin(self, request: Request) -> Call | Passing | None:
        """The call that drives `request`; None to send it as it is. Never raises for what a caller may send."""
        for dialect in self.dialects:
            kind = dialect.operation(request.method, request.path, request.body)
            if kind is not None:
                return self._begin(dialect, kind, request)
        return None

    def _begin(self, dialect: Dialect, kind: str, request: Request) -> Call | Passing | None:
        policy = self.policy
        if request.headers.get("x-loadpoint", "").strip().lower() == "off" or kind == "batch":
            return self._turned_back(dialect, request, "switched off" if kind != "batch" else "batches are passed through")
        tools = dialect.tools(request.body)
        held = dialect.held(request.body)
        if not tools:
            if held is None or held.previous is None:
                return self._turned_back(dialect, request, None)
            return self._resumed(dialect, request, policy, held.previous, count=kind == "count")
        obstacle = dialect.obstacle(request.body)
        if obstacle is not None:
            return self._turned_back(dialect, request, obstacle)
        registry = self._registry(dialect, tools, policy)
        if registry.fault is not None:
            log.warning("tools are passed through: %s", registry.fault)
            return self._turned_back(dialect, request, registry.fault, warnings=(registry.fault,))
        return self._planned(dialect, request, policy, registry, held, count=kind == "count")

    def _planned(
        self, dialect: Dialect, request: Request, policy: Policy, registry: Registry, held: Held | None, *, count: bool
    ) -> Call | Passing | None:
        scope = _scope(dialect, request)
        replayer = Replayer(dialect, self._readers[dialect.name], self.ledger, scope)
        messages = dialect.messages(request.body)
        transcript = replayer.replay(messages, loader=registry.loader)
        state = transcript.record.state if transcript.record is not None else None
        if not registry.deferred and (state is None or state.strategy == "eager"):
            return self._turned_back(dialect, request, "no tool is deferred", registry=registry)
        able = self._capability(dialect, request, policy)
        chosen = self._choose(dialect, request, policy, registry, transcript, able)
        if held is not None and chosen.strategy == "resend":
            reason = "the server holds this conversation's tools, and the model takes no native form"
            return self._turned_back(dialect, request, reason, registry=registry)
        if chosen.strategy == "eager":
            return self._eager(dialect, request, registry, transcript, chosen, scope, count=count)
        native = chosen.strategy == "native"
        if native != (state is not None and state.strategy == "native") and transcript.turns:
            transcript = replayer.replay(messages, loader=registry.loader, native=native)
        plan = self._plan(dialect, request, policy, registry, transcript, chosen, able, scope, threaded=held is not None)
        return self._call(request, plan, count=count)

    def _call(self, request: Request, plan: Plan, *, count: bool) -> Call | Passing:
        call = Call(self, request, plan)
        if count:
            return Passing(
                self, request, plan.dialect, call.body, report=call_report(call), exchange=False
            )
        if not call.streaming:
            for paid in self._paid.take(self._paid_key(request)):
                call.feed(paid.reply, request_id=paid.request_id)
        return call

    def _plan(
        self,
        dialect: Dialect,
        request: Request,
        policy: Policy,
        registry: Registry,
        transcript: Transcript,
        chosen: Chosen,
        able: Capability,
        scope: str,
        *,
        threaded: bool,
    ) -> Plan:
        known = transcript.record.state if transcript.record is not None else None
        if known is not None and (known.strategy == "eager" or known.loader in registry.by_name):
            known = None
        text = known.catalog if known else catalog(registry.deferred_tools, policy.catalog_tokens)
        loader = self._loader(dialect, policy, registry, known, text)
        point = able.point(chosen.load_point)
        composer = Composer(
            dialect,
            registry,
            loader,
            native=chosen.strategy == "native",
            declare_all=threaded or (point is not None and point.declare == "all"),
        )
        choice = dialect.choice(request.body)
        forced = tuple(name for name in choice.names if choice.mode == "named" and registry.is_deferred(name))
        return Plan(
            dialect=dialect,
            registry=registry,
            composer=composer,
            transcript=transcript,
            state=known if transcript.exact else None,
            strategy=chosen.strategy,
            load_point=chosen.load_point,
            reason=chosen.reason,
            catalog=text,
            choice=choice,
            forced=forced,
            warnings=[*registry.warnings, *_ledger_warning(transcript)],
            scope=scope,
            threaded=threaded,
        )

    def _loader(self, dialect: Dialect, policy: Policy, registry: Registry, known: State | None, text: str) -> Json:
        for tool in known.tools if known else ():
            if dialect.tool_name(tool) == (known.loader if known else None):
                return dialect.definition(tool, deferred=False)
        listed = text if policy.catalog == "tool" else ""
        return dialect.loader(registry.loader, loader_description(listed), loader_schema())

    def _choose(
        self,
        dialect: Dialect,
        request: Request,
        policy: Policy,
        registry: Registry,
        transcript: Transcript,
        able: Capability,
    ) -> Chosen:
        state = transcript.record.state if transcript.record is not None else None
        proofs = evidence(transcript.views, is_deferred=registry.is_deferred, loaders=(registry.loader,))
        model = str(request.body.get("model") or "")
        return choose(
            policy=policy,
            capability=able,
            deferrable_tokens=registry.deferred_tokens,
            resident_tokens=registry.resident_tokens,
            deferrable_count=len(registry.deferred),
            cache_rule=_prices.cache_rule(model, dialect.name, self.place(request, policy)),
            pinned=state.strategy if state else None,
            pinned_load_point=state.load_point if state else None,
            evidence=any(proof.why == "search" for proof in proofs),
            marked=registry.marked,
            resident_count=len(registry.residents),
            context_tokens=transcript.tokens,
            renders=dialect.renders,
        )

    # -- conversations that the server holds ---------------------------------------------------------------------

    def _resumed(
        self, dialect: Dialect, request: Request, policy: Policy, previous: str, *, count: bool
    ) -> Call | Passing | None:
        """A request that brings only new messages: everything else is known from the reply that it continues."""
        scope = _scope(dialect, request)
        record = self._held_record(digest(scope, "reply", previous))
        if record is None or record.reply_id is None or record.state.strategy != "native":
            return self._turned_back(dialect, request, "the conversation that this request continues is not known")
        state = record.state
        registry = build(dialect, state.tools, policy, skip=state.loader)
        able = self._capability(dialect, request, policy)
        chosen = Chosen(state.strategy, state.load_point, state.reason)
        given = dialect.messages(request.body)
        messages = [*dialect.join(record.pending, given[0] if given else None), *given[1:]]
        transcript = Replayer(dialect, self._readers[dialect.name], InProcessLedger(), scope).replay(
            messages, loader=state.loader, native=True
        )
        transcript.record, transcript.exact, transcript.turns = record, True, 1
        body = dialect.continued(request.body, record.reply_id, transcript.messages)
        plan = self._plan(dialect, request, policy, registry, transcript, chosen, able, scope, threaded=True)
        plan.held_loaded = state.loaded
        resumed = Request(request.method, request.path, body, request.headers, request.base_url, request.credential)
        return self._call(resumed, plan, count=count)

    def _held_record(self, key: str) -> Record | None:
        try:
            found = self.ledger.find(key)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the call goes on without it
            log.warning("ledger cannot be read: %s", error)
            return None
        return found[0] if found else None

    # -- calls that are left alone -------------------------------------------------------------------------------

    def _turned_back(
        self,
        dialect: Dialect,
        request: Request,
        reason: str | None,
        *,
        registry: Registry | None = None,
        warnings: tuple[str, ...] = (),
    ) -> Passing | None:
        """The request with our own items out of its history; None where it has none and there is nothing to report."""
        body = _without_ours(dialect, request.body)
        if body is request.body and reason is None:
            return None
        report = passing_report(reason or "no tools", registry, warnings=warnings)
        return Passing(self, request, dialect, body, report=report, exchange=dialect.reply_expected(request.path))

    def _eager(
        self,
        dialect: Dialect,
        request: Request,
        registry: Registry,
        transcript: Transcript,
        chosen: Chosen,
        scope: str,
        *,
        count: bool,
    ) -> Passing:
        body = _without_ours(dialect, request.body)
        report = passing_report(chosen.reason, registry, warnings=registry.warnings)

        def remember(_: Passing, reply: Json) -> None:
            state = State("eager", None, chosen.reason, "", "", (), (), (), digest(dialect.system(request.body)))
            level = group_level([*transcript.prefill_views, dialect.view(dialect.assistant(reply, ()))])
            chain = digest(transcript.chain, level)
            self._add(record_key(scope, transcript.window, level), Record(chain, transcript.sent_before, (), (), state))

        finish = remember if not count else None
        return Passing(self, request, dialect, body, report=report, exchange=not count, finish=finish)

    # -- what calls ask of their session -------------------------------------------------------------------------

    def remember(self, call: Call, result: Json) -> None:
        """Write the call's records, and tell `on_report`. Never raises: the reply is paid for."""
        for key, record in call.records(result):
            self._add(key, record)
        if call.report is not None:
            self._tell(call.report)

    def _add(self, key: str, record: Record) -> None:
        try:
            self.ledger.add(key, record)
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the reply is handed over
            log.warning("ledger cannot be written: %s", error)

    def make_report(self, call: Call) -> CallReport:
        """The report of a call that is over."""
        return call_report(call)

    def passed(self, call: Passing) -> CallReport:
        """The report of a call that was left alone, with its one round."""
        from dataclasses import replace

        report = replace(call.report, rounds=tuple(call.log))
        self._tell(report)
        return report

    def _tell(self, report: CallReport) -> None:
        if self.on_report is None:
            return
        try:
            self.on_report(report)
        except Exception:
            log.exception("on_report raised; the reply is handed over all the same")

    def sum_usage(self, dialect: Dialect, rounds: Sequence[Json]) -> Json:
        """The usage object of the merged reply."""
        total = add(rounds)
        return with_iterations(total, rounds) if len(rounds) > 1 and dialect.lists_iterations else total

    def cost(self, request: Request, dialect: Dialect, usage: Json) -> float | None:
        """USD of one round at list prices; None where the price or the usage is not known."""
        if not usage:
            return None
        prices = _prices.price(str(request.body.get("model") or ""), dialect.name)
        from ._usage import read

        return _prices.cost(read(usage, dialect.usage_fields), prices) if prices else None

    def asks_usage(self, request: Request, dialect: Dialect) -> bool:
        """Whether the endpoint reports usage in streams when it is asked to."""
        return self._capability(dialect, request, self.policy).stream_usage

    def keep_paid(self, call: Call) -> None:
        """Keep the finished rounds of a failed call for a retry."""
        if call.paid:
            self._paid.keep(self._paid_key(call.request), call.paid)

    def paid_rounds(self, call: Call) -> list[PaidRound]:
        """The rounds that a failed attempt at the same call has paid for; they are handed out once."""
        return self._paid.take(self._paid_key(call.request))

    def _paid_key(self, request: Request) -> Callable[[], str]:
        return lambda: digest(request.base_url, digest(request.credential), request.path, dumps(request.body))

    # -- looked up once ------------------------------------------------------------------------------------------

    def _registry(self, dialect: Dialect, tools: list[Any], policy: Policy) -> Registry:
        key = digest(dialect.name, dumps(tools), dumps([list(policy.resident), list(policy.defer)]))
        with self._lock:
            known = self._registries.get(key)
            if known is not None:
                self._registries.move_to_end(key)
                return known
        made = build(dialect, tools, policy)
        for text in made.warnings:
            log.warning("%s", text)
        with self._lock:
            self._registries[key] = made
            while len(self._registries) > _REGISTRIES:
                self._registries.popitem(last=False)
        return made

    def _capability(self, dialect: Dialect, request: Request, policy: Policy) -> Capability:
        return capability(str(request.body.get("model") or ""), dialect.name, self.place(request, policy))

    def place(self, request: Request, policy: Policy | None = None) -> str:
        """The endpoint as which this request's base_url is treated."""
        return (policy or self.policy).endpoint or request.base_url


def _scope(dialect: Dialect, request: Request) -> str:
    conversation = request.headers.get("x-loadpoint-conversation")
    who = f"conversation:{conversation}" if conversation else digest(request.credential)
    return digest(dialect.name, request.base_url, who)


def _without_ours(dialect: Dialect, body: Json) -> Json:
    messages = dialect.messages(body)
    kept = dialect.without_ours(messages, ())
    return body if len(kept) == len(messages) and all(map(_same, kept, messages)) else dialect.with_messages(body, kept)


def _same(one: Json, other: Json) -> bool:
    return one is other


def _ledger_warning(transcript: Transcript) -> list[str]:
    return [f"the ledger could not be read ({transcript.failed})"] if transcript.failed else []


def _possible(policy: Policy) -> None:
    for field, values in _LATER.items():
        if getattr(policy, field) in values:
            raise PolicyError(f"Policy.{field}: {getattr(policy, field)!r} is not built yet in this version")
    if policy.confirm != "never":
        raise PolicyError(f"Policy.confirm: {policy.confirm!r} is not built yet in this version; allowed: 'never'")
