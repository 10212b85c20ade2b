"""Signatures of thinking blocks: opaque to a client, and proof for the service that it wrote the block."""

from __future__ import annotations

import base64
import hashlib

_SECRET = b"emulated-service"


def sign(thinking: str, nonce: str) -> str:
    """A signature of `thinking`; `nonce` makes signatures of equal texts differ."""
    raw = nonce.encode()[:12].ljust(12, b"0")
    return base64.b64encode(b"\x12" + raw + _mac(thinking, raw)).decode()


def valid(thinking: str, signature: str) -> bool:
    """Whether `signature` was made for exactly this text."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except ValueError:
        return False
    return raw[:1] == b"\x12" and raw[13:] == _mac(thinking, raw[1:13])


def _mac(thinking: str, nonce: bytes) -> bytes:
    return hashlib.blake2b(nonce + thinking.encode("utf-8", "surrogatepass"), digest_size=48, key=_SECRET).digest()
