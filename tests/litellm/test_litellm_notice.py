"""The notice at the start, where it is litellm that is wrapped first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import loadpoint
from loadpoint import Policy, _config


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is told, in a process that has wrapped nothing yet."""
    (tmp_path / ".loadpoint.toml").write_text('lazy = ["deploy_app"]', encoding="utf-8")
    monkeypatch.setattr(_config, "_pending", [])
    monkeypatch.setattr(_config, "_told", [])
    return []


@pytest.mark.requirement("P41", "P42")
@pytest.mark.parametrize("what", ["module", "router"])
def test_the_first_wrap_tells_it_once(litellm: Any, what: str, tmp_path: Path, told: list[str]):
    listed = [{"model_name": "m", "litellm_params": {"model": "openai/gpt-5.4", "api_key": "k"}}]
    client = litellm if what == "module" else litellm.Router(model_list=listed)
    policy = Policy.load(tmp_path, notify=told.append)
    assert told == []
    wrapped = loadpoint.wrap(client, policy)
    assert len(told) == 1
    assert "- deploy_app" in told[0]
    loadpoint.wrap(wrapped, policy)
    loadpoint.wrap(litellm, policy)
    assert len(told) == 1


@pytest.mark.requirement("P41")
def test_the_hook_of_the_proxy_tells_it_with_its_first_call_and_not_once_per_tenant(
    litellm: Any, tmp_path: Path, told: list[str]
):
    from loadpoint_adapters.litellm import ProxyHook

    hook: Any = ProxyHook(Policy.load(tmp_path, notify=told.append))
    for tenant in ("a", "b"):
        hook._session(tenant)
    assert len(told) == 1
