"""The input and output of the replica planners for a scheduling unit.

Part of the public plugin API: all Replicas plugins use the same bounds, capacity and current replicas.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat
from operator import attrgetter
from typing import Any

from federation.planning.placement.capacity import Planner, countable_replicas, upper_bounds
from federation.planning.placement.failback import Offers, plan_with_trials
from federation.planning.placement.replicas import Column, Demand, Plan, Preference, Steps, to_dict
from federation.planning.placement.subsetquotas import SubsetSpread, attribute_replicas, plan_quotas, planned_quotas
from federation.planning.placement.topology import Topology, plan_topology_spread
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.interfaces import Arguments
from federation.scheduling.framework.migrations import AUTO_MIGRATION, CUSTOM_MIGRATION
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import Cluster, ClusterChange, Division, Effect, SchedulingUnit

NODES = "Nodes"
SUMS = "Sums"
SUBSETS: ShapeKey[SubsetSpread | None] = ShapeKey("workload_spread", None)
"""The subsets of a WorkloadSpread, None without one."""
_EFFECT = attrgetter("effect")
_NOT_CAPACITY = ClusterChange.ANY & ~(ClusterChange.RESOURCES | ClusterChange.ANNOTATIONS)
"""Replicas beyond capacity are placed nevertheless, so more capacity does not help unplaced ones."""


def capacity_from(args: Arguments) -> str:
    """Return a Replicas plugin's argument `capacity`: "Nodes" (counted node by node) or "Sums" (KubeAdmiral's)."""
    capacity = args.get("capacity", NODES)
    if capacity not in (NODES, SUMS):
        raise ValueError(f"capacity must be {NODES} or {SUMS}, not {capacity!r}")
    return str(capacity)


def demand_of(unit: SchedulingUnit, clusters: Sequence[Cluster], weights: Mapping[str, int]) -> Demand:
    """Return the planners' input for a unit; a missing or negative weight counts as 0."""
    if weights and min(weights.values()) < 0:
        weights = {name: max(0, weight) for name, weight in weights.items()}
    group = ClusterGroup.of(clusters)
    bounds, migration = maximums(unit, group), AUTO_MIGRATION.of(unit)
    estimated, limited = caps_of(unit)
    names = group.names
    return Demand(
        total=unit.desired_replicas or 0,
        clusters=names,
        preferences=_preferences(names, weights, unit.preferences.min_replicas, bounds),
        key=unit.key,
        current=current_replicas(unit),
        estimated=estimated,
        limited=limited,
        scheduled=migration.scheduled_replicas,
        ready=migration.ready_replicas,
        avoid_disruption=unit.avoid_disruption,
        keep_unschedulable=migration.keep_unschedulable,
    )


def closing_clusters(clusters: ClusterGroup) -> tuple[Cluster, ...]:
    """Return the clusters that are silent or have NoSchedule taints."""
    lasting = clusters.lasting
    maybe: frozenset[int] | None = lasting.get(closing_clusters)
    if maybe is None:
        maybe = lasting[closing_clusters] = frozenset(
            at
            for at, cluster in enumerate(clusters.whole)
            if cluster.is_silent or (cluster.taints and Effect.NO_SCHEDULE in map(_EFFECT, cluster.taints))
        )
    if not maybe:
        return ()
    return tuple([c for c in clusters if clusters.positions[c.name] in maybe])


def _preferences(
    names: Sequence[str], weights: Mapping[str, int], minimums: Mapping[str, int], maximums: Mapping[str, int]
) -> dict[str, Preference]:
    if not weights and not minimums and not maximums:
        return {}  # Planners treat a cluster without a preference as one without bounds.
    if not minimums and not maximums:
        of_weight = {weight: Preference(weight) for weight in {0, *weights.values()}}
        return {name: of_weight[weights.get(name, 0)] for name in names}
    preferences = {}
    for name in names:
        minimum, maximum = minimums.get(name, 0), maximums.get(name)
        # A taint may set a maximum below the policy's minimum.
        least = minimum if maximum is None else min(minimum, maximum)
        preferences[name] = Preference(weights.get(name, 0), least, maximum)
    return preferences


def divide_with(
    planner: Planner,
    unit: SchedulingUnit,
    demand: Demand,
    explanation: dict[str, Any],
    steps: Steps,
    topology: Topology | None = None,
    requeue_on: ClusterChange = _NOT_CAPACITY,
) -> Division:
    """Return a planner's division as a plugin's result, trial replicas included, and complete its explanation.

    A part of the explanation may be a function that returns it; it is called when somebody reads the explanation.

    With a `topology` (`topology.py`) replicas are divided within the domains. The subsets of a WorkloadSpread take
    precedence over them. Clusters without replicas are left out.
    `requeue_on`: cluster changes that can make unplaced replicas schedulable.
    """
    parts = Explanation(explanation)
    planner = partial(_plan_within_bounds, planner)
    if (spread := SUBSETS.of(unit)) is not None:
        free = (parts.get("room") or {}).get("replicas") or {}
        planner = partial(plan_quotas, spread, free, planner)
    elif topology is not None:
        planner = partial(plan_topology_spread, topology, planner)
    plan = plan_with_trials(planner, demand, offers_of(unit), steps)
    if demand.estimated:
        explanation["estimated"] = dict(demand.estimated)
    if plan.overflow:
        explanation["overflow"] = plan.overflow
    replicas = _placed(plan, demand.clusters)
    if spread is not None:
        quotas = attribute_replicas(spread.subsets, replicas, planned_quotas(steps))
        explanation["subsets"] = {
            "name": spread.name,
            "caps": spread.caps(),
            "quotas": quotas,
        }
        if spread.running:
            explanation["subsets"]["running"] = spread.running
    if any(step["step"] in _OVER_CAPACITY_STEPS for step in steps) and (waiting := _waiting(demand, replicas, parts)):
        explanation["waiting"] = waiting
    return Division(replicas, parts, plan.because, requeue_on)


_OVER_CAPACITY_STEPS = frozenset(("beyondRoom", "stays"))
"""Planner steps that place replicas beyond capacity."""


def _placed(plan: Plan, clusters: tuple[str, ...]) -> dict[str, int]:
    """Return the clusters that get replicas, in their order."""
    totals = plan.totals() if plan.overflow else plan.replicas
    if not isinstance(totals, Column) or totals.names is not clusters:
        totals = Column(clusters, list(map(to_dict(totals).get, clusters, repeat(0))))
    return totals.placed()


def _waiting(demand: Demand, replicas: Mapping[str, int], explanation: Mapping[str, Any]) -> dict[str, int]:
    """Return per cluster how many replicas are placed beyond its running ones and its capacity."""
    room, held = (explanation.get("room") or {}).get("replicas") or {}, countable_replicas(demand)
    more = {name: count - held[name] - room[name] for name, count in replicas.items() if name in room}
    return {name: count for name, count in more.items() if count > 0}


def _plan_within_bounds(planner: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Return a planner's plan cut to bounds and caps, but not below running replicas.

    KubeAdmiral's arithmetic can exceed a bound where more replicas run than it allows, and with overflow.
    """
    plan = planner(demand, steps)
    less: dict[str, int] = {}
    for cluster, bound in upper_bounds(replace(demand, estimated={}) if demand.estimated else demand).items():
        count, waiting = plan.replicas.get(cluster, 0), plan.overflow.get(cluster, 0)
        if count + waiting > bound:
            running = demand.current.get(cluster, 0)
            most = max(bound, min(running, demand.limited.get(cluster, running)))
            less[cluster] = min(count, most)
            if waiting:
                plan.overflow[cluster] = min(waiting, most - less[cluster])
    return replace(plan, replicas={**plan.replicas, **less}) if less else plan


def current_replicas(unit: SchedulingUnit) -> Mapping[str, int]:
    """Return the replicas per current cluster; one without its own number has all of them."""
    total, current = unit.desired_replicas or 0, unit.current
    if None not in current.values():
        return current  # type: ignore[return-value]  # all have a number
    return {name: total if replicas is None else replicas for name, replicas in current.items()}


def maximums(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> dict[str, int]:
    """Return the upper bound per cluster that has one.

    A cluster that does not answer, or has a NoSchedule taint that the unit does not tolerate, keeps its replicas and
    gets no more. Replicas of several pods wait outside of members, so each cluster gets those for which it has room.
    """
    bounds = dict(unit.preferences.max_replicas)
    held: Mapping[str, int] | None = None
    group = ClusterGroup.of(clusters)
    for cluster in group.cached(closing_clusters, closing_clusters):
        if cluster.is_silent or _is_kept_out(unit, cluster):
            held = current_replicas(unit) if held is None else held
            present = held.get(cluster.name, 0)
            bounds[cluster.name] = min(bounds.get(cluster.name, present), present)
    if unit.shape.parts and (rooms := rooms_of(unit, group)) is not None:
        held = current_replicas(unit)
        for name in group.names:
            most = held.get(name, 0) + rooms.unreserved[name]
            bounds[name] = min(bounds.get(name, most), most)
    return bounds


def _is_kept_out(unit: SchedulingUnit, cluster: Cluster) -> bool:
    return any(taint.effect == Effect.NO_SCHEDULE and not unit.tolerates(taint) for taint in cluster.taints)


def caps_of(unit: SchedulingUnit) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the estimated capacity per cluster, without negative entries (unknown), and the user's caps."""
    estimated = AUTO_MIGRATION.of(unit).estimated_capacity
    return (
        {name: capacity for name, capacity in estimated.items() if capacity >= 0},
        CUSTOM_MIGRATION.of(unit).limited_capacity,
    )


def offers_of(unit: SchedulingUnit) -> Offers:
    """Return the capacity that clusters recovered after a migration."""
    return AUTO_MIGRATION.of(unit).offers


class Explanation(Mapping[str, Any]):
    """The parts of an explanation. Functions among them are called when somebody reads their part: most never are."""

    __slots__ = ("_parts",)

    def __init__(self, parts: dict[str, Any]) -> None:
        self._parts = parts

    def __getitem__(self, name: str) -> Any:
        part = self._parts[name]
        if callable(part):
            part = self._parts[name] = part()
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)
