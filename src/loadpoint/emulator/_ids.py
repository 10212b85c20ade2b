"""Ids as the services make them: long and random-looking, yet the same in every run."""

from __future__ import annotations

import hashlib

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


class Ids:
    """The ids of one reply, drawn from a digest of `seed`; equal seeds give equal ids in equal order."""

    def __init__(self, *seed: str | bytes | int) -> None:
        state = hashlib.blake2b(digest_size=32)
        for part in seed:
            raw = part if isinstance(part, bytes) else str(part).encode()
            state.update(len(raw).to_bytes(8, "big") + raw)
        self._state = state.digest()
        self._drawn = 0

    def text(self, length: int) -> str:
        """`length` characters of letters and digits."""
        self._drawn += 1
        raw = hashlib.blake2b(self._state + self._drawn.to_bytes(8, "big"), digest_size=64).digest()
        return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in raw[:length])

    def make(self, prefix: str, length: int, start: str = "") -> str:
        """`prefix` and then `length` characters, the first of which are `start`."""
        return prefix + start + self.text(length - len(start))
