"""A user's own lines: they come first, can deny a load point, say whose they are, and are never half believed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import anthropic
import pytest

import loadpoint
from loadpoint import Policy, PolicyError, _own_models, _rows, capability, emulator
from loadpoint._prices import cache_rule, price
from loadpoint._strategy.choose import choose
from loadpoint.emulator import Move, Script

MESSAGES, CHAT, RESPONSES = "anthropic.messages", "openai.chat", "openai.responses"
GATEWAY = """
[[endpoint]]
name = "llm.corp.example"
hosts = ["llm.corp.example", "*.llm.corp.example"]
stream_usage = true

[[load_point]]
name = "tool_reference"
dialects = ["anthropic.messages"]
families = ["claude"]
from = "4.5"
endpoints = ["llm.corp.example"]
"""
DENIED = """
[[denied]]
dialects = ["anthropic.messages"]
endpoints = ["api.anthropic.com"]
load_points = ["tool_reference"]
reason = "our account has it switched off"
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a file of own lines and name it in the environment."""
    count = iter(range(100))

    def write(text: str) -> Path:
        path = tmp_path / f"models{next(count)}.toml"
        path.write_text(text, encoding="utf-8")
        monkeypatch.setenv(_own_models.VARIABLE, str(path))
        return path

    return write


def test_a_line_makes_an_endpoint_known(own, monkeypatch):
    before = capability("claude-opus-5", MESSAGES, "https://eu.llm.corp.example/v1")
    assert not before.native
    path = own(GATEWAY)
    found = capability("claude-opus-5", MESSAGES, "https://eu.llm.corp.example/v1")
    assert found.load_points == ("tool_reference",)
    assert found.endpoint == "llm.corp.example"
    assert found.stream_usage
    assert found.source == f"your own line: {path} [[load_point]] row 1"
    assert found.grade == "reported"
    assert not capability("claude-opus-4-1", MESSAGES, "https://llm.corp.example").native
    assert capability("claude-opus-5", MESSAGES, "https://other.example").endpoint is None
    monkeypatch.delenv(_own_models.VARIABLE)
    assert capability("claude-opus-5", MESSAGES, "https://eu.llm.corp.example/v1") == before


def test_a_line_denies_one_load_point_and_the_next_is_taken(own):
    path = own(DENIED)
    found = capability("claude-opus-5", MESSAGES)
    assert found.load_points == ("tool_addition", "hosted_search")
    assert found.native
    only = capability("claude-opus-4-5", MESSAGES)
    assert (only.native, only.strategies) == (False, ("resend", "frozen", "eager"))
    assert only.reason == "our account has it switched off"
    assert only.source == f"your own line: {path} [[denied]] row 1"
    # Elsewhere nothing changes, nor for a policy that insists on what the provider has on other platforms.
    assert capability("claude-opus-4-5", MESSAGES, "https://claude.googleapis.com").native
    assert [point.name for point in only.insisted][:1] == ["tool_reference"]


def test_a_line_without_names_denies_them_all_but_those_of_the_users_own(own):
    deny = '[[denied]]\nfamilies = ["gpt"]\nreason = "not with us"\n'
    own(deny)
    assert capability("gpt-5.4", RESPONSES).load_points == ()
    assert capability("gpt-5.4", RESPONSES).reason == "not with us"
    assert capability("claude-opus-5", MESSAGES).native
    own(f'{deny}[[load_point]]\nname = "tool_search"\nendpoints = ["api.openai.com"]\nfamilies = ["gpt"]\n')
    assert capability("gpt-5.4", RESPONSES).load_points == ("tool_search",)


def test_the_choice_follows(own):
    def chosen() -> str | None:
        return choose(
            policy=Policy(),
            capability=capability("claude-opus-4-5", MESSAGES),
            deferrable_tokens=90_000,
            resident_tokens=300,
            deferrable_count=200,
            cache_rule=cache_rule("claude-opus-4-5", MESSAGES),
            pinned=None,
            evidence=False,
        ).load_point

    assert chosen() == "tool_reference"
    own(DENIED)
    assert chosen() is None


def test_a_deployment_is_read_as_the_model_that_it_is(own):
    azure = "https://acme.openai.azure.com/openai/v1"
    assert not capability("Team-Blue-2", RESPONSES, azure).native
    own('[[alias]]\nmatch = "Team-*"\nmodel = "gpt-5.4"\n')
    found = capability("Team-Blue-2", RESPONSES, azure)
    assert found.load_points[0] == "tool_search"
    assert "team-blue-2 takes tool_search" in found.reason
    listed = price("Team-Blue-2", RESPONSES)
    assert listed is not None
    assert listed == price("gpt-5.4", RESPONSES)


def test_single_limits_traits_caches_and_prices_can_be_set(own, monkeypatch):
    own("""
[[limits]]
endpoints = ["api.openai.com"]
functions = 512
[[trait]]
match = ["gpt-4o*"]
refused_choices = ["named"]
[[trait]]
families = ["claude"]
forced_choice = true
[[cache]]
families = ["gpt"]
minimum = 4096
read = 0.75
[[price]]
match = ["gpt-4o"]
usd = { input = 1.0, cached = 0.25, output = 2.0 }
""")
    found = capability("gpt-4o", CHAT)
    assert (found.limits.functions, found.limits.description_length) == (512, 1024), "the others stay the data's"
    assert found.refused_choices == ("named",)
    assert capability("claude-opus-5-5", MESSAGES).forced_choice
    rule = cache_rule("gpt-4o", CHAT)
    assert (rule.minimum, rule.read) == (4096, 0.75)
    assert rule.source.startswith("your own line: ")
    monkeypatch.setitem(sys.modules, "litellm", type("Fake", (), {"model_cost": {"gpt-4o": {}}}))
    listed = price("gpt-4o", CHAT)
    assert listed is not None
    assert (listed.input, listed.cached, listed.written, listed.output) == (1e-6, 0.25e-6, 1e-6, 2e-6)


def test_own_lines_keep_the_provenance_that_they_give(own):
    own(GATEWAY + 'source = "https://wiki.corp.example/llm"\ndate = "2026-12-01"\ngrade = "recorded"\n')
    found = capability("claude-opus-5", MESSAGES, "llm.corp.example")
    assert found.source.endswith("[[load_point]] row 1, after https://wiki.corp.example/llm")
    assert (found.date, found.grade) == ("2026-12-01", "recorded")


BROKEN = [
    ('[[load_point]]\nname = "tool_serch"\nendpoints = ["vertex"]', "[[load_point]] row 1", "name = 'tool_serch'",
     "tool_search"),
    ('[[load_point]]\nname = "tool_search"', "row 1", "endpoints is missing", "api.openai.com"),
    ('[[denied]]\nreason = "a"\n[[denied]]\nreason = "b"\ndialects = ["openai"]', "[[denied]] row 2",
     "dialects = ['openai']", "openai.chat"),
    ('[[denied]]\nreason = ""', "row 1", "reason = ''", "non-empty"),
    ('[[denied]]\nreason = "a"\nfamilies = "gpt"', "row 1", "families = 'gpt'", "a list of"),
    ('[[denied]]\nreason = "a"\nfrom = 5.4', "row 1", "from = 5.4", "'5.4'"),
    ('[[denied]]\nreason = "a"\nload_point = ["x"]', "row 1", "the field = 'load_point'", "load_points"),
    ('[[trait]]\nforced_choice = "no"', "row 1", "forced_choice = 'no'", "true or false"),
    ('[[trait]]\nrefused_choices = ["any"]', "row 1", "refused_choices = ['any']", "required, named, allowed"),
    ("[[limits]]\nfunctions = -1", "row 1", "functions = -1", "whole number from 0"),
    ("[[limits]]\nfunctions = true", "row 1", "functions = True", "whole number from 0"),
    ('[[limits]]\nname_pattern = "["', "row 1", "name_pattern = '['", "regular expression"),
    ('[[cache]]\nread = "cheap"', "row 1", "read = 'cheap'", "a number from 0"),
    ("[[price]]\nusd = { input = 1.0 }", "row 1", "usd = {'input': 1.0}", "input and output"),
    ("[[price]]\nusd = { input = 1.0, output = inf }", "row 1", "usd", "input and output"),
    ('[[endpoint]]\nname = "x"', "row 1", "hosts is missing", "a list"),
    ('[[denied]]\nreason = "a"\ngrade = "sure"', "row 1", "grade = 'sure'", "documented, recorded"),
    ('[[denied]]\nreason = "a"\ndate = "yesterday"', "row 1", "date = 'yesterday'", "2026-11-30"),
    ('[[denied]]\nreason = "a"\nendpoints = ["gateway.example"]', "row 1", "endpoints = ['gateway.example']", "vertex"),
    ("[[threshold]]\ntokens = 1", "[[threshold]]", "the kind of row", "load_point, denied"),
    ('[load_point]\nname = "tool_search"', "[[load_point]]", "the table", "rows, each under [[load_point]]"),
    ("limits = [3]", "[[limits]] row 1", "the row = 3", "fields under [[limits]]"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "where", "what", "allowed"), BROKEN)
def test_a_broken_line_is_named_with_file_row_field_value_and_what_is_allowed(own, text, where, what, allowed):
    path = own(text)
    for _ in range(2):  # not only the first time
        with pytest.raises(PolicyError) as caught:
            capability("gpt-5.4")
        message = str(caught.value)
        assert str(path) in message
        assert where in message
        assert what in message
        assert allowed in message.partition("allowed: ")[2]


def test_a_file_that_is_missing_or_no_toml_is_an_error(own, tmp_path, monkeypatch):
    path = own("[[denied\n")
    with pytest.raises(PolicyError, match=r"models0\.toml: is not TOML"):
        cache_rule("gpt-5.4", CHAT)
    path.write_bytes(b"\xff\xfe")
    monkeypatch.setenv(_own_models.VARIABLE, str(tmp_path / "." / path.name))
    with pytest.raises(PolicyError, match="is not TOML"):
        price("gpt-5.4", CHAT)
    monkeypatch.setenv(_own_models.VARIABLE, str(tmp_path / "nowhere.toml"))
    with pytest.raises(PolicyError, match=r"nowhere\.toml: cannot be read"):
        capability("gpt-5.4")


def test_a_first_mistake_says_how_many_more_there_are(own):
    own('[[trait]]\nforced_choice = 1\nbinds_thinking = 2\n[[limits]]\nfunctions = "x"\n')
    with pytest.raises(PolicyError, match=r"forced_choice = 1 .*\(and 2 more\)"):
        capability("gpt-5.4")


def test_the_word_user_names_the_file_in_the_configuration_folder(tmp_path, monkeypatch):
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.setattr(platformdirs, "user_config_path", lambda name: tmp_path / name)
    (tmp_path / "loadpoint").mkdir()
    (tmp_path / "loadpoint" / "models.toml").write_text(GATEWAY, encoding="utf-8")
    assert not capability("claude-opus-5", MESSAGES, "llm.corp.example").native, "nothing asked for it"
    _own_models._read.cache_clear()
    monkeypatch.setenv(_own_models.VARIABLE, "user")
    assert capability("claude-opus-5", MESSAGES, "llm.corp.example").native
    _own_models._read.cache_clear()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(PolicyError, match=r"needs platformdirs, which comes with loadpoint\[cli\]"):
        capability("claude-opus-5", MESSAGES)


def test_nothing_is_read_that_nobody_named_and_a_file_is_read_once(own, monkeypatch):
    opened: list[str] = []
    real = Path.read_text

    def watched(self: Path, *given: Any, **more: Any) -> str:
        opened.append(self.name)
        return real(self, *given, **more)

    monkeypatch.setattr(Path, "read_text", watched)
    capability("gpt-5.4-never-asked-before", RESPONSES)
    assert [name for name in opened if "models" in name] == []
    own(GATEWAY)
    for number in range(5):
        capability(f"claude-opus-5-{number}", MESSAGES)
    assert opened.count("models0.toml") == 1


def test_wrapping_reads_no_file_and_a_mistake_costs_the_deferral_not_the_call(own, caplog):
    path = own("[[denied]]\n")
    server = emulator.Emulator(Script.sequence([Move(text="hello")]))
    client = loadpoint.wrap(anthropic.Anthropic(api_key="k", http_client=emulator.http_client("anthropic", server)))
    tools: list[Any] = [
        {"name": f"tool_{number}", "description": "d " * 400, "input_schema": {"type": "object"}}
        for number in range(40)
    ]
    reply = client.messages.create(
        model="claude-opus-5", max_tokens=9, tools=tools, messages=[{"role": "user", "content": "hi"}]
    )
    assert reply.content[0].type == "text"
    sent: list[Any] = [exchange.request for exchange in server.exchanges]
    assert [body["tools"] for body in sent] == [tools], "sent as it came"
    assert str(path) in caplog.text
    assert "[[denied]] row 1: reason is missing" in caplog.text


def test_looking_up_without_own_lines_imports_no_schema():
    code = (
        "import sys; from loadpoint import capability; capability('gpt-5.4', 'openai.responses')\n"
        "print(any(name in sys.modules for name in ('loadpoint._rows', 'platformdirs')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "False"


def test_the_schema_finds_what_is_missing_in_a_line_of_ours():
    line = {"name": "tool_search", "endpoints": ["vertex"], "source": "https://a.example", "date": "2026-11-30"}
    assert [problem.field for problem in _rows.problems({"load_point": [line]})] == ["grade"]
    assert list(_rows.problems({"load_point": [line]}, own=True)) == []
    assert [problem.field for problem in _rows.problems({"alias": []})] == ["the kind of row"]
