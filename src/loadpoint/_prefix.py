"""Whether the prompt prefix held: predicted from what is sent, and held against what the provider billed."""

from __future__ import annotations

from collections.abc import Sequence

from ._dialect import Dialect
from ._json import dumps
from ._ledger._record import State
from ._replay import Transcript
from ._report import Prefix
from ._tokens import estimate_bytes, utf8_size

FIRST = "first_request"


def predict(
    dialect: Dialect,
    transcript: Transcript,
    before: State | None,
    now: State,
    *,
    context: int,
    forced: bool = False,
    redefined: bool = False,
) -> Prefix:
    """The verdict on the first request of a call, against the last request of the same conversation.

    `now` is how this request is sent, `before` how the last one was, `context` the tokens (estimate) of that one.
    `redefined` says that a reference of the transcript expands to another definition than before.
    """
    if transcript.turns == 0:
        return Prefix(stable=None, predicted=None, broke=FIRST)
    if before is None or transcript.record is None:
        unknown = "ledger_unavailable" if transcript.failed else "unknown_predecessor"
        return Prefix(stable=None, predicted=None, broke=unknown)
    reason, shared = tools_changed(dialect, before, now)
    if reason is not None:
        broke = "forced_tool" if forced and reason == "tools_grew" else reason
        return Prefix(stable=False, predicted=shared, broke=broke)
    if before.model and now.model and before.model != now.model:
        return Prefix(stable=False, predicted=0, broke="model_changed")
    tools = estimate_bytes(sum(utf8_size(dumps(tool)) for tool in in_context(dialect, now)))
    if before.settings and before.settings != now.settings:
        return Prefix(stable=False, predicted=tools, broke="settings_changed")
    if before.system != now.system:
        return Prefix(stable=False, predicted=tools, broke="system_changed")
    if transcript.rewritten or transcript.lost_since:
        broke = "rounds_rebuilt" if transcript.lost else "history_rewritten"
        return Prefix(stable=False, predicted=tools + transcript.shared, broke=broke)
    if redefined:
        return Prefix(stable=False, predicted=tools, broke="tool_changed")
    return Prefix(stable=True, predicted=context)


def in_context(dialect: Dialect, state: State) -> list[dict[str, object]]:
    """The tools as they stand in the cached prefix."""
    return dialect.standing(state.tools)


def tools_changed(dialect: Dialect, before: State, now: State) -> tuple[str | None, int]:
    """Why the tools segment broke and how many tokens (estimate) of it are shared; (None, ...) if it did not."""
    if before.strategy != now.strategy:
        return "strategy_changed", 0
    old, new = _texts(dialect, before), _texts(dialect, now)
    shared = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    tokens = estimate_bytes(sum(map(utf8_size, new[:shared])))
    if old == new:
        return None, tokens
    if shared == len(old) or _grown(before, now):
        return "tools_grew", tokens
    if sorted(old) == sorted(new):
        return "tools_reordered", tokens
    if before.catalog != now.catalog:
        return "catalog_changed", tokens
    return "tool_changed", tokens


def _grown(before: State, now: State) -> bool:
    """Whether everything of `before` is still sent, and more: what joins a group changes what is said of the group."""
    sent = set(map(dumps, now.tools))
    return len(now.tools) > len(before.tools) and all(dumps(tool) in sent for tool in before.tools)


def _texts(dialect: Dialect, state: State) -> Sequence[str]:
    # Markers may move without a break: what is cached is the content.
    return [dumps(dialect.definition(tool, deferred=False)) for tool in in_context(dialect, state)]


def against_bill(prefix: Prefix, *, cached: int | None, minimum: int, block: int) -> Prefix:
    """The verdict with what the reply's usage says was read from the cache, in tokens.

    They disagree where the provider read nothing although enough was predicted to be shared: a smaller figure than the
    predicted one is ordinary (blocks, markers, an estimate), and so is one that is larger.
    """
    if cached is None:
        return prefix
    expected = prefix.predicted or 0
    missing = bool(prefix.stable) and cached == 0 and expected >= 2 * max(minimum, block)
    return Prefix(prefix.stable, prefix.predicted, cached, missing, prefix.broke)
