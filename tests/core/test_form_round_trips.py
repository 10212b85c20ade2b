"""One record of loads in every form: read back as it was, continued in any other form, with its ledger and without."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conversation import (
    ADDS,
    BASETEN,
    CHAT,
    INLINE,
    KIMI,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    search,
)
from tests.core.loads import FORMS, LOADER, WRITTEN, Load, said

from loadpoint import InProcessLedger, Policy
from loadpoint._loaded import evidence
from loadpoint.emulator import Move
from loadpoint_adapters._dialects.anthropic_messages import AnthropicMessages
from loadpoint_adapters._dialects.openai_chat import OpenAIChat
from loadpoint_adapters._dialects.openai_responses import OpenAIResponses

Json = dict[str, Any]
DIALECTS: dict[str, Any] = {CHAT: OpenAIChat(), MESSAGES: AnthropicMessages(), RESPONSES: OpenAIResponses()}
READERS: list[tuple[str, str | None, str]] = [
    (CHAT, None, ""),
    (CHAT, "system_tools", ""),
    (CHAT, "tool_reference", ""),
    (CHAT, "gateway_search", ""),
    (MESSAGES, None, ""),
    (MESSAGES, "tool_reference", ""),
    (MESSAGES, "tool_reference", "fixed"),
    (MESSAGES, "tool_addition", ""),
    (MESSAGES, "tool_addition", "reference"),
    (MESSAGES, "hosted_search", ""),
    (MESSAGES, "hosted_search", "regex"),
    (RESPONSES, None, ""),
    (RESPONSES, "tool_search", ""),
    (RESPONSES, "additional_tools", ""),
    (RESPONSES, "hosted_search", ""),
]
written = pytest.mark.parametrize(("dialect", "form"), FORMS, ids=[f"{d.split('.')[1]}-{f}" for d, f in FORMS])
loads = st.lists(st.sampled_from(NAMES), max_size=3, unique=True).map(tuple)
Proof = tuple[str, int, str]


def oracle(record: list[tuple[str, ...]]) -> list[Proof]:
    """What is loaded after these searches, one per turn: each name once, where it was found first."""
    out: dict[str, Proof] = {}
    for turn, names in enumerate(record, 1):
        for name in names:
            out.setdefault(name, (name, turn, "search"))
    return list(out.values())


def history(dialect: str, forms: list[str], record: list[tuple[str, ...]], *, ours: bool = False) -> list[Json]:
    """The searches of a record, each in its form and in a turn of its own."""
    out: list[Json] = []
    for at, (form, names) in enumerate(zip(forms, record, strict=True)):
        out.append(said(dialect, "user", f"request {at}"))
        out += WRITTEN[dialect][form](Load(names, at, ours))
        out.append(said(dialect, "assistant", f"answer {at}"))
    return out


def proved(reader: Any, messages: list[Json], names: tuple[str, ...] = NAMES) -> list[Proof]:
    found = evidence(map(reader.view, messages), is_deferred=names.__contains__, loaders=(LOADER,))
    return [(proof.name, proof.turn, proof.why) for proof in found]


def requests_of(reader: Any, messages: list[Json]) -> dict[int, int]:
    """The turns of a transcript by the request of the user that they answer: a load splits some turns in two."""
    out: dict[int, int] = {}
    turn = request = 0
    before = ""
    for view in map(reader.view, messages):
        request += view.role == "user" and view.text.startswith("request")
        turn += view.role == "assistant" and before != "assistant"
        before = view.role
        out.setdefault(turn, request) if view.role == "assistant" else None
    return out


@settings(max_examples=150)
@given(data=st.data(), record=st.lists(loads, min_size=1, max_size=4))
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_record_is_read_back_from_every_form(
    dialect: str, data: st.DataObject, record: list[tuple[str, ...]]
) -> None:
    forms = [data.draw(st.sampled_from(sorted(WRITTEN[dialect]))) for _ in record]
    messages = history(dialect, forms, record)
    asked = requests_of(DIALECTS[dialect], messages)
    found = [(name, asked[turn], why) for name, turn, why in proved(DIALECTS[dialect], messages)]
    assert found == oracle(record)


def turned(reader: Any, messages: list[Json], *, ours: bool) -> list[Json]:
    """The messages as this form takes them, one by one."""
    given = reader.messages(reader.with_messages({"model": "m"}, messages))
    sent = [wire for message in given for wire in reader.incoming(message, loader=LOADER, ours=ours)]
    return list(reader.rebuilt(sent))


@settings(max_examples=100)
@given(data=st.data(), record=st.lists(loads, min_size=1, max_size=4), ours=st.booleans())
@pytest.mark.parametrize(("dialect", "point", "variant"), READERS)
def test_what_is_turned_into_another_form_proves_the_same(
    dialect: str, point: str | None, variant: str, data: st.DataObject, record: list[tuple[str, ...]], ours: bool
) -> None:
    reader = DIALECTS[dialect].at(point, variant)
    known = [form for form in sorted(WRITTEN[dialect]) if ours or variant != "fixed" or "addition" not in form]
    forms = [data.draw(st.sampled_from(known)) for _ in record]
    messages = turned(reader, history(dialect, forms, record, ours=ours), ours=ours)
    asked = requests_of(reader, messages)
    found = [(name, asked[turn], why) for name, turn, why in proved(reader, messages)]
    assert found == oracle(record)


# ------------------------------------------------------------------------------------------- in whole conversations

WAYS: list[tuple[str, str, Json, str]] = [
    (CHAT, "resend", {}, "gpt-5.4"),
    (CHAT, "system_tools", {}, KIMI),
    (CHAT, "resend", {}, "kimi-k2"),
    (CHAT, "tool_reference", {}, BASETEN),
    (MESSAGES, "tool_reference", {}, "claude-opus-4-8"),
    (MESSAGES, "tool_reference", {}, "claude-sonnet-4-5"),
    (MESSAGES, "tool_addition", {"load_point": "tool_addition"}, INLINE),
    (MESSAGES, "hosted_search", {"search": "hosted"}, "claude-opus-4-8"),
    (MESSAGES, "resend", {"strategy": "resend"}, "claude-opus-4-8"),
    (RESPONSES, "tool_search", {}, "gpt-5.4"),
    (RESPONSES, "additional_tools", {}, ADDS),
    (RESPONSES, "hosted_search", {"search": "hosted"}, "gpt-5.4"),
    (RESPONSES, "resend", {"strategy": "resend"}, "gpt-5.4"),
]
ways = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way[0].split('.')[1]}-{way[1]}-{way[3]}")


def talk_in(way: tuple[str, str, Json, str], visible: list[Json], *, stream: bool = False) -> Conversation:
    dialect, _, policy, model = way
    strategy = "resend" if way[1] == "resend" else "native"
    talk = Conversation(dialect, Policy(**{"strategy": strategy, **policy}), stream=stream, model=model)
    talk.visible = visible
    return talk


def visible_to_the_model(talk: Conversation) -> set[str]:
    """The names that the emulator, which expands every form by itself, has shown to the model last."""
    return {*talk.in_context(), *talk.server.exchanges[-1].loaded}


@ways
@settings(max_examples=25)
@given(data=st.data(), record=st.lists(loads, min_size=1, max_size=3), stream=st.booleans())
def test_a_history_in_any_form_goes_on_in_any_other(
    way: Any, data: st.DataObject, record: list[tuple[str, ...]], stream: bool
) -> None:
    forms = [data.draw(st.sampled_from(sorted(WRITTEN[way[0]]))) for _ in record]
    talk = talk_in(way, history(way[0], forms, record), stream=stream)
    wanted = [name for name, _, _ in oracle(record)]
    for at in range(2):
        talk.user(f"now {at}")
        talk.send(Move(text=f"then {at}"))
        assert [tool.name for tool in talk.report.loaded] == wanted
        assert set(wanted) <= visible_to_the_model(talk)
    if wanted:
        talk.user("use it")
        reply = talk.send(Move(calls=[(wanted[0], {"id": 1})]))
        assert talk.calls(reply) == [(wanted[0], {"id": 1})]
        talk.answer(reply)
        talk.send(Move(text="ok"))


# ------------------------------------------------------------------------- one conversation, another form each turn

HOSTED: dict[str, Any] = {
    MESSAGES: lambda name: ("tool_search_tool_bm25", {"query": name}),
    RESPONSES: lambda name: ("ToolSearch", {"paths": ["lp_" + name.partition("_")[0]]}),
}
"""The model's call of the provider's own search, which is answered within the same reply."""
STEPS = st.lists(
    st.tuples(st.integers(0, len(WAYS) - 1), st.sampled_from(NAMES), st.booleans(), st.booleans()),
    min_size=2,
    max_size=5,
)


@settings(max_examples=60)
@given(steps=STEPS, discovery=st.sampled_from(["hidden", "shown"]))
@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_conversation_changes_its_form_between_turns(dialect: str, steps: Any, discovery: str) -> None:
    """`restart` loses the ledger: then only what stands in the visible history is known, which has the calls."""
    own = [way for way in WAYS if way[0] == dialect]
    visible: list[Json] = []
    ledger = InProcessLedger()
    loaded: list[str] = []
    for number, name, stream, restart in steps:
        ledger = InProcessLedger() if restart else ledger
        _, point, policy, model = own[number % len(own)]
        chosen = Policy(**{"strategy": "resend" if point == "resend" else "native", "discovery": discovery, **policy})
        talk = Conversation(dialect, chosen, stream=stream, model=model, visible=visible)
        talk.restart(ledger=ledger)
        visible = talk.visible
        talk.user(f"do {name}")
        use = (name, {"id": 1})
        if point == "hosted_search":  # the provider has to find again what it has not found itself
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
