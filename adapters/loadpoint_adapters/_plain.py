"""Request bodies as plain JSON, copied: what is sent and remembered must not change when the caller's objects do."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from loadpoint._json import Json

_ATOMS = frozenset({str, int, float, bool, type(None)})


def plain(value: object, absent: tuple[type[Any], ...]) -> Json | None:
    """A copy of a body as plain JSON without entries that are instances of `absent`; None if it is no JSON object.

    Models and dates become what the SDKs make of them. Anything else, iterators included, is left to the SDK's own
    encoder, which knows it or raises: then the whole body is None, nothing has been consumed, and the call passes.
    """
    if not isinstance(value, Mapping):
        return None
    try:
        return _mapping(value, absent)  # pyright: ignore[reportUnknownArgumentType]
    except (TypeError, RecursionError):
        return None


def _mapping(value: Mapping[Any, Any], absent: tuple[type[Any], ...]) -> Json:
    made: Json = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise TypeError(key)
        if type(item) in _ATOMS:
            made[key] = item
        elif not isinstance(item, absent):
            made[key] = _any(item, absent)
    return made


def _items(value: list[Any] | tuple[Any, ...], absent: tuple[type[Any], ...]) -> list[Any]:
    return [item if type(item) in _ATOMS else _any(item, absent) for item in value]


def _any(value: object, absent: tuple[type[Any], ...]) -> Any:
    if type(value) in _ATOMS:
        return value
    if isinstance(value, (list, tuple)):
        return _items(value, absent)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Mapping):
        return _mapping(value, absent)  # pyright: ignore[reportUnknownArgumentType]
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json", by_alias=True, exclude_unset=True)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, str):  # such as a string enum: the encoder writes the plain value
        return str.__str__(value)
    if isinstance(value, (int, float)):
        return int(value) if isinstance(value, int) else float(value)
    raise TypeError(type(value))
