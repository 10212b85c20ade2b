"""`wrap`, `unwrap`, `using` and `report`: how a client finds its adapter, and a reply its report."""

from __future__ import annotations

import os
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

from ._driven import EXTENSION, Beginner, Driven, Reported
from ._policy import Policy, a_policy
from .errors import LoadpointError, PolicyError, UnsupportedClientError

if TYPE_CHECKING:
    from ._dialect import Dialect
    from ._ledger import Ledger
    from ._plan import Request
    from ._report import CallReport
    from .toolbox import Toolbox

T = TypeVar("T")
GROUP = "loadpoint.adapters"
_TELLING = 12
SWITCH = "LOADPOINT"
SWITCHES = ("off", "eager")


SessionFactory: TypeAlias = "Callable[[Sequence[Dialect]], Beginner]"
"""Makes the session of one wrapped client from the dialects that its adapter speaks."""


@runtime_checkable
class Adapter(Protocol):
    """Puts loadpoint behind one SDK. Registered as an entry point of the group `loadpoint.adapters`.

    The entry point's name should be the SDK's root package: an adapter of that name is asked first, so that wrapping
    one SDK's client does not import the adapters of the others.
    """

    name: str

    def matches(self, client: object) -> bool:
        """Whether this adapter can wrap `client`; must not raise."""
        ...

    def wrap(self, client: T, session_factory: SessionFactory) -> T:
        """A new object of the same static type, driven by a session; `client` stays untouched and is never wrapped."""
        ...

    def unwrap(self, client: T) -> T:
        """The client without us; `client` itself if it is not wrapped."""
        ...


# ---------------------------------------------------------------------------------------------- finding an adapter

_adapters: dict[str, Adapter] = {}
_broken: dict[str, str] = {}


def register(name: str, adapter: Adapter) -> None:
    """Make `adapter` known under `name` in this process, before any entry point of that name."""
    _adapters[name] = adapter


def _entry_points() -> Mapping[str, Callable[[], Any]]:
    global _found  # noqa: PLW0603 - reading the installed distributions takes longer than everything else in `wrap`
    if _found is None:
        from importlib.metadata import entry_points

        _found = {point.name: point.load for point in entry_points(group=GROUP)}
    return _found


_found: Mapping[str, Callable[[], Any]] | None = None


def _load(name: str) -> Adapter | None:
    if name in _adapters:
        return _adapters[name]
    load = _entry_points().get(name)
    if load is None or name in _broken:
        return None
    try:
        adapter: object = load()
    except ImportError as error:
        _broken[name] = str(error)
        return None
    if not isinstance(adapter, Adapter):
        raise UnsupportedClientError(f"the entry point {name!r} of group {GROUP!r} is not an adapter: {adapter!r}")
    return _adapters.setdefault(name, adapter)


def dialects(*, but: Collection[str] = ()) -> tuple[Dialect, ...]:
    """The dialects of every adapter that can be imported, without those of the names in `but`; one per name."""
    found: dict[str, Dialect] = {}
    for name in sorted({*_adapters, *_entry_points()}.difference(but)):
        speaks: object = getattr(_load(name), "dialects", None)
        if callable(speaks):
            found.update((dialect.name, dialect) for dialect in cast("Sequence[Dialect]", speaks()))
    return tuple(found.values())


def _roots(client: object) -> Iterator[str]:
    """Root packages of the client's classes, nearest first; a module counts as itself."""
    name = getattr(client, "__name__", None)
    if isinstance(client, type(sys)) and isinstance(name, str):
        yield name.partition(".")[0]
    for base in type(client).__mro__:
        yield base.__module__.partition(".")[0]


def _adapter_for(client: object) -> Adapter:
    asked: set[str] = set()
    for name in (*_roots(client), *sorted({*_adapters, *_entry_points()})):
        if name in asked:
            continue
        asked.add(name)
        adapter = _load(name)
        if adapter is not None and adapter.matches(client):
            return adapter
    raise UnsupportedClientError(_unsupported(client))


def _unsupported(client: object) -> str:
    kind = type(client)
    names = sorted({*_adapters, *_entry_points()})
    text = f"cannot wrap {kind.__module__}.{kind.__qualname__}; there are adapters for: {', '.join(names) or 'nothing'}"
    if isinstance(client, type):
        text += f". This is the class {client.__qualname__} itself: pass an instance of it"
    root = next(_roots(client), "")
    if root in names and root not in _broken:
        text += f". It comes from {root!r}, but only its client objects can be wrapped, not what hangs on them"
    for name in sorted(_broken):
        text += f". The adapter {name!r} could not be imported ({_broken[name]}): install the extra loadpoint[{name}]"
    return text


# ------------------------------------------------------------------------------------------------------ public calls


def wrap(
    client: T,
    policy: Policy | None = None,
    *,
    toolbox: Toolbox | None = None,
    ledger: Ledger | None = None,
    on_report: Callable[[CallReport], None] | None = None,
) -> T:
    """A client of the same type that sends tools when the model needs them; `client` itself is untouched.

    Wrapping a wrapped client is wrapping the original once, with these settings. Reads no files; the environment
    variable LOADPOINT is read here: `off` defers nothing (our own items in the history are still turned back),
    `eager` sends every tool. `on_report` is called with the report of every logical call.

    Raises `UnsupportedClientError` for an object that no adapter knows, `PolicyError` for a bad setting or LOADPOINT.
    """
    sessions = session_factory(policy, toolbox=toolbox, ledger=ledger, on_report=on_report)
    adapter = _adapter_for(client)
    return adapter.wrap(adapter.unwrap(client), sessions)


def unwrap(client: T) -> T:
    """The original client; a client that is not wrapped comes back as it is.

    A copy made from a wrapped client (`with_options`) comes back as a plain client with the copy's options. Raises
    `UnsupportedClientError` for an object that no adapter knows.
    """
    return _adapter_for(client).unwrap(client)


def session_factory(
    policy: Policy | None = None,
    *,
    toolbox: Toolbox | None = None,
    ledger: Ledger | None = None,
    on_report: Callable[[CallReport], None] | None = None,
) -> SessionFactory:
    """What `wrap` gives to an adapter: makes a session from dialects, under LOADPOINT as it is now.

    The first session of a process that has a policy from `Policy.load` tells the start notice; a copy of a client has
    the session of its original.
    """
    chosen = a_policy("policy", policy) if policy is not None else Policy()
    switch = _switch()
    if switch == "eager":
        chosen = chosen.replace(strategy="eager")

    def session(dialects: Sequence[Dialect]) -> Beginner:
        from ._session import Session

        made = Session(dialects, chosen, ledger=ledger, toolbox=toolbox, on_report=on_report)
        if switch is None:  # else nothing is deferred, whatever the files say
            from ._config import notice

            notice(chosen)
        return _Off(made) if switch == "off" else made

    return session


def _switch() -> str | None:
    value = os.environ.get(SWITCH, "").strip().lower()
    if value and value not in SWITCHES:
        raise PolicyError(f"environment variable {SWITCH}: {value!r} is not usable; allowed: 'off', 'eager', or unset")
    return value or None


class _Off:
    """A session for which every request says `x-loadpoint: off`."""

    def __init__(self, session: Beginner) -> None:
        self._session = session

    def begin(self, request: Request) -> Driven | None:
        from dataclasses import replace

        return self._session.begin(replace(request, headers={**request.headers, "x-loadpoint": "off"}))

    def stored(self, request: Request) -> Driven | None:
        return self._session.stored(request)

    def noted(self, reason: str) -> None:
        self._session.noted(reason)


_override: ContextVar[Policy | None] = ContextVar("loadpoint_policy", default=None)


@contextmanager
def using(policy: Policy) -> Generator[Policy, None, None]:
    """Let `policy` hold for every call begun in this block, on every wrapped client, instead of the client's own.

    A context variable: tasks started in the block inherit it, other threads and tasks do not see it, and a stream keeps
    the policy under which it was begun. Raises `PolicyError` for anything but a `Policy`.
    """
    token = _override.set(a_policy("using", policy))
    try:
        yield policy
    finally:
        _override.reset(token)


def override() -> Policy | None:
    """The policy of the innermost `using` block, if this code runs in one."""
    return _override.get()


# ----------------------------------------------------------------------------------------------------------- reports


class Reports:
    """Finds the report of a reply: by the object itself while it lives, else by the reply's id (the last `keep`)."""

    def __init__(self, keep: int = 1024) -> None:
        self._keep = keep
        self._lock = threading.RLock()  # a weakref callback can run in the thread that holds it
        self._objects: dict[int, tuple[weakref.ref[Any], CallReport]] = {}
        self._ids: OrderedDict[str, CallReport] = OrderedDict()

    def remember(self, reply: object, report: CallReport | None) -> None:
        """Remember the report of a finished reply: an object of the SDK, or its JSON."""
        if report is None:
            return
        key = _reply_id(reply)
        with self._lock:
            if key is not None:
                self._ids[key] = report
                self._ids.move_to_end(key)
                while len(self._ids) > self._keep:
                    self._ids.popitem(last=False)
        place = id(reply)

        def forget(_: object) -> None:
            with self._lock:
                self._objects.pop(place, None)

        try:
            reference = weakref.ref(reply, forget)
        except TypeError:
            return  # a dict or a string: found by its id, if it has one
        with self._lock:
            self._objects[place] = (reference, report)

    def find(self, reply: object) -> CallReport | None:
        """The report of `reply`, or None."""
        with self._lock:
            entry = self._objects.get(id(reply))
        if entry is not None and entry[0]() is reply:
            return entry[1]
        for owner in (reply, *(getattr(reply, name, None) for name in ("response", "_response", "http_response"))):
            extensions: object = getattr(owner, "extensions", None)
            if isinstance(extensions, dict) and EXTENSION in extensions:
                return cast(Reported, extensions[EXTENSION]).report
        key = _reply_id(reply)
        with self._lock:
            return self._ids.get(key) if key is not None else None


def _reply_id(reply: object) -> str | None:
    if isinstance(reply, dict):
        key: object = cast("dict[str, object]", reply).get("id")
    else:
        key = getattr(reply, "id", None)
    # A server that counts its replies gives two callers the same short id.
    return key if isinstance(key, str) and len(key) >= _TELLING else None


reports = Reports()


def report(reply: object) -> CallReport:
    """The report of a reply, a raw response or a stream that a wrapped client gave back.

    A stream's report is complete when the stream is. Raises `LoadpointError` for anything else.
    """
    found = reports.find(reply)
    if found is None:
        raise LoadpointError(
            f"no report is known for this {type(reply).__qualname__}: it did not come from a wrapped client, "
            "was not changed by one, or is too old; `wrap(..., on_report=...)` sees every report"
        )
    return found
