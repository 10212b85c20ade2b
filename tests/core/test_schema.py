"""Arguments against schemas as servers write them: field paths, broken parts, bounded time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint._schema import Problem, problems_text, validate


def texts(schema: Any, arguments: Any) -> list[str]:
    return [problem.message for problem in validate(schema, arguments)]


def properties(**schemas: Any) -> dict[str, Any]:
    return {"type": "object", "properties": schemas}


@pytest.mark.requirement("P28", "P29")
@pytest.mark.report("BR-201")
@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        (
            properties(role={"enum": ["admin", "member"]}),
            {"role": "foo"},
            'role: expected one of [admin, member], got "foo"',
        ),
        (properties(n={"type": "integer"}), {"n": "3"}, 'n: expected integer, got "3"'),
        (properties(n={"type": ["integer", "null"]}), {"n": "3"}, 'n: expected integer or null, got "3"'),
        ({"required": ["q"]}, {}, "q: expected a value (required), got nothing"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"b": 1}, "b: expected no such field, got 1"),
        (properties(a={"pattern": "^x"}), {"a": "y"}, 'a: expected text matching ^x, got "y"'),
        (properties(a={"items": {"type": "string"}}), {"a": ["x", 1]}, "a[1]: expected string, got 1"),
        (properties(a=properties(b={"const": 1})), {"a": {"b": 2}}, "a.b: expected 1, got 2"),
        (properties(a={"minimum": 3}), {"a": 1}, "a: expected at least 3, got 1"),
        (properties(a={"maxLength": 2}), {"a": "abc"}, 'a: expected at most 2 characters, got "abc"'),
        (properties(a={"minItems": 1}), {"a": []}, "a: expected at least 1 items, got []"),
        (
            properties(a={"anyOf": [{"type": "string"}, {"type": "null"}]}),
            {"a": 3},
            "a: expected string or null, got 3",
        ),
        ({"type": "object"}, [1], "(arguments): expected object, got [1]"),
    ],
)
def test_a_problem_has_path_expectation_and_value(schema: Any, arguments: Any, expected: str):
    assert texts(schema, arguments) == [expected]


def test_the_form_that_comes_closest_is_explained():
    forms = [
        {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}, "required": ["kind", "n"], "type": "object"},
        {"type": "string"},
    ]
    assert texts(properties(v={"oneOf": forms}), {"v": {"kind": "a", "n": "x"}}) == ['v.n: expected integer, got "x"']


@pytest.mark.requirement("P33")
def test_further_fields_pass_unless_forbidden():
    assert texts(properties(a={"type": "string"}), {"a": "x", "b": 1}) == []


@pytest.mark.requirement("P31")
def test_required_and_properties_count_without_a_type():
    schema = {"properties": {"a": {"type": "integer"}}, "required": ["b"]}
    assert len(texts(schema, {"a": "x"})) == 2


@pytest.mark.requirement("P32")
def test_inherited_names_satisfy_nothing():
    assert len(texts({"required": ["__proto__", "toString", "__class__"]}, {})) == 3
    assert texts({"required": ["__proto__"]}, {"__proto__": 1}) == []


@pytest.mark.requirement("P30")
@pytest.mark.parametrize(
    "broken",
    [
        {"pattern": "(["},
        {"type": "objekt"},
        {"type": None},
        {"required": "b"},
        {"enum": "b"},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "other.json#/a"},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": 3},
        {"properties": ["b"]},
        {"minimum": "3"},
        {"exclusiveMinimum": True},
        {"anyOf": None},
        {"anyOf": [None, 3]},
        {"additionalProperties": "no"},
        {"patternProperties": {"([": {}}},
        {"items": 4},
        {"$id": "::not an id::"},
        {"required": True},
    ],
)
def test_a_broken_part_is_ignored_and_the_rest_holds(broken: dict[str, Any]):
    schema = properties(good={"type": "integer"}, bad=broken) | {"required": ["good"]}
    assert texts(schema, {"good": "x", "bad": "anything"}) == ['good: expected integer, got "x"']
    assert texts(schema, {"bad": "anything"}) == ["good: expected a value (required), got nothing"]
    at_the_root = broken | {"required": ["other"]} if "required" not in broken else {}
    assert validate(at_the_root, {"a": 1}) == [] or "other" in texts(at_the_root, {"a": 1})[0]


def test_an_unknown_dialect_of_schemas_is_read_as_the_newest():
    assert texts({"$schema": "https://example.com/nothing", "required": ["a"]}, {}) != []


def test_older_ways_to_write_a_tuple_hold():
    assert texts(properties(a={"items": [{"type": "integer"}, {"type": "string"}]}), {"a": ["x", "y"]}) != []


def test_references_within_the_schema_hold():
    schema = properties(a={"$ref": "#/$defs/n"}, b={"$ref": "#/definitions/x~1y"}) | {
        "$defs": {"n": {"type": "integer"}},
        "definitions": {"x/y": {"type": "string"}},
    }
    assert len(texts(schema, {"a": "x", "b": 1})) == 2
    half = schema | {"$defs": {"n": {"$ref": "#/nowhere"}}}
    assert len(texts(half, {"a": "x", "b": 1})) == 1


@pytest.mark.report("BR-201")
def test_nullable_is_honoured_where_it_is_a_keyword():
    schema = properties(a={"type": "string", "nullable": True, "enum": ["x"]}, nullable={"type": "integer"})
    assert texts(schema, {"a": None, "nullable": 1}) == []
    assert texts(schema, {"a": "y"}) != []
    assert texts(schema, {"nullable": "s"}) == ['nullable: expected integer, got "s"']


@pytest.mark.report("BR-141", "BR-144")
def test_recursive_schemas_are_followed():
    tree = properties(nodes={"type": "array", "items": {"$ref": "#"}}) | {"additionalProperties": False}
    assert texts(tree, {"nodes": [{"nodes": [{"x": 1}]}]}) == ["nodes[0].nodes[0].x: expected no such field, got 1"]
    pointer = properties(nodes={"items": {"properties": {"kids": {"$ref": "#/properties/nodes"}}}, "type": "array"})
    assert texts(pointer, {"nodes": [{"kids": 3}]}) == ["nodes[0].kids: expected array, got 3"]


LOOP = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a", "required": ["x"]}
HALVES: dict[str, Any] = {"anyOf": [properties(c={"$ref": "#/$defs/n"}) | {"required": ["c"]}] * 2}
LAUGHS = {f"a{i}": {"anyOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(60)} | {"a60": {"type": "integer"}}


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"leaf": 1}
    for _ in range(depth):
        value = {"c": value}
    return value


@pytest.mark.report("BR-234")
@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (properties(a={"pattern": "^(a+)+$"}), {"a": "a" * 5_000 + "!"}),
        (properties(a={"pattern": r"^(?=(a|aa)+$)(a|aa)*\1$"}), {"a": "a" * 5_000 + "!"}),
        (properties(a={"pattern": "(a{1,1000}){1,1000}"}), {"a": "b" * 5_000}),
        (properties(a={"pattern": r"(x+x+)+\1y"}), {"a": "x" * 5_000}),
        ({"$defs": {"n": HALVES}, "$ref": "#/$defs/n"}, nested(60)),
        ({"$defs": LAUGHS, "$ref": "#/$defs/a0"}, {"a": 1}),
        (LOOP, {"y": 1}),
        ({"type": "string"}, nested(3_000)),
        (properties(a={"uniqueItems": True}), {"a": list(range(20_000))}),
    ],
)
def test_nothing_takes_long(schema: Any, arguments: Any):
    start = time.perf_counter()
    validate(schema, arguments)
    assert time.perf_counter() - start < 2.0


def test_a_pattern_that_hits_its_step_limit_is_no_problem_of_the_arguments():
    assert texts(properties(a={"pattern": r"^(a|aa)*\1$"}, b={"type": "integer"}), {"a": "a" * 60 + "!", "b": "x"}) == [
        'b: expected integer, got "x"'
    ]


def test_too_many_alternatives_switch_off_references_only():
    schema = {"$defs": LAUGHS, "allOf": [{"$ref": "#/$defs/a0"}], "required": ["b"]}
    assert texts(schema, {"a": 1}) == ["b: expected a value (required), got nothing"]


@pytest.mark.parametrize("value", [nested(3_000), {1, 2}, object(), {"a": object()}])
def test_what_is_no_json_is_one_problem(value: Any):
    assert len(validate({"type": "object"}, value)) == 1


@pytest.mark.report("BR-253")
def test_lone_surrogates_are_taken():
    found = texts(
        properties(**{"a\ud800": {"type": "integer"}, "b": {"type": "integer"}}), {"a\ud800": "x", "b": "\udc00"}
    )
    assert len(found) == 2
    "".join(found).encode("utf-8")


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
keywords = st.sampled_from(
    "type properties required items anyOf allOf oneOf not enum const pattern $ref minimum nullable $defs if".split()
)
schemas = st.recursive(
    st.dictionaries(keywords, json_values, max_size=4),
    lambda inner: st.dictionaries(keywords, inner | st.lists(inner, max_size=3), max_size=4),
    max_leaves=10,
)


@given(schemas, json_values)
def test_it_never_raises(schema: Any, arguments: Any):
    for problem in validate(schema, arguments):
        assert isinstance(problem, Problem)
        assert len(problem.message.splitlines()) == 1
        assert len(problem.message) < 500


@given(schemas, json_values)
def test_whatever_stands_beside_it_a_sound_part_is_enforced(beside: Any, value: Any):
    schema = properties(good={"type": "integer"}, bad=beside)
    assert 'good: expected integer, got "x"' in texts(schema, {"bad": value, "good": "x"})


def test_long_values_and_long_lists_are_cut():
    found = validate(properties(a={"enum": [f"value{i}" for i in range(500)]}), {"a": "x" * 10_000})
    assert len(found[0].message) < 350
    many = validate({"required": [f"f{i}" for i in range(500)]}, {})
    assert len(many) == 50
    text = problems_text(many)
    assert text.count("\n") == 8
    assert text.endswith("and 42 more")
    assert problems_text([]) == ""


def test_values_cannot_open_a_line():
    assert "\n" not in texts(properties(a={"type": "integer"}), {"a": "x\n# y\u2028z"})[0]


def test_the_schema_is_left_as_it_was():
    schema = properties(a={"pattern": "([", "nullable": True}, b={"$ref": "#/x"})
    before = json.dumps(schema)
    validate(schema, {"a": 1})
    assert json.dumps(schema) == before


def test_real_schemas_compile_as_they_are(data: Path):
    from loadpoint._schema._validate import _compile

    broken = [
        f"{path.stem}: {tool['name']}"
        for path in sorted((data / "catalogs").glob("*.json"))
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]
        if _compile(tool["inputSchema"]) is None
    ]
    assert broken == []
    for path in sorted((data / "catalogs").glob("*.json")):
        for tool in json.loads(path.read_text(encoding="utf-8"))["tools"]:
            required = tool["inputSchema"].get("required") or []
            found = validate(tool["inputSchema"], {})
            assert len(found) >= min(len(required), 50), tool["name"]


def test_the_validator_is_imported_at_first_use():
    code = "import sys, loadpoint, loadpoint._schema; print('jsonschema_rs' in sys.modules, 'rapidfuzz' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.split() == ["False", "False"]
