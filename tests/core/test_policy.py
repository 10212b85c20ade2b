"""`Policy`: validated at construction, with errors that name the field, the value and what is allowed."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from tests.core.conversation import Form, everywhere

from loadpoint import Policy, PolicyError, Tool, modes, using
from loadpoint._session import Session
from loadpoint.emulator import Move

BAD: list[tuple[str, Any, str]] = [
    ("strategy", "fast", "'auto', 'eager', 'native', 'resend', 'frozen'"),
    ("strategy", None, "'auto'"),
    ("catalog", "user", "'tool', 'system'"),
    ("cache", True, "'caller', 'auto'"),
    ("search", "remote", "'local', 'hosted'"),
    ("search", 5, "`rank`"),
    ("discovery", "visible", "'hidden', 'shown', 'caller'"),
    ("unloaded_call", "raise", "'load', 'refuse'"),
    ("confirm", "always", "'never', 'model'"),
    ("resident", "Read", "list"),
    ("resident", [1], "non-empty strings"),
    ("defer", [""], "non-empty strings"),
    ("defer", None, "list"),
    ("threshold_tokens", -1, "from 0"),
    ("threshold_tokens", 1.5, "whole number"),
    ("load_at_most", 0, "1 to 20"),
    ("load_at_most", 21, "1 to 20"),
    ("load_at_most", True, "whole number"),
    ("load_tokens", 0, "from 1"),
    ("max_rounds", 0, "1 to 50"),
    ("max_rounds", "4", "whole number"),
    ("catalog_tokens", -5, "from 0"),
    ("endpoint", "https://api.example.com/v1", "host name"),
    ("endpoint", "", "host name"),
]


@pytest.mark.parametrize(("field", "value", "allowed"), BAD)
def test_a_bad_value_names_field_value_and_what_is_allowed(field: str, value: Any, allowed: str) -> None:
    for make in (lambda: Policy(**{field: value}), lambda: Policy().replace(**{field: value})):
        with pytest.raises(PolicyError) as caught:
            make()
        text = str(caught.value)
        assert text.startswith(f"Policy.{field}: ")
        assert repr(value) in text
        assert allowed in text
        assert isinstance(caught.value, ValueError)


def test_an_unknown_field_names_the_known_ones() -> None:
    with pytest.raises(PolicyError, match=r"no field 'residents'.*'resident'"):
        Policy().replace(residents=("a",))


def test_a_policy_is_frozen_hashable_and_copied_with_changes() -> None:
    policy = Policy(resident=["b", "a"])  # type: ignore[arg-type]
    assert policy.resident == ("b", "a")
    assert policy.replace(max_rounds=2) == Policy(resident=("b", "a"), max_rounds=2)
    assert len({policy, policy.replace()}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.max_rounds = 9  # type: ignore[misc]


def test_a_set_of_names_has_one_order_in_every_process() -> None:
    assert Policy().replace(resident={"b", "a", "c"}).resident == ("a", "b", "c")


@pytest.mark.requirement("N2", "N3", "N4", "N6", "N7", "O16")
def test_modes_are_residents_and_everything_else_is_deferred() -> None:
    for names in (modes.AGENT, modes.CHAT, modes.PLAN, modes.GOAL):
        policy = Policy(resident=names)
        assert not any(policy.defers(name) for name in names)
        assert "new_context" in names
        assert all(policy.defers(name) for name in ("BrowserPreview", "Skill", "mcp__github__create_issue"))


def test_resident_wins_over_defer_and_what_neither_names_is_resident() -> None:
    policy = Policy(resident=("a_*",), defer=("a_b", "c_*"))
    assert [policy.defers(name) for name in ("a_b", "c_d", "other", "A_b")] == [False, True, False, False]


@pytest.mark.parametrize(
    "search", [{"search": "hosted"}, {"load_point": "hosted_search"}, {"load_point": "gateway_search"}]
)
def test_nobody_can_be_asked_about_loads_of_the_providers_own_search(search: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"Policy\.confirm: 'model'"):
        Session([], Policy(confirm="model", **search))


@pytest.mark.parametrize("given", [{"name": ""}, {"name": 5}, {"name": "a", "parameters": []}])
def test_a_tool_that_is_none_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=r"Tool\.(name|parameters)"):
        Tool(**given)


@everywhere
def test_a_block_of_code_has_a_policy_of_its_own(form: Form) -> None:
    talk = form.talk()
    talk.user("go")
    with using(talk.policy.replace(strategy="eager")):
        talk.send(Move(text="ok"))
    assert talk.report.strategy == "eager"
    assert len(talk.in_context()) == 60
