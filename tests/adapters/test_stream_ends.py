"""A stream that the SDK stops reading at its last event has ended: its report is told, whoever reads it how."""

from __future__ import annotations

from typing import Any

import pytest
from tests.adapters.paths import each, settle
from tests.adapters.test_paths import client, request

import loadpoint
from loadpoint import Policy, emulator
from loadpoint.emulator import Move, Script

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("strategy", ["eager", "resend"])
async def test_every_stream_is_reported_once(strategy: str, sdk: str, asynchronous: bool):
    server = emulator.Emulator(Script.sequence([Move(text="hello")]))
    seen: list[Any] = []
    plain = client(sdk, server, asynchronous=asynchronous)
    wrapped = loadpoint.wrap(plain, Policy(strategy=strategy), on_report=seen.append)
    api = wrapped.messages if sdk == "anthropic" else wrapped.chat.completions
    asked = request(sdk)
    stream = await settle(api.create(**asked | {"tools": asked["tools"][:60]}, stream=True))
    async for _ in each(stream):
        pass
    await settle(stream.close())
    assert [report.strategy for report in seen] == [strategy]
