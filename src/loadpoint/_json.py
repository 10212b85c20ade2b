"""Compact JSON text, canonical digests and lengths: what "the same bytes" means everywhere in loadpoint."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any, TypeAlias, TypeVar, cast

_T = TypeVar("_T")

Json: TypeAlias = dict[str, Any]
"""A JSON object as `json.loads` makes it. Treated as immutable once it has been read: changes are copies."""

_SURROGATE = re.compile("[\ud800-\udfff]")

# Made once: `json.dumps` with arguments makes an encoder for every call, which takes longer than a small message.
_compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_strict = json.JSONEncoder(allow_nan=False).encode
_sorted = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode


def dumps(value: object) -> str:
    """The compact JSON text of `value`, in its own key order, non-ASCII kept."""
    return _compact(value)


def canonical(value: object) -> str:
    """The compact JSON text of `value` with sorted keys: equal for values that differ only in key order."""
    return _sorted(value)


def digest(*parts: str) -> str:
    """A 128-bit hex digest of `parts`; ("ab", "c") and ("a", "bc") differ."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def well_formed(value: _T) -> _T:
    """`value` with U+FFFD for lone surrogates, which no UTF-8 can carry; the same object where there are none.

    Models escape half a pair, and texts are cut between the halves: sent on, it would make every later request fail.
    Two halves that stand together are the character that they stand for.
    """
    text = dumps(value)
    if text.isascii() or not _SURROGATE.search(text):
        return value
    whole: _T = json.loads(text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    return whole


def as_object(value: object) -> Json | None:
    """`value` if it is a JSON object, else None."""
    return cast(Json, value) if isinstance(value, dict) else None


def as_list(value: object) -> list[Any]:
    """`value` if it is a JSON array, else an empty list."""
    return _list(value) if isinstance(value, list) else []


def _list(value: Any) -> list[Any]:
    items: list[Any] = value
    return items


def objects(value: object) -> list[Json]:
    """The objects in `value` if it is a JSON array, else an empty list."""
    return [cast(Json, item) for item in as_list(value) if isinstance(item, dict)]


def parse_object(text: str) -> Json | None:
    """The JSON object that `text` holds, or None: for text written by a model or a tool, which may be anything."""
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError):
        return None


def writable(value: object) -> bool:
    """Whether `value` can be written as JSON: not with NaN or an infinity in it, which SDKs refuse to send."""
    try:
        _strict(value)
    except (ValueError, RecursionError):
        return False
    return True
