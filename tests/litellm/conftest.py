"""litellm for these tests alone: imported once, without the network, and out of the way of every other test.

Its import takes seconds, so it happens in a fixture; without litellm every test here is skipped. What a program that
has imported it sees (its prices, its encodings) is there during these tests only.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_SETTINGS = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True"}


@pytest.fixture(scope="session")
def _imported() -> Any:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed: the extra loadpoint[litellm]")
    before = dict(os.environ)
    os.environ.update(_SETTINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other people's
        module: Any = importlib.import_module("litellm")
    os.environ.clear()
    os.environ.update(before)
    module.suppress_debug_info = True
    module.disable_aiohttp_transport = True  # its sessions outlive the event loop of a test
    for name in ("LiteLLM", "LiteLLM Router"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    prices = module.model_cost
    module.model_cost = {}
    gc.freeze()  # its hundreds of thousands of objects stay: no later collection has to look at them
    return module, prices


@pytest.fixture
def litellm(_imported: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module."""
    module, prices = _imported
    encodings = Path(module.__file__).parent / "litellm_core_utils" / "tokenizers"
    for name, value in {**_SETTINGS, "TIKTOKEN_CACHE_DIR": str(encodings)}.items():  # it sets the last one itself
        monkeypatch.setenv(name, value)
    module.in_memory_llm_clients_cache.flush_cache()
    kept = {name: list(getattr(module, name)) for name in ("callbacks", "success_callback", "failure_callback")}
    module.model_cost = prices
    yield module
    for name, known in kept.items():
        setattr(module, name, known)
    module.model_cost = {}
    module.in_memory_llm_clients_cache.flush_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it leaves its clients to the collector, which must not come to another test
        gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out what litellm warns of: its own habits, and sockets that it leaves to the collector."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            for text in ("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::UserWarning:pydantic"):
                item.add_marker(pytest.mark.filterwarnings(text))
