"""A library between an adapter and the endpoint which rewrites requests: what of them arrives there."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ._capability import Capability, LoadPoint

_WITHOUT = ("resend", "frozen", "eager")


@dataclass(frozen=True, slots=True)
class Carrier:
    """What becomes of a request on its way.

    `speaks`: the dialect in which the endpoint is spoken to, "" for that of the request. `carries`: the load points
    that arrive as they were sent. `reason` says why others do not, `source`, `date` and `grade` how that is known.
    `obstacle`: why this very request has to go as it came; None if it need not.
    """

    speaks: str = ""
    carries: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    date: str = ""
    grade: str = "unverified"
    obstacle: str | None = None

    def narrowed(self, able: Capability) -> Capability:
        """What the endpoint takes and what also arrives there; for a policy that insists on `native` as well."""
        points, insisted = self._arriving(able.points), self._arriving(able.insisted)
        names = tuple(point.name for point in points)
        found = replace(able, points=points, insisted=insisted, load_points=names)
        if not able.native or any(not point.by_choice for point in points):
            return found
        return replace(
            found,
            strategies=_WITHOUT,
            native=False,
            reason=self.reason,
            source=self.source,
            date=self.date,
            grade=self.grade,
        )

    def _arriving(self, points: tuple[LoadPoint, ...]) -> tuple[LoadPoint, ...]:
        return tuple(point for point in points if point.name in self.carries)
