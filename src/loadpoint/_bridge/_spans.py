"""Where the parts of a JSON object stand in its own text, so that a model's bytes can be handed on as they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

_BLANK = " \t\n\r"


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its key and value, and both as they are written."""

    key: str
    value: object
    key_text: str
    text: str


def _constant(name: str) -> NoReturn:
    raise ValueError(name)


def _integer(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:  # Python reads 4,300 digits; JSON knows no limit, and the text is handed on as it stands
        return float(text)


# NaN and the infinities are no JSON, though Python's parser takes them: a provider would refuse the history.
_DECODER = json.JSONDecoder(parse_constant=_constant, parse_int=_integer)


def parsed(text: str) -> object:
    """The value that `text` holds. Raises ValueError or RecursionError for what is no JSON or nested too deeply."""
    value: object = _DECODER.decode(text)
    return value


def members(text: str) -> list[Member]:
    """The members of the object that `text` is, in order, repeated keys too.

    The parser itself says where each string and value ends, so every escape is read exactly as `json.loads` reads it.
    Raises ValueError for text that is no JSON object, RecursionError for one that is nested too deeply.
    """
    found: list[Member] = []
    at = _skip(text, _expect(text, _skip(text, 0), "{"))
    if text[at : at + 1] == "}":
        return _ended(text, at + 1, found)
    while True:
        start = _skip(text, at)
        if text[start : start + 1] != '"':
            raise ValueError(f"expected a key at {start}")
        key, end = _DECODER.raw_decode(text, start)
        place = _skip(text, _expect(text, _skip(text, end), ":"))
        value, stop = _DECODER.raw_decode(text, place)
        found.append(Member(key, value, text[start:end], text[place:stop]))
        at = _skip(text, stop)
        if text[at : at + 1] == "}":
            return _ended(text, at + 1, found)
        at = _expect(text, at, ",")


def joined(parts: Sequence[Member]) -> str:
    """The text of an object with these members, each as it was written."""
    return "{" + ",".join(f"{part.key_text}:{part.text}" for part in parts) + "}"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _expect(text: str, at: int, mark: str) -> int:
    if text[at : at + 1] != mark:
        raise ValueError(f"expected {mark!r} at {at}")
    return at + 1


def _ended(text: str, at: int, found: list[Member]) -> list[Member]:
    if _skip(text, at) != len(text):
        raise ValueError(f"text behind the object at {at}")
    return found
