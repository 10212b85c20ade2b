"""Plain copies of messages and tools, found again as long as their originals have not changed.

The SDK walks over every value of a body in Python to copy it, which in a long conversation takes longer than all else
that it does. A conversation repeats all but its end, so a copy is made once and compared from then on: comparing runs in
C and mostly meets the very same strings. It finds `1` and `true` equal, so a change from one to the other in place, in
the same dict, would go unseen.
"""

from __future__ import annotations

from typing import Any, cast

from loadpoint._json import Json

_LISTS = ("messages", "tools")
_MOST = 8192


class Plain(dict[str, Any]):
    """A body that is plain JSON already, and need not be copied once more."""


class Copies:
    """The copies of one adapter. Safe to use from any thread: every operation on the table is a single step."""

    def __init__(self) -> None:
        self._kept: dict[int, Json] = {}

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
        copy = self._kept.get(id(cast(Json, item)))
        return copy if copy is not None and copy == item else None

    def _keep(self, item: Json, plain: Json) -> None:
        if len(self._kept) >= _MOST:
            self._kept.clear()
        self._kept[id(item)] = plain
