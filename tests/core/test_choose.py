"""choose: which strategy, which load point, and a reason, in the order policy, record, transcript, cost."""

from __future__ import annotations

import pytest

from loadpoint._capability import capability
from loadpoint._policy import Policy
from loadpoint._prices import cache_rule
from loadpoint._strategy.choose import Choice, choose, threshold

MESSAGES, CHAT = "anthropic.messages", "openai.chat"
GATEWAY = "https://llm.corp.example/v1"


def decide(model="claude-opus-4-5", dialect=MESSAGES, base_url=None, policy=None, **given) -> Choice:
    facts = {
        "policy": policy or Policy(),
        "capability": capability(model, dialect, base_url),
        "cache_rule": cache_rule(model, dialect, base_url),
        "deferrable_tokens": 44_000,
        "resident_tokens": 300,
        "deferrable_count": 100,
        "pinned": None,
        "evidence": False,
    }
    return choose(**{**facts, **given})


@pytest.mark.requirement("N17")
def test_native_where_the_data_says_so():
    choice = decide()
    assert (choice.strategy, choice.load_point) == ("native", "tool_reference")
    assert "takes tool_reference" in choice.reason


@pytest.mark.requirement("N18")
@pytest.mark.parametrize(
    ("model", "dialect", "base_url"),
    [("gpt-5.4", CHAT, None), ("claude-3-7-sonnet-latest", MESSAGES, None), ("gpt-4o", CHAT, GATEWAY)],
)
def test_the_list_is_resent_where_there_is_no_native_form(model, dialect, base_url):
    choice = decide(model, dialect, base_url, deferrable_tokens=50_000)
    assert (choice.strategy, choice.load_point) == ("resend", None)


def test_few_tokens_are_sent_whole_and_the_report_says_what_deferral_would_have_sent():
    choice = decide(deferrable_tokens=1200, deferrable_count=8)
    assert choice.strategy == "eager"
    assert choice.would_send == 300 + 220 + 8 * 12
    assert "deferral would have sent about 616 tool tokens instead of 1,500" in choice.reason
    assert f"{choice.threshold:,}" in choice.reason


def test_nothing_to_defer():
    choice = decide(deferrable_tokens=0, deferrable_count=0, policy=Policy(strategy="native"))
    assert choice == Choice("eager", None, "no tool may be deferred", None, 300 + 220)


def test_a_conversation_whose_deferred_tools_are_all_gone_stays_as_it_is():
    gone = {"deferrable_tokens": 0, "deferrable_count": 0}
    assert decide(**gone, pinned="native", pinned_load_point="tool_reference").strategy == "native"
    assert decide(**gone, evidence=True).strategy == "native"
    assert decide("gpt-5.4", CHAT, **gone, pinned="resend").strategy == "resend"


@pytest.mark.parametrize("strategy", ["eager", "resend", "frozen"])
def test_the_policys_own_strategy_is_taken(strategy):
    for pinned in (None, "native", "eager"):
        choice = decide(policy=Policy(strategy=strategy), pinned=pinned, evidence=True, deferrable_tokens=10)
        assert (choice.strategy, choice.load_point) == (strategy, None)
        assert f'the policy says "{strategy}"' in choice.reason
    assert ("instead of" in choice.reason) == (strategy == "eager")


def test_native_can_be_insisted_on_for_an_unknown_endpoint():
    choice = decide(base_url=GATEWAY, policy=Policy(strategy="native"), deferrable_tokens=10)
    assert (choice.strategy, choice.load_point) == ("native", "tool_reference")
    assert "not an endpoint the data knows" in choice.reason


def test_native_cannot_be_had_where_the_model_has_none():
    choice = decide("gpt-5.4", CHAT, policy=Policy(strategy="native"))
    assert (choice.strategy, choice.load_point) == ("resend", None)
    assert "no native form" in choice.reason
    old = decide("claude-3-opus-20240229", base_url=GATEWAY, policy=Policy(strategy="native"))
    assert old.strategy == "resend"


def test_an_explicit_threshold_holds_for_every_strategy_that_has_not_begun():
    policy = Policy(strategy="native", threshold_tokens=5000)
    assert decide(policy=policy, deferrable_tokens=4999).strategy == "eager"
    assert decide(policy=policy, deferrable_tokens=5000).strategy == "native"
    assert decide(policy=policy, deferrable_tokens=10, evidence=True).strategy == "native"
    assert decide(policy=policy, deferrable_tokens=10, pinned="native").strategy == "native"
    assert decide(policy=policy, deferrable_tokens=10, marked=True).strategy == "native"
    assert decide(policy=Policy(threshold_tokens=0), deferrable_tokens=10, deferrable_count=1).strategy == "native"
    assert decide(policy=Policy(threshold_tokens=99_999)).strategy == "eager"
    assert "the policy asks for" in decide(policy=Policy(threshold_tokens=99_999)).reason


@pytest.mark.parametrize("pinned", ["eager", "resend", "frozen"])
def test_the_record_is_kept(pinned):
    for tokens in (10, 500_000):
        choice = decide(pinned=pinned, deferrable_tokens=tokens, evidence=True)
        assert (choice.strategy, choice.load_point) == (pinned, None)


def test_the_recorded_load_point_is_kept_while_it_can_be():
    kept = {"pinned": "native", "pinned_load_point": "tool_addition", "deferrable_tokens": 10}
    assert decide("claude-opus-5", **kept).load_point == "tool_addition"
    assert decide("claude-opus-5", **kept, refused={"tool_addition"}).load_point == "tool_reference"
    assert decide("claude-opus-4-5", **kept).load_point == "tool_reference"
    other = decide("claude-3-opus-20240229", **kept)
    assert (other.strategy, other.load_point) == ("resend", None)
    assert "began with native" in other.reason
    assert decide(base_url=GATEWAY, **kept).strategy == "native"  # it was insisted on


@pytest.mark.parametrize("fact", ["evidence", "marked"])
def test_a_load_in_the_transcript_and_the_callers_marks_keep_deferral(fact):
    few = {"deferrable_tokens": 10, "deferrable_count": 1}
    assert decide(**few).strategy == "eager"
    assert decide(**few, **{fact: True}).strategy == "native"
    assert decide("gpt-5.4", CHAT, **few, **{fact: True}).strategy == "resend"
    assert decide(base_url=GATEWAY, **few, **{fact: True}).strategy == "resend"


def test_what_the_endpoint_has_refused_is_not_tried_again():
    assert decide("claude-opus-5", refused={"tool_reference"}).load_point == "tool_addition"
    only = decide("claude-opus-4-5", refused={"tool_reference"}, deferrable_tokens=80_000)
    assert (only.strategy, only.load_point) == ("resend", None)
    assert "has refused tool_reference" in only.reason
    assert decide("claude-opus-5", refused={"native"}, deferrable_tokens=80_000).strategy == "resend"
    assert decide("claude-opus-5", refused={"native"}, policy=Policy(strategy="native")).strategy == "resend"
    # Nothing has begun, and resending would not pay here: everything is sent.
    assert decide("claude-opus-4-5", refused={"tool_reference"}, deferrable_tokens=10_000).strategy == "eager"


def test_only_forms_that_the_dialect_can_write_are_taken():
    assert decide("kimi-k3", CHAT).load_point == "system_tools"
    assert decide("kimi-k3", CHAT, renders=()).strategy == "resend"
    assert decide("claude-opus-5", renders={"tool_addition"}).load_point == "tool_addition"


def test_hosted_search_is_taken_only_when_asked_for():
    hosted = Policy(search="hosted")
    assert decide(policy=hosted).load_point == "hosted_search"
    assert decide(policy=hosted, renders={"tool_reference"}).load_point == "tool_reference"
    assert decide(refused={"tool_reference"}, deferrable_tokens=80_000).load_point is None
    gateway = {"model": "openai/gpt-5.2", "dialect": "openai.responses", "base_url": "https://openrouter.ai/api/v1"}
    assert decide(**gateway).load_point is None
    assert decide(**gateway, policy=Policy(strategy="native")).load_point is None, "a search of theirs is a choice"
    assert decide(**gateway, policy=hosted).load_point == "gateway_search"
    assert decide(**gateway, policy=Policy(load_point="gateway_search")).load_point == "gateway_search"
    assert decide("claude-opus-5", policy=Policy(load_point="tool_addition")).load_point == "tool_addition"
    assert decide(policy=Policy(load_point="system_tools")).load_point == "tool_reference", "not one of this model's"


def test_more_tools_than_the_provider_takes_are_deferred_whatever_that_costs():
    few = {"deferrable_tokens": 9000, "deferrable_count": 120}
    assert decide("gpt-5.4", CHAT, **few, resident_count=8).strategy == "eager"
    over = decide("gpt-5.4", CHAT, **few, resident_count=9)
    assert over.strategy == "resend"
    assert "129 tools are more than the 128" in over.reason
    assert decide("gpt-5.4", CHAT, GATEWAY, **few, resident_count=9).strategy == "eager"


def test_dear_breaks_raise_the_threshold_of_resend():
    rules = [
        cache_rule(model, CHAT) for model in ("gpt-5.2-pro", "gpt-4o", "gpt-4.1", "gpt-5.4", "gpt-5.6", "gpt-6.1-sol")
    ]
    needed = [threshold("resend", rule) or 0 for rule in rules]
    assert needed == sorted(needed)
    assert len(set(needed)) == len(needed)
    assert (threshold("resend", rules[3], context_tokens=50_000) or 0) > needed[3]
    assert threshold("resend", rules[3], context_tokens=10) == needed[3]


def test_where_no_row_of_the_data_pays_everything_is_sent():
    rule = cache_rule("claude-opus-5", MESSAGES)
    hourly = type(rule)(1024, 1, 0.01, 2.0, 4, False)
    assert threshold("resend", hourly) is None
    choice = decide("claude-3-opus-20240229", cache_rule=hourly, deferrable_tokens=900_000)
    assert choice.strategy == "eager"
    assert "costs more than it saves" in choice.reason


def test_an_unknown_dialect_sends_everything():
    assert decide("gpt-5.4", "other.api").strategy == "eager"


def test_every_reason_is_one_short_sentence():
    for model, dialect in (("claude-opus-5", MESSAGES), ("gpt-5.4", CHAT), ("claude-3-opus-20240229", MESSAGES)):
        for tokens in (10, 5000, 100_000):
            for pinned in (None, "native", "eager"):
                reason = decide(model, dialect, pinned=pinned, deferrable_tokens=tokens).reason
                assert "\n" not in reason
                assert 10 < len(reason) < 260
