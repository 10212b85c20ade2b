"""The callback for the LiteLLM Proxy, driven in the order of the Proxy's hooks with a real Router."""

from __future__ import annotations

import copy
import importlib.util
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from tests.core.conversation import CHAT, MESSAGES, NAMES, RESPONSES, tools
from tests.litellm.talking import SEARCHES, dumped, text_of
from tests.servers.redis_server import RedisServer

from loadpoint import InProcessLedger, Policy, PolicyError, RedisLedger
from loadpoint.emulator import Emulator, Move, Script, serve

Json = dict[str, Any]
PARTS = all(importlib.util.find_spec(name) for name in ("fastapi", "orjson", "soundfile", "backoff"))
"""litellm streams anthropic.messages with parts of its Proxy only."""
ROUTES = {CHAT: "acompletion", MESSAGES: "anthropic_messages", RESPONSES: "aresponses"}
pytestmark = pytest.mark.anyio


class Logging:
    """What stands for the Proxy's own object of each request."""


@dataclass
class Proxy:
    """What the Proxy does with a request: hooks, the Router, hooks."""

    litellm: Any
    hook: Any
    router: Any
    server: Emulator
    reports: list[Any]
    moves: list[Move] = field(default_factory=list)
    twice: bool = False

    def data(self, dialect: str, messages: list[Json], **more: Any) -> Json:
        model = "claude" if dialect == MESSAGES else "gpt"
        key = "input" if dialect == RESPONSES else "messages"
        given = {"model": model, key: messages, "tools": tools(dialect), **more}
        given = {name: value for name, value in given.items() if value is not None}
        given |= {"max_tokens": 500} if dialect == MESSAGES else {}
        return {
            **given,
            "litellm_call_id": "the client's own",
            "litellm_logging_obj": Logging(),
            "proxy_server_request": {"headers": {}, "body": copy.deepcopy(given)},
            "metadata": {"user_api_key": "hashed"},
        }

    async def edited(self, dialect: str, data: Json, team: str = "one") -> Json:
        key = SimpleNamespace(team_id=team, api_key="hashed")
        for _ in range(1 + self.twice):
            data = await self.hook.async_pre_call_hook(key, None, data, ROUTES[dialect]) or data
        return data

    async def call(self, dialect: str, messages: list[Json], team: str = "one", **more: Any) -> Any:
        """The reply that a client gets; a stream as its items."""
        before = copy.deepcopy(messages)
        data = await self.edited(dialect, self.data(dialect, messages, **more), team)
        out = await self.sent(dialect, data)
        assert messages == before
        assert not self.moves, "not every move was played"
        return out

    async def sent(self, dialect: str, data: Json) -> Any:
        given = {k: v for k, v in data.items() if k not in ("litellm_logging_obj", "litellm_call_id")}
        reply = await getattr(self.router, ROUTES[dialect])(**given)
        key = SimpleNamespace()
        if data.get("stream"):
            for _ in range(1 + self.twice):
                reply = self.hook.async_post_call_streaming_iterator_hook(key, reply, data)
            return [item async for item in reply]
        for _ in range(1 + self.twice):
            reply = await self.hook.async_post_call_success_hook(data, key, reply) or reply
        return reply


@pytest.fixture
def proxy(litellm: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    reports: list[Any] = []
    moves: list[Move] = []
    server = Emulator(Script(lambda _: moves.pop(0)))
    with serve(server) as running:
        router = litellm.Router(
            model_list=[
                {
                    "model_name": "gpt",
                    "litellm_params": {"model": "openai/gpt-5.4", "api_base": running.url + "/v1", "api_key": "sk-up"},
                },
                {
                    "model_name": "claude",
                    "litellm_params": {
                        "model": "anthropic/claude-opus-4-8",
                        "api_base": running.url,
                        "api_key": "sk-up",
                    },
                },
            ],
            num_retries=0,
        )
        from loadpoint_adapters.litellm import ProxyHook

        policy = Policy(threshold_tokens=0, endpoint="api.anthropic.com")
        hook = ProxyHook(policy, on_report=reports.append)
        monkeypatch.setattr(ProxyHook, "_router", staticmethod(lambda: router))
        yield Proxy(litellm, hook, router, server, reports, moves)


USER: Json = {"role": "user", "content": "please create an invoice"}


def bodies(proxy: Proxy) -> list[Json]:
    return [each.request for each in proxy.server.exchanges if each.request]


def names(body: Json) -> list[str]:
    return [str(tool.get("function", tool).get("name") or tool["type"]) for tool in body["tools"]]


@pytest.mark.parametrize("twice", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("dialect", ROUTES)
async def test_the_search_is_a_round_of_its_own_and_not_shown(proxy: Proxy, dialect: str, stream: bool, twice: bool):
    if dialect == MESSAGES and stream and not PARTS:
        pytest.skip("litellm has no such stream without the extra loadpoint[proxy-tests]")
    proxy.twice = twice
    proxy.moves[:] = SEARCHES[:2]
    reply = await proxy.call(dialect, [USER], stream=stream or None)
    text = (
        "".join(item.decode() if isinstance(item, bytes) else item.model_dump_json() for item in reply)
        if stream
        else ""
    )
    text = text or json.dumps(dumped(dialect, reply))
    assert "invoice_create" in text
    assert '"ToolSearch"' not in text
    first, second = bodies(proxy)
    assert not set(names(first)) & set(NAMES), "nothing but the loader"
    assert len(json.dumps(second)) < len(json.dumps(tools(dialect)))
    (report,) = proxy.reports
    assert len(report.rounds) == 2
    assert report.strategy == ("native" if dialect == MESSAGES else "resend")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_conversation_goes_on_with_what_was_sent(proxy: Proxy, stream: bool):
    """Streamed or not in its first turn: the next request begins with the messages of the last one."""
    if stream and not PARTS:
        pytest.skip("litellm has no such stream without the extra loadpoint[proxy-tests]")
    proxy.moves[:] = SEARCHES[:2]
    reply = await proxy.call(MESSAGES, [USER], stream=stream or None)
    if stream:
        block = {"type": "tool_use", "id": "", "name": "invoice_create", "input": {"id": 7}}
        frames = [json.loads(line[6:]) for raw in reply for line in raw.decode().splitlines() if line[:6] == "data: "]
        block["id"] = next(
            f["content_block"]["id"] for f in frames if f.get("content_block", {}).get("type") == "tool_use"
        )
        reply = {"content": [block]}
    proxy.moves[:] = [SEARCHES[2]]
    answer = [{"type": "tool_result", "tool_use_id": reply["content"][-1]["id"], "content": "ok"}]
    told = [block for block in reply["content"] if block["type"] == "tool_use" or not stream]
    text = [{"type": "text", "text": SEARCHES[0].text}] if stream else []
    history = [USER, {"role": "assistant", "content": [*text, *told]}, {"role": "user", "content": answer}]
    last = await proxy.call(MESSAGES, history)
    assert text_of(MESSAGES, dumped(MESSAGES, last)) == "done"
    sent = bodies(proxy)
    for before, after in pairwise(sent):
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert after["tools"][: len(before["tools"])] == before["tools"]
    assert [report.prefix.broke for report in proxy.reports] == ["first_request", None]


async def test_each_round_is_a_call_of_its_own_for_litellms_callbacks(proxy: Proxy, litellm: Any):
    import asyncio

    from litellm.integrations.custom_logger import CustomLogger

    seen: list[tuple[str, str]] = []

    class Tracer(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
            if (kwargs.get("optional_params") or {}).get("seed") == 4712:  # others of before may still be told
                seen.append((kwargs["litellm_call_id"], kwargs["litellm_params"]["metadata"].get("user_api_key")))

    litellm.callbacks = [Tracer()]
    proxy.moves[:] = SEARCHES[:2]
    reply = await proxy.call(CHAT, [USER], seed=4712)
    for _ in range(200):
        await asyncio.sleep(0.05)
        if len(seen) == 2:
            break
    assert len({name for name, _ in seen}) == 2
    assert {key for _, key in seen} == {"hashed"}, "each round is paid for by the virtual key"
    rounds = proxy.reports[0].rounds
    assert reply.usage.total_tokens == sum(each.usage["total_tokens"] for each in rounds)


async def test_what_a_guardrail_masks_stays_masked_in_further_rounds(proxy: Proxy):
    data = await proxy.edited(CHAT, proxy.data(CHAT, [{"role": "user", "content": "my name is Ada"}]))
    data["messages"] = [{**m, "content": m["content"].replace("Ada", "<NAME>")} for m in data["messages"]]
    proxy.moves[:] = SEARCHES[:2]
    await proxy.sent(CHAT, data)
    assert len(bodies(proxy)) == 2
    assert all("Ada" not in json.dumps(body) and "<NAME>" in json.dumps(body) for body in bodies(proxy))


async def test_a_guardrail_on_replies_makes_the_call_pass_whole(proxy: Proxy, litellm: Any):
    from litellm.integrations.custom_guardrail import CustomGuardrail
    from litellm.types.guardrails import GuardrailEventHooks

    litellm.callbacks = [CustomGuardrail("checks", event_hook=GuardrailEventHooks.post_call, default_on=True)]
    proxy.moves[:] = [Move(text="hello")]
    await proxy.call(CHAT, [USER])
    assert len(names(bodies(proxy)[0])) == len(NAMES)
    assert "guardrail" in proxy.reports[0].reason


async def test_a_conversation_that_the_provider_holds_passes_whole(proxy: Proxy):
    data = await proxy.edited(RESPONSES, proxy.data(RESPONSES, [USER], previous_response_id="resp_1"))
    assert len(names(data)) == len(NAMES)
    proxy.moves[:] = [Move(text="hello")]
    del data["previous_response_id"]  # the emulator does not know it
    await proxy.sent(RESPONSES, data)
    assert "other ids" in proxy.reports[0].reason


@pytest.mark.parametrize("changes", [{"model": "never heard of"}, {"tools": []}, {"litellm_logging_obj": None}])
async def test_what_is_not_ours_is_left_alone(proxy: Proxy, changes: Json):
    data = {**proxy.data(CHAT, [USER]), **changes}
    before = {**data}
    assert await proxy.edited(CHAT, data) == before
    assert not proxy.reports


async def test_the_client_can_switch_it_off(proxy: Proxy):
    data = proxy.data(CHAT, [USER])
    data["proxy_server_request"]["headers"] = {"x-loadpoint": "off"}
    edited = await proxy.edited(CHAT, data)
    assert edited["tools"] == data["tools"]
    assert "x-loadpoint" not in json.dumps({k: v for k, v in edited.items() if k in ("headers", "extra_headers")})


async def test_calls_with_one_id_are_not_mixed(proxy: Proxy):
    """Its id is what the client says in a header."""
    one = await proxy.edited(CHAT, proxy.data(CHAT, [{"role": "user", "content": "first"}]), "one")
    two = await proxy.edited(CHAT, proxy.data(CHAT, [{"role": "user", "content": "second"}]), "two")
    proxy.moves[:] = [*SEARCHES[:2], *SEARCHES[:2]]
    await proxy.sent(CHAT, one)
    await proxy.sent(CHAT, two)
    assert ["second" in json.dumps(body) for body in bodies(proxy)] == [False, False, True, True]


async def test_another_model_after_the_first_try_is_begun_again(proxy: Proxy):
    data = await proxy.edited(CHAT, proxy.data(CHAT, [USER]))
    again = await proxy.edited(CHAT, {**data, "model": "claude"})
    assert again["model"] == "claude"
    assert names(again) == names(data) == ["ToolSearch"]
    proxy.moves[:] = SEARCHES[:2]
    await proxy.sent(CHAT, again)
    assert len(bodies(proxy)) == 2
    assert "ToolSearch" not in json.dumps(proxy.reports[-1].resident)


async def test_tenants_have_ledgers_of_their_own(proxy: Proxy):
    from loadpoint_adapters.litellm import ProxyHook

    ledgers: dict[str, InProcessLedger] = {}
    proxy.hook = ProxyHook(
        Policy(threshold_tokens=0),
        ledger_of=lambda tenant: ledgers.setdefault(tenant, InProcessLedger()),
        on_report=proxy.reports.append,
    )
    for team in ("one", "two"):
        proxy.moves[:] = [Move(text="hello")]
        await proxy.call(CHAT, [USER], team)
    assert ledgers["team_id:one"].bytes_held
    keys = [set(ledgers[f"team_id:{team}"]._records) for team in ("one", "two")]
    assert not keys[0] & keys[1], "and other keys, even in a ledger that they share"


async def test_a_form_that_is_refused_is_not_used_again(proxy: Proxy):
    data = await proxy.edited(MESSAGES, proxy.data(MESSAGES, [USER]))

    class RefusedError(Exception):
        status_code = 400

    said = "Input tag 'tool_reference' found using 'type' does not match any of the expected tags"
    await proxy.hook.async_post_call_failure_hook(data, RefusedError(said), SimpleNamespace())
    proxy.moves[:] = SEARCHES[:2]
    await proxy.call(MESSAGES, [USER])
    assert proxy.reports[-1].load_point != "tool_reference"


async def test_an_error_of_a_later_round_reaches_the_client(proxy: Proxy, litellm: Any):
    data = await proxy.edited(CHAT, proxy.data(CHAT, [USER]))
    proxy.moves[:] = [SEARCHES[0], Move.fault(429, "slow down")]
    with pytest.raises(litellm.RateLimitError, match="slow down"):
        await proxy.sent(CHAT, data)
    before = len(bodies(proxy))
    proxy.moves[:] = [SEARCHES[1]]
    reply = await proxy.call(CHAT, [USER])
    assert reply.choices[0].message.tool_calls[0].function.name == "invoice_create"
    assert len(bodies(proxy)) == before + 1, "the search was paid for"


# ------------------------------------------------------------------------------------------------- settings


async def test_the_name_for_the_configuration_is_a_hook(litellm: Any):
    from litellm.integrations.custom_logger import CustomLogger

    import loadpoint_adapters.litellm as adapter

    assert isinstance(adapter.proxy_hook, CustomLogger)
    assert adapter.proxy_hook is adapter.proxy_hook
    wanted = ("async_pre_call_hook", "async_post_call_success_hook", "async_post_call_streaming_iterator_hook")
    assert set(wanted) <= set(vars(type(adapter.proxy_hook))), "the Proxy looks in the class itself"
    with pytest.raises(AttributeError):
        _ = adapter.proxy_hok  # type: ignore[attr-defined]


async def test_the_environment_says_policy_and_ledger(
    litellm: Any, monkeypatch: pytest.MonkeyPatch, redis_server: RedisServer
):
    from loadpoint_adapters.litellm import ProxyHook

    monkeypatch.setenv("LOADPOINT_POLICY", '{"strategy": "resend", "resident": ["a"]}')
    monkeypatch.setenv("LOADPOINT_REDIS_URL", redis_server.url)
    hook: Any = ProxyHook()
    session = hook._session("team_id:one")
    assert (session.policy.strategy, tuple(session.policy.resident)) == ("resend", ("a",))
    assert isinstance(session.ledger, RedisLedger)
    assert session.ledger._link is hook._session("team_id:two").ledger._link


@pytest.mark.parametrize("text", ["[]", "{", '{"strateg": "eager"}', '{"strategy": "fast"}'])
async def test_a_policy_that_cannot_be_used_is_said_at_the_start(
    litellm: Any, monkeypatch: pytest.MonkeyPatch, text: str
):
    from loadpoint_adapters.litellm import ProxyHook

    monkeypatch.setenv("LOADPOINT_POLICY", text)
    with pytest.raises(PolicyError):
        ProxyHook()
