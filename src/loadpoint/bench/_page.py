"""A run as one HTML page with plots: no network, no scripts, readable on light and dark screens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import accumulate

from ._result import Bench, Entry, group_of
from ._svg import KINDS, Points, bars, lines

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2024;--dim:#5b636b;--back:#fff;--rule:#d9dde1;
--c0:#6b7280;--c1:#d55e00;--c2:#0072b2;--c3:#00865f;--c4:#a8447f;--c5:#9a6a00;--c6:#5b3fb0;--c7:#1f8fb8}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ea;--dim:#a0a8b0;--back:#15181b;--rule:#343a40;
--c0:#a3acb6;--c1:#ff8b3d;--c2:#5cb3ee;--c3:#35c897;--c4:#e88bc4;--c5:#e0b23c;--c6:#a893ff;--c7:#74d3f2}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1180px;margin:2rem auto;
padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2.2rem}h3{font-size:1rem;margin:.6rem 0 .2rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,420px),1fr));gap:1.2rem}
figure{margin:0}svg{width:100%;height:auto}svg text{font-size:12px;fill:var(--dim)}
.grid{stroke:var(--rule);fill:none}.line{fill:none;stroke-width:2.2}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;list-style:none}
.legend svg{width:28px;height:10px;margin-right:.4rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.88rem}
.wide{overflow-x:auto}th,td{padding:.2rem .7rem .2rem 0;border-bottom:1px solid var(--rule);text-align:right}
th:nth-child(-n+4),td:nth-child(-n+4){text-align:left}p,li{color:var(--dim)}
"""
_DASHES = ("none", "none", "none", "7 3", "2 3", "9 3 2 3", "12 4", "4 4")
_HEAD = ("dialect", "model", "session", "form", "tools", "first request", "bytes", "breaks", "cached", "uncached")


def page(result: Bench, growing: Bench) -> str:
    """The page of a run: `result` are its sessions, `growing` its first requests with more and more tools."""
    kinds = _kinds((*result.entries, *growing.entries))
    notes = (f"Tokens counted by {result.counter}.", *result.notes, *result.verdicts)
    told = "".join(f"<li>{escape(note)}</li>" for note in notes)
    sections = (
        _section("Tokens in context, first request", _by_tools(growing, kinds, "tokens in context", _tokens)),
        _section(
            "Bytes sent, first request", _by_tools(growing, kinds, "bytes", lambda entry: entry.measured.first_bytes)
        ),
        _section("Uncached input tokens, added up over the session", _by_turn(result, kinds)),
        _section("Cost of a session at list price", _by_price(result, kinds)),
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>loadpoint bench</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}{_colours()}</style></head><body><h1>loadpoint bench</h1>"
        f"<p>{result.count:,} tools of {result.servers} server{'' if result.servers == 1 else 's'}. "
        "Requests of the real SDKs against the emulator, in "
        f"process; a scripted model.</p>{_legend(kinds)}{''.join(sections)}"
        f"<h2>Figures</h2>{_table(result)}<h2>To know</h2><ul>{told}</ul></body></html>\n"
    )


def _tokens(entry: Entry) -> float:
    return sum(entry.measured.first.values())


def _kinds(entries: Iterable[Entry]) -> dict[str, int]:
    """A colour for every form, the same in all plots. `auto` is one of the others and gets none."""
    names = dict.fromkeys(entry.label for entry in entries if entry.strategy != "auto")
    first = [name for name in ("eager", "resend") if name in names]
    return {name: at for at, name in enumerate((*first, *(name for name in names if name not in first)))}


def _colours() -> str:
    rules = (
        f".line.s{at}{{stroke:var(--c{at});stroke-dasharray:{_DASHES[at]}}}.dot.s{at},.bar.s{at}{{fill:var(--c{at})}}"
        for at in range(KINDS)
    )
    return "".join(rules)


def _legend(kinds: Mapping[str, int]) -> str:
    items = (
        f'<li><svg viewBox="0 0 28 10" aria-hidden="true"><path class="line s{kind % KINDS}" d="M0 5H28"/></svg>'
        f"{escape(name)}</li>"
        for name, kind in kinds.items()
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _section(title: str, plots: Iterable[tuple[str, str]]) -> str:
    shown = [f"<figure><h3>{escape(name)}</h3>{plot}</figure>" for name, plot in plots if plot]
    return f'<h2>{escape(title)}</h2><div class="plots">{"".join(shown)}</div>' if shown else ""


def _plotted(entries: Iterable[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.strategy != "auto" and not entry.problems]


def _by_tools(
    growing: Bench, kinds: Mapping[str, int], y: str, value: Callable[[Entry], float]
) -> Iterable[tuple[str, str]]:
    entries = _plotted(growing.entries)
    for dialect in dict.fromkeys(entry.case.dialect for entry in entries):
        series: dict[str, dict[float, float]] = {}
        for entry in entries:
            if entry.case.dialect == dialect:
                series.setdefault(entry.label, {}).setdefault(entry.size, value(entry))
        drawn: dict[str, Points] = {name: sorted(points.items()) for name, points in series.items()}
        yield dialect, lines(drawn, kinds, "registered tools", y, log=True)


def _by_turn(result: Bench, kinds: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    entries = _plotted(result.entries)
    largest = max((entry.size for entry in entries), default=0)
    for dialect, session in dict.fromkeys((entry.case.dialect, entry.session) for entry in entries):
        drawn: dict[str, Points] = {}
        for entry in entries:
            if (entry.case.dialect, entry.session, entry.size) == (dialect, session, largest):
                drawn.setdefault(entry.label, _added_up(entry))
        yield f"{dialect}, {session} session, {largest:,} tools", lines(drawn, kinds, "turn", "uncached tokens")


def _added_up(entry: Entry) -> list[tuple[float, float]]:
    by_turn: dict[int, int] = {}
    for row in entry.measured.rows:
        by_turn[row.turn] = by_turn.get(row.turn, 0) + row.uncached + row.again_uncached
    return list(zip(by_turn, accumulate(by_turn.values()), strict=True))


def _by_price(result: Bench, kinds: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    entries = [entry for entry in _plotted(result.entries) if entry.cost is not None]
    for key in dict.fromkeys(map(group_of, entries)):
        dialect, model, session, size = key
        values = [
            (entry.label, entry.cost or 0.0, f"{entry.cost:.3f} USD") for entry in entries if group_of(entry) == key
        ]
        yield f"{model} ({dialect}), {session} session, {size:,} tools", bars(values, kinds)


def _table(result: Bench) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in (*_HEAD, "rounds", "passes", "USD"))
    rows = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in _cells(e)) + "</tr>" for e in result.entries)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cells(entry: Entry) -> Sequence[str]:
    measured = entry.measured
    numbers = (
        entry.size,
        int(_tokens(entry)),
        measured.first_bytes,
        measured.breaks,
        measured.cached,
        measured.uncached,
    )
    return (
        entry.case.dialect,
        entry.case.model,
        entry.session,
        entry.label + (" (failed)" if entry.problems else ""),
        *(f"{number:,}" for number in (*numbers, len(measured.rows), measured.passes)),
        "-" if entry.cost is None else f"{entry.cost:.4f}",
    )
