"""Signatures and seals of thinking: opaque to a client, and proof for the service that it wrote the text."""

from __future__ import annotations

import base64
import hashlib

_SECRET = b"emulated-service"
_MARK = b"\x80\x00\x00\x00\x00"
"""Sealed texts start with it: the services' own start with its base64, too."""


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


def seal(text: str, nonce: str) -> str:
    """`text` as content that only `unseal` reads."""
    raw = nonce.encode()[:12].ljust(12, b"0")
    body = text.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_MARK + raw + _mac(text, raw) + body).decode()


def unseal(content: str) -> str | None:
    """The text in sealed `content`; None for content that was not sealed here, or was changed."""
    try:
        raw = base64.urlsafe_b64decode(content)
        text = raw[65:].decode("utf-8", "surrogatepass")
    except ValueError:
        return None
    return text if raw[:5] == _MARK and raw[17:65] == _mac(text, raw[5:17]) else None


def _mac(thinking: str, nonce: bytes) -> bytes:
    return hashlib.blake2b(nonce + thinking.encode("utf-8", "surrogatepass"), digest_size=48, key=_SECRET).digest()
