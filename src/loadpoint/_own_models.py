"""A user's own lines about models and endpoints: a TOML file whose rows come before those of the data.

It is read when the environment variable `LOADPOINT_MODELS` names it, at the first look-up, and never otherwise: `wrap`
reads no file that nobody asked for. The value is a path, or `user` for `models.toml` in the folder of this user's
configuration, which takes platformdirs (with the extra `cli`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from .errors import PolicyError

VARIABLE = "LOADPOINT_MODELS"
USER = "user"
"""The value of the variable that stands for the file in the user's configuration folder."""
GRADE = "reported"
"""The grade of an own line that gives none: somebody says so."""


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The rows of a user's file, by kind; two are equal if they are the same object, so that answers can be cached.

    `path` is the file, None where there is none.
    """

    path: Path | None
    kinds: Mapping[str, Sequence[Mapping[str, Any]]]

    def rows(self, kind: str) -> Sequence[Mapping[str, Any]]:
        """The rows of one kind, in the order of the file."""
        return self.kinds.get(kind, ())


NOTHING = Own(None, {})


def current() -> Own:
    """The file that the environment names now, read once per process and value; `NOTHING` where it names none.

    Raises `PolicyError` for a file that is missing or broken, each time: a line that somebody wrote is not ignored.
    """
    named = os.environ.get(VARIABLE, "")
    return _read(named) if named else NOTHING


def load(path: Path | str) -> Own:
    """The checked rows of a file. Raises `PolicyError` naming file, row, field, value and what is allowed."""
    import tomllib  # here, because `import loadpoint` must stay cheap

    from ._rows import problems

    place = Path(path).expanduser()
    try:
        content = tomllib.loads(place.read_text("utf-8"))
    except OSError as error:
        raise PolicyError(f"{place}: cannot be read ({error.strerror}); {VARIABLE} names it") from error
    except ValueError as error:  # TOML, or not UTF-8
        raise PolicyError(f"{place}: is not TOML: {error}") from error
    found = list(problems(content, own=True))
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise PolicyError(f"{place}: {found[0]}{more}")
    kinds = {
        kind: tuple(_signed(place, kind, number, row) for number, row in enumerate(rows, 1))
        for kind, rows in content.items()
    }
    return Own(place, kinds)


def user_file() -> Path:
    """`models.toml` in the folder of this user's configuration. Raises `PolicyError` without platformdirs."""
    try:
        from platformdirs import user_config_path
    except ModuleNotFoundError:
        raise PolicyError(
            f"{VARIABLE}: {USER!r} needs platformdirs, which comes with loadpoint[cli]; allowed without it: a path"
        ) from None
    return user_config_path("loadpoint") / "models.toml"


@lru_cache(maxsize=8)
def _read(named: str) -> Own:
    return load(user_file() if named == USER else named)


def _signed(place: Path, kind: str, number: int, row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The row with where it stands as its source, so that an answer says whose line it rests on."""
    given = f", after {row['source']}" if "source" in row else ""
    source = f"your own line: {place} [[{kind}]] row {number}{given}"
    return {"date": "", "grade": GRADE, **row, "source": source}
