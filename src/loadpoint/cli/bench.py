"""`loadpoint bench`: what each strategy costs on the wire, measured with the real SDKs against the emulator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE

STDOUT = "-"


def with_json_target(arguments: list[str]) -> list[str]:
    """`arguments` with the target that `bench --json` may leave out written in: standard output."""
    if "bench" not in arguments or "--json" not in arguments:
        return arguments
    at = arguments.index("--json")
    following = arguments[at + 1 : at + 2]
    if following and (following[0] == STDOUT or not following[0].startswith("-")):
        return arguments
    return [*arguments[: at + 1], STDOUT, *arguments[at + 1 :]]


def command(
    tools: Annotated[
        list[Path] | None,
        typer.Option("--tools", metavar="FILE", help="JSON of an MCP tools/list; may be repeated. Default: built in."),
    ] = None,
    json_out: Annotated[
        str | None,
        typer.Option("--json", metavar="[OUT]", help="Write the result as JSON to OUT (default: standard output)."),
    ] = None,
) -> int:
    """Measure tokens, prefix breaks, rounds and bytes per strategy and dialect. Needs no key and no network."""
    try:
        return _measure(tools or [], json_out)
    except ModuleNotFoundError as error:
        print(f'loadpoint: bench needs the extra "bench" ({error.name} is not installed)', file=sys.stderr)
        print('  pip install "loadpoint[bench]"', file=sys.stderr)
        return EXIT_USAGE


def _measure(tools: list[Path], json_out: str | None) -> int:
    import json

    from loadpoint import bench

    try:
        result = bench.run(tools)
    except (OSError, ValueError) as error:
        print(f"loadpoint: {error}", file=sys.stderr)
        return EXIT_USAGE
    if json_out is None:
        bench.show(result)
    else:
        text = json.dumps(result, indent=2)
        if json_out == STDOUT:
            print(text)
        else:
            Path(json_out).write_text(text + "\n", encoding="utf-8")
    return EXIT_FINDINGS if bench.failures(result) else EXIT_OK
