"""Ledgers: where the rounds that a caller did not see are remembered, so that they can be sent again byte for byte."""

from __future__ import annotations

from ._memory import InProcessLedger
from ._record import Ledger, Record, State
from ._redis import RedisLedger
from ._sqlite import SqliteLedger

__all__ = ["InProcessLedger", "Ledger", "Record", "RedisLedger", "SqliteLedger", "State"]
