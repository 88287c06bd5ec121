"""What a unit's topology constraints mean for the clusters of a decision.

Part of the public plugin API: a Replicas plugin hands `topology_of` to `divide_with`, and its planner then divides
within each domain; a Select plugin chooses clusters with `choose_clusters`. Both cost nothing without constraints. The
arithmetic is `federation.planning.placement.topology`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.room import Rooms
from federation.planning.placement.topology import Topology, plan_over
from federation.planning.placement.tree import Domain, Groups, SpreadConstraint, tree_of
from federation.scheduling.framework.types import Cluster, ClusterScore, Effect, SchedulingMode, SchedulingUnit, Taint

_ONE = Preference(0, 0, 1)


class Domains(NamedTuple):
    """The tree of some clusters, and those of them that may be closed to a unit: unready, or with a taint that bars."""

    root: Domain
    doubtful: tuple[Cluster, ...]


def topology_of(unit: SchedulingUnit, clusters: Sequence[Cluster], rooms: Rooms | None = None) -> Topology | None:
    """Return the domains that a unit's constraints make of the clusters; None when it has no constraints."""
    if not unit.topology_spread:
        return None
    domains = domains_of(unit.topology_spread, tuple(clusters))
    return Topology(domains.root, closed_for(unit, domains.doubtful), rooms)


@lru_cache(maxsize=64)
def domains_of(constraints: tuple[SpreadConstraint, ...], clusters: tuple[Cluster, ...]) -> Domains:
    """Return the domains of clusters, which keep their order in every leaf.

    The last answers are remembered: whoever divides, checks and explains asks for the same. The values of a cluster's
    labels are kept with it.
    """
    keys = _keys(tuple([constraint.key for constraint in constraints]))
    groups: Groups = {}
    for cluster in clusters:
        path = cluster.memo.get(keys) or keys.path_of(cluster)
        try:
            groups[path].append(cluster.name)
        except KeyError:
            groups[path] = [cluster.name]
    return Domains(tree_of(groups, constraints), tuple([c for c in clusters if not c.is_ready or _bars(c.taints)]))


@dataclass(frozen=True, slots=True, eq=False)
class _Keys:
    """The labels of some constraints; made by `_keys`, so that a look-up in a cluster's memo costs next to nothing."""

    labels: tuple[str, ...]

    def path_of(self, cluster: Cluster) -> tuple[str | None, ...]:
        """Return the values of a cluster's labels, and keep them with it."""
        return cluster.keep(self, tuple(map(cluster.labels.get, self.labels)))


@lru_cache(maxsize=128)
def _keys(labels: tuple[str, ...]) -> _Keys:
    return _Keys(labels)


def closed_for(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> frozenset[str]:
    """Return the clusters that keep what they have of the unit and cannot be expected to take more."""
    return frozenset([c.name for c in clusters if not c.is_ready or (c.taints and _is_kept_out(unit, c))])


def _bars(taints: Sequence[Taint]) -> bool:
    return bool(taints) and any(taint.effect != Effect.PREFER_NO_SCHEDULE for taint in taints)


def choose_clusters(unit: SchedulingUnit, ordered: Sequence[ClusterScore]) -> tuple[list[ClusterScore], str]:
    """Return at most `max_clusters` of the clusters, best first, and what kept more from being chosen ("" nothing).

    Each domain's best ones, those that hold the unit in front when that is not to be disrupted. For a copy in each,
    the number of clusters per domain satisfies the constraints; where replicas are divided they only ask for evenness.
    """
    constraints = unit.topology_spread
    if unit.mode is SchedulingMode.DIVIDE:
        constraints = tuple(constraint._replace(is_hard=False, domains_min=1) for constraint in constraints)
    held = unit.current if unit.avoid_disruption else {}
    clusters = [entry.cluster for entry in ordered]
    if held:
        clusters.sort(key=lambda cluster: cluster.name not in held)
    domains = domains_of(constraints, tuple(clusters))
    names = [cluster.name for cluster in clusters]
    demand = Demand(
        total=len(names) if unit.max_clusters is None else min(unit.max_clusters, len(names)),
        clusters=tuple(names),
        preferences=dict.fromkeys(names, _ONE),
        key=unit.key,
        current={name: 1 for name in names if name in held},
        avoid_disruption=unit.avoid_disruption,
    )
    plan = plan_over(Topology(domains.root, closed_for(unit, domains.doubtful)), _first, demand)
    return [entry for entry in ordered if plan.replicas.get(entry.cluster.name)], plan.because


def _is_kept_out(unit: SchedulingUnit, cluster: Cluster) -> bool:
    return any(taint.effect != Effect.PREFER_NO_SCHEDULE and not unit.tolerates(taint) for taint in cluster.taints)


def _first(demand: Demand, _steps: Steps | None = None) -> Plan:
    return Plan(dict.fromkeys(demand.clusters[: demand.total], 1), {})
