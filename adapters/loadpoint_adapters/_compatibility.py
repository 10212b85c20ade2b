"""What the seam needs of one SDK. Each adapter's `_compat.py` gives it, and is the only place with private names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from loadpoint._json import Json

from ._framing import Framing

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loadpoint._dialect import Dialect


class Compat(Protocol):
    """What the seam needs of one SDK; the only place that knows the SDK's private names."""

    sdk: str
    raw: str
    """The value of the raw-response header that gives back the HTTP response beside the typed one."""
    request_id: str
    """The response header with the provider's request id."""

    def members(self, base: type[Any]) -> dict[str, Any]:
        """What the class made from `base` has beside `request` and `copy`."""
        ...

    def unsupported(self) -> str | None:
        """Why this version of the SDK cannot be wrapped; None if it can."""
        ...

    def matches(self, client: object) -> bool:
        """Whether `client` is a client of this SDK."""
        ...

    def asynchronous(self, kind: type[Any]) -> bool:
        """Whether clients of this class are asynchronous. By class: the methods' looks deceive."""
        ...

    def dialects(self) -> Sequence[Dialect]:
        """The dialects this SDK speaks."""
        ...

    def pool(self, client: Any) -> object:
        """The HTTP client behind a client."""
        ...

    def omit(self) -> object:
        """The value that removes a header."""
        ...

    def headers(self, options: Any) -> dict[str, Any]:
        """A copy of the request's own headers."""
        ...

    def client_headers(self, client: Any) -> Mapping[str, Any]:
        """The headers that the caller gave to the client."""
        ...

    def credential(self, client: Any) -> str:
        """What identifies the caller at the provider and does not change when a token is renewed."""
        ...

    def prepare(self, client: Any, options: Any) -> tuple[Any, Json | None]:
        """Options that are safe to send, and the body as plain JSON; None where there is no JSON body."""
        ...

    async def prepare_async(self, client: Any, options: Any) -> tuple[Any, Json | None]:
        """`prepare` for an asynchronous client."""
        ...

    def with_body(self, options: Any, body: Json) -> Any:
        """A copy of the options with another body."""
        ...

    def hide(self, options: Any) -> None:
        """Make these options those of a hidden round: nothing of the caller's is applied to its reply."""
        ...

    def after(self, options: Any, register: Any) -> None:
        """Let `register` see the value that the SDK makes of the reply, after everything else."""
        ...

    def cast_to(self, client: Any, cast_to: Any, options: Any) -> Any:
        """The type to parse into, taken from the header by which helpers override it (and the header away)."""
        ...

    def http_response(self, client: Any, options: Any, value: Any) -> Any:
        """The HTTP response in what a raw request gave back; None if there is none."""
        ...

    def watched(self, value: Any) -> Any:
        """The typed stream that somebody above the SDK has made of a raw streamed request; None if nobody has."""
        ...

    def retries(self, value: Any) -> int:
        """How often the SDK retried this raw request."""
        ...

    def refused(self, error: BaseException) -> tuple[int, str] | None:
        """HTTP status and body of the error by which the SDK says that a request was refused; None for any other."""
        ...

    def process(self, client: Any, **given: Any) -> Any:
        """What the SDK hands to the caller for a response (an awaitable for an asynchronous client)."""
        ...

    def framing(self, response: Any) -> Framing:
        """How this response's stream stands on the wire."""
        ...
