"""The measuring code behind `loadpoint bench`: real SDKs, the emulator, scripted sessions, figures of what was sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .._json import Json
from .._policy import Policy
from ._canned import arguments_for
from ._drive import DIALECTS, ECHOES, Chat, Driver, driver_of
from ._forms import MODELS, PLACES, STRATEGIES, Place, Way, forms, known_forms, ways
from ._generate import MOST, generated
from ._page import page
from ._plan import FIRST, LOADS, SESSIONS, Look, Need, Plan, PlannedTurn, Target, plan, targets
from ._player import Player
from ._result import Bench, Entry
from ._run import Case, Played, Stage, play, rare_collections
from ._toolset import BenchTool, ToolFileError, ToolSet, distribution, embedded, from_files
from .measure import RULE, Counter, Measured, measure

__all__ = [
    "DIALECTS",
    "ECHOES",
    "FIRST",
    "LOADS",
    "MODELS",
    "PLACES",
    "SESSIONS",
    "Bench",
    "BenchTool",
    "Case",
    "Chat",
    "Counter",
    "Driver",
    "Entry",
    "Look",
    "Measured",
    "Need",
    "Options",
    "Place",
    "Plan",
    "PlannedTurn",
    "Played",
    "Player",
    "Progress",
    "Target",
    "ToolFileError",
    "ToolSet",
    "Way",
    "arguments_for",
    "distribution",
    "driver_of",
    "embedded",
    "forms",
    "from_files",
    "generated",
    "growing",
    "known_forms",
    "measure",
    "measured",
    "page",
    "plan",
    "play",
    "run",
    "targets",
    "tools",
    "ways",
]

_GROWING = (50, 100, 200, 500, 1_000, 2_000, 5_000)

Progress = Callable[[str, int, int], None]
"""Told what is measured now, how many sessions are done, and how many there are."""


def tools(dialect: str = "openai.chat") -> list[Json]:
    """The embedded tools as a request of this dialect takes them: a new list of wire definitions.

    Raises `KeyError` for a dialect that is not in `DIALECTS`.
    """
    driver = driver_of(dialect)
    return [driver.wire(tool) for tool in embedded().tools]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What to measure. Empty means all, or the default.

    `tools`: files of MCP `tools/list` answers; `generate`: so many tools, those beyond the embedded ones invented.
    `sizes`: numbers of registered tools (default: all of them once). `forms`: load points. `session`: short, long,
    both, or first (one request). `loads`: how many tools a session loads, up to 6. `models`: model by dialect.
    """

    tools: Sequence[str | Path] = ()
    generate: int | None = None
    sizes: Sequence[int] = ()
    strategies: Sequence[str] = ()
    forms: Sequence[str] = ()
    dialects: Sequence[str] = ()
    session: str = "both"
    loads: int = 2
    catalog_tokens: int | None = None
    models: dict[str, str] = field(default_factory=dict[str, str])

    def checked(self) -> Options:
        """The same. Raises `ValueError` naming an option that cannot be used, and what can."""
        _allowed("session", [self.session], (*SESSIONS, FIRST, "both"))
        _allowed("strategy", self.strategies, STRATEGIES)
        _allowed("dialect", self.dialects, DIALECTS)
        if self.forms:
            _allowed("form", self.forms, known_forms())
        if self.tools and self.generate is not None:
            raise ValueError("generate: tools are read from files already; allowed: one of the two")
        return self

    @property
    def tool_set(self) -> ToolSet:
        """The tools. Raises `ToolFileError`."""
        if self.generate is not None:
            return generated(self.generate)
        return from_files(self.tools) if self.tools else embedded()


def run(tools: Sequence[str | Path] = (), *, progress: Progress | None = None, **options: Any) -> Bench:
    """`measured` with `options`, the fields of `Options`, by name."""
    return measured(Options(tools=tools, **options), progress=progress)


def growing(asked: Options, *, progress: Progress | None = None) -> Bench:
    """First requests only, with more and more tools: the numbers asked for, else 50 to all tools (1,000 at least)."""
    most = max(len(asked.tool_set), 1_000)
    sizes = asked.sizes if len(asked.sizes) > 1 else [*(size for size in _GROWING if size < most), most]
    return measured(replace(asked, session=FIRST, sizes=sizes), progress=progress)


def measured(asked: Options, *, progress: Progress | None = None) -> Bench:
    """Measure every chosen strategy, form, dialect, session and size. Default: all of them, on the embedded tools.

    `progress` is kept informed. Raises `ToolFileError` for a file that cannot be used, `ValueError` for an option that
    cannot.
    """
    asked.checked()
    whole = asked.tool_set
    found = targets(whole)
    _enough(found, asked)
    counter = Counter()
    result = Bench(len(whole), whole.servers, counter.name, counter.exact, notes=[RULE])
    kept = [target.tool for target in found[: asked.loads]]
    sets = [whole.sized(size, keep=kept) for size in asked.sizes] or [whole]
    listed = [item for tool_set in sets for item in _cases(asked, tool_set, found)]
    result.notes += _notes(sets, listed, asked)
    stage = Stage()
    with rare_collections():
        for done, (case, wanted) in enumerate(listed):
            if progress is not None:
                progress(_label(case), done, len(listed))
            result.entries.append(_entry(case, wanted, stage.played(case), counter))
    if progress is not None:
        progress("done", len(listed), len(listed))
    return result


def _enough(found: Sequence[Target], asked: Options) -> None:
    if not 1 <= asked.loads <= max(LOADS):
        raise ValueError(f"loads: {asked.loads}; allowed: 1 to {max(LOADS)}")
    if not found:
        raise ToolFileError(f"{', '.join(map(str, asked.tools))}: no tool has a description: nothing to search for")
    if any(size > MOST for size in asked.sizes):
        raise ValueError(f"sizes: {max(asked.sizes)}; allowed: up to {MOST:,}")
    least = min(len(found), asked.loads)
    if any(size < least for size in asked.sizes):
        raise ValueError(f"sizes: {min(asked.sizes)}; allowed: from {least}, the tools that the session needs")


def _allowed(option: str, given: Sequence[str], allowed: Sequence[str]) -> None:
    for value in given:
        if value not in allowed:
            raise ValueError(f"{option}: {value!r}; allowed: {', '.join(allowed)}")


def _cases(asked: Options, tools: ToolSet, found: Sequence[Target]) -> Iterator[tuple[Case, str | None]]:
    """Every session to play with these tools, and the load point that it is to take."""
    base = Policy() if asked.catalog_tokens is None else Policy(catalog_tokens=asked.catalog_tokens)
    for dialect in asked.dialects or DIALECTS:
        for name in SESSIONS if asked.session == "both" else (asked.session,):
            session = plan(name, found, asked.loads)
            for way in ways(
                dialect, base, model=asked.models.get(dialect), strategies=asked.strategies, only=asked.forms
            ):
                if not way.marked and name == "long":
                    continue  # the same requests as with markers, and none of them cached: the short session says it
                case = Case(
                    dialect=dialect,
                    model=way.place.model,
                    base_url=way.place.base_url,
                    policy=way.policy,
                    tools=tools.tools,
                    plan=session,
                    marked=way.marked,
                    in_body=True,
                )
                yield case, way.load_point


def _label(case: Case) -> str:
    policy = case.policy
    how = "eager" if policy is None else policy.load_point or policy.strategy
    return f"{case.dialect} {how} {case.plan.name}, {len(case.tools):,} tools"


def _entry(case: Case, wanted: str | None, done: Played, counter: Counter) -> Entry:
    problems = list(done.problems)
    if wanted is not None and done.reports and done.load_point != wanted:
        problems.append(f"asked for {wanted}, took {done.load_point or done.strategy}: {done.reports[-1].reason}")
    return Entry(
        case=case,
        size=len(case.tools),
        measured=measure(case.dialect, case.model, done.sent, counter, base_url=case.base_url),
        load_point=done.load_point,
        taken=done.strategy,
        problems=tuple(problems),
        searches=done.searches,
    )


def _notes(sets: Sequence[ToolSet], listed: Sequence[tuple[Case, object]], asked: Options) -> list[str]:
    """What a reader has to know about these sessions. Raises `ValueError` if there is none to play."""
    if not listed:
        given = [
            f"{name}: {', '.join(chosen)}"
            for name, chosen in (("strategy", asked.strategies), ("form", asked.forms))
            if chosen
        ]
        raise ValueError(f"{', '.join(given)}; not possible with these dialects and models")
    notes: list[str] = []
    if any(tool_set.copies for tool_set in sets):
        notes.append("sizes beyond the given tools are filled with renamed copies of them")
    if any(case.dialect == "openai.chat" and len(case.tools) > 128 for case, _ in listed):
        notes.append("openai.chat eager beyond 128 functions is measured although the API refuses it")
    return notes
