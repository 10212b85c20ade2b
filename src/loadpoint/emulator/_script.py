"""The scripted model: what it is shown (`Turn`), what it does (`Move`), and who decides (`Script`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from .._json import Json


@dataclass(frozen=True, slots=True)
class Shown:
    """A tool that the model can see: declared and not deferred, or loaded."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict[str, Any])
    namespace: str = ""
    """The namespace that the tool stands in, where a request groups tools. A call may name it "namespace.name"."""


@dataclass(frozen=True, slots=True)
class Called:
    """A call of the transcript with its result.

    `arguments` is the JSON object (empty when the text was none). `result` is the joined text of the result, None
    while there is none; `references` are the names of tools that it loaded. `current` is true for calls made since
    the last text of the user.
    """

    name: str
    id: str
    arguments: Json
    result: str | None = None
    is_error: bool = False
    references: tuple[str, ...] = ()
    current: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a model is asked, in neutral words.

    `number` counts the model requests of this emulator from 1. `text` is the text of the last message in which the
    user said something, `texts` all of them. `tools` are the visible tools, `deferred` the names of those that are
    only declared. `history` has every call of the transcript, `results` those made and answered since `text`.
    `choice` is "auto", "none", "required" or the name of the one tool that must be called. `search` names the visible
    tool that finds others, where the wire gives it no name of its own (Responses). `body` is the request.
    """

    dialect: str
    model: str
    number: int
    text: str
    texts: tuple[str, ...]
    tools: tuple[Shown, ...]
    deferred: tuple[str, ...]
    history: tuple[Called, ...]
    choice: str
    allowed: frozenset[str] | None
    stream: bool
    body: Json
    headers: Mapping[str, str]
    search: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the visible tools, in order."""
        return tuple(tool.name for tool in self.tools)

    @property
    def results(self) -> tuple[Called, ...]:
        """The answered calls since the user last said something."""
        return tuple(call for call in self.history if call.current and call.result is not None)

    def tool(self, name: str) -> Shown | None:
        """The visible tool of that name, if any."""
        qualified = (tool for tool in self.tools if tool.namespace and f"{tool.namespace}.{tool.name}" == name)
        return next((tool for tool in self.tools if tool.name == name), None) or next(qualified, None)


Call: TypeAlias = "tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str]"
"""(name, arguments) or (name, arguments, id). Arguments that are text are sent as they are, valid JSON or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the scripted model, or the service in its stead, does with one request.

    `text`, `thinking` and `calls` make the reply; a call of the provider's own search is executed by the emulator.
    `blocks` are content blocks (Messages) or items (Responses) sent verbatim between text and calls; `message` is
    merged into the reply message (Chat) or the reply (Messages, Responses); `before` are blocks sent before everything
    else. `stop` overrides the reason: "end", "tool", "max_tokens", "refusal", "content_filter", "pause_turn",
    "failed" (Responses), or the provider's own word. With `changing_call_ids` a client's `tool_search_call` has
    another call_id in `output_item.added` than in `.done` (Responses; seen in March 2026). `usage` overrides usage
    fields. A `status` other than 200 is an error with `error` as its body (or `text` as its message). `cut_events` /
    `cut_bytes` end the connection after so many events or bytes; with `stream_error` the stream ends with an error
    event of that message instead. `delay` and `pace` are the seconds before the first byte and between pieces;
    `headers` are added to the response.
    """

    text: str = ""
    thinking: str = ""
    calls: Sequence[Call] = ()
    before: Sequence[Json] = ()
    blocks: Sequence[Json] = ()
    refusal: str = ""
    message: Mapping[str, Any] = field(default_factory=dict[str, Any])
    stop: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: int = 200
    error: Json | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut_events: int | None = None
    stream_error: str = ""
    cut_bytes: int | None = None
    changing_call_ids: bool = False
    delay: float = 0.0
    pace: float = 0.0

    @classmethod
    def call(cls, name: str, arguments: Mapping[str, Any] | str | None = None, **rest: Any) -> Move:
        """A move that calls one tool."""
        return cls(calls=[(name, {} if arguments is None else arguments)], **rest)

    @classmethod
    def fault(cls, status: int, message: str = "", *, retry_after: float | None = 0.001, **rest: Any) -> Move:
        """A move that is an HTTP error; `retry_after` seconds are sent along for 429 and 5xx (None: no header)."""
        headers = {} if retry_after is None or status < 429 else {"retry-after-ms": str(int(retry_after * 1000))}
        return cls(status=status, text=message, headers=headers, **rest)

    def but(self, **changes: Any) -> Move:
        """The same move with some fields changed."""
        return replace(self, **changes)


Policy: TypeAlias = Callable[[Turn], Move]


class Script:
    """A scripted model: a callable from `Turn` to `Move`.

    `Script(function)` wraps a function. `Script()` is the demo model of `Script.agent()`.
    """

    def __init__(self, decide: Policy | None = None) -> None:
        self._decide = decide
        self._restart: Callable[[], None] | None = None

    def __call__(self, turn: Turn) -> Move:
        """The move for `turn`."""
        if self._decide is None:
            from ._demo import demo

            self._decide = demo()
        return self._decide(turn)

    def reset(self) -> None:
        """Back to the first move."""
        if self._restart is not None:
            self._restart()

    @classmethod
    def sequence(cls, moves: Iterable[Move | Policy], *, then: Move | Policy | None = None) -> Script:
        """Plays `moves` in order, one per model request; an entry may be a function of the turn.

        After the last one `then` answers; without it the request fails with status 400 and says that the script is
        at its end.
        """
        listed = list(moves)
        position = [0]

        def decide(turn: Turn) -> Move:
            at, position[0] = position[0], position[0] + 1
            move = listed[at] if at < len(listed) else then
            if move is None:
                return Move.fault(400, f"The script has {len(listed)} moves and none for request {at + 1}.")
            return move if isinstance(move, Move) else move(turn)

        def restart() -> None:
            position[0] = 0

        script = cls(decide)
        script._restart = restart
        return script

    @classmethod
    def agent(cls, plan: Sequence[Sequence[Step]] | Mapping[str, Sequence[Step]] | None = None) -> Script:
        """A model that behaves sensibly, whatever strategy brings it its tools.

        Without a plan it reads the user's text, calls the visible tool that fits, searches when none does, and
        answers in text. A plan gives the steps of each user turn, by position or by the user's text; a step is
        (name, arguments), (name, arguments, query), or a list of those for parallel calls. The model calls a
        planned tool when it can see it, and otherwise finds it first with the loader, search or bridge that it sees.
        """
        from ._demo import demo, planned

        return cls(demo() if plan is None else planned(plan))


Step: TypeAlias = "tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str] | list[Any]"
