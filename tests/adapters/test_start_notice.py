"""The notice at the start: told by the first wrap of a process, whatever is wrapped, and by nothing after it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

import loadpoint
from loadpoint import Policy, _config


def of_openai(policy: Policy) -> Any:
    return loadpoint.wrap(openai.OpenAI(api_key="k"), policy)


def of_openai_async(policy: Policy) -> Any:
    return loadpoint.wrap(openai.AsyncOpenAI(api_key="k"), policy)


def of_anthropic(policy: Policy) -> Any:
    return loadpoint.wrap(anthropic.Anthropic(api_key="k"), policy)


def of_middleware(policy: Policy) -> Any:
    from loadpoint_adapters.anthropic import middleware

    return middleware(policy)


def of_httpx(policy: Policy) -> Any:
    return loadpoint.wrap(httpx.Client(), policy)


def of_transport(policy: Policy) -> Any:
    from loadpoint_adapters.httpx import transport

    return transport(policy)


MADE: list[Callable[[Policy], Any]] = [
    of_openai,
    of_openai_async,
    of_anthropic,
    of_middleware,
    of_httpx,
    of_transport,
]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the notifier of `load` was told, in a process that has wrapped nothing yet."""
    (tmp_path / ".loadpoint.toml").write_text('lazy = ["deploy_app"]', encoding="utf-8")
    monkeypatch.setattr(_config, "_pending", [])
    monkeypatch.setattr(_config, "_told", [])
    caplog.set_level(logging.INFO, "loadpoint")
    return []


def load(tmp_path: Path, told: list[str]) -> Policy:
    return Policy.load(tmp_path, notify=told.append)


@pytest.mark.requirement("P41", "P42")
@pytest.mark.parametrize("make", MADE)
def test_the_first_wrap_tells_it_once(
    make: Callable[[Policy], Any], tmp_path: Path, told: list[str], caplog: pytest.LogCaptureFixture
):
    policy = load(tmp_path, told)
    assert told == []
    make(policy)
    assert len(told) == 1
    assert "- deploy_app" in told[0]
    assert str(tmp_path / ".loadpoint.toml") in told[0]
    assert caplog.messages.count(told[0]) == 1
    for other in (of_openai, of_anthropic, make):
        other(policy)
    assert len(told) == 1


@pytest.mark.requirement("P41")
@pytest.mark.parametrize("make", [of_openai, of_openai_async, of_anthropic])
def test_copies_and_clients_with_another_policy_tell_nothing(
    make: Callable[[Policy], Any], tmp_path: Path, told: list[str]
):
    client = make(Policy())
    policy = load(tmp_path, told)
    copies = client.with_options(timeout=3), client.copy()
    assert told == []
    make(policy)
    assert len(told) == 1
    assert all(copies)


@pytest.mark.requirement("P41")
def test_copies_of_the_client_that_told_it_tell_nothing_more(tmp_path: Path, told: list[str]):
    client = of_openai(load(tmp_path, told))
    load(tmp_path, told)
    client.with_options(timeout=3).copy()
    loadpoint.wrap(client, load(tmp_path, told))
    assert len(told) == 1


@pytest.mark.requirement("P41")
@pytest.mark.parametrize("switch", ["off", "eager"])
def test_where_nothing_is_deferred_nothing_is_told(
    switch: str, tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
):
    policy = load(tmp_path, told)
    monkeypatch.setenv("LOADPOINT", switch)
    of_openai(policy)
    assert told == []


@pytest.mark.requirement("P44", "P54")
@pytest.mark.parametrize("make", MADE)
def test_a_notifier_that_fails_leaves_a_client_that_works(
    make: Callable[[Policy], Any], tmp_path: Path, told: list[str], caplog: pytest.LogCaptureFixture
):
    def broken(_: str) -> None:
        raise RuntimeError("no screen")

    assert make(Policy.load(tmp_path, notify=broken)) is not None
    assert "no screen" in caplog.text
    assert told == []


@pytest.mark.requirement("P41")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_tells_nothing(tmp_path: Path, told: list[str]):
    policy = load(tmp_path, told)
    of_openai(policy)
    child = os.fork()
    if child == 0:
        try:
            of_openai(policy)
            os._exit(len(told) - 1)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
