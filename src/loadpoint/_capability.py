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

from . import _models, _own_models

_SAFE = ("resend", "frozen", "eager")
_NATIVE = ("native", "resend", "frozen", "eager")
MODES = ("named", "allowed")
"""The modes of `tool_choice` that name tools."""


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One native form and how it is used here.

    `declare`: `on_load` (a deferred tool is declared from the request on that first refers to it) or `all` (every
    request declares every one); "" where the form carries definitions by value. `betas`: header tokens that it needs.
    `by_choice`: never taken by `auto`. `hosted`: the provider itself searches what is declared. `additive`: definitions
    can also be placed where the model did not search. `variant`: which of several kinds of the form. `choosable`: by
    which modes of `tool_choice` a request can name the loader and what it loaded (`named`: one tool, `allowed`: a list
    of allowed ones). `refused`, `undeclared`: patterns of error messages, see the methods.
    """

    name: str
    declare: str = ""
    betas: tuple[str, ...] = ()
    by_choice: bool = False
    hosted: bool = False
    additive: bool = False
    variant: str = ""
    choosable: tuple[str, ...] = MODES
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

    def __str__(self) -> str:
        """The limits that are known, on one line; empty where none is."""
        known = {
            "functions": self.functions,
            "deferred": self.deferred,
            "name": self.name_length,
            "description": self.description_length,
            "strict tools": self.strict_tools,
        }
        return ", ".join(f"{name} {value:,}" for name, value in known.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Capability:
    """What a model takes on an endpoint in one dialect.

    `strategies`: those that can be used, best first; `auto` never takes `frozen`, which is there by choice only.
    `load_points`: the native forms, best first. `native`: whether `auto` may use one of them. `reason` says why in one
    sentence, `source` where it is written, `grade` how well it is known (see the module).

    The other fields are for the engine. `points` holds the details of `load_points`; `insisted` what the model has on
    its provider's own platforms, for a policy that insists on `native`. `refused_choices`: modes of `tool_choice`
    (`required`, `named`, `allowed`) that are an error here; `refused_while` says when, "" for always (`thinking`: while
    the model thinks, as it does unless told not to). `forced_choice`: no mode that demands a call is refused.
    `binds_thinking`: the model voids thinking blocks when what came before them changes. `stream_usage`: the endpoint
    reports usage in a stream when asked to.

    `print` shows at most eight lines; `dataclasses.asdict` is ready for JSON.
    """

    strategies: tuple[str, ...]
    load_points: tuple[str, ...]
    native: bool
    reason: str
    source: str
    grade: str
    date: str = ""
    model: str = ""
    dialect: str = ""
    endpoint: str | None = None
    points: tuple[LoadPoint, ...] = field(default=(), repr=False)
    insisted: tuple[LoadPoint, ...] = field(default=(), repr=False)
    forced_choice: bool = True
    refused_choices: tuple[str, ...] = ()
    refused_while: str = ""
    binds_thinking: bool = False
    stream_usage: bool = False
    limits: Limits = field(default_factory=Limits, repr=False)

    def __str__(self) -> str:
        """At most seven lines: what is taken, why, the limits, what is refused, and how well it is known."""
        from ._catalog import clean_text  # here, because a look-up needs nothing of it

        taken = [point.name for point in self.points if not point.by_choice]
        chosen = [point.name for point in self.points if point.by_choice]
        native = f"native ({', '.join(taken)})"
        lines = [
            f"{self.model or 'this model'}, {self.dialect or 'this dialect'}, {self.endpoint or 'unknown endpoint'}",
            f"strategies: {', '.join(native if name == 'native' else name for name in self.strategies)}",
            f"by choice only: {', '.join(chosen)}" if chosen else "",
            f"limits: {self.limits}" if str(self.limits) else "",
            f"tool_choice refused{self._when()}: {', '.join(self.refused_choices)}" if self.refused_choices else "",
            f"why: {self.reason}",
            f"known: {provenance(self.grade, self.date, self.source)}",
        ]
        # Names are other people's words, and lines of a user's file may hold anything.
        return "\n".join(clean_text(line, 500) for line in lines if line)

    def _when(self) -> str:
        return f" while {self.refused_while}" if self.refused_while else ""

    def point(self, name: str | None) -> LoadPoint | None:
        """The details of a load point: as this endpoint takes it, else as the model's own provider does."""
        for known in (*self.points, *self.insisted):
            if known.name == name:
                return known
        return None


def capability(model: str, dialect: str = "openai.chat", base_url: str | None = None) -> Capability:
    """What `model` takes on the endpoint of `base_url` (None: the provider's own), from the data, without any request.

    `base_url` may also be a bare host name. An endpoint that the data does not know, such as a company's gateway, is
    not assumed to take a native form whatever the model is called, nor is a model that the data does not know. Never
    raises for an unknown name: the answer is then the safe choice, with the reason. The lines of a file that the
    environment variable `LOADPOINT_MODELS` names come first; raises `PolicyError` if that file cannot be used.
    """
    return _look_up(model, dialect, base_url, _own_models.current())


@lru_cache(maxsize=1024)
def _look_up(model: str, dialect: str, base_url: str | None, _own: _own_models.Own) -> Capability:
    """The answer, once per question and set of own lines."""
    parsed = _models.parse(model)
    place = _models.endpoint(base_url, dialect, parsed)
    if not _models.dialect_row(dialect):
        return Capability(("eager",), (), False, _unknown_dialect(dialect), "", "unverified")
    refused, when = _refused_choices(parsed, dialect, place)
    safe = Capability(
        strategies=_SAFE,
        load_points=(),
        native=False,
        reason=f"{_models.host(base_url or '') or 'this endpoint'} is not an endpoint the data knows, "
        "so no native form is assumed",
        source="",
        grade="unverified",
        model=model,
        dialect=dialect,
        endpoint=place,
        insisted=_points(parsed, dialect, _models.ANY),
        forced_choice=not {"required", "named"} & set(refused),
        refused_choices=refused,
        refused_while=when,
        binds_thinking=bool(_trait("binds_thinking", parsed, dialect, place) or False),
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


def _unknown_dialect(dialect: str) -> str:
    known = ", ".join(_models.table("index")["dialect"])
    return f"{dialect!r} is not a dialect the data knows; allowed: {known}"


def provenance(grade: str, date: str, source: str) -> str:
    """How well something is known, since when and from where, on one line; what nobody has shown is in capitals."""
    return ", ".join(part for part in (grade.upper() if grade == "unverified" else grade, date, source) if part)


def _any(patterns: Sequence[str], message: str) -> bool:
    return any(re.search(pattern, message, re.IGNORECASE | re.DOTALL) for pattern in patterns)


def _points(model: _models.Model | None, dialect: str, place: str) -> tuple[LoadPoint, ...]:
    """The load points of a model on an endpoint, in the order of the data; one entry per name.

    A line of the user's that denies stands above the data's load points, not above the user's own.
    """
    index = _models.table("index")
    forms: Mapping[str, Mapping[str, Any]] = index["form"]
    found: dict[str, LoadPoint] = {}
    denied = _denied(model, dialect, place)
    own = _models.own_rows("load_point", model, dialect, place)
    rows = _models.data_rows("load_point", model, dialect, place)
    for row in (*own, *(row for row in rows if denied is not None and row["name"] not in denied)):
        name: str = row["name"]
        if name not in found:
            form = forms.get(name, {})
            found[name] = LoadPoint(
                name=name,
                declare=row.get("declare", form.get("declare", "")),
                betas=tuple(row.get("betas", ())),
                by_choice=row.get("by_choice", form.get("by_choice", False)),
                hosted=form.get("hosted", False),
                additive=form.get("additive", False),
                variant=row.get("variant", ""),
                choosable=tuple(row.get("choosable", form.get("choosable", MODES))),
                refused=(*form.get("refused", ()), *(index["beta_refused"] if row.get("betas") else ())),
                undeclared=tuple(form.get("undeclared", ())),
                source=row["source"],
                date=row["date"],
                grade=row["grade"],
            )
    return tuple(found.values())


def _denied(model: _models.Model | None, dialect: str, place: str) -> set[str] | None:
    """The names that a line denies; None where the user's own denies them all."""
    own = _models.own_rows("denied", model, dialect, place)
    lines = [*own, *_models.data_rows("denied", model, dialect, place)]
    if place == _models.ANY:  # what one endpoint refuses says nothing about the others
        own, lines = ([line for line in some if "endpoints" not in line] for some in (own, lines))
    if any("load_points" not in line for line in own):
        return None
    return {name for line in lines for name in line.get("load_points", ())}


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


def _trait(name: str, model: _models.Model | None, dialect: str, place: str | None) -> Any:
    """What the first row that says anything of a trait says; None if none does."""
    return next((row[name] for row in _models.rows("trait", model, dialect, place) if name in row), None)


def _refused_choices(model: _models.Model | None, dialect: str, place: str | None) -> tuple[tuple[str, ...], str]:
    """The modes of `tool_choice` that are refused, and when; the first row that says so decides."""
    for row in _models.rows("trait", model, dialect, place):
        if "refused_choices" in row:
            return tuple(row["refused_choices"]), row.get("refused_while", "")
        if "forced_choice" in row:
            return () if row["forced_choice"] else ("required", "named"), ""
    return (), ""


def _limits(model: _models.Model | None, dialect: str, place: str | None) -> Limits:
    """Each limit from the first row that states it; what none does is the dialect's own."""
    known = Limits.__dataclass_fields__
    found: dict[str, Any] = {}
    for row in (*_models.rows("limits", model, dialect, place), _models.dialect_row(dialect).get("limits", {})):
        found = {**{key: value for key, value in row.items() if key in known}, **found}
    return Limits(**found)
