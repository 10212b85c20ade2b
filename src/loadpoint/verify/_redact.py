"""Takes out of texts what must not be kept: the key, whatever looks like one, and names of accounts."""

from __future__ import annotations

import re

LONGEST = 300
HIDDEN = "***"
_LOOKS_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|key|rk)[-_][\w*.-]{4,}|\bbearer\s+\S+|\b(?:org|proj|acct|user|wrkspc)[-_]\w{4,}"
)


def redacted(text: str, key: str) -> str:
    """`text` on one line, cut to `LONGEST` characters, without the key, anything like one, and account ids.

    Providers repeat parts of a key, and name the organisation, in their error messages.
    """
    flat = " ".join(text.split())
    if key:
        flat = flat.replace(key, HIDDEN)
    return _LOOKS_SECRET.sub(HIDDEN, flat)[:LONGEST]
