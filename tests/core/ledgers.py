"""What tests of ledgers share: records, and a conversation whose turns are taken by several processes."""

from __future__ import annotations

import multiprocessing
from typing import Any

from tests.core.conversation import Form

from loadpoint import RedisLedger, SqliteLedger
from loadpoint._ledger import Record, State

TOOL = "invoice_export"


def state(**more: Any) -> State:
    """A state with these fields."""
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
    """A record that differs from those of other numbers."""
    return Record(f"chain {number}", f"sent {number}", ({"role": "assistant", "content": text},), (), of or state())


def _turns(path: str, dialect: str, strategy: str, model: str, inbox: Any, outbox: Any) -> None:
    """Another process: takes a history and a name, makes one turn, gives back what it sent and the history."""
    ledger = RedisLedger(path, tenant="one") if path.startswith("redis:") else SqliteLedger(path)
    while (order := inbox.get()) is not None:
        visible, name, seed = order
        talk = Form(dialect, strategy, False, model).talk()
        talk.server.seed = seed
        talk.restart(ledger=ledger)
        talk.visible = visible
        talk.load(name)
        outbox.put((talk.bodies, talk.visible, [report.prefix.broke for report in talk.reports]))
    ledger.close()


def alternate(form: Form, paths: list[str]) -> tuple[list[Any], list[Any]]:
    """One conversation of which the processes with these ledgers take turns: what was sent, and why a prefix broke."""
    context = multiprocessing.get_context("spawn")
    pairs = [(context.Queue(), context.Queue()) for _ in paths]
    workers = [
        context.Process(target=_turns, args=(path, form.dialect, form.strategy, form.model, inbox, outbox), daemon=True)
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
