"""Deferred tool loading for LLM SDK clients: `wrap(client)` gives back a client of the same type.

Every name is fetched from its module at first use, so that `import loadpoint` costs next to nothing and loads no SDK.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "Adapter",
    "CallReport",
    "Capability",
    "Dialect",
    "EmbeddingRanker",
    "InProcessLedger",
    "Ledger",
    "LoadpointError",
    "Match",
    "Policy",
    "PolicyError",
    "Ranker",
    "RedisLedger",
    "RoundLimitError",
    "SearchLoopError",
    "SqliteLedger",
    "Tool",
    "ToolIndex",
    "Toolbox",
    "UnsupportedClientError",
    "capability",
    "clean",
    "modes",
    "named_ranker",
    "report",
    "unwrap",
    "using",
    "wrap",
]

if TYPE_CHECKING:
    from . import emulator as emulator
    from . import modes as modes
    from ._adapter import Adapter as Adapter
    from ._adapter import report as report
    from ._adapter import unwrap as unwrap
    from ._adapter import using as using
    from ._adapter import wrap as wrap
    from ._capability import Capability as Capability
    from ._capability import capability as capability
    from ._clean import clean as clean
    from ._dialect import Dialect as Dialect
    from ._ledger import InProcessLedger as InProcessLedger
    from ._ledger import Ledger as Ledger
    from ._ledger import RedisLedger as RedisLedger
    from ._ledger import SqliteLedger as SqliteLedger
    from ._policy import Policy as Policy
    from ._report import CallReport as CallReport
    from ._search import EmbeddingRanker as EmbeddingRanker
    from ._search import Match as Match
    from ._search import Ranker as Ranker
    from ._search import ToolIndex as ToolIndex
    from ._search import named_ranker as named_ranker
    from ._tool import Tool as Tool
    from .errors import LoadpointError as LoadpointError
    from .errors import PolicyError as PolicyError
    from .errors import RoundLimitError as RoundLimitError
    from .errors import SearchLoopError as SearchLoopError
    from .errors import UnsupportedClientError as UnsupportedClientError
    from .toolbox import Toolbox as Toolbox

_SUBMODULES = ("emulator", "errors", "modes", "toolbox")
_HOMES = {
    "_adapter": ("Adapter", "report", "unwrap", "using", "wrap"),
    "_capability": ("Capability", "capability"),
    "_clean": ("clean",),
    "_dialect": ("Dialect",),
    "_ledger": ("InProcessLedger", "Ledger", "RedisLedger", "SqliteLedger"),
    "_policy": ("Policy",),
    "_report": ("CallReport",),
    "_search": ("EmbeddingRanker", "Match", "Ranker", "ToolIndex", "named_ranker"),
    "_tool": ("Tool",),
    "errors": ("LoadpointError", "PolicyError", "RoundLimitError", "SearchLoopError", "UnsupportedClientError"),
    "toolbox": ("Toolbox",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker that saw it would let every misspelt name pass

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name in _SUBMODULES:
            return import_module(f"{__name__}.{name}")
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
        globals()[name] = value  # the next look-up does not come here
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
