"""Whom to talk to: the providers of `providers.toml`, and what the user decided about the run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .._models import host
from .._policy import Policy
from .._prices import MILLION, Prices
from ..errors import LoadpointError

LOOPBACK = ("localhost", "127.0.0.1", "::1")
MAX_TOKENS = 512
_SHORT = {"chat": "openai.chat", "responses": "openai.responses", "messages": "anthropic.messages"}


class UnusableError(LoadpointError, ValueError):
    """Settings with which nothing can be run; the message is one line that says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a run is asked to do.

    `budget` is in USD and positive. `model`, `dialect`, `base_url` None: the provider's own. `strategy`, `load_point`,
    `endpoint`: as in `Policy`. `prices`: per token in USD, instead of the data's. `max_tokens`: the most that one reply
    may have. `probes`: ids of open questions to ask by requests of their own; "all" is every one that fits.
    """

    provider: str
    budget: float
    model: str | None = None
    dialect: str | None = None
    base_url: str | None = None
    endpoint: str | None = None
    strategy: str = "auto"
    load_point: str | None = None
    prices: Prices | None = None
    max_tokens: int = MAX_TOKENS
    probes: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """The policy of the wrapped side. Raises `PolicyError` for an unusable value."""
        return Policy(strategy=self.strategy, load_point=self.load_point, endpoint=self.endpoint)


@dataclass(frozen=True, slots=True)
class Place:
    """A provider as a run talks to it. `limit` is the request field that bounds the output; `key` the variable."""

    provider: str
    sdk: str
    client: str
    key: str
    model: str
    dialect: str
    limit: str
    base_url: str | None

    def credential(self) -> str:
        """The user's key. Raises `UnusableError` that names the variable if it is not set."""
        value = os.environ.get(self.key, "").strip()
        if not value:
            raise UnusableError(f"no key: set the environment variable {self.key} (live runs use your own key)")
        return value


@lru_cache(maxsize=1)
def providers() -> Mapping[str, Mapping[str, Any]]:
    """The rows of `providers.toml` by name."""
    import tomllib

    return tomllib.loads(Path(__file__).with_name("providers.toml").read_text("utf-8"))


def place(settings: Settings) -> Place:
    """The provider, model and dialect of these settings. Raises `UnusableError` for what does not go together."""
    row = providers().get(settings.provider)
    if row is None:
        raise UnusableError(f"provider {settings.provider!r} is unknown; allowed: {', '.join(providers())}")
    base_url = settings.base_url or row.get("base_url")
    model = settings.model or row.get("model")
    if "model" not in row and (not settings.base_url or not model):
        raise UnusableError(f"provider {settings.provider!r} needs --base-url and --model")
    if base_url is not None:
        _fit_for_a_key(base_url)
    return Place(
        provider=settings.provider,
        sdk=row["sdk"],
        client=row["client"],
        key=row["key"],
        model=str(model),
        dialect=(dialect := _dialect(settings, row)),
        limit=row["limit"][dialect],
        base_url=base_url,
    )


def _dialect(settings: Settings, row: Mapping[str, Any]) -> str:
    allowed: list[str] = row["dialects"]
    if settings.dialect is None:
        return allowed[0]
    asked = _SHORT.get(settings.dialect, settings.dialect)
    if asked not in allowed:
        shorts = [next(short for short, name in _SHORT.items() if name == known) for known in allowed]
        raise UnusableError(
            f"--dialect: {settings.provider} does not speak {settings.dialect!r}; allowed: {', '.join(shorts)}"
        )
    return asked


def _fit_for_a_key(base_url: str) -> None:
    parts = urlsplit(base_url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UnusableError("--base-url: expected an address such as https://llm.example.com/v1")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise UnusableError(f"--base-url: plain http would send your key in the clear to {host(base_url)}; use https")


def budget_of(text: str | None) -> float:
    """A budget in USD. Raises `UnusableError` for anything but a positive number."""
    if text is None:
        raise UnusableError("--budget USD is needed: a live run spends your money, so say how much it may")
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):  # NaN compares false
        raise UnusableError(f"--budget: {text!r}; expected a positive amount of USD, such as 0.25")
    return value


def prices_of(text: str | None) -> Prices | None:
    """Prices given as "INPUT,OUTPUT" or "INPUT,CACHED,WRITTEN,OUTPUT" in USD per million tokens.

    Of two figures, cached input costs as much as any other and written input 1.25 times that: the most that is known.
    Raises `UnusableError` for anything else.
    """
    if text is None:
        return None
    try:
        figures = [float(part) / MILLION for part in text.split(",")]
    except ValueError:
        figures = []
    if len(figures) not in {2, 4} or not all(0 <= figure < float("inf") for figure in figures):
        raise UnusableError(
            f"--price: {text!r}; expected INPUT,OUTPUT or INPUT,CACHED,WRITTEN,OUTPUT in USD per million tokens"
        )
    if len(figures) == 4:
        return Prices(*figures)
    return Prices(input=figures[0], cached=figures[0], written=figures[0] * 1.25, output=figures[1])
