"""An API that keeps nothing, caches without markers and binds no thinking; each dialect says what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from loadpoint._json import Json, as_object


class Defaults:
    """The base of the dialects. `operations` are the ends of paths, and what a POST there is."""

    operations: ClassVar[Mapping[str, str]] = {}

    def operation(self, method: str, path: str, body: Json) -> str | None:
        if method.upper() != "POST":
            return None
        return next((kind for end, kind in self.operations.items() if path.partition("?")[0].endswith(end)), None)

    settings: ClassVar[Mapping[str, object]] = {}
    """The fields of a request that stand in the prompt beside tools, system prompt and messages, with what each is when
    it is not given; None where that has no name.
    """

    def rendered(self, body: Json) -> Json:
        given = {name: _without_nulls(body.get(name)) for name in self.settings}
        return {name: value for name, value in given.items() if value not in (None, {}, self.settings[name])}

    def stored(self, method: str, path: str) -> str | None:
        return None

    def referred(self, body: Json) -> Sequence[str]:
        return ()

    def resolved(self, body: Json, kept: Sequence[Json]) -> Json:
        return body

    def last_item(self, reply: Json) -> str | None:
        return None

    def streaming(self, body: Json) -> bool:
        return body.get("stream") is True

    def prepared(self, body: Json, *, usage: bool) -> Json:
        return body

    def thought(self, messages: Sequence[Json]) -> bool:
        return False

    def tolerant(self, body: Json) -> tuple[Json, tuple[str, ...]]:
        return body, ()

    def is_marked(self, body: Json) -> bool:
        return True

    def with_markers(self, body: Json) -> Json:
        return body

    def carried(self, visible: Sequence[Json], turn: Sequence[Json]) -> tuple[Json, ...]:
        return tuple(turn)

    def turned_back(self, body: Json) -> Json:
        return body


def _without_nulls(value: object) -> object:
    found = as_object(value)
    return value if found is None else {key: inner for key, inner in found.items() if inner is not None}
