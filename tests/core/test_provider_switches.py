"""A conversation that goes from one provider to another and back, converted as applications convert it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import NAMES, Conversation, search
from tests.core.conversions import HABITS, converted
from tests.core.loads import WRITTEN
from tests.core.test_form_round_trips import HOSTED, WAYS, history, oracle, talk_in, visible_to_the_model

from loadpoint import InProcessLedger, Policy
from loadpoint.emulator import Move

Json = dict[str, Any]
STEPS = st.lists(
    st.tuples(st.sampled_from(WAYS), st.sampled_from(NAMES), st.booleans(), st.booleans(), st.sampled_from(HABITS)),
    min_size=2,
    max_size=4,
)


@settings(max_examples=150)
@given(steps=STEPS, discovery=st.sampled_from(["hidden", "shown"]))
def test_a_conversation_changes_its_provider_between_turns(steps: Any, discovery: str) -> None:
    """Nothing of the one is refused by the other, and what was loaded and used stays loaded everywhere."""
    visible: list[Json] = []
    ledger = InProcessLedger()
    loaded: list[str] = []
    before = steps[0][0][0]
    for way, name, stream, restart, habit in steps:
        dialect, point, policy, model = way
        ledger = InProcessLedger() if restart else ledger
        visible = visible if dialect == before else converted(visible, before, dialect, habit)
        before = dialect
        chosen = Policy(**{"strategy": "resend" if point == "resend" else "native", "discovery": discovery, **policy})
        talk = Conversation(dialect, chosen, stream=stream, model=model, visible=visible)
        talk.restart(ledger=ledger)
        visible = talk.visible
        talk.user(f"do {name}")
        use = (name, {"id": 1})
        if point == "hosted_search":
            moves = [Move(calls=[HOSTED[dialect](name), use])]
        elif name in loaded:
            moves = [Move(calls=[use])]
        else:
            moves = [Move(calls=[search(name)]), Move(calls=[use])]
        reply = talk.send(*moves)
        assert [call for call in talk.calls(reply) if call[0] == name] == [use]
        talk.answer(reply)
        talk.send(Move(text=f"{name} is done"))
        loaded += [name] if name not in loaded else []
        talk.user("and?")
        talk.send(Move(text="nothing"))
        assert ({name} if point == "hosted_search" else set(loaded)) <= visible_to_the_model(talk)


LOADS = st.lists(st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple), min_size=1, max_size=3)
SWITCHES = [(a, b) for a in WRITTEN for b in WRITTEN if a != b]


@settings(max_examples=60)
@given(data=st.data(), record=LOADS, habit=st.sampled_from(HABITS))
@pytest.mark.parametrize(("source", "target"), SWITCHES)
def test_a_converted_history_is_taken_and_its_loader_answers_count(
    source: str, target: str, data: st.DataObject, record: Any, habit: str
) -> None:
    """Every form of a load, carried over; those in the loader's own words are what every provider reads."""
    forms = [data.draw(st.sampled_from(sorted(WRITTEN[source]))) for _ in record]
    way = data.draw(st.sampled_from([way for way in WAYS if way[0] == target]))
    talk = talk_in(way, converted(history(source, forms, record), source, target, habit))
    talk.user("now")
    talk.send(Move(text="well"))
    own = [names for form, names in zip(forms, record, strict=True) if form == "loader JSON"]
    wanted = {name for name, _, _ in oracle(own)}
    assert wanted <= {tool.name for tool in talk.report.loaded}
    assert wanted <= visible_to_the_model(talk)
    seen = json.dumps(talk.body)
    assert all(f"request {at}" in seen and f"answer {at}" in seen for at in range(len(record))), "every word is sent"
