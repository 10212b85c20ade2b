"""Canned work: arguments made from a schema, and tool results that are the same in every run."""

from __future__ import annotations

import random
from typing import Any

from .._json import Json, as_list, as_object, dumps
from .._tokens import BYTES_PER_TOKEN


def arguments_for(schema: Json) -> Json:
    """Arguments that a tool's parameter schema accepts: every required property, examples before inventions.

    Good enough for ordinary schemas; references and patterns are not followed.
    """
    properties = as_object(schema.get("properties")) or {}
    names = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
    return {name: _value(name, as_object(properties.get(name)) or {}) for name in names}


def _value(name: str, schema: Json) -> Any:
    """One acceptable value: the schema's own (const, default, enum, examples), else one of its type."""
    for key in ("const", "default"):
        if schema.get(key) is not None:
            return schema[key]
    given = next((schema[key][0] for key in ("enum", "examples") if as_list(schema.get(key))), None)
    if given is not None:
        return given
    for key in ("anyOf", "oneOf", "allOf"):
        options = [inner for inner in map(as_object, as_list(schema.get(key))) if inner and inner.get("type") != "null"]
        if options:
            return _value(name, options[0])
    return _of_type(name, schema)


def _of_type(name: str, schema: Json) -> Any:
    listed = schema.get("type")
    kind = next((item for item in as_list(listed) if item != "null"), listed)
    if kind == "array":
        items = as_object(schema.get("items")) or {}
        return [_value(name, items)] * max(int(schema.get("minItems", 1)), 1)
    if kind == "object":
        return arguments_for(schema)
    if kind in {"integer", "number"}:
        return schema.get("minimum", 1)
    return {"boolean": True, "null": None}.get(str(kind), _string(name, schema))


def _string(name: str, schema: Json) -> str:
    samples = {
        "date": "2026-11-30",
        "date-time": "2026-11-30T09:00:00Z",
        "email": "ada@example.com",
        "uri": "https://example.com/",
    }
    text = samples.get(str(schema.get("format")), f"example-{name}".lower())
    return text.ljust(int(schema.get("minLength", 0)), "x")[: int(schema.get("maxLength", 1_000))]


_WORDS = (
    "account amount archive basket branch budget cache camera canvas carrier channel client cluster column "
    "contract counter courier credit cursor deposit device digest domain engine export factor family filter "
    "folder forest garden gateway harbour header invoice island journal kernel label ladder ledger letter marker "
    "market matrix meadow member merchant meter mirror module mountain needle notice number office orchard order "
    "packet parcel partner pattern pepper pilot planet pocket policy portal product profile quarter query queue "
    "record region report request review river route sample season sensor server session signal silver source "
    "station stock stream supplier system table tariff ticket timber token tracker traffic tunnel update valley "
    "vendor version vessel village voucher window"
).split()


def result_text(seed: str, tokens: int) -> str:
    """A tool result of about `tokens` tokens: JSON records as business APIs return them, the same for the same seed.

    Under 40 tokens it is one short object.
    """
    source = random.Random(seed)  # noqa: S311 - reproducible, not secret
    if tokens < 40:
        return dumps({"ok": True, "id": f"{source.randrange(16**8):08x}"})
    rows: list[Json] = []
    size = 0
    while size < tokens * BYTES_PER_TOKEN * 0.8:  # records have fewer bytes a token than schemas
        row = {
            "id": f"{source.randrange(16**8):08x}",
            "name": " ".join(source.choice(_WORDS) for _ in range(3)),
            "state": source.choice(["open", "done", "waiting", "failed"]),
            "value": source.randrange(1, 1_000_000) / 100,
            "changed": f"2026-{source.randrange(1, 13):02d}-{source.randrange(1, 29):02d}",
            "note": " ".join(source.choice(_WORDS) for _ in range(source.randrange(6, 18))),
        }
        rows.append(row)
        size += len(dumps(row))
    return dumps({"count": len(rows), "rows": rows})
