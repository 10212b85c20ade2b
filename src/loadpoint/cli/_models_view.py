"""What `loadpoint models` shows, as JSON and on a terminal: nothing is computed here, the data is read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from .. import _models, _own_models
from .._capability import capability, provenance
from .._catalog import clean_text
from .._json import Json
from .._prices import MILLION, cache_rule, price, price_row

_LEGEND = (
    "* taken by choice only. An endpoint that stands nowhere here is not assumed to take a native form.",
    "loadpoint models MODEL shows one model with limits, cache rule, prices and sources.",
)


def write_json(value: Json) -> None:
    """`value` on standard output."""
    print(json.dumps({"schema": 1, **value}, indent=2))


# -- one model --------------------------------------------------------------------------------------------------------


def answer(model: str, dialect: str | None, base_url: str | None) -> Json:
    """What is known of `model`: its family (None: unknown) and one entry per dialect.

    Without a dialect: those that its own provider serves; all of them for a base_url or an unknown family.
    """
    parsed = _models.parse(model)
    index = _models.table("index")
    served: set[str] = set()
    if parsed is not None and base_url is None:
        served = {name for row in index["family"] if row["name"] == parsed.family for name in row.get("home", ())}
    dialects = [dialect] if dialect else [name for name in index["dialect"] if not served or name in served]
    own = _own_models.current().path
    return {
        "model": model,
        "family": parsed.family if parsed else None,
        "version": ".".join(map(str, parsed.version)) if parsed else None,
        "base_url": base_url,
        "own": str(own) if own else None,
        "dialects": [_entry(model, each, base_url) for each in dialects],
    }


def _entry(model: str, dialect: str, base_url: str | None) -> Json:
    found = capability(model, dialect, base_url)
    return {
        "dialect": dialect,
        "endpoint": found.endpoint,
        "capability": dataclasses.asdict(found),
        "cache": dataclasses.asdict(cache_rule(model, dialect, base_url)),
        "price": _price(model, dialect),
    }


def _price(model: str, dialect: str) -> Json | None:
    """The list price in USD per million tokens with its provenance, None where it is not known."""
    listed, row = price(model, dialect), price_row(model, dialect)
    if listed is None or row is None:
        return None
    usd = {name: round(value * MILLION, 6) for name, value in dataclasses.asdict(listed).items()}
    return {"usd_per_million": usd, **{name: row[name] for name in ("source", "date", "grade")}}


def show_answer(found: Json, console: Console | None = None) -> None:
    """Print one block per dialect, what is unverified in another colour."""
    out = console or Console()
    for entry in found["dialects"]:
        for line in str(capability(found["model"], entry["dialect"], found["base_url"])).splitlines():
            _line(out, line)
        for point in entry["capability"]["points"]:
            _line(out, f"  {_point(point)}")
        _line(out, f"cache: {_cache(entry['cache'])}")
        _line(out, f"price: {_usd(entry['price'])}")
        out.print()
    if found["own"]:
        _line(out, f"lines of your own: {found['own']}")


def _point(point: Mapping[str, Any]) -> str:
    """A load point: how it is used, and where that is written."""
    how = [
        "by choice only" if point["by_choice"] else "",
        {"all": "every tool declared", "on_load": "declared when loaded"}.get(point["declare"], "by value"),
        f"beta {' '.join(point['betas'])}" if point["betas"] else "",
    ]
    known = provenance(point["grade"], point["date"], point["source"])
    return f"{point['name']}: {', '.join(filter(None, how))} ({known})"


def _cache(rule: Mapping[str, Any]) -> str:
    how = "automatic" if rule["automatic"] else f"by marker, {rule['breakpoints']} at most"
    block = f", blocks of {rule['block']}" if rule["block"] > 1 else ""
    costs = f"read {rule['read']:g}, write {rule['write']:g}"
    known = provenance(rule["grade"], rule["date"], rule["source"])
    return f"{how}, from {rule['minimum']:,} tokens{block}, {rule['ttl']:,} s, {costs} ({known})"


def _usd(listed: Mapping[str, Any] | None) -> str:
    if listed is None:
        return "not known"
    each = ", ".join(f"{name} {value:g}" for name, value in listed["usd_per_million"].items())
    return f"USD per million tokens: {each} ({provenance(listed['grade'], listed['date'], listed['source'])})"


# -- the whole table --------------------------------------------------------------------------------------------------


def table(dialect: str | None, base_url: str | None) -> Json:
    """Every line about load points and refusals, the user's and ours; of one dialect or host where one is given."""
    index = _models.table("index")
    place = _models.endpoint(base_url, dialect or "", None) if base_url is not None else None
    known = {
        kind: [_told(row, index, dialect) for row in _lines(kind) if _asked(row, dialect, base_url, place)]
        for kind in ("load_point", "denied")
    }
    own = _own_models.current().path
    return {
        "own": str(own) if own else None,
        "load_points": known["load_point"],
        "denied": known["denied"],
        "families": [row["name"] for row in index["family"]],
        "endpoints": [{"name": row["name"], "hosts": row["hosts"]} for row in _models.endpoints()],
    }


def _lines(kind: str) -> Iterator[Mapping[str, Any]]:
    index = _models.table("index")
    yield from _own_models.current().rows(kind)
    files = [row["file"] for row in (*index["family"], *index["endpoint"]) if "file" in row]
    for file in dict.fromkeys(files):
        yield from _models.table(file).get(kind, ())


def _asked(row: Mapping[str, Any], dialect: str | None, base_url: str | None, place: str | None) -> bool:
    if dialect is not None and dialect not in row.get("dialects", [dialect]):
        return False
    return base_url is None or (place is not None and place in row.get("endpoints", [place]))


def _told(row: Mapping[str, Any], index: Mapping[str, Any], dialect: str | None) -> Json:
    """A row with what it leaves unsaid: dialects, models in words, whether `auto` takes it, whose it is."""
    told: Json = {**row, "models": _models_text(row), "yours": row in _own_lines()}
    if dialect is not None:
        told["dialects"] = [dialect]
    if "name" in row:
        told.setdefault("dialects", list(index["dialect"]))
        told["by_choice"] = row.get("by_choice", index["form"][row["name"]].get("by_choice", False))
    return told


def _own_lines() -> Sequence[Mapping[str, Any]]:
    own = _own_models.current()
    return [*own.rows("load_point"), *own.rows("denied")]


def _models_text(row: Mapping[str, Any]) -> str:
    """The conditions of a row on models, in words."""
    names = [*row.get("families", ()), *row.get("tiers", ()), *row.get("match", ())]
    parts = [" ".join(names) or "any model"]
    if "from" in row:
        parts.append(f"from {row['from']}")
    if "below" in row:
        parts.append(f"below {row['below']}")
    if "except" in row:
        parts.append(f"not {', '.join(row['except'])}")
    return " ".join(parts)


def show_table(found: Json, console: Console | None = None) -> None:
    """Print the load points as a table, then who takes none and why."""
    out = console or Console()
    if found["own"]:
        _line(out, f"lines of your own: {found['own']}")
    for dialect in dict.fromkeys(name for row in found["load_points"] for name in row["dialects"]):
        rows = [row for row in found["load_points"] if dialect in row["dialects"]]
        out.print(_grid(dialect, rows))
    _line(out, "Where none is taken unasked, and why:")
    for row in found["denied"]:
        where = ", ".join(row.get("endpoints", ())) or row["models"]
        on = f" ({', '.join(row['dialects'])})" if "dialects" in row else ""
        _line(out, f"  {where}{on}: {row['reason']} [{_known(row)}]")
    for text in _LEGEND:
        _line(out, text)


def _known(row: Mapping[str, Any]) -> str:
    return "yours" if row["yours"] else provenance(row["grade"], row["date"], "")


def _grid(title: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    grid = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    grid.padding = (0, 1, 0, 0)
    for heading in ("models", "endpoints"):
        grid.add_column(heading, overflow="fold")
    for heading in ("load point", "grade"):
        grid.add_column(heading, no_wrap=True)
    for row in rows:
        mark = "*" if row["by_choice"] else ""
        grade = "yours" if row["yours"] else row["grade"]
        grid.add_row(*_cells((row["models"], " ".join(row["endpoints"]), f"{row['name']}{mark}", grade)))
    return grid


def _cells(texts: Iterable[str]) -> Iterator[Text]:
    """Cells that no text of a file can give colours, links or line ends of its own."""
    return (Text(clean_text(text, 300)) for text in texts)


def _line(out: Console, text: str) -> None:
    """One line as it is, however wide the terminal; what is unverified stands out."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    line = Text(indent + clean_text(text, 600))
    line.highlight_words(["UNVERIFIED", "unverified"], style="bold yellow")
    out.print(line, soft_wrap=True)
