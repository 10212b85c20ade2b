"""Builds `CallReport`s."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _prices
from ._json import dumps
from ._prefix import against_bill, in_context, predict
from ._registry import Registry
from ._report import CallReport, LoadedTool, Prefix, Tokens
from ._tokens import estimate, estimate_bytes, utf8_size
from ._usage import read, read_from_cache

if TYPE_CHECKING:
    from ._engine import Call
    from ._sending import Sending


_TELLING = 1_000
"""Deferred tokens from which an estimate can tell whether they were billed."""
_MOST_OF = 0.6
_CACHED = 1_024
"""Tokens from which any provider caches that does: what the data says of smaller minimums is often unverified."""


def passing_report(
    reason: str, registry: Registry | None, *, warnings: tuple[str, ...] = (), weighed: bool = False
) -> CallReport:
    """The report of a call that is sent as it came; with a registry it says what deferral would have sent.

    `weighed`: the reason says so already, since it comes from weighing the strategies.
    """
    if registry is None:
        return CallReport("eager", None, reason, warnings=warnings)
    everything = registry.deferred_tokens + registry.resident_tokens
    if registry.deferred and not weighed:
        reason = f"{reason}; deferral would have sent about {registry.resident_tokens:,} of {everything:,} tool tokens"
    return CallReport(
        strategy="eager",
        load_point=None,
        reason=reason,
        resident=tuple(entry.name for entry in (*registry.residents, *registry.deferred)),
        tokens=Tokens(sent=everything, eager=everything),
        warnings=warnings,
    )


def context_tokens(call: Sending) -> tuple[int, int]:
    """What the tools of the last body cost in context, and what the whole of it does, in tokens (estimate)."""
    plan = call.plan
    state = call.state()
    sent = estimate_bytes(sum(utf8_size(dumps(tool)) for tool in in_context(plan.dialect, state)))
    if plan.policy.catalog == "system" and plan.dialect.with_catalog(call.request.body, "") is not None:
        sent += estimate(plan.catalog)
    resident = {plan.dialect.tool_name(tool) for tool in state.tools} - {*state.declared}
    placed = [proof.name for proof in call.proofs if proof.placed and proof.name not in resident]
    sent += sum(plan.registry.tokens(name) for name in placed) if plan.load_point else 0
    turn = estimate_bytes(sum(utf8_size(dumps(message)) for message in call.turn))
    context = sent + plan.transcript.tokens + turn + estimate(plan.dialect.system(call.request.body))
    there = sum(plan.registry.tokens(name) for name in placed if name in call.valued)
    return sent, context - min(there, plan.transcript.tokens + turn)  # they were counted where they stand


def call_report(call: Call) -> CallReport:
    """The report of a call as far as it has come."""
    plan = call.plan
    sent, context = context_tokens(call)
    eager = plan.registry.deferred_tokens + plan.registry.resident_tokens
    limit = ("search_limit",) if call.limited else ()
    return CallReport(
        strategy=plan.strategy,
        load_point=plan.load_point,
        reason=plan.reason,
        resident=tuple(entry.name for entry in plan.registry.residents),
        loaded=tuple(LoadedTool(proof.name, proof.turn, proof.why) for proof in call.proofs)
        + tuple(LoadedTool(name, plan.transcript.turns, "forced") for name in plan.forced if plan.bridge is None),
        deferred=len(plan.registry.deferred),
        tokens=Tokens(sent=sent, eager=eager, saved=eager - sent, context=context),
        rounds=tuple(call.log),
        added_rounds=max(len(call.log) - 1, 0),
        added_ms=sum(entry.ms for entry in call.log[:-1]),
        prefix=_prefix(call),
        searches=tuple(call.answers.searches),
        repairs=tuple(call.answers.repairs),
        warnings=(*plan.warnings, *call.notes, *_ignored(call, context), *limit),
    )


def _ignored(call: Call, context: int) -> tuple[str, ...]:
    """A warning where the usage says that tools which were only declared stand in the model's context all the same.

    Providers that do not know the mark drop it without an error. A search of theirs bills its passes, so that a request
    with one says nothing.
    """
    waiting = set(call.composed.declared) - {proof.name for proof in call.proofs if proof.placed}
    declared = sum(call.plan.registry.tokens(name) for name in waiting)
    if len(call.log) != 1 or declared < _TELLING or (call.plan.hosted and call.answers.searches):
        return ()
    billed = read(call.log[0].usage, call.plan.dialect.usage_fields).input_tokens
    if billed - context < declared * _MOST_OF:
        return ()
    text = (
        f"deferral seems to be ignored here: {billed:,} input tokens where about {context:,} were expected, beside "
        f"about {declared:,} of deferred tools; see Policy.load_point and Policy.strategy"
    )
    return (text,)


def cached_after_load(call: Call) -> bool | None:
    """Whether the round behind a search read the prompt from the cache that the round before had brought there.

    Within one call nothing but the load has come between, no time either. None where that says nothing: the load point
    is not the conversation itself, nothing was loaded, the prompt is too short, or the usage does not tell.
    """
    plan, at = call.plan, call.loaded_in
    if plan.point is None or plan.hosted or not plan.cached_from or at is None or at + 1 >= len(call.log):
        return None
    if callable(plan.policy.confirm):  # somebody is asked in between, which takes as long as it takes
        return None
    fields = plan.dialect.usage_fields
    cached = read_from_cache(call.log[at + 1].usage, fields)
    if cached is None or read(call.log[at].usage, fields).input_tokens < 2 * max(plan.cached_from, _CACHED):
        return None
    return cached > 0


def _prefix(call: Call) -> Prefix:
    plan = call.plan
    record = plan.transcript.record
    verdict = predict(
        plan.dialect,
        plan.transcript,
        plan.state or (record.state if record else None),
        call.first_state,
        context=record.context_tokens if record else 0,
        forced=bool(plan.forced),
        redefined=any(name in call.first_placed for name in call.composed_first.changed),
    )
    if not call.log or not call.log[0].usage:
        return verdict
    model = str(call.request.body.get("model") or "")
    rule = _prices.cache_rule(model, plan.dialect.name, plan.policy.endpoint or call.request.base_url)
    cached = read_from_cache(call.log[0].usage, plan.dialect.usage_fields)
    return against_bill(verdict, cached=cached, minimum=rule.minimum, block=rule.block)
