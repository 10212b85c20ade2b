"""A request, how it is to be sent, and what a reply to it means: the data of one logical call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._bridge import Bridge
from ._capability import LoadPoint
from ._carrier import Carrier
from ._compose import Composer
from ._dialect import CallView, Choice, Dialect, Outcome, Shown
from ._json import Json
from ._ledger._record import State
from ._loaded import Evidence
from ._policy import Policy
from ._replay import Transcript

if TYPE_CHECKING:
    from ._registry import Registry


ALLOWED, NAMED = "allowed", "named"
"""The modes of a `tool_choice` that names tools; a load point says which of them can name what it loads."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request of the caller.

    `path` has no host and no query. `headers` are the caller's own for this request, names in lower case. Only a digest
    of `credential` is kept. `carrier` is what rewrites the request on its way to `base_url`, None where nothing does.
    """

    method: str
    path: str
    body: Json
    headers: Mapping[str, str]
    base_url: str
    credential: str
    carrier: Carrier | None = None


@dataclass(slots=True)
class Plan:
    """How a request is sent: everything that was decided before the first round."""

    policy: Policy
    dialect: Dialect
    registry: Registry
    composer: Composer
    transcript: Transcript
    state: State | None
    """How the last request of this conversation was sent; None where that is not known or no longer holds."""
    strategy: str
    load_point: str | None
    reason: str
    catalog: str
    choice: Choice
    forced: tuple[str, ...]
    warnings: list[str]
    scope: str
    body: Json
    """The caller's body; with a conversation that the server holds, the one that continues it."""
    point: LoadPoint | None = None
    additive: LoadPoint | None = None
    """The form by which tools can be placed where the model did not search; None where it takes none."""
    most: int | None = None
    """How many tools the endpoint takes in context; None where no limit is known."""
    cached_from: int = 0
    """The tokens from which the provider caches a prompt; 0 where it caches none of this one."""
    refused_choices: tuple[str, ...] = ()
    """The modes of `tool_choice` that are an error here."""
    pushed: tuple[str, ...] = ()
    """Tools that the application has loaded since the last request of this conversation."""
    pushes: int = 0
    """How often it has done so, as far as this request knows."""
    held_loaded: tuple[str, ...] = ()
    shown_before: tuple[Evidence, ...] = ()
    """What is loaded, where some of it was in a form that this request cannot hold: that stands in the list."""
    threaded: bool = False
    binds_thinking: bool = False
    """Whether this model voids thinking when what came before it changes, and can be asked to bear that."""
    bridge: Bridge | None = None
    """The two tools through which all others are loaded and called; None where the model calls them itself."""
    voided: bool = False
    """Whether thinking in this transcript no longer fits, because the rounds before it are lost."""

    @property
    def betas(self) -> tuple[str, ...]:
        """The beta features that the load points need."""
        points = (self.point, self.additive)
        return tuple(dict.fromkeys(beta for point in points if point is not None for beta in point.betas))

    @property
    def hosted(self) -> bool:
        """Whether the provider itself searches, so that no loader of ours is sent."""
        return self.point is not None and self.point.hosted


@dataclass(frozen=True, slots=True)
class Step:
    """What one reply means: positions that the caller does not see, our answers, and whether the call goes on."""

    hidden: frozenset[int]
    answered: tuple[tuple[CallView, Outcome], ...]
    added: tuple[str, ...]
    shown: tuple[Shown, ...]
    last: bool
