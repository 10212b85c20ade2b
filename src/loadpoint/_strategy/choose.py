"""Which strategy a conversation takes, and why: one pure decision, from policy, data and the transcript."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .. import _models
from .._capability import Capability, LoadPoint
from .._policy import Policy
from .._prices import CacheRule

DEFERRING = ("native", "resend", "frozen")
LOADER_TOKENS = 220
"""What the loader costs without its catalog: its description and two parameters."""
CATALOG_LINE = 12
"""A catalog line: a name and the start of a description."""
SMALL_CONTEXT = 1000
"""The context that the thresholds in the data already allow for."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision. `reason` is one sentence for the report.

    `threshold` is the number of deferrable tokens that was asked for, None where none was. `would_send` is an estimate
    of the tool tokens that a first request with deferral carries, also where the choice is `eager`.
    """

    strategy: str
    load_point: str | None
    reason: str
    threshold: int | None = None
    would_send: int = 0


@dataclass(frozen=True, slots=True)
class _Case:
    """The arguments of `choose`, for its steps."""

    policy: Policy
    capability: Capability
    rule: CacheRule
    tokens: int
    residents: int
    count: int
    functions: int
    context: int
    evidence: bool
    marked: bool
    refused: Collection[str]
    unnamed: Collection[str]
    taken: Collection[str]
    renders: Collection[str] | None
    doubted: Collection[str]

    @property
    def would_send(self) -> int:
        return self.residents + LOADER_TOKENS + min(self.policy.catalog_tokens, CATALOG_LINE * self.count)

    def choice(self, strategy: str, point: LoadPoint | None, reason: str, threshold: int | None = None) -> Choice:
        if strategy == "eager" and self.count:
            would, all_tokens = self.would_send, self.tokens + self.residents
            reason += f"; deferral would have sent about {would:,} tool tokens instead of {all_tokens:,}"
        if self.taken:
            reason += f"; the search of {', '.join(sorted(self.taken))} has the name of one of the tools"
        return Choice(strategy, point.name if point else None, reason, threshold, self.would_send)


def choose(  # noqa: PLR0913 - every fact that the decision rests on, by name
    *,
    policy: Policy,
    capability: Capability,
    deferrable_tokens: int,
    resident_tokens: int,
    deferrable_count: int,
    cache_rule: CacheRule,
    pinned: str | None,
    evidence: bool,
    refused: Collection[str] = (),
    unnamed: Collection[str] = (),
    taken: Collection[str] = (),
    pinned_load_point: str | None = None,
    marked: bool = False,
    resident_count: int = 0,
    context_tokens: int = 0,
    renders: Collection[str] | None = None,
    doubted: Collection[str] = (),
) -> Choice:
    """The strategy for this request. Deterministic and total: there is always an answer.

    `pinned` / `pinned_load_point`: what the record of this conversation says. `evidence`: the transcript shows a load.
    `marked`: the caller marked the tools to defer. `refused`: load points (or "native") that this endpoint has refused
    for this model. `unnamed`: load points whose tools this request's `tool_choice` could not name. `taken`: load points
    that were asked for and whose search has the name of a tool of the caller. `renders`: the load points that the
    dialect can write (None: all). `doubted`: load points behind which the cache was not read here. `context_tokens`:
    the rest of the request. `resident_tokens` and `resident_count` are without the loader.

    Order: the policy's own strategy; the record; a transcript that shows a load, or the caller's marks, keep deferral;
    a list longer than the provider takes is deferred; the threshold.
    """
    case = _Case(
        policy, capability, cache_rule, deferrable_tokens, resident_tokens, deferrable_count,
        deferrable_count + resident_count, context_tokens, evidence, marked, refused, unnamed, taken, renders,
        doubted,
    )  # fmt: skip
    if not deferrable_count and pinned not in DEFERRING and not evidence:
        return case.choice("eager", None, "no tool may be deferred")
    if policy.strategy != "auto":
        return _insisted(case, pinned)
    if pinned == "eager" or pinned in DEFERRING:
        return _kept(case, pinned, pinned_load_point)
    if marked:
        return _deferred(case, "the caller marked the tools to defer")
    if evidence:
        return _deferred(case, "the conversation shows a load, so it stays deferred")
    return _by_cost(case)


def threshold(strategy: str, rule: CacheRule, context_tokens: int = 0) -> int | None:
    """From how many deferrable tokens `strategy` pays under a cache rule; None where the data says never."""
    for row in _models.table("thresholds")["threshold"]:
        if row["strategy"] == strategy and rule.read >= row["read"] and rule.write <= row["write"]:
            return int(row["tokens"] + row["per_context"] * max(context_tokens - SMALL_CONTEXT, 0))
    return None


def _insisted(case: _Case, pinned: str | None) -> Choice:
    strategy = case.policy.strategy
    reason = f'the policy says "{strategy}"'
    least = case.policy.threshold_tokens
    started = case.evidence or case.marked or pinned in DEFERRING
    if strategy != "eager" and least is not None and case.tokens < least and not started:
        return _all_sent(case, strategy, least)
    if strategy != "native":
        return case.choice(strategy, None, reason)
    point = _point(case, elsewhere=True, any_form=True)
    if point is not None:
        if point.name not in case.capability.load_points:
            reason += f", although {case.capability.reason}"
        return case.choice("native", point, reason)
    return case.choice("resend", None, f"{reason}, but {_no_native(case)}")


def _kept(case: _Case, pinned: str, pinned_load_point: str | None) -> Choice:
    reason = "as this conversation began"
    if pinned != "native":
        return case.choice(pinned, None, reason)
    point = _point(case, prefer=pinned_load_point, elsewhere=True)
    if point is not None:
        return case.choice("native", point, reason)
    return case.choice("resend", None, f"this conversation began with native, but {_no_native(case)}")


def _deferred(case: _Case, reason: str) -> Choice:
    """Deferral whatever it costs."""
    point = _point(case)
    if point is not None:
        return case.choice("native", point, f"{reason}; {case.capability.reason}")
    return case.choice("resend", None, f"{reason}; {_no_native(case)}")


def _by_cost(case: _Case) -> Choice:
    most = case.capability.limits.functions
    if most is not None and case.functions > most:
        return _deferred(case, f"{case.functions:,} tools are more than the {most} that this endpoint takes")
    point = _point(case)
    strategy = "native" if point is not None else "resend"
    if point is None and strategy not in case.capability.strategies:
        return case.choice("eager", None, case.capability.reason)
    given = case.policy.threshold_tokens
    least = threshold(strategy, case.rule, case.context) if given is None else given
    if least is None:
        reason = f"a load by {strategy} costs more than it saves at this provider's cache prices"
        return case.choice("eager", None, reason)
    if case.tokens < least or (given is None and case.would_send >= case.tokens + case.residents):
        return _all_sent(case, strategy, least)
    if point is None:
        return case.choice("resend", None, _no_native(case), least)
    asked = f"the policy asks for {point.name}" if point.hosted or point.by_choice else case.capability.reason
    return case.choice("native", point, asked, least)


def _all_sent(case: _Case, strategy: str, least: int) -> Choice:
    source = "the policy asks for" if case.policy.threshold_tokens is not None else f"{strategy} needs to pay here"
    reason = f"{case.tokens:,} deferrable tokens are fewer than the {least:,} that {source}"
    return case.choice("eager", None, reason, least)


def _no_native(case: _Case) -> str:
    """Why there is no native form to take."""
    if case.refused and case.capability.points:
        return f"this endpoint has refused {', '.join(sorted(case.refused))}"
    if case.doubted and case.capability.points:
        return f"the cache is not read here behind loads by {', '.join(sorted(case.doubted))}"
    if case.unnamed and case.capability.points:
        return f"the request's tool_choice cannot name tools that {', '.join(sorted(case.unnamed))} loads"
    if case.capability.native:
        return "the native forms of this model are not available here"
    return case.capability.reason


def _point(
    case: _Case, *, prefer: str | None = None, elsewhere: bool = False, any_form: bool = False
) -> LoadPoint | None:
    """The load point to use, None if there is none.

    `prefer` is taken if it still can be, else the one that the policy prefers. `elsewhere` allows, where this endpoint
    is known to take nothing, what the model takes on its provider's own. `any_form` allows a form of ours that is
    otherwise taken by choice only; hosted search is taken where the policy asks for it.
    """
    if "native" in case.refused:
        return None
    own = case.capability.points
    known = own if own or not elsewhere else case.capability.insisted
    usable = [
        point
        for point in known
        if point.name not in {*case.refused, *case.unnamed, *case.taken, *case.doubted}
        and (case.renders is None or point.name in case.renders)
        and not (point.declare == "all" and case.count > (case.capability.limits.deferred or case.count))
    ]
    for wanted in (prefer, case.policy.load_point):
        for point in usable:
            if point.name == wanted:
                return point
    hosted = case.policy.search == "hosted"
    fitting = [point for point in usable if point.hosted and hosted]
    fitting += [point for point in usable if not point.hosted and (any_form or not point.by_choice)]
    return fitting[0] if fitting else None
