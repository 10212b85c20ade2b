"""How a request becomes a call: one decision after the other, each with its reason."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from . import _prices
from ._capability import Capability, capability
from ._compose import Composer
from ._dialect import Dialect, Held, View
from ._engine import Call
from ._json import Json, digest
from ._ledger import InProcessLedger, Record, State
from ._loaded import evidence
from ._loader import loader_description, loader_schema
from ._passing import Passing
from ._plan import ALLOWED, NAMED, Plan, Request
from ._policy import Policy
from ._registry import Registry, build
from ._replay import Replayer, Transcript, group_level, record_keys
from ._reporting import call_report, passing_report
from ._strategy import Choice as Chosen
from ._strategy import choose
from ._tokens import estimate

if TYPE_CHECKING:
    from ._session import Session

log = logging.getLogger("loadpoint")
OFF = "off"
_NAME = re.compile(r"[A-Za-z0-9_.:-]+")


class Beginning:
    """One request of a known dialect, on its way to a call. `kind` is create, count or batch."""

    def __init__(self, session: Session, dialect: Dialect, kind: str, request: Request, policy: Policy) -> None:
        self.session = session
        self.dialect = dialect
        self.kind = kind
        self.request = request
        self.policy = policy
        self.model = str(request.body.get("model") or "")
        self.place = policy.endpoint or request.base_url
        self.scope = _scope(dialect, request)
        self.held = dialect.held(request.body)

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
        obstacle = self.dialect.obstacle(self.request.body)
        if obstacle is not None:
            return self._as_it_came(obstacle)
        registry = self.session.registry(self.dialect, tools, self.policy)
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
        system = self.dialect.system(self.request.body)
        replayer = self.session.replayer(self.dialect, self.scope, system, registry)
        messages = self.dialect.messages(self.request.body)
        transcript = replayer.replay(messages, loader=registry.loader)
        state = _state(transcript)
        if not registry.deferred and (state is None or state.strategy == "eager"):
            return self._as_it_came("no tool is deferred", registry)
        if self.policy.max_rounds == 1 and self.policy.discovery != "caller":
            return self._as_it_came("max_rounds=1 leaves no round to search in", registry)
        chosen = self._choose(registry, transcript)
        if held is not None and chosen.strategy == "resend":
            reason = "the server holds this conversation's tools, and the model takes no native form"
            return self._as_it_came(reason, registry)
        if chosen.strategy == "eager":
            return self._eager(registry, transcript, chosen)
        writes = self.dialect.at(chosen.load_point)
        if transcript.forms - {writes.load_point}:  # other models and policies, or rounds that are lost
            transcript = replayer.replay(messages, loader=registry.loader, writes=writes)
        return self._driven(self._plan(registry, transcript, chosen, threaded=held is not None), self.request)

    def _driven(self, plan: Plan, request: Request) -> Call | Passing:
        call = Call(self.session, request, plan)
        if self.kind == "count":
            report = call_report(call)
            return Passing(self.session, request, self.dialect, call.body, report=report, exchange=False)
        if not call.streaming:
            for paid in self.session.paid_rounds(call):
                call.feed(paid.reply, request_id=paid.request_id)
        return call

    @cached_property
    def record(self) -> Record | None:
        """What is remembered of the server-held conversation that this request continues."""
        name = self.held.name if self.held is not None else None
        return None if name is None else self.session.find(digest(self.scope, *name))

    @property
    def able(self) -> Capability:
        """What the model takes here."""
        return capability(self.model, self.dialect.name, self.place)

    def _choose(self, registry: Registry, transcript: Transcript) -> Chosen:
        state = _state(transcript)
        return choose(
            policy=self.policy,
            capability=self.able,
            deferrable_tokens=registry.deferred_tokens,
            resident_tokens=registry.resident_tokens,
            deferrable_count=len(registry.deferred),
            cache_rule=_prices.cache_rule(self.model, self.dialect.name, self.place),
            pinned=state.strategy if state else None,
            pinned_load_point=state.load_point if state else None,
            evidence=state is None and self._shows_a_load(registry, transcript),
            marked=registry.marked,
            resident_count=len(registry.residents),
            context_tokens=transcript.opening + estimate(self.dialect.system(self.request.body)),
            renders=self.dialect.renders,
            refused=self._unnameable(registry, transcript.views),
        )

    def _unnameable(self, registry: Registry, views: Sequence[View], held: Sequence[str] = ()) -> list[str]:
        """The load points whose tools this request's `tool_choice` could not name; `held` are loaded at the server."""
        choice = self.dialect.choice(self.request.body)
        if choice.mode not in (ALLOWED, NAMED):
            return []
        proofs = evidence(views, is_deferred=registry.is_deferred, loaders=(registry.loader,))
        loaded = {*held, *(proof.name for proof in proofs)}
        if choice.mode == NAMED and not loaded & set(choice.names):
            return []
        return [point.name for point in self.able.points if choice.mode not in point.choosable]

    def _shows_a_load(self, registry: Registry, transcript: Transcript) -> bool:
        """Whether the transcript shows a search; a conversation that is on record says itself how it is sent."""
        proofs = evidence(transcript.views, is_deferred=registry.is_deferred, loaders=(registry.loader,))
        return any(proof.why == "search" for proof in proofs)

    def _plan(self, registry: Registry, transcript: Transcript, chosen: Chosen, *, threaded: bool) -> Plan:
        known = _state(transcript)
        dialect = self.dialect.at(chosen.load_point)
        if known is not None and (known.strategy == "eager" or known.loader in registry.by_name):
            known = None
        if known is not None and not dialect.by_reference and known.load_point != chosen.load_point:
            known = None  # another loader, and other tools in the list
        text = known.catalog if known else self._catalog(registry)
        point = self.able.point(chosen.load_point)
        composer = Composer(
            dialect,
            registry,
            self._loader(dialect, registry, known, text),
            declare_all=threaded or (point is not None and point.declare == "all"),
        )
        choice = self.dialect.choice(self.request.body)
        named = choice.names if choice.mode == "named" else ()
        own = capability(self.model, self.dialect.name).endpoint == self.able.endpoint
        binds = self.able.binds_thinking and own
        return Plan(
            policy=self.policy,
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
            forced=tuple(name for name in named if registry.is_deferred(name)),
            warnings=[*registry.warnings, *self._warnings(registry, transcript)],
            scope=self.scope,
            body=self.request.body,
            point=point,
            threaded=threaded,
            binds_thinking=binds,
            voided=binds and self._voided(transcript),
        )

    def _voided(self, transcript: Transcript) -> bool:
        """Whether the transcript holds thinking whose rounds are lost, or which was made before it was ever ours."""
        if transcript.record is not None:
            return transcript.rewritten or transcript.lost_since > 0
        return transcript.lost > 0 and self.dialect.thought(transcript.messages)

    def _warnings(self, registry: Registry, transcript: Transcript) -> list[str]:
        """What the user should know of this request; what holds for a whole conversation is said once, at its start."""
        found: list[str] = []
        if transcript.failed:
            found.append(f"the ledger could not be read ({transcript.failed})")
        if transcript.turns:
            return found
        if self.policy.cache != "auto" and not self.dialect.is_marked(self.request.body):
            found.append("no cache marker: nothing of this conversation is cached; see Policy.cache")
        if registry.moved:
            names = ", ".join(registry.moved[:5])
            found.append(f"a cache marker stands on the last resident tool instead of on deferred ones: {names}")
        system = [self.dialect.system(self.request.body), *(v.text for v in transcript.views if v.role == "system")]
        words = {word for text in system for word in _NAME.findall(text)}
        named = sorted(name for name in words if registry.is_deferred(name) and _looks_like_a_name(name))
        if named:
            found.append(f"the instructions name deferred tools, which may better be resident: {', '.join(named[:5])}")
        return found

    def _catalog(self, registry: Registry) -> str:
        """The listing within its budget, and within what the endpoint takes as a description where it stands there."""
        budget = self.policy.catalog_tokens
        text = registry.catalog(budget)
        most = self.able.limits.description_length if self.policy.catalog == "tool" else None
        while most is not None and text and len(loader_description(text)) > most:
            budget //= 2
            text = registry.catalog(budget)
        return text

    def _loader(self, dialect: Dialect, registry: Registry, known: State | None, text: str) -> Json:
        for tool in known.tools if known else ():
            if known is not None and dialect.tool_name(tool) == known.loader:
                return dialect.definition(tool, deferred=False)
        listed = text if self.policy.catalog == "tool" else ""
        return dialect.loader(registry.loader, loader_description(listed), loader_schema())

    # -- conversations that the server holds ---------------------------------------------------------------------

    def _resumed(self, registry: Registry | None) -> Call | Passing | None:
        """A request that brings only new messages: everything else is known from the reply that it continues.

        `registry` is that of the tools that it brings too, None where the server keeps them.
        """
        record = self.record
        if record is None or record.reply_id is None or record.state.strategy != "native":
            return self._as_it_came("the conversation that this request continues is not known")
        state = record.state
        if registry is None:
            registry = build(self.dialect, state.tools, self.policy, skip=state.loader)
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
        transcript = replayer.replay(messages, loader=state.loader, writes=writes)
        transcript.record, transcript.exact, transcript.turns = record, True, 1
        transcript.system = state.system  # the server holds it
        body = self.dialect.continued(self.request.body, record.reply_id, transcript.messages)
        plan = self._plan(registry, transcript, chosen, threaded=True)
        plan.held_loaded = state.loaded
        plan.body = body
        return self._driven(plan, replace(self.request, body=body))

    def _takes(self, registry: Registry, state: State) -> bool:
        """Whether this request can go on in the form in which the server holds what was loaded."""
        if self.policy.strategy not in ("auto", "native") or self.able.point(state.load_point) is None:
            return False
        return state.load_point not in self._unnameable(registry, (), state.loaded)

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
            self._without_ours(),
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


def _scope(dialect: Dialect, request: Request) -> str:
    conversation = request.headers.get("x-loadpoint-conversation")
    # Names such as "1" repeat across accounts: they name one among the conversations of a credential.
    who = digest(request.credential)
    return digest(dialect.name, request.base_url, who, *([conversation] if conversation else []))


def _looks_like_a_name(word: str) -> bool:
    """Whether a word is an identifier and not just any word, such as `fetch`."""
    return not word.isalpha() or not word.islower()


def _state(transcript: Transcript) -> State | None:
    return transcript.record.state if transcript.record is not None else None
