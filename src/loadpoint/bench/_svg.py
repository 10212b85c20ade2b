"""Plots as inline SVG: lines over two axes, horizontal bars. Colours are classes: the page decides on them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 560, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 44
_BAR, _NAMES, _FIGURES = 20, 170, 90
KINDS = 8
"""How many series a page can tell apart by colour and dashes."""

Points = Sequence[tuple[float, float]]


def lines(series: Mapping[str, Points], kinds: Mapping[str, int], x: str, y: str, *, log: bool = False) -> str:
    """A plot of several lines; `kinds` gives each its class `s0`, `s1` and so on. `x`, `y` name the axes.

    With `log` both axes are logarithmic (values below 1 count as 1), else both begin at 0.
    """
    xs = [point[0] for points in series.values() for point in points]
    ys = [point[1] for points in series.values() for point in points]
    if not xs:
        return ""
    across = _Axis(_ticks(min(xs) if log else 0, max(xs), log=log), _LEFT, WIDTH - _RIGHT, log=log)
    up = _Axis(_ticks(min(ys) if log else 0, max(ys), log=log), HEIGHT - _BOTTOM, _TOP, log=log)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(f"{y} by {x}", quote=True)}">']
    for tick in up.ticks:
        parts.append(f'<path class="grid" d="M{_LEFT} {up(tick):.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{up(tick) + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for tick in across.ticks:
        parts.append(f'<path class="grid" d="M{across(tick):.1f} {_TOP}V{HEIGHT - _BOTTOM}"/>')
        parts.append(
            f'<text x="{across(tick):.1f}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{short(tick)}</text>'
        )
    parts.append(f'<text x="{(_LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x)}</text>')
    for name, points in series.items():
        kind = kinds[name] % KINDS
        placed = [(across(one), up(other)) for one, other in points]
        path = "L".join(f"{one:.1f} {other:.1f}" for one, other in placed)
        parts.append(f'<path class="line s{kind}" d="M{path}"/>')
        for (one, other), (real, value) in zip(placed, points, strict=True):
            said = escape(f"{name}: {value:,.0f} at {real:,.0f}")
            parts.append(
                f'<circle class="dot s{kind}" cx="{one:.1f}" cy="{other:.1f}" r="3"><title>{said}</title></circle>'
            )
    return "".join((*parts, "</svg>"))


def bars(values: Sequence[tuple[str, float, str]], kinds: Mapping[str, int]) -> str:
    """Horizontal bars from the top: name, value, and how the value is written."""
    most = max((value for _, value, _ in values), default=0.0)
    if most <= 0:
        return ""
    height = _BAR * len(values) + 8
    room = WIDTH - _NAMES - _FIGURES
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="bars">']
    for at, (name, value, said) in enumerate(values):
        top, wide = at * _BAR + 4, max(value / most * room, 1)
        parts.append(f'<text x="{_NAMES - 8}" y="{top + 12}" text-anchor="end">{escape(name)}</text>')
        kind = kinds.get(name, KINDS - 1) % KINDS
        parts.append(f'<rect class="bar s{kind}" x="{_NAMES}" y="{top}" width="{wide:.1f}" height="{_BAR - 6}"/>')
        parts.append(f'<text x="{_NAMES + wide + 6:.1f}" y="{top + 12}">{escape(said)}</text>')
    return "".join((*parts, "</svg>"))


def short(number: float) -> str:
    """A number in few characters."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if abs(number) >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


class _Axis:
    """Values to positions: the first tick stands at `start`, the last at `end`."""

    def __init__(self, ticks: Sequence[float], start: float, end: float, *, log: bool) -> None:
        self.ticks = ticks
        self._log = log
        self._low, self._high = self._at(ticks[0]), self._at(ticks[-1])
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (self._at(value) - self._low) / (self._high - self._low)
        return self._start + share * (self._end - self._start)

    def _at(self, value: float) -> float:
        return math.log10(max(value, 1)) if self._log else value


def _ticks(low: float, high: float, *, log: bool) -> list[float]:
    """Round numbers from at most `low` to at least `high`, two of them or more."""
    if log:
        first, last = math.floor(math.log10(max(low, 1))), math.ceil(math.log10(max(high, 10)))
        return [10.0**power for power in range(first, max(last, first + 1) + 1)]
    rough = max(high - low, 1) / 5
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [low + step * at for at in range(math.ceil((high - low) / step) + 1)] if high > low else [low, low + step]
