"""What every division keeps to, whoever made it: the hard limits of policy and user, and how an answer breaks them.

A Replicas plugin may be a stranger's code or a service on the network. What it answers is checked here before it counts
(`runner.py`): bounds of clusters, replicas that run and are not to be moved, minimums, the total, and topology
constraints with DoNotSchedule (`skew.py`). `limits_of` is also what remote plugins are told, so that one that keeps to
what it is told is not refused for a cluster. Preferences (weights, room, ScheduleAnyway) are not checked: the
explanation shows them. The built-in plugins keep to all of this (`tests/properties/test_division_limits.py`).

While members report replicas that they cannot run (auto-migration), only bounds of clusters are checked: replicas that
wait or are on trial come on top of the total and of what runs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from federation.planning.placement.tree import summarise
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.divide import current_replicas
from federation.scheduling.framework.skew import Barred, Occupied, breach_of_spread
from federation.scheduling.framework.topology import closed_for, domains_of
from federation.scheduling.framework.types import Cluster, Effect, ReplicasStrategy, SchedulingMode, SchedulingUnit

REPLICAS_MAX = 2**31 - 1
"""Kubernetes' largest number of replicas."""


class Bound(NamedTuple):
    """The most replicas that a cluster may have, and because of what."""

    most: int
    because: str


@dataclass(frozen=True, slots=True)
class Limits:
    """Per cluster the replicas that it keeps and the most that it may have; clusters left out have no such limit."""

    least: Mapping[str, int]
    most: Mapping[str, Bound]


def limits_of(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> Limits:
    """Return what the division of a unit has to keep to, cluster by cluster."""
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
    # Otherwise some run where policy or user want fewer, and taking these away may make place elsewhere.
    return Limits({}, most)


def find_breach(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    """Return the first limit that a division breaks, naming cluster or domain and constraint; "" when it breaks none.

    One that gives nothing to anybody breaks none: it is no placement.
    """
    offered = _by_name(tuple(clusters))
    for name, count in replicas.items():
        if name not in offered:
            return f"it gave {count!r} replicas to {name!r}, which was not offered"
        if type(count) is not int or not 0 <= count <= REPLICAS_MAX:
            return f"it gave {count!r} replicas to {name!r}, not an integer from 0 to {REPLICAS_MAX}"
    given = sum(replicas.values())
    if not given:
        return ""
    # Of the others none has or gets any, and none is bounded by what runs there.
    names = dict.fromkeys((*replicas, *unit.current)) if unit.current else replicas
    concerned = [offered[name] for name in names if name in offered]
    limits = limits_of(unit, concerned)
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
    return _breach_of_minimums(unit, clusters, replicas) or _breach_of_spread(unit, clusters, replicas)


@lru_cache(maxsize=16)
def _by_name(clusters: tuple[Cluster, ...]) -> Mapping[str, Cluster]:
    """Return the clusters by name; the last ones are remembered, because many units in a row are offered the same."""
    return {cluster.name: cluster for cluster in clusters}


def _breach_of_minimums(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    """Return which `minReplicas` does not hold although all could, where replicas are divided anew.

    Only what surely fits counts. With topology constraints, which come first, it is so inside of every domain.
    """
    if not unit.min_replicas:
        return ""
    ceilings, rooms, running = _ceilings(unit, clusters), rooms_of(unit, clusters), _running(unit, clusters)
    minimums = {
        cluster.name: min(minimum, ceilings[cluster.name].most) if cluster.name in ceilings else minimum
        for cluster in clusters
        if (minimum := unit.min_replicas.get(cluster.name))
    }
    groups = [tuple([cluster.name for cluster in clusters])]
    if unit.topology_spread:
        groups = [leaf.clusters for leaf in domains_of(unit.topology_spread, tuple(clusters)).root.leaves()]
    for group in groups:
        amount = sum([replicas.get(name, 0) for name in group]) if unit.topology_spread else unit.desired_replicas or 0
        if sum([minimums.get(name, 0) for name in group]) > amount:
            continue
        if unit.avoid_disruption and any(running.get(name) for name in group):
            continue  # What runs stays, and comes before a minimum.
        for name in [name for name in group if name in minimums]:
            least = minimums[name] if rooms is None else min(minimums[name], running.get(name, 0) + rooms.sure[name])
            if (count := replicas.get(name, 0)) < least:
                return f"it gave {count} replicas to {name}, which needs {least} at least (minReplicas)"
    return ""


def _breach_of_spread(unit: SchedulingUnit, clusters: Sequence[Cluster], replicas: Mapping[str, int]) -> str:
    if not any(constraint.is_hard for constraint in unit.topology_spread):
        return ""
    domains = domains_of(unit.topology_spread, tuple(clusters))
    full, idle = _barred_by(unit, clusters, domains.doubtful)
    stays = _running(unit, clusters) if unit.avoid_disruption else {}
    shrinks = sum(stays.values()) > (unit.desired_replicas or 0)
    shrinks = shrinks and stays == _wanted(unit, _ceilings(unit, clusters), stays)
    barred = Barred(closed_for(unit, domains.doubtful), full, idle)
    return breach_of_spread(domains.root, Occupied(replicas, stays, shrinks), barred)


def _barred_by(
    unit: SchedulingUnit, clusters: Sequence[Cluster], tainted: Sequence[Cluster]
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the clusters that may have none by policy, taints or the user's migration, and these and those unwanted.

    Unwanted are those without a weight where others have weights. `tainted` are at least the clusters with taints that
    bar.
    """
    ceilings = _ceilings(unit, clusters if _is_bounded(unit) else tainted)
    full = idle = frozenset([name for name, bound in ceilings.items() if not bound.most])
    if unit.weights:
        idle = frozenset([cluster.name for cluster in clusters if not _wanted_most(unit, cluster.name, ceilings, 1)])
    return full, idle


def explain_spread(
    unit: SchedulingUnit, clusters: Sequence[Cluster], placements: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """Return per constraint its domains with their replicas, or with their clusters of a unit that is copied."""
    domains = domains_of(unit.topology_spread, tuple(clusters))
    counts = {name: 1 if replicas is None else replicas for name, replicas in placements.items()}
    barred: frozenset[str] = frozenset()
    if unit.mode is SchedulingMode.DIVIDE:
        full, idle = _barred_by(unit, clusters, domains.doubtful)
        barred = idle if unit.strategy is ReplicasStrategy.SPREAD else full
    return summarise(domains.root, unit.topology_spread, counts, closed_for(unit, domains.doubtful), barred)


def _wanted(unit: SchedulingUnit, ceilings: Mapping[str, Bound], running: Mapping[str, int]) -> dict[str, int]:
    """Return of what runs in clusters what policy and user want there."""
    return {name: min(count, _wanted_most(unit, name, ceilings, count)) for name, count in running.items()}


def _wanted_most(unit: SchedulingUnit, name: str, ceilings: Mapping[str, Bound], unbounded: int) -> int:
    """Return the most that policy and user want in a cluster: without a weight only its minimum."""
    if unit.weights and not unit.weights.get(name):
        unbounded = unit.min_replicas.get(name, 0)
    return min(unbounded, ceilings[name].most) if name in ceilings else unbounded


def _ceilings(unit: SchedulingUnit, clusters: Iterable[Cluster]) -> dict[str, Bound]:
    """Return the most that policy, taints and the user's migration allow, whatever runs."""
    limited = _limited(unit)
    ceilings: dict[str, Bound] = {}
    is_bounded = _is_bounded(unit)
    current: Mapping[str, int] | None = None
    for cluster in clusters:
        if not is_bounded and not cluster.taints:
            continue
        name, bounds = cluster.name, []
        if name in unit.max_replicas:
            bounds.append(Bound(unit.max_replicas[name], "maxReplicas"))
        if name in limited:
            bounds.append(Bound(limited[name], "a migration limits it"))
        for taint in cluster.taints:
            if taint.effect == Effect.NO_SCHEDULE and not unit.tolerates(taint):
                current = current_replicas(unit) if current is None else current
                bounds.append(Bound(current.get(name, 0), f"its taint {taint.key}:{taint.effect} is not tolerated"))
        if bounds:
            ceilings[name] = min(bounds)
    return ceilings


def _is_bounded(unit: SchedulingUnit) -> bool:
    """Say whether policy or user bound what clusters may have; if not, only taints do."""
    return bool(unit.max_replicas or _limited(unit))


def _limited(unit: SchedulingUnit) -> Mapping[str, int]:
    return {} if unit.custom_migration is None else unit.custom_migration.limited_capacity


def _running(unit: SchedulingUnit, clusters: Iterable[Cluster]) -> dict[str, int]:
    """Return the replicas that run in the clusters, as far as the user's migration leaves them there."""
    if not unit.current:
        return {}
    limited, current = _limited(unit), current_replicas(unit)
    names = [cluster.name for cluster in clusters if cluster.name in current]
    return {name: min(current[name], limited.get(name, current[name])) for name in names}


def _has_reports(unit: SchedulingUnit) -> bool:
    """Say whether members have reported replicas that they cannot run, or room that has returned."""
    migration = unit.auto_migration
    if migration is None:
        return False
    return bool(migration.estimated_capacity or migration.scheduled_replicas or migration.offers.offered)
