"""Token counts: o200k where its encoding is already on this machine, else a quarter of the length.

The counts only have to be consistent within the emulator. The encoding is never downloaded: the file is looked for,
and its digest compared with the one that tiktoken expects, before tiktoken is asked for it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

_CHARACTERS_PER_TOKEN = 4
_FILE = "fb374d419588a4632f3f557e76b4b70aebbca790"
"""How tiktoken names the cached o200k_base file: the SHA-1 of its address."""
_DIGEST = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
_lock = threading.Lock()
_encode: list[Callable[[str], int] | None] = []


@lru_cache(maxsize=65_536)
def tokens(text: str) -> int:
    """How many tokens `text` is: 0 for the empty text, else at least 1."""
    if not text:
        return 0
    encode = _encoder()
    return encode(text) if encode is not None else max(1, -(-len(text) // _CHARACTERS_PER_TOKEN))


def exact() -> bool:
    """Whether counts come from an encoding rather than from lengths."""
    return _encoder() is not None


def _encoder() -> Callable[[str], int] | None:
    if not _encode:
        with _lock:
            if not _encode:
                _encode.append(_load())
    return _encode[0]


def _load() -> Callable[[str], int] | None:
    folder = _folder()
    if folder is None:
        return None
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        import tiktoken

        encoding = tiktoken.get_encoding("o200k_base")
    except (ImportError, OSError, ValueError):
        return None
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before

    def encode(text: str) -> int:
        return len(encoding.encode_ordinary(text))

    return encode


def _folder() -> Path | None:
    from importlib.util import find_spec

    if find_spec("tiktoken") is None:
        return None
    places = [Path(value) for value in (os.environ.get("TIKTOKEN_CACHE_DIR"),) if value]
    shipped = find_spec("litellm")
    if shipped is not None and shipped.origin:
        places.append(Path(shipped.origin).parent / "litellm_core_utils" / "tokenizers")
    for place in places:
        file = place / _FILE
        if file.is_file() and hashlib.sha256(file.read_bytes()).hexdigest() == _DIGEST:
            return place
    return None
