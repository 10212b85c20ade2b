"""What `retrieval.py` compares: the local search, other people's rankers (those that are installed), plain BM25."""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

from loadpoint import Tool, ToolIndex
from loadpoint._search import EmbeddingRanker, FusedRanker, _index

Search = Callable[[str, int], list[str]]
_WORD = re.compile(r"[a-z0-9]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def tokens(text: str) -> list[str]:
    """The words of `text`, split at case and separators."""
    return _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")).lower())


def _parameters(tool: Tool) -> str:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict):
        return ""
    parts = [
        f"{name} {part.get('description', '') if isinstance(part, dict) else ''}" for name, part in properties.items()
    ]
    return " ".join(parts)


def pydantic_ai(tools: Sequence[Tool]) -> Search | None:
    """The ranking function of the package pydantic-ai; None if it is not installed."""
    try:
        from pydantic_ai.tools import ToolDefinition
        from pydantic_ai.toolsets._tool_search import keywords_search_fn
    except ImportError:
        return None
    definitions = [ToolDefinition(name=tool.name, description=tool.description) for tool in tools]

    def search(query: str, limit: int) -> list[str]:
        found: list[str] = keywords_search_fn(None, [query], definitions)  # type: ignore[arg-type]
        return list(dict.fromkeys(found))[:limit]

    return search


def fastmcp(tools: Sequence[Tool]) -> Search | None:
    """The BM25 index of the package fastmcp over the text that it takes of a tool; None if it is not installed."""
    try:
        from fastmcp.server.transforms.search.base import _extract_searchable_text
        from fastmcp.server.transforms.search.bm25 import _BM25Index
    except ImportError:
        return None
    index = _BM25Index()
    shaped: list[Any] = [
        SimpleNamespace(name=tool.name, description=tool.description, parameters=_plain(tool)) for tool in tools
    ]
    index.build([_extract_searchable_text(tool) for tool in shaped])
    return lambda query, limit: [tools[at].name for at in index.query(query, limit)]


def _plain(tool: Tool) -> dict[str, Any]:
    return dict(tool.parameters) if isinstance(tool.parameters.get("properties"), dict) else {}


def bm25s(tools: Sequence[Tool]) -> Search | None:
    """The package bm25s with its defaults; None if it is not installed."""
    try:
        import bm25s as package
    except ImportError:
        return None
    index = package.BM25()
    texts = [tokens(f"{tool.name} {tool.description} {_parameters(tool)}") for tool in tools]
    index.index(texts, show_progress=False)

    def search(query: str, limit: int) -> list[str]:
        asked = tokens(query)
        if not asked:
            return []
        found, scores = index.retrieve([asked], k=min(limit, len(tools)), show_progress=False)
        return [tools[at].name for at, score in zip(found[0], scores[0], strict=True) if score > 0]

    return search


def bm25(tools: Sequence[Tool], *, names: int = 1, parameters: bool = False) -> Search:
    """Plain BM25 (k1 1.5, b 0.75): the name `names` times, the description, and the parameters if asked for."""
    texts = [tokens(" ".join([*[t.name] * names, t.description, _parameters(t) if parameters else ""])) for t in tools]
    mean = sum(map(len, texts)) / max(len(texts), 1)
    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for at, text in enumerate(texts):
        for word, count in Counter(text).items():
            postings[word].append((at, count * 2.5 / (count + 1.5 * (0.25 + 0.75 * len(text) / mean))))

    def search(query: str, limit: int) -> list[str]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word in tokens(query):
            held = postings.get(word, [])
            rarity = math.log(1 + (len(tools) - len(held) + 0.5) / (len(held) + 0.5))
            for at, gain in held:
                scores[at] += rarity * gain
        best = sorted(scores, key=lambda at: (-scores[at], at))
        return list(dict.fromkeys(tools[at].name for at in best))[:limit]

    return search


def regex(tools: Sequence[Tool]) -> Search:
    """What a regular expression of the query's words finds, by the number of different words matched."""
    texts = [f"{tool.name} {tool.description}".lower() for tool in tools]

    def search(query: str, limit: int) -> list[str]:
        words = {word for word in tokens(query) if len(word) > 2}
        counts = [sum(word in text for word in words) for text in texts]
        best = sorted((at for at, count in enumerate(counts) if count), key=lambda at: (-counts[at], at))
        return list(dict.fromkeys(tools[at].name for at in best))[:limit]

    return search


def ours(tools: Sequence[Tool], *, always: bool = False) -> Search:
    """The local search as shipped, or one that answers even where nothing fits."""
    index = ToolIndex(tools)

    def search(query: str, limit: int) -> list[str]:
        before = _index._ENOUGH  # noqa: SLF001 - the threshold is what is measured
        _index._ENOUGH = -math.inf if always else before  # noqa: SLF001
        try:
            return [match.name for match in index.search(query, limit)]
        finally:
            _index._ENOUGH = before  # noqa: SLF001

    return search


@cache
def _model() -> EmbeddingRanker | None:
    from loadpoint._search._minilm import MiniLMRanker

    try:
        ranker = MiniLMRanker(timeout=3_600.0)
    except ImportError:
        return None
    known: dict[str, Any] = {}
    encode = ranker._embed  # noqa: SLF001 - sets share their tools, and every text is embedded once

    def remembered(texts: list[str]) -> list[Any]:
        for text in texts:
            if text not in known:
                known[text] = encode([text])[0]
        return [known[text] for text in texts]

    ranker._embed = remembered  # noqa: SLF001
    return ranker


def embeddings(tools: Sequence[Tool], *, always: bool = False) -> Search | None:
    """The local search with the ranker of `loadpoint[embeddings]`; None if the extra is not installed."""
    ranker = _model()
    if ranker is None:
        return None
    fused = FusedRanker(ToolIndex(tools), ranker)

    def search(query: str, limit: int) -> list[str]:
        before = _index._ENOUGH, ranker.least  # noqa: SLF001 - the thresholds are what is measured
        if always:
            _index._ENOUGH, ranker.least = -math.inf, -1.0  # noqa: SLF001
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                return [match.name for match in fused.search(query, limit)]
        finally:
            _index._ENOUGH, ranker.least = before  # noqa: SLF001

    return search


RANKERS: dict[str, Callable[[Sequence[Tool]], Search | None]] = {
    "loadpoint": ours,
    "loadpoint, never silent": lambda tools: ours(tools, always=True),
    "loadpoint[embeddings]": embeddings,
    "[embeddings], never silent": lambda tools: embeddings(tools, always=True),
    "pydantic-ai": pydantic_ai,
    "fastmcp BM25": fastmcp,
    "bm25s": bm25s,
    "regex, words matched": regex,
    "BM25 name+description": bm25,
    "BM25 +parameters": lambda tools: bm25(tools, parameters=True),
    "BM25 name x3": lambda tools: bm25(tools, names=3),
}
"""What is compared; a maker that gives None has no package to measure."""
