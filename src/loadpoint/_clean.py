"""`clean`: a history without any trace of ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from ._bridge import loaded_names, unwrapped
from ._bridge._names import CALL_NAME, LOAD_NAME
from ._dialect import CallView, Dialect
from ._json import Json, as_object
from ._loader import LOADER_NAME, parse_answer
from .errors import PolicyError

_LOADER = re.compile(rf"{LOADER_NAME}\d*|{LOAD_NAME}\d*")


def clean(messages: Sequence[Any]) -> list[Any]:
    """The messages without loader calls, their results, and shown search items of ours; the input is not touched.

    Calls through a bridge, which an application has answered itself, become calls of the tools behind it.

    Takes messages of any dialect, as dicts or as the SDKs' objects, and gives back dicts. What is not ours stays, in
    its order; a message of which nothing is left goes. A tool of the caller that happens to have the loader's name is
    told apart by its results. Raises `PolicyError` for what is no list of messages.
    """
    from ._adapter import dialects

    given: object = messages
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise PolicyError(f"clean: {type(given).__name__} is no history; allowed: a list of messages")
    out = [plain(message) for message in messages]
    for dialect in dialects():
        bridged = _bridges(dialect, out)
        out = [kept for turn in _turns(dialect, out) for kept in _cleaned(dialect, turn)]
        if bridged:
            reached = partial(_reached, bridges=bridged)
            out = [dialect.with_calls(message, reached) for message in out]
    return out


def _bridges(dialect: Dialect, messages: Sequence[Json]) -> set[str]:
    """The names of bridges through which calls went: those beside which something was loaded."""
    views = [dialect.view(message) for message in messages]
    loads = {call.id: call.name for view in views for call in view.calls if call.name.startswith(LOAD_NAME)}
    loaded = {
        loads[result.call_id]
        for view in views
        for result in view.results
        if result.call_id in loads and loaded_names(result.text) is not None
    }
    return {f"{CALL_NAME}{name.removeprefix(LOAD_NAME)}" for name in loaded}


def _reached(call: CallView, bridges: set[str]) -> CallView:
    """The call of the tool that a call through a bridge names; any other call is what it is."""
    if call.name not in bridges:
        return call
    found = unwrapped(call.arguments)
    if found is None:
        return call
    space, dot, _ = found[0].partition(".")  # without the tools at hand, what a dot mostly means
    return CallView(call.id, *found, space if dot else "")


def _turns(dialect: Dialect, messages: Sequence[Json]) -> Iterator[list[Json]]:
    """Assistant messages and what follows them up to the next ones: ids such as `call_0` repeat across turns."""
    turn: list[Json] = []
    speaking = False
    for message in messages:
        before, speaking = speaking, dialect.view(message).role == "assistant"
        if turn and speaking and not before:
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _cleaned(dialect: Dialect, turn: Sequence[Json]) -> list[Json]:
    return dialect.without_ours(turn, set(_loader_calls(dialect, turn)))


def _loader_calls(dialect: Dialect, turn: Sequence[Json]) -> Iterator[str]:
    views = [dialect.view(message) for message in turn]
    results = {result.call_id: result for view in views for result in view.results}
    for call in (call for view in views for call in view.calls):
        result = results.get(call.id)
        told = result is not None and (parse_answer(result.text) or loaded_names(result.text)) is not None
        ours = result is None or bool(result.names) or result.failed or told
        if call.name in _nameless(dialect) or (ours and _LOADER.fullmatch(call.name)):
            yield call.id


def _nameless(dialect: Dialect) -> set[str | None]:
    """What this dialect calls its loaders that have no name on the wire."""
    forms = [dialect.at(point) for point in dialect.renders]
    return {form.tool_name(form.loader(LOADER_NAME, "", {})) for form in forms} - {LOADER_NAME, None}


def plain(value: Any) -> Any:
    """A JSON value for a JSON value or an SDK's object: pydantic models are dumped without what was never set."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", exclude_unset=True, by_alias=True)
    wire = as_object(value)
    if wire is not None:
        return {key: plain(item) for key, item in wire.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in cast("Sequence[Any]", value)]
    return value
