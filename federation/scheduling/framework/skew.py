"""Whether a division keeps to the hard topology constraints of a unit (`whenUnsatisfiable: DoNotSchedule`).

`planning/placement/topology.py` makes divisions that do; this checks those that anybody else made, by the same rules
(docs/decisions/0017). What ran before in a domain may stay there; which domains count is decided in favour of the
division where planners differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from federation.planning.placement.tree import Domain
from federation.scheduling.framework.topology import closed_for, domains_of
from federation.scheduling.framework.types import Cluster, SchedulingUnit


def breach_of_spread(
    unit: SchedulingUnit,
    clusters: Sequence[Cluster],
    replicas: Mapping[str, int],
    stays: Mapping[str, int],
    barred: frozenset[str],
    idle: frozenset[str],
) -> str:
    """Return which domain has more replicas than a constraint allows, "" when none has.

    `stays` are replicas that run and are not moved. `barred` clusters may have none; `idle` ones may, but some planners
    give them none: domains of only such count for minDomains, and not as the domain with the fewest.
    """
    domains = domains_of(unit.topology_spread, tuple(clusters))
    check = _Check(replicas, stays, closed_for(unit, domains.doubtful), barred, idle)
    check.sums_of(domains.root)
    return check.breaches[0] if check.breaches else ""


@dataclass(frozen=True, slots=True)
class _Sums:
    """A domain's replicas, and how many of them may stay whatever the others have. May it have any, does it get any?"""

    count: int
    stays: int
    can_hold: bool
    is_served: bool


class _Check:
    """One walk over the tree."""

    def __init__(
        self,
        replicas: Mapping[str, int],
        stays: Mapping[str, int],
        closed: frozenset[str],
        barred: frozenset[str],
        idle: frozenset[str],
    ) -> None:
        self._replicas = replicas
        self._stays = stays
        self._closed = closed
        self._barred = barred
        self._idle = idle
        self.breaches: list[str] = []

    def sums_of(self, node: Domain) -> _Sums:
        """Return a domain's sums, and note the breaches in it."""
        constraint = node.constraint
        if constraint is None:
            return self._sums_of_leaf(node.clusters)
        children = {child: self.sums_of(child) for child in node.children}
        parts = counting = list(children.values())
        if node.rest is not None:
            rest = self.sums_of(node.rest)
            parts = [*parts, rest]
            if not constraint.is_hard:
                counting = parts
            elif rest.count > rest.stays:
                self.breaches.append(
                    f"it gave {rest.count} replicas to clusters without a label {constraint.key}, which DoNotSchedule"
                    " keeps out"
                )
        if constraint.is_hard:
            self._compare(node, children)
        return _Sums(
            sum([part.count for part in parts]),
            sum([part.stays for part in parts]),
            any(part.can_hold for part in counting),
            any(part.is_served for part in counting),
        )

    def _compare(self, node: Domain, children: Mapping[Domain, _Sums]) -> None:
        constraint = node.constraint
        assert constraint is not None
        counted = {child: sums for child, sums in children.items() if sums.can_hold}
        served = {child: sums.count for child, sums in counted.items() if sums.is_served}
        counts = served or {child: sums.count for child, sums in counted.items()}
        fewest, lowest = min([(count, str(child)) for child, count in counts.items()], default=(0, ""))
        compared = f" and {fewest} to {lowest}"
        if len(counted) < constraint.domains_min or not lowest:
            fewest, compared = 0, ""
        for child, sums in children.items():
            if sums.count > max(fewest + constraint.skew_max, sums.stays):
                self.breaches.append(
                    f"it gave {sums.count} replicas to domain {child}{compared}, beyond"
                    f" {constraint.describe(len(counted))}"
                )

    def _sums_of_leaf(self, clusters: tuple[str, ...]) -> _Sums:
        replicas, stays = self._replicas, self._stays
        is_open = not (self._closed and self._closed.issuperset(clusters))
        return _Sums(
            sum([replicas[name] for name in clusters if name in replicas]),
            sum([stays[name] for name in clusters if name in stays]) if stays else 0,
            is_open and not (self._barred and self._barred.issuperset(clusters)),
            is_open and not (self._idle and self._idle.issuperset(clusters)),
        )
