"""Settings from files, for `Policy.load` and `loadpoint config`: where they stand, how they are read and changed.

From the weakest to the strongest; a later file replaces the settings that it has, whole:

1. `~/.pi/lazy-tools.json`
2. `config.toml` in the folder of this user's configuration (platformdirs; not read without it)
3. `<cwd>/.pi/lazy-tools.json`
4. `[tool.loadpoint]` in `<cwd>/pyproject.toml`
5. `<cwd>/.loadpoint.toml`

A file that is missing counts as absent; one that cannot be read or is no TOML or JSON too, with a warning.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._json import as_list, as_object
from ._policy import Policy
from .errors import PolicyError

log = logging.getLogger("loadpoint")

LAZY = "lazy"
"""The list of tools to defer; in a policy it is `defer`."""

_PI = (".pi", "lazy-tools.json")
_STRICT = {"confirm": "model", "unloaded_call": "refuse"}
"""Settings with a value that a project cannot take back once the user's own file has it."""


@dataclass(frozen=True, slots=True)
class Source:
    """A place where settings can stand. `table`: the TOML table that holds them, () for the whole file."""

    path: Path
    project: bool
    table: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """What all files say together: settings by name of the policy's field, the file of each, and what was read."""

    values: Mapping[str, Any]
    origin: Mapping[str, Path]
    used: tuple[Path, ...]
    places: tuple[Path, ...]
    """Where a file could stand, from the weakest to the strongest."""


def sources(cwd: Path | str | None = None) -> list[Source]:
    """The places that count for a program that runs in `cwd` (default: here), from the weakest to the strongest."""
    here = Path(cwd) if cwd is not None else Path.cwd()
    found: list[Source] = []
    try:
        found.append(Source(Path.home().joinpath(*_PI), project=False))
    except RuntimeError:  # nobody's process
        log.debug("there is no home folder, so no user file of pi is read")
    user = user_file()
    if user is not None:
        found.append(Source(user, project=False))
    found.append(Source(here.joinpath(*_PI), project=True))
    found.append(Source(here / "pyproject.toml", project=True, table=("tool", "loadpoint")))
    found.append(Source(project_file(here), project=True))
    return found


def user_file() -> Path | None:
    """`config.toml` in the folder of this user's configuration; None where platformdirs is not installed."""
    try:
        from platformdirs import user_config_path
    except ModuleNotFoundError:
        return None
    return user_config_path("loadpoint") / "config.toml"


def project_file(cwd: Path) -> Path:
    """The project's own file in `cwd`."""
    return cwd / ".loadpoint.toml"


def read(cwd: Path | str | None = None, *, only: Path | None = None) -> Config:
    """What the files say now, or one of them. Never raises for a file: what cannot be used is told and left out."""
    values: dict[str, Any] = {}
    origin: dict[str, Path] = {}
    used: list[Path] = []
    users: dict[str, Any] = {}
    places = [source for source in sources(cwd) if only is None or source.path == only]
    for source in places:
        found = _settings(source)
        if found is None:
            continue
        used.append(source.path)
        for key, value in found.items():
            if source.project and _loosens(key, value, users):
                log.warning("%s: %s = %r is left out: your own file has the stricter value", source.path, key, value)
                continue
            values[key], origin[key] = value, source.path
        if not source.project:
            users.update(found)
    return Config(values, origin, tuple(used), tuple(source.path for source in places))


def _loosens(key: str, value: object, users: Mapping[str, Any]) -> bool:
    return key in _STRICT and users.get(key) == _STRICT[key] and value != _STRICT[key]


def policy(cwd: Path | str | None = None, notify: Callable[[str], None] | None = None) -> Policy:
    """The policy that the files describe. Raises `PolicyError` naming the file for a value that no policy can have.

    Without any usable file nothing is deferred. `notify` gets the start notice (see `notice`).
    """
    config = read(cwd)
    try:
        made = Policy(**(config.values if config.used else {"defer": ()}))
    except PolicyError as error:
        raise PolicyError(f"{_culprit(config) or 'the configuration'}: {error}") from error
    _remember(made, config, notify)
    return made


def _culprit(config: Config) -> Path | None:
    """The file of the first setting that cannot be used by itself."""
    for key, value in config.values.items():
        try:
            Policy(**{key: value})
        except PolicyError:
            return config.origin[key]
    return None


# ---------------------------------------------------------------------------------------------------- reading a file


def _settings(source: Source) -> dict[str, Any] | None:
    """The usable settings in a file; None where there are none: it counts as absent then."""
    content = _content(source.path)
    for step in source.table:
        content = as_object((content or {}).get(step))
    if content is None:
        return None
    pi = source.path.suffix == ".json"
    known = {field.name for field in dataclasses.fields(Policy)}
    found: dict[str, Any] = {}
    if LAZY in content:
        names = _lazy(source.path, content[LAZY])
        if names is not None:
            found["defer"] = names
    for key, value in content.items():
        if pi or key == LAZY:
            continue
        if key not in known:
            log.warning("%s: %s is no setting; known: lazy, %s", source.path, key, ", ".join(sorted(known)))
        elif key == "defer" and "defer" in found:
            log.warning("%s: lazy and defer say the same thing twice; lazy counts", source.path)
        else:
            found[key] = value
    return found or None


def _content(path: Path) -> dict[str, Any] | None:
    """The object that a file holds; None, told unless the file is simply not there, for anything else."""
    import tomllib

    try:
        text = path.read_text("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        log.warning("%s cannot be read and counts as absent: %s", path, error)
        return None
    try:
        content: object = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        log.warning("%s does not parse and counts as absent: %s", path, error)
        return None
    found = as_object(content)
    if found is None:
        log.warning("%s holds no object and counts as absent", path)
    return found


def _lazy(path: Path, value: object) -> tuple[str, ...] | None:
    """The strings of a `lazy` list, an empty list too; None, with a warning, where it is no list."""
    items = as_list(value)
    if not items and value != []:
        log.warning("%s: lazy is %s and no list, and is left out", path, type(value).__name__)
        return None
    names = tuple(item for item in items if isinstance(item, str) and item)
    if len(names) < len(items):
        log.warning("%s: %d entries of lazy are no names and are left out", path, len(items) - len(names))
    return names


# --------------------------------------------------------------------------------------------------- changing a file


def changed(path: Path, key: str, value: object) -> str:
    """The text of the TOML file at `path` with one setting changed or added, everything else as it is.

    Raises `PolicyError` for a file that does not parse: what is broken is not written over.
    """
    import tomllib

    try:
        text = path.read_text("utf-8")
        before = tomllib.loads(text)
    except FileNotFoundError:
        text, before = "", {}
    except (OSError, ValueError) as error:
        raise PolicyError(f"{path}: cannot be changed: {error}") from error
    line = f"{key} = {_toml(value)}"
    lines = text.splitlines()
    start, end = _place(lines, key)
    new = "\n".join([*lines[:start], line + _comment("\n".join(lines[start:end])), *lines[end:], ""])
    wanted = {**before, key: value}
    if tomllib.loads(new) != wanted:
        raise PolicyError(f"{path}: {key} stands there in a form that cannot be changed from here; edit the file")
    return new


def _comment(setting: str) -> str:
    """The comment behind a value, with the space before it; empty where there is none."""
    import tomllib

    for at in range(setting.rfind("\n") + 1, len(setting)):
        if setting[at] != "#":
            continue
        try:
            tomllib.loads(setting[:at])
        except ValueError:  # a # within a text
            continue
        before = setting[:at].rstrip()
        return setting[len(before) :]
    return ""


def holds(path: Path, key: str) -> bool:
    """Whether the file at `path` has this top-level setting; a file that cannot be used has none."""
    return key in (_content(path) or {})


def _place(lines: list[str], key: str) -> tuple[int, int]:
    """The lines of a top-level setting; where it would be put (an empty range), if it is not there."""
    import tomllib

    top = next((at for at, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    for start in range(top):
        if lines[start].partition("=")[0].strip().strip("\"'") != key:
            continue
        for end in range(start + 1, len(lines) + 1):  # a list may go on over several lines
            try:
                if key in tomllib.loads("\n".join(lines[start:end])):
                    return start, end
            except ValueError:
                continue
    return top, top


def _toml(value: object) -> str:
    """A text, number or list of texts as TOML writes it; JSON's escapes are TOML's too."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


# ------------------------------------------------------------------------------------------------------ start notice


@dataclass(frozen=True, slots=True)
class _Pending:
    policy: Policy
    text: str
    notify: Callable[[str], None] | None


_lock = threading.Lock()
_pending: list[_Pending] = []
_told: list[bool] = []


def _remember(made: Policy, config: Config, notify: Callable[[str], None] | None) -> None:
    with _lock:
        _pending[:] = [_Pending(made, notice_text(made, config), notify)]


def notice_text(made: Policy, config: Config) -> str:
    """What is told at the start: the tools that are deferred, and the file that says so, or where one could stand."""
    names = [f"- {name}" for name in made.defer] or ["(none)"]
    lines = ["Tools deferred by configuration:", *names, ""]
    if "defer" in config.origin:
        lines += ["Configuration file in effect:", str(config.origin["defer"])]
    elif config.used:
        lines += ["No list in the configuration:", *map(str, config.used)]
    else:
        lines += ["No configuration; looked for, and none of these exists:", *map(str, config.places)]
    return "\n".join(lines)


def notice(policy: Policy) -> str | None:
    """The start notice for a client that is wrapped with `policy`, told as a log record and to the callback; or None.

    There is one per process, at the first wrap with a policy from `Policy.load`: never at copies of a client, further
    clients or in a forked process. Reads no file. Never raises: a callback that fails costs a warning.
    """
    try:
        with _lock:
            found = next((item for item in _pending if item.policy.defer == policy.defer), None)
            if found is None or _told:
                return None
            _told.append(True)
        log.info("%s", found.text)
        if found.notify is not None:
            found.notify(found.text)
    except Exception as error:  # noqa: BLE001 - a notice is never worth a failed start
        log.warning("the start notice was not told: %s", error)
        return None
    return found.text
