"""The half of a call that writes requests: which tools stand where, and what the next body is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ._answers import Answers
from ._bridge import Bridge
from ._compose import Composed, definitions, references
from ._json import Json, canonical, digest, well_formed
from ._ledger._record import State
from ._loaded import Evidence, evidence, not_taken_back, told
from ._plan import ALLOWED, NAMED, Plan, Request
from ._prefix import tools_changed
from ._registry import without_keys
from ._reporting import context_tokens
from ._strategy.frozen_answers import FrozenAnswers

if TYPE_CHECKING:
    from ._session import Session

_SMALL, _MARGIN = 1_024, 1.1
"""Tokens that most providers cache from: below, more is loaded at once, for there it costs least. The margin is for the
estimate, which may be a tenth too high."""


class Sending:
    """What is sent in the rounds of one logical call, under one plan."""

    plan: Plan
    rounds: list[Json]
    answers: Answers
    proofs: list[Evidence]

    def __init__(self, session: Session, request: Request) -> None:
        self.session = session
        self.request = request

    def start(self, plan: Plan) -> None:
        """Begin to send by `plan`; also in the middle of a call, where the provider has refused the plan before."""
        self.plan = plan
        self.dialect = plan.dialect
        self.policy = plan.policy
        self.discovery = plan.policy.discovery
        if plan.bridge is not None and self.discovery == "shown":  # a provider's own search has no such items
            self.discovery = "hidden"
        self.rounds = []
        self.turn: list[Json] = []
        self.news: list[Json] = []
        self.messages = [*plan.transcript.messages]
        self.limited = False
        self.referred, defined = references(plan.transcript.views)
        self.valued = {*defined, *(() if self.dialect.by_reference else plan.held_loaded)}
        residents = [entry.name for entry in plan.registry.residents]
        self.late = plan.composer.unlisted(plan.state, residents)
        self.proofs: list[Evidence] = self._proofs()
        self.composed: Composed = self._compose(plan.state)
        self._place()
        self.answers = self._answering()
        self.tolerant = False
        self.tolerant = plan.binds_thinking and self._voids_thinking()
        plan.warnings += [f"the definition of {name} has changed" for name in self.composed.changed]
        given, betas = self.dialect.tolerant(plan.body) if self.tolerant else (plan.body, ())
        self.headers: Mapping[str, str | None] = plan.dialect.headers(self.request.headers, (*plan.betas, *betas))
        self.base = self._base(given)
        self.body = self.next_body()
        self.first_state = self.state()
        self.composed_first = self.composed
        self.first_placed = frozenset(proof.name for proof in self.proofs if proof.placed)

    def _answering(self) -> Answers:
        plan = self.plan
        answers = Answers(
            self.policy,
            plan.registry,
            plan.composer.loader_name,
            lambda: self.composed.callable,
            plan.choice.names if plan.choice.mode == ALLOWED else None,
            self._gone(),
            [],
            {},
            room=self._room,
            short_of_cache=self._short_of_cache,
            brief=plan.strategy == "native" and not self.dialect.by_reference,
            hosted=plan.hosted,
        )
        if plan.bridge is None:
            return answers
        late = [name for name in self.late if name not in self.composed.callable]
        known = told(plan.transcript.views, answers.loader) | {*plan.held_loaded}
        return FrozenAnswers.behind(
            plan.bridge,
            answers,
            listed=self.listed,
            forced=plan.forced,
            owed=tuple(dict.fromkeys([*plan.forced, *plan.pushed, *late, *self.stale])),
            stale=frozenset(self.stale),
            guidelines=self.session.guidelines,
            untold=frozenset(proof.name for proof in self.proofs) - known,
        )

    # -- what is loaded, and where -------------------------------------------------------------------------------

    def _proofs(self) -> list[Evidence]:
        plan = self.plan
        loaders = (plan.composer.loader_name, plan.registry.loader, plan.registry.bridge.load)
        proofs = evidence(plan.transcript.views, is_deferred=self._known, loaders=loaders)
        known = {proof.name for proof in proofs}
        known |= {name for view in plan.transcript.views for result in view.results for name in result.removed}
        held = [Evidence(name, 0, "search", True) for name in plan.held_loaded if name not in known]
        told = plan.held_loaded or plan.bridge is not None
        self.stale = plan.composer.stale(plan.transcript.views, plan.state if told else None)
        plan.warnings += [f"the definition of {name} has changed" for name in self.stale]
        self.valued -= set(self.stale)
        proofs = [*held, *self._with_lost(proofs)]
        if plan.bridge is None:  # else its calls are held against the new definition, which a refusal tells
            proofs = [proof for proof in proofs if proof.name not in self.stale]
        if plan.additive is None and plan.bridge is None:  # they come to stand at the end of the list
            loaded = {proof.name for proof in proofs}
            pushed = [name for name in plan.pushed if name not in loaded and self._known(name)]
            proofs += [Evidence(name, plan.transcript.turns, "added") for name in pushed]
        if plan.hosted:  # a call of a tool that is declared is no reason to list it
            proofs = [replace(proof, placed=True) for proof in proofs]
        return proofs

    def _with_lost(self, proofs: list[Evidence]) -> list[Evidence]:
        """The proofs with those that this form of the request cannot hold, each in its place."""
        order = {proof.name: at for at, proof in enumerate(self.plan.shown_before)}
        known = {proof.name for proof in proofs}
        lost = [replace(proof, placed=False) for proof in self.plan.shown_before if proof.name not in known]
        return sorted([*proofs, *lost], key=lambda proof: order.get(proof.name, len(order)))

    def _place(self) -> None:
        """Load what has to be there without a search by messages of our own, where the model takes them.

        Those are tools of which a direct call is the evidence, tools that were pushed or that the caller has added as
        residents, and tools with a new definition. What is gone is taken back in the same way. All of it stands at the
        end of the request, and from then on at the head of the turn that answers it; the load of a call whose turn is
        long over, and of which nothing is on record, stands where it would have stood then.
        """
        plan = self.plan
        if plan.additive is None or plan.transcript.prefill:
            return
        kept, late = self._kept(), self._rebuilt()
        by_value = plan.additive.declare == ""
        self.valued |= late.keys() if by_value else set()
        self.referred = [name for name in self.referred if name not in late] + ([] if by_value else [*late])
        loaded = {proof.name for proof in self.proofs}
        names = [name for name in self._unplaced() if name in plan.registry.by_name]
        ends = [name for name in names if name not in late or name not in loaded]  # taken back since: once more
        gone = [name for name in sorted(self._gone()) if plan.state is None or name not in plan.state.gone]
        self.turn = self.news = self._changes(ends, gone)
        for place in sorted(set(late.values()), reverse=True):
            self.messages[place:place] = self._changes([name for name in late if late[name] == place], ())
        if not self.turn and not late:
            return
        self.valued |= set(names) if by_value else set()
        placed = {*names, *late}
        self.proofs = [replace(proof, placed=proof.placed or proof.name in placed) for proof in self.proofs]
        new = [name for name in names if name not in loaded]
        self.proofs += [Evidence(name, plan.transcript.turns, "added", placed=True) for name in new]
        self.composed = self._compose(plan.state)
        self.composed.changed += [name for name in late if name in kept and self._wire(name) != kept[name]]

    def _changes(self, names: Sequence[str], gone: Sequence[str]) -> list[Json]:
        additive = self.plan.additive
        if additive is None or not (names or gone):
            return []
        return self.dialect.changes([*map(self._wire, names)], gone, by_value=additive.declare == "")

    def _wire(self, name: str) -> Json:
        """The definition of a tool, or the last one that is known of a tool that has left."""
        known = self.plan.registry.definitions([name])
        return known[0] if known else self._kept()[name]

    def _kept(self) -> dict[str, Json]:
        """The last known definitions of what was ever loaded in this conversation."""
        state = self.plan.state
        return {self.dialect.tool_name(wire) or "": wire for wire in state.definitions} if state is not None else {}

    def _listed(self) -> set[str]:
        """The tools that stood in the list of the last request, in the model's context."""
        state = self.plan.state
        if state is None:
            return set()
        return {self.dialect.tool_name(tool) or "" for tool in state.tools} - set(state.declared)

    def _rebuilt(self) -> dict[str, int]:
        """The loads of direct calls that are in no record, each with its place: in front of the turn that followed.

        Once there, a load stays, whatever has become of its tool since.
        """
        views = not_taken_back(self.plan.transcript.views)
        roles = ["", *(view.role for view in views)]
        turns = [at for at in range(len(views)) if roles[at + 1] == "assistant" != roles[at]]
        kept, listed = self._kept(), self._listed()
        loaders = (self.plan.composer.loader_name, self.plan.registry.loader)
        proofs = evidence(views, is_deferred=lambda name: self._known(name) or name in kept, loaders=loaders)
        out: dict[str, int] = {}
        for proof in proofs:
            if proof.why == "call" and proof.turn < len(turns) and proof.name not in listed:
                answered = views[turns[proof.turn - 1] : turns[proof.turn]]
                if not any(proof.name in result.names for view in answered for result in view.results):
                    out[proof.name] = turns[proof.turn]
        return out

    def _unplaced(self) -> list[str]:
        plan, state, listed = self.plan, self.plan.state, self._listed()
        placed = {proof.name for proof in self.proofs if proof.placed}
        names = [proof.name for proof in self.proofs if not proof.placed and proof.name not in listed]
        names += [*self.stale, *(name for name in plan.pushed if name not in listed | placed)]
        if state is not None and plan.transcript.turns:
            names += [name for name in state.gone if name not in listed | placed]  # some of them are back
            residents = [entry.name for entry in plan.registry.residents if entry.tool is not None]
            names += [name for name in residents if name not in listed | self.valued]
        return list(dict.fromkeys(name for name in names if name not in plan.forced))

    def _room(self) -> int | None:
        """How many tools can still be appended to the list."""
        most = self.plan.most if self.plan.strategy == "resend" else None
        return None if most is None else most - len(self.composed.tools) + len(self.composed.declared)

    def _short_of_cache(self) -> int:
        """How many tokens (estimate, from above) the prompt lacks to be cached; 0 where it is, and where nothing is."""
        least = self.plan.cached_from
        tools, context = context_tokens(self)
        kept = tools if self.plan.strategy == "resend" else context  # the next load breaks the prompt there
        return max(round(max(least, _SMALL) * _MARGIN) - kept, 0) if least else 0

    def _compose(self, state: State | None) -> Composed:
        proofs = [replace(proof, placed=proof.placed and not self._unnamed(proof)) for proof in self.proofs]
        return self.plan.composer.compose(state, proofs, self.plan.forced, self.referred, self.valued)

    def _unnamed(self, proof: Evidence) -> bool:
        """Whether a tool is demanded that stands where no `tool_choice` can name it: then the list holds it as well."""
        additive = self.plan.additive
        ours = proof.name in self.plan.forced and proof.why != "search"
        return ours and additive is not None and NAMED not in additive.choosable

    def _known(self, name: str) -> bool:
        return self.plan.registry.is_deferred(name) or name in self.late

    @property
    def listed(self) -> list[str]:
        """The names in the list of tools."""
        return [name for tool in self.composed.tools if (name := self.dialect.tool_name(tool)) is not None]

    def _gone(self) -> frozenset[str]:
        """Tools that stand in the request because they once were loaded, but that the caller no longer has."""
        plan = self.plan
        names = {self.dialect.tool_name(tool) or "" for tool in self.composed.tools}
        if plan.state is not None and (self.valued or not self.dialect.by_reference):
            # What is loaded by value may also be the caller's own: ours is what was sent with a record.
            names |= {self.dialect.tool_name(tool) or "" for tool in plan.state.definitions} & set(plan.state.loaded)
        ours = {plan.composer.loader_name, ""}
        if plan.bridge is not None:
            names |= set(plan.state.loaded) if plan.state is not None else set()
            ours.add(plan.bridge.call)
        return frozenset(names - plan.registry.by_name.keys() - ours)

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

    # -- the bodies ----------------------------------------------------------------------------------------------

    def _base(self, given: Json) -> Json:
        plan = self.plan
        rest = self.dialect.with_tools(self.dialect.with_messages(given, ()), ())  # both are read, and made good, alone
        if well_formed(rest) is not rest:
            given = well_formed(given)
        body = self.dialect.prepared(given, usage=self.session.asks_usage(self.request, self.dialect))
        body = self.dialect.with_messages(body, self.messages)
        if self.policy.catalog == "system" and plan.catalog:
            return self.dialect.with_catalog(body, plan.catalog) or body
        return body

    def next_body(self) -> Json:
        """The next upstream body: the caller's request with what is sent instead of its messages and tools."""
        plan = self.plan
        body = self._continued(self.base)
        resumed = bool(self.rounds or plan.held_loaded or not self.dialect.tools(self.request.body))
        held = plan.threaded and self.dialect.server_keeps_tools and resumed
        if not held:
            body = self.dialect.with_tools(body, self.composed.tools)
        if plan.choice.mode == ALLOWED:
            can = self.composed.callable if plan.bridge is None else self.listed
            ours = [plan.composer.loader_name, *([plan.bridge.call] if plan.bridge is not None else [])]
            body = self.dialect.with_allowed(body, [*(name for name in plan.choice.names if name in can), *ours])
        if len(self.rounds) + 1 >= self.policy.max_rounds or self.answers.exhausted:
            self.limited = True
        # Where the application answers the loader, a loader call ends the round like any other; a provider's own search
        # takes no round of ours.
        if plan.bridge is not None:
            body = self._through(body, plan.bridge)
        elif self.limited and self.discovery != "caller" and not plan.hosted:
            body = self._last_round(body, self._own())
        if not held and self.policy.cache == "auto" and not self.dialect.is_marked(self.request.body):
            body = self.dialect.with_markers(body)
        return self.dialect.settled(body)

    def _last_round(self, body: Json, own: Sequence[str]) -> Json:
        plan = self.plan
        loader, refused = plan.composer.loader_name, plan.refused_choices
        return self.dialect.last_round(body, plan.choice, loader, own, refused=refused)

    def _through(self, body: Json, bridge: Bridge) -> Json:
        """The body with what becomes of the caller's `tool_choice` where his tools are called through a bridge.

        A tool that he names is loaded first, if it is not, and then called. In the last round the list stays whole
        where it can: a call is demanded through the bridge rather than by leaving the loader out.
        """
        choice, forced = self.plan.choice, self.plan.forced
        if forced:
            ready = forced[0] in self.composed.callable or self.limited
            return self.dialect.with_named(body, bridge.call if ready else bridge.load)
        if not self.limited or self.discovery == "caller":
            return body
        if choice.required and choice.mode != NAMED and len(self.composed.callable) > len(self.listed):
            return self.dialect.with_named(body, bridge.call)
        return self._last_round(body, [name for name in self._own() if name in self.listed])

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
        if not self.plan.threaded or not self.rounds:
            return self.dialect.with_messages(body, [*self.dialect.messages(body), *self.turn])
        previous = self.dialect.reply(self.rounds[-1])
        return self.dialect.continued(body, previous.id if previous else "", self.news)

    def _pushes(self) -> int:
        """How many pushes the model knows of: with a bridge it is told of them when it loads tools."""
        plan = self.plan
        waits = plan.bridge is not None and plan.state is not None and plan.pushed and not self.answers.told
        return plan.state.pushed if waits and plan.state is not None else plan.pushes

    def uses_form(self) -> bool:
        """Whether the last body held anything that only the native form puts there."""
        plan = self.plan
        if plan.strategy != "native":
            return False
        placed = any(proof.placed for proof in self.proofs)
        special = self.dialect.tool(plan.composer.loader) is None
        return bool(plan.betas or placed or self.composed.declared or special or self.turn)

    def _to_keep(self, loaded: list[str]) -> list[str]:
        """The tools whose definitions go on record: with a bridge, all of a conversation whose requests bring none."""
        plan = self.plan
        if plan.bridge is None or not (plan.threaded and self.dialect.server_keeps_tools):
            return loaded
        listed = {*loaded, *self.listed}
        return [*loaded, *(n for n, e in plan.registry.by_name.items() if e.tool is not None and n not in listed)]

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
            definitions=definitions(plan.composer, plan.state, self._to_keep(names)),
            system=plan.transcript.system,
            loaded=tuple(names),
            tolerant=self.tolerant,
            gone=tuple(sorted(self._gone())),
            pushed=self._pushes(),
            calls=plan.bridge.call if plan.bridge is not None else "",
            model=str(plan.body.get("model") or ""),
            settings=digest(canonical(plan.dialect.rendered(plan.body))),
        )
        known = plan.state
        return known if known is not None and known == state else state  # one object for a conversation's records
