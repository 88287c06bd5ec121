"""What a unit's topology constraints mean for the clusters of a decision.

Part of the public plugin API: a Replicas plugin hands `topology_of` to `divide_with`, and its planner then divides
within each domain; a Select plugin chooses clusters with `choose_clusters`. Both cost nothing without constraints. The
arithmetic is `federation.planning.placement.topology`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.room import Rooms
from federation.planning.placement.topology import Topology, plan_over
from federation.planning.placement.tree import summarise, to_tree
from federation.scheduling.framework.types import Cluster, ClusterScore, Effect, SchedulingMode, SchedulingUnit

_ONE = Preference(0, 0, 1)


def topology_of(unit: SchedulingUnit, clusters: Sequence[Cluster], rooms: Rooms | None = None) -> Topology | None:
    """Return the domains that a unit's constraints make of the clusters; None when it has no constraints."""
    if not unit.topology_spread:
        return None
    tree = to_tree({cluster.name: cluster.labels for cluster in clusters}, unit.topology_spread)
    return Topology(tree, closed_for(unit, clusters), rooms)


def closed_for(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> frozenset[str]:
    """Return the clusters that keep what they have of the unit and cannot be expected to take more."""
    return frozenset([c.name for c in clusters if not c.is_ready or (c.taints and _is_kept_out(unit, c))])


def choose_clusters(unit: SchedulingUnit, ordered: Sequence[ClusterScore]) -> tuple[list[ClusterScore], str]:
    """Return at most `max_clusters` of the clusters, best first, and what kept more from being chosen ("" nothing).

    Each domain's best ones, those that hold the unit in front when that is not to be disrupted. For a copy in each,
    the number of clusters per domain satisfies the constraints; where replicas are divided they only ask for evenness.
    """
    constraints = unit.topology_spread
    if unit.mode is SchedulingMode.DIVIDE:
        constraints = tuple(constraint._replace(is_hard=False, domains_min=1) for constraint in constraints)
    held = unit.current if unit.avoid_disruption else {}
    names = [entry.cluster.name for entry in sorted(ordered, key=lambda entry: entry.cluster.name not in held)]
    clusters = [entry.cluster for entry in ordered]
    labels = {cluster.name: cluster.labels for cluster in clusters}
    tree = to_tree({name: labels[name] for name in names}, constraints)
    demand = Demand(
        total=len(names) if unit.max_clusters is None else min(unit.max_clusters, len(names)),
        clusters=tuple(names),
        preferences=dict.fromkeys(names, _ONE),
        key=unit.key,
        current={name: 1 for name in names if name in held},
        avoid_disruption=unit.avoid_disruption,
    )
    plan = plan_over(Topology(tree, closed_for(unit, clusters)), _first, demand)
    return [entry for entry in ordered if plan.replicas.get(entry.cluster.name)], plan.because


def explain_spread(
    unit: SchedulingUnit, clusters: Sequence[Cluster], placements: Mapping[str, int | None]
) -> list[dict[str, Any]]:
    """Return per constraint its domains with their replicas, or with their clusters of a unit that is copied."""
    tree = to_tree({cluster.name: cluster.labels for cluster in clusters}, unit.topology_spread)
    counts = {name: 1 if replicas is None else replicas for name, replicas in placements.items()}
    return summarise(tree, unit.topology_spread, counts, closed_for(unit, clusters))


def _is_kept_out(unit: SchedulingUnit, cluster: Cluster) -> bool:
    return any(taint.effect != Effect.PREFER_NO_SCHEDULE and not unit.tolerates(taint) for taint in cluster.taints)


def _first(demand: Demand, _steps: Steps | None = None) -> Plan:
    return Plan(dict.fromkeys(demand.clusters[: demand.total], 1), {})
