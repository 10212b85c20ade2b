"""Local services that speak, and enforce, the wire of the real ones.

    from loadpoint import emulator
    client = openai.OpenAI(**emulator.unless_key("OPENAI_API_KEY"))      # the real service if there is a key

    server = emulator.Emulator(emulator.Script.sequence([emulator.Move(text="hello")]))
    client = openai.OpenAI(api_key="any", http_client=emulator.http_client("openai", server))
    server.exchanges[0].request                                          # what was sent

An emulator rejects what the service rejects (`_providers/rules.toml` says what, and from where it is known), keeps a
prompt cache by the service's rules, reports usage, expands tools at their load points, and is played by a `Script`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ._answer import Answer, Exchange, Piece, Segments
from ._core import Emulator
from ._count import tokens
from ._script import Call, Called, Move, Script, Shown, Step, Turn

if TYPE_CHECKING:
    from ._serve import Running

Sdk: TypeAlias = Literal["openai", "anthropic"]

__all__ = [
    "Answer",
    "Call",
    "Called",
    "Emulator",
    "Exchange",
    "Move",
    "Piece",
    "Script",
    "Sdk",
    "Segments",
    "Shown",
    "Step",
    "Turn",
    "http_client",
    "serve",
    "tokens",
    "unless_key",
]

_SDK_OF_KEY: dict[str, Sdk] = {"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic"}


def http_client(sdk: Sdk, server: Emulator | None = None, *, asynchronous: bool = False, legacy: bool = False) -> Any:
    """An HTTP client for the constructor of an SDK client (`http_client=`) that answers in process.

    The SDK keeps its real base_url: whatever host a request names, `server` (a new emulator if None) answers it.
    Comes back as `httpx2.Client`, or `httpx2.AsyncClient` when `asynchronous`; `legacy` gives the classes of httpx,
    for SDKs that still use it. The emulator is its attribute `emulator`. Raises `ValueError` for an unknown `sdk`.
    """
    if sdk not in _SDK_OF_KEY.values():
        raise ValueError(f"http_client: {sdk!r} is no SDK; allowed: {', '.join(map(repr, _SDK_OF_KEY.values()))}")
    from ._http import client

    return client(server or Emulator(), asynchronous=asynchronous, legacy=legacy)


def serve(server: Emulator | None = None) -> Running:
    """An emulator on a free port of the loopback interface, for `with emulator.serve() as running:`.

    `running.url` is its address: a base_url for Anthropic's SDK as it is, for OpenAI's with "/v1" behind it.
    `running.server` is the emulator. Needs the extra `emulator`.
    """
    from ._serve import Running

    return Running(server or Emulator())


def unless_key(variable: str, *, asynchronous: bool = False) -> dict[str, Any]:
    """Constructor arguments that make an SDK client work without a key.

    `{}` if the environment variable is set (the real service is used), else an api_key and an http_client that is an
    emulator. Knows OPENAI_API_KEY and ANTHROPIC_API_KEY; raises `ValueError` for another name.
    """
    sdk = _SDK_OF_KEY.get(variable)
    if sdk is None:
        raise ValueError(f"unless_key: {variable!r} is unknown; allowed: {', '.join(map(repr, _SDK_OF_KEY))}")
    if os.environ.get(variable):
        return {}
    return {"api_key": "emulated", "http_client": http_client(sdk, asynchronous=asynchronous)}
