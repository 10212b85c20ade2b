"""What is decided of a request before anything is sent: how the tools reach the model, and why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from . import _prices
from ._bridge import load_description
from ._capability import Capability, LoadPoint, capability
from ._catalog import PLAIN_NAME
from ._compose import Composer
from ._dialect import Dialect, View
from ._json import Json, digest
from ._ledger import Record, State
from ._loaded import Evidence, evidence
from ._loader import loader_description, loader_schema
from ._plan import ALLOWED, NAMED, Plan, Request
from ._policy import Policy
from ._refusal import Refusal
from ._registry import NameLimits, Registry
from ._replay import Transcript
from ._strategy import Choice as Chosen
from ._strategy import choose
from ._strategy.frozen import FrozenComposer, composer
from ._strategy.wrapping import FROZEN, names_of
from ._tokens import estimate

if TYPE_CHECKING:
    from ._session import Session

_NAME = re.compile(r"[A-Za-z0-9_.:-]+")


class Deciding:
    """The decisions on one request of a known dialect. `kind` is create, count or batch."""

    def __init__(self, session: Session, dialect: Dialect, kind: str, request: Request, policy: Policy) -> None:
        self.session = session
        self.dialect = dialect
        self.kind = kind
        self.request = request
        self.policy = policy
        self.model = str(request.body.get("model") or "")
        self.place = policy.endpoint or request.base_url
        self.scope = scope_of(dialect, request)
        self.held = dialect.held(request.body)
        self.refusals = frozenset(session.refusals.of(self.place, self.model))
        self.doubts = session.doubts.of(self.place, self.model)
        self.begun = False
        """Whether a round of this very call has searched already."""

    @cached_property
    def record(self) -> Record | None:
        """What is remembered of the server-held conversation that this request continues."""
        name = self.held.name if self.held is not None else None
        return None if name is None else self.session.find(digest(self.scope, *name))

    @cached_property
    def able(self) -> Capability:
        """What the model takes here, and what arrives here."""
        carrier = self.request.carrier
        found = capability(self.model, self.spoken, self.place)
        return found if carrier is None else carrier.narrowed(found)

    @property
    def spoken(self) -> str:
        """The dialect in which the endpoint is spoken to."""
        carrier = self.request.carrier
        return (carrier.speaks if carrier is not None else "") or self.dialect.name

    @property
    def cache_rule(self) -> _prices.CacheRule:
        """How prompts are cached here."""
        return _prices.cache_rule(self.model, self.spoken, self.place)

    def _doubted(self, pinned: str | None) -> list[str]:
        """The load points that are doubted here, but for the one of this conversation and the one of the policy."""
        kept = (pinned, self.policy.load_point)
        return [found.point for found in self.doubts if not found.wants_all and found.point not in kept]

    def _cached_from(self) -> int:
        rule = self.cache_rule
        caches = rule.automatic or self.policy.cache == "auto" or self.dialect.is_marked(self.request.body)
        return rule.minimum if caches and rule.read < 1 else 0

    def names(self) -> NameLimits:
        """What can be the name of a tool that is loaded here.

        A tool behind a bridge stands in no list of the endpoint's: its name only has to be one that a prompt may show.
        """
        if self.policy.strategy == FROZEN:
            return NameLimits(PLAIN_NAME)
        limits = self.able.limits
        refers = any(point.declare for point in self.able.points)
        return NameLimits(limits.name_pattern, limits.reference_length if refers else None)

    def chosen(self, registry: Registry, transcript: Transcript) -> Chosen:
        state = state_of(transcript)
        return choose(
            policy=self.policy,
            capability=self.able,
            deferrable_tokens=registry.deferred_tokens,
            resident_tokens=registry.resident_tokens,
            deferrable_count=len(registry.deferred),
            cache_rule=self.cache_rule,
            pinned=state.strategy if state else None,
            pinned_load_point=state.load_point if state else None,
            evidence=self.begun or (state is None and self._shows_a_load(registry, transcript)),
            marked=registry.marked,
            resident_count=len(registry.residents),
            context_tokens=transcript.opening + estimate(self.dialect.system(self.request.body)),
            renders=self.dialect.renders,
            refused=[refusal.point for refusal in self.refusals if not refusal.wants_all],
            doubted=[] if self.begun else self._doubted(state.load_point if state else None),
            unnamed=self.unnameable(registry, transcript.views),
            taken=self._taken(registry, state.load_point if state else None),
        )

    def _taken(self, registry: Registry, pinned: str | None) -> list[str]:
        """The provider's own searches that this conversation would have, and whose name is that of a tool."""
        found: list[str] = []
        for point in {point.name: point for point in (*self.able.insisted, *self.able.points) if point.hosted}.values():
            asked = self.policy.search == "hosted" or point.name in (self.policy.load_point, pinned)
            search = self.dialect.at(point.name, point.variant).loader(registry.loader, "", {})
            if asked and self.dialect.tool_name(search) in registry.by_name:
                found.append(point.name)
        return found

    def unnameable(self, registry: Registry, views: Sequence[View], held: Sequence[str] = ()) -> list[str]:
        """The load points whose tools this request's `tool_choice` could not name; `held` are loaded at the server."""
        choice = self.dialect.choice(self.request.body)
        if choice.mode not in (ALLOWED, NAMED):
            return []
        proofs = evidence(views, is_deferred=registry.is_deferred, loaders=(registry.loader, registry.bridge.load))
        loaded = {*held, *(proof.name for proof in proofs)}
        if choice.mode == NAMED and not loaded & set(choice.names):
            return []
        return [point.name for point in self.able.points if choice.mode not in point.choosable]

    def loaded(self, registry: Registry, transcript: Transcript) -> list[Evidence]:
        """What the transcript proves to be loaded."""
        return evidence(transcript.views, is_deferred=registry.is_deferred, loaders=self._loaders(registry, transcript))

    def _loaders(self, registry: Registry, transcript: Transcript) -> tuple[str, ...]:
        """The names of what loads tools, in any strategy."""
        names = names_of(state_of(transcript))
        return (registry.loader, registry.bridge.load, *(() if names is None else (names.load,)))

    def _shows_a_load(self, registry: Registry, transcript: Transcript) -> bool:
        """Whether the transcript shows a search; a conversation that is on record says itself how it is sent."""
        return any(proof.why == "search" for proof in self.loaded(registry, transcript))

    def plan(self, registry: Registry, transcript: Transcript, chosen: Chosen, *, threaded: bool) -> Plan:
        point = self.able.point(chosen.load_point)
        dialect = self.dialect.at(chosen.load_point, point.variant if point is not None else "")
        hosted = point is not None and point.hosted
        frozen = chosen.strategy == FROZEN
        known = self._goes_on(registry, state_of(transcript), dialect, chosen.load_point, frozen=frozen)
        text = known.catalog if known else self._catalog(registry, hosted=hosted, frozen=frozen)
        choice = self.dialect.choice(self.request.body)
        named = choice.names if choice.mode == NAMED else ()
        binds = self.able.binds_thinking and self._is_its_own(self.able)
        state = known if transcript.exact or frozen else None
        writer: Composer
        if frozen:
            writer = self._bridged(dialect, registry, known, text)
            named = writer.unlisted(known, named)
        else:
            loader = self._loader(dialect, registry, known, text)
            whole = threaded or self._declares_all(point, state_of(transcript), registry)
            writer = Composer(dialect, registry, loader, declare_all=whole)
            named = tuple(name for name in named if registry.is_deferred(name))
        return Plan(
            policy=self.policy,
            dialect=dialect,
            registry=registry,
            composer=writer,
            transcript=transcript,
            state=state,
            strategy=chosen.strategy,
            load_point=chosen.load_point,
            reason=chosen.reason,
            catalog=text,
            choice=choice,
            forced=named,
            warnings=[*registry.warnings, *self._warnings(registry, transcript)],
            scope=self.scope,
            body=self.request.body,
            point=point,
            additive=self.additive(chosen),
            most=self.able.limits.functions,
            cached_from=self._cached_from(),
            refused_choices=self.able.refused_choices,
            pushed=self._pushed(state),
            pushes=self.session.toolbox.generation if self.session.toolbox is not None else 0,
            threaded=threaded,
            bridge=writer.bridge,
            binds_thinking=binds,
            voided=binds and self._voided(transcript),
        )

    def _is_its_own(self, able: Capability) -> bool:
        """Whether the endpoint is that of the model's provider."""
        return capability(self.model, self.dialect.name).endpoint == able.endpoint

    def _pushed(self, state: State | None) -> tuple[str, ...]:
        """The tools that the application has pushed since the last request of this conversation."""
        box = self.session.toolbox
        return () if box is None or state is None else box.pushed(state.pushed)

    def cannot_change(self, transcript: Transcript, chosen: Chosen) -> bool:
        """Whether the conversation changes its tools by messages which another model took, and this one does not.

        A caller who asks for the feature himself knows better than the data.
        """
        changed = any(view.role == "system" and view.results for view in transcript.views)
        if not changed or self.additive(chosen) is not None:
            return False
        points = (*self.able.points, *self.able.insisted)
        betas = [beta for point in points if point.additive for beta in point.betas]
        return not any(beta in value for beta in betas for value in self.request.headers.values())

    def _goes_on(
        self, registry: Registry, known: State | None, dialect: Dialect, load_point: str | None, *, frozen: bool
    ) -> State | None:
        """How the conversation was sent so far, where this request can go on so."""
        if known is None or known.strategy == "eager" or {known.loader, known.calls} & registry.by_name.keys():
            return None
        if (known.strategy == FROZEN) != frozen:
            return None
        if frozen:
            return known
        before = self.dialect.at(known.load_point)
        loader = dialect.tool_name(dialect.loader(registry.loader, "", loader_schema()))
        alike = before.by_reference == dialect.by_reference and known.loader == loader
        # Otherwise there is another loader, and there are other tools in the list.
        return known if known.load_point == load_point or (alike and dialect.by_reference) else None

    def _declares_all(self, point: LoadPoint | None, state: State | None, registry: Registry) -> bool:
        """Whether every deferred tool is declared: by the data, as the endpoint has asked for, or as it was begun."""
        if point is None:
            return False
        late = Refusal(point.name, wants_all=True)
        if point.declare == "all" or late in self.refusals:
            return True
        begun = state is not None and 0 < len(state.declared) < len(registry.deferred)
        return late in self.doubts and not begun and point.name != self.policy.load_point

    def additive(self, chosen: Chosen) -> LoadPoint | None:
        """The form by which tools are placed where the model did not search, beside the native form of the request."""
        if chosen.strategy != "native":
            return None
        refused = {refusal.point for refusal in self.refusals if not refusal.wants_all}
        own = self.able.point(chosen.load_point)
        for point in (own, *self.able.points):
            if point is not None and point.additive and point.name in self.dialect.renders - refused:
                return point
        return None

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

    def _catalog(self, registry: Registry, *, hosted: bool, frozen: bool) -> str:
        """The listing within its budget, and within what the endpoint takes as a description where it stands there.

        A provider's own search has no description of ours that could hold it, and knows itself what it can find.
        """
        if hosted:
            return ""
        budget = self.policy.catalog_tokens
        text = registry.catalog(budget)
        most = self.able.limits.description_length if self.policy.catalog == "tool" else None
        whole = partial(load_description, bridge=registry.bridge, confirm=self._model_confirms) if frozen else None
        while most is not None and text and len((whole or loader_description)(text)) > most:
            budget //= 2
            text = registry.catalog(budget)
        return text

    @property
    def _model_confirms(self) -> bool:
        return self.policy.confirm == "model"

    def _bridged(self, dialect: Dialect, registry: Registry, known: State | None, text: str) -> FrozenComposer:
        listed = text if self.policy.catalog == "tool" else ""
        return composer(dialect, registry, known, listed, confirm=self._model_confirms)

    def _loader(self, dialect: Dialect, registry: Registry, known: State | None, text: str) -> Json:
        for tool in known.tools if known else ():
            if known is not None and dialect.tool_name(tool) == known.loader:
                return dialect.definition(tool, deferred=False)
        listed = text if self.policy.catalog == "tool" else ""
        return dialect.loader(registry.loader, loader_description(listed), loader_schema(confirm=self._model_confirms))


def scope_of(dialect: Dialect, request: Request) -> str:
    """Whose conversations a request can be of: those of one API, endpoint and credential, or the one that it names."""
    conversation = request.headers.get("x-loadpoint-conversation")
    # Names such as "1" repeat across accounts: they name one among the conversations of a credential.
    who = digest(request.credential)
    return digest(dialect.name, request.base_url, who, *([conversation] if conversation else []))


def _looks_like_a_name(word: str) -> bool:
    """Whether a word is an identifier and not just any word, such as `fetch`."""
    return not word.isalpha() or not word.islower()


def state_of(transcript: Transcript) -> State | None:
    """How the conversation was sent last; None where that is not known."""
    return transcript.record.state if transcript.record is not None else None
