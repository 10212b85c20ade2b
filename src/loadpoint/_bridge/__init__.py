"""The bridge of the frozen strategy: `load_tools` and `call_tool`, as pure functions over text and JSON."""

from __future__ import annotations

from ._call import Refused, Target, read_call, unwrapped, wrapped
from ._load import LoadAnswer, LoadRequest, answer_load, loaded_names, parse_load
from ._names import Bridge, bridge
from ._repeat import Failure, failure_key, repeated
from ._tools import call_description, call_schema, load_description, load_schema

__all__ = [
    "Bridge",
    "Failure",
    "LoadAnswer",
    "LoadRequest",
    "Refused",
    "Target",
    "answer_load",
    "bridge",
    "call_description",
    "call_schema",
    "failure_key",
    "load_description",
    "load_schema",
    "loaded_names",
    "parse_load",
    "read_call",
    "repeated",
    "unwrapped",
    "wrapped",
]
