"""Topology domains of the clusters of a scheduling cycle, from a unit's spread constraints.

Part of the public plugin API: a Replicas plugin passes `topology_of` to `divide_with`, whose planner then divides
within each domain; a Select plugin uses `choose_clusters`. Both cost nothing without constraints. The arithmetic is in
`federation.planning.placement.topology`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

from federation.planning.placement.capacity import FreeCapacity
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.topology import Topology, plan_topology_spread
from federation.planning.placement.topologydomains import Domain, Groups, SpreadConstraint, build_domain_tree
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import (
    Cluster,
    ClusterScore,
    Effect,
    SchedulingMode,
    SchedulingUnit,
    Taint,
)

_ONE = Preference(0, 0, 1)
TOPOLOGY_SPREAD: ShapeKey[tuple[SpreadConstraint, ...]] = ShapeKey("topology_spread", ())


class Domains(NamedTuple):
    """The domain tree, and the clusters that may be closed to a unit: unready or tainted."""

    root: Domain
    maybe_closed: tuple[Cluster, ...]


def topology_of(
    unit: SchedulingUnit, clusters: Sequence[Cluster], rooms: FreeCapacity | None = None
) -> Topology | None:
    """Return the domains of the clusters by a unit's constraints; None without constraints."""
    if not TOPOLOGY_SPREAD.of(unit):
        return None
    domains = domains_of(TOPOLOGY_SPREAD.of(unit), clusters)
    return Topology(domains.root, closed_for(unit, domains.maybe_closed), rooms)


def domains_of(constraints: tuple[SpreadConstraint, ...], clusters: Sequence[Cluster]) -> Domains:
    """Return the domains of clusters, which keep their order in every leaf.

    Cached with a group, because division, validation and explanation use the same domains. Label values are memoized
    per cluster.
    """
    return ClusterGroup.of(clusters).cached((_build_domains, constraints), partial(_build_domains, constraints))


def _build_domains(constraints: tuple[SpreadConstraint, ...], clusters: ClusterGroup) -> Domains:
    keys = _keys(tuple([constraint.topology_key for constraint in constraints]))
    groups: Groups = {}
    for cluster in clusters:
        path = cluster.lasting.get(keys) or keys.path_of(cluster)
        try:
            groups[path].append(cluster.name)
        except KeyError:
            groups[path] = [cluster.name]
    return Domains(
        build_domain_tree(groups, constraints),
        tuple([c for c in clusters if c.is_silent or _has_blocking(c.taints)]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """The label keys of some constraints; created by `_keys`, so that a memo look-up hashes an identity."""

    labels: tuple[str, ...]

    def path_of(self, cluster: Cluster) -> tuple[str | None, ...]:
        """Return the cluster's values of the labels, memoized."""
        return cluster.memoize_lasting(self, tuple(map(cluster.labels.get, self.labels)))


@lru_cache(maxsize=128)
def _keys(labels: tuple[str, ...]) -> _Keys:
    return _Keys(labels)


def closed_for(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> frozenset[str]:
    """Return the clusters that keep their replicas of the unit and cannot be expected to take more."""
    return frozenset([c.name for c in clusters if c.is_silent or (c.taints and _is_kept_out(unit, c))])


def _has_blocking(taints: Sequence[Taint]) -> bool:
    return bool(taints) and any(taint.effect != Effect.PREFER_NO_SCHEDULE for taint in taints)


def choose_clusters(unit: SchedulingUnit, ordered: Sequence[ClusterScore]) -> tuple[list[ClusterScore], str]:
    """Return at most `max_clusters` of the clusters, best first, and the limit that excluded others ("" for none).

    Each domain's best ones are chosen, current clusters first when disruption is to be avoided. In Duplicate mode the
    number of clusters per domain satisfies the constraints; in Divide mode they are a preference only.
    """
    constraints = TOPOLOGY_SPREAD.of(unit)
    if unit.mode is SchedulingMode.DIVIDE:
        constraints = tuple(constraint._replace(is_hard=False, min_domains=1) for constraint in constraints)
    held = unit.current if unit.avoid_disruption else {}
    clusters = [entry.cluster for entry in ordered]
    if held:
        clusters.sort(key=lambda cluster: cluster.name not in held)
    domains = domains_of(constraints, clusters)
    names = [cluster.name for cluster in clusters]
    demand = Demand(
        total=len(names) if unit.max_clusters is None else min(unit.max_clusters, len(names)),
        clusters=tuple(names),
        preferences=dict.fromkeys(names, _ONE),
        key=unit.key,
        current={name: 1 for name in names if name in held},
        avoid_disruption=unit.avoid_disruption,
    )
    plan = plan_topology_spread(Topology(domains.root, closed_for(unit, domains.maybe_closed)), _first, demand)
    return [entry for entry in ordered if plan.replicas.get(entry.cluster.name)], plan.because


def _is_kept_out(unit: SchedulingUnit, cluster: Cluster) -> bool:
    return any(taint.effect != Effect.PREFER_NO_SCHEDULE and not unit.tolerates(taint) for taint in cluster.taints)


def _first(demand: Demand, _steps: Steps | None = None) -> Plan:
    return Plan(dict.fromkeys(demand.clusters[: demand.total], 1), {})
