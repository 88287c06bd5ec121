"""Validation of divisions against the hard limits of policy and user.

A Replicas plugin may be third-party code or a network service, so its result is checked here before it is used
(`runner.py`): cluster bounds, running replicas that must not move, minimums, the total, and topology constraints with
DoNotSchedule (docs/decisions/0017). Webhook requests contain the same `limits_of`. Preferences (weights, capacity,
ScheduleAnyway) are not checked. The built-in plugins satisfy all limits (`tests/properties/test_division_limits.py`).

While members report replicas that they cannot run (auto-migration), only cluster bounds are checked: pending and trial
replicas exceed the total and the running replicas.

Decision: docs/decisions/0021-answers-are-held-to-the-policy.md
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import ge, le
from typing import Any, NamedTuple

from federation.planning.placement.topologydomains import (
    Domain,
    count_by_domain,
    ineligible_domains,
    summarise_skew,
)
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.division import SUBSETS, closing_clusters, current_replicas
from federation.scheduling.framework.migrations import AUTO_MIGRATION, CUSTOM_MIGRATION
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD, closed_for, domains_of
from federation.scheduling.framework.types import Cluster, Effect, ReplicasStrategy, SchedulingMode, SchedulingUnit

REPLICAS_MAX = 2**31 - 1
"""Kubernetes' largest number of replicas."""


class Bound(NamedTuple):
    """The most replicas that a cluster may have, and the reason."""

    most: int
    because: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Lower and upper limits by cluster; a missing cluster has no such limit."""

    least: Mapping[str, int]
    most: Mapping[str, Bound]


class _ExcludedDomains(NamedTuple):
    """Clusters that are expected to get no replicas.

    `closed` ones are unready or tainted; policy or user limit `full` ones to 0; `idle` ones are the full ones and those
    that some planners give none. A domain of idle clusters counts for minDomains, but is no minimum for the others.
    """

    closed: frozenset[str]
    full: frozenset[str]
    idle: frozenset[str]


def limits_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> Limits:
    """Return the limits for the division of a unit."""
    ceilings, has_reports = _ceilings(unit, clusters), _has_reports(unit)
    running = _running(unit, clusters)
    most = dict(ceilings)
    if unit.avoid_disruption or has_reports:
        for name in running.keys() & ceilings.keys():
            most[name] = ceilings[name]._replace(most=max(ceilings[name].most, running[name]))
    if not unit.avoid_disruption or has_reports:
        return Limits({}, most)
    total = unit.desired_replicas or 0
    wanted = _wanted(unit, ceilings, running)
    if sum(running.values()) <= total:
        return Limits({name: count for name, count in wanted.items() if count}, most)
    if wanted == running:
        for cluster in clusters:
            name, count = cluster.name, running.get(cluster.name, 0)
            if name not in most or most[name].most > count:
                most[name] = Bound(count, "avoidDisruption: a scale-down moves none")
    # Otherwise replicas run above a limit of policy or user, and removing these may add replicas elsewhere.
    return Limits({}, most)


def find_violation(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    """Return the first limit that a division violates, naming cluster or domain and constraint; "" for none.

    A division without any replicas violates none: it is no placement.
    """
    # Other clusters neither have nor get replicas. With hundreds of clusters it pays to leave them out.
    names = {**replicas, **unit.current} if unit.current else replicas
    group = ClusterGroup.of(clusters)
    offered: Mapping[str, Any] = group.positions if len(group) == len(group.whole) else group.named(names)
    if not replicas.keys() <= offered.keys() or not _are_counts(replicas.values()):
        for name, count in replicas.items():
            if name not in offered:
                return f"it gave {count!r} replicas to {name!r}, which was not offered"
            if type(count) is not int or not 0 <= count <= REPLICAS_MAX:
                return f"it gave {count!r} replicas to {name!r}, not an integer from 0 to {REPLICAS_MAX}"
    given = sum(replicas.values())
    if not given:
        return ""
    if not _only_moves_what_it_may(unit, group, offered, replicas):
        limits = limits_of(unit, list(group.named(names).values()))
        for name, bound in limits.most.items():
            if (count := replicas.get(name, 0)) > bound.most:
                return f"it gave {count} replicas to {name}, which may have {bound.most} at most ({bound.because})"
        for name, least in limits.least.items():
            if (count := replicas.get(name, 0)) < least:
                return f"it gave {count} replicas to {name}, where {least} run and stay (avoidDisruption)"
    if _has_reports(unit):
        return ""
    if given > (wanted := unit.desired_replicas or 0):
        return f"it gave out {given} replicas where {wanted} are wanted"
    return _find_minimum_violation(unit, clusters, replicas) or _find_spread_violation(unit, clusters, replicas)


def _only_moves_what_it_may(
    unit: SchedulingUnit, group: ClusterGroup, offered: Mapping[str, Any], replicas: Mapping[str, int]
) -> bool:
    """Return whether a division is within `limits_of`, if nothing but running replicas limits it; False if unknown."""
    if (
        unit.preferences.weights
        or _is_bounded(unit)
        or _has_reports(unit)
        or group.cached(closing_clusters, closing_clusters)
    ):
        return False
    if not unit.avoid_disruption:
        return True
    running = current_replicas(unit)
    if not running.keys() <= offered.keys():
        running = {name: count for name, count in running.items() if name in offered}
    if sum(running.values()) <= (unit.desired_replicas or 0):
        return all(map(ge, map(replicas.get, running, repeat(0)), running.values()))
    return all(map(le, replicas.values(), map(running.get, replicas, repeat(0))))


def _are_counts(counts: Collection[Any]) -> bool:
    """Return whether all are integers from 0 to REPLICAS_MAX."""
    return set(map(type, counts)) <= {int} and (not counts or (min(counts) >= 0 and max(counts) <= REPLICAS_MAX))


def _find_minimum_violation(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    """Return the violated `minReplicas`, where all minimums could be satisfied and no running replicas must stay.

    Minimums count up to a cluster's certain capacity. Topology constraints take precedence: with them, minimums are
    checked within each domain.
    """
    if not unit.preferences.min_replicas:
        return ""
    ceilings, rooms, running = _ceilings(unit, clusters), rooms_of(unit, clusters), _running(unit, clusters)
    minimums = {
        cluster.name: min(minimum, ceilings[cluster.name].most) if cluster.name in ceilings else minimum
        for cluster in clusters
        if (minimum := unit.preferences.min_replicas.get(cluster.name))
    }
    groups = [tuple([cluster.name for cluster in clusters])]
    if TOPOLOGY_SPREAD.of(unit):
        groups = [leaf.clusters for leaf in domains_of(TOPOLOGY_SPREAD.of(unit), clusters).root.leaves()]
    for group in groups:
        amount = (
            sum([replicas.get(name, 0) for name in group]) if TOPOLOGY_SPREAD.of(unit) else unit.desired_replicas or 0
        )
        if sum([minimums.get(name, 0) for name in group]) > amount:
            continue
        if unit.avoid_disruption and any(running.get(name) for name in group):
            continue  # Running replicas stay, and take precedence over a minimum.
        for name in [name for name in group if name in minimums]:
            least = (
                minimums[name] if rooms is None else min(minimums[name], running.get(name, 0) + rooms.unreserved[name])
            )
            if (count := replicas.get(name, 0)) < least:
                return f"it gave {count} replicas to {name}, which needs {least} at least (minReplicas)"
    return ""


def _find_spread_violation(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    if not any(constraint.is_hard for constraint in TOPOLOGY_SPREAD.of(unit)):
        return ""
    domains = domains_of(TOPOLOGY_SPREAD.of(unit), clusters)
    full, idle = _excluded_clusters(unit, clusters, domains.maybe_closed)
    stays = _running(unit, clusters) if unit.avoid_disruption else {}
    shrinks = sum(stays.values()) > (unit.desired_replicas or 0)
    shrinks = shrinks and stays == _wanted(unit, _ceilings(unit, clusters), stays)
    excluded = _ExcludedDomains(closed_for(unit, domains.maybe_closed), full, idle)
    return _exceeded_domain(domains.root, replicas, stays, excluded, shrinks=shrinks)


def _excluded_clusters(
    unit: SchedulingUnit, clusters: Sequence[Cluster], tainted: Sequence[Cluster]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the clusters limited to 0 by policy, taints or the user's migration, and these with those of weight 0.

    `tainted` contains at least all clusters that are silent or have NoSchedule or NoExecute taints.
    """
    ceilings = _ceilings(unit, clusters if _is_bounded(unit) else tainted)
    full = idle = frozenset([name for name, bound in ceilings.items() if not bound.most])
    if unit.preferences.weights:
        idle = frozenset([cluster.name for cluster in clusters if not _wanted_most(unit, cluster.name, ceilings, 1)])
    return full, idle


def explain_spread(
    unit: SchedulingUnit, clusters: Sequence[Cluster], placements: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """Return per constraint its domains with their replicas, or with their clusters in Duplicate mode."""
    domains = domains_of(TOPOLOGY_SPREAD.of(unit), clusters)
    counts = {name: 1 if replicas is None else replicas for name, replicas in placements.items()}
    excluded: frozenset[str] = frozenset()
    if unit.mode is SchedulingMode.DIVIDE:
        full, idle = _excluded_clusters(unit, clusters, domains.maybe_closed)
        excluded = idle if unit.strategy is ReplicasStrategy.SPREAD else full
    return summarise_skew(
        domains.root, TOPOLOGY_SPREAD.of(unit), counts, closed_for(unit, domains.maybe_closed), excluded
    )


def _wanted(unit: SchedulingUnit, ceilings: Mapping[str, Bound], running: Mapping[str, int]) -> dict[str, int]:
    """Return the running replicas per cluster, up to the limits of policy and user."""
    return {name: min(count, _wanted_most(unit, name, ceilings, count)) for name, count in running.items()}


def _wanted_most(unit: SchedulingUnit, name: str, ceilings: Mapping[str, Bound], unbounded: int) -> int:
    """Return the limit of policy and user in a cluster: without a weight it is the minimum."""
    if unit.preferences.weights and not unit.preferences.weights.get(name):
        unbounded = unit.preferences.min_replicas.get(name, 0)
    return min(unbounded, ceilings[name].most) if name in ceilings else unbounded


def _ceilings(unit: SchedulingUnit, clusters: Iterable[Cluster]) -> dict[str, Bound]:
    """Return the upper bounds by policy, readiness, taints and the user's migration."""
    limited = _limited(unit)
    ceilings: dict[str, Bound] = {}
    is_bounded = _is_bounded(unit)
    if unit.shape.parts:
        clusters = tuple(clusters)
        rooms = rooms_of(unit, clusters)
    else:
        rooms = None
    current: Mapping[str, int] | None = None
    for cluster in clusters:
        if not is_bounded and not cluster.taints and not cluster.is_silent:
            continue
        name, bounds = cluster.name, []
        if cluster.is_silent:
            current = current_replicas(unit) if current is None else current
            bounds.append(Bound(current.get(name, 0), "it is not ready"))
        if name in unit.preferences.max_replicas:
            bounds.append(Bound(unit.preferences.max_replicas[name], "maxReplicas"))
        if name in limited:
            bounds.append(Bound(limited[name], "a migration limits it"))
        if rooms is not None:
            current = current_replicas(unit) if current is None else current
            bounds.append(
                Bound(current.get(name, 0) + rooms.unreserved[name], "it has no room for more whole replicas")
            )
        for taint in cluster.taints:
            if taint.effect == Effect.NO_SCHEDULE and not unit.tolerates(taint):
                current = current_replicas(unit) if current is None else current
                bounds.append(Bound(current.get(name, 0), f"its taint {taint.key}:{taint.effect} is not tolerated"))
        if bounds:
            ceilings[name] = min(bounds)
    return ceilings


def _is_bounded(unit: SchedulingUnit) -> bool:
    """Return whether policy, user or replicas of several pods set bounds; if not, only readiness and taints do."""
    return bool(unit.preferences.max_replicas or unit.shape.parts or _limited(unit))


def _limited(unit: SchedulingUnit) -> Mapping[str, int]:
    return CUSTOM_MIGRATION.of(unit).limited_capacity


def _running(unit: SchedulingUnit, clusters: Iterable[Cluster]) -> dict[str, int]:
    """Return the running replicas in the clusters, up to the limits of the user's migration."""
    if not unit.current:
        return {}
    limited, current = _limited(unit), current_replicas(unit)
    names = [cluster.name for cluster in clusters if cluster.name in current]
    return {name: min(current[name], limited.get(name, current[name])) for name in names}


def _has_reports(unit: SchedulingUnit) -> bool:
    """Return whether members reported replicas that they cannot run, or recovered capacity."""
    subsets, migration = SUBSETS.of(unit), AUTO_MIGRATION.of(unit)
    if subsets is not None and subsets.running:
        return True
    return bool(migration.estimated_capacity or migration.scheduled_replicas or migration.offers.offered)


def _exceeded_domain(
    root: Domain, replicas: Mapping[str, int], staying: Mapping[str, int], excluded: _ExcludedDomains, *, shrinks: bool
) -> str:
    """Return the domain that has more replicas than a constraint allows, "" for none.

    `staying` replicas ran in a cluster before and may stay. With `shrinks`, replicas are only removed, and none from
    the domain with the fewest while another one has too many. Where planners differ on which domains count, nothing is
    reported.
    """
    counts = count_by_domain(root, replicas)
    stays = count_by_domain(root, staying) if staying else dict.fromkeys(counts, 0)
    shut = ineligible_domains(root, (excluded.closed, excluded.full))
    idle = shut if excluded.idle == excluded.full else ineligible_domains(root, (excluded.closed, excluded.idle))
    for node in counts:
        constraint, rest = node.constraint, node.unlabelled
        if constraint is None or not constraint.is_hard:
            continue
        if rest is not None and counts[rest] > stays[rest]:
            without = f"clusters without a label {constraint.topology_key}"
            return f"it gave {counts[rest]} replicas to {without}, which DoNotSchedule keeps out"
        counted = [child for child in node.children if child not in shut]
        lowest = min([child for child in counted if child not in idle] or counted, key=counts.__getitem__, default=None)
        fewest, compared, is_unfair = 0, "", False
        if lowest is not None and len(counted) >= constraint.min_domains:
            fewest, compared = counts[lowest], f" and {counts[lowest]} to {lowest}"
            is_unfair = shrinks and fewest < stays[lowest]
        for child in node.children:
            most = fewest + constraint.max_skew
            if counts[child] > (most if is_unfair else max(most, stays[child])):
                bound = constraint.describe(len(counted))
                return f"it gave {counts[child]} replicas to domain {child}{compared}, beyond {bound}"
    return ""
