"""The parts of a JSON object in its own text: the same bytes, the same values, whatever the escapes."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint import Tool
from loadpoint._bridge import Bridge, Refused, Target, failure_key, read_call, repeated, wrapped
from loadpoint._bridge._spans import joined, members, parsed

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(), x, max_size=4))
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def spelled(value: Any, random: Random) -> str:
    """JSON text of a value with every escape and white space that JSON knows, chosen at random."""

    def blank() -> str:
        return "".join(random.choice(" \t\n\r") for _ in range(random.randint(0, 2)))

    if isinstance(value, str):
        return '"' + "".join(_char(char, random) for char in value) + '"'
    if isinstance(value, list):
        return "[" + ",".join(f"{blank()}{spelled(item, random)}{blank()}" for item in value) + "]"
    if isinstance(value, dict):
        parts = (
            f"{blank()}{spelled(k, random)}{blank()}:{blank()}{spelled(v, random)}{blank()}" for k, v in value.items()
        )
        return "{" + (",".join(parts) or blank()) + "}"
    return json.dumps(value)


def _char(char: str, random: Random) -> str:
    ways = [json.dumps(char)[1:-1], "".join(f"\\u{unit:04{random.choice('xX')}}" for unit in _units(char))]
    if char in SHORT:
        ways.append(SHORT[char])
    if char >= " " and char not in '"\\':
        ways.append(char)
    return random.choice(ways)


def _units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


@given(OBJECTS, st.randoms(use_true_random=False))
def test_every_part_is_a_piece_of_the_text_with_the_parsers_value(value: dict[str, Any], random: Random):
    text = f" {spelled(value, random)}\n"
    assert json.loads(text) == value
    found = members(text)
    assert [(part.key, part.value) for part in found] == list(value.items())
    at = 0
    for part in found:
        at = text.index(part.key_text, at)
        assert json.loads(part.key_text) == part.key
        at = text.index(part.text, at + len(part.key_text))
        assert json.loads(part.text) == part.value
        at += len(part.text)
    assert json.loads(joined(found)) == value


@given(OBJECTS, st.randoms(use_true_random=False))
@pytest.mark.requirement("P37")
def test_params_reach_the_target_as_the_model_wrote_them(value: dict[str, Any], random: Random):
    inner = spelled(value, random)
    fields = [f"{spelled('tool', random)}: {spelled('t', random)}", f"{spelled('params', random)} :\t{inner} "]
    random.shuffle(fields)
    tool = Tool("t", "", {"properties": {key: {} for key in value} or {"x": {}}})
    answer = read_call("{" + ",".join(fields) + "}", bridge=Bridge(), deferred={"t": tool}, loaded={"t"}, resident={})
    assert isinstance(answer, Target | Refused)
    if isinstance(answer, Refused):  # what looks like a second envelope is asked back
        assert set(value) & {"params", "arguments", "args", "parameters", "param", "input", "inputs", "tool", "t"}
        return
    assert answer.arguments == inner
    assert answer.repairs == ()


@given(st.text())
def test_what_the_parser_refuses_is_refused(text: str):
    try:
        wanted = json.loads(text)
    except (ValueError, RecursionError):
        wanted = None
    try:
        found = {part.key: part.value for part in members(text)}
    except (ValueError, RecursionError):
        assert not isinstance(wanted, dict) or "NaN" in text or "Infinity" in text
        return
    assert found == wanted


@pytest.mark.parametrize(
    "text",
    ["", "{", "{}x", "{,}", '{"a"}', '{"a":1,}', "{'a':1}", '{"a":1 "b":2}', "[]", '"a"', "1", '{"a":NaN}', "{a:1}"],
)
def test_no_object_is_told_apart(text: str):
    with pytest.raises(ValueError):
        members(text)


def test_repeated_keys_are_seen():
    assert [part.value for part in members('{"a":1,"a":2}')] == [1, 2]


def test_numbers_keep_their_spelling():
    tool = Tool("t", "", {"properties": {"n": {"type": "number"}}})
    for raw, inner in (
        ('{"tool":"t","params":{"n":1.50E2}}', '{"n":1.50E2}'),
        ('{"tool":"t","n":1.50E2}', '{"n":1.50E2}'),
        ('{"tool":"t","params":"{\\"n\\":1.50E2}"}', '{"n":1.50E2}'),
    ):
        answer = read_call(raw, bridge=Bridge(), deferred={"t": tool}, loaded={"t"}, resident={})
        assert isinstance(answer, Target)
        assert answer.arguments == inner


@given(st.text(min_size=1), OBJECTS, st.randoms(use_true_random=False))
def test_a_call_is_wrapped_around_the_callers_own_text(name: str, value: dict[str, Any], random: Random):
    text = spelled(value, random)
    raw = wrapped(name, text)
    assert parsed(raw) == {"tool": name, "params": value}
    assert text in raw
    assert wrapped(name, text) == raw


@pytest.mark.parametrize(("arguments", "params"), [("", {}), ("  ", {}), ("{", "{"), ("[1]", "[1]"), ("NaN", "NaN")])
def test_what_is_no_object_is_wrapped_as_text(arguments: str, params: object):
    assert json.loads(wrapped("t", arguments)) == {"tool": "t", "params": params}


def test_wrapping_and_reading_are_each_others_inverse():
    tool = Tool("t", "", {"properties": {"a": {}}})
    for text in ('{"a": "\\u00e9\\/"}', "{ }", '{"a":{"a":[1,2.0]}}'):
        answer = read_call(wrapped("t", text), bridge=Bridge(), deferred={"t": tool}, loaded={"t"}, resident={})
        assert answer == Target("t", text)


def test_a_failing_call_is_told_to_end_at_its_second_time():
    first, second, third = (repeated("a: expected b", count) for count in range(3))
    assert (first.text, first.final) == ("a: expected b", False)
    assert second.final
    assert second.text.startswith("a: expected b\n")
    assert "Do not send it a third time" in second.text
    assert third.final
    assert "expected b" not in third.text


def test_the_same_call_is_known_in_another_spelling():
    assert failure_key('{"tool":"t","params":{"a":1,"b":2}}') == failure_key({"params": {"b": 2, "a": 1}, "tool": "t"})
    assert failure_key('{"tool":"t"}') != failure_key('{"tool":"u"}')
    assert failure_key("{broken") == failure_key("{broken")
