"""The wrapped module is litellm to everybody who looks, and nothing of litellm is changed."""

from __future__ import annotations

import copy
import inspect
import subprocess
import sys
import types
from typing import Any

import pytest

import loadpoint
from loadpoint import Policy, UnsupportedClientError
from loadpoint_adapters.litellm import _compat, _module, adapter


def test_it_looks_like_the_module(litellm: Any):
    before = dict(vars(litellm))
    wrapped = loadpoint.wrap(litellm)
    assert isinstance(wrapped, types.ModuleType)
    assert wrapped.__name__ == "litellm"
    assert dir(wrapped) == dir(litellm)
    assert repr(wrapped) == repr(litellm)
    assert vars(wrapped) is vars(litellm)
    assert wrapped.ModelResponse is litellm.ModelResponse
    assert wrapped.get_llm_provider("gpt-5.4")[1] == "openai"
    assert wrapped.Router is litellm.Router
    assert wrapped.anthropic.messages.__name__ == litellm.anthropic.messages.__name__
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = wrapped.no_such_name
    with pytest.raises(TypeError, match="cannot pickle"):
        copy.copy(wrapped)
    changed = {name for name in before if vars(litellm)[name] is not before[name]}
    assert not {name for name in changed if callable(before[name])}, "the module was patched"
    assert changed <= {"_async_client_cleanup_registered"}, "litellm's own note, at its first client"


@pytest.mark.parametrize("name", ["completion", "acompletion", "responses", "aresponses", "anthropic_messages"])
def test_driven_functions_keep_their_looks(litellm: Any, name: str):
    wrapped = getattr(loadpoint.wrap(litellm), name)
    own = getattr(litellm, name)
    assert wrapped is not own
    assert wrapped.__name__ == own.__name__
    assert wrapped.__doc__ == own.__doc__
    assert inspect.signature(wrapped) == inspect.signature(own)
    assert inspect.iscoroutinefunction(wrapped) is inspect.iscoroutinefunction(own)


def test_every_name_that_is_driven_exists(litellm: Any):
    def check(tree: Any, module: Any) -> None:
        for name, kind in tree.items():
            found = getattr(module, name)
            if isinstance(kind, dict):
                check(kind, found)
            else:
                assert callable(found), name

    check(_module.DRIVEN, litellm)
    for name in _module.PASSED:
        assert callable(getattr(litellm, name))


def test_what_is_set_is_set_on_the_module(litellm: Any, monkeypatch: pytest.MonkeyPatch):
    wrapped = loadpoint.wrap(litellm)
    own = litellm.completion
    monkeypatch.setattr(litellm, "drop_params", False)
    wrapped.drop_params = True
    assert litellm.drop_params is True
    monkeypatch.setattr(wrapped, "completion", lambda **given: "patched")
    assert litellm.completion() == "patched"
    assert wrapped.completion(model="gpt-5.4", messages=[]) == "patched", "what others put there is driven too"
    monkeypatch.undo()
    assert litellm.completion is own, "what was read from the wrapped module is put back as the module's own"
    wrapped.something_new = 1
    del wrapped.something_new
    assert not hasattr(litellm, "something_new")


def test_wrapping_twice_is_wrapping_once(litellm: Any):
    wrapped = loadpoint.wrap(litellm)
    again = loadpoint.wrap(wrapped, Policy(strategy="eager"))
    assert loadpoint.unwrap(again) is loadpoint.unwrap(wrapped) is litellm
    assert again.completion.__wrapped__ is litellm.completion
    assert loadpoint.unwrap(litellm) is litellm


def test_a_version_outside_the_range_is_said_at_wrap(litellm: Any, monkeypatch: pytest.MonkeyPatch):
    for text in ("1.109.3", "2.0.0", "0"):
        monkeypatch.setattr(_compat, "version", lambda text=text: text)
        with pytest.raises(
            UnsupportedClientError, match=rf"litellm {text} is not supported: install .*loadpoint\[litellm\]"
        ):
            loadpoint.wrap(litellm)


def test_the_version_is_that_of_the_imported_module(litellm: Any):
    from importlib.metadata import version

    assert _compat.version() == version("litellm")
    assert _compat.unsupported() is None


def test_what_hangs_on_it_cannot_be_wrapped(litellm: Any):
    for thing in (litellm.completion, litellm.anthropic, litellm.Router):
        with pytest.raises(UnsupportedClientError):
            loadpoint.wrap(thing)
    assert not adapter.matches(object())


def _fresh(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    return run.stdout.strip()


def test_nothing_imports_litellm():
    code = (
        "import sys, loadpoint, loadpoint_adapters.litellm as ours\n"
        "try: loadpoint.wrap(object())\n"
        "except loadpoint.UnsupportedClientError as error: print('litellm' in str(error), end=' ')\n"
        "print('litellm' in sys.modules, ours.adapter.name)"
    )
    assert _fresh(code) == "True False litellm"


def test_the_adapter_brings_nothing_heavy():
    code = (
        "import sys, loadpoint\n"
        "import loadpoint._session\n"
        "before = set(sys.modules)\n"
        "import loadpoint_adapters.litellm as ours; ours.adapter.dialects()\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))"
    )
    assert set(_fresh(code).split()) <= {"loadpoint", "loadpoint_adapters", "jsonschema_rs", "rapidfuzz"}
