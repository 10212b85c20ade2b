"""Search quality and speed on public retrieval sets, beside other rankers in the same run. Needs LOADPOINT_DATA.

    LOADPOINT_DATA=... python benchmarks/retrieval.py [--half dev|held|all] [--json FILE]

Peers are measured where they are installed (`pip install pydantic-ai-slim fastmcp bm25s`); what is missing is said.
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
import statistics
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from search_rankers import RANKERS, tokens

from loadpoint import Tool, ToolIndex

SETS = (
    "bfcl_python bfcl_multiturn metatool_single livemcpbench_step sealtools_single toolalpaca traject_simple "
    "restbench_spotify gtc_github gtc_mcp apibank_keywords apibank_utterance"
).split()
STYLES = ("kw", "cap", "para")
BANDS = ("under 20%", "20-50%", "over 50%")
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


def quality(folder: Path, part: str, chosen: Sequence[str]) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """Ranker, set (or set and wording, or set and overlap), number of queries, mean measures."""
    for name in (*SETS, "mcp_real"):
        tools, queries = load(folder, name, part)
        groups = {name: queries}
        if name == "mcp_real":
            groups = {f"{name} {style}": [q for q in queries if q["style"] == style] for style in STYLES}
        groups.update(_by_overlap(name, tools, queries))
        for label in chosen:
            search = RANKERS[label](tools)
            if search is None:
                continue
            rows = {query["id"]: measures(search(query["query"], 10), query) for query in queries}
            for group, members in groups.items():
                if members:
                    mine = [rows[query["id"]] for query in members]
                    yield label, group, len(mine), {key: statistics.fmean(row[key] for row in mine) for key in mine[0]}


def _by_overlap(name: str, tools: Sequence[Tool], queries: Sequence[Query]) -> dict[str, list[Query]]:
    """Queries by the share of their words that the needed tools have too: a name match is easy, a paraphrase is not."""
    texts = {tool.name: set(tokens(f"{tool.name} {tool.description}")) for tool in tools}
    groups: dict[str, list[Query]] = {}
    for query in queries:
        words = set(tokens(query["query"]))
        held: set[str] = set().union(*(texts.get(gold, set()) for gold in query["gold"]))
        share = len(words & held) / max(len(words), 1)
        band = "under 20%" if share < 0.2 else "20-50%" if share < 0.5 else "over 50%"
        groups.setdefault(f"{name} overlap {band}", []).append(query)
    return groups


def false_returns(folder: Path, part: str, chosen: Sequence[str]) -> dict[str, dict[str, float]]:
    """Ranker -> kind of need that no tool can serve -> the share of them that get an answer."""
    counts: dict[str, Counter[str]] = {label: Counter() for label in chosen}
    asked: Counter[str] = Counter()
    for kind, tools, queries in _unserved(folder, part):
        asked[kind] += len(queries)
        for label in chosen:
            search = RANKERS[label](tools)
            if search is None:
                counts.pop(label, None)
            elif label in counts:
                counts[label][kind] += sum(bool(search(query, 4)) for query in queries)
    return {label: {kind: count[kind] / asked[kind] for kind in asked} for label, count in counts.items()}


def _unserved(folder: Path, part: str) -> Iterator[tuple[str, list[Tool], list[str]]]:
    """Tools, and queries that they cannot serve: of other sets; of the real needs on twelve other servers, chosen by
    chance; of the set itself, with the tools that it needs taken away (others may do nearly the same: the hardest).
    """
    for name, others in OUTSIDE.items():
        tools, _ = load(folder, name, "all")
        for other in others:
            foreign = load(folder, other, part)[1]
            chosen = random.Random(4).sample(foreign, min(25, len(foreign)))
            yield "other sets", tools, [query["query"] for query in chosen]
    tools, queries = load(folder, "mcp_real", part)
    names = sorted({tool.server or "" for tool in tools})
    for query in queries:
        good = {name for need in needs(query) for name in need}
        able = {tool.server for tool in tools if tool.name in good}
        for turn in range(3):
            dice = random.Random(f"{query['id'].rsplit('-', 1)[0]}:{turn}")
            twelve = set(dice.sample([name for name in names if name not in able], 12))
            yield "other servers", [tool for tool in tools if tool.server in twelve], [query["query"]]
    for name in SETS:
        tools, queries = load(folder, name, part)
        for query in random.Random(5).sample(queries, min(15, len(queries))):
            good = {name for need in needs(query) for name in need}
            yield "target taken away", [tool for tool in tools if tool.name not in good], [query["query"]]


def cost(folder: Path, part: str, chosen: Sequence[str]) -> dict[str, dict[str, float]]:
    """Ranker -> milliseconds of CPU on the real tools: to index them (a model's vectors are not counted), per query."""
    tools, queries = load(folder, "mcp_real", part)
    found: dict[str, dict[str, float]] = {}
    for label in chosen:
        start = time.process_time()
        search = RANKERS[label](tools)
        built = time.process_time() - start
        if search is not None:
            times = _timed(search, queries)
            found[label] = {"index_ms": built * 1e3, **_percentiles(times)}
    return found


def _timed(search: Callable[[str, int], object], queries: Sequence[Query]) -> list[float]:
    times: list[float] = []
    for query in queries:
        start = time.process_time()
        search(query["query"], 5)
        times.append(time.process_time() - start)
    return times


def _percentiles(times: list[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {"p50_ms": ordered[len(ordered) // 2] * 1e3, "p95_ms": ordered[int(len(ordered) * 0.95)] * 1e3}


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
        times = _timed(index.search, asked * 2)
        tracemalloc.start()
        held = ToolIndex(tools)
        memory = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del held
        yield {"tools": size, "index_ms": built * 1e3, **_percentiles(times), "memory_mb": memory / 1e6}


def names_found(folder: Path) -> float:
    """The share of the real tools that their exact name finds first."""
    tools, _ = load(folder, "mcp_real", "all")
    index = ToolIndex(tools)
    return statistics.fmean(index.search(tool.name, 1)[0].name == tool.name for tool in tools)


def main() -> int:
    """Print the tables; 1 if an exact name is not found first, 2 without data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=("dev", "held", "all"), default="all")
    parser.add_argument("--json", type=Path, help="all figures, for machines")
    parser.add_argument("--sizes", default="1000,10000,100000", help="numbers of tools for time and memory")
    parser.add_argument("--rankers", default="", help="only rankers whose name has one of these words, by commas")
    options = parser.parse_args()
    data = os.environ.get("LOADPOINT_DATA")
    if not data:
        print("LOADPOINT_DATA names no data folder", file=sys.stderr)
        return 2
    folder = Path(data) / "retrieval"
    only = options.rankers.split(",")
    chosen = [label for label in RANKERS if any(word in label for word in only)]
    rows = list(quality(folder, options.half, chosen))
    show_quality(rows, chosen)
    outside = false_returns(folder, options.half, chosen)
    for label, shares in outside.items():
        print(f"false returns  {label:27}" + ", ".join(f"{kind} {share:.3f}" for kind, share in shares.items()))
    spent = cost(folder, options.half, chosen)
    for label, times in spent.items():
        print(f"3,590 tools  {label:27}" + ", ".join(f"{key} {value:.2f}" for key, value in times.items()))
    exact = names_found(folder)
    print(f"exact names found first: {exact:.4f}")
    timed = list(speed(folder, [int(size) for size in options.sizes.split(",") if size]))
    for row in timed:
        print(" ".join(f"{key} {value:.2f}" for key, value in row.items()))
    if options.json:
        missing = [label for label in chosen if label not in outside]
        document = {
            "schema": 2,
            "half": options.half,
            "not_installed": missing,
            "rows": [{"ranker": r, "group": g, "queries": n, **values} for r, g, n, values in rows],
            "false_returns": outside,
            "cost": spent,
            "exact": exact,
            "speed": timed,
        }
        options.json.write_text(json.dumps(document, indent=1), "utf-8")
    return 0 if exact == 1.0 else 1


def show_quality(rows: Sequence[tuple[str, str, int, dict[str, float]]], chosen: Sequence[str]) -> None:
    """Print means over the sets, each set, the wordings beside BM25 with the name three times, and by shared words."""
    plain = {group: values["recall@4"] for ranker, group, _, values in rows if ranker == "BM25 name x3"}
    for label in chosen:
        mine = {group: values for ranker, group, _, values in rows if ranker == label}
        if not mine:
            print(f"{label:27} not installed")
            continue
        macro = {key: statistics.fmean(mine[name][key] for name in SETS) for key in mine[SETS[0]]}
        print(f"{label:27} " + " ".join(f"{key} {value:.3f}" for key, value in macro.items()))
        print(" " * 28 + " ".join(f"{name} {mine[name]['recall@4']:.3f}" for name in SETS))
        wordings = [(style, mine[f"mcp_real {style}"]["recall@4"], plain.get(f"mcp_real {style}")) for style in STYLES]
        told = [
            f"{style} {share:.3f}" + (f" ({share - base:+.3f})" if base is not None else "")
            for style, share, base in wordings
        ]
        print(" " * 28 + "mcp_real " + " ".join(told))
        print(" " * 28 + "words shared: " + ", ".join(f"{band} {_banded(rows, label, band)}" for band in BANDS))


def _banded(rows: Sequence[tuple[str, str, int, dict[str, float]]], label: str, band: str) -> str:
    held = [(n, values["recall@4"]) for ranker, group, n, values in rows if ranker == label and group.endswith(band)]
    total = sum(n for n, _ in held)
    return f"{sum(n * value for n, value in held) / total:.3f}" if total else "-"


if __name__ == "__main__":
    raise SystemExit(main())
