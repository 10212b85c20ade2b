"""Tokens are counted offline: with o200k only where its very file is on this machine, else from lengths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from loadpoint.emulator import _count, tokens


def test_nothing_is_no_token_and_counts_grow():
    assert tokens("") == 0
    assert 1 <= tokens("a") < tokens("a " * 100) < tokens("a " * 1000)


def test_a_file_that_is_not_the_encoding_is_never_handed_to_tiktoken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / _count._FILE).write_bytes(b"YQ== 0\n")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert _count._folder() != tmp_path


def test_without_the_encoding_a_token_is_four_characters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(_count, "_encode", [None])
    _count.tokens.cache_clear()
    assert [tokens("x" * length) for length in (1, 4, 5, 4000)] == [1, 1, 2, 1000]
    assert not _count.exact()
    _count.tokens.cache_clear()


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch):
    before = dict(os.environ)
    monkeypatch.setattr(_count, "_encode", [])
    _count.exact()
    assert dict(os.environ) == before
