"""The end of calls that fail again and again in the same way."""

from __future__ import annotations

from dataclasses import dataclass

from .._json import Json, canonical, digest, parse_object

_LAST = (
    "This same call has now failed twice and will fail again. Do not send it a third time: "
    "change what the lines above name, or answer the user without this tool."
)


@dataclass(frozen=True, slots=True)
class Failure:
    """The text that answers a failing call, and whether it is the last one that such a call gets."""

    text: str
    final: bool


def failure_key(raw: str | Json) -> str:
    """Equal for bridge calls that mean the same: key order and white space do not count."""
    value = (parse_object(raw) or raw) if isinstance(raw, str) else raw
    return digest(canonical(value))


def repeated(text: str, failures: int) -> Failure:
    """What answers a call that is refused with `text` after `failures` earlier refusals of the same call.

    The first gets the text, the second the text and a final instruction, every further one the instruction alone.
    """
    if failures < 1:
        return Failure(text, final=False)
    return Failure(f"{text}\n\n{_LAST}" if failures == 1 else _LAST, final=True)
