"""`loadpoint search`: what a query finds in files of tools and why, and how labelled queries fare. Offline."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from .._search import Match, ToolIndex


_MOST = 50


def command(
    query: Annotated[
        str | None, typer.Argument(metavar="[QUERY]", help="What a model would ask the loader for.")
    ] = None,
    catalog: Annotated[
        list[Path] | None,
        typer.Option("--catalog", "-c", metavar="FILE", help="A tools/list answer or a list of tools; again for more."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many tools at most, 1 to 50.")] = 5,
    evaluate: Annotated[
        Path | None,
        typer.Option(
            "--eval", metavar="FILE", help='JSON lines {"query": ..., "gold": \\[names]}; gold \\[] fits nothing.'
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """Search tools as the loader does. 1: nothing fits, or (--eval) some labelled tool was not found."""
    if not catalog or (query is None) == (evaluate is None):
        print("loadpoint: search needs --catalog FILE and either a query or --eval FILE", file=sys.stderr)
        return EXIT_USAGE
    from .._search import ToolIndex
    from .._tool import Tool
    from ..bench import ToolFileError, from_files

    if not 1 <= limit <= _MOST:
        print(f"loadpoint: --limit: {limit}; allowed: 1 to {_MOST}", file=sys.stderr)
        return EXIT_USAGE
    try:
        listed = from_files(catalog).tools
    except ToolFileError as error:
        print(f"loadpoint: --catalog: {error}", file=sys.stderr)
        return EXIT_USAGE
    index = ToolIndex([Tool(tool.name, tool.description, tool.parameters, server=tool.server) for tool in listed])
    if evaluate is not None:
        own = {tool.name: tool.own for tool in listed}
        return _evaluate(index, own, evaluate, limit, as_json=as_json)
    asked = query or ""
    found = index.search(asked, limit)
    if as_json:
        _write(_answer(index, asked, found))
    else:
        _show(index, asked, found)
    return EXIT_OK if found else EXIT_FINDINGS


def _answer(index: ToolIndex, query: str, found: Sequence[Match]) -> dict[str, Any]:
    matches = [{"name": match.name, "score": round(match.score, 4), "why": match.why} for match in found]
    closest = [] if found else index.closest_servers(query)
    return {"schema": 1, "query": query, "tools": len(index.tools), "matches": matches, "closest_servers": closest}


def _show(index: ToolIndex, query: str, found: Sequence[Match]) -> None:
    from .._catalog import clean_text

    if not found:
        servers = ", ".join(clean_text(server, 64) for server in index.closest_servers(query))
        print(f"no tool of {len(index.tools)} fits: try other words for the action and its object, or a name")
        if servers:
            print(f"closest servers: {servers}")
    for match in found:
        print(f"{match.score:9.3f}  {clean_text(match.name, 128)}  ({clean_text(match.why, 200)})")


def _evaluate(index: ToolIndex, own: Mapping[str, str], file: Path, limit: int, *, as_json: bool) -> int:
    try:
        lines = enumerate(file.read_text("utf-8").split("\n"), 1)
        labelled = [_labelled(line, number) for number, line in lines if line.strip()]
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        print(f"loadpoint: --eval: {file}: {said}", file=sys.stderr)
        return EXIT_USAGE
    if not labelled:
        print(f"loadpoint: --eval: {file}: no labelled query in it", file=sys.stderr)
        return EXIT_USAGE
    missed: list[dict[str, Any]] = []
    shares: list[float] = []
    false = outside = 0
    for query, gold in labelled:
        found = [match.name for match in index.search(query, limit)]
        if not gold:
            outside += 1
            false += bool(found)
            continue
        names = {*found, *(own[name] for name in found)}
        shares.append(len(set(gold) & names) / len(set(gold)))
        if shares[-1] < 1.0:
            missed.append({"query": query, "gold": gold, "found": found})
    report = {
        "schema": 1,
        "queries": len(labelled),
        "limit": limit,
        "recall": round(sum(shares) / len(shares), 4) if shares else None,
        "false_returns": round(false / outside, 4) if outside else None,
        "missed": missed,
    }
    if as_json:
        _write(report)
    else:
        print(
            f"{len(labelled)} {'query' if len(labelled) == 1 else 'queries'}; "
            f"recall at {limit}: {report['recall']}; false returns: {report['false_returns']}"
        )
        for miss in missed[:20]:
            print(f"  missed {miss['gold']} for {miss['query'][:100]!r}, found {miss['found']}")
    return EXIT_FINDINGS if missed or false else EXIT_OK


def _labelled(line: str, number: int) -> tuple[str, list[str]]:
    from .._json import as_list, as_object

    try:
        value = as_object(json.loads(line)) or {}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number}: is not JSON: {error}") from error
    query: object = value.get("query")
    if not isinstance(query, str) or not isinstance(value.get("gold"), list):
        raise ValueError(f'line {number}: each line must be {{"query": string, "gold": [names]}}')
    return query, [str(name) for name in as_list(value["gold"])]


def _write(document: dict[str, Any]) -> None:
    print(json.dumps(document, ensure_ascii=False, indent=2))
