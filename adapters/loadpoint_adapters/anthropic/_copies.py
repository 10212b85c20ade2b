"""Plain copies of messages and tools, found again as long as their originals have not changed.

The SDK walks over every value of a body in Python to copy it, which in a long conversation takes longer than all else
that it does. A conversation repeats all but its end, so a copy is made once and compared from then on: comparing runs
in C and mostly meets the very same strings. It finds `1` and `true` equal, so a change from one to the other in place,
in the same dict, would go unseen. The originals are kept beside their copies: no other dict can have their address.
"""

from __future__ import annotations

from typing import Any, cast

from loadpoint._json import Json

_LISTS = ("messages", "tools")
_MOST = 2**22
"""How much is kept at once: characters of text, and eight for every other value."""
_LONG = 2**16
"""Longer messages are not kept: they are images, files and long texts, of few values, which are quick to copy."""


class Plain(dict[str, Any]):
    """A body that is plain JSON already, and need not be copied once more."""


class Copies:
    """The copies of one adapter. Safe to use from any thread: every operation on the table is a single step."""

    def __init__(self) -> None:
        self._kept: dict[int, tuple[Json, Json]] = {}
        self._held = 0

    def split(self, options: Any) -> tuple[Any, dict[str, tuple[list[Any], list[Json | None]]]]:
        """Options whose body holds only what has to be copied, and what is known of the rest."""
        data: Any = options.json_data
        if type(data) is not dict or options.extra_json:
            return options, {}
        known: dict[str, tuple[list[Any], list[Json | None]]] = {}
        small: Json = dict(cast(Json, data))
        for key in _LISTS:
            given: list[Any] = small[key] if type(small.get(key)) is list else []
            if given:
                found = [self._found(item) for item in given]
                known[key] = (given, found)
                small[key] = [item for item, copy in zip(given, found, strict=True) if copy is None]
        if not known:
            return options, {}
        options = options.model_copy()
        options.json_data = small
        return options, known

    def join(self, options: Any, known: dict[str, tuple[list[Any], list[Json | None]]]) -> None:
        """Put the known copies back into the body that the SDK has copied, and remember the new ones."""
        for key, (given, found) in known.items():
            made = iter(cast("list[Any]", options.json_data[key]))
            whole = [next(made) if copy is None else copy for copy in found]
            options.json_data[key] = whole
            for item, copy, plain in zip(given, found, whole, strict=True):
                if copy is None and type(item) is dict and item == plain:
                    self._keep(cast(Json, item), plain)

    def _found(self, item: Any) -> Json | None:
        if type(item) is not dict:
            return None
        original, copy = self._kept.get(id(cast(Json, item)), _NOTHING)
        return copy if original is item and copy == item else None

    def _keep(self, item: Json, plain: Json) -> None:
        size = _size(plain)
        if size > _LONG:
            return
        if self._held + size > _MOST:
            self._kept.clear()
            self._held = 0
        self._kept[id(item)] = (item, plain)
        self._held += size


_NOTHING: tuple[Json | None, Json | None] = (None, None)


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return 8 + sum(_size(key) + _size(item) for key, item in cast("dict[object, object]", value).items())
    return 8 + sum(map(_size, cast("list[object]", value))) if isinstance(value, list) else 8
