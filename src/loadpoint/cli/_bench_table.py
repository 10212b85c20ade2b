"""The outcome of `loadpoint bench` as tables, and its progress as a bar on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from .. import bench

_COLUMNS = ("tools", "KB", "breaks", "cached", "uncached", "rounds", "passes", "USD")
_SILENCE = 60.0
"""Seconds between two lines of progress where there is no terminal."""
_MILLION = 1_000_000
_LEGEND = (
    "tools, KB: tool tokens in context and kilobytes sent, first request; breaks: requests that do not contain the one "
    "before; cached, uncached: billed input tokens of the session; passes: how often the model read a "
    "prompt, more than rounds where the provider searches; USD at list price; green: the cheapest"
)


@contextmanager
def progress_bar() -> Generator[bench.Progress]:
    """A function for `bench.run(progress=...)`: a bar on standard error; where that is no terminal, a line a minute."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(console)
        return
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def told(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield told


class Lines:
    """Progress as plain lines, the first of them after a minute: a log should neither be full of them nor silent."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console, self._clock = console, clock
        self._begun = self._told = clock()

    def __call__(self, what: str, done: int, total: int) -> None:
        now = self._clock()
        if now - self._told < _SILENCE:
            return
        self._told = now
        self._console.print(
            f"bench: {done} of {total} sessions after {now - self._begun:.0f} s, now {what}",
            highlight=False,
            soft_wrap=True,
        )


def show(result: bench.Bench, console: Console | None = None) -> None:
    """Print one table per dialect and session, the cheapest strategy of each marked, and what has to be known."""
    out = console or Console()
    out.print(
        f"{result.count:,} tools of {result.servers} server{'' if result.servers == 1 else 's'}; "
        f"tokens counted by {result.counter}",
        highlight=False,
    )
    groups: dict[tuple[str, str, str, int], list[bench.Entry]] = {}
    for entry in result.entries:
        key = (entry.case.dialect, entry.case.model, entry.session, entry.size)
        groups.setdefault(key, []).append(entry)
    for (dialect, model, session, size), entries in groups.items():
        out.print(_table(f"{dialect}, {model}, {session}, {size:,} tools", entries))
    for verdict in result.verdicts:
        out.print(verdict, highlight=False)
    for note in (_LEGEND, *result.notes):
        out.print(f"* {note}", highlight=False)


def _table(title: str, entries: list[bench.Entry]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.padding = (0, 0, 0, 0)  # eighty columns have to hold the widest row: rich would cut its last figures
    table.add_column("strategy", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    cheapest = min(entries, key=lambda entry: (entry.cost or 0.0, entry.measured.uncached))
    for entry in entries:
        table.add_row(*_cells(entry), style="green" if entry is cheapest else None)
    return table


def _cells(entry: bench.Entry) -> tuple[str, ...]:
    measured = entry.measured
    how = f"{entry.label}{' !' if entry.problems else ''}"
    first = measured.first
    return (
        how,
        _count(first.get("tools", 0) + first.get("catalog", 0)),
        f"{measured.first_bytes / 1000:,.{1 if measured.first_bytes < _MILLION else 0}f}",
        str(measured.breaks),
        _count(measured.cached),
        _count(measured.uncached),
        str(len(measured.rows)),
        str(measured.passes),
        "-" if entry.cost is None else f"{entry.cost:.3f}",
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < _MILLION else f"{number / _MILLION:,.2f}M"
