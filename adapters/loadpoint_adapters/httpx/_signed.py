"""Requests whose credentials cover their body: with another body the endpoint would refuse them."""

from __future__ import annotations

from typing import Any

EXTENSION = "loadpoint.signed"
"""In a request's extensions: its authentication was computed from its body."""
_SCHEMES = ("aws4-", "goog4-", "digest ", "hmac", "signature ", "oauth ")
_HEADERS = ("signature-input", "x-signature", "x-hub-signature-256", "content-digest", "content-md5", "digest")
_QUERY = ("X-Amz-Signature", "X-Goog-Signature")


def signature(request: Any) -> str | None:
    """What of a request was computed from it and would not fit another body; None if nothing is known to be.

    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html (a hash of the body is signed), RFC 9421 and
    RFC 9530 (`Signature-Input`, `Content-Digest`), RFC 7616 (Digest: a nonce count serves one request).
    """
    if request.extensions.get(EXTENSION):
        return "its auth= flow reads the body"
    scheme = str(request.headers.get("authorization", ""))
    if scheme.lower().startswith(_SCHEMES):
        return f"Authorization is of the scheme {scheme.split(' ', 1)[0]}"
    named = next((name for name in _HEADERS if name in request.headers), None)
    if named is not None:
        return f"the header {named} is computed from it"
    query = next((name for name in _QUERY if name in request.url.params), None)
    return f"its address carries {query}" if query is not None else None
