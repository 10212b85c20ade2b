"""`loadpoint bench`: what each strategy costs on the wire, measured with the real SDKs against the emulator."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from ..bench import Bench, Options

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


_Tools = Annotated[
    list[Path] | None,
    typer.Option(
        "--tools", metavar="PATH", help="JSON of an MCP tools/list, or a folder; repeatable. Default: built in."
    ),
]
_Generate = Annotated[
    int | None,
    typer.Option("--generate", metavar="N", help="N tools: those built in, and invented ones of real sizes."),
]
_Sizes = Annotated[
    str, typer.Option("--sizes", metavar="N,N...", help="Numbers of registered tools. Default: all, once.")
]
_Strategy = Annotated[
    list[str] | None,
    typer.Option("--strategy", metavar="NAME", help="eager, native, resend, frozen, auto; repeatable."),
]
_Form = Annotated[
    list[str] | None,
    typer.Option("--form", metavar="NAME", help="A native form only, such as tool_search; repeatable."),
]
_Dialect = Annotated[
    list[str] | None,
    typer.Option("--dialect", metavar="NAME", help="openai.chat, anthropic.messages, openai.responses; repeatable."),
]
_Session = Annotated[str, typer.Option("--session", metavar="NAME", help="short, long, both, or first: one request.")]
_Loads = Annotated[int, typer.Option("--loads", metavar="N", help="How many tools a session needs, 1 to 6.")]
_Catalog = Annotated[
    int | None, typer.Option("--catalog-tokens", metavar="N", help="Budget of the catalog; 0: none (default: 600).")
]
_Json = Annotated[
    str | None,
    typer.Option("--json", metavar="[OUT]", help="Write the result as JSON to OUT (default: standard output)."),
]
_Html = Annotated[
    Path | None, typer.Option("--html", metavar="OUT", help="Write a page with plots to OUT, beside the table.")
]


_OPTION = re.compile(r"^(?=(session|strategy|form|dialect|generate|loads|sizes): )|(?<=, )(?=form: )")


def command(  # noqa: PLR0913, PLR0917 - one parameter per option
    tools: _Tools = None,
    generate: _Generate = None,
    sizes: _Sizes = "",
    strategy: _Strategy = None,
    form: _Form = None,
    dialect: _Dialect = None,
    session: _Session = "both",
    loads: _Loads = 2,
    catalog_tokens: _Catalog = None,
    json_out: _Json = None,
    html: _Html = None,
) -> int:
    """Measure tokens, prefix breaks, rounds and bytes per strategy and form. Needs no key and no network."""
    try:
        from .. import bench

        asked = bench.Options(
            tools=tools or [],
            generate=generate,
            sizes=_numbers(sizes),
            strategies=strategy or [],
            forms=form or [],
            dialects=dialect or [],
            session=session,
            loads=loads,
            catalog_tokens=catalog_tokens,
        )
        for option, out in (("--json", json_out), ("--html", html)):
            _writable(option, out)
        result = _measured(asked, html)
        _write(result, json_out)
    except ModuleNotFoundError as error:
        print(f'loadpoint: bench needs the extra "bench" ({error.name} is not installed)', file=sys.stderr)
        print('  pip install "loadpoint[bench]"', file=sys.stderr)
        return EXIT_USAGE
    except (OSError, ValueError) as error:
        print(f"loadpoint: {_OPTION.sub('--', str(error))}", file=sys.stderr)
        return EXIT_USAGE
    return _verdict(result.failures)


def _measured(asked: Options, html: Path | None) -> Bench:
    from .. import bench
    from ._bench_table import progress_bar

    with progress_bar() as told:
        result = bench.measured(asked, progress=told)
        if html is not None:
            html.write_text(bench.page(result, bench.growing(asked, progress=told)), encoding="utf-8")
    return result


def _writable(option: str, out: str | Path | None) -> None:
    """Raise `ValueError` for a target that cannot be written: told before minutes of sessions, not after them."""
    if out is None or out == STDOUT:
        return
    place = Path(out)
    if place.is_dir() or not place.parent.is_dir():
        raise ValueError(f"{option}: {place}: cannot be written; allowed: a file in a folder that exists")


def _verdict(failures: list[str]) -> int:
    for failure in failures:
        print(f"failed: {failure}", file=sys.stderr)
    return EXIT_FINDINGS if failures else EXIT_OK


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ValueError(f"--sizes: {text!r}; expected numbers with commas between them, such as 50,200") from None


def _write(result: Bench, json_out: str | None) -> None:
    import json

    from ._bench_table import show

    if json_out is None:
        show(result)
        return
    text = json.dumps(result.as_json(), indent=2)
    if json_out == STDOUT:
        print(text)
    else:
        Path(json_out).write_text(text + "\n", encoding="utf-8")
    for note in (f"tokens counted by {result.counter}", *result.notes, *result.verdicts):
        print(f"note: {note}", file=sys.stderr)
