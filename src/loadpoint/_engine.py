"""One logical call of the user as a state machine: JSON in, JSON out, no IO.

`Session.begin` makes a `Call` with the first upstream body; `feed` takes a reply and gives the next body or None; then
`result` is what the caller gets. `splice` does the same for streams.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ._answers import Answers
from ._compose import Composed, definitions
from ._dialect import CallView, Outcome, ReplyView, Shown
from ._json import Json, as_object, well_formed
from ._ledger._record import State
from ._loaded import Evidence, evidence
from ._paid import PaidRound
from ._plan import ALLOWED, Plan, Request, Step
from ._prefix import tools_changed
from ._registry import without_keys
from ._report import CallReport, Round
from ._reporting import call_report
from .errors import RoundLimitError, SearchLoopError

log = logging.getLogger("loadpoint")

if TYPE_CHECKING:
    from ._session import Session
    from ._stream import Splice


class Call:
    """One logical call. See the module; `exchange` is False where `body` is sent once and the reply handed back."""

    exchange = True
    untouched = False

    def __init__(self, session: Session, request: Request, plan: Plan) -> None:
        self.session = session
        self.request = request
        self.plan = plan
        self.dialect = plan.dialect
        self.policy = plan.policy
        self.streaming = plan.dialect.streaming(request.body)
        self.wants_structure = plan.dialect.structured(request.body)
        self.rounds: list[Json] = []
        self.log: list[Round] = []
        self.hidden: list[frozenset[int]] = []
        self.shown: list[tuple[Shown, ...]] = []
        self.discovery = self.policy.discovery
        self.turn: list[Json] = []
        self.news: list[Json] = []
        self.pending: tuple[Json, ...] = ()
        self.added: list[str] = []
        self.visible_id: str | None = None
        self._report: CallReport | None = None
        self.limited = False
        self.faulty = False
        self.proofs = self._proofs()
        self.composed: Composed = self._compose(plan.state)
        self.tolerant = False
        self.tolerant = plan.binds_thinking and self._voids_thinking()
        plan.warnings += [f"the definition of {name} has changed" for name in self.composed.changed]
        self.answers = Answers(
            self.policy,
            plan.registry,
            plan.composer.loader_name,
            lambda: self.composed.callable,
            plan.choice.names if plan.choice.mode == "allowed" else None,
            self._gone(),
            [],
            {},
        )
        plan_body, betas = self.dialect.tolerant(plan.body) if self.tolerant else (plan.body, ())
        self.headers: Mapping[str, str | None] = plan.dialect.headers(request.headers, (*plan.betas, *betas))
        self.paid: list[PaidRound] = []
        self.base = self._base(plan_body)
        self.body = self._body()
        self.first_state = self.state()
        self.composed_first = self.composed
        self.first_placed = frozenset(proof.name for proof in self.proofs if proof.placed)

    # -- what is sent --------------------------------------------------------------------------------------------

    def _proofs(self) -> list[Evidence]:
        plan = self.plan
        loaders = (plan.composer.loader_name, plan.registry.loader)
        proofs = evidence(plan.transcript.views, is_deferred=self._known, loaders=loaders)
        known = {proof.name for proof in proofs}
        held = [Evidence(name, 0, "search", True) for name in plan.held_loaded if name not in known]
        stale = plan.composer.stale(plan.transcript.views, plan.state if plan.held_loaded else None)
        plan.warnings += [f"the definition of {name} has changed" for name in stale]
        return [proof for proof in (*held, *proofs) if proof.name not in stale]

    def _compose(self, state: State | None) -> Composed:
        referenced = [n for view in self.plan.transcript.views for result in view.results for n in result.names]
        return self.plan.composer.compose(state, self.proofs, self.plan.forced, referenced)

    def _known(self, name: str) -> bool:
        return self.plan.registry.is_deferred(name)

    def _gone(self) -> frozenset[str]:
        """Tools that stand in the request because they once were loaded, but that the caller no longer has."""
        plan = self.plan
        names = {self.dialect.tool_name(tool) or "" for tool in self.composed.tools}
        if not self.dialect.by_reference and plan.state is not None:
            # What is loaded by value may also be the caller's own: ours is what was sent with a record.
            names |= {self.dialect.tool_name(tool) or "" for tool in plan.state.definitions} & set(plan.state.loaded)
        return frozenset(names - {*plan.registry.by_name, plan.composer.loader_name, ""})

    def _voids_thinking(self) -> bool:
        """Whether thinking of this conversation stands behind another prompt than the one that it was made for.

        What was voided once stays so; a resent list grows with every load, so that it is asked for from the start.
        """
        plan = self.plan
        before = plan.state
        if plan.voided or plan.strategy == "resend" or (before is not None and before.tolerant):
            return True
        grown = before is not None and tools_changed(self.dialect, before, self.state())[0] is not None
        return grown or bool(self.composed.changed)

    def _base(self, given: Json) -> Json:
        plan = self.plan
        rest = self.dialect.with_tools(self.dialect.with_messages(given, ()), ())  # both are read, and made good, alone
        if well_formed(rest) is not rest:
            given = well_formed(given)
        body = self.dialect.prepared(given, usage=self.session.asks_usage(self.request, self.dialect))
        if self.policy.catalog == "system" and plan.catalog:
            body = self.dialect.with_messages(body, plan.transcript.messages)
            return self.dialect.with_catalog(body, plan.catalog) or body
        return self.dialect.with_messages(body, plan.transcript.messages)

    def _body(self) -> Json:
        """The next upstream body: the caller's request with what is sent instead of its messages and tools."""
        plan = self.plan
        body = self._continued(self.base)
        resumed = bool(self.turn or plan.held_loaded or not self.dialect.tools(self.request.body))
        held = plan.threaded and self.dialect.server_keeps_tools and resumed
        if not held:
            body = self.dialect.with_tools(body, self.composed.tools)
        if plan.choice.mode == "allowed":
            allowed = [name for name in plan.choice.names if name in self.composed.callable]
            body = self.dialect.with_allowed(body, [*allowed, plan.composer.loader_name])
        if len(self.rounds) + 1 >= self.policy.max_rounds or self.answers.exhausted:
            self.limited = True
        # Where the application answers the loader, a loader call ends the round like any other.
        if self.limited and self.discovery != "caller":
            body = self.dialect.last_round(body, plan.choice, plan.composer.loader_name, self._own())
        if not held and self.policy.cache == "auto" and not self.dialect.is_marked(self.request.body):
            body = self.dialect.with_markers(body)
        return self.dialect.settled(body)

    def _own(self) -> list[str]:
        """The caller's tools that a `tool_choice` can name now."""
        point = self.plan.point
        names = self.composed.callable
        if point is not None and ALLOWED not in point.choosable:
            sent = {self.dialect.tool_name(tool) for tool in self.composed.tools}
            names = [name for name in names if name in sent]
        known = self.plan.registry.by_name
        return [name for name in names if name in known and self.dialect.tool_name(known[name].definition)]

    def _continued(self, body: Json) -> Json:
        """The request of the next round: what was sent and the turn so far, or what a server that holds it lacks."""
        if not self.turn:
            return body
        if not self.plan.threaded:
            return self.dialect.with_messages(body, [*self.dialect.messages(body), *self.turn])
        previous = self.dialect.reply(self.rounds[-1])
        return self.dialect.continued(body, previous.id if previous else "", self.news)

    @property
    def may_search(self) -> bool:
        """Whether the model can call the loader in the round that is open."""
        return not self.limited and self.plan.choice.mode != "none"

    @property
    def structured(self) -> bool:
        """Whether streamed text is held until it is known to be the structured answer."""
        return self.wants_structure and self.may_search

    def holds(self, name: str, *, whole: bool = True) -> bool:
        """Whether a call of this name, or of one that this is the first piece of, is held until its end."""
        if not whole:
            registry = self.plan.registry
            names = (self.plan.composer.loader_name, *self.answers.gone, *(entry.name for entry in registry.deferred))
            return any(other != name and other.startswith(name) and self.holds(other) for other in names)
        if self._is_callers(name):
            return False
        return name == self.plan.composer.loader_name or name in self.answers.gone or self.answers.is_unloaded(name)

    def hides(self, call: CallView) -> bool:
        """Whether this call is answered by us instead of the caller."""
        if self._is_callers(call.name):
            return False
        if call.name == self.plan.composer.loader_name:
            return True
        # In the last round nothing can be answered any more: the caller gets what the bare SDK would give, which is no
        # call of a tool that he has taken away.
        return call.name in self.answers.gone or (not self.limited and self.answers.is_ours(call))

    def _is_callers(self, name: str) -> bool:
        """Whether the application answers calls of the loader itself."""
        return self.discovery == "caller" and name == self.plan.composer.loader_name

    # -- what comes back -----------------------------------------------------------------------------------------

    def feed(self, reply: Json, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take a reply; the next upstream body, or None at the end. Raises `SearchLoopError` (see there)."""
        self.rounds.append(reply)
        usage = as_object(reply.get("usage")) or {}
        try:
            self.log.append(Round(request_id, ms, usage, self.session.cost(self.request, self.dialect, usage)))
            self.rounds[-1] = sound = well_formed(reply)
            return self._take(sound, request_id)
        except RoundLimitError:
            raise
        except Exception as error:  # noqa: BLE001 - a reply that is paid for is handed over, whatever we made of it
            self.fault(error)
            self.conclude()
            return None

    def fault(self, error: Exception) -> None:
        """Note a fault of ours: what the provider says from here on is handed over as it comes."""
        log.error("a fault in loadpoint; the reply is handed over as it came", exc_info=error)
        self.plan.warnings.append("a fault in loadpoint: the reply is as it came")
        self.faulty = True

    def _take(self, reply: Json, request_id: str | None) -> Json | None:
        view = self.dialect.reply(reply)
        if view is None:
            self.hidden.append(frozenset())
            self.shown.append(())
            self._finish()
            return None
        step = self._step(view)
        self.hidden.append(step.hidden)
        self.shown.append(step.shown if self.discovery == "shown" else ())
        if step.last:
            self.pending = tuple(self._results(step))
            self.turn += self.dialect.assistant(reply, () if step.answered else step.hidden)
            self._finish()
            return None
        if self.limited:
            raise self._loop()
        self._go_on(reply, step)
        if not self.streaming:
            self.keep(reply, (), request_id)
        return self.body

    def keep(self, reply: Json, events: Sequence[bytes], request_id: str | None) -> None:
        """Note a finished hidden round, in case a later one fails."""
        self.paid.append(PaidRound(reply, tuple(events), request_id))

    def _step(self, view: ReplyView) -> Step:
        hidden = frozenset(at for at, call in enumerate(view.calls) if self.hides(call))
        called = {call.name for call in view.calls}
        if not hidden or view.cut or (self.limited and called <= self.answers.gone):
            # An unfinished call of ours is cut out; a finished one could not be answered without going on.
            return Step(hidden, (), (), (), last=True)
        answered: list[tuple[CallView, Outcome]] = []
        added: list[str] = []
        shown: list[Shown] = []
        for at in sorted(hidden):
            call = view.calls[at]
            outcome, names = self.answers.outcome(call, added)
            answered.append((call, outcome))
            if call.name == self.plan.composer.loader_name:
                shown.append(Shown(at, call, names))
            added += [name for name in names if name not in added]
        released = self.wants_structure and view.text.lstrip()[:1] in ("{", "[") and view.text.strip() != ""
        last = released or len(hidden) < len(view.calls)
        return Step(hidden, tuple(answered), tuple(added), tuple(shown), last)

    def _go_on(self, reply: Json, step: Step) -> None:
        self.news = self.dialect.join(self._results(step), ())
        self.turn += [*self.dialect.assistant(reply, ()), *self.news]
        known = {proof.name for proof in self.proofs}
        placed = self.plan.strategy == "native"
        turn = self.plan.transcript.turns
        new = [Evidence(name, turn, "search", placed) for name in step.added if name not in known]
        self.proofs += new
        self.added += [proof.name for proof in new]
        self.composed = self._compose(self.state())
        self.body = self._body()

    def _results(self, step: Step) -> list[Json]:
        made = [self.dialect.result(call, outcome) for call, outcome in step.answered]
        return well_formed([message for messages in made for message in messages])

    def _loop(self) -> RoundLimitError:
        usage = tuple(entry.usage for entry in self.log)
        text = (
            f"the model called {self.plan.composer.loader_name} in round {len(self.rounds)}, which did not allow it "
            f"(Policy.max_rounds={self.policy.max_rounds}); the paid rounds are in .rounds"
        )
        return SearchLoopError(text, rounds=tuple(self.rounds), usage=usage)

    # -- the end -------------------------------------------------------------------------------------------------

    @property
    def changed(self) -> bool:
        """Whether `result` differs from the reply of the only round."""
        if len(self.rounds) > 1 or any(self.hidden):
            return True
        return bool(self.rounds) and self._visible is not self.rounds[0]

    @property
    def _visible(self) -> Json:
        """The only round's reply, as the caller sees it."""
        return self.dialect.visible(self.rounds[0], self.request.body)

    @property
    def result(self) -> Json:
        """The merged reply."""
        if self.faulty:
            return self.rounds[-1]
        if len(self.rounds) == 1 and not any(self.hidden):
            return self._visible
        return self.dialect.merge(
            self.rounds,
            self.hidden,
            self.usage,
            body=self.request.body,
            last_text=self.wants_structure,
            shown=self.shown,
        )

    @property
    def usage(self) -> Json:
        """The sum of the rounds: what is billed."""
        return self.session.sum_usage(self.dialect, [entry.usage for entry in self.log])

    def splice(self) -> Splice:
        """The streaming form of this call."""
        from ._stream import Splice

        return Splice(self)

    def failed(self) -> None:
        """An upstream error or an early close: rounds that were paid for are kept for a retry of the same call.

        Once, and not of a call that is over: its rounds have been answered with, and must not answer another.
        """
        if self._report is None:
            self.session.keep_paid(self)
        self.paid = []

    def state(self) -> State:
        """How the last request of this call was sent."""
        plan = self.plan
        names = [proof.name for proof in self.proofs]
        state = State(
            strategy=plan.strategy,
            load_point=plan.load_point,
            reason=plan.reason,
            loader=plan.composer.loader_name,
            catalog=plan.catalog,
            tools=tuple(without_keys(self.dialect, tool) for tool in self.composed.tools),
            declared=tuple(self.composed.declared),
            definitions=definitions(plan.composer, plan.state, names),
            system=plan.transcript.system,
            loaded=tuple(names),
            tolerant=self.tolerant,
        )
        known = plan.state
        return known if known is not None and known == state else state  # one object for a conversation's records

    def _finish(self) -> None:
        result = self.result
        self._report = call_report(self)
        self.session.remember(self, result)

    def conclude(self) -> None:
        """Tell the report of a call that a fault of ours has ended."""
        if self._report is None:
            try:
                self._report = call_report(self)
            except Exception:  # noqa: BLE001 - what broke the call may break its report as well
                plan = self.plan
                self._report = CallReport(plan.strategy, plan.load_point, plan.reason, warnings=tuple(plan.warnings))
            self.session.tell(self._report)

    @property
    def report(self) -> CallReport:
        """The report; what is known so far while the call still runs."""
        return self._report or call_report(self)
