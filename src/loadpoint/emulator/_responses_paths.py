"""The paths of the Responses API and of the conversation objects that it continues."""

from __future__ import annotations

import re

_RESPONSES = re.compile(r"/responses(?:/(?P<id>[^/]+))?(?:/(?P<tail>cancel|input_items))?$")
_TALKS = re.compile(r"/conversations(?:/(?P<id>[^/]+))?(?P<items>/items)?(?:/(?P<item>[^/]+))?$")
_ENDPOINTS = {
    ("POST", False, None): "create",
    ("GET", True, None): "retrieve",
    ("DELETE", True, None): "delete",
    ("POST", True, "cancel"): "cancel",
    ("GET", True, "input_items"): "input_items",
}
_TALK_ENDPOINTS = {
    ("POST", False, False, False): "talk.create",
    ("GET", True, False, False): "talk.retrieve",
    ("POST", True, False, False): "talk.update",
    ("DELETE", True, False, False): "talk.delete",
    ("GET", True, True, False): "talk.items",
    ("POST", True, True, False): "talk.add",
    ("GET", True, True, True): "talk.item",
    ("DELETE", True, True, True): "talk.drop",
}
STORED = frozenset(("retrieve", "delete", "cancel", "input_items"))
"""The endpoints of one stored response."""
WITHOUT_BODY = STORED | {"talk.create", "talk.retrieve", "talk.delete", "talk.items", "talk.item", "talk.drop"}
"""The endpoints whose requests need no body."""


def endpoint(method: str, path: str) -> str | None:
    """The endpoint there: "create", "compact", "input_tokens", one of `STORED`, "talk.*" of a conversation, or None."""
    found = _RESPONSES.search(path)
    if found is not None:
        if method == "POST" and found["id"] in ("compact", "input_tokens") and found["tail"] is None:
            return found["id"]
        return _ENDPOINTS.get((method, found["id"] is not None, found["tail"]))
    talk = _TALKS.search(path)
    if talk is None:
        return None
    key = (method, talk["id"] is not None, talk["items"] is not None, talk["item"] is not None)
    return _TALK_ENDPOINTS.get(key)


def target(path: str) -> tuple[str, str]:
    """The ids in a path, "" where there is none: of the response or the conversation, and of the item."""
    found = _RESPONSES.search(path)
    if found is not None:
        return found["id"] or "", ""
    talk = _TALKS.search(path)
    return ("", "") if talk is None else (talk["id"] or "", talk["item"] or "")
