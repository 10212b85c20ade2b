"""The outcome of `loadpoint verify` as tables: both sides, the verdicts on the prefix, and answered questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from .._catalog import clean_text

if TYPE_CHECKING:
    from .. import verify

_LONGEST = 300
_SETTLED = {"run": "by the conversation itself", "probe": "by --probe", "hand": "not by this command"}


def show(outcome: verify.Outcome, console: Console | None = None) -> None:
    """Print both sides by the provider's own usage, the prefix call by call, and what else has to be known."""
    out = console or Console()
    document = outcome.as_json()
    title = f"{document['model']} at {document['host']}, {document['dialect']}: {document['tools']} tools"
    out.print(_sides(title, outcome))
    calls: list[dict[str, Any]] = document["sides"].get("wrapped", {}).get("calls", [])
    if calls:
        last = calls[-1]
        point = f" by {last['load_point']}" if last["load_point"] else ""
        _line(out, f"strategy: {last['strategy']}{point} ({last['reason']})")
        out.print(_prefix(calls))
    for answer in document["open_questions"]:
        _line(out, f"{answer['id']}: {answer['answer']} ({answer['because']})")
        _line(out, f"  {answer['question']} Grades: {'; '.join(answer['grades'])}")
    for note in document["notes"]:
        _line(out, f"* {note}")
    verdict = "verified" if outcome.verified else "not verified"
    _line(out, f"{verdict}; ${outcome.spent:.4f} of ${outcome.settings.budget:.4f} spent at most")


def show_questions(listed: Sequence[verify.Question], console: Console | None = None) -> None:
    """Print the open questions, grouped by how they are settled."""
    out = console or Console()
    for settled, told in _SETTLED.items():
        group = [item for item in listed if item.settled == settled]
        if group:
            out.print(f"\nSettled {told}:", style="bold")
        for item in group:
            _line(out, f"{item.id} ({', '.join(item.providers)}; {item.dialect}): {item.question}")
            _line(out, f"  how: {item.how}; grades: {'; '.join(item.grades)}")


def _line(out: Console, text: str) -> None:
    # Names and messages are other people's words: no control characters, no markup.
    out.print(clean_text(text, _LONGEST * 2), highlight=False, markup=False)


def _sides(title: str, outcome: verify.Outcome) -> Table:
    table = Table(title=clean_text(title, _LONGEST), title_justify="left", title_style="bold", box=SIMPLE_HEAD)
    table.add_column("", no_wrap=True)
    figures = [outcome.figures(side.name) for side in outcome.sides]
    for side in outcome.sides:
        table.add_column(side.name, justify="right", no_wrap=True)
    rows: tuple[tuple[str, Callable[[verify.Figures], str]], ...] = (
        ("tokens in", lambda side: f"{side.usage.input_tokens:,}"),
        ("  read from the cache", lambda side: f"{side.usage.cached:,}"),
        ("  written to it", lambda side: f"{side.usage.written:,}"),
        ("tokens out", lambda side: f"{side.usage.output:,}"),
        ("cost, USD", lambda side: "unknown" if side.cost is None else f"{side.cost:.5f}"),
        ("seconds", lambda side: f"{side.seconds:.1f}"),
        ("requests answered", lambda side: f"{side.rounds:,}"),
        ("requests sent", lambda side: f"{side.requests:,}"),
    )
    for name, told in rows:
        table.add_row(name, *map(told, figures))
    return table


def _prefix(calls: Sequence[dict[str, Any]]) -> Table:
    table = Table(title="Prefix of the wrapped side, call by call", title_justify="left", box=SIMPLE_HEAD)
    for name in ("turn", "rounds", "predicted", "billed"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for call in calls:
        verdict = "disagrees" if call["disagrees"] else "stable" if call["stable"] else call["broke"] or "-"
        table.add_row(
            str(call["turn"]), str(call["rounds"]), _count(call["predicted"]), _count(call["billed"]), verdict
        )
    return table


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
