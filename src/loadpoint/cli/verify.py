"""`loadpoint verify`: one conversation with a real provider on the user's own key, wrapped and bare, side by side."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE

if TYPE_CHECKING:
    from .. import verify
    from .._json import Json

RECORD_MODE = 0o600


_Live = Annotated[str | None, typer.Option("--live", metavar="PROVIDER", help="Whom to talk to; see above.")]
_Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="USD", help="The most that may be spent; checked before every request."),
]
_Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="Default: a small, cheap one of the provider.")
]
_Dialect = Annotated[
    str | None,
    typer.Option("--dialect", metavar="NAME", help="chat, responses or messages. Default: the provider's best."),
]
_BaseUrl = Annotated[
    str | None,
    typer.Option("--base-url", metavar="URL", help="Another address, as the SDK takes it (compatible servers)."),
]
_Endpoint = Annotated[
    str | None,
    typer.Option("--endpoint", metavar="HOST", help="Treat the base URL as this host, as Policy(endpoint=...)."),
]
_Strategy = Annotated[
    str, typer.Option("--strategy", metavar="NAME", help="What the wrapped side does: auto, native, resend, ...")
]
_LoadPoint = Annotated[
    str | None,
    typer.Option("--load-point", metavar="NAME", help="The native form to prefer, as Policy(load_point=...)."),
]
_Price = Annotated[
    str | None,
    typer.Option("--price", metavar="IN,OUT", help="USD per million tokens, for a model without a known price."),
]
_MaxTokens = Annotated[
    int, typer.Option("--max-tokens", metavar="N", min=16, max=8192, help="The most that one reply may have.")
]
_Probe = Annotated[
    list[str] | None,
    typer.Option("--probe", metavar="ID", help="Ask this open question too (all: every one); repeatable."),
]
_OpenQuestions = Annotated[
    bool, typer.Option("--open-questions", help="List what is still unverified and how a run settles it; no key.")
]
_Record = Annotated[
    Path | None, typer.Option("--record", metavar="FILE", help="Where the record goes. Default: a new file here.")
]
_NoRecord = Annotated[bool, typer.Option("--no-record", help="Keep no record.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Print the record on standard output, no tables.")]


def command(  # noqa: PLR0913, PLR0917 - each is an option of the command line
    live: _Live = None,
    budget: _Budget = None,
    model: _Model = None,
    dialect: _Dialect = None,
    base_url: _BaseUrl = None,
    endpoint: _Endpoint = None,
    strategy: _Strategy = "auto",
    load_point: _LoadPoint = None,
    price: _Price = None,
    max_tokens: _MaxTokens = 512,
    probe: _Probe = None,
    open_questions: _OpenQuestions = False,
    record: _Record = None,
    no_record: _NoRecord = False,
    as_json: _AsJson = False,
) -> int:
    """Check loadpoint against a real provider: one conversation, wrapped and bare, within a budget.

    PROVIDER is anthropic, openai, moonshot, or compatible (any server of
    OpenAI's APIs: give --base-url and --model).

    Your own key is read from the provider's environment variable. The requests
    cost money, never more than --budget by list price. A short scripted
    conversation with sixty tools is held twice, and the provider's own usage
    is set side by side: tokens, cache reads, cost, seconds, requests, and
    whether the prompt prefix held as predicted. The record has the shapes and
    digests of the requests and their usage; no key, no account, no prompt.

    Exit codes: 0 verified; 1 a disagreement, a failure, or the budget was used
    up; 2 unusable usage, or no key.
    """
    if open_questions:
        return _guarded(lambda: _list_questions(live, as_json=as_json))
    given: dict[str, Any] = {"model": model, "dialect": dialect, "base_url": base_url, "endpoint": endpoint}
    given |= {"strategy": strategy, "load_point": load_point, "max_tokens": max_tokens, "probes": tuple(probe or ())}

    def checked() -> int:
        from .. import verify

        provider = _named(live)
        amount, prices = verify.budget_of(budget), verify.prices_of(price)
        settings = verify.Settings(provider=provider, budget=amount, prices=prices, **given)
        target = None if no_record else _target(record, provider)
        outcome = verify.run(settings, lambda line: print(line, file=sys.stderr))
        return _tell(outcome, target, as_json=as_json)

    return _guarded(checked)


def _guarded(work: Callable[[], int]) -> int:
    """The exit code of `work`; what makes it impossible to begin is told in a line or two."""
    try:
        return work()
    except ModuleNotFoundError as error:
        print(f'loadpoint: verify needs the extra "verify" ({error.name} is not installed)', file=sys.stderr)
        print('  pip install "loadpoint[verify]"', file=sys.stderr)
    except ValueError as error:  # settings, a policy: always one line
        print(f"loadpoint: {error}", file=sys.stderr)
    return EXIT_USAGE


def _named(live: str | None) -> str:
    from .. import verify

    if live is None:
        raise verify.UnusableError(f"--live PROVIDER is needed; allowed: {', '.join(verify.providers())}")
    return live


def _target(record: Path | None, provider: str) -> Path:
    """Where the record goes. Checked before anything is spent: raises `UnusableError` if it cannot be written."""
    from .. import verify

    name = "".join(letter for letter in provider if letter.isalnum())
    path = record or Path(f"loadpoint-verify-{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise verify.UnusableError(f"--record: {path} cannot be written: expected a file in a folder that exists")
    return path


def _tell(outcome: verify.Outcome, target: Path | None, *, as_json: bool) -> int:
    from ._verify_table import show

    document = outcome.as_json()
    if as_json:
        print(_text(document))
    else:
        show(outcome)
    saved = target is None or _saved(document, target)
    if outcome.stopped is not None:
        print(f"stopped: {document['stopped']}", file=sys.stderr)
    for told in document["disagreements"]:
        print(f"disagreement: {told}", file=sys.stderr)
    return EXIT_OK if outcome.verified and saved else EXIT_FINDINGS


def _saved(document: Json, target: Path) -> bool:
    """Whether the record could be written."""
    import os

    try:
        made = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, RECORD_MODE)
        with os.fdopen(made, "w", encoding="utf-8") as file:
            file.write(_text(document) + "\n")
    except OSError as error:
        print(f"loadpoint: the record could not be written to {target}: {error.strerror or error}", file=sys.stderr)
        return False
    print(f"record: {target}", file=sys.stderr)
    return True


def _list_questions(live: str | None, *, as_json: bool) -> int:
    from .. import verify
    from ._verify_table import show_questions

    if live is not None and live not in verify.providers():
        raise verify.UnusableError(f"provider {live!r} is unknown; allowed: {', '.join(verify.providers())}")
    listed = [item for item in verify.questions() if live is None or live in item.providers]
    if as_json:
        print(_text({"schema": 1, "open_questions": [item.as_json() for item in listed]}))
    else:
        show_questions(listed)
    return EXIT_OK


def _text(document: Json) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=True)
