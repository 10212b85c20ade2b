"""From what the caller shows to what is sent: visible turns are replaced by the rounds that they stand for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ._checkpoint import FROM_RECORDS, Checkpoints
from ._dialect import CallView, Dialect, Outcome, View
from ._json import Json, canonical, digest, dumps, well_formed
from ._ledger._record import Ledger, Record, State
from ._loader import parse_answer
from ._strategy.wrapping import FROZEN, Wrapping, recorded
from ._tokens import estimate_bytes, utf8_size

log = logging.getLogger("loadpoint")
_LONG_ID = 16
_LONG, _MEMO = 8_192, 8_000_000
"""Characters of a message that is remembered, and of all of them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What one message's bytes say: its view, its levelled digest, the digest of what is cached, its size.

    `repaired` is the message with its text made well-formed, None where it is.
    """

    view: View
    level: str
    untold: str
    """The levelled digest without the text of results."""
    bare: str
    size: int
    repaired: Json | None = None


class Reader:
    """Reads messages, remembering the readings of those it has seen: a conversation repeats all but its end."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._memo: dict[str, Reading] = {}
        self._held = 0

    def read(self, message: Json) -> Reading:
        """The reading of a message; equal bytes give the same object."""
        text = dumps(message)
        known = self._memo.get(text)
        if known is None:
            sound = well_formed(message)
            repaired = None if sound is message else sound
            view = self.dialect.view(sound)
            stripped = self.dialect.bare(sound)
            # What a caller stores may come back with its fields in another order, which no provider sees. The arguments
            # in an assistant's message are another matter: they are written into the prompt as they stand.
            ordered = view.role == "assistant"
            bare = digest(dumps(stripped) if ordered else canonical(stripped))
            level = digest(view.level())
            untold = digest(view.level(told=False)) if view.results else level
            known = Reading(view, level, untold, bare, utf8_size(text), repaired)
            if len(text) > _LONG:  # long messages would make the memo as large as the conversations themselves
                return known
            if self._held > _MEMO:
                self._memo.clear()
                self._held = 0
            self._memo[text] = known
            self._held += len(text)
        return known


@dataclass(slots=True)
class Transcript:
    """A conversation as it is sent, and what its records say of it."""

    messages: list[Json] = field(default_factory=list[Json])
    """The upstream messages."""
    views: list[View] = field(default_factory=list[View])
    sent: str = ""
    """Digest of `messages`, without cache markers."""
    tokens: int = 0
    """Estimate of `messages`."""
    opening: int = 0
    """Estimate of the messages before the first assistant turn."""
    chain: str = ""
    """Digest of the visible conversation."""
    named: str = ""
    """The same without the text of results: old ones are often cleared to save tokens, and it stays the same one."""
    window: list[str] = field(default_factory=list[str])
    """Levels of the visible messages since the last assistant turn."""
    sent_before: str = ""
    """Digest of `messages` without the assistant messages at their end, which the reply continues."""
    prefill: list[Json] = field(default_factory=list[Json])
    """Those messages, as sent."""
    prefill_views: list[View] = field(default_factory=list[View])
    """The same as the caller shows them."""
    record: Record | None = None
    """The record of the last assistant turn that has one."""
    exact: bool = False
    """Whether that record was made of this very conversation, and is of its last turn."""
    system: str = ""
    """Digest of the system prompt, whether it stands outside the messages or at their start."""
    unique: bool = False
    """Whether a turn has call ids that no other conversation has."""
    turns: int = 0
    forms: frozenset[str | None] = frozenset()
    """The load points in which turns were written."""
    lost: int = 0
    """Assistant turns without a record."""
    lost_since: int = 0
    """Those of them that came after the last turn with one: what was sent for them last time is not known."""
    shared: int = 0
    """Tokens (estimate) up to the last turn that was sent after exactly this history."""
    rewritten: bool = False
    """A turn has a record, but was sent after another history than this one."""
    pending: tuple[Json, ...] = ()
    failed: str | None = None
    """Why the ledger could not be read."""

    def copied(self) -> Transcript:
        """A copy that can be carried on without changing this one."""
        return replace(self, messages=[*self.messages], views=[*self.views], window=[*self.window])


class Replayer:
    """Turns visible messages into upstream ones, with one ledger and one scope."""

    def __init__(
        self,
        dialect: Dialect,
        reader: Reader,
        ledger: Ledger,
        scope: str,
        *,
        system: str = "",
        checkpoints: Checkpoints | None = None,
        define: Callable[[Collection[str]], tuple[Json, ...]] = lambda _: (),
        model: str = "",
    ) -> None:
        self.dialect = dialect
        self.reader = reader
        self.ledger = ledger
        self.scope = scope
        self.system = digest(system)
        self.checkpoints = checkpoints
        self.define = define
        self.model = model
        self.anew = False
        self.wraps: Wrapping | None = None

    def replay(
        self,
        messages: Sequence[Json],
        *,
        loader: str,
        writes: Dialect | None = None,
        wraps: Wrapping | None = None,
        anew: bool = False,
    ) -> Transcript:
        """The transcript that stands for `messages`.

        `writes` is the variant in which the request is sent; None takes it from the records. `wraps`: calls go through
        a bridge then. `anew`: what is on record was written for a model that takes more than this one, though in the
        same form.
        """
        self.anew, self.wraps = anew, wraps
        form = FROM_RECORDS
        if writes is not None:
            form = f"{writes.load_point or ''}{'!' if anew else ''}{wraps.key if wraps is not None else ''}"
        key = (digest(self.scope, self.system, self.model), loader, form)
        known = self.checkpoints.find(key, messages) if self.checkpoints is not None else None
        start, names, out = known or (0, {}, self._nothing())
        groups = list(_grouped(messages[start:], self.reader))
        for at, group in enumerate(groups):
            visible = [message for message, _ in group]
            if group[0][1].view.role == "assistant":
                readings = [reading for _, reading in group]
                if at == len(groups) - 1:
                    self._prefill(out, visible, readings, loader, writes)
                    return out
                self._turn(out, visible, readings, loader, writes)
            else:
                self._others(out, visible, loader, writes or self._written(out.record), names)
                for _, reading in group:
                    self._name(out, reading)
            names.update((call.id, call.name) for _, reading in group for call in reading.view.calls)
        out.sent_before = out.sent
        if self.checkpoints is not None and out.failed is None:
            self.checkpoints.keep(key, messages, names, out)
        return out

    def _name(self, out: Transcript, reading: Reading) -> None:
        """Notes what the conversation is called by; instructions at its start are a part of the system prompt."""
        if reading.view.role == "system" and not out.window and not out.turns:
            out.system = digest(out.system, reading.level)
        else:
            out.chain = digest(out.chain, reading.level)
            out.named = digest(out.named, reading.untold)
            out.window.append(reading.level)

    def _nothing(self) -> Transcript:
        start = digest(self.scope)
        return Transcript(sent=start, chain=start, named=start, system=self.system)

    def _written(self, record: Record | None) -> Dialect:
        """The variant in which the turn of a record was sent; without one, the one that every request takes."""
        native = record is not None and record.state.strategy == "native"
        return self.dialect.at(record.state.load_point if record is not None and native else None)

    def _prefill(
        self, out: Transcript, visible: list[Json], readings: list[Reading], loader: str, writes: Dialect | None
    ) -> None:
        """A turn that is not over: the reply continues it, so it belongs to the turn of the reply."""
        chain, window, turns, lost, since = out.chain, out.window, out.turns, out.lost, out.lost_since
        known, exact, unique, named, before = out.record, out.exact, out.unique, out.named, len(out.messages)
        out.sent_before = out.sent
        self._turn(out, visible, readings, loader, writes)
        if out.lost > lost:
            out.record, out.exact = known, exact
        if out.pending:
            self._push(out, (writes or self._written(out.record)).join(out.pending, ()))
            out.pending = ()
        out.chain, out.window, out.turns, out.lost, out.lost_since = chain, window, turns, lost, since
        out.unique, out.named = unique, named
        out.prefill = out.messages[before:]
        out.prefill_views = [reading.view for reading in readings]

    def _turn(
        self, out: Transcript, visible: list[Json], readings: list[Reading], loader: str, writes: Dialect | None
    ) -> None:
        level = group_level([reading.view for reading in readings])
        record = self._find(out, level, readings)
        out.turns += 1
        out.chain, out.named = digest(out.chain, level), digest(out.named, level)
        out.unique = out.unique or _unique([reading.view for reading in readings])
        turn: Sequence[Json]
        wraps = self._wraps(record or out.record, loader, writes)
        if record is None:
            out.lost += 1
            out.lost_since += 1
            out.exact = False
            form = writes or self._written(out.record)
            restored = [sent for message in visible for sent in form.incoming(message, loader=loader)]
            turn, out.pending = self.dialect.unanswered(self.dialect.rebuilt(restored))
            turn = turn if wraps is None else wraps.into(self.dialect, turn)
            out.forms |= {form.load_point if wraps is None else FROZEN}
        else:
            out.rewritten = record.sent_before != out.sent
            out.lost_since = 0
            out.exact = record.chain == out.chain or not out.rewritten
            out.record = record
            turn = self.dialect.carried(visible, self._thinking(record, visible)) if record.turn else visible
            before = self._written(record)
            point = (writes or before).load_point
            if self.anew or point is None or point != before.load_point:
                # What was sent in one form before cannot be sent so any more: another model, another policy.
                ours, form = bool(record.turn), writes or before
                turn = [sent for m in turn for sent in form.incoming(m, loader=loader, ours=ours)]
            turn = self._bridged(turn, readings, record.state, wraps)
            out.pending = record.pending
            out.forms |= {(writes or before).load_point if wraps is None else FROZEN}
        self._push(out, turn, wraps, readings)
        if record is not None and not out.rewritten:
            out.shared = out.tokens
        out.window = []

    def _thinking(self, record: Record, visible: list[Json]) -> Sequence[Json]:
        """The turn of a record, without its thinking where the caller sends another model none of it.

        Models refuse what another one has signed or has no reasoning at all; whether that is so, the caller knows.
        """
        same = self.model in (record.state.model, "") or not record.state.model
        if same or self.dialect.without_thinking(visible) != visible:
            return record.turn
        return self.dialect.without_thinking(record.turn)

    def _others(self, out: Transcript, visible: list[Json], loader: str, form: Dialect, names: dict[str, str]) -> None:
        messages = visible
        if out.pending:
            messages = form.join(out.pending, messages)
            out.pending = ()
        messages = [sent for m in messages for sent in form.incoming(m, loader=loader)]
        if form.load_point is not None:
            messages = self._loading(messages, loader, names, form)
        self._push(out, messages)

    def _loading(self, messages: list[Json], loader: str, names: dict[str, str], form: Dialect) -> list[Json]:
        """Loader answers in JSON, which an application wrote or another form left, as this form loads tools."""
        loads: list[Json] = []
        for at, message in enumerate(messages):
            for result in self.reader.read(message).view.results:
                if names.get(result.call_id) == loader and not result.failed and not result.names:
                    added = parse_answer(result.text)
                    if added:
                        outcome = Outcome(result.text, added, self.define(added))
                        messages[at], *rest = form.answered(messages[at], result.call_id, outcome)
                        loads += rest
        return form.join(loads, messages) if loads else messages

    def _wraps(self, record: Record | None, loader: str, writes: Dialect | None) -> Wrapping | None:
        """How the calls of a turn are wrapped; None where they go to their tools themselves."""
        if writes is not None or record is None:
            return self.wraps
        return recorded(self.dialect, record.state, loader)

    def _bridged(
        self, turn: Sequence[Json], readings: list[Reading], state: State, wraps: Wrapping | None
    ) -> Sequence[Json]:
        """A turn on record as this request has its calls: through the bridge, or as the caller was shown them."""
        before = recorded(self.dialect, state, "")
        if before is None:
            return turn if wraps is None else wraps.into(self.dialect, turn)
        return turn if wraps is not None else before.out_of(self.dialect, turn, shown_calls(readings))

    def _push(
        self,
        out: Transcript,
        messages: Sequence[Json],
        wraps: Wrapping | None = None,
        readings: Sequence[Reading] = (),
    ) -> None:
        """Add messages as they are sent; `readings` are what the caller shows of them."""
        shown = shown_calls(readings) if wraps is not None else {}
        for message in messages:
            reading = self.reader.read(message)
            out.messages.append(reading.repaired or message)
            out.views.append(reading.view if wraps is None else wraps.view(reading.view, shown))
            out.sent = digest(out.sent, reading.bare)
            out.tokens += estimate_bytes(reading.size)
            if not out.turns:
                out.opening = out.tokens

    def _find(self, out: Transcript, level: str, readings: list[Reading]) -> Record | None:
        if out.failed:
            return None  # asked once: a store that is down may take its time to say so
        keys = record_keys(self.scope, out, [reading.view for reading in readings], level)
        try:
            for at, key in enumerate(keys):
                found = self.ledger.find(key)
                # Under the first key is this very conversation; under the other one any that looks like it.
                if found and (at == 0 or len(found) == 1):
                    return next((record for record in found if record.sent_before == out.sent), found[0])
        except Exception as error:  # noqa: BLE001 - whatever a store raises, the call goes on without it
            log.warning("ledger cannot be read: %s", error)
            out.failed = f"{type(error).__name__}: {error}"
        return None


def record_keys(scope: str, transcript: Transcript, views: Sequence[View], level: str) -> list[str]:
    """The ledger keys of the turn that follows `transcript`, the best one first.

    The whole visible conversation names its own rounds. Until it holds a call id that no other conversation can have,
    the system prompt belongs to the name: users who say the same words to one key must not see each other's searches.
    Prompts with a clock in them change all the time, so that there is a name without it, for what was said only once.
    A turn with such ids is also known by itself, for histories whose beginning was cut off.
    """
    alone = digest(scope, "chain", transcript.named, level)
    if _unique(views):
        return [alone, digest(scope, "turn", *transcript.window, level)]
    return [alone] if transcript.unique else [digest(alone, transcript.system), alone]


def _unique(views: Sequence[View]) -> bool:
    """Whether the turn's call ids are long and random: `call_0` and `functions.NAME:0` repeat across conversations."""
    calls = [call for view in views for call in view.calls]
    return bool(calls) and all(len(call.id.replace(call.name, "")) >= _LONG_ID for call in calls)


def shown_calls(readings: Sequence[Reading]) -> dict[str, CallView]:
    """The calls that the caller shows in a turn, by id."""
    return {call.id: call for reading in readings for call in reading.view.calls}


def group_level(views: Sequence[View]) -> str:
    """The levelled digest of a turn; consecutive assistant messages are one turn."""
    calls = tuple(call for view in views for call in view.calls)
    results = tuple(result for view in views for result in view.results)
    return digest(View("assistant", "".join(view.text for view in views), calls, results).level())


def _grouped(messages: Sequence[Json], reader: Reader) -> Iterator[list[tuple[Json, Reading]]]:
    group: list[tuple[Json, Reading]] = []
    for message in messages:
        reading = reader.read(message)
        assistant = reading.view.role == "assistant"
        if group and assistant != (group[-1][1].view.role == "assistant"):
            yield group
            group = []
        group.append((message, reading))
    if group:
        yield group
