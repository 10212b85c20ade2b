"""What the core sees of a conversation, whatever the API: calls, results, messages, replies, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._json import Json, canonical, parse_object


@dataclass(frozen=True, slots=True)
class CallView:
    """A tool call: its id, the tool's name, and its arguments as they stand on the wire (JSON string or object).

    `space` is the part of the name, up to a dot, that the wire form has in a field of its own; "" where all is one.
    """

    id: str
    name: str
    arguments: str | Json
    space: str = ""


@dataclass(frozen=True, slots=True)
class ResultView:
    """A tool result: whose call it answers, its joined text, whether it failed, and the tool names it references."""

    call_id: str
    text: str
    failed: bool = False
    names: tuple[str, ...] = ()
    search: bool = False
    """True where the wire form itself says that this is the result of a tool search (so `names` are evidence)."""
    tools: tuple[Json, ...] = ()
    """The definitions of `names` in wire form, where the form carries them by value."""
    removed: tuple[str, ...] = ()
    """Names of tools that are taken back from here on."""


@dataclass(frozen=True, slots=True)
class View:
    """A message as the core sees it: `role` is assistant, user, tool or system.

    `forgets`: the message stands for what came before it, so that what was loaded there is not loaded any more.
    """

    role: str
    text: str = ""
    calls: tuple[CallView, ...] = ()
    results: tuple[ResultView, ...] = ()
    forgets: bool = False

    def level(self, *, told: bool = True) -> str:
        """Role, text, ids, names, parsed arguments and result text, in canonical JSON: equal for all echo styles.

        Without `told` the text of results is left out.
        """
        # Sorted: a call that was held in a stream is shown after the ones that were not.
        calls = sorted(canonical([call.id, call.name, _level_arguments(call.arguments)]) for call in self.calls)
        own = [result for result in self.results if not result.search]
        results = [[result.call_id, result.text.strip() if told else ""] for result in own]
        return canonical([self.role, self.text.strip(), calls, results])


def _level_arguments(arguments: str | Json) -> Any:
    if not isinstance(arguments, str):
        return arguments
    parsed = parse_object(arguments) if arguments.strip() else {}
    return arguments if parsed is None else parsed


@dataclass(frozen=True, slots=True)
class Choice:
    """`tool_choice`: mode is auto, none, required, named or allowed; `names` for named and allowed.

    `required` also says whether an allowed list demands a call.
    """

    mode: str = "auto"
    names: tuple[str, ...] = ()
    required: bool = False


@dataclass(frozen=True, slots=True)
class ReplyView:
    """A reply: its calls in order, the provider's reason to end, and whether that reason ends the logical call.

    `cut` is True for a reply that stopped early (length, refusal, filter, pause): it is the last round in any case.
    """

    id: str
    text: str
    calls: tuple[CallView, ...]
    cut: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """Our answer to a call: a text, and the names and wire definitions of what it loads; `failed` for an error."""

    text: str
    names: tuple[str, ...] = ()
    tools: tuple[Json, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A search of ours that the caller sees as the provider's own: the call at position `at`, and what it found."""

    at: int
    call: CallView
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Held:
    """A server-held conversation: the id of the reply that this request continues, or that of the conversation.

    With neither, the request starts one.
    """

    previous: str | None
    conversation: str | None = None

    @property
    def name(self) -> tuple[str, str] | None:
        """What it is remembered by: the kind of id, and the id."""
        if self.previous is not None:
            return "reply", self.previous
        return None if self.conversation is None else ("conversation", self.conversation)
