"""Where a call of litellm goes, and which native forms arrive there: a look-up in `_providers/litellm_routes.toml`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, cast

from loadpoint import _models
from loadpoint._carrier import Carrier
from loadpoint._json import as_list, as_object

from . import _compat

_TABLE = "litellm_routes"
_ANY = "*"


class Place(NamedTuple):
    """Where a call goes: the model as the data knows it, the address, and what arrives there."""

    model: str
    base_url: str
    carrier: Carrier


@lru_cache(maxsize=64)
def carrier(provider: str, mode: str, model: str, dialect: str, version: str) -> Carrier:
    """What arrives of a call of `dialect`, from the first row that fits.

    A version that nobody has tried carries nothing: what it makes of a form is not known.
    """
    parsed = _models.parse(model)
    for row in _models.table(_TABLE)["route"]:
        if not _fits(row, provider, mode) or not _models.fits(row, parsed, dialect, None):
            continue
        found = Carrier(
            row.get("speaks", ""), tuple(row["carries"]), row["reason"], row["source"], row["date"], row["grade"]
        )
        if _compat.numbers(row["version"]) == _compat.numbers(version):
            return found
        reason = f"what litellm {version} carries was not tried; {row['version']} was"
        return replace(found, carries=(), reason=reason, grade="unverified")
    return Carrier()


def _fits(row: Mapping[str, Any], provider: str, mode: str) -> bool:
    return {_ANY, provider} & set(row["providers"]) != set() and ("modes" not in row or mode in row["modes"])


def place(params: Mapping[str, Any], dialect: str) -> Place:
    """Where a call with these arguments, or of a deployment with these `litellm_params`, goes.

    Raises what litellm raises for a model that it knows no provider for.
    """
    model = str(params.get("model") or "")
    given = params.get("api_base") or params.get("base_url")
    given = given if isinstance(given, str) else None
    bare, provider, told = _compat.provider(model, params.get("custom_llm_provider"), given)
    info = as_object(params.get("model_info")) or {}
    known = str(info.get("base_model") or params.get("base_model") or model)
    found = carrier(provider, _mode(provider, bare), known, dialect, _version())
    return Place(known, _address(provider, params, given or told), found)


@lru_cache(maxsize=1)
def _version() -> str:
    return _compat.version()


def _mode(provider: str, bare: str) -> str:
    """The way to a provider that has several."""
    if provider == "bedrock":
        return _compat.bedrock_way(bare)
    # An Azure deployment with tools is called by Responses, as any model is that asks for it in its name.
    return "responses" if bare.startswith("responses/") or provider == "azure" else ""


def _address(provider: str, params: Mapping[str, Any], told: str | None) -> str:
    """The base_url behind a provider; "" where it is not known, which is nobody's."""
    own = params.get("aws_bedrock_runtime_endpoint")
    everywhere: object = getattr(_compat.module(), "api_base", None)
    for url in (told, own, everywhere):
        if isinstance(url, str) and url:
            return url
    row = next((row for row in _models.table(_TABLE)["host"] if provider in row["providers"]), None)
    if row is None:
        return ""
    return next((os.environ[name] for name in row.get("settings", ()) if os.environ.get(name)), str(row["url"]))


def together(places: Sequence[Place]) -> Place:
    """One place for a call that any of these may serve: only what arrives at all of them is used."""
    first = places[0]
    if all(other.carrier == first.carrier and _same_host(other, first) for other in places):
        return first
    if len({other.carrier.speaks for other in places}) > 1 or not all(_same_host(other, first) for other in places):
        reason = "the deployments and fallbacks of this model are of several kinds, so no native form reaches them all"
        return first._replace(carrier=replace(first.carrier, carries=(), reason=reason))
    shared = [name for name in first.carrier.carries if all(name in other.carrier.carries for other in places)]
    least = min((other.carrier for other in places), key=lambda each: len(each.carries))
    return first._replace(carrier=replace(least, carries=tuple(shared)))


def _same_host(one: Place, other: Place) -> bool:
    """Whether two places are the same to the data: the endpoint, and the model's family and generation."""

    def known(place: Place) -> tuple[object, ...]:
        model = _models.parse(place.model)
        spoken = place.carrier.speaks
        return (
            _models.endpoint(place.base_url, spoken, model),
            (model.family, model.tier, model.version) if model is not None else place.model,
        )

    return known(one) == known(other)


def of_router(router: Any, params: Mapping[str, Any], dialect: str) -> Place | None:
    """Where a Router may send a call: its deployments, and those of every fallback; None for an unknown model."""
    groups = [str(params.get("model") or "")]
    groups += _targets(_named(params.get("fallbacks")), groups[0])
    seen: list[str] = []
    found: list[Mapping[str, Any]] = []
    chains = [*_compat.fallbacks(router)]
    while groups:
        group = groups.pop(0)
        if group in seen:
            continue
        seen.append(group)
        found += _compat.deployments(router, group)
        groups += _targets(chains, group)
    return together([place(each, dialect) for each in found]) if found else None


def of_call(params: Mapping[str, Any], dialect: str) -> Place:
    """Where a call of a function may go: its model, and the ones that its own `fallbacks` name."""
    others = [{**params, **each} for each in _models_of(params.get("fallbacks"))]
    return together([place(each, dialect) for each in (params, *others)])


def _models_of(given: object) -> list[dict[str, Any]]:
    """The `fallbacks` of a function: names, or arguments that replace those of the call."""
    entries = as_list(given)
    made: list[dict[str, Any]] = [{"model": each} for each in entries if isinstance(each, str)]
    return made + [cast("dict[str, Any]", each) for each in entries if isinstance(each, dict) and "model" in each]


def _named(given: object) -> list[Mapping[str, Any]]:
    """The `fallbacks` of a call of a Router: a mapping as in its settings, or names for whatever model it is."""
    entries = as_list(given)
    made: list[Mapping[str, Any]] = []
    for each in entries:
        is_chain = isinstance(each, dict) and "model" not in each
        made.append(cast("Mapping[str, Any]", each) if is_chain else {_ANY: [each]})
    return made


def _targets(chains: Iterable[Mapping[str, Any]], group: str) -> list[str]:
    """The model groups to which a group falls back."""
    out: list[str] = []
    for chain in chains:
        for source, targets in chain.items():
            if source in (group, _ANY) and isinstance(targets, (list, tuple)):
                for target in cast("Sequence[Any]", targets):
                    name: object = target.get("model") if isinstance(target, Mapping) else target  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
                    if isinstance(name, str):
                        out.append(name)
    return out
