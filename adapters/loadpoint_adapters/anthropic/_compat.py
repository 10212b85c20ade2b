"""Every name of the anthropic SDK that is not public and that the adapter leans on; `tests/adapters` has a test each.

`FinalRequestOptions` and its fields, `NotGiven`, the raw-response header and its value, `_copy_and_prepare`,
`_maybe_override_cast_to`, `_process_response`, `_custom_headers`, `_parsed_by_type`, `_client`; for the middleware also
what an `APIResponse` keeps of its making, and that the chain's innermost function closes over the client. Checked with
2.0 and 2.14.
"""

# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anthropic
import httpx2
from anthropic._base_client import AsyncAPIClient, SyncAPIClient
from anthropic._response import BaseAPIResponse
from anthropic._types import NOT_GIVEN, NotGiven, Omit

from loadpoint._json import Json, as_object

from .._framing import Sse
from .._response import refused
from ._copies import Copies, Plain
from ._eventstream import EventStream

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect

    from .._framing import Framing

_IDENTITY = ("aws_region", "aws_profile", "region", "project_id", "workspace_id", "resource")
_EVENT_STREAM = "application/vnd.amazon.eventstream"
_DEPTH = 24


class AnthropicCompat:
    """The anthropic SDK, as the seam needs it."""

    sdk = "anthropic"
    raw = "raw"
    request_id = "request-id"

    def __init__(self) -> None:
        self._copies = Copies()

    def unsupported(self) -> str | None:
        """Why this version cannot be wrapped."""
        major = anthropic.__version__.partition(".")[0]
        if major == "2":
            return None
        return (
            f"anthropic {anthropic.__version__} is not supported: install anthropic>=2,<3 (the extra "
            "loadpoint[anthropic])"
        )

    def matches(self, client: object) -> bool:
        """Whether this is an instance of a client class."""
        return isinstance(client, (SyncAPIClient, AsyncAPIClient))

    def asynchronous(self, kind: type[Any]) -> bool:
        """Whether clients of this class are asynchronous."""
        return issubclass(kind, AsyncAPIClient)

    def dialects(self) -> Sequence[Dialect]:
        """Messages."""
        from .._dialects.anthropic_messages import AnthropicMessages

        return (AnthropicMessages(),)

    def pool(self, client: Any) -> object:
        """The HTTP client behind a client."""
        return client._client

    def omit(self) -> object:
        """The value that removes a header."""
        return Omit()

    def headers(self, options: Any) -> dict[str, Any]:
        """A copy of the request's own headers."""
        return {} if isinstance(options.headers, NotGiven) else dict(options.headers)

    def client_headers(self, client: Any) -> Mapping[str, Any]:
        """The headers given to the client."""
        headers: Mapping[str, Any] = client._custom_headers
        return headers

    def credential(self, client: Any) -> str:
        """A fixed key where there is one, beside what else tells accounts apart; renewed tokens do not count."""
        fixed = getattr(client, "api_key", None) or getattr(client, "aws_access_key", None) or ""
        return "\n".join([str(fixed), *(str(getattr(client, name, None) or "") for name in _IDENTITY)])

    def prepare(self, client: Any, options: Any) -> tuple[Any, Json | None]:
        """The SDK's own plain copy: what a later walk over it would find consumed (iterators, files) is read once."""
        if not _has_body(options):
            return options, None
        options, known = self._copies.split(options)
        options = client._copy_and_prepare(options)
        self._copies.join(options, known)
        return options, as_object(options.json_data)

    def body(self, options: Any) -> Json | None:
        """The body of options that the SDK has prepared."""
        return as_object(options.json_data) if _has_body(options) else None

    async def prepare_async(self, client: Any, options: Any) -> tuple[Any, Json | None]:
        """The same; the SDK may read files here."""
        if not _has_body(options):
            return options, None
        options, known = self._copies.split(options)
        options = await client._copy_and_prepare(options)
        self._copies.join(options, known)
        return options, as_object(options.json_data)

    def members(self, base: type[Any]) -> dict[str, Any]:
        """A body of ours is plain JSON: the SDK need not walk over it to make it so."""
        whole = base._copy_and_prepare

        def ready(options: Any) -> bool:
            return type(options.json_data) is Plain and not options.params and not options.extra_json

        def copy(self: Any, options: Any) -> Any:
            return options.model_copy() if ready(options) else whole(self, options)

        async def copy_async(self: Any, options: Any) -> Any:
            return options.model_copy() if ready(options) else await whole(self, options)

        return {"_copy_and_prepare": copy_async if self.asynchronous(base) else copy}

    def with_body(self, options: Any, body: Json) -> Any:
        """A copy with another body."""
        options = options.model_copy()
        options.json_data = Plain(body)
        options.extra_json = None
        return options

    def hide(self, options: Any) -> None:
        """Without the caller's post-parser, which is for the reply that the caller gets."""
        options.post_parser = NOT_GIVEN

    def after(self, options: Any, register: Any) -> None:
        """Chain `register` behind the post-parser."""
        first = None if isinstance(options.post_parser, NotGiven) else options.post_parser

        def parse(value: Any) -> Any:
            value = value if first is None else first(value)
            register(value)
            return value

        options.post_parser = parse

    def cast_to(self, client: Any, cast_to: Any, options: Any) -> Any:
        """The type to parse into."""
        return client._maybe_override_cast_to(cast_to, options)

    def http_response(self, client: Any, options: Any, value: Any) -> Any:
        """The HTTP response of a raw request; a value that the caller's middleware made up becomes one."""
        if isinstance(value, httpx2.Response):
            return value
        for name in ("http_response", "response"):
            found = getattr(value, name, None)
            if isinstance(found, httpx2.Response):
                return found
        dump = getattr(value, "model_dump", None)
        content = dump(mode="json", by_alias=True, exclude_unset=True) if callable(dump) else value
        url = str(client.base_url).rstrip("/") + "/" + options.url.lstrip("/")
        return httpx2.Response(200, json=content, request=httpx2.Request("POST", url))

    def watched(self, value: Any) -> Any:
        """What the SDK keeps of a raw response once it was parsed; the seam never has it parsed."""
        parsed: dict[Any, Any] = getattr(value, "_parsed_by_type", None) or {}
        kinds: Any = (anthropic.Stream, anthropic.AsyncStream)
        return next((made for made in parsed.values() if isinstance(made, kinds)), None)

    def retries(self, value: Any) -> int:
        """Retries of a raw request."""
        return int(getattr(value, "retries_taken", 0))

    def refused(self, error: BaseException) -> tuple[int, str] | None:
        """Status and body of a status error."""
        return refused(error, anthropic.APIStatusError)

    def process(self, client: Any, **given: Any) -> Any:
        """What the SDK makes of a response."""
        return client._process_response(**given)

    def framing(self, response: Any) -> Framing:
        """Server-sent events, on Bedrock inside AWS event-stream messages; both are read to their end."""
        if response.headers.get("content-type", "").startswith(_EVENT_STREAM):
            return EventStream()
        return Sse()


def _has_body(options: Any) -> bool:
    return options.method.lower() != "get" and not options.files and options.content is None


def is_response(value: object) -> bool:
    """Whether the chain gave back a response; other middleware may give back any value."""
    return isinstance(value, BaseAPIResponse)


def rewrapped(response: Any, http_response: Any, options: Any) -> Any:
    """An `APIResponse` like `response` around another HTTP response, as the SDK's own middleware makes them."""
    return type(response)(
        raw=http_response,
        cast_to=response._cast_to,
        client=response._client,
        stream=response._is_sse_stream,
        stream_cls=response._stream_cls,
        options=options,
        retries_taken=response.retries_taken,
    )


def without(result: Any, own: anthropic.Middleware) -> Any:
    """The client that made this response, without the middleware `own` and what stands before it."""
    client = result._client
    chain: list[Any] = list(client.middleware)
    behind = chain[chain.index(own) + 1 :] if own in chain else []
    return client.copy(middleware=behind, http_client=client._client)


def client_behind(call_next: Any) -> Any:
    """The client that a middleware chain belongs to; None if it cannot be told.

    Middleware is not told which client it serves. The chain's innermost function closes over it.
    """
    seen: set[int] = set()
    waiting: list[tuple[Any, int]] = [(call_next, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, (SyncAPIClient, AsyncAPIClient)):
            return value
        if id(value) in seen or depth > _DEPTH:
            continue
        seen.add(id(value))
        cells = getattr(value, "__closure__", None) or ()
        waiting += [(cell.cell_contents, depth + 1) for cell in cells]
    return None
