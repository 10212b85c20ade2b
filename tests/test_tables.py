"""The lists of requirements and reports, the markers that name them, and the mutants that prove the tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import mutants, tables


@pytest.mark.parametrize("table", tables.TABLES, ids=lambda table: table.marker)
def test_markers_name_known_ids(repo: Path, table: tables.Table):
    unknown = tables.marked(repo)[table.marker].keys() - tables.entries(table, repo).keys()
    assert not unknown, f"{unknown} stand in a marker but not in {table.source}"


def test_the_generated_pages_are_current(repo: Path):
    assert tables.stale(repo) == [], "run `python tests/tables.py`"


def test_reports_are_called_not_applicable_sparingly(repo: Path):
    listed = tables.entries(tables.TABLES[1], repo)
    excused = [key for key, entry in listed.items() if "not_applicable" in entry]
    assert len(excused) * 6 <= len(listed)
    assert all(len(listed[key]["not_applicable"]) > 20 for key in excused), "a reason names the code path"


def test_an_excused_id_has_no_test(repo: Path):
    for table in tables.TABLES:
        excused = {key for key, entry in tables.entries(table, repo).items() if "not_applicable" in entry}
        assert not excused & tables.marked(repo)[table.marker].keys()


def test_every_mutant_can_be_applied(repo: Path):
    problems = {f"{mutant.id} {mutant.test}": mutants.problem(mutant, repo) for mutant in mutants.load(repo)}
    assert {key: reason for key, reason in problems.items() if reason} == {}


def test_every_mutant_names_a_test_that_claims_its_id(repo: Path):
    claims = {key: set(nodes) for ids in tables.marked(repo).values() for key, nodes in ids.items()}
    for mutant in mutants.load(repo):
        node = mutant.test.removeprefix("tests/").partition("[")[0]
        for identifier in mutant.ids:
            owners = claims.get(identifier, set())
            assert any(node == owner or node.startswith(f"{owner}::") for owner in owners), f"{identifier}: {node}"


SAMPLE = """
import pytest
pytestmark = pytest.mark.requirement("N1")
CASES = [pytest.param(1, marks=pytest.mark.report("BR-001")), 2]

@pytest.mark.requirement("N2", "N3")
def test_a(): ...

@pytest.mark.parametrize("case", CASES)
def test_b(case): ...

@pytest.mark.report("BR-002")
class TestC:
    @pytest.mark.requirement("N4")
    async def test_d(self): ...
"""


def test_markers_are_found_wherever_pytest_finds_them():
    assert sorted(tables.scan(SAMPLE, "t.py")) == [
        ("report", "BR-001", "t.py::test_b"),
        ("report", "BR-002", "t.py::TestC"),
        ("requirement", "N1", "t.py"),
        ("requirement", "N2", "t.py::test_a"),
        ("requirement", "N3", "t.py::test_a"),
        ("requirement", "N4", "t.py::TestC::test_d"),
    ]


def test_an_id_that_is_computed_is_refused():
    with pytest.raises(ValueError, match="written out"):
        list(tables.scan("import pytest\nx = pytest.mark.report(name)\n", "t.py"))


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A tree with one function, one test of it and no mutant yet."""
    (tmp_path / "src").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "src/answer.py").write_text("def answer():\n    return 42\n")
    (tmp_path / "tests/test_it.py").write_text(
        "from answer import answer\n\ndef test_it():\n    assert answer() == 42\n\ndef test_idle():\n    assert True\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("find", "replace", "test", "expected"),
    [
        ("42", "41", "test_it", None),
        ("42", "41", "test_idle", "SURVIVED"),
        ("43", "41", "test_it", "its text stands 0 times in src/answer.py"),
        ("42", "42", "test_it", "it changes nothing"),
    ],
)
def test_the_verdict_on_a_mutant(house: Path, find: str, replace: str, test: str, expected: str | None):
    mutant = mutants.Mutant("N1", "src/answer.py", find, replace, f"tests/test_it.py::{test}")
    assert mutants.verdict(mutant, house) == expected
    assert (house / "src/answer.py").read_text() == "def answer():\n    return 42\n"


def test_a_mutant_that_breaks_the_run_is_not_caught(house: Path):
    mutant = mutants.Mutant("N1", "src/answer.py", "def answer():", "def answer(:", "tests/test_it.py::test_it")
    assert "broke" in (mutants.verdict(mutant, house) or "")
