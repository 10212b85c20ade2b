"""Instrumentation patches `request` and counts what is read from the stream it got: it sees the hidden rounds too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.adapters import paths
from tests.adapters.rig import SDKS, rig, said, search

pytestmark = pytest.mark.anyio
sdks = pytest.mark.parametrize("sdk", SDKS)


class Watcher:
    """A proxy in the place of a parsed stream, as tracers make them; keeps what is read from it."""

    def __init__(self, stream: Any, failing: bool) -> None:
        object.__setattr__(self, "stream", stream)
        object.__setattr__(self, "read", [])
        object.__setattr__(self, "failing", failing)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self.stream)  # type: ignore[attr-defined]

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.stream, name, value)  # type: ignore[attr-defined]

    def __iter__(self) -> Iterator[Any]:
        for item in self.stream:  # type: ignore[attr-defined]
            self.note(item)
            yield item

    async def __aiter__(self) -> Any:
        async for item in self.stream:  # type: ignore[attr-defined]
            self.note(item)
            yield item

    def note(self, item: Any) -> None:
        if self.failing:  # type: ignore[attr-defined]
            raise RuntimeError("a tracer of poor quality")
        self.read.append(item)  # type: ignore[attr-defined]


def watched(sdk: str, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool, failing: bool = False) -> Any:
    """A rig with a tracer at `request`, and its watchers."""
    made = rig(sdk, search(sdk), said(sdk), asynchronous=asynchronous)
    base = type(made.plain)
    request, seen = base.request, []

    def noted(value: Any) -> Any:
        for key, stream in value._parsed_by_type.items():
            value._parsed_by_type[key] = Watcher(stream, failing)
            seen.append(value._parsed_by_type[key])
        return value

    def traced(self: Any, *args: Any, **given: Any) -> Any:
        value = request(self, *args, **given)
        value.parse()
        return noted(value)

    async def traced_async(self: Any, *args: Any, **given: Any) -> Any:
        value = await request(self, *args, **given)
        await paths.settle(value.parse())
        return noted(value)

    monkeypatch.setattr(base, "request", traced_async if asynchronous else traced)
    return made, seen


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@sdks
async def test_a_tracer_sees_every_round_of_a_stream(sdk: str, asynchronous: bool, monkeypatch: pytest.MonkeyPatch):
    made, seen = watched(sdk, monkeypatch, asynchronous=asynchronous)
    stream = await paths.settle(made.create(stream=True))
    shown = [item async for item in paths.each(stream)]
    assert len(seen) == 2
    assert "find" in str(seen[0].read)
    assert "find" not in str(shown)
    assert seen[1].read[-1] == shown[-1]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@sdks
async def test_a_tracer_that_fails_takes_nothing_from_the_caller(
    sdk: str, asynchronous: bool, monkeypatch: pytest.MonkeyPatch
):
    made, _ = watched(sdk, monkeypatch, asynchronous=asynchronous, failing=True)
    stream = await paths.settle(made.create(stream=True))
    shown = [item async for item in paths.each(stream)]
    assert "world" in str(shown)
