"""What every ledger does alike: in the process, in a file, in Redis."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest
from tests.bench import judge
from tests.core.conversation import CHAT, MESSAGES, Form, everywhere, form_id
from tests.core.ledgers import TOOL, alternate, record, state
from tests.servers.redis_server import RedisServer

from loadpoint import InProcessLedger, RedisLedger, SqliteLedger
from loadpoint._ledger import Ledger
from loadpoint._ledger._memory import CANDIDATES
from loadpoint.emulator import Move

Open = Callable[[], Ledger]
KINDS = ("process", "file", "redis")
_tenants = count()


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opened(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Open]:
    """Opens the same store again and again; the one in the process is always the same object."""
    with ExitStack() as stack:
        own = InProcessLedger()
        tenant = f"tenant {next(_tenants)}"

        def again() -> Ledger:
            made: Ledger = own
            if kind == "file":
                made = SqliteLedger(tmp_path / "ledger.db")
            elif kind == "redis":
                server: RedisServer = request.getfixturevalue("redis_server")
                made = RedisLedger(server.url, tenant=tenant)
            stack.callback(made.close)
            return made

        yield again


def test_it_is_a_ledger(opened: Open):
    assert isinstance(opened(), Ledger)


def test_nothing_is_under_a_key_that_was_never_written(opened: Open):
    assert list(opened().find("never")) == []


def test_a_record_comes_back_as_it_was_written(opened: Open):
    tool = {"name": "a", "description": "Zürich 東京 \U0001f600", "parameters": {"z": 1, "a": [1.5, None, True]}}
    full = state(
        load_point="tool_reference",
        tools=(tool, tool),
        declared=("a",),
        definitions=(tool,),
        loaded=("a", "b"),
        tolerant=True,
        gone=("c",),
        pushed=3,
        model="m",
        catalog="# On-demand tools\n" * 200,
    )
    turn = ({"role": "assistant", "content": [{"z": "\ud800", "a": "x" * 5_000}]}, {"role": "tool", "content": ""})
    written = record(1, of=full)
    written = type(written)("chain", "sent", turn, ({"pending": 1},), full, "id", 17)
    opened().add("key", written)
    (found,) = opened().find("key")
    assert found == written
    assert [list(message) for message in found.turn] == [list(message) for message in turn], "in their own order"
    assert list(found.state.tools[0]["parameters"]) == ["z", "a"]


def test_a_key_has_a_handful_of_records_the_newest_first(opened: Open):
    ledger = opened()
    for number in range(30):
        ledger.add("key", record(number))
    found = [each.sent_before for each in opened().find("key")]
    assert found == [f"sent {number}" for number in range(29, 29 - CANDIDATES, -1)]
    assert list(ledger.find("another key")) == []


def test_one_record_stands_under_several_keys(opened: Open):
    ledger, one = opened(), record(1)
    for key in ("a", "b", "c"):
        ledger.add(key, one)
    assert [list(opened().find(key)) for key in ("a", "b", "c")] == [[one]] * 3


def test_threads_may_share_it(opened: Open):
    ledger = opened()
    faults: list[BaseException] = []

    def work(base: int) -> None:
        try:
            for number in range(25):
                ledger.add(f"key {number % 5}", record(100 * base + number))
                assert 0 < len(ledger.find(f"key {number % 5}")) <= CANDIDATES
        except BaseException as error:  # noqa: BLE001 - whatever happens in a thread is for the test to see
            faults.append(error)

    threads = [threading.Thread(target=work, args=(base,)) for base in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []


def test_it_can_be_used_after_it_was_closed(opened: Open):
    ledger = opened()
    ledger.add("key", record(1))
    ledger.close()
    ledger.close()
    ledger.add("key", record(2))
    assert ledger.find("key")[0] == record(2)


@everywhere
def test_a_conversation_goes_on_in_another_session(form: Form, opened: Open):
    talk = form.talk()
    talk.restart(ledger=opened())
    for name in (TOOL, "photo_list"):
        talk.load(name)
        talk.restart(ledger=opened())
    talk.user("and now?")
    talk.send(Move(text="nothing more"))
    assert not judge.check(talk.bodies, mode=form.strategy)
    assert {report.prefix.broke for report in talk.reports} <= {"first_request", None, "tools_grew"}


@pytest.mark.requirement("N35")
@pytest.mark.parametrize("form", [Form(CHAT, "resend", False), Form(MESSAGES, "native", False)], ids=form_id)
def test_a_conversation_hops_between_two_processes_with_its_prefix(form: Form, redis_server: RedisServer):
    redis_server.client.flushall()
    bodies, reasons = alternate(form, [redis_server.url] * 2)
    assert not judge.check(bodies, mode=form.strategy)
    assert set(reasons) <= {"first_request", None, "tools_grew"}
