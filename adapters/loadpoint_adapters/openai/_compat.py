"""Every name of the openai SDK that is not public and that the adapter leans on; `tests/adapters` has one test each.

`FinalRequestOptions` and its fields, `NotGiven`, the raw-response header and its value, `_maybe_override_cast_to`,
`_process_response`, `_custom_headers`, `_parsed_by_type`, `_client`; `_prepare_options` in `_sockets.py`. Checked with
3.0 and 3.57.
"""

# ruff: noqa: SLF001
# pyright: reportPrivateUsage=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import openai
from openai._base_client import AsyncAPIClient, SyncAPIClient
from openai._types import NOT_GIVEN, NotGiven, Omit

from loadpoint._json import Json, as_list

from .._framing import Sse
from .._plain import plain
from .._response import refused
from . import _sockets as sockets

if TYPE_CHECKING:
    from loadpoint._dialect import Dialect

    from .._framing import Framing

_ABSENT = (NotGiven, Omit)
_IDENTITY = ("organization", "project", "aws_region", "aws_profile", "_azure_deployment")


class OpenAICompat:
    """The openai SDK, as the seam needs it."""

    sdk = "openai"
    raw = "true"
    request_id = "x-request-id"

    def members(self, base: type[Any]) -> dict[str, Any]:
        """The hook that a web socket passes as a request does."""
        return sockets.members(base, asynchronous=self.asynchronous(base))

    def unsupported(self) -> str | None:
        """Why this version cannot be wrapped."""
        major = openai.__version__.partition(".")[0]
        if major == "3":
            return None
        return f"openai {openai.__version__} is not supported: install openai>=3,<4 (the extra loadpoint[openai])"

    def matches(self, client: object) -> bool:
        """Whether this is an instance of a client class."""
        return isinstance(client, (SyncAPIClient, AsyncAPIClient))

    def asynchronous(self, kind: type[Any]) -> bool:
        """Whether clients of this class are asynchronous."""
        return issubclass(kind, AsyncAPIClient)

    def dialects(self) -> Sequence[Dialect]:
        """Chat completions and responses."""
        from .._dialects.openai_chat import OpenAIChat
        from .._dialects.openai_responses import OpenAIResponses

        return (OpenAIChat(), OpenAIResponses())

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
        """The API key where it is fixed, beside what else tells accounts apart; renewed tokens do not count."""
        fixed = "" if getattr(client, "_api_key_provider", None) else getattr(client, "api_key", None) or ""
        if getattr(client, "_azure_ad_token", None) or getattr(client, "_azure_ad_token_provider", None):
            fixed = ""  # such a client has a placeholder for a key
        return "\n".join([str(fixed), *(str(getattr(client, name, None) or "") for name in _IDENTITY)])

    def prepare(self, client: Any, options: Any) -> tuple[Any, Json | None]:  # noqa: ARG002
        """The options as they are (the SDK made the body plain before), and the body with `extra_body` in it."""
        if options.files is not None or options.content is not None:
            return options, None
        body: Any = options.json_data
        extra: Any = options.extra_json
        if extra and body is None:
            body = extra
        elif extra and isinstance(body, Mapping):
            body = {**cast("Mapping[str, Any]", body), **extra}
        if extra or not isinstance(body, dict) or not _are_plain(body.get("tools")):  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]
            return options, plain(body, _ABSENT)  # pyright: ignore[reportUnknownArgumentType]
        # The SDK has copied the tools just before, and the session keeps a copy of its own: a third costs more than
        # both.
        asked = cast(Json, body)
        made = plain({**asked, "tools": []}, _ABSENT)
        return options, None if made is None else {**made, "tools": asked["tools"]}

    async def prepare_async(self, client: Any, options: Any) -> tuple[Any, Json | None]:
        """The same: nothing here waits."""
        return self.prepare(client, options)

    def with_body(self, options: Any, body: Json) -> Any:
        """A copy with another body."""
        options = options.model_copy()
        options.json_data = body
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

    def http_response(self, client: Any, options: Any, value: Any) -> Any:  # noqa: ARG002
        """The HTTP response of a raw request."""
        return value.http_response

    def watched(self, value: Any) -> Any:
        """What the SDK keeps of a raw response once it was parsed; the seam never has it parsed."""
        parsed: dict[Any, Any] = getattr(value, "_parsed_by_type", None) or {}
        kinds: Any = (openai.Stream, openai.AsyncStream)
        return next((made for made in parsed.values() if isinstance(made, kinds)), None)

    def retries(self, value: Any) -> int:
        """Retries of a raw request."""
        return int(getattr(value, "retries_taken", 0))

    def refused(self, error: BaseException) -> tuple[int, str] | None:
        """Status and body of a status error."""
        return refused(error, openai.APIStatusError)

    def process(self, client: Any, **given: Any) -> Any:
        """What the SDK makes of a response."""
        return client._process_response(**given)

    def framing(self, response: Any) -> Framing:  # noqa: ARG002
        """Server-sent events; the SDK stops reading at `[DONE]`."""
        return Sse(b"[DONE]")


def _are_plain(tools: object) -> bool:
    listed = as_list(tools)  # empty for what is no list
    return bool(listed) and all(isinstance(tool, dict) for tool in listed)
