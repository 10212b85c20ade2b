"""The rules of the services, read from `_providers/rules.toml`, and the judge who applies them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Literal, TypeAlias

from .._json import Json

Strictness: TypeAlias = Literal["strict", "all", "off"]
"""strict: documented and reported rules reject, assumed ones warn. all: assumed ones reject too. off: all warn."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that a service rejects, with where that is known from.

    `grade` is "documented", "reported" or "assumed". `values` are the rule's own parameters (limits, patterns, model
    patterns, field lists).
    """

    id: str
    dialect: str
    status: int
    message: str
    source: str
    date: str
    grade: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def applies_at(self, host: str) -> bool:
        """Whether the rule holds at `host`: at those that match `hosts`, or everywhere; never at `except_hosts`."""
        hosts = self.values.get("hosts")
        if hosts is not None and not any(fnmatchcase(host, pattern) for pattern in hosts):
            return False
        return not any(fnmatchcase(host, pattern) for pattern in self.values.get("except_hosts", ()))

    def applies_to(self, model: str) -> bool:
        """Whether `model` matches the rule's `models` patterns and none of `except_models`; true without patterns."""
        if matches(model, self.values.get("except_models", ())):
            return False
        return "models" not in self.values or matches(model, self.values["models"])


@dataclass(frozen=True, slots=True)
class Broken:
    """A rule that a request breaks, and what to fill into its message."""

    rule: str
    fields: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule with its message in the service's words."""

    rule: Rule
    message: str
    param: str | None


def broken(rule: str, **fields: object) -> Broken:
    """A `Broken` from keywords."""
    return Broken(rule, fields)


def matches(model: str, patterns: Iterable[str]) -> bool:
    """Whether `model`, without a router's prefix, matches one of the fnmatch `patterns`."""
    bare = model.rsplit("/", 1)[-1].removeprefix("anthropic.").removeprefix("us.anthropic.")
    return any(fnmatchcase(bare, pattern) for pattern in patterns)


class RuleBook:
    """Every rule by id."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.rules: dict[str, Rule] = {}
        for entry in data["rule"]:
            rule = Rule(**entry)
            self.rules[rule.id] = rule
        self.cache: list[Json] = list(data["cache"])

    def __getitem__(self, rule: str) -> Rule:
        return self.rules[rule]

    def value(self, rule: str, name: str) -> Any:
        """One parameter of a rule."""
        return self.rules[rule].values[name]

    def violation(self, fault: Broken) -> Violation:
        """The broken rule in the service's words."""
        rule = self.rules[fault.rule]
        fields = {"value": "", **rule.values, **fault.fields}
        param = None if rule.param is None else Template(rule.param).substitute(fields)
        return Violation(rule, Template(rule.message).substitute(fields), param)

    def cache_row(self, dialect: str, model: str) -> Json:
        """The prompt-cache parameters of `model`: the first row of the dialect whose patterns match."""
        for row in self.cache:
            if row["dialect"] == dialect and matches(model, row["models"]):
                return row
        raise LookupError(f"no cache row of {dialect} matches {model!r}; the last row of a dialect must be '*'")


def ignores(rule: Rule, ignored: Iterable[str]) -> bool:
    """Whether `rule` is among the ids (or fnmatch patterns) in `ignored`."""
    return any(fnmatchcase(rule.id, pattern) for pattern in ignored)


def rejects(rule: Rule, strictness: Strictness, ignored: Iterable[str]) -> bool:
    """Whether breaking `rule` is an error under `strictness`, given the ids (or fnmatch patterns) that are ignored."""
    if strictness == "off" or ignores(rule, ignored):
        return False
    return strictness == "all" or rule.grade != "assumed"


@cache
def book() -> RuleBook:
    """The rules that ship with this package; read once."""
    text = (files("loadpoint") / "_providers" / "rules.toml").read_text(encoding="utf-8")
    return RuleBook(tomllib.loads(text))
