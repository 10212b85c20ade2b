"""What a request of the Responses API is about, by its method and path."""

from __future__ import annotations

import re

_OPERATIONS = {"/responses": "create", "/responses/input_tokens": "count", "/responses/compact": "batch"}
_KEEPS = re.compile(r"/conversations(/[^/]+/items)?$")
"""Where items are stored without a model: ours have to leave them, too."""
_STORED = re.compile(r"/responses/(?!compact$|input_tokens$)([^/]+)(/cancel|/input_items)?$")
_ASKS = frozenset({("GET", None), ("DELETE", None), ("POST", "/cancel"), ("GET", "/input_items")})


def operation(method: str, path: str) -> str | None:
    """`create`, `count`, `batch`, or None for any other request."""
    if method.upper() != "POST":
        return None
    plain = path.partition("?")[0]
    if _KEEPS.search(plain):
        return "batch"
    return next((kind for end, kind in _OPERATIONS.items() if plain.endswith(end)), None)


def stored(method: str, path: str) -> str | None:
    """The id of the stored response that a request asks for; None for any other request."""
    found = _STORED.search(path.partition("?")[0])
    return found[1] if found is not None and (method.upper(), found[2]) in _ASKS else None
