"""What is answered in a conversation with a bridge: loads, and bridge calls that reach no tool."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from .._answers import Answers
from .._bridge import (
    Bridge,
    LoadAnswer,
    LoadRequest,
    Refused,
    Target,
    answer_load,
    failure_key,
    loaded_names,
    parse_load,
    read_call,
    repeated,
)
from .._dialect import CallView, Outcome
from .._json import canonical, dumps
from .._loader import by_fit, searcher
from .._registry import Entry
from .._report import Search
from .._tool import Tool

log = logging.getLogger("loadpoint")


@dataclass(slots=True)
class FrozenAnswers(Answers):
    """Answers the calls of one logical call of the user. See `Answers`.

    `listed` are the names in the list of tools, `forced` what the caller's `tool_choice` names and only the bridge
    reaches. `owed` are tools that the next load brings along: those, what was pushed or has become resident, and what
    is `stale`, because it was told of in another definition. `untold` are tools that are loaded although no text of
    what is sent tells of their use.
    """

    bridge: Bridge = field(default_factory=Bridge)
    listed: Collection[str] = ()
    forced: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()
    stale: frozenset[str] = frozenset()
    untold: frozenset[str] = frozenset()
    guidelines: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    _readings: dict[str, Target | Refused] = field(default_factory=dict[str, "Target | Refused"])
    _failures: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def behind(
        cls,
        bridge: Bridge,
        answers: Answers,
        *,
        listed: Collection[str],
        forced: tuple[str, ...],
        owed: tuple[str, ...],
        stale: frozenset[str],
        untold: frozenset[str],
        guidelines: Mapping[str, tuple[str, ...]],
    ) -> FrozenAnswers:
        """The same answers for a conversation with a bridge."""
        known = {part.name: getattr(answers, part.name) for part in fields(Answers)}
        listed = frozenset(listed)
        return cls(
            **known,
            bridge=bridge,
            listed=listed,
            forced=forced,
            owed=owed,
            stale=stale,
            untold=untold,
            guidelines=guidelines,
        )

    def is_ours(self, call: CallView) -> bool:
        """See `Answers.is_ours`."""
        return self.refuses(call) if call.name == self.bridge.call else Answers.is_ours(self, call)

    def refuses(self, call: CallView) -> bool:
        """See `Answers.refuses`."""
        bridged = call.name == self.bridge.call and isinstance(self._reading(call), Refused)
        return bridged or Answers.refuses(self, call)

    def as_seen(self, call: CallView) -> CallView:
        """The ordinary call that a bridge call stands for; any other call is what it is."""
        reading = self._reading(call) if call.name == self.bridge.call else None
        if not isinstance(reading, Target):
            return call
        tool = self.registry.by_name[reading.name].tool
        return CallView(call.id, reading.name, reading.arguments, (tool.server or "") if tool is not None else "")

    def note(self, call: CallView) -> None:
        """Note the repairs of a bridge call that is handed over."""
        reading = self._reading(call) if call.name == self.bridge.call else None
        if isinstance(reading, Target):
            self.repairs += [f"{reading.name}: {repair}" for repair in reading.repairs]

    def settle(self) -> None:
        """A round is over: what it called is read anew if it comes again, for more may be loaded then."""
        self._readings.clear()

    def outcome(self, call: CallView, added: Collection[str]) -> tuple[Outcome, tuple[str, ...]]:
        """See `Answers.outcome`."""
        if call.name == self.bridge.call:
            reading = self._reading(call)
            return self._refusal(call, reading.text if isinstance(reading, Refused) else ""), ()
        return Answers.outcome(self, call, added)

    def _refusal(self, call: CallView, text: str) -> Outcome:
        key = failure_key(call.arguments)
        before = self._failures.get(key, 0)
        self._failures[key] = before + 1
        failure = repeated(text, before)
        self.exhausted = self.exhausted or failure.final
        return Outcome(failure.text, failed=True)

    def _how_to_load(self, name: str) -> str:
        return dumps({"tools": [name]})

    # -- bridge calls --------------------------------------------------------------------------------------------

    def _reading(self, call: CallView) -> Target | Refused:
        key = canonical([call.id, call.arguments])
        if key not in self._readings:
            self._readings[key] = self._read(call)
        return self._readings[key]

    def _read(self, call: CallView) -> Target | Refused:
        read = read_call(
            call.arguments,
            bridge=self.bridge,
            deferred=self._behind(),
            loaded=self.loaded(),
            resident=self._before(),
            gone=self.gone,
            unloaded=self.unloaded,
        )
        if isinstance(read, Target) and self.forced and read.name not in self.forced:
            wanted = dumps({"tool": self.forced[0], "params": {}})
            return Refused(f"This request asks for {self.forced[0]}. Call {self.bridge.call} with {wanted} filled in.")
        return read

    def _behind(self) -> dict[str, Tool]:
        """What only the bridge reaches."""
        return {name: tool for name, tool in self._tools() if self._deferred(name)}

    def _before(self) -> dict[str, Tool]:
        """What stands in the list."""
        return {name: tool for name, tool in self._tools() if not self._deferred(name)}

    def _tools(self) -> Iterator[tuple[str, Tool]]:
        entries: Mapping[str, Entry] = self.registry.by_name
        for name, entry in entries.items():
            if entry.tool is not None and self._findable(name):
                rules = self.guidelines.get(name)
                yield name, entry.tool if rules is None else replace(entry.tool, guidelines=rules)

    def _deferred(self, name: str) -> bool:
        return name not in self.listed

    # -- loads ---------------------------------------------------------------------------------------------------

    def _search(self, call: CallView, added: Collection[str]) -> tuple[Outcome, tuple[str, ...]]:
        request = parse_load(call.arguments)
        if isinstance(request, str):
            return Outcome(request, failed=True), ()
        key = canonical([sorted(request.tools), request.query.strip().casefold(), request.confirm])
        over = self._over(key)
        if over is not None:
            return over, ()
        more = tuple(name for name in self.owed if not self.told and name not in request.tools)
        try:
            found = self._loading(replace(request, tools=(*request.tools, *more)), added)
        except Exception as error:  # noqa: BLE001 - a ranker of the user: its failure is the model's to hear, not his
            log.warning("the ranker failed: %s", error)
            return Outcome("The search failed. Try again with other words.", failed=True), ()
        self.told = self.told or not (found.challenged or found.failed)
        asked = ", ".join(part for part in (*request.tools, request.query.strip()) if part)
        hits = found.added or found.hits
        self.searches.append(Search(asked[:200], hits, not hits))
        return Outcome(found.text, found.added, failed=found.failed), found.added

    def _loading(self, request: LoadRequest, added: Collection[str]) -> LoadAnswer:
        resident = self._before()
        behind = self._behind()

        def search(query: str, limit: int) -> tuple[Sequence[str], Sequence[str]]:
            index = searcher(self._index(), (*behind.values(), *resident.values()))
            return by_fit(index, query, limit, deferred=behind, resident=resident, size_of=self.registry.tokens)

        answer = answer_load(
            request,
            listed=behind,
            registered=behind.keys() | resident.keys(),
            loaded={*self.loaded(), *added} - resident.keys() - self.stale,
            untold=self.untold - {*added},
            resident=resident.keys(),
            search=search,
            confirm="model" if self.policy.confirm == "model" else "never",
            load_at_most=self.policy.load_at_most,
            load_tokens=self.policy.load_tokens,
            size_of=self.registry.tokens,
            bridge=self.bridge,
        )
        self.untold -= {*(loaded_names(answer.text) or ())}
        return answer
