"""Every name of litellm that is not documented and that the adapter leans on; `tests/litellm` has a test each.

`_hidden_params` and `_response_headers` of replies and streams, `chunks` of a chat stream, the event classes of
Responses streams, which Bedrock API a model name means, the facade's `_core` of a Router. Checked with 1.110.2.
"""

# ruff: noqa: SLF001

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, cast

OLDEST, BELOW = (1, 110), (2, 0)
_REMEDY = "install litellm>=1.110,<2 (the extra loadpoint[litellm])"


def module() -> ModuleType | None:
    """litellm, if the program has imported it."""
    return sys.modules.get("litellm")


@functools.cache
def _of(module_name: str, name: str) -> Any:
    """A name of a module of litellm, which has been imported by now."""
    return getattr(import_module(module_name), name)


def version() -> str:
    """The version that is imported; "0" for one that does not say. There are two distributions of the module."""
    return str(getattr(sys.modules.get("litellm._version"), "version", None) or "0")


def numbers(text: str) -> tuple[int, int]:
    """The first two numbers of a version; (0, 0) for what is none."""
    parts = [int(part) if part.isdigit() else 0 for part in (*text.split("."), "0", "0")[:2]]
    return parts[0], parts[1]


def unsupported() -> str | None:
    """Why the installed version cannot be wrapped; None if it can."""
    text = version()
    return None if OLDEST <= numbers(text) < BELOW else f"litellm {text} is not supported: {_REMEDY}"


def is_router(client: object) -> bool:
    """Whether this is a `litellm.Router`."""
    kind = getattr(sys.modules.get("litellm.router"), "Router", None)
    return isinstance(kind, type) and isinstance(client, kind)


def twin(router: Any) -> Any:
    """A second facade over the core of a Router; litellm lets nobody make a subclass."""
    facade: type[Any] = router.__class__
    made: Any = object.__new__(facade)
    made.__dict__.update(router.__dict__)
    return made


def deployments(router: Any, model: str) -> list[Mapping[str, Any]]:
    """The `litellm_params` of every deployment that can serve a model group, an alias or a wildcard."""
    entries: list[Any] = list(router.registry().deployments(model) or ())
    return [entry["litellm_params"] for entry in entries]


def fallbacks(router: Any) -> Iterator[Mapping[str, Any]]:
    """The Router's fallbacks of every kind, each from a model group to others."""
    settings = router.settings()
    for name in ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks"):
        yield from getattr(settings, name, None) or ()


def provider(model: str, name: str | None, api_base: str | None) -> tuple[str, str, str | None]:
    """The model's own name, the provider that litellm would call, and its address if litellm says it.

    Raises what litellm raises for a model that it knows no provider for.
    """
    found = cast(Any, module()).get_llm_provider(model=model, custom_llm_provider=name, api_base=api_base)
    return str(found[0]), str(found[1]), found[3]


def bedrock_way(model: str) -> str:
    """Which API of Bedrock a model name means: `invoke`, `converse` and others."""
    return str(_of("litellm.llms.bedrock.common_utils", "BedrockModelInfo").get_bedrock_route(model))


def event(payload: Mapping[str, Any]) -> Any:
    """A Responses stream event of the class that litellm has for it."""
    classes = _of("litellm.llms.openai.responses.transformation", "OpenAIResponsesAPIConfig")
    kind: Any = classes.get_event_model_class(str(payload.get("type")))
    try:
        return kind(**payload)
    except ValueError:  # litellm does the same with what its class does not take
        return kind.model_construct(**payload)


def chunk(payload: Mapping[str, Any]) -> Any:
    """A chunk of a chat stream."""
    return _of("litellm.types.utils", "ModelResponseStream")(**payload)


def hidden(value: object) -> dict[str, Any]:
    """What litellm notes beside a reply, a chunk or a stream: cost, headers, which deployment."""
    found: object = getattr(value, "_hidden_params", None)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def note(value: Any, params: dict[str, Any], headers: object = None) -> None:
    """Put such notes beside a value."""
    value._hidden_params = params
    if headers is not None:
        value._response_headers = headers


def headers_of(value: object) -> object:
    """The response headers that litellm keeps beside a reply."""
    return getattr(value, "_response_headers", None)


def again(reply: Any, payload: dict[str, Any]) -> Any:
    """A reply of the same class, with other content and the same notes."""
    if isinstance(reply, dict):
        return payload
    made = type(reply)(**payload)
    note(made, dict(hidden(reply)), copy.copy(headers_of(reply)))
    return made


def request_id(value: object) -> str | None:
    """The provider's request id."""
    given = hidden(value).get("additional_headers")
    headers = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    names = ("llm_provider-x-request-id", "llm_provider-request-id", "llm_provider-x-amzn-requestid")
    return next((str(headers[name]) for name in names if headers.get(name)), None)


def cost(value: object) -> float | None:
    """What litellm says that a reply or a last chunk has cost, in USD."""
    found = hidden(value).get("response_cost")
    return float(found) if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def checks_replies(callback: object, data: Mapping[str, Any]) -> bool:
    """Whether a callback of the Proxy is a guardrail that checks the reply to a request with these data."""
    if not isinstance(callback, _of("litellm.integrations.custom_guardrail", "CustomGuardrail")):
        return False
    event = _of("litellm.types.guardrails", "GuardrailEventHooks").post_call
    return cast(Any, callback).should_run_guardrail(data=dict(data), event_type=event) is True
