"""Ledgers: bounded, shared, broken; and conversations that look alike are never mixed."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path

import pytest
from tests.bench import judge
from tests.core.conversation import CHAT, Form, everywhere, unstreamed
from tests.core.ledgers import TOOL, alternate, record, state

from loadpoint import InProcessLedger, SqliteLedger
from loadpoint._ledger import Record
from loadpoint.emulator import Move

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
        except BaseException as error:  # noqa: BLE001 - whatever happens in a thread is for the test to see
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
    steps = [b - a for a, b in pairwise(held[1:])]
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


@unstreamed
@pytest.mark.requirement("N35")
def test_two_processes_take_turns_in_one_conversation_without_a_break(form: Form, tmp_path: Path):
    bodies, reasons = alternate(form, [str(tmp_path / "ledger.db")] * 2)
    assert not judge.check(bodies, mode=form.strategy)
    assert set(reasons) <= {"first_request", None, "tools_grew"}


@unstreamed
def test_two_processes_without_a_shared_ledger_break_at_each_change(form: Form, tmp_path: Path):
    """Three changes of process: each is one break, reported, and never an invalid request."""
    bodies, reasons = alternate(form, [str(tmp_path / "one.db"), str(tmp_path / "two.db")])
    broken = {violation.at for violation in judge.check(bodies, mode=form.strategy)}
    assert broken == {3, 6, 9}
    assert [reason for reason in reasons if reason not in (None, "tools_grew", "first_request")]


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
