"""How a schema is told: whole, a line for every parameter, and at little more than its compact text."""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint import bench
from loadpoint._bridge._texts import schema_text

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=30,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_nothing_of_a_schema_is_lost(schema: dict[str, Any]):
    for pretty in (False, True):
        text = schema_text(schema, pretty=pretty)
        assert json.loads(text) == schema
        assert not any(line.startswith("#") for line in text.splitlines())


@pytest.mark.requirement("P17")
def test_every_parameter_has_its_line_and_nothing_smaller_has():
    kind = {"type": "string", "enum": ["test", "live"], "description": "Where to"}
    rules = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}
    text = schema_text(
        {"type": "object", "properties": {"stage": kind, "rules": rules}, "required": ["stage"]}, pretty=True
    )
    assert text.splitlines() == [
        "{",
        ' "type": "object",',
        ' "properties": {',
        '  "stage": {"type":"string","enum":["test","live"],"description":"Where to"},',
        '  "rules": {',
        '   "type": "array",',
        '   "items": {',
        '    "anyOf": [',
        '     {"type":"integer"},',
        '     {"type":"null"}',
        "    ]",
        "   }",
        "  }",
        " },",
        ' "required": ["stage"]',
        "}",
    ]


def test_a_mapping_that_is_no_dict_is_told_too():
    schema = MappingProxyType({"properties": MappingProxyType({"a": MappingProxyType({"type": "string"})})})
    assert json.loads(schema_text(schema, pretty=True)) == {"properties": {"a": {"type": "string"}}}


def test_what_cannot_be_told_is_left_open():
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"items": deep}
    assert schema_text(deep, pretty=True) == "{}"
    assert schema_text({"a": {"b": object()}}, pretty=True) == "{}"


def test_of_real_schemas_nothing_is_lost_and_little_is_paid(data: Path):
    tools = bench.from_files(sorted((data / "catalogs").glob("*.json"))).tools
    assert len(tools) > 3_000
    compact = told = 0
    count = bench.Counter()
    for tool in tools:
        text = schema_text(tool.parameters, pretty=True)
        assert json.loads(text) == tool.parameters
        compact += count(schema_text(tool.parameters))
        told += count(text)
    assert told < 1.25 * compact
