"""`Policy`: what the user decides, validated at construction."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, cast

from .errors import PolicyError

if TYPE_CHECKING:
    from pathlib import Path

    from ._search import Ranker

STRATEGIES = ("auto", "eager", "native", "resend", "frozen")
CATALOGS = ("tool", "system")
CACHES = ("caller", "auto")
SEARCHES = ("local", "hosted")
DISCOVERIES = ("hidden", "shown", "caller")
UNLOADED_CALLS = ("load", "refuse")
LOAD_POINTS = (
    "tool_reference",
    "tool_addition",
    "tool_search",
    "additional_tools",
    "system_tools",
    "hosted_search",
    "gateway_search",
)
CONFIRMS = ("never", "model")


@dataclass(frozen=True, slots=True)
class Policy:
    """How a wrapped client defers tools. Immutable; `replace` gives a changed copy.

    `strategy`: how schemas reach the model. `resident` / `defer`: tool names or fnmatch patterns; `resident` wins, what
    neither matches is resident. `threshold_tokens`: below this many tokens of deferrable schemas everything is sent
    (None: per strategy and price row, from data). `load_at_most` (tools) and `load_tokens` (tokens) bound what one
    search adds; the best match always loads. `max_rounds` bounds the upstream requests of one logical call.
    `catalog` says where the listing of deferred tools stands, `catalog_tokens` how long it may be (0: none).
    `cache="auto"` adds the provider's cache markers where the caller set none. `search`: the local index, the
    provider's own, a `Ranker`, or a function like its `rank`. `discovery`: who sees the search. `unloaded_call`: what
    becomes of a call of a tool that is not loaded. `confirm`: who agrees to a load. `endpoint`: the host name to treat
    this client's base_url as.
    `load_point`: the native form to prefer where the model takes it, also one that is otherwise not chosen.

    Raises `PolicyError` (a ValueError) naming field, value and allowed values.
    """

    strategy: str = "auto"
    resident: tuple[str, ...] = ()
    defer: tuple[str, ...] = ("*",)
    threshold_tokens: int | None = None
    load_at_most: int = 12
    load_tokens: int = 4000
    max_rounds: int = 4
    catalog: str = "tool"
    catalog_tokens: int = 600
    cache: str = "caller"
    search: str | Ranker | Callable[..., Any] = "local"
    discovery: str = "hidden"
    unloaded_call: str = "load"
    confirm: str | Callable[..., Any] = "never"
    endpoint: str | None = None
    load_point: str | None = None

    def __post_init__(self) -> None:
        _one_of("strategy", self.strategy, STRATEGIES)
        _one_of("catalog", self.catalog, CATALOGS)
        _one_of("cache", self.cache, CACHES)
        _one_of("discovery", self.discovery, DISCOVERIES)
        _one_of("unloaded_call", self.unloaded_call, UNLOADED_CALLS)
        if isinstance(self.search, str):
            _one_of("search", self.search, SEARCHES, "or an object with a `rank` method, or a function like it")
        elif not callable(getattr(self.search, "rank", self.search)):
            _refuse(
                "search", self.search, f"{_listed(SEARCHES)} or an object with a `rank` method, or a function like it"
            )
        if not callable(self.confirm):
            _one_of("confirm", self.confirm, CONFIRMS, "or a callable")
        for name in ("resident", "defer"):
            object.__setattr__(self, name, _patterns(name, getattr(self, name)))
        _whole("load_at_most", self.load_at_most, 1, 20)
        _whole("load_tokens", self.load_tokens, 1)
        _whole("max_rounds", self.max_rounds, 1, 50)
        _whole("catalog_tokens", self.catalog_tokens, 0)
        if self.threshold_tokens is not None:
            _whole("threshold_tokens", self.threshold_tokens, 0)
        endpoint: object = self.endpoint
        if endpoint is not None and (not isinstance(endpoint, str) or not endpoint or "/" in endpoint):
            _refuse("endpoint", endpoint, "a host name such as 'api.example.com', or None")
        if self.load_point is not None:
            _one_of("load_point", self.load_point, LOAD_POINTS, "or None")

    @classmethod
    def load(cls, cwd: str | Path | None = None, *, notify: Callable[[str], None] | None = None) -> Policy:
        """The policy that the user's and the project's files describe, read now; later edits hold for the next one.

        `cwd`: the project's folder (default: the current one). A `lazy` list becomes `defer`; a project's replaces the
        user's. Without any usable file nothing is deferred; a missing or broken file counts as absent, the broken one
        with a warning. `notify` is called with the start notice at the first wrap. Raises `PolicyError` naming file,
        field, value and what is allowed.
        """
        from ._config import policy

        return policy(cwd, notify)

    def replace(self, **changes: Any) -> Policy:
        """A copy with `changes`; raises `PolicyError` for an unknown field or an unusable value."""
        known = {field.name for field in dataclasses.fields(self)}
        for name in changes:
            if name not in known:
                raise PolicyError(f"Policy has no field {name!r}; allowed: {_listed(tuple(sorted(known)))}")
        return dataclasses.replace(self, **changes)

    def defers(self, name: str) -> bool:
        """Whether a tool of this name is deferred by the patterns."""
        return not matches(self.resident, name) and matches(self.defer, name)


def a_policy(name: str, value: object) -> Policy:
    """`value`, which was given as the argument `name`; raises `PolicyError` if it is no `Policy`."""
    if not isinstance(value, Policy):
        raise PolicyError(f"{name}: {value!r} is not usable; allowed: a Policy, such as Policy(strategy='eager')")
    return value


def matches(patterns: tuple[str, ...], name: str) -> bool:
    """Whether `name` equals or fnmatches (case-sensitively) one of `patterns`."""
    return any(pattern == name or fnmatchcase(name, pattern) for pattern in patterns)


def _listed(allowed: tuple[str, ...]) -> str:
    return ", ".join(repr(value) for value in allowed)


def _refuse(field: str, value: object, allowed: str) -> None:
    raise PolicyError(f"Policy.{field}: {value!r} is not usable; allowed: {allowed}")


def _one_of(field: str, value: object, allowed: tuple[str, ...], also: str = "") -> None:
    if value not in allowed:
        _refuse(field, value, f"{_listed(allowed)} {also}".rstrip())


def _whole(field: str, value: object, least: int, most: int | None = None) -> None:
    allowed = f"a whole number from {least}" + (f" to {most}" if most is not None else "")
    if not isinstance(value, int) or isinstance(value, bool) or value < least or (most is not None and value > most):
        _refuse(field, value, allowed)


def _patterns(field: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, (list, tuple, set, frozenset)):
        _refuse(field, value, "a list of tool names or fnmatch patterns")
    given = cast("Collection[object]", value)
    items: list[str] = [item for item in given if isinstance(item, str) and item]
    if len(items) < len(given):
        _refuse(field, given, "non-empty strings only")
    # A set has no order of its own, and two processes would see two.
    return tuple(sorted(items) if isinstance(value, (set, frozenset)) else items)
