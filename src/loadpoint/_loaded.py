"""What is loaded: a pure function of the transcript that is sent and the registry (requirements N21-N36).

Only results are evidence, and only successful ones: a loader's answer, a provider's search result, or the result of the
deferred tool itself. Nothing that a user, a model or a tool merely says is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from ._bridge import loaded_names
from ._dialect import View
from ._loader import parse_answer


@dataclass(frozen=True, slots=True)
class Evidence:
    """One proof: the tool's name, the index of the assistant turn it belongs to, `why` (search, call, forced).

    `placed` says that the wire form itself is a load point, so that the provider expands the schema there.
    """

    name: str
    turn: int
    why: str
    placed: bool = False


def evidence(
    views: Iterable[View], *, is_deferred: Callable[[str], bool], loaders: Collection[str], first_turn: int = 0
) -> list[Evidence]:
    """The proofs in `views`, one per tool, in order of first appearance; `placed` if any proof of the tool is.

    `is_deferred` says which names are in the current deferred set: no others are restored (N25).
    """
    found: dict[str, Evidence] = {}
    names: dict[str, str] = {}
    turn = first_turn
    previous = ""
    for view in views:
        turn += view.role == "assistant" and previous != "assistant"
        previous = view.role
        found = {} if view.forgets else found
        if not view.calls and not view.results:
            continue
        names.update((call.id, call.name) for call in view.calls)
        for result in view.results:
            _take_back(found, result.removed)
            if result.failed:
                continue
            name = names.get(result.call_id, "")
            proofs: tuple[str, ...] = ()
            why, placed = "search", False
            if result.names:
                proofs, placed = result.names, True
            elif name in loaders:
                proofs = parse_answer(result.text) or loaded_names(result.text) or ()
            elif is_deferred(name):
                proofs, why = (name,), "call"
            for proof in proofs:
                known = found.get(proof)
                if is_deferred(proof) and (known is None or (placed and not known.placed)):
                    base = known or Evidence(proof, turn, why)
                    found[proof] = Evidence(proof, base.turn, base.why, placed)
    return list(found.values())


def _take_back(found: dict[str, Evidence], names: Iterable[str]) -> None:
    for name in names:
        found.pop(name, None)


def told(views: Iterable[View], loader: str) -> set[str]:
    """The tools whose usage stands as text in a load's answer: that a tool is loaded does not say how it is used."""
    found: set[str] = set()
    names: dict[str, str] = {}
    for view in views:
        found = set() if view.forgets else found
        names.update((call.id, call.name) for call in view.calls)
        for result in view.results:
            if not result.failed and names.get(result.call_id) == loader:
                found |= {*(loaded_names(result.text) or ())}
    return found


def not_taken_back(views: Sequence[View]) -> list[View]:
    """The views as if nothing had been removed: what was sent before a removal stays where it was sent."""
    return [
        replace(view, results=tuple(replace(result, removed=()) for result in view.results))
        if any(result.removed for result in view.results)
        else view
        for view in views
    ]
