"""Can the tests fail? Applies every mutant of tests/mutants.toml to a copy of the tree and runs the test it names.

    python tests/mutants.py [--jobs N] [ID...]    all mutants, or those of the ids; exit 1 if one survives or cannot be
                                                  applied. N run side by side, each in a tree of its own

A mutant is one small change that would bring a trouble back: `id` of the requirement or report (or several, with spaces
between), `file`, `find` (text that stands there exactly once), `replace`, `test` (a node id that claims each of them).
Slow, so .ci/long runs it and pytest does not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COPIED = ("adapters", "benchmarks", "docs", "examples", "src", "tests", "pyproject.toml", "README.md")
SECONDS = 180
"""A test that takes longer has been sent round in circles by its mutant, which counts as caught."""

TESTS_FAILED = 1
"""Of pytest's exit codes the one that catches a mutant; others mean that the run itself was broken."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file, and the test that has to fail under it."""

    id: str
    file: str
    find: str
    replace: str
    test: str

    @property
    def ids(self) -> tuple[str, ...]:
        """The requirements and reports that this change would break."""
        return tuple(self.id.split())


def load(root: Path = ROOT) -> list[Mutant]:
    """All mutants of the list; raises ValueError for an entry with missing, unknown or empty fields."""
    wanted = {field.name for field in fields(Mutant)}
    mutants: list[Mutant] = []
    listed = tomllib.loads((root / "tests/mutants.toml").read_text(encoding="utf-8")).get("mutant", [])
    for number, entry in enumerate(listed):
        if entry.keys() != wanted or not all(isinstance(value, str) for value in entry.values()):
            raise ValueError(f"mutant {number} ({entry.get('id')}): the fields are {sorted(wanted)}, all text")
        mutants.append(Mutant(**entry))
    return mutants


def problem(mutant: Mutant, root: Path = ROOT) -> str | None:
    """Why `mutant` cannot be applied, or None."""
    path = root / mutant.file
    if not path.is_file():
        return f"{mutant.file} does not exist"
    times = path.read_text(encoding="utf-8").count(mutant.find) if mutant.find else 0
    if times != 1:
        return f"its text stands {times} times in {mutant.file}"
    if mutant.find == mutant.replace:
        return "it changes nothing"
    return None


def verdict(mutant: Mutant, tree: Path) -> str | None:
    """None if the test named by `mutant` fails in the changed `tree`; else what went wrong."""
    reason = problem(mutant, tree)
    if reason:
        return reason
    with _applied(mutant, tree):
        code, output = _pytest(tree, [mutant.test])
    if code in {TESTS_FAILED, None}:
        return None
    if code == 0:
        return "SURVIVED"
    return f"the run broke (exit {code}): {output.strip().splitlines()[-1:]}"


def main(arguments: list[str]) -> int:
    """Run the mutants, all or those of the ids in `arguments`; returns the exit code."""
    jobs = 1
    if arguments[:1] == ["--jobs"]:
        jobs, arguments = int(arguments[1]), arguments[2:]
    chosen = [mutant for mutant in load() if not arguments or set(mutant.ids) & set(arguments)]
    if not chosen:
        print("no mutant to apply")
        return 1 if arguments else 0
    with tempfile.TemporaryDirectory() as folder:
        trees = [_copy(Path(folder, str(at))) for at in range(jobs)]
        code, output = _pytest(trees[0], sorted({mutant.test for mutant in chosen}))
        if code != 0:
            print(output)
            print("the tests fail before anything was changed")
            return 1
        with ThreadPoolExecutor(jobs) as pool:
            bad = sum(pool.map(_told, *zip(*_shared(chosen, trees), strict=True)))
    print(f"{len(chosen) - bad} of {len(chosen)} mutants caught")
    return 1 if bad else 0


def _shared(chosen: Sequence[Mutant], trees: Sequence[Path]) -> list[tuple[list[Mutant], Path]]:
    return [(list(chosen[at :: len(trees)]), tree) for at, tree in enumerate(trees)]


def _told(chosen: Sequence[Mutant], tree: Path) -> int:
    """How many of the mutants are not caught in `tree`; prints each verdict."""
    bad = 0
    for mutant in chosen:
        reason = verdict(mutant, tree)
        bad += reason is not None
        print(f"{mutant.id:8} {reason or 'caught':10} {mutant.file} by {mutant.test}", flush=True)
    return bad


def _copy(folder: Path) -> Path:
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy(source, folder / name)
    return folder


@contextmanager
def _applied(mutant: Mutant, tree: Path) -> Iterator[None]:
    path = tree / mutant.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutant.find, mutant.replace), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(before, encoding="utf-8")


def _pytest(tree: Path, tests: list[str]) -> tuple[int | None, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV"))}
    environment = {
        **kept,
        "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(tree / "adapters"))),
        "PYTHONDONTWRITEBYTECODE": "1",  # two changes within one second would look like one to the byte-code cache
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", *tests]
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return None, "timed out"
    return run.returncode, run.stdout + run.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
