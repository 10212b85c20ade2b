"""How a request becomes a call: one decision after the other, each with its reason."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from ._deciding import Deciding, state_of
from ._dialect import Held
from ._engine import Again, Call, never
from ._json import Json, digest
from ._ledger import InProcessLedger, Record, State
from ._loaded import Evidence
from ._passing import Passing
from ._plan import Plan, Request
from ._refusal import Refusal
from ._registry import Registry, build, entry_name, undeferred
from ._replay import Replayer, Transcript, group_level, record_keys
from ._reporting import call_report, passing_report
from ._strategy import Choice as Chosen
from ._strategy.frozen import wrapping
from ._strategy.wrapping import FROZEN, recorded

log = logging.getLogger("loadpoint")
OFF = "off"
FIXED = "fixed"
"""The variant of a form for a model that takes it, but no changes of the tools in the middle of a conversation."""


class Beginning(Deciding):
    """One request of a known dialect, on its way to a call."""

    def call(self) -> Call | Passing | None:
        """The call that drives the request; None to send it as it is."""
        if self.request.headers.get("x-loadpoint", "").strip().lower() == OFF:
            return self._as_it_came("switched off for this request")
        if self.kind == "batch":
            return self._as_it_came(None)
        held = self.held
        tools = self.dialect.tools(self.request.body)
        if not tools:
            if held is None or held.previous is None or not self.dialect.server_keeps_tools:
                return self._as_it_came(None)
            return self._resumed(None)
        carrier = self.request.carrier
        obstacle = (carrier.obstacle if carrier is not None else None) or self.dialect.obstacle(self.request.body)
        if obstacle is not None:
            return self._as_it_came(obstacle)
        registry = self.session.registry(self.dialect, tools, self.policy, self.names())
        if registry.fault is not None:
            log.warning("tools are passed through: %s", registry.fault)
            return self._as_it_came(registry.fault, warnings=(registry.fault,))
        named = held is not None and held.name is not None and not self.dialect.server_keeps_tools
        # A conversation is named before anything is in it; a reply to continue is not.
        if named and (self.record is not None or (held is not None and held.previous is not None)):
            return self._resumed(registry)
        return self._planned(registry, held)

    def _planned(self, registry: Registry, held: Held | None) -> Call | Passing | None:
        """The call for a request that brings its whole conversation, or the first messages of one."""

        def again(refusals: Sequence[Refusal], begun: bool) -> Plan | Passing | None:
            self.refusals |= frozenset(refusals)
            self.begun = begun
            return self._decided(registry, held)

        plan = self._decided(registry, held)
        return self._driven(plan, self.request, again) if isinstance(plan, Plan) else plan

    def _decided(self, registry: Registry, held: Held | None) -> Plan | Passing | None:
        system = self.dialect.system(self.request.body)
        replayer = self.session.replayer(self.dialect, self.scope, system, registry, model=self.model)
        messages = self.dialect.messages(self.request.body)
        transcript = replayer.replay(messages, loader=registry.loader)
        state = state_of(transcript)
        if not registry.deferred and (state is None or state.strategy == "eager"):
            return self._nothing_deferred(registry)
        chosen = self.chosen(registry, transcript)
        point = self.able.point(chosen.load_point)
        hosted = point is not None and point.hosted
        frozen = chosen.strategy == FROZEN
        if self.policy.max_rounds == 1 and self.policy.discovery != "caller" and not hosted:
            return self._as_it_came("max_rounds=1 leaves no round to search in", registry)
        if held is not None and chosen.strategy == "resend":
            lacks = "the model takes no native form"
            return self._as_it_came(f"the server holds this conversation's tools, and {lacks}", registry)
        if chosen.strategy == "eager":
            return self._eager(registry, transcript, chosen)
        variant = FIXED if self.cannot_change(transcript, chosen) else point.variant if point is not None else ""
        writes = self.dialect.at(chosen.load_point, variant)
        before: list[Evidence] = []
        # Other models and policies, or rounds that are lost.
        if variant == FIXED or transcript.forms - {FROZEN if frozen else writes.load_point}:
            anew = variant == FIXED
            before = self.loaded(registry, transcript)
            wraps = wrapping(registry, self.dialect, state) if frozen else None
            transcript = replayer.replay(messages, loader=registry.loader, writes=writes, wraps=wraps, anew=anew)
        plan = self.plan(registry, transcript, chosen, threaded=held is not None)
        plan.shown_before = tuple(before)
        return plan

    def _driven(self, plan: Plan, request: Request, again: Again = never) -> Call | Passing:
        call = Call(self.session, request, plan, again)
        if self.kind == "count":
            report = call_report(call)
            return Passing(self.session, request, self.dialect, call.body, report=report, exchange=False)
        if not call.streaming:
            for paid in self.session.paid_rounds(call):
                call.feed(paid.reply, request_id=paid.request_id)
        return call

    # -- conversations that the server holds ---------------------------------------------------------------------

    def _resumed(self, registry: Registry | None) -> Call | Passing | None:
        """A request that brings only new messages: everything else is known from the reply that it continues.

        `registry` is that of the tools that it brings too, None where the server keeps them.
        """
        record = self.record
        if record is None or record.reply_id is None or record.state.strategy not in ("native", FROZEN):
            return self._as_it_came("the conversation that this request continues is not known")
        state = record.state
        if registry is None:
            registry = build(self.dialect, self._kept(state), self.policy, names=self.names())
        elif not self._takes(registry, state):
            reason = "the server holds this conversation's tools, and the request cannot take the form they have there"
            return self._as_it_came(reason, registry)
        chosen = Chosen(state.strategy, state.load_point, state.reason)
        given = self.dialect.messages(self.request.body)
        writes = self.dialect.at(state.load_point)
        messages = writes.join(record.pending, given)
        nothing = InProcessLedger()
        replayer = Replayer(self.dialect, self.session.reader(self.dialect), nothing, self.scope)
        replayer.define = registry.definitions
        wraps = recorded(self.dialect, state, registry.loader)
        transcript = replayer.replay(messages, loader=state.loader, writes=writes, wraps=wraps)
        transcript.record, transcript.exact, transcript.turns = record, True, 1
        transcript.system = state.system  # the server holds it
        body = self.dialect.continued(self.request.body, record.reply_id, transcript.messages)
        plan = self.plan(registry, transcript, chosen, threaded=True)
        plan.held_loaded = state.loaded
        plan.body = body
        return self._driven(plan, replace(self.request, body=body))

    def _kept(self, state: State) -> list[Json]:
        """The caller's tools that the server keeps for a conversation, and those that stand beside them.

        Those are what only a bridge reaches, which is in our record alone, and what the toolbox has.
        """
        box = self.session.toolbox
        behind = state.definitions if state.strategy == FROZEN else ()
        kept: list[Json] = []
        names = {state.loader, state.calls}
        for wire in (*state.tools, *behind, *(box.wires(self.dialect) if box is not None else ())):
            name = entry_name(self.dialect, wire)
            kept += [] if name in names else [wire]
            names.add(name)
        return kept

    def _takes(self, registry: Registry, state: State) -> bool:
        """Whether this request can go on in the form in which the server holds what was loaded."""
        if state.strategy == FROZEN:
            bridge = {state.loader, state.calls}
            return self.policy.strategy in ("auto", FROZEN) and not bridge & registry.by_name.keys()
        if self.policy.strategy not in ("auto", "native") or self.able.point(state.load_point) is None:
            return False
        return state.load_point not in self.unnameable(registry, (), state.loaded)

    # -- calls that are left alone -------------------------------------------------------------------------------

    def _as_it_came(
        self, reason: str | None, registry: Registry | None = None, *, warnings: tuple[str, ...] = ()
    ) -> Passing | None:
        """The request with our own items out of its history; None where it has none and there is nothing to report."""
        body = self._without_ours()
        if body is self.request.body and reason is None:
            return None
        report = passing_report(reason or "there is nothing to defer", registry, warnings=warnings)
        expected = self.kind == "create"
        return Passing(self.session, self.request, self.dialect, body, report=report, exchange=expected)

    def _nothing_deferred(self, registry: Registry) -> Passing | None:
        """The request of a caller whose policy or marks defer nothing that a search could find."""
        report = passing_report("no tool is deferred", registry, warnings=registry.warnings)
        expected = self.kind == "create"
        return Passing(
            self.session, self.request, self.dialect, self._whole(registry), report=report, exchange=expected
        )

    def _whole(self, registry: Registry) -> Json:
        """The request without our own items, and without marks that nothing beside them could undo."""
        body, tools = self._without_ours(), self.dialect.tools(self.request.body)
        sent = tools if registry.marked else undeferred(self.dialect, tools)
        return body if sent == tools else self.dialect.with_tools(body, sent)

    def _eager(self, registry: Registry, transcript: Transcript, chosen: Chosen) -> Passing:
        """Everything is sent, and the conversation is remembered as one that began so."""

        def remember(_: Passing, reply: Json) -> None:
            state = State("eager", None, chosen.reason, "", "", (), (), (), transcript.system)
            views = [*transcript.prefill_views, *map(self.dialect.view, self.dialect.assistant(reply, ()))]
            level = group_level(views)
            record = Record(digest(transcript.chain, level), transcript.sent_before, (), (), state)
            for key in record_keys(self.scope, transcript, views, level):
                self.session.add(key, record)

        report = passing_report(chosen.reason, registry, warnings=registry.warnings, weighed=True)
        expected = self.kind == "create"
        return Passing(
            self.session,
            self.request,
            self.dialect,
            self._whole(registry),
            report=report,
            exchange=expected,
            finish=remember if expected else None,
        )

    def _without_ours(self) -> Json:
        body = self.dialect.turned_back(self.request.body)
        record = self.record
        if record is None or record.reply_id is None or self.dialect.server_keeps_tools:
            return body
        if not record.pending and self.held is not None and self.held.previous in (None, record.reply_id):
            return body
        # The caller knows the reply by another id, and not that a call of ours still waits for its result.
        messages = self.dialect.at(record.state.load_point).join(record.pending, self.dialect.messages(body))
        return self.dialect.continued(body, record.reply_id, messages)
