"""What a row of the provider data may say: one schema, for our own files and for a user's.

A file holds tables of rows, one per kind (`[[load_point]]`, `[[denied]]`, ...). `problems` names what is wrong with it
by row, field and value, and says what is allowed there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Any, cast

from . import _models
from ._capability import MODES, Limits
from ._json import as_list, as_object

GRADES = ("documented", "recorded", "reported", "inferred", "unverified")
PROVENANCE = ("source", "date", "grade")
CONDITIONS = ("dialects", "endpoints", "families", "tiers", "from", "below", "match", "except")
KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "load_point": (("name", "endpoints"), ("declare", "betas", "by_choice", "choosable", "variant")),
    "denied": (("reason",), ("load_points",)),
    "trait": ((), ("forced_choice", "binds_thinking", "refused_choices", "refused_while")),
    "limits": ((), tuple(field.name for field in fields(Limits))),
    "cache": ((), ("minimum", "block", "breakpoints", "automatic", "lookback", "ttl", "read", "write")),
    "price": (("usd",), ()),
    "threshold": (("strategy", "read", "write", "tokens", "per_context"), ()),
    # What a library that calls many providers makes of a request, and where it sends it.
    "route": (("providers", "carries", "reason", "version"), ("modes", "speaks")),
    "host": (("providers", "url"), ("settings",)),
}
"""Per kind of row: the fields that it must have, and those that it may have beside conditions and provenance."""
OWN_KINDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **{kind: KINDS[kind] for kind in ("load_point", "denied", "trait", "limits", "cache", "price")},
    "endpoint": (("name", "hosts"), ("stream_usage",)),
    "alias": (("match", "model"), ()),
}
"""The kinds of a user's file, which may also name hosts and models of its own."""
_NAMED = ("endpoint", "alias")
"""Kinds that define a name: no conditions, no provenance."""
_VERSION = re.compile(r"\d{1,3}(\.\d{1,3})?")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: kind of row, its number (from 1; 0 for a whole kind), the field and what it holds."""

    kind: str
    row: int
    field: str
    value: object
    allowed: str

    def __str__(self) -> str:
        where = f"[[{self.kind}]]" + (f" row {self.row}" if self.row else "")
        what = f"{self.field} is missing" if self.value is None else f"{self.field} = {self.value!r} is not usable"
        return f"{where}: {what}; allowed: {self.allowed}"


_Check = tuple[Callable[[object], bool], str]


def problems(content: Mapping[str, Any], *, own: bool = False) -> Iterator[Problem]:
    """Everything that is wrong with the parsed content of a data file; `own`: a user's file."""
    kinds = OWN_KINDS if own else KINDS
    checks = _checks(content if own else {})
    for kind, rows in content.items():
        if kind not in kinds:
            yield Problem(kind, 0, "the kind of row", kind, ", ".join(kinds))
        elif not isinstance(rows, list):
            yield Problem(kind, 0, "the table", rows, f"rows, each under [[{kind}]]")
        else:
            for number, item in enumerate(cast("list[object]", rows), 1):
                row = as_object(item)
                if row is None:
                    yield Problem(kind, number, "the row", item, f"fields under [[{kind}]]")
                else:
                    yield from _row_problems(kind, number, row, checks, own=own)


def _row_problems(
    kind: str, number: int, row: Mapping[str, Any], checks: Mapping[str, _Check], *, own: bool
) -> Iterator[Problem]:
    needed, more = (OWN_KINDS if own else KINDS)[kind]
    known = [*needed, *more]
    if kind not in _NAMED:
        known += [*CONDITIONS, *PROVENANCE]
        needed = needed if own else (*needed, *PROVENANCE)
    for name in needed:
        if name not in row:
            yield Problem(kind, number, name, None, _check(checks, kind, name)[1])
    for name, value in row.items():
        if name not in known:
            yield Problem(kind, number, "the field", name, ", ".join(known))
            continue
        fine, allowed = _check(checks, kind, name)
        if not fine(value):
            yield Problem(kind, number, name, value, allowed)


def _check(checks: Mapping[str, _Check], kind: str, name: str) -> _Check:
    return checks[f"{kind}.{name}"] if f"{kind}.{name}" in checks else checks[name]


def _checks(content: Mapping[str, Any]) -> Mapping[str, _Check]:
    """The check of each field; a user's own endpoints count as known ones."""
    index = _models.table("index")
    named = [str((as_object(row) or {}).get("name")) for row in as_list(content.get("endpoint"))]
    places = (*(row["name"] for row in index["endpoint"]), *named)
    families = tuple(row["name"] for row in index["family"])
    forms = tuple(index["form"])
    texts: _Check = (_texts, "a list of non-empty strings")
    text: _Check = (_text, "a non-empty string")
    flag: _Check = (lambda value: isinstance(value, bool), "true or false")
    whole: _Check = (_whole, "a whole number from 0")
    number: _Check = (_number, "a number from 0")
    version: _Check = (lambda value: _text(value) and bool(_VERSION.fullmatch(str(value))), "a string such as '5.4'")
    return {
        "dialects": _some_of(tuple(index["dialect"])),
        "endpoints": _some_of(places),
        "families": _some_of(families),
        **dict.fromkeys(("tiers", "match", "except", "betas", "hosts"), texts),
        **dict.fromkeys(("reason", "source", "variant", "model", "endpoint.name", "alias.match"), text),
        **dict.fromkeys(("from", "below"), version),
        **dict.fromkeys(("by_choice", "forced_choice", "binds_thinking", "automatic", "stream_usage"), flag),
        **dict.fromkeys(KINDS["cache"][1], whole),
        **dict.fromkeys(KINDS["limits"][1], whole),
        "automatic": flag,
        **dict.fromkeys(("read", "write", "per_context"), number),
        "tokens": whole,
        "strategy": _one_of(("native", "resend", "frozen")),
        "name_pattern": (_pattern, "a regular expression"),
        "date": (_iso, "a date such as '2026-11-30'"),
        "grade": _one_of(GRADES),
        "name": _one_of(forms),
        "load_points": _some_of(forms),
        "carries": _some_of(forms, empty=True),
        "speaks": _one_of(tuple(index["dialect"])),
        **dict.fromkeys(("providers", "modes", "settings"), texts),
        **dict.fromkeys(("url", "route.version"), text),
        "declare": _one_of(("on_load", "all")),
        "choosable": _some_of(MODES, empty=True),
        "refused_choices": _some_of(("required", *MODES), empty=True),
        "refused_while": _one_of(("thinking",)),
        "usd": (_usd, "input and output, perhaps cached and written, in USD per million tokens"),
    }


def _one_of(allowed: Collection[str]) -> _Check:
    return lambda value: isinstance(value, str) and value in allowed, ", ".join(allowed)


def _some_of(allowed: Sequence[str], *, empty: bool = False) -> _Check:
    def fine(value: object) -> bool:
        return (_texts(value) or (empty and value == [])) and set(cast("list[str]", value)) <= set(allowed)

    return fine, f"a list of: {', '.join(allowed)}"


def _text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: object) -> bool:
    items = as_list(value)
    return bool(items) and all(_text(item) for item in items)


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _pattern(value: object) -> bool:
    try:
        re.compile(value if isinstance(value, str) else "(")
    except re.error:
        return False
    return True


def _iso(value: object) -> bool:
    try:
        date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        return False
    return True


def _usd(value: object) -> bool:
    each = as_object(value) or {}
    known = {"input", "output"} <= set(each) <= {"input", "output", "cached", "written"}
    return known and all(_number(price) for price in each.values())
