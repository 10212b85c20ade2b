"""Settings from files: which file counts, what is broken, how one is changed, and the notice at the start."""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadpoint import Policy, PolicyError, _config
from loadpoint._registry import build
from loadpoint_adapters._dialects.openai_chat import OpenAIChat

Write = Callable[[str, object], Path]


class Place:
    """A home folder and a project, both empty."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.pi, self.own_pi = self.home / ".pi/lazy-tools.json", self.project / ".pi/lazy-tools.json"
        self.user, self.own = self.home / "conf/loadpoint/config.toml", self.project / ".loadpoint.toml"
        self.pyproject = self.project / "pyproject.toml"
        self.project.mkdir(parents=True)

    def write(self, path: Path, content: object) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")

    def load(self, **more: Any) -> Policy:
        return Policy.load(self.project, **more)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: made.home)
    monkeypatch.setattr(_config, "user_file", lambda: made.user)
    monkeypatch.setattr(_config, "_pending", [])
    monkeypatch.setattr(_config, "_told", [])
    return made


# ------------------------------------------------------------------------------------------------------------- reading


@pytest.mark.requirement("P49")
def test_without_files_nothing_is_deferred_and_all_works(place: Place):
    assert place.load() == Policy(defer=())
    place.write(place.pi, "{broken")
    place.write(place.own_pi, "[]")
    place.write(place.own, "= broken")
    assert place.load() == Policy(defer=())


@pytest.mark.requirement("P45", "P46")
def test_both_files_of_pi_are_read_as_they_are(place: Place):
    place.write(place.pi, {"lazy": ["deploy_app"], "theirs": 1})
    assert place.load().defer == ("deploy_app",)
    place.write(place.own_pi, {"lazy": ["mail_send"]})
    assert place.load().defer == ("mail_send",)


@pytest.mark.requirement("P45", "P47")
def test_a_stronger_file_replaces_the_list_whole(place: Place):
    steps: list[tuple[Path, str]] = [
        (place.pi, '{"lazy": ["a"]}'),
        (place.user, 'lazy = ["b"]'),
        (place.own_pi, '{"lazy": ["c"]}'),
        (place.pyproject, '[tool.loadpoint]\nlazy = ["d"]'),
        (place.own, 'lazy = ["e"]'),
    ]
    for (path, text), name in zip(steps, "abcde", strict=True):
        place.write(path, text)
        assert place.load().defer == (name,)


@pytest.mark.requirement("P47")
@pytest.mark.parametrize("where", ["own_pi", "pyproject", "own"])
def test_an_empty_list_of_the_project_wins_too(place: Place, where: str):
    place.write(place.user, 'lazy = ["b"]')
    text = {"own_pi": '{"lazy": []}', "pyproject": "[tool.loadpoint]\nlazy = []", "own": "lazy = []"}[where]
    place.write(getattr(place, where), text)
    assert place.load().defer == ()


@pytest.mark.requirement("P48", "P50")
@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("own_pi", "{broken"),
        ("own_pi", "[1]"),
        ("own_pi", '{"lazy": "mail_send"}'),
        ("own_pi", '{"lazy": {"mail_send": true}}'),
        ("own_pi", "[" * 100_000),
        ("own", "lazy = ["),
        ("own", 'lazy = "mail_send"'),
        ("own", "lazy = 3"),
        ("pyproject", "[tool.loadpoint"),
        ("pyproject", "[tool.loadpoint]\nlazy = false"),
    ],
)
def test_an_unusable_file_of_the_project_warns_and_counts_as_absent(
    place: Place, where: str, text: str, caplog: pytest.LogCaptureFixture
):
    place.write(place.pi, {"lazy": ["deploy_app"]})
    place.write(getattr(place, where), text)
    with caplog.at_level(logging.WARNING, "loadpoint"):
        assert place.load().defer == ("deploy_app",)
    assert str(getattr(place, where)) in caplog.text


def test_files_that_are_none_or_not_readable_count_as_absent(place: Place, caplog: pytest.LogCaptureFixture):
    place.own.mkdir()
    place.write(place.own_pi, "")
    place.own_pi.write_bytes(b"\xff\xfe\xff")
    place.write(place.pyproject, "tool = 3")
    assert place.load().defer == ()
    assert str(place.own) in caplog.text
    assert str(place.own_pi) in caplog.text


def test_files_that_are_not_there_are_no_news(place: Place, caplog: pytest.LogCaptureFixture):
    place.load()
    assert caplog.text == ""


@pytest.mark.requirement("P51")
@pytest.mark.parametrize("where", ["own_pi", "own"])
def test_what_is_no_name_is_dropped_with_a_warning(place: Place, where: str, caplog: pytest.LogCaptureFixture):
    place.write(
        getattr(place, where),
        '{"lazy": ["a", 3, "", null, ["x"], "b"]}' if where == "own_pi" else 'lazy = ["a", 3, "", [1], true, "b"]',
    )
    assert place.load().defer == ("a", "b")
    assert "4 entries of lazy" in caplog.text


@pytest.mark.requirement("P52")
def test_an_edit_holds_from_the_next_load_on(place: Place):
    place.write(place.own, 'lazy = ["a"]')
    first = place.load()
    place.write(place.own, 'lazy = ["b"]')
    assert first.defer == ("a",)
    assert place.load().defer == ("b",)


@pytest.mark.requirement("P3", "P53")
def test_a_listed_tool_has_to_be_among_the_tools_of_the_request(place: Place):
    place.write(place.own, 'lazy = ["mail_send", "deploy_app"]')
    wires = [{"type": "function", "function": {"name": name}} for name in ("mail_send", "mail_list")]
    registry = build(OpenAIChat(), wires, place.load())
    assert [entry.name for entry in registry.deferred] == ["mail_send"]
    assert [entry.name for entry in registry.residents] == ["mail_list"]
    assert registry.warnings == ("Policy.defer: 'deploy_app' matches no tool of this request",)


@pytest.mark.requirement("P56", "P57")
def test_the_documentation_says_what_belongs_on_the_list_and_what_it_costs(repo: Path):
    text = " ".join((repo / "docs/configuration.md").read_text(encoding="utf-8").split())
    assert "used on few days, and take one or two plain fields" in text
    assert "A tool that most conversations need is better resident" in text
    for price in ("pays a round to load it", "goes through one more tool", "the provider checks no schema"):
        assert price in text


def test_every_setting_can_stand_in_a_file(place: Place):
    place.write(place.user, 'strategy = "resend"\nmax_rounds = 6\nresident = ["read_*"]')
    place.write(place.own, 'strategy = "frozen"\nlazy = ["a"]')
    assert place.load() == Policy(strategy="frozen", max_rounds=6, resident=("read_*",), defer=("a",))
    place.own.unlink()
    assert place.load().defer == ("*",), "a file without a list says nothing of it"


def test_a_value_that_no_policy_can_have_is_told_with_its_file(place: Place):
    place.write(place.user, "max_rounds = 6")
    place.write(place.own, 'strategy = "magic"')
    with pytest.raises(PolicyError, match=r"\.loadpoint\.toml: Policy\.strategy: 'magic'.*allowed: 'auto'"):
        place.load()


def test_an_unknown_setting_is_told_and_left_out(place: Place, caplog: pytest.LogCaptureFixture):
    place.write(place.own, 'strateg = "frozen"\nmax_rounds = 6')
    assert place.load() == Policy(max_rounds=6)
    assert "strateg is no setting" in caplog.text


def test_lazy_and_defer_in_one_file(place: Place, caplog: pytest.LogCaptureFixture):
    place.write(place.own, 'lazy = ["a"]\ndefer = ["*"]')
    assert place.load().defer == ("a",)
    assert "twice" in caplog.text


@pytest.mark.report("BR-195")
@pytest.mark.parametrize(
    ("key", "strict", "loose"), [("confirm", "model", "never"), ("unloaded_call", "refuse", "load")]
)
def test_a_project_cannot_take_back_what_its_user_made_stricter(
    place: Place, key: str, strict: str, loose: str, caplog: pytest.LogCaptureFixture
):
    place.write(place.own, f'{key} = "{loose}"')
    assert getattr(place.load(), key) == loose
    place.write(place.user, f'{key} = "{strict}"')
    assert getattr(place.load(), key) == strict
    assert "stricter" in caplog.text
    place.write(place.user, f'{key} = "{loose}"')
    place.write(place.own, f'{key} = "{strict}"')
    assert getattr(place.load(), key) == strict


def test_the_current_folder_is_the_project(place: Place, monkeypatch: pytest.MonkeyPatch):
    place.write(place.own, 'lazy = ["a"]')
    monkeypatch.chdir(place.project)
    assert Policy.load().defer == ("a",)


def test_without_platformdirs_or_a_home_the_project_is_read(place: Place, monkeypatch: pytest.MonkeyPatch):
    def nobody() -> Path:
        raise RuntimeError

    monkeypatch.setattr(_config, "user_file", lambda: None)
    monkeypatch.setattr(Path, "home", nobody)
    place.write(place.own, 'lazy = ["a"]')
    assert place.load().defer == ("a",)


def test_the_users_file_is_where_such_files_stand():
    found = _config.user_file()
    assert found is not None
    assert found.parts[-2:] == ("loadpoint", "config.toml")


# ------------------------------------------------------------------------------------------------------------ changing


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'lazy = ["a"]\n'),
        ('# mine\nstrategy = "frozen" # why\n', '# mine\nstrategy = "frozen" # why\nlazy = ["a"]\n'),
        ('lazy = ["x"]\nmax_rounds = 3\n', 'lazy = ["a"]\nmax_rounds = 3\n'),
        ('lazy = [\n  "x", # one\n  "y",\n]\nmax_rounds = 3\n', 'lazy = ["a"]\nmax_rounds = 3\n'),
        ('"lazy" = ["x"]\n', 'lazy = ["a"]\n'),
        ("[other]\nlazy = 3\n", 'lazy = ["a"]\n[other]\nlazy = 3\n'),
    ],
)
def test_one_setting_changes_and_the_rest_stays(place: Place, before: str, after: str):
    place.write(place.own, before)
    assert _config.changed(place.own, "lazy", ["a"]) == after


def test_a_broken_file_is_not_written_over(place: Place):
    place.write(place.own, "lazy = [")
    with pytest.raises(PolicyError, match="cannot be changed"):
        _config.changed(place.own, "lazy", ["a"])


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_written_is_read_again(names: list[str], text: str):
    for value in (names, text, 3):
        assert tomllib.loads(_config.changed(Path("nowhere.toml"), "lazy", value)) == {"lazy": value}


# -------------------------------------------------------------------------------------------------------------- notice


@pytest.mark.requirement("P41", "P42")
def test_the_notice_is_told_once_with_the_tools_and_the_file(place: Place, caplog: pytest.LogCaptureFixture):
    told: list[str] = []
    place.write(place.pi, {"lazy": ["old"]})
    place.write(place.own, 'lazy = ["deploy_app", "mail_send"]')
    policy = place.load(notify=told.append)
    assert told == [], "reading is no start"
    with caplog.at_level(logging.INFO, "loadpoint"):
        text = _config.notice(policy)
        assert _config.notice(policy) is None
        assert _config.notice(place.load(notify=told.append)) is None
    assert told == [text]
    assert caplog.messages == [text]
    assert text is not None
    assert "- deploy_app\n- mail_send\n" in text
    assert text.endswith(f"in effect:\n{place.own}")
    assert str(place.pi) not in text


@pytest.mark.requirement("P43")
def test_without_configuration_the_notice_says_where_one_could_stand(place: Place):
    text = _config.notice(place.load())
    assert text is not None
    assert "\n(none)\n" in text
    assert "none of these exists" in text
    for path in (place.pi, place.user, place.own_pi, place.pyproject, place.own):
        assert str(path) in text


def test_a_file_without_a_list_is_named(place: Place):
    place.write(place.own, "max_rounds = 3")
    text = _config.notice(place.load())
    assert text is not None
    assert "No list in the configuration" in text
    assert str(place.own) in text


@pytest.mark.requirement("P41")
def test_a_policy_that_came_from_no_file_has_no_notice(place: Place):
    assert _config.notice(Policy()) is None
    place.write(place.own, 'lazy = ["a"]')
    policy = place.load()
    assert _config.notice(Policy(defer=("b",))) is None
    assert _config.notice(policy.replace(strategy="frozen")) is not None, "the same list, and still the first wrap"


@pytest.mark.requirement("P44", "P54")
def test_a_broken_notifier_costs_a_warning(place: Place, caplog: pytest.LogCaptureFixture):
    def broken(text: str) -> None:
        raise OSError("no screen")

    place.write(place.own, 'lazy = ["a"]')
    assert _config.notice(place.load(notify=broken)) is None
    assert "no screen" in caplog.text
    assert _config.notice(place.load()) is None, "once is once"
