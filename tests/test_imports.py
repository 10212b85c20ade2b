"""What an import costs: `import loadpoint` next to nothing, the core no SDK and nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import loadpoint

SDKS = {"anthropic", "httpx", "httpx2", "litellm", "mcp", "openai"}
HEAVY = {
    "asyncio",
    "importlib.metadata",
    "jsonschema",
    "jsonschema_rs",
    "numpy",
    "pydantic",
    "rapidfuzz",
    "rich",
    "starlette",
    "tiktoken",
    "typer",
    "uvicorn",
}
ABOVE_THE_CORE = ("bench", "cli", "emulator", "testing", "toolbox")
BUDGET_MS = 60


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after `code` and had not before."""
    program = (
        f"import sys, json; before = set(sys.modules)\n{code}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    return set(json.loads(run.stdout.splitlines()[-1]))


def core_modules() -> list[str]:
    """The dotted names of all modules of the core."""
    root = Path(loadpoint.__file__).parent
    names = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] not in ABOVE_THE_CORE:
            names.append(".".join(("loadpoint", *parts)).removesuffix(".__init__"))
    return names


def test_import_loads_itself_only():
    assert {name for name in loaded_by("import loadpoint") if name.startswith("loadpoint")} == {"loadpoint"}


@pytest.mark.parametrize("code", ["import loadpoint", "import loadpoint; loadpoint.Policy(); loadpoint.wrap"])
def test_no_sdk_and_nothing_heavy(code: str):
    assert loaded_by(code) & (SDKS | HEAVY) == set()


def test_no_module_of_the_core_loads_anything_heavy():
    names = core_modules()
    assert len(names) > 10
    loaded = loaded_by("\n".join(f"import {name}" for name in names))
    assert loaded & (SDKS | HEAVY) == set()


def test_dialects_load_no_sdk():
    code = (
        "import pkgutil, importlib, loadpoint_adapters._dialects as d\n"
        "for m in pkgutil.iter_modules(d.__path__, d.__name__ + '.'): importlib.import_module(m.name)"
    )
    assert loaded_by(code) & (SDKS | HEAVY) == set()


@pytest.mark.parametrize(("one", "other"), [("openai", "anthropic"), ("anthropic", "openai")])
def test_an_adapter_loads_no_other_sdk(one: str, other: str):
    assert other not in loaded_by(f"import loadpoint_adapters.{one}")


@pytest.mark.parametrize("code", ["import loadpoint", "import loadpoint; loadpoint.wrap"])
def test_import_time_budget(code: str):
    """Processor time, the best of five runs: the budget is for this code, not for what else the machine is doing."""
    timed = f"import time; t = time.process_time()\n{code}\nprint(1000 * (time.process_time() - t))"
    runs = [
        float(subprocess.run([sys.executable, "-c", timed], capture_output=True, text=True, check=True).stdout)  # noqa: S603
        for _ in range(5)
    ]
    assert min(runs) < BUDGET_MS, f"{code}: {min(runs):.1f} ms"
