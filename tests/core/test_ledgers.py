"""Ledgers: bounded, shared, broken; and conversations that look alike are never mixed."""

from __future__ import annotations

import json
import multiprocessing
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loadpoint import InProcessLedger, SqliteLedger
from loadpoint._ledger import Record, State
from loadpoint.emulator import Move
from tests.bench import judge
from tests.core.conversation import CHAT, NAMES, Conversation, Form, everywhere, form_id, search, unstreamed

TOOL = "invoice_export"


def state(**more: Any) -> State:
    given_: dict[str, Any] = {
        "strategy": "native",
        "load_point": None,
        "reason": "",
        "loader": "ToolSearch",
        "catalog": "",
        "tools": (),
        "declared": (),
        "definitions": (),
        "system": "",
    }
    return State(**{**given_, **more})


def record(number: int, *, text: str = "x", of: State | None = None) -> Record:
    return Record(f"chain {number}", f"sent {number}", ({"role": "assistant", "content": text},), (), of or state())


# ------------------------------------------------------------------------------------------------ in the process


def test_memory_is_bounded_and_the_oldest_conversation_goes_first():
    ledger = InProcessLedger(max_bytes=50_000)
    for number in range(200):
        ledger.add(f"key {number}", record(number, text="y" * 1000))
    assert ledger.bytes_held <= 50_000
    assert ledger.find("key 199")
    assert not ledger.find("key 0")


def test_what_is_still_used_stays():
    ledger = InProcessLedger(max_bytes=50_000)
    for number in range(200):
        ledger.add(f"key {number}", record(number, text="y" * 1000))
        assert ledger.find("key 0")


def test_tools_are_counted_once_however_many_records_hold_them():
    ledger = InProcessLedger()
    tool = {"name": "a", "description": "d" * 10_000}
    for number in range(50):
        ledger.add(f"key {number}", record(number, of=state(tools=(tool,), reason=str(number))))
    assert 10_000 < ledger.bytes_held < 60_000
    ledger.close()
    assert ledger.bytes_held == 0


def test_tools_that_conversations_do_not_share_are_bounded_too():
    ledger = InProcessLedger(max_bytes=100_000)
    for number in range(100):
        tool = {"name": "a", "description": f"{number}" + "d" * 10_000}
        ledger.add(f"key {number}", record(number, of=state(tools=(tool,))))
    assert ledger.bytes_held <= 100_000
    assert not ledger.find("key 0")


def test_what_is_dropped_is_no_longer_counted():
    ledger = InProcessLedger(max_bytes=1)
    tool = {"name": "a", "description": "d" * 1000}
    for number in range(50):
        ledger.add(f"key {number}", record(number, of=state(tools=(tool,))))
    assert ledger.bytes_held < 3_000


def test_a_key_keeps_a_handful_of_conversations_the_newest_first():
    ledger = InProcessLedger()
    for number in range(30):
        ledger.add("key", record(number))
    found = ledger.find("key")
    assert [r.sent_before for r in found][:2] == ["sent 29", "sent 28"]
    assert len(found) < 30


def test_threads_may_share_it():
    ledger = InProcessLedger(max_bytes=20_000)
    faults: list[BaseException] = []

    def work(base: int) -> None:
        try:
            for number in range(200):
                ledger.add(f"key {(base * 7 + number) % 50}", record(number, text="z" * 200))
                ledger.find(f"key {number % 50}")
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=work, args=(base,)) for base in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert 0 < ledger.bytes_held <= 20_000


@unstreamed
def test_calls_cost_their_rounds_and_no_more(form: Form):
    """The hundredth call holds as much as the second: its own messages, not the conversation, not the tools."""
    talk = form.talk({"resident": ("ledger_*",)})
    held = []
    for at in range(40):
        talk.user(f"turn {at}")
        talk.send(Move(text="a short answer"))
        held.append(talk.session.ledger.bytes_held)
    steps = [b - a for a, b in zip(held[1:], held[2:], strict=False)]
    assert max(steps) < 600
    assert max(steps) - min(steps) < 50


def test_the_records_of_a_conversation_share_one_state():
    talk = Form(CHAT, "resend", False).talk()
    for at in range(3):
        talk.user(f"turn {at}")
        talk.send(Move(text="ok"))
    records = [r for found in talk.session.ledger._records.values() for r in found]
    assert len({id(r) for r in records}) == 3
    assert len({id(r.state) for r in records}) == 1


# ------------------------------------------------------------------------------------------------ in a file


def test_a_file_gives_back_what_was_written(tmp_path: Path):
    written = record(1, of=state(tools=({"name": "a"},), loaded=("a",), tolerant=True))
    with_file = SqliteLedger(tmp_path / "ledger.db")
    with_file.add("key", written)
    with_file.add("key", record(2))
    with_file.close()
    again = SqliteLedger(tmp_path / "ledger.db")
    assert list(again.find("key")) == [record(2), written]
    again.close()


def test_threads_that_end_leave_no_connection_open(tmp_path: Path):
    ledger = SqliteLedger(tmp_path / "ledger.db")
    for number in range(20):
        thread = threading.Thread(target=ledger.add, args=("key", record(number)))
        thread.start()
        thread.join()
    files = [p for p in Path("/proc/self/fd").iterdir() if p.exists() and "ledger.db" in str(p.resolve())]
    ledger.close()
    assert len(files) <= 3, "a database, its log, its shared memory"


def _turns(path: str, dialect: str, strategy: str, inbox: Any, outbox: Any) -> None:
    """Another process: takes a history and a name, makes one turn, gives back what it sent and the history."""
    ledger = SqliteLedger(path)
    while (order := inbox.get()) is not None:
        visible, name, seed = order
        talk = Form(dialect, strategy, False).talk()
        talk.server.seed = seed
        talk.restart(ledger=ledger)
        talk.visible = visible
        talk.load(name)
        outbox.put((talk.bodies, talk.visible, [report.prefix.broke for report in talk.reports]))
    ledger.close()


@unstreamed
@pytest.mark.requirement("N35")
def test_two_processes_take_turns_in_one_conversation_without_a_break(form: Form, tmp_path: Path):
    bodies, reasons = _alternate(form, [str(tmp_path / "ledger.db")] * 2)
    assert not judge.check(bodies, mode=form.strategy)
    assert set(reasons) <= {"first_request", None, "tools_grew"}


@unstreamed
def test_two_processes_without_a_shared_ledger_break_at_each_change(form: Form, tmp_path: Path):
    """Three changes of process: each is one break, reported, and never an invalid request."""
    bodies, reasons = _alternate(form, [str(tmp_path / "one.db"), str(tmp_path / "two.db")])
    broken = {violation.at for violation in judge.check(bodies, mode=form.strategy)}
    assert broken == {3, 6, 9}
    assert [reason for reason in reasons if reason not in (None, "tools_grew", "first_request")]


def _alternate(form: Form, paths: list[str]) -> tuple[list[Any], list[Any]]:
    context = multiprocessing.get_context("spawn")
    pairs = [(context.Queue(), context.Queue()) for _ in paths]
    workers = [
        context.Process(target=_turns, args=(path, form.dialect, form.strategy, inbox, outbox), daemon=True)
        for path, (inbox, outbox) in zip(paths, pairs, strict=True)
    ]
    for worker in workers:
        worker.start()
    visible: list[Any] = []
    bodies: list[Any] = []
    reasons: list[Any] = []
    for at, name in enumerate((TOOL, "photo_list", "parcel_rename", "event_list")):
        inbox, outbox = pairs[at % 2]
        inbox.put((visible, name, f"seed {at}"))
        sent, visible, broke = outbox.get(timeout=60)
        bodies += sent
        reasons += broke
    for inbox, _ in pairs:
        inbox.put(None)
    for worker in workers:
        worker.join(20)
        assert worker.exitcode == 0
    return bodies, reasons


@everywhere
def test_a_corrupt_file_is_set_aside_with_a_warning(form: Form, tmp_path: Path, caplog: pytest.LogCaptureFixture):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"this is no database" * 100)
    talk = form.talk()
    talk.restart(ledger=SqliteLedger(path))
    talk.load(TOOL)
    assert talk.report.prefix.broke == "ledger_unavailable"
    assert any("ledger" in text for text in talk.report.warnings)
    assert any("ledger" in entry.message for entry in caplog.records)
    assert path.read_bytes().startswith(b"this is no database"), "left as it is, for who knows what it was"


def test_a_row_of_another_version_is_no_reason_to_fail(tmp_path: Path):
    ledger = SqliteLedger(tmp_path / "ledger.db")
    talk = Form(CHAT, "resend", False).talk()
    talk.restart(ledger=ledger)
    talk.user("go")
    talk.send(Move(text="ok"))
    ledger._opened().execute("UPDATE loadpoint_record SET body = '{\"odd\": 1}'")
    talk.restart(ledger=ledger)
    talk.user("again")
    assert talk.text(talk.send(Move(text="fine"))) == "fine"
    assert talk.report.prefix.broke == "ledger_unavailable"
    ledger.close()


@unstreamed
def test_a_store_that_is_down_is_asked_once_a_call(form: Form):
    class Down:
        asked = 0

        def find(self, key: str) -> list[Record]:
            self.asked += 1
            raise TimeoutError("the store is down")

        def add(self, key: str, record: Record) -> None:
            raise TimeoutError("the store is down")

        def close(self) -> None:
            pass

    talk = form.talk()
    down = Down()
    talk.restart(ledger=down)
    for at in range(6):
        talk.user(f"turn {at}")
        talk.send(Move(text="ok"))
    assert down.asked <= 2 * 5


# ------------------------------------------------------------------------------------- conversations that look alike


@pytest.mark.parametrize("form", [Form(CHAT, "resend", False), Form(CHAT, "resend", True)], ids=form_id)
@settings(max_examples=25)
@given(data=st.data())
def test_conversations_with_the_same_ids_and_words_are_never_mixed(form: Form, data: st.DataObject):
    """One session, ids like `call_0`, the same few words: each conversation only ever sends its own rounds."""
    first = form.talk(names=NAMES[:8])
    others = [
        Conversation(form.dialect, first.policy, stream=form.stream, session=first.session, names=NAMES[:8]) for _ in "ab"
    ]
    talks = [first, *others]
    own: list[set[str]] = [set() for _ in talks]
    counts = [0] * len(talks)
    for _ in range(data.draw(st.integers(3, 9))):
        at = data.draw(st.integers(0, len(talks) - 1))
        talk = talks[at]
        query = f"{data.draw(st.sampled_from(NAMES[:6]))} c{at}n{counts[at]}"
        counts[at] += 1
        own[at].add(query)
        talk.user(data.draw(st.sampled_from(["yes", "go on"])))
        moves = [Move(calls=[("ToolSearch", {"query": query}, "call_0")])] if data.draw(st.booleans()) else []
        if data.draw(st.booleans()):
            talk.answer(talk.send(*moves, Move(calls=[(TOOL, {"id": 1}, "call_1")])))
            moves = []
        talk.send(*moves, Move(text="done"))
    alike = [{json.dumps(talk.visible[:n]) for n in range(2, len(talk.visible) + 1, 2)} for talk in talks]
    for at, talk in enumerate(talks):
        sent = json.dumps(talk.bodies)
        for other, queries in enumerate(own):
            if other != at and not alike[at] & alike[other]:  # what looks the same to the last byte is the same
                assert not [query for query in queries if f"{query}\\" in sent], f"{at} sent a round of {other}"


@everywhere
def test_many_conversations_with_one_wording_all_keep_their_rounds(form: Form):
    """A popular exchange ("yes", "Done.") must not push out the rounds of conversations that are still running."""
    first = form.talk()
    talks = [first]
    talks += [Conversation(form.dialect, first.policy, stream=form.stream, session=first.session) for _ in range(24)]
    for at, talk in enumerate(talks):
        talk.user(f"conversation {at}")
        talk.send(Move(text="Hello."))
        talk.user("yes")
        talk.send(Move(calls=[search(f"{NAMES[at]}")]), Move(text="Done."))
    for talk in talks:
        talk.user("and now?")
        talk.send(Move(text="Nothing."))
        assert not judge.check(talk.bodies, mode=form.strategy)


@everywhere
def test_a_named_conversation_is_not_taken_for_another(form: Form):
    first = form.talk()
    other = Conversation(form.dialect, first.policy, stream=form.stream, session=first.session)
    for talk, name in ((first, "one"), (other, "two")):
        talk.user("go")
        headers = {"x-loadpoint-conversation": name}
        talk.send(Move(calls=[search(f"invoice {name}")]), Move(text="Done."), headers=headers)
    for talk, name, foreign in ((first, "one", "two"), (other, "two", "one")):
        talk.user("again")
        talk.send(Move(text="ok"), headers={"x-loadpoint-conversation": name})
        assert f"invoice {name}" in json.dumps(talk.body)
        assert f"invoice {foreign}" not in json.dumps(talk.body)


@everywhere
@pytest.mark.requirement("O18")
def test_a_copy_of_the_session_starts_small(form: Form):
    """A subagent shares the session and nothing of the conversation."""
    talk = form.talk()
    talk.load(TOOL)
    sub = Conversation(form.dialect, talk.policy, stream=form.stream, session=talk.session)
    sub.user("a task of its own")
    sub.send(Move(text="ok"))
    assert sub.in_context() == ["ToolSearch"]
    assert sub.declared() == []


@pytest.mark.parametrize("stream", [False, True])
def test_users_who_say_the_same_words_never_see_each_others_searches(stream: bool):
    """One key, one session, two system prompts: what a search for Alice asked is not sent for Bob."""
    form = Form("anthropic.messages", "native", stream)
    first = form.talk(extra={"system": "You help Alice."})
    other = Conversation(form.dialect, first.policy, stream=stream, session=first.session)
    other.extra = {"system": "You help Bob."}
    other.user("go")
    other.send(Move(text="Done."))
    first.user("go")
    first.send(Move(calls=[search("invoice of Alice")]), Move(text="Done."))
    for talk in (other, first):
        talk.user("again")
        talk.send(Move(text="ok"))
    assert "Alice" not in json.dumps(other.bodies)
    assert "invoice of Alice" in json.dumps(first.body)
    assert first.reports[-2].prefix.stable, "Bob, who has a record of his own"


@pytest.mark.parametrize("stream", [False, True])
def test_ids_that_hold_the_tools_name_are_not_taken_for_random_ones(stream: bool):
    first = Form(CHAT, "resend", stream).talk()
    other = Conversation(CHAT, first.policy, stream=stream, session=first.session)
    real = [(TOOL, {"id": 1}, f"functions.{TOOL}:0")]
    for talk, moves in ((first, [Move(calls=[search("invoice one")])]), (other, [])):
        talk.user(f"start {len(moves)}")
        talk.send(Move(text="Hello."))
        talk.user("go")
        talk.answer(talk.send(*moves, Move(calls=real)))
    other.visible = other.visible[2:]  # the beginning was cut off
    other.restart(ledger=first.session.ledger)
    other.send(Move(text="ok"))
    assert "invoice one" not in json.dumps(other.body)


@everywhere
def test_a_history_whose_beginning_was_cut_off_keeps_the_rounds_of_its_calls(form: Form):
    """A sliding window: turns with random ids are known by themselves."""
    talk = form.talk()
    for name in (TOOL, "photo_list"):
        talk.load(name)
    talk.visible = talk.visible[4:]
    talk.user("again")
    talk.send(Move(text="ok"))
    assert [tool.name for tool in talk.report.loaded] == ["photo_list"]
    assert len(talk.results()) == 2, "the search and the call"
    assert talk.report.prefix.broke is not None


@everywhere
def test_a_system_prompt_with_a_clock_in_it_loses_no_rounds_with_random_ids(form: Form):
    if form.dialect == CHAT:
        pytest.skip("there the system prompt is a message")
    talk = form.talk(extra={"system": "It is 10:00."})
    talk.load(TOOL)
    talk.extra = {"system": "It is 10:01."}
    talk.user("again")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke == "system_changed"
    assert [(tool.name, tool.why) for tool in talk.report.loaded] == [(TOOL, "search")]


@everywhere
def test_a_clock_in_the_system_prompt_loses_no_search_either(form: Form):
    """Nothing here has a random id: one search, answered in text, under a prompt that changes with every request."""
    if form.dialect == CHAT:
        pytest.skip("there the system prompt is a message")
    talk = form.talk(extra={"system": "It is 10:00."})
    talk.user("is there something for invoices?")
    talk.send(Move(calls=[search(TOOL)]), Move(text="yes, there is"))
    talk.extra = {"system": "It is 10:01."}
    talk.user("use it")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.broke == "system_changed"
    assert [tool.name for tool in talk.report.loaded][:1] == [TOOL]
