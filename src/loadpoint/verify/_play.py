"""Plays the scripted conversation on one side, wrapped or bare, through the meter; faults that pass are waited out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from .._dialect import Dialect
from .._json import Json
from .._prices import cache_rule
from .._report import CallReport
from . import _script
from ._meter import Meter, http_client
from ._place import Place, Settings, UnusableError
from ._surfaces import SURFACES, Chat

WRAPPED, BARE = "wrapped", "bare"
ATTEMPTS = 4
"""How often one call is made when faults stand in the way, on top of what the SDK repeats by itself."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 20.0
"""Seconds between attempts: random, up to twice as long each time."""
MOST_CALLS = 6
"""Calls of the program in one turn; a model that has not answered by then is left."""

Progress = Callable[[str], None]
"""Told in one line what happens now."""


@dataclass(slots=True)
class Asked:
    """One call of the program: its turn and number (both from 1), the usage that the reply showed, the report."""

    turn: int
    call: int
    usage: Json
    report: CallReport | None = None


@dataclass(slots=True)
class Side:
    """What happened on one side. `called` are the tools by turn, `seconds` the time of the calls, waits included."""

    name: str
    asked: list[Asked] = field(default_factory=list[Asked])
    called: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    seconds: float = 0.0
    turns: int = 0
    failure: str | None = None


def sdk_client(place: Place, key: str, meter: Meter) -> Any:
    """A client of the provider's SDK whose requests pass the meter. Raises `ModuleNotFoundError` without the SDK."""
    module = import_module(place.sdk)
    given = {"api_key": key, "http_client": http_client(module, meter)}
    if place.base_url is not None:
        given["base_url"] = place.base_url
    return getattr(module, place.client)(**given)


def dialect_of(name: str) -> Dialect:
    """The dialect of that name. Raises `UnusableError` if no adapter that speaks it can be imported."""
    from .._adapter import dialects

    for dialect in dialects():
        if dialect.name == name:
            return dialect
    raise UnusableError(f'the adapter for {name} cannot be imported: pip install "loadpoint[verify]"')


class Player:
    """Plays one side. `nonce` stands in the first tool and in the system prompt, so that no two sides or runs share a
    cache: tools come first in a prompt, and where they are deferred the system prompt does.
    """

    def __init__(self, place: Place, settings: Settings, meter: Meter, progress: Progress) -> None:
        self._place = place
        self._settings = settings
        self._meter = meter
        self._progress = progress

    def play(self, side: Side, client: Any, nonce: str) -> None:
        """Write the whole conversation into `side`, or as much of it as works: `failure` says what ended it."""
        from .._adapter import wrap

        name, reports = side.name, list[CallReport]()
        if name == WRAPPED:
            client = wrap(client, self._settings.policy, on_report=reports.append)
        rule = cache_rule(self._place.model, self._place.dialect, self._settings.endpoint or self._place.base_url)
        chat = Chat(
            client=client,
            model=self._place.model,
            system=_script.system(rule.minimum, f"{nonce}-{name}"),
            tools=_script.tools(f"{nonce}-{name}"),
            limit=self._place.limit,
            max_tokens=self._settings.max_tokens,
        )
        counts: Counter[str] = Counter()
        for number, said in enumerate(_script.TURNS, 1):
            self._progress(f"{name}, turn {number} of {len(_script.TURNS)}: {said.text[:50]}...")
            self._meter.side, self._meter.turn = name, number
            chat.history += SURFACES[self._place.dialect].said(said.text)
            try:
                self._turn(side, chat, number, counts, reports)
            except Exception as error:  # noqa: BLE001 - whatever an SDK raises is the finding, and what came so far counts
                side.failure = self._meter.refused or f"{name}, turn {number}: {_told(error)}"
                return
            side.turns = number

    def _turn(self, side: Side, chat: Chat, number: int, counts: Counter[str], reports: list[CallReport]) -> None:
        surface = SURFACES[self._place.dialect]
        for _ in range(MOST_CALLS):
            self._meter.call += 1
            start = time.perf_counter()
            try:
                reply = self._patiently(lambda: surface.ask(chat))
            finally:
                side.seconds += time.perf_counter() - start
            report = reports[-1] if reports else None
            side.asked.append(Asked(number, self._meter.call, _usage(reply), report))
            chat.history += surface.echoed(reply)
            calls = surface.calls(reply)
            if not calls:
                return
            answers: dict[str, str] = {}
            for call in calls:
                counts[call.name] += 1
                side.called.setdefault(number, []).append(call.name)
                answers[call.id] = _script.answer(call.name, counts[call.name])
            chat.history += surface.results(answers)
        raise RuntimeError(f"the model called tools {MOST_CALLS} times and gave no answer")

    def _patiently(self, ask: Callable[[], Any]) -> Any:
        """`ask`, repeated after faults that pass by themselves. Raises the last fault."""
        import tenacity

        def waiting(state: tenacity.RetryCallState) -> None:
            fault = state.outcome.exception() if state.outcome is not None else None
            seconds = state.next_action.sleep if state.next_action is not None else 0.0
            self._progress(f"  {type(fault).__name__}; next attempt in {seconds:.0f} s")

        return tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda fault: self._meter.refused is None and transient(fault)),
            stop=tenacity.stop_after_attempt(ATTEMPTS),
            wait=tenacity.wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT),
            before_sleep=waiting,
            reraise=True,
        )(ask)


def transient(fault: BaseException) -> bool:
    """Whether the fault may pass by itself: 408, 409, 429, 5xx, or no connection. A used-up quota does not."""
    status = getattr(fault, "status_code", None)
    if isinstance(status, int):
        spent = getattr(fault, "code", None) == "insufficient_quota"
        return (status in {408, 409, 429} and not spent) or status >= 500
    return any(kind.__name__ == "APIConnectionError" for kind in type(fault).__mro__)


def _usage(reply: Any) -> Json:
    usage = getattr(reply, "usage", None)
    found: Json = {} if usage is None else usage.to_dict()
    return found


def _told(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    return f"{type(error).__name__}{f' {status}' if isinstance(status, int) else ''}: {error}"
