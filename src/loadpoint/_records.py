"""What is remembered of a call that is over, and under which keys it is found again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._json import Json, digest
from ._ledger._record import Record
from ._replay import group_level, record_keys

if TYPE_CHECKING:
    from ._engine import Call


def records(call: Call, result: Json) -> list[tuple[str, Record]]:
    """The records of a call under their keys: its turn, the reply's ids, and the conversation that the server holds."""
    plan, dialect = call.plan, call.dialect
    reply = dialect.reply(result)
    if reply is None:  # of a shape that nobody knows: there is no turn to remember
        return []
    views = [*plan.transcript.prefill_views, *map(dialect.view, dialect.assistant(result, ()))]
    level = group_level(views)
    record = Record(
        chain=digest(plan.transcript.chain, level),
        sent_before=plan.transcript.sent_before,
        turn=(*plan.transcript.prefill, *call.turn),
        pending=call.pending,
        state=call.state(),
        reply_id=reply.id,
        context_tokens=call.report.tokens.context,
    )
    out = [(key, record) for key in record_keys(plan.scope, plan.transcript, views, level)]
    if dialect.continues(call.request.body):
        ids = {call.visible_id, record.reply_id} - {None, ""}
        out += [(digest(plan.scope, "reply", str(i)), record) for i in sorted(map(str, ids))]
        last = dialect.last_item(result)
        out += [] if last is None else [(digest(plan.scope, "item", last), record)]
    held = dialect.held(call.request.body)
    if held is not None and held.conversation is not None:
        out.append((digest(plan.scope, "conversation", held.conversation), record))
    return out
