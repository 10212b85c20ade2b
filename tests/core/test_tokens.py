"""Token counts: the estimate is honest, the exact count is exact or absent, and nothing is ever downloaded."""

from __future__ import annotations

import json
import shutil
import socket
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint import _tokens

O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"


@pytest.fixture
def counted(encodings: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(encodings))
    count = _tokens.exact("gpt-4o")
    assert count is not None
    return count


@pytest.fixture
def encodings() -> Path:
    """A directory with encodings: what `TIKTOKEN_CACHE_DIR` names, or what litellm ships."""
    import os

    for folder in (os.environ.get("TIKTOKEN_CACHE_DIR"), _tokens._shipped()):
        if folder and (Path(folder) / O200K).is_file():
            return Path(folder)
    pytest.skip("no encoding on this machine")


@given(st.text())
def test_an_estimate_takes_any_text(text: str):
    assert _tokens.estimate(text) >= (1 if text else 0)


def test_an_estimate_grows_with_bytes_not_with_characters():
    assert _tokens.estimate("") == 0
    assert _tokens.estimate_bytes(0) == 0
    assert _tokens.estimate("a") == 1
    assert _tokens.estimate("\u6cd5" * 100) > 2 * _tokens.estimate("a" * 100)


@pytest.mark.report("BR-219")
@pytest.mark.parametrize(
    "schema",
    [{"type": "array"}, None, {"properties": {"a": {}}}, {"items": [1, None]}, {"type": ["object", "null"]}, "text", 3],
)
def test_odd_schemas_are_counted_too(schema: object):
    assert _tokens.schema_tokens({"name": "t", "parameters": schema}) > 0


@pytest.mark.report("BR-213")
def test_every_keyword_of_a_schema_counts():
    bare = {"name": "t", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}
    rich = json.loads(json.dumps(bare))
    rich["parameters"]["properties"]["a"] |= {"title": "An address", "default": "nowhere", "anyOf": [{"minLength": 3}]}
    assert _tokens.schema_tokens(rich) >= _tokens.schema_tokens(bare) + 10


def test_without_an_encoding_on_the_machine_there_is_no_exact_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(_tokens, "_shipped", lambda: None)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("something reached for the network")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    assert _tokens.exact("gpt-4o") is None
    (tmp_path / O200K).write_bytes(b"not an encoding")
    _tokens._encoding.cache_clear()
    assert _tokens.exact("gpt-4o") is None
    assert (tmp_path / O200K).read_bytes() == b"not an encoding", "a foreign file was replaced"


def test_unknown_models_have_no_exact_count():
    assert _tokens.exact("nobody-knows-this") is None
    assert _tokens.exact("") is None


def test_the_encoding_is_found_in_the_cache_directory(encodings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tiktoken")
    shutil.copy(encodings / O200K, tmp_path / O200K)
    monkeypatch.setattr(_tokens, "_shipped", lambda: None)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    count = _tokens.exact("vendor/gpt-4o")
    assert count is not None
    assert count("hello world") == 2
    assert count("<|endoftext|> \ud800") > 0
    assert count("word " * 30_000) == pytest.approx(30_000, rel=0.01)


def test_the_encodings_that_litellm_ships_are_found_without_importing_it(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("tiktoken")
    if find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    import sys

    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    before = "litellm" in sys.modules
    count = _tokens.exact("gpt-4o")
    assert count is not None
    assert count("hello world") == 2
    assert ("litellm" in sys.modules) is before


def test_the_estimate_of_real_servers_is_close(counted, data: Path):
    errors = []
    for path in sorted((data / "catalogs").glob("*.json")):
        tools = json.loads(path.read_text(encoding="utf-8"))["tools"]
        wire = [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description") or "",
                    "parameters": tool["inputSchema"],
                },
            }
            for tool in tools
        ]
        text = json.dumps(wire, separators=(",", ":"), ensure_ascii=False)
        errors.append(abs(_tokens.schema_tokens(wire) / counted(text) - 1))
    errors.sort()
    assert errors[len(errors) // 2] < 0.05
    assert errors[int(len(errors) * 0.9)] < 0.15


@given(st.text(max_size=400), st.text(alphabet="abcdefghijklmnopqrstuvwxyz_- ABC0123", max_size=400))
def test_the_estimate_from_above_counts_what_is_there(first: str, second: str):
    both = _tokens.tokens_at_most(first + "\n" + second)
    assert both >= 0
    assert both <= _tokens.tokens_at_most(first) + _tokens.tokens_at_most(second) + 2


@pytest.mark.parametrize(
    "alphabet",
    ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJ", "0123456789", "\u6cd5\u9f98\u7684", "\u00e9\u00df", "\U0001f600"],
)
def test_the_estimate_from_above_holds_for_gibberish(counted, alphabet: str):
    import random

    dice = random.Random(alphabet)
    for length in (3, 6, 12, 40):
        text = " ".join("".join(dice.choice(alphabet) for _ in range(length)) for _ in range(100))
        assert counted(text) <= _tokens.tokens_at_most(text) * 1.05
