"""What the transport makes of a request before it is sent: whose it is, and why some are left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadpoint._json import Json, as_list, as_object
from loadpoint._plan import Request

from .._driving import driven_above
from .._exchange import OURS, SECRET
from ._compat import library
from ._signed import signature

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect
    from loadpoint._driven import Beginner, Driven

_SECRET = SECRET | {"x-goog-api-key", "cookie", "proxy-authorization"}
_WHO = SECRET | {"x-goog-api-key"}
_ENCODED = "its body is compressed"
_STREAM = "its body is a stream, which can be read only once"
_FORM = "its body is no JSON"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a session takes it: `content` are the bytes of `body`, None where it has none."""

    request: Request
    content: bytes | None

    def begun(self, session: Beginner) -> Driven | None:
        """The call that drives it; None to send it as it is. Raises `PolicyError` for an unusable `using` block."""
        call = None if self.content is None else session.begin(self.request)
        return call or session.stored(self.request)


def asked(dialects: Sequence[Dialect], request: Any) -> Asked | str | None:
    """What a session is asked about an HTTP request: a string says why nothing, None that there is nothing to say."""
    if driven_above():
        return None
    root = _root(dialects, request.method, request.url.path)
    if root is None:
        return _elsewhere(request)
    content, reason = _content(request)
    if reason is not None:
        return reason
    if content and b'"tools"' in content:
        signed = signature(request)
        if signed is not None:
            return f"the request is signed, another body would be refused: {signed}"
    return _parsed(request, root, content)


def _elsewhere(request: Any) -> str | None:
    """Why a request with tools to an address of no known dialect is sent as it came; None for any other request."""
    content = _content(request)[0] if str(request.method).upper() == "POST" else None
    if not content or b'"tools"' not in content:
        return None
    try:
        body = as_object(json.loads(content))
    except (ValueError, RecursionError):
        return None
    if not as_list((body or {}).get("tools")):
        return None
    return f"no dialect is known that has addresses like {request.url.path}, so every tool is sent"


def _parsed(request: Any, root: str, content: bytes | None) -> Asked | None:
    body: Json | None = {name: _flag(value) for name, value in request.url.params.items()}
    if content:
        try:
            body = as_object(json.loads(content))
        except (ValueError, RecursionError):
            body = None
    if body is None:
        return None  # the endpoint says what is wrong with it
    headers = {name.lower(): str(value) for name, value in request.headers.items()}
    url = request.url
    given = Request(
        method=str(request.method).upper(),
        path=str(url.path),
        body=body,
        headers={k: v for k, v in headers.items() if k not in _SECRET and not k.startswith("x-stainless-")},
        base_url=f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}{root}",
        credential="\n".join([headers[name] for name in sorted(_WHO) if name in headers]),
    )
    return Asked(given, content or None)


def _root(dialects: Sequence[Dialect], method: str, path: str) -> str | None:
    """The path that all requests of an API have before their own; None for a request of no known dialect."""
    parts = path.split("/")
    for at in range(len(parts) - 1, 0, -1):
        tail = "/" + "/".join(parts[at:])
        if any(each.operation(method, tail, {}) is not None or each.stored(method, tail) for each in dialects):
            return "/".join(parts[:at]) + "/"
    return None


def _content(request: Any) -> tuple[bytes | None, str | None]:
    """The body, where it is plain JSON that is in memory, and else why it cannot be read."""
    if not isinstance(request.stream, library(request).ByteStream):
        return None, _STREAM
    content: bytes = request.read()  # it is in memory, also where the client has made a request of another's stream
    if content and request.headers.get("content-encoding", "identity") != "identity":
        return None, _ENCODED
    kind = request.headers.get("content-type", "application/json")
    return (content, None) if not content or "json" in kind.lower() else (None, _FORM)


def _flag(value: str) -> Any:
    """A query parameter as a body would have it."""
    return {"true": True, "false": False}.get(value, value)


def without_ours(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers that are not meant for us alone."""
    return [(name, value) for name, value in headers if name.lower().decode("latin-1") not in OURS]
