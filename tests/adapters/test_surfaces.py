"""Every public method of the installed SDKs stands in `surfaces.toml`, and everything in it exists."""

from __future__ import annotations

from typing import Any

import anthropic
import openai
import pytest
from anthropic._resource import AsyncAPIResource as AnthropicAsyncResource
from anthropic._resource import SyncAPIResource as AnthropicResource
from openai._resource import AsyncAPIResource as OpenAIAsyncResource
from openai._resource import SyncAPIResource as OpenAIResource
from tests.adapters import paths
from tests.adapters.surfaces import KINDS, methods, row_of, surfaces

CLIENTS: list[Any] = [
    pytest.param("openai", openai.OpenAI, OpenAIResource, id="openai"),
    pytest.param("openai", openai.AsyncOpenAI, OpenAIAsyncResource, id="openai-async"),
    pytest.param("anthropic", anthropic.Anthropic, AnthropicResource, id="anthropic"),
    pytest.param("anthropic", anthropic.AsyncAnthropic, AnthropicAsyncResource, id="anthropic-async"),
]
VERSIONS = {"openai": openai.__version__, "anthropic": anthropic.__version__}


@pytest.mark.parametrize(("sdk", "client", "resource"), CLIENTS)
def test_every_method_of_the_sdk_is_listed(sdk: str, client: Any, resource: type[Any]):
    table = surfaces(sdk)
    unlisted = [path for path, _ in methods(client(api_key="k"), resource) if row_of(path, table) is None]
    assert unlisted == []


@pytest.mark.parametrize(("sdk", "client", "resource"), CLIENTS)
def test_whatever_takes_tools_or_messages_is_listed_by_name(sdk: str, client: Any, resource: type[Any]):
    table = surfaces(sdk)
    by_pattern = [
        path
        for path, carries in methods(client(api_key="k"), resource)
        if carries and not getattr(row_of(path, table), "exact", False)
    ]
    assert by_pattern == []


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_every_row_speaks_for_a_method(sdk: str):
    table = surfaces(sdk)
    found = {
        row_of(path, table)
        for parameter in CLIENTS
        if parameter.values[0] == sdk
        for path, _ in methods(parameter.values[1](api_key="k"), parameter.values[2])
    }
    vanished = [row.path for row in table if row.present(VERSIONS[sdk]) and row not in found]
    early = [row.path for row in table if not row.present(VERSIONS[sdk]) and row in found]
    assert (vanished, early) == ([], [])


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_rows_are_well_formed_sorted_and_single(sdk: str):
    table = surfaces(sdk)
    assert all(row.kind in KINDS and row.reason for row in table)
    paths = [row.path for row in table]
    assert len(set(paths)) == len(paths)
    order = [(KINDS.index(row.kind), row.path) for row in table]
    assert order == sorted(order)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_every_deferred_surface_has_its_tests(sdk: str):
    """A row cannot be called deferred without a path test; the path tests carry the row in their `path` parameter."""
    tested = {path for path in paths.TESTED if path.startswith(f"{sdk}:")}
    here = [row for row in surfaces(sdk) if row.present(VERSIONS[sdk])]
    promised = {f"{sdk}:{row.path}" for row in here if row.kind in {"deferred", "mirrored"}}
    assert promised == tested
