"""The ways in which a Messages request loads tools: one for each load point and variant in the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Form:
    """One way of loading tools.

    `by_reference`: loads name what `tools` declares. `message`: they stand in a system message behind the results, and
    not in a result. `search`: the kind of the provider's own search. `fixed`: requests may not change their tools.
    `gateway`: the gateway that searches, whose requests have neither references nor changes.
    """

    by_reference: bool = True
    message: bool = False
    search: str = ""
    fixed: bool = False
    gateway: str = ""


_FORMS: Mapping[str | None, Form] = {
    None: Form(),
    "None:fixed": Form(fixed=True),
    "tool_reference": Form(),
    "tool_reference:fixed": Form(fixed=True),  # a model or a platform that takes no tool changes
    "tool_addition": Form(by_reference=False, message=True),
    "tool_addition:reference": Form(message=True),  # a platform that takes changes by reference only
    "hosted_search": Form(search="bm25"),
    "hosted_search:regex": Form(search="regex"),  # a platform that has no other
    "gateway_search": Form(gateway="openrouter"),  # the only one that searches in this API
}


def form_of(load_point: str | None, variant: str) -> Form:
    """The form of a load point; a variant that is not known is the plain one. Raises `KeyError` without a form."""
    return _FORMS.get(f"{load_point}:{variant}", _FORMS[load_point])
