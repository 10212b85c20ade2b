"""What the service keeps for the Responses API: responses, their items, and conversation objects."""

from __future__ import annotations

from collections.abc import Sequence

from .._json import Json, as_list, as_object, dumps, objects, parse_object
from ._dialect import Asked
from ._ids import Ids
from ._memory import Memory, Stored, Talk
from ._responses_paths import STORED, target
from ._responses_prompt import context, held, is_message, own, text_of
from ._rules import Broken, broken
from ._signature import seal, unseal

_PREFIXES = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "ctco_",
    "reasoning": "rs_",
    "tool_search_call": "tsc_",
    "tool_search_output": "tso_",
    "additional_tools": "at_",
    "compaction": "cmp_",
}


def item_id(ids: Ids, kind: str) -> str:
    """A new id for an item of that type."""
    return ids.make(_PREFIXES.get(kind, "item_"), 52).lower()


def resolve(asked: Asked) -> None:
    """Puts into `asked.held` the items that the service holds for the request, and its own with references resolved.

    What cannot be found is left as it is, and the rules reject it.
    """
    given = asked.body.get("input")
    own_items = [{"role": "user", "content": given}] if isinstance(given, str) else objects(given)
    asked.held = {
        "held": _before(asked),
        "own": [_resolved(item, asked.memory) for item in own_items],
    }


def missing(asked: Asked) -> Broken | None:
    """The rule that a path with the id of nothing breaks."""
    id_, item = target(asked.path)
    memory = asked.memory
    if asked.endpoint in STORED and id_ not in memory.responses:
        return broken("responses.response_not_found", id=id_)
    if not asked.endpoint.startswith("talk.") or asked.endpoint == "talk.create":
        return None
    talk = memory.talks.get(id_)
    if talk is None:
        return broken("responses.conversation_not_found", id=id_)
    if item and all(kept.get("id") != item for kept in talk.items):
        return broken("responses.conversation_item_not_found", id=item, conversation=id_)
    return None


def conversation_id(asked: Asked) -> str | None:
    """The id of the conversation object that the request names."""
    named = asked.body.get("conversation")
    described = as_object(named)
    if described is not None:
        named = described.get("id")
    return named if isinstance(named, str) else None


def remember(asked: Asked, reply: Json) -> None:
    """Keeps `reply` and what was sent for it, unless the request says `store: false`."""
    if asked.body.get("store") is False:
        return
    memory = asked.memory
    sent = [_kept(item, asked.ids) for item in own(asked)]
    output = objects(reply["output"])
    for item in [*sent, *output]:
        memory.items[str(item.get("id"))] = item
    reason: str | None = None
    for item in output:
        if item.get("type") == "reasoning":
            reason = str(item.get("id"))
        elif reason is not None:
            memory.reasons[str(item.get("id"))] = reason
            reason = None
    background = asked.body.get("background") is True
    memory.responses[reply["id"]] = Stored(reply, sent, [*held(asked), *sent, *output], background)
    talk = memory.talks.get(conversation_id(asked) or "")
    if talk is not None:
        talk.items += [*sent, *output]


def unfinished(reply: Json) -> Json:
    """What a background response looks like before it has run."""
    return {**reply, "status": "queued", "output": [], "usage": None, "completed_at": None}


def open_talk(asked: Asked) -> Json:
    """A new conversation object with the items of the request."""
    id_ = asked.ids.make("conv_", 53).lower()
    record = {
        "id": id_,
        "object": "conversation",
        "created_at": 1_790_000_000,
        "metadata": as_object(asked.body.get("metadata")) or {},
    }
    talk = Talk(record)
    asked.memory.talks[id_] = talk
    add_items(asked, talk)
    return record


def add_items(asked: Asked, talk: Talk) -> list[Json]:
    """Appends the request's `items` to a conversation; they come back as they are kept."""
    kept = [_kept(item, asked.ids) for item in objects(asked.body.get("items"))]
    talk.items += kept
    for item in kept:
        asked.memory.items[str(item.get("id"))] = item
    return kept


def listing(items: Sequence[Json], query: dict[str, str]) -> Json:
    """A page of items, newest first unless the query says `order=asc`."""
    ordered = list(items) if query.get("order") == "asc" else list(reversed(items))
    ids = [str(item.get("id")) for item in ordered]
    if query.get("after") in ids:
        ordered = ordered[ids.index(query["after"]) + 1 :]
    limit = int(query["limit"]) if query.get("limit", "").isdigit() else 20
    page = ordered[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": str(page[0].get("id")) if page else "",
        "last_id": str(page[-1].get("id")) if page else "",
        "has_more": len(ordered) > limit,
    }


def compacted(asked: Asked) -> list[Json]:
    """The items that stand for the conversation after a compaction: the user's messages, and one sealed summary.

    Loaded and added tools are not among them: they have to be loaded again.
    """
    items = context(asked)
    users = [_kept(item, asked.ids) for item in items if is_message(item) and item.get("role") == "user"]
    said = [text_of(item.get("content")) for item in items if is_message(item) and item.get("role") == "assistant"]
    called = [str(item.get("name")) for item in items if item.get("type") in ("function_call", "custom_tool_call")]
    summary = dumps({"said": [text[:80] for text in said], "called": called})
    sealed = seal(summary, asked.ids.text(12))
    return [*users, {"id": item_id(asked.ids, "compaction"), "type": "compaction", "encrypted_content": sealed}]


def summary_of(item: Json) -> Json | None:
    """What a compaction item says, or None where it was not made here."""
    text = unseal(str(item.get("encrypted_content")))
    return None if text is None else parse_object(text)


def _before(asked: Asked) -> list[Json]:
    """The items that stand before those of the request."""
    stored = asked.memory.responses.get(str(asked.body.get("previous_response_id")))
    if stored is not None:
        return stored.context
    talk = asked.memory.talks.get(conversation_id(asked) or "")
    return [] if talk is None else list(talk.items)


def _resolved(item: Json, memory: Memory) -> Json:
    """The item that a reference means; a reasoning item without its content is completed from what is kept."""
    kept = memory.items.get(str(item.get("id")))
    if kept is None:
        return item
    bare = item.get("type") == "reasoning" and item.get("encrypted_content") is None
    return kept if bare or item.get("type") == "item_reference" or set(item) == {"id"} else item


def _kept(item: Json, ids: Ids) -> Json:
    """An item as the service keeps it: with an id, a type and a status, a message with its content as parts."""
    if is_message(item):
        role = str(item.get("role"))
        content = item.get("content")
        if isinstance(content, str):
            part: Json = {"type": "input_text", "text": content}
            if role == "assistant":
                part = {"type": "output_text", "text": content, "annotations": [], "logprobs": []}
            content = [part]
        named = {"id": item.get("id") or item_id(ids, "message"), "type": "message"}
        return {**item, **named, "status": "completed", "content": as_list(content)}
    kind = str(item.get("type"))
    kept = {**item, "id": item.get("id") or item_id(ids, kind)}
    if kind in ("tool_search_call", "tool_search_output"):
        paired = item.get("call_id") is not None
        kept.setdefault("execution", "client" if paired else "server")
        kept.setdefault("call_id", None)
    stateless = ("reasoning", "additional_tools", "item_reference", "compaction")
    return kept if kind in stateless else {"status": "completed", **kept}
