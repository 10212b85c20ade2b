"""Which models a run asks, and in which ways each of them is given its tools: the native forms come out of the data."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from .._adapter import dialects as spoken
from .._capability import capability
from .._policy import Policy

STRATEGIES = ("eager", "native", "resend", "frozen", "auto")


@dataclass(frozen=True, slots=True)
class Place:
    """A model on an endpoint. `base_url` None is the SDK's own."""

    model: str
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Way:
    """One thing to measure at a place. `policy` None is the SDK without us; `load_point` is the form it asks for."""

    place: Place
    policy: Policy | None
    load_point: str | None = None
    marked: bool = True


PLACES: dict[str, tuple[Place, ...]] = {
    "openai.chat": (
        Place("gpt-5.4"),
        Place("kimi-k3", "https://api.moonshot.ai/v1"),
        Place("moonshotai/Kimi-K3", "https://inference.baseten.co/v1"),
    ),
    "openai.responses": (Place("gpt-5.4"),),
    "anthropic.messages": (Place("claude-sonnet-5"), Place("claude-opus-5")),
}
"""By dialect the models of a run: the first is measured in every way, the others in the native forms it has not got."""

MODELS = {dialect: places[0].model for dialect, places in PLACES.items()}
"""The first model of each dialect."""


def forms(dialect: str, place: Place) -> tuple[str, ...]:
    """The load points that the model takes there and that we can write, best first."""
    written = next((item.renders for item in spoken() if item.name == dialect), frozenset[str]())
    found = capability(place.model, dialect, place.base_url).load_points
    return tuple(name for name in found if name in written)


def known_forms() -> tuple[str, ...]:
    """Every load point that some place of a run can be measured in."""
    found = (name for dialect, places in PLACES.items() for place in places for name in forms(dialect, place))
    return tuple(dict.fromkeys(found))


def hosted(dialect: str, place: Place, load_point: str) -> bool:
    """Whether the provider searches itself there: one HTTP request, several passes over the prompt."""
    point = capability(place.model, dialect, place.base_url).point(load_point)
    return point is not None and point.hosted


def ways(
    dialect: str,
    base: Policy,
    *,
    model: str | None = None,
    strategies: Collection[str] = (),
    only: Collection[str] = (),
) -> Iterator[Way]:
    """Every way to be measured in a dialect; `strategies` and `only` (load points) leave the others out.

    With `model` that one is measured instead of the places of `PLACES`.
    """
    places = PLACES[dialect] if model is None else (Place(model),)
    shown: set[str] = set()
    for at, place in enumerate(places):
        new = [name for name in forms(dialect, place) if name not in shown]
        for way in _ways(dialect, place, base, new, whole=at == 0):
            strategy = "eager" if way.policy is None else way.policy.strategy
            wanted = (not strategies or strategy in strategies) and (not only or way.load_point in only)
            if wanted:
                yield way
        shown.update(new)


def _ways(dialect: str, place: Place, base: Policy, named: Sequence[str], *, whole: bool) -> Iterator[Way]:
    if whole or named:
        yield Way(place, None)
    for name in named:
        search = "hosted" if hosted(dialect, place, name) else base.search
        yield Way(place, base.replace(strategy="native", load_point=name, search=search), name)
    if not whole:
        return
    yield Way(place, base.replace(strategy="resend"))
    yield Way(place, base.replace(strategy="frozen"))
    yield Way(place, base.replace(strategy="auto"))
    if dialect == "anthropic.messages":
        yield Way(place, base.replace(strategy="auto"), marked=False)
