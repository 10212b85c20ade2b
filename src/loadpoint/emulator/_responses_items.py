"""What the dialect `openai.responses` rejects about input items: types, fields, ids, pairs, namespaces, reasoning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._json import Json, as_list, as_object
from . import _gateway_search
from ._dialect import Asked
from ._responses_prompt import context, held, is_message, own
from ._responses_tools import read
from ._rules import Broken, RuleBook, broken
from ._signature import unseal

_CALLS = {
    "function_call": ("function_call_output", "function call"),
    "custom_tool_call": ("custom_tool_call_output", "custom tool call"),
}
_MADE = ("message", "function_call", "custom_tool_call", "tool_search_call", "web_search_call", "mcp_call", "reasoning")


def check(asked: Asked) -> Iterator[Broken]:
    """Every rule about the input that the request breaks."""
    given = asked.body.get("input")
    for at, entry in enumerate(as_list(given)):
        item = as_object(entry) or {}
        kind = "message" if is_message(item) else item.get("type")
        if kind is None and set(item) == {"id"}:
            kind = "item_reference"
        known = asked.book.value("responses.item_type", "known")
        if kind in _gateway_search.searches(asked, "openai.responses"):
            continue
        if kind not in known:
            yield broken("responses.item_type", at=at, type=kind, supported=", ".join(map(repr, known)))
        else:
            yield from _item(at, str(kind), item, asked)
    yield from _ids(asked)
    yield from _reasoning(asked)
    yield from _pairs(asked)
    yield from _namespaces(asked)


def _item(at: int, kind: str, item: Json, asked: Asked) -> Iterator[Broken]:
    book = asked.book
    for name in book["responses.item_field_required"].values.get(kind, ()):
        if item.get(name) is None:
            yield broken("responses.item_field_required", at=at, name=name)
    known = book["responses.unknown_item_field"].values.get(kind, item)
    for name in item:
        if name not in known:
            yield broken("responses.unknown_item_field", at=at, name=name)
    roles = book["responses.role"].values.get(kind)
    if roles is not None and item.get("role") is not None and item["role"] not in roles:
        yield broken("responses.role", at=at, role=item["role"], supported=", ".join(map(repr, roles)))
    if kind == "message":
        yield from _content(at, item, book)
    yield from _types(at, kind, item)
    prefix = book["responses.item_id"].values.get(kind)
    if prefix is not None and item.get("id") is not None and not str(item["id"]).startswith(prefix):
        yield broken("responses.item_id", at=at, id=item["id"], prefix=prefix)
    longest = book.value("responses.call_name_length", "limit")
    if kind in _CALLS and len(str(item.get("name") or "")) > longest:
        yield broken("responses.call_name_length", at=at, length=len(str(item["name"])))
    limit = book.value("responses.call_id_length", "limit")
    if len(str(item.get("call_id") or "")) > limit:
        yield broken("responses.call_id_length", at=at, length=len(item["call_id"]))


def _content(at: int, item: Json, book: RuleBook) -> Iterator[Broken]:
    supported = book["responses.content_part"].values.get(str(item.get("role")), ())
    if not isinstance(item.get("content"), list):
        return
    for part, entry in enumerate(item["content"]):
        kind = (as_object(entry) or {}).get("type")
        if supported and kind not in supported:
            listed = ", ".join(map(repr, supported))
            yield broken("responses.content_part", at=at, part=part, type=kind, supported=listed)


def _types(at: int, kind: str, item: Json) -> Iterator[Broken]:
    """Values of the wrong type."""
    arguments = item.get("arguments")
    if kind == "function_call" and arguments is not None and not isinstance(arguments, str):
        yield broken("responses.arguments_type", at=at, type=kind_of(arguments))
    if kind == "tool_search_call" and arguments is not None and as_object(arguments) is None:
        yield broken("responses.search_arguments", at=at, type=kind_of(arguments))
    given = item.get("output")
    if kind in ("function_call_output", "custom_tool_call_output") and not isinstance(given, str | list | None):
        yield broken("responses.input_type", path=f"input[{at}].output", type=kind_of(given))


def _ids(asked: Asked) -> Iterator[Broken]:
    """Ids that stand twice, and references to what is not kept."""
    seen = {str(item["id"]) for item in held(asked) if item.get("id") is not None}
    for item in own(asked):
        if item.get("id") is None:
            continue
        id_ = str(item["id"])
        if id_ in seen:
            yield broken("responses.duplicate_item", id=id_)
        seen.add(id_)
        unresolved = item.get("type") == "item_reference" or set(item) == {"id"}
        bare = item.get("type") == "reasoning" and item.get("encrypted_content") is None
        if (unresolved or bare) and id_ not in asked.memory.items:
            yield broken("responses.item_not_found", id=id_)


def _reasoning(asked: Asked) -> Iterator[Broken]:
    """Sealed content that is not ours, and stored items without their reasoning, or reasoning without its item."""
    items, memory = context(asked), asked.memory
    ids = {str(item.get("id")) for item in items}
    for at, item in enumerate(items):
        id_ = str(item.get("id"))
        reason = memory.reasons.get(id_)
        if reason is not None and reason not in ids and item.get("type") != "reasoning":
            yield broken("responses.reasoning_missing", id=id_, type=item.get("type"), reasoning=reason)
        if item.get("type") not in ("reasoning", "compaction"):
            continue
        sealed = item.get("encrypted_content")
        if isinstance(sealed, str) and unseal(sealed) is None:
            shown = sealed if len(sealed) < 12 else f"{sealed[:4]}...{sealed[-4:]}"
            yield broken("responses.encrypted_content", content=shown)
        following = items[at + 1] if at + 1 < len(items) else {}
        if item.get("type") == "reasoning" and id_ in memory.items and not _made(following):
            yield broken("responses.reasoning_alone", id=id_)


def _made(item: Json) -> bool:
    """Whether the model made an item."""
    return item.get("type") in _MADE and item.get("role", "assistant") == "assistant"


def _pairs(asked: Asked) -> Iterator[Broken]:
    """Every call has its output, every output its call before it; what stands between them is free.

    Searches of the service need no pair: they carry no id, and were seen replayed with ids and without outputs.
    """
    items = context(asked)
    for kind, (output, words) in _CALLS.items():
        yield from _orphans(items, kind, output, "responses.output_orphan", words)
    yield from _orphans(items, "tool_search_call", "tool_search_output", "responses.search_output_orphan", "")
    for kind, (output, words) in _CALLS.items():
        answered = set(_call_ids(items, output))
        for id_ in _call_ids(items, kind):
            if id_ not in answered:
                yield broken("responses.call_unanswered", kind=words, id=id_)
    answered = set(_call_ids(items, "tool_search_output"))
    for id_ in _call_ids(items, "tool_search_call"):
        if id_ not in answered:
            yield broken("responses.search_unanswered", id=id_)


def _orphans(items: Sequence[Json], call: str, output: str, rule: str, words: str) -> Iterator[Broken]:
    """Outputs before which no call of theirs stands."""
    called: set[str] = set()
    for item in items:
        for id_ in _call_ids([item], call):
            called.add(id_)
        for id_ in _call_ids([item], output):
            if id_ not in called:
                yield broken(rule, kind=words, id=id_)


def _call_ids(items: Sequence[Json], kind: str) -> list[str]:
    """The call ids of one type of items; of searches those that the client runs."""
    found = [item for item in items if item.get("type") == kind]
    if kind.startswith("tool_search"):
        client = [item for item in found if item.get("execution") != "server" and item.get("call_id") is not None]
        return [str(item["call_id"]) for item in client]
    return [str(item.get("call_id")) for item in found]


def _namespaces(asked: Asked) -> Iterator[Broken]:
    """A call of a tool that stands outside the default namespace of this request says which it is in."""
    calls = [(at, item) for at, item in enumerate(own(asked)) if item.get("type") in _CALLS]
    if not calls or _gateway_search.search_of(asked, "openai.responses"):
        return  # what a gateway makes of a namespace is not known
    tools = read(asked.body.get("tools"), context(asked))
    behind = {**tools.deferred, **tools.loaded}
    boxed = {name for box, name in {**tools.resident, **tools.added} if box is not None}
    elsewhere = boxed | {name for _, name in behind}
    plain = {name for box, name in {**tools.resident, **tools.added} if box is None}
    known = {box for box, _ in {**tools.resident, **behind, **tools.added}}
    for at, item in calls:
        name, given = str(item.get("name")), item.get("namespace")
        if given is None:
            if item.get("type") == "function_call" and name in elsewhere and name not in plain:
                yield broken("responses.missing_namespace", at=at, name=name)
            continue
        flat = given == name and ((None, name) in behind or (None, name) in tools.added)
        if given not in known and not flat:
            yield broken("responses.unknown_namespace", at=at, name=name, namespace=given)


def kind_of(value: Any) -> str:
    """How the API calls the type of a value."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, int | float):
        return "an integer" if isinstance(value, int) else "a decimal"
    return "an object" if as_object(value) is not None else "an array"
