"""House rules that no linter knows: sizes, names, who may say a provider's name, where SDKs are imported."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

FILE_LINES = 400
FUNCTION_LINES = 50
README_LINES = 150
SDKS = {"anthropic", "httpx", "httpx2", "litellm", "openai"}
VAGUE = re.compile(r"(?i)util|helper|manager|common|misc")
PROVIDERS = re.compile(
    r"\b(openai|anthropic|claude|gpt|gemini|mistral|moonshot|kimi|bedrock|openrouter)\b", re.IGNORECASE
)
DIALECTS = re.compile(r"\b(openai\.chat|openai\.responses|anthropic\.messages)\b")  # API shapes, not companies
PROVIDER_PLACES = ("bench", "emulator", "testing.py")
"""Below src/loadpoint: where a provider may be named. Elsewhere such knowledge is data."""

# Paths of one machine, and addresses that only tell where a package was fetched from.
MACHINE = re.compile(r"(?<![\w.~$}])/(?:work|root|home/\w+|tmp)/|py(?:pi|thonhosted)\.org|registry\.np[m]js")

BINARY = {".png", ".gif", ".ico", ".gz", ".zip", ".sqlite"}


def sources(repo: Path, *folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((repo / folder).rglob("*.py"))]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def tracked(repo: Path) -> list[Path]:
    """The files that are or would be committed."""
    command = ["git", "-C", str(repo), "ls-files", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if run.returncode != 0:
        pytest.skip("not a git checkout")
    return [repo / line for line in run.stdout.splitlines() if (repo / line).is_file()]


def test_files_are_short_or_say_why(repo: Path):
    for path in sources(repo, "src", "adapters", "tests", "benchmarks"):
        text = path.read_text(encoding="utf-8")
        docstring = ast.get_docstring(ast.parse(text)) or ""
        assert text.count("\n") < FILE_LINES or "Over 400 lines because" in docstring, path.relative_to(repo)


def test_functions_are_short(repo: Path):
    long = [
        f"{path.relative_to(repo)}:{node.lineno} {node.name} {(node.end_lineno or 0) - node.lineno + 1}"
        for path in sources(repo, "src", "adapters", "tests", "benchmarks")
        for node in functions(ast.parse(path.read_text(encoding="utf-8")))
        if (node.end_lineno or 0) - node.lineno + 1 >= FUNCTION_LINES
    ]
    assert long == []


def test_modules_and_classes_have_telling_names(repo: Path):
    for path in sources(repo, "src", "adapters", "benchmarks"):
        assert not VAGUE.search(path.stem), path.relative_to(repo)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                assert not VAGUE.search(node.name), f"{path.relative_to(repo)}: {node.name}"


def test_every_module_says_what_it_is(repo: Path):
    for path in sources(repo, "src", "adapters"):
        text = path.read_text(encoding="utf-8")
        assert not text or ast.get_docstring(ast.parse(text)), path.relative_to(repo)


def imported(nodes: list[ast.stmt]) -> Iterator[str]:
    """Top-level package names imported by `nodes` when the module itself is imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]
        elif isinstance(node, (ast.Try, ast.With)) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test)
        ):
            yield from imported(
                [child for child in ast.walk(node) if isinstance(child, ast.stmt) and child is not node]
            )


def test_sdks_are_imported_inside_functions_only(repo: Path):
    for path in sources(repo, "src/loadpoint", "adapters/loadpoint_adapters/_dialects"):
        found = set(imported(ast.parse(path.read_text(encoding="utf-8")).body)) & SDKS
        assert not found, f"{path.relative_to(repo)} imports {found} at module level"


def words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and text of every string constant and name that is not documentation."""
    prose = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value
        elif isinstance(node, (ast.Name, ast.Attribute)):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr


@pytest.mark.requirement("N20")
def test_providers_are_named_in_data_dialects_and_emulator_only(repo: Path):
    named = []
    for path in sources(repo, "src/loadpoint"):
        if path.relative_to(repo / "src/loadpoint").parts[0] in PROVIDER_PLACES:
            continue
        for line, text in words(ast.parse(path.read_text(encoding="utf-8"))):
            if PROVIDERS.search(DIALECTS.sub("", text).replace("_", " ")):
                named.append(f"{path.relative_to(repo)}:{line} {text[:60]!r}")
    assert named == []


def test_nothing_tells_where_it_was_made(repo: Path):
    found = []
    for path in tracked(repo):
        if path.suffix in BINARY or path.name == "uv.lock":  # a lock file says where each file was found
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if MACHINE.search(line):
                found.append(f"{path.relative_to(repo)}:{number}: {line.strip()[:80]}")
    assert found == []


def test_the_readme_is_short_and_its_two_commands_are_marked(repo: Path):
    text = (repo / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") < README_LINES
    blocks = re.findall(r"^```sh setup\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    assert 'pip install -e ".[all]"' in blocks[0]
    assert "loadpoint bench" in blocks[0]
    assert 'pip install -e ".[dev]"' in blocks[1]
    assert "pytest" in blocks[1]


def test_the_changelog_has_the_version(repo: Path):
    text = (repo / "CHANGELOG.md").read_text(encoding="utf-8")
    version = re.search(
        r'^__version__ = "(.+)"$', (repo / "src/loadpoint/__init__.py").read_text("utf-8"), re.MULTILINE
    )
    assert version
    assert "## [Unreleased]" in text or f"## [{version[1]}]" in text


def test_every_adapter_is_registered_and_under_contract(repo: Path):
    project = tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {
        path.name
        for path in (repo / "adapters/loadpoint_adapters").iterdir()
        if path.is_dir() and not path.name.startswith("_") and any(path.glob("*.py"))
    }
    points = project["project"]["entry-points"]["loadpoint.adapters"]  # one adapter may serve two packages
    assert {value.partition(":")[0].rpartition(".")[2] for value in points.values()} == folders
    independent = next(
        c for c in project["tool"]["importlinter"]["contracts"] if c["name"] == "no adapter knows another"
    )
    assert {name.rpartition(".")[2] for name in independent["modules"]} == folders


def test_every_layer_is_under_contract(repo: Path):
    project = tomllib.loads((repo / "pyproject.toml").read_text(encoding="utf-8"))
    protected = {
        module
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "protected"
        for module in contract["protected_modules"]
    }
    public = {
        path.stem
        for path in (repo / "src/loadpoint").iterdir()
        if not path.name.startswith(("_", ".")) and (path.suffix == ".py" or any(path.glob("*.py")))
    } - {"errors", "modes"}
    assert {f"loadpoint.{name}" for name in public} <= protected, "a new layer needs a contract in pyproject.toml"
