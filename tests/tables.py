"""Which test shows which requirement and which field report: read from the markers, written to docs/.

python tests/tables.py            write docs/requirements.md and docs/field-reports.md
python tests/tables.py --check    exit 1 if they are not what would be written
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MARKERS = ("report", "requirement")


@dataclass(frozen=True, slots=True)
class Table:
    """One generated page: the list it is made from, the marker that fills it, its heading and opening words."""

    source: str
    target: str
    marker: str
    heading: str
    opening: str


TABLES = (
    Table(
        "docs/requirements.toml",
        "docs/requirements.md",
        "requirement",
        "Requirements and the tests that show them",
        "N: lazy activation per turn. P: a frozen list with a bridge. O: a search tool over all tools. "
        "D: optional agent tools.",
    ),
    Table(
        "docs/field-reports.toml",
        "docs/field-reports.md",
        "report",
        "Troubles reported elsewhere and the tests that keep them out",
        "Each line is a public report about deferred tools in some other project.",
    ),
)


def entries(table: Table, root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """The list of `table`: id -> theme, title and perhaps source or not_applicable."""
    return tomllib.loads((root / table.source).read_text(encoding="utf-8"))


def marked(root: Path = ROOT) -> dict[str, dict[str, list[str]]]:
    """Marker name -> id -> node ids (relative to tests/) of the tests that carry it, both sorted."""
    found: dict[str, dict[str, set[str]]] = {marker: defaultdict(set) for marker in MARKERS}
    for path in sorted((root / "tests").rglob("*.py")):
        name = path.relative_to(root / "tests").as_posix()
        for marker, identifier, node in scan(path.read_text(encoding="utf-8"), name):
            found[marker][identifier].add(node)
    return {marker: {key: sorted(nodes) for key, nodes in sorted(ids.items())} for marker, ids in found.items()}


def scan(source: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Marker, id and node id for every marker in the text of one test file.

    A marker inside a module-level list belongs to the tests whose decorators name the list; `pytestmark` and what no
    test names belong to the file. Raises ValueError for an id that is not written out.
    """
    tree = ast.parse(source)
    lists: dict[str, set[tuple[str, str]]] = {}
    for statement in tree.body:
        if isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            ids = set(_ids(statement, name))
            lists.update({target.id: ids for target in targets if isinstance(target, ast.Name) and ids})
    named: set[str] = set()
    for node, definition in _definitions(tree, name):
        for decorator in definition.decorator_list:
            used = {inner.id for inner in ast.walk(decorator) if isinstance(inner, ast.Name)} & lists.keys()
            named |= used
            ids = {*_ids(decorator, name)}.union(*(lists[key] for key in used))
            yield from ((marker, identifier, node) for marker, identifier in sorted(ids))
    for key in lists.keys() - named:
        yield from ((marker, identifier, name) for marker, identifier in sorted(lists[key]))


def render(table: Table, root: Path = ROOT) -> str:
    """The whole page of `table` as Markdown."""
    tests = marked(root)[table.marker]
    with_mutant = mutated(root)
    listed = entries(table, root)
    covered = sum(1 for key in listed if key in tests)
    excused = sum(1 for entry in listed.values() if "not_applicable" in entry)
    open_ = len(listed) - covered - excused
    lines = [
        f"# {table.heading}",
        "",
        "<!-- Made by `python tests/tables.py`; edit the .toml beside it and the markers in tests/. -->",
        "",
        table.opening,
        "",
        f"{covered} of {len(listed)} have a test, {excused} cannot apply here, {open_} are open.",
        "A test marked with `*` has a mutant that it is known to catch.",
        "",
        "| id | theme | what | tests |",
        "| --- | --- | --- | --- |",
    ]
    for key, entry in listed.items():
        star = "*" if key in with_mutant else ""
        status = "<br>".join(f"`{node}`{star}" for node in tests.get(key, ()))
        if not status:
            status = f"not applicable: {entry['not_applicable']}" if "not_applicable" in entry else "open"
        what = entry["title"] + (f" ({entry['source']})" if "source" in entry else "")
        lines.append(f"| {key} | {entry['theme']} | {_cell(what)} | {status} |")
    return "\n".join(lines) + "\n"


def mutated(root: Path = ROOT) -> set[str]:
    """The ids for which tests/mutants.toml holds a mutant; one may stand for several."""
    listed: list[dict[str, str]] = tomllib.loads((root / "tests/mutants.toml").read_text(encoding="utf-8")).get(
        "mutant", []
    )
    return {identifier for entry in listed for identifier in entry["id"].split()}


def stale(root: Path = ROOT) -> list[str]:
    """The generated pages that are not what would be written now."""
    return [
        table.target
        for table in TABLES
        if not (root / table.target).exists()
        or (root / table.target).read_text(encoding="utf-8") != render(table, root)
    ]


def unproved(root: Path = ROOT) -> list[str]:
    """The ids of reports and of requirements N and O that a test claims and no mutant proves."""
    claimed = [key for ids in marked(root).values() for key in ids]
    return sorted(key for key in claimed if key.startswith(("BR-", "N", "O")) and key not in mutated(root))


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` say which are stale; returns the exit code."""
    if arguments == ["--check"]:
        for target in stale():
            print(f"{target} is not current: run `python tests/tables.py`")
        return 1 if stale() else 0
    if arguments == ["--without-mutant"]:
        bare = unproved()
        print("\n".join(bare) or "every tested report and requirement has a mutant")
        return 1 if bare else 0
    for table in TABLES:
        (ROOT / table.target).write_text(render(table), encoding="utf-8")
        print(f"wrote {table.target}")
    return 0


_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def _definitions(tree: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, _Definition]]:
    for statement in tree.body:
        if isinstance(statement, _Definition):
            node = f"{prefix}::{statement.name}"
            yield node, statement
            if isinstance(statement, ast.ClassDef):
                yield from _definitions(statement, node)


def _ids(tree: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    for call in ast.walk(tree):
        function = call.func if isinstance(call, ast.Call) else None
        if not (
            isinstance(call, ast.Call)
            and isinstance(function, ast.Attribute)
            and function.attr in MARKERS
            and isinstance(function.value, ast.Attribute)
            and function.value.attr == "mark"
        ):
            continue
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise ValueError(f"{name}:{call.lineno}: the ids of a marker have to be written out")
            yield function.attr, argument.value


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
