"""The open questions: which there are, what a run answers by itself, and the probes with requests of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .._json import Json
from .._prices import CacheRule
from . import _script
from ._meter import Meter, Sent
from ._place import Place, UnusableError
from ._play import WRAPPED, Side

PROBE = "probe"
PROBE_TOKENS = 64
"""The most that a reply to a probe may have."""
ENOUGH = 0.8
"""The share of what could have been read from the cache that counts as read: blocks and the newest turn are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One open question. `settled` is "run", "probe" or "hand"; the other fields are explained in the data file."""

    id: str
    question: str
    providers: tuple[str, ...]
    dialect: str
    settled: str
    how: str
    grades: tuple[str, ...]
    source: str
    reads: str = ""
    load_point: str = ""
    path: str = ""
    bodies: tuple[str, ...] = ()
    headers: tuple[Json, ...] = ()

    def fits(self, provider: str, dialect: str) -> bool:
        """Whether the question is about this provider's API."""
        return provider in self.providers and dialect == self.dialect

    def as_json(self) -> Json:
        """The question without the requests that ask it."""
        return {
            "id": self.id,
            "question": self.question,
            "providers": list(self.providers),
            "dialect": self.dialect,
            "settled": self.settled,
            "how": self.how,
            "grades": list(self.grades),
            "source": self.source,
        }


@dataclass(frozen=True, slots=True)
class Answer:
    """What a run found out. `answer` is "yes", "no" or "open"; `because` says what was seen, in figures if possible."""

    question: Question
    answer: str
    because: str

    def as_json(self) -> Json:
        """The answer as the record keeps it."""
        return {
            "id": self.question.id,
            "question": self.question.question,
            "answer": self.answer,
            "because": self.because,
            "grades": list(self.question.grades),
        }


@lru_cache(maxsize=1)
def questions() -> tuple[Question, ...]:
    """All open questions, in the order of the data."""
    import tomllib

    data = tomllib.loads(Path(__file__).with_name("open_questions.toml").read_text("utf-8"))
    return tuple(map(_question, data["question"]))


def _question(row: Json) -> Question:
    made: dict[str, Any] = dict(row)
    for name in ("providers", "grades", "bodies", "headers"):
        made[name] = tuple(row.get(name, ()))
    return Question(**made)


def chosen(ids: Sequence[str], place: Place) -> list[Question]:
    """The probes that were asked for. Raises `UnusableError` for one that is unknown or about something else."""
    here = {item.id: item for item in questions() if item.settled == PROBE and item.fits(place.provider, place.dialect)}
    if "all" in ids:
        return list(here.values())
    for name in ids:
        if name not in here:
            known = ", ".join([*here, "all"])
            raise UnusableError(f"--probe: {name!r} is no probe of {place.provider}, {place.dialect}; allowed: {known}")
    return [here[name] for name in dict.fromkeys(ids)]


def of_run(place: Place, side: Side, sent: Sequence[Sent], rule: CacheRule) -> list[Answer]:
    """What the conversation itself has answered, by the load point that it ran over."""
    used = {asked.report.load_point for asked in side.asked if asked.report is not None}
    found: list[Answer] = []
    for item in questions():
        if item.settled == "run" and item.fits(place.provider, place.dialect) and item.load_point in used:
            answer, because = _READINGS[item.reads](side, sent, rule)
            found.append(Answer(item, answer, because))
    return found


def _load_kept_prefix(side: Side, sent: Sequence[Sent], rule: CacheRule) -> tuple[str, str]:
    """Whether the round behind each load read what the round before it had left in the cache."""
    seen: list[tuple[int, int]] = []
    for asked in side.asked:
        if asked.report is None or not any(search.hits for search in asked.report.searches):
            continue
        rounds = [row.figures for row in sent if (row.side, row.call) == (WRAPPED, asked.call) and row.figures]
        if len(rounds) < 2:
            continue
        before, after = rounds[0], rounds[1]
        left = before.input_tokens if rule.automatic else before.cached + before.written
        if left >= 2 * max(rule.minimum, rule.block):
            seen.append((left, after.cached))
    if not seen:
        return "open", "no load with a cached prefix before it happened in this run"
    told = "; ".join(f"{read:,} of {left:,} tokens read" for left, read in seen)
    return ("yes" if all(read >= left * ENOUGH for left, read in seen) else "no"), told


def _load_taken(side: Side, sent: Sequence[Sent], rule: CacheRule) -> tuple[str, str]:
    """Whether loaded tools were called and every request behind a load was answered."""
    del rule
    loaded = {tool.name for asked in side.asked if asked.report for tool in asked.report.loaded}
    called = loaded.intersection(*[[name for names in side.called.values() for name in names]])
    if not called:
        return "open", "no loaded tool was called in this run"
    refused = [row.status for row in sent if row.side == WRAPPED and row.status == 400]
    if refused:
        return "no", f"{len(refused)} requests were refused with a 400"
    return "yes", f"loaded and called: {', '.join(sorted(called))}"


_READINGS: dict[str, Callable[[Side, Sequence[Sent], CacheRule], tuple[str, str]]] = {
    "load_kept_prefix": _load_kept_prefix,
    "load_taken": _load_taken,
}


class Prober:
    """Asks questions by requests of their own, through the client and the meter of the run."""

    def __init__(self, place: Place, client: Any, meter: Meter, rule: CacheRule, nonce: str) -> None:
        self._place = place
        self._client = client
        self._meter = meter
        self._long = _script.system(rule.minimum, f"{nonce}-{PROBE}")

    def ask(self, question: Question) -> Answer:
        """The answer; "open" if the budget or a fault stood in the way."""
        replies: list[tuple[int | None, int, int, str]] = []
        self._meter.side, self._meter.turn = PROBE, 0
        for at, text in enumerate(question.bodies):
            self._meter.call += 1
            headers = question.headers[at] if question.headers else {}
            replies.append(self._send(question.path, self._body(question, text), headers))
            if replies[-1][0] != 200:
                break
        status, _, _, told = replies[-1]
        if status != 200 and (status != 400 or question.reads != "accepted"):
            return Answer(question, "open", self._meter.refused or f"no answer: {told}")
        if question.reads == "accepted":
            return Answer(question, "yes" if status == 200 else "no", told)
        first, control, last = replies[0], replies[-2], replies[-1]
        if question.reads == "withheld":
            answer = "yes" if last[1] < first[1] * ENOUGH else "no"
            return Answer(question, answer, f"{first[1]:,} input tokens sent plainly, {last[1]:,} deferred")
        if not control[2]:
            return Answer(question, "open", "the repetition read nothing from the cache, so there is no control")
        answer = "yes" if last[2] >= control[2] * ENOUGH else "no"
        return Answer(question, answer, f"the repetition read {control[2]:,} tokens, the changed request {last[2]:,}")

    def _body(self, question: Question, text: str) -> Json:
        body: Json = {"model": self._place.model, **json.loads(text.replace('"$LONG"', json.dumps(self._long)))}
        if not question.path.endswith("_tokens"):  # a count has no reply
            body[self._place.limit] = PROBE_TOKENS
        return body

    def _send(self, path: str, body: Json, headers: Json) -> tuple[int | None, int, int, str]:
        """Status (None: no connection), input tokens, tokens read from the cache, and what was said."""
        seen = len(self._meter.sent)
        try:
            reply: Any = self._client.post(path, cast_to=object, body=body, options={"headers": dict(headers)})
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises, the other probes may still be asked
            status = getattr(error, "status_code", None)
            return status if isinstance(status, int) else None, 0, 0, f"{type(error).__name__}: {error}"
        figures = self._meter.sent[-1].figures if len(self._meter.sent) > seen else None
        if figures is None:
            return 200, int(reply.get("input_tokens", 0)), 0, "answered with 200"
        return 200, figures.input_tokens, figures.cached, "answered with 200"
