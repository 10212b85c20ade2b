"""One logical call of the user as a state machine: JSON in, JSON out, no IO.

`Session.begin` makes a `Call` with the first upstream body; `feed` takes a reply and gives the next body or None; then
`result` is what the caller gets. `splice` does the same for streams.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from ._agreeing import ask, declined
from ._dialect import CallView, Outcome, ReplyView, Shown
from ._json import Json, as_object, well_formed
from ._loaded import Evidence, evidence
from ._paid import PaidRound
from ._passing import Passing
from ._plan import Plan, Request, Step
from ._refusal import Refusal, refusal, said
from ._report import CallReport, Round, Search
from ._reporting import call_report
from ._sending import Sending
from .errors import RoundLimitError, SearchLoopError

log = logging.getLogger("loadpoint")

if TYPE_CHECKING:
    from ._session import Session
    from ._stream import Splice

Again: TypeAlias = "Callable[[Sequence[Refusal], bool], Plan | Passing | None]"
"""Plans the same request without what was refused; the flag says whether the call has had a round already."""


def never(_: Sequence[Refusal], __: bool) -> None:
    """No other plan: what the server holds cannot be sent in another form."""
    return


class Call(Sending):
    """One logical call. See the module; `exchange` is False where `body` is sent once and the reply handed back.

    `again` makes another plan for the same request, without forms that were refused; None where there is none.
    """

    exchange = True
    untouched = False
    renames: Mapping[str, str] = MappingProxyType({})

    def __init__(self, session: Session, request: Request, plan: Plan, again: Again = never) -> None:
        super().__init__(session, request)
        self.streaming = plan.dialect.streaming(request.body)
        self.wants_structure = plan.dialect.structured(request.body)
        self.log: list[Round] = []
        self.pending: tuple[Json, ...] = ()
        self.visible_id: str | None = None
        self._report: CallReport | None = None
        self._again = again
        self._refusals: tuple[Refusal, ...] = ()
        self.notes: list[str] = []
        self.passing: Passing | None = None
        self.faulty = False
        self.paid: list[PaidRound] = []
        self.question: Awaitable[Any] | None = None
        self._waits: tuple[Json, Step, str | None] | None = None
        self.start(plan)

    def start(self, plan: Plan) -> None:
        """See `Sending.start`."""
        self.seen: list[Json] = []
        """The rounds with their calls as the caller sees them."""
        self.hidden: list[frozenset[int]] = []
        self.shown: list[tuple[Shown, ...]] = []
        self.added: list[str] = []
        self.loaded_in: int | None = None
        """The first round of this call that loaded anything, from 0."""
        super().start(plan)

    @property
    def may_search(self) -> bool:
        """Whether the model can call the loader in the round that is open."""
        return not self.plan.hosted and not self.limited and self.plan.choice.mode != "none"

    @property
    def structured(self) -> bool:
        """Whether streamed text is held until it is known to be the structured answer."""
        return self.passing is None and self.wants_structure and self.may_search

    def holds(self, name: str, *, whole: bool = True) -> bool:
        """Whether a call of this name, or of one that this is the first piece of, is held until its end."""
        if self.passing is not None:
            return False
        if not whole:
            registry = self.plan.registry
            names = (*self._ours, *self.answers.gone, *(entry.name for entry in registry.deferred))
            return any(other != name and other.startswith(name) and self.holds(other) for other in names)
        if self._is_callers(name):
            return False
        return name in self._ours or name in self.answers.gone or self.answers.is_unloaded(name)

    def hides(self, call: CallView) -> bool:
        """Whether this call is answered by us instead of the caller."""
        if self.passing is not None or self._is_callers(call.name):
            return False
        if call.name == self.plan.composer.loader_name:
            return True
        # In the last round nothing can be answered any more: the caller gets what the bare SDK would give, which is no
        # call of a tool that he has taken away.
        return self.answers.refuses(call) or (not self.limited and self.answers.is_ours(call))

    def as_seen(self, call: CallView) -> CallView:
        """What the caller sees of this complete call."""
        return call if self.passing is not None or self._is_callers(call.name) else self.answers.as_seen(call)

    def _is_callers(self, name: str) -> bool:
        """Whether the application answers calls of the loader, and of the bridge, itself."""
        return self.discovery == "caller" and name in self._ours

    @property
    def _ours(self) -> tuple[str, ...]:
        """The names of the tools that we have added."""
        bridge, loader = self.plan.bridge, self.plan.composer.loader_name
        return (loader,) if bridge is None else (loader, bridge.call)

    # -- what comes back -----------------------------------------------------------------------------------------

    def feed(self, reply: Json, *, request_id: str | None = None, ms: float = 0.0) -> Json | None:
        """Take a reply; the next upstream body, or None at the end. Raises `SearchLoopError` (see there)."""
        self.session.accepted(self.request, self._refusals)
        self.rounds.append(reply)
        if self.passing is not None:
            return self.passing.feed(reply, request_id=request_id, ms=ms)
        usage = as_object(reply.get("usage")) or {}
        try:
            self.log.append(Round(request_id, ms, usage, self.session.cost(self.request, self.dialect, usage)))
            self.rounds[-1] = sound = well_formed(reply)
        except Exception as error:  # noqa: BLE001 - as below
            self._given_up(error)
            return None
        return self._guarded(lambda: self._take(sound, request_id))

    def decided(self, agreed: bool) -> Json | None:
        """Go on after a `question`: the next upstream body, or None at the end, as from `feed`."""
        self.question = None
        waits, self._waits = self._waits, None
        if waits is None:
            return None
        reply, step, request_id = waits
        if not agreed:
            step = declined(step)
            self.answers.told = False
        return self._guarded(lambda: self._taken(reply, step, request_id))

    def _guarded(self, take: Callable[[], Json | None]) -> Json | None:
        try:
            return take()
        except RoundLimitError:
            raise
        except Exception as error:  # noqa: BLE001 - a reply that is paid for is handed over, whatever we made of it
            self._given_up(error)
            return None

    def _given_up(self, error: Exception) -> None:
        self.fault(error)
        self.conclude()

    def rejected(self, status: int, message: str) -> Json | None:
        """The next body after an error that refuses the native form of the last one; None: the error is the caller's.

        `message` is the body of the error. What the call has had so far stays, and goes on in the next form.
        """
        if self.passing is not None or not self.uses_form():
            return None
        found = refusal(self.plan, status, message)
        if found is None or found in self._refusals:
            return None
        self._refusals = (*self._refusals, found)
        try:
            body = self._restarted(self._again(self._refusals, bool(self.rounds)))
        except Exception:
            log.exception("a fault in loadpoint: the provider's error is handed over")
            return None
        what = "a request without every deferred tool" if found.wants_all else found.point
        whole = cast("Passing | None", self.passing)  # the new plan may be to defer nothing
        goes_on = self.plan.load_point or self.plan.strategy if whole is None else "every tool in the request"
        text = f"the endpoint refused {what} ({said(message)}); the call went on with {goes_on}"
        log.warning("%s", text)
        self.notes.append(text)
        if whole is not None:
            whole.warn(self.notes)
        return body

    def _restarted(self, plan: Plan | Passing | None) -> Json | None:
        """The body with which the call goes on by another plan; None if it cannot."""
        done, paid = self.rounds, self.paid
        if isinstance(plan, Passing):
            self.passing, self.headers = plan, plan.headers
            return None if done else plan.body
        if plan is None or (done and plan.composer.loader_name != self.plan.composer.loader_name):
            return None
        self.start(plan)
        for reply in done:
            self.rounds.append(reply)
            self._take(reply, None)
        self.paid = paid
        return self.body

    def fault(self, error: Exception) -> None:
        """Note a fault of ours: what the provider says from here on is handed over as it comes."""
        log.error("a fault in loadpoint; the reply is handed over as it came", exc_info=error)
        self.plan.warnings.append("a fault in loadpoint: the reply is as it came")
        self.faulty = True

    def _take(self, reply: Json, request_id: str | None) -> Json | None:
        view = self.dialect.reply(reply)
        self.seen.append(reply if view is None or self.plan.bridge is None else self._as_seen(reply))
        if view is None:
            self.hidden.append(frozenset())
            self.shown.append(())
            self._finish()
            return None
        if self.plan.hosted:
            self._searched(reply)
        step = self._step(view)
        self.hidden.append(step.hidden)
        if step.added and callable(self.policy.confirm):
            said = ask(self.policy.confirm, step.added)
            self._waits = reply, step, request_id
            if not isinstance(said, bool):
                self.question = said
                return None
            return self.decided(said)
        return self._taken(reply, step, request_id)

    def _taken(self, reply: Json, step: Step, request_id: str | None) -> Json | None:
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

    def _as_seen(self, reply: Json) -> Json:
        return self.dialect.with_calls(reply, self.as_seen)

    def _searched(self, reply: Json) -> None:
        """Note what the provider's own search has loaded in a reply."""
        views = [self.dialect.view(message) for message in self.dialect.assistant(reply, ())]
        for view in views:
            for result in view.results:
                if result.search and not result.failed:
                    self.answers.searches.append(Search("", result.names, not result.names))
        known = {proof.name for proof in self.proofs}
        turn = self.plan.transcript.turns
        proofs = evidence(views, is_deferred=self.plan.registry.is_deferred, loaders=(), first_turn=turn)
        self.proofs += [proof for proof in proofs if proof.name not in known]

    def keep(self, reply: Json, events: Sequence[bytes], request_id: str | None) -> None:
        """Note a finished hidden round, in case a later one fails."""
        self.paid.append(PaidRound(reply, tuple(events), request_id))

    def _step(self, view: ReplyView) -> Step:
        hidden = frozenset(at for at, call in enumerate(view.calls) if self.hides(call))
        if not self.passing and self.discovery != "caller":
            for at, call in enumerate(view.calls):
                if at not in hidden:
                    self.answers.note(call)
        if not hidden or view.cut or (self.limited and all(map(self.answers.refuses, view.calls))):
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
        self.answers.settle()
        self.news = self.dialect.join(self._results(step), ())
        self.turn += [*self.dialect.assistant(reply, ()), *self.news]
        known = {proof.name for proof in self.proofs}
        placed = self.plan.strategy == "native"
        turn = self.plan.transcript.turns
        new = [Evidence(name, turn, "search", placed) for name in step.added if name not in known]
        self.proofs += new
        self.added += [proof.name for proof in new]
        if new and self.loaded_in is None:
            self.loaded_in = len(self.rounds) - 1
        self.composed = self._compose(self.state())
        self.body = self.next_body()

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
        if self.passing is not None:
            return False
        if len(self.rounds) > 1 or any(self.hidden):
            return True
        return bool(self.rounds) and self._visible is not self.rounds[0]

    @property
    def _visible(self) -> Json:
        """The only round's reply, as the caller sees it."""
        return self.dialect.visible(self.seen[0], self.request.body)

    @property
    def result(self) -> Json:
        """The merged reply."""
        if self.faulty or self.passing is not None:
            return self.rounds[-1]
        if len(self.rounds) == 1 and not any(self.hidden):
            return self._visible
        return self.dialect.merge(
            self.seen,
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

    def _finish(self) -> None:
        result = self.result
        self.notes += self.session.doubted(self)
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
        if self.passing is not None:
            return self.passing.report
        return self._report or call_report(self)
