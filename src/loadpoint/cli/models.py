"""`loadpoint models`: what the data says of models and endpoints, and how well it is known. Offline."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE


def command(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="A model's name in any spelling. Default: the whole table.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option("--dialect", metavar="D", help="openai.chat, openai.responses or anthropic.messages."),
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="The client's base_url, or a host name.")
    ] = None,
    own: Annotated[
        Path | None,
        typer.Option("--own", metavar="FILE", help="Lines of your own, instead of those that LOADPOINT_MODELS names."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> int:
    """Show load points, limits, cache rules and prices with source, date and grade. 1: the model is not known."""
    from .. import _own_models
    from ..errors import PolicyError
    from . import _models_view as view

    wrong = _wrong(model, dialect, base_url)
    if wrong is not None:
        print(f"loadpoint: {wrong}", file=sys.stderr)
        return EXIT_USAGE
    try:
        if own is not None:
            _own_models.load(own)
    except PolicyError as error:
        told = str(error).replace(f"; {_own_models.VARIABLE} names it", "")
        print(f"loadpoint: --own: {told}", file=sys.stderr)
        return EXIT_USAGE
    with _own_lines(own):
        if model is None:
            table = view.table(dialect, base_url)
            view.write_json(table) if as_json else view.show_table(table)
            return EXIT_OK
        answer = view.answer(model, dialect, base_url)
        view.write_json(answer) if as_json else view.show_answer(answer)
    if answer["family"] is None:
        print(f"loadpoint: {model!r} is not a model that the data knows", file=sys.stderr)
        return EXIT_FINDINGS
    return EXIT_OK


def _wrong(model: str | None, dialect: str | None, base_url: str | None) -> str | None:
    """What cannot be used of these, and what could be."""
    from .. import _models

    known = tuple(_models.table("index")["dialect"])
    if dialect is not None and dialect not in known:
        return f"--dialect: {dialect!r} is not known; allowed: {', '.join(known)}"
    if model is not None and not model.strip():
        return "MODEL: '' is no name; allowed: a model's name, or none for a table of all"
    if base_url is not None and not _is_host(base_url):
        return f"--base-url: {base_url!r}; allowed: a URL or a host name"
    return None


def _is_host(base_url: str) -> bool:
    from .. import _models

    try:
        return any(letter.isalnum() for letter in _models.host(base_url) or "")
    except ValueError:  # brackets that do not close, a port that is no number
        return False


@contextmanager
def _own_lines(file: Path | None) -> Generator[None]:
    """The environment names `file`, as it would for a program that uses those lines; nothing changes for None."""
    from .._own_models import VARIABLE

    if file is None:
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(file.expanduser().absolute())
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
