"""`wrap`, `unwrap`, `using`, `report`, LOADPOINT, and how an adapter is found."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from typing import Any

import anthropic
import openai
import pytest
from tests.adapters.rig import said, text_of
from tests.adapters.test_paths import client as real
from tests.adapters.test_paths import request, searching, shown

import loadpoint
from loadpoint import LoadpointError, Policy, PolicyError, UnsupportedClientError, _adapter, emulator
from loadpoint._adapter import Reports
from loadpoint._report import CallReport

REPORT = CallReport(strategy="s", load_point=None, reason="r")


@pytest.fixture
def adapters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The adapters known in this process, and nothing installed beside them."""
    known: dict[str, Any] = {}
    monkeypatch.setattr(_adapter, "_adapters", known)
    monkeypatch.setattr(_adapter, "_broken", {})
    monkeypatch.setattr(_adapter, "_found", {})
    return known


class Foreign:
    """A client of some other SDK."""


class ForeignAdapter:
    """A third party's adapter."""

    name = "foreign"

    def matches(self, client: object) -> bool:
        return isinstance(client, Foreign)

    def wrap(self, client: Any, session_factory: Any) -> Any:
        made = Foreign()
        vars(made).update(original=client, session=session_factory(()))
        return made

    def unwrap(self, client: Any) -> Any:
        return getattr(client, "original", client)


# ------------------------------------------------------------------------------------- finding an adapter


def test_an_adapter_is_found_by_the_root_package_first(adapters: dict[str, Any]):
    asked: list[str] = []

    class Nosy(ForeignAdapter):
        def __init__(self, name: str) -> None:
            self.name = name

        def matches(self, client: object) -> bool:
            asked.append(self.name)
            return super().matches(client)

    _adapter.register("aaa", Nosy("aaa"))
    _adapter.register(__name__.partition(".")[0], Nosy("mine"))
    wrapped = loadpoint.wrap(Foreign())
    assert asked == ["mine"]
    assert loadpoint.unwrap(wrapped) is not wrapped


def test_a_third_partys_adapter_is_asked_whatever_its_name(adapters: dict[str, Any]):
    _adapter.register("zzz", ForeignAdapter())
    client = Foreign()
    assert loadpoint.unwrap(loadpoint.wrap(client)) is client


def test_entry_points_are_loaded_once_and_must_be_adapters(adapters: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    loaded: list[int] = []

    def load() -> Any:
        loaded.append(1)
        return ForeignAdapter()

    monkeypatch.setattr(_adapter, "_found", {"zzz": load})
    loadpoint.wrap(Foreign())
    loadpoint.wrap(Foreign())
    assert loaded == [1]
    monkeypatch.setattr(_adapter, "_found", {"yyy": lambda: "text"})
    adapters.clear()
    with pytest.raises(UnsupportedClientError, match=r"'yyy'.*'text'"):
        loadpoint.wrap(Foreign())


def test_a_missing_sdk_is_named_with_its_extra(adapters: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    def load() -> Any:
        raise ModuleNotFoundError("No module named 'acme'")

    monkeypatch.setattr(_adapter, "_found", {"acme": load})
    with pytest.raises(UnsupportedClientError, match=r"loadpoint\[acme\]") as caught:
        loadpoint.wrap(Foreign())
    assert isinstance(caught.value, TypeError)
    assert "No module named 'acme'" in str(caught.value)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (object(), "builtins.object"),
        (openai.OpenAI, "pass an instance"),
        (openai.OpenAI(api_key="k").chat, "only its client objects"),
        (openai, "only its client objects"),
        (None, "NoneType"),
    ],
)
def test_what_cannot_be_wrapped_is_told(thing: Any, words: str):
    with pytest.raises(UnsupportedClientError, match=words) as caught:
        loadpoint.wrap(thing)
    assert "there are adapters for: anthropic, httpx, httpx2, litellm, openai" in str(caught.value)


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_an_sdk_out_of_range_is_refused(sdk: str, monkeypatch: pytest.MonkeyPatch):
    module: Any = {"openai": openai, "anthropic": anthropic}[sdk]
    client = real(sdk, searching())
    monkeypatch.setattr(module, "__version__", "1.99.0")
    with pytest.raises(UnsupportedClientError, match=rf"{sdk} 1\.99\.0.*loadpoint\[{sdk}\]"):
        loadpoint.wrap(client)


def test_wrapping_one_sdk_does_not_import_the_other():
    code = "import sys, openai, loadpoint;loadpoint.wrap(openai.OpenAI(api_key='k'));print('anthropic' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "False"


# -------------------------------------------------------------------------------------------------- wrap


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
def test_wrapping_twice_is_wrapping_once_with_the_newer_settings(sdk: str):
    server = searching()
    plain = real(sdk, server)
    before = dict(vars(plain))
    seen: list[CallReport] = []
    twice = loadpoint.wrap(loadpoint.wrap(plain, Policy(strategy="eager")), on_report=seen.append)
    assert loadpoint.unwrap(twice) is plain
    api = twice.chat.completions if sdk == "openai" else twice.messages
    api.create(**request(sdk))
    assert len(server.exchanges) == 2
    assert len(seen) == 1
    assert {name: value for name, value in vars(plain).items() if name in before} == before
    assert loadpoint.unwrap(plain) is plain


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.parametrize("switch", ["off", "eager", " EAGER "])
def test_the_switch_of_the_process(sdk: str, switch: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOADPOINT", switch)
    server = emulator.Emulator(emulator.Script.sequence([emulator.Move(text="hello")]))
    wrapped = loadpoint.wrap(real(sdk, server))
    monkeypatch.delenv("LOADPOINT")
    api = wrapped.chat.completions if sdk == "openai" else wrapped.messages
    body = request(sdk)
    body["tools"] = body["tools"][:100]
    reply = api.create(**body)
    assert text_of(reply) == "hello"
    assert server.exchanges[0].request == body
    assert loadpoint.report(reply).added_rounds == 0


def test_a_bad_switch_names_what_is_allowed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LOADPOINT", "on")
    with pytest.raises(PolicyError, match=r"LOADPOINT.*'on'.*'off', 'eager'"):
        loadpoint.wrap(real("openai", searching()))


async def told_later(report: CallReport) -> None:
    """A callback that nobody would wait for."""


@pytest.mark.parametrize(
    ("setting", "given", "allowed"),
    [
        ("policy", "eager", "Policy(strategy='eager')"),
        ("policy", {"strategy": "eager"}, "Policy(strategy='eager')"),
        ("ledger", "loads.db", "SqliteLedger('loads.db')"),
        ("on_report", "print", "a plain function"),
        ("on_report", told_later, "a plain function"),
    ],
)
def test_a_setting_that_is_none_is_refused_at_once(setting: str, given: Any, allowed: str):
    with pytest.raises(PolicyError) as caught:
        loadpoint.wrap(real("openai", searching()), **{setting: given})
    assert str(caught.value).startswith(f"{setting}: {given!r} is not usable; allowed: ")
    assert allowed in str(caught.value)


# -------------------------------------------------------------------------------------------------- using


def test_using_holds_for_the_block_and_for_what_it_began():
    server = emulator.Emulator(emulator.Script.sequence([], then=emulator.Move(text="hello")))
    wrapped = loadpoint.wrap(real("anthropic", server))
    body = request("anthropic")
    with loadpoint.using(Policy(resident=("svc_tool_1",))) as outer:
        assert _adapter.override() is outer
        with loadpoint.using(Policy(strategy="eager")):
            stream = wrapped.messages.create(**body, stream=True)
        wrapped.messages.create(**body)
    assert _adapter.override() is None
    list(stream)
    assert len(shown(server.exchanges[0].request)) == len(body["tools"])
    assert set(shown(server.exchanges[1].request)) == {"svc_tool_1", "ToolSearch"}


@pytest.mark.parametrize("given", [None, {}, "eager"])
def test_using_takes_a_policy_and_nothing_else(given: Any):
    with pytest.raises(PolicyError, match=r"using: .*allowed: a Policy"), loadpoint.using(given):
        pytest.fail("the block was entered")


def test_using_ends_with_an_error_too():
    with pytest.raises(KeyError), loadpoint.using(Policy()):
        raise KeyError
    assert _adapter.override() is None


def test_using_is_not_seen_by_other_threads_but_by_tasks_of_the_block():
    policy = Policy(max_rounds=2)
    seen: dict[str, Policy | None] = {}

    async def look(name: str) -> None:
        seen[name] = _adapter.override()

    async def main() -> None:
        outside = asyncio.create_task(look("outside"))
        with loadpoint.using(policy):
            inside = asyncio.create_task(look("inside"))
            thread = threading.Thread(target=lambda: seen.update(thread=_adapter.override()))
            thread.start()
            thread.join()
            seen["worker"] = await asyncio.to_thread(_adapter.override)
        await asyncio.gather(outside, inside)

    asyncio.run(main())
    assert seen == {"outside": None, "inside": policy, "thread": None, "worker": policy}


# ------------------------------------------------------------------------------------------------- report


def test_a_reply_is_found_by_identity_while_it_lives():
    reports = Reports()
    one, two = (openai.types.chat.ChatCompletion.model_construct(**said("openai")) for _ in range(2))
    first, second = (CallReport(strategy=name, load_point=None, reason="") for name in "ab")
    reports.remember(one, first)
    reports.remember(two, second)
    assert (reports.find(one), reports.find(two)) == (first, second)  # equal, and of the same id
    assert len(reports._objects) == 2
    del one
    gc.collect()
    assert len(reports._objects) == 1


def test_an_address_that_is_used_again_is_another_object():
    reports = Reports()
    gone, here = Foreign(), Foreign()
    reports.remember(gone, REPORT)
    reports._objects[id(here)] = reports._objects[id(gone)]
    assert reports.find(here) is None


def test_ids_are_a_bounded_second_chance():
    reports = Reports(keep=2)
    a, b, c, d = (f"chatcmpl-{name * 20}" for name in "abcd")
    for name in (a, b, c):
        reports.remember({"id": name}, REPORT)
    assert [reports.find({"id": name}) for name in (a, b, c)] == [None, REPORT, REPORT]
    reports.remember({"id": b}, REPORT)
    reports.remember({"id": d}, REPORT)
    assert reports.find({"id": c}) is None
    assert reports.find({"id": b}) is REPORT


def test_a_short_id_is_no_second_chance():
    reports = Reports()
    reports.remember({"id": "7"}, REPORT)
    assert reports.find({"id": "7"}) is None


def test_a_report_that_nobody_knows_is_an_error():
    for thing in (object(), None, "text", {"id": 3}, {**said("openai"), "id": "nobody"}):
        with pytest.raises(LoadpointError, match="no report is known"):
            loadpoint.report(thing)


def test_replies_are_not_kept_alive():
    server = emulator.Emulator(emulator.Script.sequence([], then=emulator.Move(text="hello")))
    wrapped = loadpoint.wrap(real("openai", server))
    gc.collect()
    before = len(_adapter.reports._objects)
    for _ in range(50):
        wrapped.chat.completions.create(**request("openai"))
    gc.collect()
    assert len(_adapter.reports._objects) <= before
