"""Search quality and speed on public retrieval sets, beside other rankers in the same run. Needs LOADPOINT_DATA.

    LOADPOINT_DATA=... python benchmarks/retrieval.py [--half dev|held|all] [--json FILE]

Every set is cut into two halves by a hash of the query's id (of the need, where one need has several wordings): the
weights of the search were chosen on `dev` only. Exits 1 if an exact name is not found first.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import random
import re
import statistics
import sys
import time
import tracemalloc
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from loadpoint import Tool, ToolIndex
from loadpoint._search import _index

SETS = (
    "bfcl_python bfcl_multiturn metatool_single livemcpbench_step sealtools_single toolalpaca traject_simple "
    "restbench_spotify gtc_github gtc_mcp apibank_keywords apibank_utterance"
).split()
STYLES = ("kw", "cap", "para")
OUTSIDE = {
    "restbench_spotify": ("gtc_github", "gtc_mcp", "apibank_keywords", "livemcpbench_step"),
    "gtc_github": ("restbench_spotify", "apibank_keywords", "toolalpaca"),
    "gtc_mcp": ("restbench_spotify", "apibank_keywords", "toolalpaca"),
    "apibank_keywords": ("gtc_github", "gtc_mcp"),
    "toolalpaca": ("gtc_github", "gtc_mcp"),
    "bfcl_multiturn": ("gtc_github", "restbench_spotify"),
}
"""Sets of narrow scope, and whose queries they cannot serve."""

Query = dict[str, Any]
Search = Callable[[str, int], list[str]]
_WORD = re.compile(r"[a-z0-9]+")
_FOLDED = re.compile(r"[^\W_]{2,}")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def half(name: str, query: Query) -> str:
    """`dev` or `held`: the same for all wordings of one need."""
    need = query["id"].rsplit("-", 1)[0] if name == "mcp_real" else query["id"]
    return "held" if hashlib.sha256(f"{name}:{need}".encode()).digest()[0] % 2 else "dev"


def load(folder: Path, name: str, part: str) -> tuple[list[Tool], list[Query]]:
    """The tools of a set and its queries of one half."""
    raw = json.loads((folder / name / "catalog.json").read_text("utf-8"))
    tools = [
        Tool(t["name"], t.get("description") or "", t.get("input_schema") or {}, server=t.get("server")) for t in raw
    ]
    lines = (folder / name / "queries.jsonl").read_text("utf-8").splitlines()
    queries = [json.loads(line) for line in lines]
    return tools, [query for query in queries if part in ("all", half(name, query))]


def needs(query: Query) -> list[list[str]]:
    """The alternatives for each thing that a query needs."""
    return query.get("gold_any") or [[name] for name in query["gold"]]


def measures(found: Sequence[str], query: Query) -> dict[str, float]:
    """Recall at 1, 4 and 10, whether all needs are met at 4, reciprocal rank, nDCG at 5."""
    wanted = needs(query)
    good = {name for need in wanted for name in need}
    ranks = [rank for rank, name in enumerate(found, 1) if name in good]
    ideal = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(wanted), 5) + 1))

    def recall(at: int) -> float:
        top = set(found[:at])
        return sum(any(name in top for name in need) for need in wanted) / len(wanted)

    return {
        "recall@1": recall(1),
        "recall@4": recall(4),
        "recall@10": recall(10),
        "all@4": float(recall(4) == 1.0),
        "mrr": 1 / ranks[0] if ranks else 0.0,
        "ndcg@5": min(1.0, sum(1 / math.log2(rank + 1) for rank in ranks if rank <= 5) / ideal),
    }


def _tokens(text: str) -> list[str]:
    return _WORD.findall(_CAMEL.sub(" ", text.replace("_", " ")).lower())


def _parameters(tool: Tool) -> str:
    properties = tool.parameters.get("properties")
    if not isinstance(properties, dict):
        return ""
    parts = [
        f"{name} {part.get('description', '') if isinstance(part, dict) else ''}" for name, part in properties.items()
    ]
    return " ".join(parts)


def _folded(text: str) -> list[str]:
    return _FOLDED.findall(unicodedata.normalize("NFKC", text).casefold())


def shared_words(tools: Sequence[Tool]) -> Search:
    """How pydantic-ai 2.68 ranks: by the number of the query's words in name and description, ties in order."""
    texts = [set(_WORD.findall(f"{tool.name} {tool.description}".lower())) for tool in tools]

    def search(query: str, limit: int) -> list[str]:
        words = set(_WORD.findall(query.lower()))
        counts = [len(words & text) for text in texts]
        best = sorted((at for at, count in enumerate(counts) if count), key=lambda at: (-counts[at], at))
        return list(dict.fromkeys(tools[at].name for at in best))[:limit]

    return search


def bm25(
    tools: Sequence[Tool], *, names: int = 1, parameters: bool = False, split: Callable[[str], list[str]] = _tokens
) -> Search:
    """Plain BM25 (k1 1.5, b 0.75): the name `names` times, the description, and the parameters if asked for."""
    texts = [split(" ".join([*[t.name] * names, t.description, _parameters(t) if parameters else ""])) for t in tools]
    mean = sum(map(len, texts)) / max(len(texts), 1)
    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for at, text in enumerate(texts):
        for word, count in Counter(text).items():
            postings[word].append((at, count * 2.5 / (count + 1.5 * (0.25 + 0.75 * len(text) / mean))))

    def search(query: str, limit: int) -> list[str]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word in split(query):
            held = postings.get(word, [])
            rarity = math.log(1 + (len(tools) - len(held) + 0.5) / (len(held) + 0.5))
            for at, gain in held:
                scores[at] += rarity * gain
        best = sorted(scores, key=lambda at: (-scores[at], at))
        return list(dict.fromkeys(tools[at].name for at in best))[:limit]

    return search


def matching_words(tools: Sequence[Tool]) -> Search:
    """What a regular expression of the query's words finds, by the number of different words matched."""
    texts = [f"{tool.name} {tool.description}".lower() for tool in tools]

    def search(query: str, limit: int) -> list[str]:
        words = {word for word in _tokens(query) if len(word) > 2}
        counts = [sum(word in text for word in words) for text in texts]
        best = sorted((at for at, count in enumerate(counts) if count), key=lambda at: (-counts[at], at))
        return list(dict.fromkeys(tools[at].name for at in best))[:limit]

    return search


def bm25s_package(tools: Sequence[Tool]) -> Search | None:
    """The package bm25s with its defaults; None if it is not installed."""
    try:
        import bm25s
    except ImportError:
        return None
    index = bm25s.BM25()
    texts = [_tokens(f"{tool.name} {tool.description} {_parameters(tool)}") for tool in tools]
    index.index(texts, show_progress=False)

    def search(query: str, limit: int) -> list[str]:
        found, scores = index.retrieve([_tokens(query)], k=min(limit, len(tools)), show_progress=False)
        return [tools[at].name for at, score in zip(found[0], scores[0], strict=True) if score > 0]

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


RANKERS: dict[str, Callable[[Sequence[Tool]], Search | None]] = {
    "loadpoint": ours,
    "loadpoint, never silent": lambda tools: ours(tools, always=True),
    "pydantic-ai's": shared_words,
    "fastmcp's BM25": lambda tools: bm25(tools, parameters=True, split=_folded),
    "BM25 name+description": bm25,
    "BM25 +parameters": lambda tools: bm25(tools, parameters=True),
    "BM25 name x3": lambda tools: bm25(tools, names=3),
    "bm25s": bm25s_package,
    "words matched": matching_words,
}


def quality(folder: Path, part: str) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """Ranker, set (or set and wording), number of queries, mean measures."""
    for name in (*SETS, "mcp_real"):
        tools, queries = load(folder, name, part)
        groups = {name: queries}
        if name == "mcp_real":
            groups = {f"{name} {style}": [q for q in queries if q["style"] == style] for style in STYLES}
        groups.update(_by_overlap(name, tools, queries))
        for label, make in RANKERS.items():
            search = make(tools)
            if search is None:
                continue
            for group, members in groups.items():
                rows = [measures(search(query["query"], 10), query) for query in members]
                if rows:
                    yield label, group, len(rows), {key: statistics.fmean(row[key] for row in rows) for key in rows[0]}


def _by_overlap(name: str, tools: Sequence[Tool], queries: Sequence[Query]) -> dict[str, list[Query]]:
    """Queries by the share of their words that the needed tools have too: a name match is easy, a paraphrase is not."""
    texts = {tool.name: set(_tokens(f"{tool.name} {tool.description}")) for tool in tools}
    groups: dict[str, list[Query]] = {}
    for query in queries:
        words = set(_tokens(query["query"]))
        held: set[str] = set().union(*(texts.get(gold, set()) for gold in query["gold"]))
        share = len(words & held) / max(len(words), 1)
        band = "under 20%" if share < 0.2 else "20-50%" if share < 0.5 else "over 50%"
        groups.setdefault(f"{name} overlap {band}", []).append(query)
    return groups


def false_returns(folder: Path, part: str) -> dict[str, float]:
    """Ranker -> the share of out-of-scope queries that get an answer."""
    answered: Counter[str] = Counter()
    asked = 0
    for name, others in OUTSIDE.items():
        tools, _ = load(folder, name, "all")
        queries: list[str] = []
        for other in others:
            foreign = load(folder, other, part)[1]
            queries += [query["query"] for query in random.Random(4).sample(foreign, min(25, len(foreign)))]
        asked += len(queries)
        for label, make in RANKERS.items():
            search = make(tools)
            if search is not None:
                answered[label] += sum(bool(search(query, 4)) for query in queries)
    return {label: count / asked for label, count in answered.items()}


def speed(folder: Path, sizes: Sequence[int]) -> Iterator[dict[str, float]]:
    """CPU time and memory of index and queries, on real tools and renamed copies of them."""
    real, asked = load(folder, "mcp_real", "all")
    for size in sizes:
        tools = [
            tool if at < len(real) else Tool(f"{tool.name}_{at}", tool.description, tool.parameters, server=tool.server)
            for at, tool in ((at, real[at % len(real)]) for at in range(size))
        ]
        start = time.process_time()
        index = ToolIndex(tools)
        built = time.process_time() - start
        times: list[float] = []
        for query in asked * 2:
            start = time.process_time()
            index.search(query["query"], 5)
            times.append(time.process_time() - start)
        tracemalloc.start()
        held = ToolIndex(tools)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del held
        times.sort()
        p50, p95 = times[len(times) // 2] * 1e3, times[int(len(times) * 0.95)] * 1e3
        yield {"tools": size, "index_ms": built * 1e3, "p50_ms": p50, "p95_ms": p95, "memory_mb": memory / 1e6}


def names_found(folder: Path) -> float:
    """The share of the real tools that their exact name finds first."""
    tools, _ = load(folder, "mcp_real", "all")
    index = ToolIndex(tools)
    return statistics.fmean(index.search(tool.name, 1)[0].name == tool.name for tool in tools)


def main() -> int:
    """Print the tables; 1 if an exact name is not found first, 2 without data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("dev", "held", "all"), default="all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--sizes", default="1000,10000,100000")
    options = parser.parse_args()
    data = os.environ.get("LOADPOINT_DATA")
    if not data:
        print("LOADPOINT_DATA names no data folder", file=sys.stderr)
        return 2
    folder = Path(data) / "retrieval"
    rows = list(quality(folder, options.half))
    for label in RANKERS:
        mine = {group: values for ranker, group, _, values in rows if ranker == label}
        if not mine:
            continue
        macro = {key: statistics.fmean(mine[name][key] for name in SETS) for key in mine[SETS[0]]}
        print(f"{label:26} " + " ".join(f"{key} {value:.3f}" for key, value in macro.items()))
        print(" " * 27 + " ".join(f"{group} {mine[group]['recall@4']:.3f}" for group in mine if "overlap" not in group))
    for band in ("under 20%", "20-50%", "over 50%"):
        print(f"overlap {band}: " + ", ".join(_banded(rows, label, band) for label in RANKERS))
    outside = false_returns(folder, options.half)
    print("false returns: " + ", ".join(f"{label} {share:.3f}" for label, share in outside.items()))
    exact = names_found(folder)
    print(f"exact names found first: {exact:.4f}")
    timed = list(speed(folder, [int(size) for size in options.sizes.split(",")]))
    for row in timed:
        print(" ".join(f"{key} {value:.2f}" for key, value in row.items()))
    if options.json:
        document = {"half": options.half, "rows": rows, "false_returns": outside, "exact": exact, "speed": timed}
        options.json.write_text(json.dumps(document, indent=1), "utf-8")
    return 0 if exact == 1.0 else 1


def _banded(rows: Sequence[tuple[str, str, int, dict[str, float]]], label: str, band: str) -> str:
    held = [(n, values["recall@4"]) for ranker, group, n, values in rows if ranker == label and group.endswith(band)]
    total = sum(n for n, _ in held)
    return f"{label} {sum(n * value for n, value in held) / total:.3f}" if total else f"{label} -"


if __name__ == "__main__":
    raise SystemExit(main())
