"""`loadpoint config`: what the configuration files say, and one setting changed in one of them."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import PolicyError
from . import EXIT_FINDINGS, EXIT_OK, EXIT_USAGE

app = typer.Typer(help="Read and change the settings that Policy.load() uses.", no_args_is_help=True)

_User = Annotated[bool, typer.Option("--global", help="The user's own file instead of the project's.")]
_AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]


@app.command("get")
def get(
    key: Annotated[str | None, typer.Argument(metavar="[KEY]", help="A setting. Default: all.")] = None,
    user: _User = False,
    as_json: _AsJson = False,
) -> int:
    """Show what the files say, and which file says it. 1: no file has this setting."""
    from .. import _config

    only = _own_file() if user else None
    found = _config.read(only=only)
    names = {_shown_key(field): field for field in found.values}
    if key is not None and key not in _keys():
        return _refused(f"{key!r} is no setting; known: {', '.join(_keys())}")
    if key is not None:
        names = {name: field for name, field in names.items() if name == _shown_key(_field(key))}
    from .._policy import Policy

    try:
        Policy(**found.values)
    except PolicyError as error:
        files = ", ".join(dict.fromkeys(map(str, found.origin.values())))
        return _refused(f"{files}: {error}")
    if not found.values and key is None and not as_json:
        print(f"loadpoint: no settings; looked in {', '.join(map(str, found.places))}", file=sys.stderr)
        return EXIT_OK
    if as_json:
        values = {name: {"value": found.values[f], "file": str(found.origin[f])} for name, f in names.items()}
        print(json.dumps(values, indent=2, ensure_ascii=False))
    else:
        for name, field in names.items():
            print(f"{name} = {json.dumps(found.values[field], ensure_ascii=False)}    # {found.origin[field]}")
    if key is not None and not names:
        print(f"loadpoint: {key} is not set in: {', '.join(map(str, found.places))}", file=sys.stderr)
        return EXIT_FINDINGS
    return EXIT_OK


@app.command("set", context_settings={"ignore_unknown_options": True})  # -4 is a value
def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="A field of Policy, or lazy.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help='A value, or a list: "a,b" or ["a", "b"].')],
    user: _User = False,
    as_json: _AsJson = False,
) -> int:
    """Write one setting into the project's file; it holds from the next Policy.load() on. 2: no policy can have it."""
    from .. import _config
    from .._policy import Policy

    if key not in _keys():
        return _refused(f"{key!r} is no setting; known: {', '.join(_keys())}")
    given = _value(_field(key), value)
    Policy(**{_field(key): given})  # raises PolicyError, told by the caller
    path = _own_file() if user else _config.project_file(Path.cwd())
    other = _config.LAZY if key == "defer" else "defer" if key == _config.LAZY else None
    if other is not None and _config.holds(path, other):
        return _refused(f"{path}: {other} stands there and says the same; set that, or take it out first")
    text = _config.changed(path, key, given)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        return _refused(f"{path}: cannot be written: {error.strerror or error}")
    if as_json:
        print(json.dumps({"file": str(path), "key": key, "value": given}, ensure_ascii=False))
    else:
        print(f"{path}: {key} = {json.dumps(given, ensure_ascii=False)}")
    return EXIT_OK


def _refused(text: str) -> int:
    print(f"loadpoint: {text}", file=sys.stderr)
    return EXIT_USAGE


def _own_file() -> Path:
    from .. import _config

    found = _config.user_file()
    assert found is not None, "the command line is only there with platformdirs"  # noqa: S101
    return found


def _keys() -> list[str]:
    from .. import _config
    from .._policy import Policy

    return [_config.LAZY, *sorted(field.name for field in dataclasses.fields(Policy))]


def _field(key: str) -> str:
    from .. import _config

    return "defer" if key == _config.LAZY else key


def _shown_key(field: str) -> str:
    from .. import _config

    return _config.LAZY if field == "defer" else field


def _value(field: str, text: str) -> Any:
    """What `text` stands for: a list where the field is one, a number where it reads like one, else the text."""
    if field in {"defer", "resident"}:
        if text.lstrip().startswith("["):
            return _parsed(text, text)
        return [part.strip() for part in text.split(",") if part.strip()]
    found = _parsed(text, text)
    return found if isinstance(found, int) else text


def _parsed(text: str, otherwise: object) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return otherwise
