"""Where the replay of a conversation stood when its last request was read: the next one only reads what is new."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from ._json import Json

if TYPE_CHECKING:
    from ._replay import Transcript

FROM_RECORDS = "?"
Key: TypeAlias = "tuple[str, str, str]"
"""The scope with the system prompt, the loader's name, and the load point that is written ("" for none, or
`FROM_RECORDS`): all that a replay depends on but its messages."""

_CONVERSATIONS = 64
_TOKENS = 4_000_000
"""Messages are shared with the ledger; this bounds what is held of long ones alone (tokens, estimate)."""


class Checkpoints:
    """The last few conversations, found by comparing messages: a pointer comparison for each that has not changed.

    Comparing finds `1` and `true` equal, which in messages tells no two conversations apart.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[Key, Sequence[Json], dict[str, str], Transcript]] = OrderedDict()
        self._next = 0
        self._tokens = 0
        self._lock = threading.Lock()

    def find(self, key: Key, messages: Sequence[Json]) -> tuple[int, dict[str, str], Transcript] | None:
        """How many messages the longest known beginning has, with copies of what the replay knew at its end."""
        best: tuple[Key, Sequence[Json], dict[str, str], Transcript] | None = None
        with self._lock:
            kept = list(self._kept.items())
        for number, entry in reversed(kept):
            known = entry[1]
            longer = len(known) > (len(best[1]) if best else 0)
            if entry[0] == key and longer and len(known) <= len(messages) and messages[: len(known)] == known:
                best = entry
                self._touch(number)
        return (len(best[1]), dict(best[2]), best[3].copied()) if best else None

    def keep(self, key: Key, messages: Sequence[Json], names: dict[str, str], transcript: Transcript) -> None:
        """Remember the end of a replay; an earlier one of the same conversation makes room for it."""
        entry = (key, list(messages), dict(names), transcript.copied())
        with self._lock:
            for number, (other, known, _, old) in list(self._kept.items()):
                if other == key and len(known) <= len(messages) and messages[: len(known)] == known:
                    self._drop(number, old)
            self._kept[self._next] = entry
            self._next += 1
            self._tokens += transcript.tokens
            while len(self._kept) > _CONVERSATIONS or (self._tokens > _TOKENS and len(self._kept) > 1):
                number = next(iter(self._kept))
                self._drop(number, self._kept[number][3])

    def forget(self, messages: Sequence[Json]) -> None:
        """Drop what goes on behind these messages: a turn that follows them has just been remembered anew."""
        with self._lock:
            for number, (_, known, _, old) in list(self._kept.items()):
                if len(known) > len(messages) and known[: len(messages)] == messages:
                    self._drop(number, old)

    def _touch(self, number: int) -> None:
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)

    def _drop(self, number: int, transcript: Transcript) -> None:
        del self._kept[number]
        self._tokens -= transcript.tokens
