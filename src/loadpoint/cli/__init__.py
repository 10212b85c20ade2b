"""The command `loadpoint`: always installed, and says which extra it lacks.

Exit codes: 0 clean, 1 findings or failures, 2 unusable input or usage.
"""

from __future__ import annotations

import sys

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_USAGE = 2

_NEEDED = ("platformdirs", "rich", "typer")


def main(argv: list[str] | None = None) -> int:
    """Run the command line on `argv` (default: the process's own) and return the exit code, never raising."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments == ["--version"]:
        from loadpoint import __version__

        print(f"loadpoint {__version__}")
        return EXIT_OK
    missing = _missing()
    if missing:
        print(
            f'loadpoint: the command line needs the extra "cli" ({missing} is not installed).\n'
            '  pip install "loadpoint[cli]"    the command line\n'
            '  pip install "loadpoint[all]"    the command line, both SDKs, the emulator and the bench',
            file=sys.stderr,
        )
        return EXIT_USAGE
    from ._app import run

    return run(arguments)


def _missing() -> str | None:
    from importlib.util import find_spec

    return next((name for name in _NEEDED if find_spec(name) is None), None)
