"""Records as text, for ledgers that outlive the process: the state, which records share, and the rest."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .._json import digest, dumps
from ._record import Record, State

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def written(record: Record) -> tuple[str, str]:
    """The JSON texts of a record: what is its own, and its state."""
    own = {each.name: getattr(record, each.name) for each in fields(Record) if each.name != "state"}
    state = {each.name: getattr(record.state, each.name) for each in fields(State)}
    return _text(own), _text(state)


def state_name(text: str) -> str:
    """The name under which the text of a state is stored once: a digest of it."""
    return digest(text)


def read(own: str, state: str | State) -> Record:
    """The record of two texts, or of one and a state that was read before.

    Raises `pydantic.ValidationError` or `json.JSONDecodeError`, both a `ValueError`, for texts that are none.
    """
    body: Any = json.loads(own)
    given: Any = json.loads(state) if isinstance(state, str) else state
    return _record().validate_python({**body, "state": given})


def _text(value: object) -> str:
    """JSON text that every store takes: half a surrogate pair, which models do write, stands in it escaped."""
    text = dumps(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text


_adapter: TypeAdapter[Record] | None = None


def _record() -> TypeAdapter[Record]:
    global _adapter  # noqa: PLW0603 - pydantic costs more to import than the whole library: only where one is read
    if _adapter is None:
        from pydantic import TypeAdapter

        _adapter = TypeAdapter(Record)
    return _adapter
