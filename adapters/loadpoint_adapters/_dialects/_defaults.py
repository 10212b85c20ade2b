"""An API that keeps nothing, caches without markers and binds no thinking; each dialect says what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from loadpoint._json import Json


class Defaults:
    """The base of the dialects. `operations` are the ends of paths, and what a POST there is."""

    operations: ClassVar[Mapping[str, str]] = {}

    def operation(self, method: str, path: str, body: Json) -> str | None:
        if method.upper() != "POST":
            return None
        return next((kind for end, kind in self.operations.items() if path.partition("?")[0].endswith(end)), None)

    settings: ClassVar[tuple[str, ...]] = ()
    """The fields of a request that stand in the prompt beside tools, system prompt and messages."""

    def rendered(self, body: Json) -> Json:
        return {name: body[name] for name in self.settings if body.get(name) is not None}

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
