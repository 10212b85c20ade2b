"""The typer application: one file per command, put together here; imported only when the extra `cli` is there."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ..errors import LoadpointError
from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE, bench, config, models, search, verify

app = typer.Typer(
    name="loadpoint",
    help="Deferred tool loading for LLM SDK clients.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("bench")(bench.command)
app.command("models")(models.command)
app.add_typer(config.app, name="config")
app.command("search")(search.command)
app.command("verify")(verify.command)


def run(arguments: list[str]) -> int:
    """Run the application on `arguments` and return the exit code; an unusable input is told on standard error."""
    try:
        given = bench.with_json_target(arguments) if arguments[:1] == ["bench"] else arguments
        result: object = app(args=given, prog_name="loadpoint", standalone_mode=False)
    except typer.Exit as leave:
        return leave.exit_code
    except typer.Abort:
        return EXIT_FINDINGS
    except LoadpointError as error:
        print(f"loadpoint: {error}", file=sys.stderr)
        return EXIT_USAGE
    except Exception as error:
        show = getattr(error, "show", None)  # typer's own usage errors; their classes are private to it
        if show is None:
            raise
        show()
        return EXIT_USAGE
    return result if isinstance(result, int) else EXIT_OK


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """Deferred tool loading for LLM SDK clients."""
    if version:
        from loadpoint import __version__

        print(f"loadpoint {__version__}")
        raise typer.Exit
