"""What the core asks of an API shape. A dialect is pure functions over JSON; it does no IO and knows no SDK.

The core never looks into wire JSON itself: it reads through the views below and writes through the dialect's makers, so
that every decision is taken once, for all dialects.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ._json import Json
from ._sse import Event
from ._tool import Tool
from ._usage import UsageFields
from ._views import CallView, Choice, Held, Outcome, ReplyView, ResultView, Shown, View

__all__ = (
    "CallView",
    "Choice",
    "Decider",
    "Dialect",
    "Held",
    "Outcome",
    "ReplyView",
    "ResultView",
    "RoundReader",
    "Shown",
    "StreamMerger",
    "View",
)


class Decider(Protocol):
    """What a splice asks of the call it belongs to."""

    @property
    def structured(self) -> bool:
        """Whether text is held until it is known to be the structured answer."""
        ...

    def holds(self, name: str, *, whole: bool = True) -> bool:
        """Whether a call of this name is held until its end (the loader, and deferred tools that are not loaded).

        `whole` is False for a name that may be the first piece of one.
        """
        ...

    def hides(self, call: CallView) -> bool:
        """Whether this complete call is answered by us instead of the caller."""
        ...

    def as_seen(self, call: CallView) -> CallView:
        """What the caller sees of a complete call that is not hidden; the call itself where nothing differs."""
        ...


class RoundReader(Protocol):
    """Reads one reply stream: shows the visible events and rebuilds the reply."""

    def feed(self, event: Event) -> Iterable[bytes]:
        """The bytes to show for one upstream event (none, one or several SSE frames)."""
        ...

    def reply(self) -> Json | None:
        """The whole reply as the unstreamed API would have sent it; None if the stream ended early or in an error."""
        ...

    def flush(self) -> Iterable[bytes]:
        """The bytes that were held in this round and are to be shown because it is the last."""
        ...

    def ending(self) -> Sequence[bytes]:
        """The closing events as they came, for a reply that was not changed; empty where they cannot be shown."""
        ...


class StreamMerger(Protocol):
    """One visible stream made of several rounds."""

    visible_id: str | None
    """The reply id that the caller has been shown, once it has."""

    def round(self) -> RoundReader:
        """A reader for the next round."""
        ...

    def searched(self, reply: Json, round_index: int, shown: Sequence[Shown]) -> Iterable[bytes]:
        """The frames that show searches of the round that just ended; none where the API has no items for them."""
        ...

    def terminal(self, result: Json) -> Iterable[bytes]:
        """The closing frames for the merged reply."""
        ...


@runtime_checkable
class Dialect(Protocol):
    """One API shape."""

    name: str
    usage_fields: UsageFields
    renders: frozenset[str]
    """The load points that this dialect can write."""
    lists_iterations: bool
    """Whether usage objects have a typed list of sampling passes, in which the rounds of a merged reply stand."""
    load_point: str | None
    """The load point that this variant writes; None where loaded tools stand in the list of tools."""
    by_reference: bool
    """Whether a load names tools that `tools` declares; otherwise it carries their definitions by value."""
    server_keeps_tools: bool
    """Whether a continued server-held conversation takes its tools from the server, not from the request."""

    def at(self, load_point: str | None, variant: str = "") -> Dialect:
        """The variant that writes this load point; the same for one that it cannot write.

        `variant` is what the data says of the kind of the form, where it has several.
        """
        ...

    def operation(self, method: str, path: str, body: Json) -> str | None:
        """`create`, `count`, `batch`, or None for a request that is not of this dialect."""
        ...

    def stored(self, method: str, path: str) -> str | None:
        """The id of the stored reply that this request asks for, by which a caller may know it; None for any other."""
        ...

    def referred(self, body: Json) -> Sequence[str]:
        """The ids of the stored messages that a request names instead of bringing them."""
        ...

    def resolved(self, body: Json, kept: Sequence[Json]) -> Json:
        """A copy of `body` with these messages where it names them, as the caller has seen them."""
        ...

    def last_item(self, reply: Json) -> str | None:
        """The id by which a later request names the last part of this reply; None where it can name none."""
        ...

    def obstacle(self, body: Json) -> str | None:
        """Why this request cannot be improved and goes through as it is; None if it can."""
        ...

    def held(self, body: Json) -> Held | None:
        """The server-held conversation of this request, if it is one."""
        ...

    def continues(self, body: Json) -> bool:
        """Whether a later request can continue the reply to this one by its id."""
        ...

    def continued(self, body: Json, previous: str, messages: Sequence[Json]) -> Json:
        """The request that continues a server-held conversation after reply `previous` with new messages."""
        ...

    def messages(self, body: Json) -> list[Json]:
        """The conversation, in order."""
        ...

    def with_messages(self, body: Json, messages: Sequence[Json]) -> Json:
        """A copy of `body` with other messages."""
        ...

    def system(self, body: Json) -> str:
        """The system prompt outside the messages, as text to hash; "" if the API has none."""
        ...

    def with_catalog(self, body: Json, text: str) -> Json | None:
        """A copy with the catalog as the last system block; None where there is no system prompt to extend."""
        ...

    def tools(self, body: Json) -> list[Any]:
        """The caller's tools as sent."""
        ...

    def with_tools(self, body: Json, tools: Sequence[Json]) -> Json:
        """A copy of `body` with other tools."""
        ...

    def standing(self, tools: Sequence[Json]) -> list[Json]:
        """What the model reads of these tools from the start, as entries of the list that `with_tools` sends.

        Of what is deferred that is nothing in most forms, a name and a description in some.
        """
        ...

    def tool(self, wire: Json) -> Tool | None:
        """The neutral tool; None for a provider-run or otherwise typed tool, which stays as it is."""
        ...

    def tool_name(self, wire: Json) -> str | None:
        """The name under which the model calls this entry, typed tools included; None if it has none."""
        ...

    def marked(self, wire: Json) -> bool:
        """Whether the caller marked this tool as deferred (only a literal true counts)."""
        ...

    def definition(self, wire: Json, *, deferred: bool) -> Json:
        """The tool as it is sent: without cache marker and the caller's deferral mark, deferred or not."""
        ...

    def marker(self, wire: Json) -> Json | None:
        """The caller's cache marker on this tool."""
        ...

    def with_marker(self, wire: Json, marker: Json) -> Json:
        """A copy of the tool with a cache marker."""
        ...

    def loader(self, name: str, description: str, schema: Json) -> Json:
        """The loader as a tool of this API."""
        ...

    def choice(self, body: Json) -> Choice:
        """The caller's `tool_choice`."""
        ...

    def with_allowed(self, body: Json, names: Sequence[str]) -> Json:
        """A copy whose allowed list is `names` (the mode stays)."""
        ...

    def with_named(self, body: Json, name: str) -> Json:
        """A copy whose `tool_choice` demands a call of this tool."""
        ...

    def last_round(
        self, body: Json, choice: Choice, loader: str, callable_names: Sequence[str], *, refused: Collection[str] = ()
    ) -> Json:
        """A copy that cannot search: no tool, or where the caller demanded one, only the caller's own tools.

        `refused` are modes of `tool_choice` that the endpoint does not take.
        """
        ...

    def rendered(self, body: Json) -> Json:
        """The settings that stand in the prompt beside tools, system prompt and messages, as far as they are given: a
        prompt with others of them is not read from the cache.
        """
        ...

    def structured(self, body: Json) -> bool:
        """Whether the caller asked for a structured answer."""
        ...

    def streaming(self, body: Json) -> bool:
        """Whether the reply is a stream."""
        ...

    def prepared(self, body: Json, *, usage: bool) -> Json:
        """A copy of a streaming request that also asks for usage, where `usage` says that the endpoint takes it."""
        ...

    def view(self, message: Json) -> View:
        """The message as the core sees it; never raises for a malformed one."""
        ...

    def incoming(self, message: Json, *, loader: str, ours: bool = False) -> list[Json]:
        """A message as it is sent: search items of a foreign form are turned into what this variant writes.

        `ours`: it comes from our record and not from the caller, so that what it loads was loaded by us.
        """
        ...

    def unanswered(self, turn: Sequence[Json]) -> tuple[list[Json], tuple[Json, ...]]:
        """A restored turn without our results at its end, and those results: they go with the caller's own (`join`)."""
        ...

    def answered(self, message: Json, call_id: str, outcome: Outcome) -> list[Json]:
        """The message with `outcome` as the result for `call_id`, and the message that loads its tools, if one does."""
        ...

    def changes(self, added: Sequence[Json], removed: Sequence[str], *, by_value: bool) -> list[Json]:
        """The messages that load wire tools and take back tools by name where they stand, at the end of a request.

        Empty for a variant whose API has no such messages. Without `by_value` they name tools that `tools` declares.
        """
        ...

    def with_calls(self, wire: Json, change: Callable[[CallView], CallView]) -> Json:
        """A reply, or a message of one, with other names and arguments in its calls; the same object if none changes.

        `change` gets each call as `view` has it, and gives it back or one with the same id and its arguments as text.
        """
        ...

    def rebuilt(self, turn: Sequence[Json]) -> list[Json]:
        """The messages of an assistant turn that stands for several rounds whose record is lost, as they are sent."""
        ...

    def settled(self, body: Json) -> Json:
        """A whole request with what its calls have to say of where their tools stand; the same object if they do."""
        ...

    def thought(self, messages: Sequence[Json]) -> bool:
        """Whether any of these messages holds thinking."""
        ...

    def without_thinking(self, messages: Sequence[Json]) -> list[Json]:
        """The messages without thinking, signed or not; those that hold none are the same objects."""
        ...

    def tolerant(self, body: Json) -> tuple[Json, tuple[str, ...]]:
        """A copy that lets the provider drop thinking that the lost rounds have voided, and the betas it needs."""
        ...

    def is_marked(self, body: Json) -> bool:
        """Whether anything of this request will be cached: there is a cache marker, or the API needs none."""
        ...

    def with_markers(self, body: Json) -> Json:
        """A copy with cache markers on what never changes and on the end of the conversation."""
        ...

    def bare(self, message: Json) -> Json:
        """The message without cache markers, for digests."""
        ...

    def carried(self, visible: Sequence[Json], turn: Sequence[Json]) -> tuple[Json, ...]:
        """The stand-in `turn` with the cache markers that the caller put on the visible messages."""
        ...

    def reply(self, reply: Json) -> ReplyView | None:
        """The reply as the core sees it; None for a shape it does not know."""
        ...

    def assistant(self, reply: Json, cut: Collection[int]) -> list[Json]:
        """The reply as history messages, without the calls whose positions are in `cut`."""
        ...

    def visible(self, reply: Json, body: Json) -> Json:
        """The reply without what only our form of `body` has put there; the same object where there is nothing."""
        ...

    def result(self, call: CallView, outcome: Outcome) -> list[Json]:
        """Our result for a call, in the form that `join` takes."""
        ...

    def join(self, results: Sequence[Json], following: Sequence[Json]) -> list[Json]:
        """Our results and the caller's messages up to the next assistant turn, each in its place.

        A load that is a message of its own stands behind all results.
        """
        ...

    def merge(
        self,
        rounds: Sequence[Json],
        hidden: Sequence[Collection[int]],
        usage: Json,
        *,
        body: Json,
        last_text: bool,
        shown: Sequence[Sequence[Shown]] = (),
    ) -> Json:
        """The visible reply to `body`: all rounds as one, without the calls at the `hidden` positions of each round.

        `shown` are, per round, the searches to show as the provider's own, where the API has items for them.
        """
        ...

    def merger(self, decider: Decider, body: Json) -> StreamMerger:
        """The stream merger of one logical call; `body` is the caller's request."""
        ...

    def headers(self, caller: Mapping[str, str], betas: Sequence[str]) -> Mapping[str, str | None]:
        """Header edits (a value to set, None to remove) that ask for these beta features beside the caller's own."""
        ...

    def turned_back(self, body: Json) -> Json:
        """`body` without shown discovery items of ours, batch entries included; the same object where it has none."""
        ...

    def without_ours(self, messages: Sequence[Json], call_ids: Collection[str]) -> list[Json]:
        """The messages without shown discovery items of ours, and without these calls and their results."""
        ...

    def call(self, wire: Json) -> CallView | None:
        """A single tool call, as it stands in a reply of this API; None for anything else."""
        ...
