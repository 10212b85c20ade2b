"""What we answer ourselves: loader calls, and calls of deferred tools that are not loaded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from ._agreeing import challenge, confirms
from ._dialect import CallView, Outcome
from ._json import Json, as_object, canonical, dumps, parse_object
from ._loader import Answer, LoaderQuery, answer, parse_arguments
from ._policy import Policy
from ._registry import Registry
from ._report import Search
from ._search import FusedRanker, ToolIndex

log = logging.getLogger("loadpoint")
_SCHEMA_CHARACTERS = 12_000
_REPEATS = 2
"""An identical query is answered this often; after that the model is told to stop."""


@dataclass(slots=True)
class Answers:
    """Answers the calls of one logical call of the user.

    `loaded` says which names the model may call now, `allowed` bounds what may be found (None: everything).
    """

    policy: Policy
    registry: Registry
    loader: str
    loaded: Callable[[], Collection[str]]
    allowed: Collection[str] | None
    gone: frozenset[str]
    searches: list[Search]
    asked: dict[str, int]
    told: bool = False
    """Whether the model has been told of what has come without a search; only a load says it, with a bridge."""
    repairs: list[str] = field(default_factory=list[str])
    """What had to be put right in calls that are handed over."""
    exhausted: bool = False
    """The model was told to stop searching."""
    room: Callable[[], int | None] = lambda: None
    """How many tools the list can still take; None where it has no end."""
    brief: bool = False
    """The definitions of what a search loads follow its answer."""
    short_of_cache: Callable[[], int] = lambda: 0
    """How many tokens (estimate) the prompt lacks to be cached; 0 where it is, and where nothing is."""
    hosted: bool = False
    """The provider searches: what the model calls, it may call."""

    def is_ours(self, call: CallView) -> bool:
        """Whether this call is answered by us instead of the caller."""
        if call.name == self.loader:
            return True
        if call.name in self.gone:
            return True
        if not self.is_unloaded(call.name):
            return False
        # What no search may load, the model knows from the catalog only: to hand its call over would widen the request.
        return not self._findable(call.name) or self.unloaded == "refuse" or bool(self._problems(call))

    @property
    def unloaded(self) -> str:
        """What becomes of a call of a tool that is not loaded: where somebody has to agree to a load, it is none."""
        return "refuse" if self.policy.confirm != "never" else self.policy.unloaded_call

    def refuses(self, call: CallView) -> bool:
        """Whether this call reaches no tool and never goes to the caller, not even in the last round."""
        return call.name in self.gone

    def as_seen(self, call: CallView) -> CallView:
        """The call as the caller sees it."""
        return call

    def note(self, call: CallView) -> None:
        """Note what is to be reported of a call that is handed over."""

    def settle(self) -> None:
        """A round is over."""

    def _how_to_load(self, name: str) -> str:
        """The arguments of the loader that load this tool."""
        return dumps({"query": name})

    def is_unloaded(self, name: str) -> bool:
        """Whether this is a deferred tool of the caller that the model may not call yet."""
        return not self.hosted and self.registry.is_deferred(name) and name not in self.loaded()

    def outcome(self, call: CallView, added: Collection[str]) -> tuple[Outcome, tuple[str, ...]]:
        """Our answer, and the names that it loads; `added` are the ones loaded earlier in the same reply."""
        if call.name == self.loader:
            return self._search(call, added)
        if call.name in self.gone:
            return Outcome(f"{call.name} is no longer available.", failed=True), ()
        if not self._findable(call.name):
            # No search could load it: to name one as the next call would send the model round in circles.
            return Outcome(f"{call.name} is not available in this request.", failed=True), ()
        if self.unloaded == "refuse":
            asked = self._how_to_load(call.name)
            return Outcome(f"{call.name} is not loaded. Call {self.loader} with {asked} first.", failed=True), ()
        entry = self.registry.by_name[call.name]
        schema = dumps(dict(entry.tool.parameters) if entry.tool else {})[:_SCHEMA_CHARACTERS]
        problems = "\n".join(self._problems(call))
        text = f"The arguments do not fit {call.name}:\n{problems}\nIts parameters: {schema}\nCall it again."
        return Outcome(text, failed=True), ()

    def _search(self, call: CallView, added: Collection[str]) -> tuple[Outcome, tuple[str, ...]]:
        query = parse_arguments(call.arguments)
        if isinstance(query, str):
            return Outcome(query, failed=True), ()
        asked = [query.query.strip().casefold(), query.max_results, *([True] if confirms(call.arguments) else [])]
        over = self._over(canonical(asked))
        if over is not None:
            return over, ()
        room = self.room()
        if room is not None and room <= len(added):
            return Outcome("No more tools can be loaded here. Go on with those that are.", failed=True), ()
        try:
            found = self._found(query, added, room)
        except Exception as error:  # noqa: BLE001 - a ranker of the user: its failure is the model's to hear, not his
            log.warning("the ranker failed: %s", error)
            return Outcome("The search failed. Try again with other words.", failed=True), ()
        hits = tuple(match.name for match in found.matches)
        if found.added and self.policy.confirm == "model" and not confirms(call.arguments):
            tools = [tool for tool in self.registry.deferred_tools if tool.name in found.added]
            self.searches.append(Search(found.query, hits, found.no_match))
            return Outcome(challenge(self.loader, found.query, tools)), ()
        self.searches.append(Search(found.query, hits, found.no_match))
        return Outcome(
            found.as_text(brief=self.brief), found.added, self.registry.definitions(found.added)
        ), found.added

    def _over(self, key: str) -> Outcome | None:
        """The answer to a query that was answered often enough; None for any other."""
        self.asked[key] = self.asked.get(key, 0) + 1
        if self.asked[key] <= _REPEATS:
            return None
        self.exhausted = True
        text = "This search was answered before. Call one of the tools it found, or answer without a tool."
        return Outcome(text, failed=True)

    def _found(self, query: LoaderQuery, added: Collection[str], room: int | None) -> Answer:
        most = self.policy.load_at_most
        return answer(
            query,
            self._index(),
            deferred=[tool for tool in self.registry.deferred_tools if self._findable(tool.name)],
            loaded={*self.loaded(), *added},
            resident=[e.tool for e in self.registry.residents if e.tool is not None and self._findable(e.name)],
            load_at_most=most if room is None else min(most, room - len(added)),
            load_tokens=self.policy.load_tokens,
            size_of=self.registry.tokens,
            short_of_cache=self._short(added),
        )

    def _short(self, added: Collection[str]) -> int:
        """What the prompt lacks to be cached, beside what is loaded already; 0 where loads are asked about."""
        if self.policy.confirm != "never":
            return 0
        return max(self.short_of_cache() - sum(map(self.registry.tokens, added)), 0)

    def _index(self) -> ToolIndex | FusedRanker:
        index, ranker = self.registry.index, self.policy.search
        return index if isinstance(ranker, str) else FusedRanker(index, ranker)

    def _findable(self, name: str) -> bool:
        return self.allowed is None or name in self.allowed

    def _problems(self, call: CallView) -> list[str]:
        entry = self.registry.by_name.get(call.name)
        arguments: Json | None = as_object(call.arguments)
        if isinstance(call.arguments, str):
            arguments = parse_object(call.arguments) if call.arguments.strip() else {}
        if arguments is None:
            return ["arguments: expected a JSON object"]
        from ._schema import validate

        schema: Json = dict(entry.tool.parameters) if entry and entry.tool else {}
        return [problem.message for problem in validate(schema, arguments)[:8]]
