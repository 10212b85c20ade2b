"""A native form that the provider refuses: the same call goes on in the next form, and nothing is asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.bench import judge
from tests.core.conversation import (
    BASETEN,
    CHAT,
    INLINE,
    KIMI,
    MESSAGES,
    NAMES,
    RESPONSES,
    Conversation,
    Form,
    Json,
    UpstreamError,
    search,
)

from loadpoint.emulator import Move

TOOL = NAMES[5]
MANY = (*NAMES, *(f"old_{name}" for name in NAMES[:20]))
"""As many as native deferral pays for, and a resent list does not."""
Refuses = Callable[[Json, Json], str | None]


def when(mark: str, message: str) -> Refuses:
    """An endpoint that says `message` against every body that holds `mark`."""
    return lambda body, _: message if mark in json.dumps(body) else None


BETA = "Unexpected value(s) `{}` for the `anthropic-beta` header. Please consult our documentation"


def without_beta(body: Json, headers: Json) -> str | None:
    """An endpoint that knows no beta of tool changes."""
    given = str(headers.get("anthropic-beta") or "")
    return BETA.format(given) if "inline-tools" in given else None


TAG = "messages.2.content.0.tool_result.content.0: Input tag 'tool_reference' found using 'type' does not match any of"
LATE = {
    # form: what is refused, with what words, and in what the call goes on
    "references": (Form(MESSAGES, "native", False), when("tool_reference", TAG), "tool_addition"),
    "changes": (
        Form(MESSAGES, "native", False, INLINE),
        when("tool_addition", "messages.3.content.0: Input tag 'tool_addition' found using 'type' does not match"),
        "tool_reference",
    ),
    "system": (
        Form(CHAT, "native", False, KIMI),
        when('"role": "system", "tools"', "Invalid request: messages[3].content is required"),
        "resend",
    ),
    "adds": (
        Form(RESPONSES, "native", False, "gpt-5.2"),
        when("additional_tools", "Invalid value: 'additional_tools'. Supported values are: 'message', ..."),
        "resend",
    ),
    "search": (
        Form(RESPONSES, "native", False),
        when("tool_search", "Tool 'tool_search' is not supported with gpt-5.4."),
        "additional_tools",
    ),
}
late = pytest.mark.parametrize("case", sorted(LATE))
streams = pytest.mark.parametrize("stream", [False, True])


def refused(case: str, stream: bool):
    form, refuses, goes_on = LATE[case]
    talk = Form(form.dialect, form.strategy, stream, form.model).talk()
    talk.refuses = refuses
    return talk, goes_on


@late
@streams
@pytest.mark.report("BR-009")
def test_the_same_call_goes_on_in_the_next_form(case: str, stream: bool) -> None:
    talk, goes_on = refused(case, stream)
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})], text="here"))
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    assert len(talk.refused) == 1, "asked once"
    assert TOOL in talk.callable()
    report = talk.report
    assert (report.load_point or report.strategy) == goes_on
    (said,) = [text for text in report.warnings if "refused" in text]
    assert goes_on in said
    assert report.added_rounds == 1, "no paid round was repeated"
    assert [found.hits[0] for found in report.searches] == [TOOL]


@late
@streams
def test_what_was_refused_is_not_tried_again_with_this_model_and_endpoint(case: str, stream: bool) -> None:
    talk, goes_on = refused(case, stream)
    talk.user("go")
    talk.answer(talk.send(Move(calls=[search(TOOL)]), Move(calls=[(TOOL, {"id": 1})])))
    talk.send(Move(text="done"))
    start = len(talk.bodies)
    for at in range(3):
        talk.user(f"turn {at}")
        talk.send(Move(text="ok"))
    assert len(talk.refused) == 1
    assert not [text for report in talk.reports[1:] for text in report.warnings if "refused" in text], "said once"
    assert all(report.prefix.stable for report in talk.reports[-2:])
    assert not judge.check(talk.bodies[start:], mode="native")
    talk.visible = []
    talk.user("another conversation")
    talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    assert len(talk.refused) == 1
    assert (talk.report.load_point or talk.report.strategy) == goes_on
    other = LATE[case][0].talk()
    other.user("another client")
    other.send(Move(text="ok"))
    assert other.report.load_point == LATE[case][0].load_point, "other clients ask for themselves"


@late
def test_a_refusal_is_remembered_only_if_the_call_went_through_without_the_form(case: str) -> None:
    talk, _ = refused(case, stream=False)
    words = LATE[case][1]
    talk.refuses = lambda body, headers: words(body, headers) or ("too long" if talk.refused else None)
    talk.user("go")
    with pytest.raises(UpstreamError, match="too long"):
        talk.send(Move(calls=[search(TOOL)]), Move(text="never"))
    assert len(talk.refused) == 2
    talk.refuses = lambda _body, _headers: None
    talk.moves, talk.visible = [], []
    talk.user("again")
    talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    assert talk.report.load_point == LATE[case][0].load_point


@late
@streams
def test_any_other_error_is_the_callers(case: str, stream: bool) -> None:
    talk, _ = refused(case, stream)
    talk.refuses = lambda body, _: "max_tokens: must be greater than 0" if len(talk.bodies) > 0 else None
    talk.user("go")
    with pytest.raises(UpstreamError, match="max_tokens"):
        talk.send(Move(calls=[search(TOOL)]), Move(text="never"))
    assert len(talk.refused) == 1


@streams
def test_a_beta_that_is_refused_leaves_the_rest_of_the_form(stream: bool) -> None:
    """Only the changes in the conversation need it: references go on without them."""
    talk = Form(MESSAGES, "native", stream).talk()
    talk.refuses = without_beta
    talk.load(TOOL)
    assert len(talk.refused) == 1
    assert talk.report.load_point == "tool_reference"
    assert not talk.edits
    talk.user("directly")
    talk.answer(talk.send(Move(calls=[("photo_list", {"id": 1})])))
    talk.send(Move(text="ok"))
    assert "photo_list" in talk.in_context(), "placed in the list, as without the beta"


@streams
def test_an_endpoint_that_wants_every_tool_declared_gets_them(stream: bool) -> None:
    talk = Form(MESSAGES, "native", stream).talk()

    def wants(body: Json, _: Json) -> str | None:
        declared = [tool for tool in body["tools"] if tool.get("defer_loading")]
        return f"Tool reference '{TOOL}' not found in available tools" if len(declared) == 1 else None

    talk.refuses = wants
    talk.load(TOOL)
    assert len(talk.refused) == 1
    assert talk.report.load_point == "tool_reference"
    assert len(talk.declared()) == len(NAMES)
    talk.user("more")
    talk.send(Move(text="ok"))
    assert talk.report.prefix.stable
    talk.visible = []
    talk.user("a new one declares them from the start")
    talk.send(Move(text="ok"))
    assert len(talk.declared()) == len(NAMES)
    assert len(talk.refused) == 1


def test_a_reference_that_is_not_found_although_all_are_declared_is_a_refusal() -> None:
    talk = Form(MESSAGES, "native", stream=False).talk()
    talk.refuses = when("tool_reference", f"Tool reference '{TOOL}' not found in available tools")
    talk.load(TOOL)
    assert len(talk.refused) == 2
    assert talk.report.load_point == "tool_addition"


def test_every_form_may_be_refused_one_after_the_other() -> None:
    talk = Form(MESSAGES, "native", stream=False).talk()

    def refuses(body: Json, headers: Json) -> str | None:
        return without_beta(body, headers) or when("tool_reference", TAG)(body, headers)

    talk.refuses = refuses
    talk.load(TOOL)
    assert talk.report.strategy == "resend"
    assert len([text for text in talk.reports[0].warnings if "refused" in text]) == len(talk.refused) == 2
    assert TOOL in talk.in_context()
    assert "has refused" in talk.report.reason


@streams
def test_before_any_search_a_call_may_go_on_with_everything(stream: bool) -> None:
    """Where resending would not pay, the call that was refused is sent as it came."""
    talk = Form(CHAT, "auto", stream, BASETEN).talk({"load_point": "tool_reference"}, names=MANY)
    talk.refuses = when("defer_loading", "Unrecognized request argument supplied: defer_loading")
    talk.user("go")
    reply = talk.send(Move(calls=[(TOOL, {"id": 1})]))
    assert len(talk.refused) == 1
    assert (talk.report.strategy, talk.report.added_rounds) == ("eager", 0)
    assert [text for text in talk.report.warnings if "refused" in text]
    assert len(talk.body["tools"]) == len(MANY)
    assert talk.calls(reply) == [(TOOL, {"id": 1})]
    talk.answer(reply)
    talk.send(Move(text="done"))
    assert talk.report.strategy == "eager"
    assert len(talk.refused) == 1


@streams
def test_a_conversation_that_the_server_holds_is_not_turned_around(stream: bool) -> None:
    """What the server has in one form cannot be sent in another: the error is the caller's to see."""
    talk = Form(RESPONSES, "native", stream).talk()
    talk.user("go")
    reply = talk.send(Move(calls=[search(TOOL)]), Move(text="ok"))
    talk.visible = []
    talk.extra["previous_response_id"] = reply["id"]
    talk.user("on")
    talk.refuses = lambda _body, _headers: "Tool 'tool_search' is not supported with gpt-5.4."
    with pytest.raises(UpstreamError, match="not supported"):
        talk.send(Move(text="never"))
    assert len(talk.refused) == 1


def emulated(talk: Conversation, tokens: int) -> Conversation:
    """The conversation at a provider that bills `tokens` more for its input than it should."""
    honest = talk.post

    def post(body: Json, path: str | None = None) -> tuple[int, bytes]:
        status, raw = honest(body, path)
        reply = json.loads(raw)
        field = "input_tokens" if "input_tokens" in reply["usage"] else "prompt_tokens"
        reply["usage"][field] += tokens
        return status, json.dumps(reply).encode()

    setattr(talk, "post", post)  # noqa: B010 - a method of this one conversation
    return talk


HOSTED = [
    (Form(MESSAGES, "native", False, "claude-opus-4-5"), {"search": "hosted"}),
    (Form(RESPONSES, "native", False), {"search": "hosted"}),
    (Form(CHAT, "native", False, BASETEN), {}),
]


@pytest.mark.report("BR-037")
@pytest.mark.parametrize(("form", "policy"), HOSTED, ids=lambda value: getattr(value, "dialect", ""))
def test_deferral_that_is_silently_ignored_is_reported(form: Form, policy: Json) -> None:
    talk = emulated(form.talk(policy), 5_000)
    talk.user("go")
    talk.send(Move(text="ok"))
    (said,) = [text for text in talk.report.warnings if "ignored" in text]
    assert "5," in said
    talk = emulated(form.talk(policy), 400)
    talk.user("go")
    talk.send(Move(text="ok"))
    assert not [text for text in talk.report.warnings if "ignored" in text], "an estimate may be off"
