"""Model names and endpoints, read by patterns in the data: which family and generation, which host.

Names come in many spellings (dated snapshots, vendor prefixes, platform suffixes), so every spelling is reduced to
family, tier and version, and the data's conditions compare those. No provider is named here: `_providers/*.toml` do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any

from . import _own_models

_FOLDER = Path(__file__).with_name("_providers")


ANY = "*"
"""An endpoint that satisfies every condition on endpoints."""


@dataclass(frozen=True, slots=True)
class Model:
    """A model name, understood: `name` is the spelling reduced to lower case without folders before it.

    `file` and `prices` name the data files of its provider.
    """

    name: str
    family: str
    tier: str
    version: tuple[int, int]
    file: str
    prices: str


@lru_cache(maxsize=64)
def table(name: str) -> Mapping[str, Any]:
    """The parsed data file `name`, read once per process. Raises `FileNotFoundError` for an unknown one."""
    import tomllib  # here, because `import loadpoint` must stay cheap

    return tomllib.loads((_FOLDER / f"{name}.toml").read_text("utf-8"))


def bare(model: str) -> str:
    """`model` in lower case, without folders (`models/`, `vendor/`) before the name."""
    return model.strip().lower().rpartition("/")[2]


def parse(model: str) -> Model | None:
    """Family, tier and version of a model name; None for a name that no family's pattern matches."""
    return _parsed(model, _own_models.current())


@lru_cache(maxsize=1024)
def _parsed(model: str, own: _own_models.Own) -> Model | None:
    name = bare(model)
    for line in own.rows("alias"):
        if fnmatchcase(name, line["match"].lower()):
            return _parsed(line["model"], _own_models.NOTHING)
    index = table("index")
    for alias in index["alias"]:
        if fnmatchcase(name, alias["match"]):
            row = next(row for row in index["family"] if row["name"] == alias["family"])
            return _model(name, row, alias.get("tier", ""), version(alias["version"]))
    for row in index["family"]:
        found = re.search(row["pattern"], name)
        if found:
            group = found.groupdict(default="")
            numbers = (int(group.get("major") or 0), int(group.get("minor") or 0))
            return _model(name, row, group.get("tier") or group.get("tail") or "", numbers)
    return None


def _model(name: str, row: Mapping[str, Any], tier: str, numbers: tuple[int, int]) -> Model:
    return Model(name, row["name"], tier, numbers, row["file"], row["prices"])


def version(text: str) -> tuple[int, int]:
    """The version in a text: 4.5 as (4, 5), 5 as (5, 0)."""
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def host(base_url: str) -> str:
    """The host name of a base_url (or of a bare host name), lower case, without credentials and port."""
    authority = re.split(r"[/?#]", base_url.strip().partition("://")[2] or base_url.strip(), maxsplit=1)[0]
    authority = authority.rpartition("@")[2].lower()
    if authority.startswith("["):
        return authority.partition("]")[0][1:]
    return authority.partition(":")[0].rstrip(".")


def endpoint(base_url: str | None, dialect: str, model: Model | None) -> str | None:
    """The id of the endpoint that `base_url` names, None for one that the data does not know.

    Without a base_url it is the one where the model's own provider serves this dialect, else the dialect's default.
    """
    index = table("index")
    if base_url is None:
        if model is not None:
            for row in index["family"]:
                if row["name"] == model.family and dialect in row.get("home", {}):
                    return str(row["home"][dialect])
        home = dialect_row(dialect).get("home")
        return None if home is None else str(home)
    name = host(base_url)
    for row in endpoints():
        if any(fnmatchcase(name, pattern) for pattern in row["hosts"]):
            return str(row["name"])
    return None


def dialect_row(dialect: str) -> Mapping[str, Any]:
    """What the data says of a dialect as such; empty for an unknown one."""
    row: Mapping[str, Any] = table("index")["dialect"].get(dialect, {})
    return row


def endpoints() -> list[Mapping[str, Any]]:
    """What is known of endpoints as such, the user's own first."""
    return [*_own_models.current().rows("endpoint"), *table("index")["endpoint"]]


def endpoint_row(place: str | None) -> Mapping[str, Any]:
    """What the data says of an endpoint as such; empty for an unknown one."""
    for row in endpoints():
        if row["name"] == place:
            found: Mapping[str, Any] = row
            return found
    return {}


def fits(row: Mapping[str, Any], model: Model | None, dialect: str, place: str | None) -> bool:
    """Whether the conditions of a data row hold; a condition that is absent holds.

    `dialects`, `endpoints`: one of. `families`, `tiers`: one of. `from`, `below`: the version, from inclusive. `match`:
    fnmatch patterns of the name, one of. `except`: fnmatch patterns of the name, none of.
    """
    if "dialects" in row and dialect not in row["dialects"]:
        return False
    if "endpoints" in row and place != ANY and place not in row["endpoints"]:
        return False
    if model is None:
        return not {"families", "tiers", "from", "below", "match"} & row.keys()
    if "families" in row and model.family not in row["families"]:
        return False
    if "tiers" in row and model.tier not in row["tiers"]:
        return False
    if "from" in row and model.version < version(row["from"]):
        return False
    if "below" in row and model.version >= version(row["below"]):
        return False
    if "match" in row and not any(fnmatchcase(model.name, pattern) for pattern in row["match"]):
        return False
    return not any(fnmatchcase(model.name, pattern) for pattern in row.get("except", ()))


def rows(kind: str, model: Model | None, dialect: str, place: str | None) -> list[Mapping[str, Any]]:
    """The rows of `kind` that apply to a model on an endpoint, best first: the user's, the model's, the endpoint's."""
    return [*own_rows(kind, model, dialect, place), *data_rows(kind, model, dialect, place)]


def own_rows(kind: str, model: Model | None, dialect: str, place: str | None) -> list[Mapping[str, Any]]:
    """The rows of the user's own file that apply."""
    return [row for row in _own_models.current().rows(kind) if fits(row, model, dialect, place)]


def data_rows(kind: str, model: Model | None, dialect: str, place: str | None) -> list[Mapping[str, Any]]:
    """The rows of our data that apply: the model's own, then the endpoint's."""
    files = [model.file] if model is not None else []
    more = endpoint_row(place).get("file")
    if more is not None and more not in files:
        files.append(more)
    return [row for file in files for row in table(file).get(kind, ()) if fits(row, model, dialect, place)]


def priced(kind: str, model: Model | None, dialect: str, place: str | None) -> Mapping[str, Any] | None:
    """The first row of `kind` (`price` or `cache`) that applies to a model, None if none does.

    The user's own first, then what the endpoint's file says of that endpoint, then the model's.
    """
    file = endpoint_row(place).get("prices")
    here = [row for row in table(file).get(kind, ()) if "endpoints" in row] if file else []
    own = model.prices if model is not None else None
    found = [*_own_models.current().rows(kind), *here, *(table(own).get(kind, ()) if own else ())]
    return next((row for row in found if fits(row, model, dialect, place)), None)


def first(kind: str, model: Model | None, dialect: str, place: str | None) -> Mapping[str, Any] | None:
    """The first row of `kind` that applies, None if none does."""
    found = rows(kind, model, dialect, place)
    return found[0] if found else None
