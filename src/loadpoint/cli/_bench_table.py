"""The outcome of `loadpoint bench` as tables, and its progress as a bar on standard error."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from .. import bench

_COLUMNS = ("tools", "KB", "breaks", "cached", "uncached", "rounds", "USD")
_MILLION = 1_000_000
_LEGEND = (
    "tools, KB: tool tokens in context and kilobytes sent, first request; breaks: requests that do not contain the one "
    "before; cached, uncached: input tokens of the session; USD at list price; green: the cheapest"
)


@contextmanager
def progress_bar() -> Generator[bench.Progress]:
    """A function for `bench.run(progress=...)` that draws a bar on standard error, if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=None)

        def told(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        yield told


def show(result: bench.Bench, console: Console | None = None) -> None:
    """Print one table per dialect and session, the cheapest strategy of each marked, and what has to be known."""
    out = console or Console()
    out.print(
        f"{result.count:,} tools of {result.servers} servers; tokens counted by {result.counter}", highlight=False
    )
    groups: dict[tuple[str, str, str, int], list[bench.Entry]] = {}
    for entry in result.entries:
        groups.setdefault((entry.case.dialect, entry.case.model, entry.session, entry.size), []).append(entry)
    for (dialect, model, session, size), entries in groups.items():
        out.print(_table(f"{dialect}, {model}: {session} session, {size:,} tools", entries))
    for verdict in result.verdicts:
        out.print(verdict, highlight=False)
    for note in (_LEGEND, *result.notes):
        out.print(f"* {note}", highlight=False)


def _table(title: str, entries: list[bench.Entry]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    table.padding = (0, 0, 0, 1)  # eighty columns have to hold the widest row: rich would cut its last figures
    table.add_column("strategy", no_wrap=True)
    for column in _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    cheapest = min(entries, key=lambda entry: (entry.cost or 0.0, entry.measured.uncached))
    for entry in entries:
        table.add_row(*_cells(entry), style="green" if entry is cheapest else None)
    return table


def _cells(entry: bench.Entry) -> tuple[str, ...]:
    measured = entry.measured
    taken = entry.taken if entry.taken != entry.strategy else ""
    how = f"{entry.strategy}{f' ({taken})' if taken else ''}{' !' if entry.problems else ''}"
    first = measured.first
    return (
        how,
        _count(first.get("tools", 0) + first.get("catalog", 0)),
        f"{measured.first_bytes / 1000:,.1f}",
        str(measured.breaks),
        _count(measured.cached),
        _count(measured.uncached),
        str(len(measured.rows)),
        "-" if entry.cost is None else f"{entry.cost:.3f}",
    )


def _count(number: int) -> str:
    return f"{number:,}" if number < _MILLION else f"{number / _MILLION:,.2f}M"
