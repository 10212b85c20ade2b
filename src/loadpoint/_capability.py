"""Which strategies and load points a model takes on an endpoint: a look-up in the data, offline.

The data is in `_providers/*.toml`; each entry names its source, its date and its grade:

    documented   a vendor's page says so
    recorded     a public recording of the live API shows it
    reported     a public issue or another project's code says so
    inferred     follows from two of the above
    unverified   nobody has shown it; never taken as support
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from . import _models

_SAFE = ("resend", "eager")
_NATIVE = ("native", "resend", "eager")
_MODES = ("named", "allowed")


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One native form and how it is used here.

    `declare`: `on_load` (a deferred tool is declared from the request on that first refers to it) or `all` (every
    request declares every one); "" where the form carries definitions by value. `betas`: header tokens that it needs.
    `by_choice`: never taken by `auto`. `choosable`: by which modes of `tool_choice` a request can name the loader and
    what it loaded (`named`: one tool, `allowed`: a list of allowed ones). `refused`, `undeclared`: patterns of error
    messages, see the methods.
    """

    name: str
    declare: str = ""
    betas: tuple[str, ...] = ()
    by_choice: bool = False
    choosable: tuple[str, ...] = _MODES
    refused: tuple[str, ...] = ()
    undeclared: tuple[str, ...] = ()
    source: str = ""
    date: str = ""
    grade: str = "unverified"

    def refuses(self, message: str) -> bool:
        """Whether an error message of a request that used this form says that the provider does not take the form."""
        return _any(self.refused, message)

    def wants_all(self, message: str) -> bool:
        """Whether an error message says that the request should have declared every deferred tool."""
        return _any(self.undeclared, message)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider accepts per request; None where no limit is known.

    `name_pattern` is a regular expression that whole tool names match. `description_length` bounds a tool's description
    in characters, `reference_length` bounds a name in a load
    point, `functions` the tools in context, `deferred` the declared ones, `strict_*` what all strict schemas together
    may hold: tools, optional parameters, union-typed parameters.
    """

    name_pattern: str | None = None
    name_length: int | None = None
    description_length: int | None = None
    reference_length: int | None = None
    functions: int | None = None
    deferred: int | None = None
    strict_tools: int | None = None
    strict_optional: int | None = None
    strict_unions: int | None = None


@dataclass(frozen=True, slots=True)
class Capability:
    """What a model takes on an endpoint in one dialect.

    `strategies`: those that `auto` may take, best first (`frozen` works everywhere and is taken by choice only).
    `load_points`: the native forms, best first. `native`: whether `auto` may use one of them. `reason` says why in one
    sentence, `source` where it is written, `grade` how well it is known (see the module).

    The other fields are for the engine. `points` holds the details of `load_points`; `insisted` what the model has on
    its provider's own platforms, for a policy that insists on `native`. `forced_choice`: the model accepts
    `tool_choice` that demands a call. `binds_thinking`: it voids thinking blocks when what came before them changes.
    `stream_usage`: the endpoint reports usage in a stream when asked to.
    """

    strategies: tuple[str, ...]
    load_points: tuple[str, ...]
    native: bool
    reason: str
    source: str
    grade: str
    date: str = ""
    endpoint: str | None = None
    points: tuple[LoadPoint, ...] = field(default=(), repr=False)
    insisted: tuple[LoadPoint, ...] = field(default=(), repr=False)
    forced_choice: bool = True
    binds_thinking: bool = False
    stream_usage: bool = False
    limits: Limits = field(default_factory=Limits, repr=False)

    def point(self, name: str | None) -> LoadPoint | None:
        """The details of a load point: as this endpoint takes it, else as the model's own provider does."""
        for known in (*self.points, *self.insisted):
            if known.name == name:
                return known
        return None


@lru_cache(maxsize=1024)
def capability(model: str, dialect: str = "openai.chat", base_url: str | None = None) -> Capability:
    """What `model` takes on the endpoint of `base_url` (None: the provider's own), from the data, without any request.

    `base_url` may also be a bare host name. An endpoint that the data does not know, such as a company's gateway, is
    not assumed to take a native form whatever the model is called, nor is a model that the data does not know. Never
    raises for an unknown name: the answer is then the safe choice, with the reason.
    """
    parsed = _models.parse(model)
    place = _models.endpoint(base_url, dialect, parsed)
    if not _models.dialect_row(dialect):
        return Capability(("eager",), (), False, f"{dialect!r} is not a dialect the data knows", "", "unverified")
    forced, binds = _traits(parsed, dialect, place)
    safe = Capability(
        strategies=_SAFE,
        load_points=(),
        native=False,
        reason=f"{_models.host(base_url or '') or 'this endpoint'} is not an endpoint the data knows, "
        "so no native form is assumed",
        source="",
        grade="unverified",
        endpoint=place,
        insisted=_points(parsed, dialect, _models.ANY),
        forced_choice=forced,
        binds_thinking=binds,
        stream_usage=bool(_models.endpoint_row(place).get("stream_usage", False)),
        limits=_limits(parsed, dialect, place),
    )
    if place is None:
        return safe
    points = _points(parsed, dialect, place)
    found = replace(safe, load_points=tuple(point.name for point in points), points=points)
    taken = next((point for point in points if not point.by_choice), None)
    if taken is None:
        said = _why_not(parsed, model, dialect, place)
        return replace(found, reason=said["reason"], source=said["source"], grade=said["grade"], date=said["date"])
    return replace(
        found,
        strategies=_NATIVE,
        native=True,
        reason=f"{_models.bare(model)} takes {taken.name} on {place}",
        source=taken.source,
        grade=taken.grade,
        date=taken.date,
    )


def _any(patterns: Sequence[str], message: str) -> bool:
    return any(re.search(pattern, message, re.IGNORECASE | re.DOTALL) for pattern in patterns)


def _points(model: _models.Model | None, dialect: str, place: str) -> tuple[LoadPoint, ...]:
    """The load points of a model on an endpoint, in the order of the data; one entry per name."""
    index = _models.table("index")
    forms: Mapping[str, Mapping[str, Any]] = index["form"]
    found: dict[str, LoadPoint] = {}
    for row in _models.rows("load_point", model, dialect, place):
        name: str = row["name"]
        if name not in found:
            form = forms.get(name, {})
            found[name] = LoadPoint(
                name=name,
                declare=row.get("declare", form.get("declare", "")),
                betas=tuple(row.get("betas", ())),
                by_choice=row.get("by_choice", form.get("by_choice", False)),
                choosable=tuple(row.get("choosable", form.get("choosable", _MODES))),
                refused=(*form.get("refused", ()), *(index["beta_refused"] if row.get("betas") else ())),
                undeclared=tuple(form.get("undeclared", ())),
                source=row["source"],
                date=row["date"],
                grade=row["grade"],
            )
    return tuple(found.values())


def _why_not(model: _models.Model | None, given: str, dialect: str, place: str) -> Mapping[str, str]:
    """Why there is no native form for `auto`: a row of the data, the dialect's own word, or an unknown model."""
    row = _models.first("denied", model, dialect, place)
    if row is not None:
        return {key: row[key] for key in ("reason", "source", "grade", "date")}
    spoken: Mapping[str, str] = _models.dialect_row(dialect).get("denied", {})
    if model is None and not spoken.get("for_every_model"):
        reason = f"{given!r} is not a model the data knows, so no native form is assumed"
        return {"reason": reason, "source": "", "grade": "unverified", "date": ""}
    return {key: spoken.get(key, "") for key in ("reason", "source", "grade", "date")}


def _traits(model: _models.Model | None, dialect: str, place: str | None) -> tuple[bool, bool]:
    """Whether the model takes a forced choice, and whether it binds thinking; the first row that says so decides."""
    rows = _models.rows("trait", model, dialect, place)
    forced = next((row["forced_choice"] for row in rows if "forced_choice" in row), True)
    binds = next((row["binds_thinking"] for row in rows if "binds_thinking" in row), False)
    return bool(forced), bool(binds)


def _limits(model: _models.Model | None, dialect: str, place: str | None) -> Limits:
    row = _models.first("limits", model, dialect, place) or _models.dialect_row(dialect).get("limits", {})
    known = Limits.__dataclass_fields__
    return Limits(**{key: value for key, value in row.items() if key in known})
