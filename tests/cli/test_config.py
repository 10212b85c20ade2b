"""`loadpoint config`: reading, changing, which file, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loadpoint import Policy, _config, cli


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setattr(_config, "user_file", lambda: tmp_path / "conf/loadpoint/config.toml")
    monkeypatch.setattr(_config, "_pending", [])
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.main(["config", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


def test_the_projects_file_is_the_default_and_holds_from_the_next_load_on(capsys, project: Path):
    assert run(capsys, "set", "lazy", "mail_send, mail_list")[0] == cli.EXIT_OK
    assert (project / ".loadpoint.toml").read_text() == 'lazy = ["mail_send", "mail_list"]\n'
    assert run(capsys, "set", "max_rounds", "6")[0] == cli.EXIT_OK
    assert Policy.load() == Policy(defer=("mail_send", "mail_list"), max_rounds=6)
    assert run(capsys, "set", "lazy", "[]")[0] == cli.EXIT_OK
    assert Policy.load().defer == ()


def test_global_is_the_users_file_and_a_folder_is_made_for_it(capsys, project: Path):
    code, out, _ = run(capsys, "set", "strategy", "frozen", "--global")
    assert code == cli.EXIT_OK
    assert str(project.parent / "conf/loadpoint/config.toml") in out
    assert not (project / ".loadpoint.toml").exists()
    assert Policy.load().strategy == "frozen"
    assert run(capsys, "get", "strategy", "--global")[1].startswith('strategy = "frozen"')


def test_get_says_what_counts_and_which_file_says_it(capsys, project: Path):
    run(capsys, "set", "lazy", "a", "--global")
    run(capsys, "set", "lazy", "b")
    run(capsys, "set", "strategy", "resend", "--global")
    code, out, _ = run(capsys, "get")
    assert code == cli.EXIT_OK
    assert f'lazy = ["b"]    # {project / ".loadpoint.toml"}' in out
    assert json.loads(run(capsys, "get", "lazy", "--json")[1]) == {
        "lazy": {"value": ["b"], "file": str(project / ".loadpoint.toml")}
    }
    assert json.loads(run(capsys, "get", "defer", "--json", "--global")[1])["lazy"]["value"] == ["a"]
    assert json.loads(run(capsys, "set", "lazy", "c", "--json")[1])["value"] == ["c"]


def test_what_is_not_set_is_a_finding(capsys):
    code, out, err = run(capsys, "get", "lazy")
    assert (code, out) == (cli.EXIT_FINDINGS, "")
    assert ".loadpoint.toml" in err
    code, out, err = run(capsys, "get")
    assert (code, out) == (cli.EXIT_OK, "")
    assert err.startswith("loadpoint: no settings; looked in ")


def test_a_value_in_a_file_that_no_policy_can_have_is_unusable_input(capsys, project: Path):
    (project / ".loadpoint.toml").write_text("max_rounds = -4\n")
    code, out, err = run(capsys, "get")
    assert (code, out) == (cli.EXIT_USAGE, "")
    assert "max_rounds: -4" in err
    assert ".loadpoint.toml" in err


def test_a_comment_behind_a_value_stays(capsys, project: Path):
    file = project / ".loadpoint.toml"
    file.write_text('lazy = ["x#y"]  # keep # this\nmax_rounds = 3\n')
    assert run(capsys, "set", "lazy", "b")[0] == cli.EXIT_OK
    assert file.read_text() == 'lazy = ["b"]  # keep # this\nmax_rounds = 3\n'


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "strategy", "magic"), "Policy.strategy: 'magic' is not usable; allowed: 'auto'"),
        (("set", "max_rounds", "-4"), "Policy.max_rounds: -4 is not usable; allowed: a whole number from 1 to 50"),
        (("set", "max_rounds", "many"), "Policy.max_rounds: 'many'"),
        (("set", "lazy", '["a", 3]'), "Policy.defer"),
        (("set", "colour", "red"), "'colour' is no setting; known: lazy, cache"),
        (("get", "colour"), "'colour' is no setting"),
    ],
)
def test_what_no_policy_can_have_is_not_written(capsys, project: Path, arguments: tuple[str, ...], told: str):
    code, _, err = run(capsys, *arguments)
    assert code == cli.EXIT_USAGE
    assert told in err
    assert not (project / ".loadpoint.toml").exists()


def test_a_broken_or_contrary_file_is_left_as_it_is(capsys, project: Path):
    file = project / ".loadpoint.toml"
    file.write_text("lazy = [")
    code, _, err = run(capsys, "set", "strategy", "frozen")
    assert (code, file.read_text()) == (cli.EXIT_USAGE, "lazy = [")
    assert "cannot be changed" in err
    file.write_text('lazy = ["a"]')
    code, _, err = run(capsys, "set", "defer", "*")
    assert code == cli.EXIT_USAGE
    assert "lazy stands there" in err
    file.unlink()
    file.mkdir()
    assert run(capsys, "set", "strategy", "frozen")[0] == cli.EXIT_USAGE
