"""What `loadpoint` exports: sorted, complete, documented, and seen alike by Python and by type checkers."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import loadpoint
from loadpoint import errors


def test_all_is_sorted_and_has_no_duplicates():
    assert loadpoint.__all__ == sorted(set(loadpoint.__all__))


@pytest.mark.parametrize("name", loadpoint.__all__)
def test_every_name_can_be_imported(name: str):
    assert getattr(loadpoint, name) is getattr(loadpoint, name)
    assert name in dir(loadpoint)


@pytest.mark.parametrize("name", [name for name in loadpoint.__all__ if name != "modes"])
def test_every_name_is_documented(name: str):
    text = inspect.getdoc(getattr(loadpoint, name)) or ""
    assert len(text) > 10, f"{name} has no docstring"


def test_type_checkers_see_the_same_names_from_the_same_modules():
    tree = ast.parse(Path(inspect.getsourcefile(loadpoint) or "").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {
        alias.name: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    homes = {name: module for name, module in seen.items() if module}
    assert homes == loadpoint._HOME
    assert set(homes) | {"modes"} == set(loadpoint.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'warp'"):
        _ = loadpoint.warp  # type: ignore[attr-defined]
    with pytest.raises(ImportError):
        exec("from loadpoint import warp", {})  # noqa: S102


def test_the_page_of_names_lists_exactly_the_names(repo: Path):
    lines = (repo / "docs/api.md").read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    listed = [line.split("`")[1].partition("(")[0] for line in lines if line.startswith("| `")]
    assert sorted(listed) == loadpoint.__all__


def test_every_error_is_a_loadpoint_error():
    for name, value in vars(errors).items():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(value, errors.LoadpointError)
            assert name in loadpoint.__all__


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("wrap", ["client", "policy", "toolbox", "ledger", "on_report"]),
        ("unwrap", ["client"]),
        ("clean", ["messages"]),
        ("using", ["policy"]),
        ("capability", ["model", "dialect", "base_url"]),
    ],
)
def test_the_parameters_that_callers_rely_on(name: str, parameters: list[str]):
    signature = inspect.signature(getattr(loadpoint, name))
    assert list(signature.parameters) == parameters


def test_star_import_brings_exactly_the_names():
    code = "from loadpoint import *; print(sorted(n for n in dir() if not n.startswith('__')))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == str(loadpoint.__all__)


def test_the_version_is_said_once():
    from importlib.metadata import version

    assert loadpoint.__version__ == version("loadpoint")
