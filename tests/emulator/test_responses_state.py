"""What the Responses API keeps between requests, and what a client keeps in its stead."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from tests.emulator.support import Json, added, chat_client, client_search, function, given, late, made, searched, user

from loadpoint.emulator import Emulator, Move, Script

MODEL = "gpt-5.4"
PING = function("ping")
LATE = late("late", "A long story about lateness. " * 20)
HOSTED: Json = {"type": "tool_search"}


def create(server: Emulator, *items: Any, **extra: Any) -> Any:
    return chat_client(server).responses.create(model=extra.pop("model", MODEL), input=list(items), **extra)


def replayed(reply: Any, *, ids: bool = True) -> list[Any]:
    kept = [item.model_dump(exclude_none=True) for item in reply.output]
    return kept if ids else [{key: value for key, value in item.items() if key != "id"} for item in kept]


@pytest.fixture
def server() -> Emulator:
    return Emulator(Script.sequence([], then=Move(text="ok")), rules="all")


def test_a_response_continues_another(server: Emulator):
    server.reset([Move(thinking="Hm.", calls=[("ping", {})]), Move(text="done"), Move(text="again")])
    first = create(server, user("go"), tools=[PING])
    second = create(server, given(first.output[1].call_id), previous_response_id=first.id)
    assert second.previous_response_id == first.id
    create(server, user("and?"), previous_response_id=second.id)
    a, b, c = server.exchanges
    assert a.tokens.messages < b.tokens.messages < c.tokens.messages
    whole = [user("go"), *replayed(first), given(first.output[1].call_id), *replayed(second), user("and?")]
    server.reset([Move(text="again")])
    create(server, *whole)
    assert server.exchanges[0].tokens.messages == c.tokens.messages


def test_what_was_loaded_stays_loaded_but_instructions_and_tools_are_said_again(server: Emulator):
    server.reset([Move(calls=[("tool_search", {"paths": ["late"]}), ("late", {})]), Move(text="ok"), Move(text="ok")])
    first = create(server, user("go"), tools=[LATE, HOSTED], instructions="Be kind.")
    call = first.output[-1]
    create(server, given(call.call_id), previous_response_id=first.id)
    assert server.exchanges[1].loaded == ("late",)
    assert server.exchanges[1].tokens.tools == server.exchanges[1].tokens.system == 0
    assert server.exchanges[1].tokens.messages > server.exchanges[0].tokens.messages + 50


def test_unknown_and_unstored_responses_are_not_found(server: Emulator):
    client = chat_client(server)
    secret = create(server, user("hi"), store=False)
    with pytest.raises(openai.BadRequestError, match="Previous response") as caught:
        create(server, user("and?"), previous_response_id=secret.id)
    assert caught.value.code == "previous_response_not_found"
    for ask in (client.responses.retrieve, client.responses.delete, client.responses.cancel):
        with pytest.raises(openai.NotFoundError, match="not found"):
            ask(secret.id)
    assert server.exchanges[-1].rule == "responses.response_not_found"


def test_stored_responses_are_retrieved_listed_and_deleted(server: Emulator):
    client = chat_client(server)
    reply = create(server, {"role": "developer", "content": "Be brief."}, user("hi"))
    assert client.responses.retrieve(reply.id) == reply
    page = client.responses.input_items.list(reply.id, order="asc")
    assert [item.role for item in page] == ["developer", "user"]
    assert [item.content[0].text for item in page] == ["Be brief.", "hi"]
    newest = client.responses.input_items.list(reply.id, limit=1)
    assert (newest.data[0].role, newest.has_more) == ("user", True)
    assert [item.role for item in newest] == ["user", "developer"]
    with client.responses.stream(response_id=reply.id, starting_after=3) as stream:
        resumed = [event.sequence_number for event in stream]
        assert resumed[0] == 4
        assert stream.get_final_response().output_text == "ok"
    client.responses.delete(reply.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(reply.id)
    assert {exchange.endpoint for exchange in server.exchanges} == {"create", "retrieve", "input_items", "delete"}


def test_background_responses_run_or_are_cancelled(server: Emulator):
    client = chat_client(server)
    first = create(server, user("hi"), background=True)
    assert (first.status, first.output) == ("queued", [])
    assert client.responses.retrieve(first.id).output_text == "ok"
    second = create(server, user("hi"), background=True)
    assert client.responses.cancel(second.id).status == "cancelled"
    assert client.responses.retrieve(second.id).status == "cancelled"
    third = create(server, user("hi"))
    with pytest.raises(openai.BadRequestError, match="Cannot cancel a synchronous response"):
        client.responses.cancel(third.id)


def test_items_are_referred_to(server: Emulator):
    server.reset([Move(calls=[("tool_search", {"paths": ["late"]}), ("late", {})], thinking="Hm."), Move(text="ok")])
    first = create(server, user("go"), tools=[LATE, HOSTED])
    refer = [{"type": "item_reference", "id": item.id} for item in first.output]
    create(server, user("go"), *refer, given(first.output[-1].call_id), tools=[LATE, HOSTED])
    assert server.exchanges[1].loaded == ("late",)
    with pytest.raises(openai.BadRequestError, match="Duplicate item found with id"):
        create(server, *replayed(first), previous_response_id=first.id, tools=[LATE, HOSTED])


@pytest.mark.parametrize("ids", [True, False])
def test_nothing_is_kept_and_reasoning_travels_sealed(server: Emulator, ids: bool):
    server.reset(
        [Move(calls=[("tool_search", {"paths": ["late"]}), ("late", {})], thinking="Secret."), Move(text="ok")]
    )
    first = create(server, user("go"), tools=[LATE, HOSTED], store=False, include=["reasoning.encrypted_content"])
    reasoning = first.output[0]
    assert reasoning.summary == []
    assert reasoning.encrypted_content.startswith("gAAAAA")
    assert "Secret" not in reasoning.encrypted_content
    answer = given(first.output[-1].call_id)
    create(server, user("go"), *replayed(first, ids=ids), answer, tools=[LATE, HOSTED], store=False)
    assert server.exchanges[1].common_tokens >= server.exchanges[0].tokens.total
    bare = {"type": "reasoning", "id": reasoning.id, "summary": []}
    with pytest.raises(openai.NotFoundError, match="Items are not persisted when `store` is set to false"):
        create(server, user("go"), bare, *replayed(first)[1:], answer, tools=[LATE, HOSTED], store=False)
    changed = {"type": "reasoning", "summary": [], "encrypted_content": reasoning.encrypted_content[:-8]}
    with pytest.raises(openai.BadRequestError) as caught:
        create(server, user("go"), changed, user("so"), store=False)
    assert caught.value.code == "invalid_encrypted_content"


def test_what_a_stream_adds_first_is_not_the_whole_reasoning(server: Emulator):
    server.reset([Move(thinking="A long thought. " * 9, text="so"), Move(text="ok")])
    streamed = list(chat_client(server).responses.create(model=MODEL, input="go", stream=True, store=False))
    first, done = [event.item for event in streamed if event.type.startswith("response.output_item")][:2]
    for item, verified in ((first, False), (done, True)):
        sent = [user("go"), item.model_dump(exclude_none=True), {"role": "assistant", "content": "so"}, user("and?")]
        if verified:
            create(server, *sent, store=False)
        else:
            with pytest.raises(openai.BadRequestError, match="could not be verified"):
                create(server, *sent, store=False)


def test_conversations(server: Emulator):
    client = chat_client(server)
    talk = client.conversations.create(items=[{"role": "user", "content": "My name is Bo."}], metadata={"a": "b"})
    reply = create(server, user("Who am I?"), conversation=talk.id)
    assert reply.conversation.id == talk.id
    create(server, user("And you?"), conversation={"id": talk.id})
    create(server, user("Psst."), conversation=talk.id, store=False)
    kept = client.conversations.items.list(talk.id, order="asc")
    assert [item.content[0].text for item in kept] == ["My name is Bo.", "Who am I?", "ok", "And you?", "ok"]
    first, second, _ = (exchange for exchange in server.exchanges if exchange.endpoint == "create")
    assert second.tokens.messages > first.tokens.messages
    more = client.conversations.items.create(talk.id, items=[user("More.")])
    item = more.data[0].id
    assert client.conversations.items.retrieve(item, conversation_id=talk.id).content[0].text == "More."
    client.conversations.items.delete(item, conversation_id=talk.id)
    with pytest.raises(openai.NotFoundError):
        client.conversations.items.retrieve(item, conversation_id=talk.id)
    assert server.exchanges[-1].rule == "responses.conversation_item_not_found"
    assert client.conversations.update(talk.id, metadata={"c": "d"}).metadata == {"c": "d"}
    assert client.conversations.retrieve(talk.id).metadata == {"c": "d"}
    assert client.conversations.delete(talk.id).deleted
    with pytest.raises(openai.NotFoundError):
        create(server, user("Who am I?"), conversation=talk.id)


def test_tools_are_counted_where_they_stand(server: Emulator):
    count = chat_client(server).responses.input_tokens.count
    eager = {**LATE, "defer_loading": False}

    def tokens(*items: Any, tools: Any = ()) -> int:
        counted: int = count(model=MODEL, input=[user("hi"), *items], tools=list(tools)).input_tokens
        return counted

    bare = tokens()
    assert bare < tokens(tools=[LATE, HOSTED]) <= tokens(tools=[eager])
    grouped: Json = {"type": "namespace", "name": "crm", "description": "Orders", "tools": [LATE]}
    assert bare < tokens(tools=[grouped, HOSTED]) < tokens(tools=[LATE, HOSTED])
    assert tokens(*searched(LATE), tools=[client_search()]) > tokens(*searched(), tools=[client_search()]) + 50
    assert tokens(added(LATE | {"defer_loading": False})) > bare + 50
    assert server.exchanges[0].endpoint == "input_tokens"
    with pytest.raises(openai.BadRequestError, match="Deferred tools require"):
        tokens(tools=[LATE])
    reply = create(server, user("hi"))
    assert count(model=MODEL, input=[user("and?")], previous_response_id=reply.id).input_tokens > bare


def test_a_compaction_loses_what_was_loaded(server: Emulator):
    client = chat_client(server)
    history = [
        user("go"),
        *searched(LATE),
        made("late", namespace="late"),
        given(),
        {"role": "assistant", "content": "So."},
    ]
    compact = client.responses.compact(model=MODEL, input=[*history, user("and?")])
    assert [item.type for item in compact.output] == ["message", "message", "compaction"]
    assert compact.usage.input_tokens > 100
    # The SDK's own type of a compaction has no place for the user's messages that stand in it: it would warn.
    kept = [item.model_dump(exclude_none=True, warnings=False) for item in compact.output]
    create(server, *kept, user("go on"))
    assert server.exchanges[-1].loaded == ()
    assert server.exchanges[-1].tokens.total < compact.usage.input_tokens
    with pytest.raises(openai.BadRequestError, match="could not be verified"):
        create(server, {"type": "compaction", "encrypted_content": "gAAAAAforeign"}, user("go on"))
    reply = create(server, *history)
    assert client.responses.compact(model=MODEL, previous_response_id=reply.id).output[-1].type == "compaction"


def test_what_is_asked_for_without_a_rule_never_fails():
    server = Emulator(rules="off")
    for method, path in [
        ("GET", "/v1/responses/resp_0"),
        ("DELETE", "/v1/conversations/conv_0"),
        ("GET", "/v1/conversations/conv_0/items/msg_0"),
        ("POST", "/v1/responses/resp_0/cancel"),
    ]:
        assert server.handle(method, "https://api.openai.com" + path, {}, b"").status == 404
    assert server.handle("GET", "https://api.openai.com/v1/responses", {}, b"").status == 404
