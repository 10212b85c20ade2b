"""The ledger in Redis: what is stored, for how long, and what a call costs when the server is not well.

Over 400 lines because servers that fail in every way share their set-up.
"""

from __future__ import annotations

import json
import logging
import multiprocessing
import re
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.core.conversation import CHAT, Form, everywhere, unstreamed
from tests.core.ledgers import TOOL, record, state
from tests.servers.redis_server import Between, RedisServer, free_port, until

from loadpoint import LoadpointError, PolicyError, RedisLedger
from loadpoint._ledger._memory import CANDIDATES
from loadpoint._ledger._packed import unpacked, unpacked_state
from loadpoint.emulator import Move

redis = pytest.importorskip("redis", reason="the package redis is not installed: the extra loadpoint[redis]")
TIMEOUT = 0.5
_tenants = count()


@pytest.fixture
def tenant() -> str:
    return f"someone {next(_tenants)}"


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A server that a test may break."""
    server = RedisServer(tmp_path)
    yield server
    server.stop()


def timed(ledger: RedisLedger, key: str = "key") -> float:
    """Seconds until a look-up fails."""
    before = time.monotonic()
    with pytest.raises(redis.exceptions.RedisError):
        ledger.find(key)
    return time.monotonic() - before


def refused(ledger: RedisLedger) -> bool:
    """Whether a look-up fails without asking the server."""
    with pytest.raises(redis.exceptions.RedisError) as caught:
        ledger.find("key")
    return "not asked for" in str(caught.value)


def keys(server: RedisServer) -> list[str]:
    return sorted(key.decode() for key in server.client.keys("*"))


# --------------------------------------------------------------------------------------------- what is stored


@unstreamed
def test_what_is_stored_holds_no_credential_and_keys_are_digests(form: Form, own_server: RedisServer):
    ledger = RedisLedger(own_server.url, tenant="a tenant's own name")
    talk = form.talk()
    talk.headers = {"authorization": "Bearer sk-very-secret", "x-api-key": "sk-very-secret"}
    talk.restart(ledger=ledger)
    talk.load(TOOL)
    assert keys(own_server)
    for key in keys(own_server):
        assert re.fullmatch(r"loadpoint:\{[0-9a-f]{32}\}:[rs]:[0-9a-f]{32}", key), key
        stored = own_server.client.lrange(key, 0, -1) if ":r:" in key else [own_server.client.get(key)]
        for value in stored:
            text = str(unpacked(value) if ":r:" in key else unpacked_state(value))
            assert "sk-very-secret" not in text
            assert "a tenant's own name" not in text
    ledger.close()


def test_one_tenant_never_finds_what_another_has(redis_server: RedisServer, tenant: str):
    one, other = (RedisLedger(redis_server.url, tenant=name) for name in (tenant, tenant + "!"))
    one.add("key", record(1))
    assert list(other.find("key")) == []
    other.add("key", record(2))
    assert list(one.find("key")) == [record(1)]
    one.close()
    other.close()


def test_tenants_can_share_a_connection(redis_server: RedisServer, tenant: str):
    one = RedisLedger(redis_server.url, tenant=tenant)
    other = one.for_tenant(tenant + "!")
    one.add("key", record(1))
    other.add("key", record(2))
    assert list(one.find("key")) == [record(1)]
    assert list(other.find("key")) == [record(2)]
    assert other._link is one._link
    assert list(other.for_tenant(tenant).find("key")) == [record(1)]
    with pytest.raises(PolicyError, match="tenant"):
        one.for_tenant("")
    one.close()


def test_what_is_not_used_is_gone_after_its_time(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant, ttl_seconds=0.3)
    ledger.add("key", record(1))
    assert {0 < own_server.client.pttl(key) <= 300 for key in keys(own_server)} == {True}
    until(lambda: not keys(own_server))
    assert list(ledger.find("key")) == []
    ledger.close()


def test_what_is_read_is_kept_for_another_time(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant, ttl_seconds=60)
    ledger.add("key", record(1))
    for key in keys(own_server):
        own_server.client.pexpire(key, 5_000)
    ledger.find("key")
    assert all(own_server.client.pttl(key) > 50_000 for key in keys(own_server))
    ledger.close()


def test_a_key_holds_a_handful_and_one_state(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant)
    shared = state(tools=({"name": "a", "description": "words " * 2_000},))
    for number in range(300):
        ledger.add("key", record(number, of=shared))
    assert len(keys(own_server)) == 2
    assert sum(own_server.client.memory_usage(key) for key in keys(own_server)) < 10_000
    ledger.close()


def test_a_write_that_came_twice_is_there_once(redis_server: RedisServer, tenant: str):
    """As after an answer that was lost; a second record of one turn would make it ambiguous."""
    ledger = RedisLedger(redis_server.url, tenant=tenant)
    for text in ("x", "x", "another answer to the same request"):
        ledger.add("key", record(1, text=text))
    ledger.add("key", record(2))
    assert [each.sent_before for each in ledger.find("key")] == ["sent 2", "sent 1"]
    assert ledger.find("key")[1].turn[0]["content"] == "another answer to the same request"
    ledger.close()


def test_what_is_too_large_is_not_stored(redis_server: RedisServer, tenant: str):
    ledger = RedisLedger(redis_server.url, tenant=tenant, max_value_bytes=1_000)
    with pytest.raises(ValueError, match="max_value_bytes"):
        ledger.add("key", record(1, text=json.dumps(list(range(3_000)))))
    with pytest.raises(ValueError, match="max_value_bytes"):
        ledger.add("key", record(1, of=state(catalog=json.dumps(list(range(3_000))))))
    assert list(ledger.find("key")) == []
    ledger.close()


def test_a_state_that_the_server_had_no_room_for_is_written_again(own_server: RedisServer, tenant: str):
    ledger, stranger = (RedisLedger(own_server.url, tenant=tenant) for _ in range(2))
    ledger.add("key", record(1))
    own_server.client.delete(*[key for key in keys(own_server) if ":s:" in key])
    assert list(stranger.find("key")) == [], "no error: the server may throw away what it likes"
    ledger.add("key", record(2))
    assert list(stranger.find("key")) == [record(2), record(1)]
    ledger.close()
    stranger.close()


def test_a_value_of_another_version_is_not_there(own_server: RedisServer, tenant: str):
    """While a fleet is updated, two versions of the library share a server."""
    ledger = RedisLedger(own_server.url, tenant=tenant)
    ledger.add("key", record(1))
    (name,) = [key for key in keys(own_server) if ":r:" in key]
    own_server.client.lpush(name, b"2 what a later version writes")
    assert list(ledger.find("key")) == [record(1)]
    (name,) = [key for key in keys(own_server) if ":s:" in key]
    own_server.client.set(name, b"2 what a later version writes")
    again = RedisLedger(own_server.url, tenant=tenant)
    assert list(again.find("key")) == []
    ledger.close()
    again.close()


@pytest.mark.parametrize(
    "value", [b"1", b"1" + b"x" * 33, b"1" + b"x" * 32 + b"z\x78\x9c\x00", b"1" + b"x" * 32 + b"j{"]
)
def test_a_broken_value_is_no_reason_to_fail(own_server: RedisServer, value: bytes):
    ledger = RedisLedger(own_server.url, tenant="one")
    talk = Form(CHAT, "resend", False).talk()
    talk.restart(ledger=ledger)
    talk.user("go")
    talk.send(Move(text="ok"))
    for key in keys(own_server):
        if ":r:" in key:
            own_server.client.delete(key)
            own_server.client.lpush(key, value)
    talk.restart(ledger=ledger)
    talk.user("again")
    assert talk.text(talk.send(Move(text="fine"))) == "fine"
    assert talk.report.prefix.broke in ("ledger_unavailable", "unknown_predecessor")
    ledger.close()


def _write(url: str, base: int) -> None:
    ledger = RedisLedger(url, tenant="one")
    for number in range(60):
        ledger.add(f"key {number % 3}", record(1_000 * base + number, text="y" * 700))
        assert ledger.find(f"key {number % 3}")
    ledger.close()


def test_processes_that_write_at_once_leave_whole_records(own_server: RedisServer):
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_write, args=(own_server.url, base), daemon=True) for base in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    ledger = RedisLedger(own_server.url, tenant="one")
    for number in range(3):
        found = ledger.find(f"key {number}")
        assert len({each.sent_before for each in found}) == len(found) == CANDIDATES
    assert len([key for key in keys(own_server) if ":s:" in key]) == 1
    ledger.close()


# ------------------------------------------------------------------------------------- a server that is not well


def test_a_server_that_is_not_there_costs_little_and_then_nothing():
    ledger = RedisLedger(f"redis://127.0.0.1:{free_port()}", tenant="one", rest_seconds=30)
    assert timed(ledger) < TIMEOUT + 0.1
    with pytest.raises(redis.exceptions.ConnectionError, match=r"not asked for .* s more, after: ConnectionError"):
        ledger.add("key", record(1))
    ledger.close()


def test_a_server_that_says_nothing_costs_little():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ledger = RedisLedger(f"redis://127.0.0.1:{silent.getsockname()[1]}", tenant="one")
        assert timed(ledger) < TIMEOUT + 0.1
        assert refused(ledger)
        ledger.close()


def test_it_is_asked_again_after_the_rest_by_one_thread(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant, rest_seconds=0.2)
    ledger.add("key", record(1))
    own_server.signal(signal.SIGSTOP)
    assert timed(ledger) < TIMEOUT + 0.1
    assert refused(ledger)
    time.sleep(0.25)
    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(lambda _: refused(ledger), range(4))) == [False, True, True, True], "one asks again"
    assert refused(ledger)
    own_server.signal(signal.SIGCONT)
    time.sleep(0.25)
    assert list(ledger.find("key")) == [record(1)]
    assert list(ledger.find("key")) == [record(1)]
    ledger.close()


@everywhere
def test_a_call_goes_on_without_the_server(form: Form, caplog: pytest.LogCaptureFixture):
    ledger = RedisLedger(f"redis://:hunter2@127.0.0.1:{free_port()}", tenant="one")
    talk = form.talk()
    talk.restart(ledger=ledger)
    before = time.monotonic()
    talk.load(TOOL)
    assert time.monotonic() - before < TIMEOUT + 1.5
    assert talk.report.prefix.broke == "ledger_unavailable"
    assert any("the ledger could not be read (ConnectionError" in text for text in talk.report.warnings)
    assert any("ledger cannot be written" in entry.message for entry in caplog.records)
    assert not any("hunter2" in text for text in (caplog.text, *talk.report.warnings))
    ledger.close()


def test_a_server_that_was_started_again_is_found_at_once(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant)
    ledger.add("key", record(1))
    own_server.stop()
    own_server.start()
    ledger.add("key", record(2))  # its connection, its script and the state are gone
    assert list(ledger.find("key")) == [record(2)]
    ledger.close()


@pytest.mark.parametrize("resets", [1, 2, 3])
def test_a_reset_connection_is_tried_again(redis_server: RedisServer, tenant: str, resets: int):
    between = Between(redis_server.port)
    ledger = RedisLedger(between.url, tenant=tenant)
    ledger.add("key", record(1))
    between.resets = resets
    ledger.add("key", record(2))
    between.resets = resets
    assert list(ledger.find("key")) == [record(2), record(1)]
    assert not between.resets
    ledger.close()
    between.close()


@pytest.mark.parametrize(
    "said",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-READONLY You can't write against a read only replica.\r\n",
        b"-ERR Error running script: @user_script: 1: -READONLY You can't write against a read only replica.\r\n",
        b"-MASTERDOWN Link with MASTER is down\r\n",
        b"-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
    ],
)
def test_what_passes_by_itself_is_tried_again(redis_server: RedisServer, tenant: str, said: bytes):
    between = Between(redis_server.port)
    ledger = RedisLedger(between.url, tenant=tenant)
    ledger.add("key", record(1))
    between.says = [said] * 2
    ledger.add("key", record(2))
    between.says = [said] * 2
    assert list(ledger.find("key")) == [record(2), record(1)]
    assert not between.says
    between.says = [said] * 10_000
    assert timed(ledger) < TIMEOUT + 0.1, "it does not pass"
    assert refused(ledger)
    ledger.close()
    between.close()


def test_what_is_wrong_with_one_operation_is_no_reason_to_rest(own_server: RedisServer, tenant: str):
    ledger = RedisLedger(own_server.url, tenant=tenant)
    ledger.add("key", record(1))
    (name,) = [key for key in keys(own_server) if ":r:" in key]
    own_server.client.set(name, "of another kind")
    for _ in range(2):
        with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
            ledger.find("key")
    ledger.add("another", record(2))
    assert list(ledger.find("another")) == [record(2)]
    ledger.close()


def test_a_password_that_is_refused_is_not_tried_again(tmp_path: Path):
    server = RedisServer(tmp_path, "--requirepass", "right")
    ledger = RedisLedger(f"redis://:wrong@127.0.0.1:{server.port}", tenant="one")
    with pytest.raises(redis.exceptions.AuthenticationError):
        ledger.find("key")
    assert refused(ledger)
    right = RedisLedger(f"redis://:right@127.0.0.1:{server.port}", tenant="one")
    right.add("key", record(1))
    assert list(right.find("key")) == [record(1)]
    assert "right" not in repr(right)
    right.close()
    ledger.close()
    server.stop()


def test_a_replica_can_be_read_and_becomes_the_server_that_is_written_to(own_server: RedisServer, tmp_path: Path):
    writer = RedisLedger(own_server.url, tenant="one")
    writer.add("key", record(1))
    (folder := tmp_path / "replica").mkdir()
    replica = RedisServer(folder, "--replicaof", "127.0.0.1", str(own_server.port))
    until(lambda: replica.client.info("replication")["master_link_status"] == "up")
    ledger = RedisLedger(replica.url, tenant="one", rest_seconds=0.05)
    assert list(ledger.find("key")) == [record(1)]
    with pytest.raises(redis.exceptions.ResponseError, match=r"(?i)read.?only"):
        ledger.add("key", record(2))
    own_server.stop()
    replica.client.replicaof("NO", "ONE")
    time.sleep(0.1)
    ledger.add("key", record(2))
    assert list(ledger.find("key")) == [record(2), record(1)]
    for each in (writer, ledger):
        each.close()
    replica.stop()


# ---------------------------------------------------------------------------------------------------- settings


def test_a_client_of_ones_own_can_be_given(redis_server: RedisServer, tenant: str):
    client = redis_server.client
    ledger = RedisLedger(client, tenant=tenant)
    ledger.add("key", record(1))
    ledger.close()
    assert client.ping(), "it is not ours to close"
    assert list(RedisLedger(redis_server.url, tenant=tenant).find("key")) == [record(1)]
    client.close()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"url": "localhost:6379"}, "url"),
        ({"url": "http://localhost"}, "url"),
        ({"url": object()}, "url"),
        ({"tenant": " "}, "tenant"),
        ({"tenant": None}, "tenant"),
        ({"ttl_seconds": 0}, "ttl_seconds"),
        ({"ttl_seconds": "1h"}, "ttl_seconds"),
        ({"timeout_seconds": -1}, "timeout_seconds"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds"),
        ({"rest_seconds": True}, "rest_seconds"),
        ({"max_value_bytes": float("inf")}, "max_value_bytes"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(given: dict[str, Any], named: str):
    with pytest.raises(PolicyError, match=f"RedisLedger.{named}"):
        RedisLedger(**{"url": "redis://127.0.0.1", "tenant": "one", **given})


def test_the_address_is_not_told_when_it_is_wrong():
    with pytest.raises(PolicyError) as caught:
        RedisLedger("http://:hunter2@127.0.0.1", tenant="one")
    assert "hunter2" not in str(caught.value)


def test_a_client_that_decodes_is_refused(redis_server: RedisServer):
    client = redis.Redis(port=redis_server.port, decode_responses=True)
    with pytest.raises(PolicyError, match="decode_responses"):
        RedisLedger(client, tenant="one")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "redis" else object())
    with pytest.raises(LoadpointError, match=r"loadpoint\[redis\]"):
        RedisLedger("redis://127.0.0.1", tenant="one")


def test_making_one_opens_nothing(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG):
        RedisLedger(f"redis://127.0.0.1:{free_port()}", tenant="one").close()
    assert not caplog.records
