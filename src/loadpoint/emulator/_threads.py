"""Message threads: conversations that the service holds, so that a request sends only what is new."""

from __future__ import annotations

from .._json import Json, as_list, as_object
from ._dialect import Asked
from ._memory import Held

_HELD = ("system", "tools")


def resolve(asked: Asked) -> None:
    """Puts the held history before the messages of a request that continues a thread.

    What cannot be continued is left as it is, and the rules reject it.
    """
    thread = as_object(asked.body.get("thread")) or {}
    held = asked.memory.held.get(str(thread.get("previous_message_id")))
    if thread.get("type") != "continue" or held is None or held.continued:
        return
    messages = [*as_list(held.body.get("messages")), *as_list(asked.body.get("messages"))]
    repeated = {name: asked.body[name] for name in _HELD if name in asked.body}
    kept = {name: held.body[name] for name in _HELD if name in held.body}
    asked.body = {**asked.body, **kept, "messages": messages}
    asked.repeated = repeated
    asked.held = held.body


def remember(asked: Asked, reply: Json) -> None:
    """Holds the conversation under the id of `reply`, if the request is on a thread and was not refused."""
    thread = as_object(asked.body.get("thread"))
    if thread is None or reply["stop_reason"] == "refusal":
        return
    before = asked.memory.held.get(str(thread.get("previous_message_id")))
    if before is not None:
        before.continued = True
    turn = {"role": "assistant", "content": reply["content"]}
    asked.memory.held[reply["id"]] = Held({**asked.body, "messages": [*as_list(asked.body.get("messages")), turn]})
