"""What a unit says about its division, as the planners want to hear it.

Part of the public plugin API: every Replicas plugin starts from the same readings of bounds, capacity and what is
there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import compress
from operator import attrgetter
from typing import Any

from federation.planning.placement.failback import Offers, plan_with_trials
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.room import Planner, bounds_of, held_of
from federation.planning.placement.topology import Topology, plan_over
from federation.scheduling.framework.interfaces import Arguments
from federation.scheduling.framework.types import Change, Cluster, Division, Effect, SchedulingUnit

NODES = "Nodes"
SUMS = "Sums"
_NAME, _TAINTS, _EFFECT = attrgetter("name"), attrgetter("taints"), attrgetter("effect")
_NOT_ROOM = Change.ANY & ~(Change.RESOURCES | Change.ANNOTATIONS)
"""What has no room is placed all the same, so room is not what replicas lack that have no place."""


def capacity_from(args: Arguments) -> str:
    """Return a Replicas plugin's argument `capacity`: "Nodes" (what fits node by node) or "Sums" (KubeAdmiral's)."""
    capacity = args.get("capacity", NODES)
    if capacity not in (NODES, SUMS):
        raise ValueError(f"capacity must be {NODES} or {SUMS}, not {capacity!r}")
    return str(capacity)


def demand_of(unit: SchedulingUnit, clusters: Sequence[Cluster], weights: Mapping[str, int]) -> Demand:
    """Return the planners' question for a unit; clusters without a weight, or with a negative one, have 0."""
    if weights and min(weights.values()) < 0:
        weights = {name: max(0, weight) for name, weight in weights.items()}
    bounds, migration = maximums(unit, clusters), unit.auto_migration
    estimated, limited = caps_of(unit)
    names, _ = _outline(tuple(clusters))
    return Demand(
        total=unit.desired_replicas or 0,
        clusters=names,
        preferences=_preferences(names, weights, unit.min_replicas, bounds),
        key=unit.key,
        current=current_replicas(unit),
        estimated=estimated,
        limited=limited,
        scheduled={} if migration is None else migration.scheduled_replicas,
        ready={} if migration is None else migration.ready_replicas,
        avoid_disruption=unit.avoid_disruption,
        keep_unschedulable=migration is not None and migration.keep_unschedulable,
    )


@lru_cache(maxsize=16)
def _outline(clusters: tuple[Cluster, ...]) -> tuple[tuple[str, ...], tuple[Cluster, ...]]:
    """Return the clusters' names, and those that taints may close; many units are divided over the same ones."""
    tainted = compress(clusters, map(_TAINTS, clusters))
    closing = [cluster for cluster in tainted if Effect.NO_SCHEDULE in map(_EFFECT, cluster.taints)]
    return tuple(map(_NAME, clusters)), tuple(closing)


def _preferences(
    names: Sequence[str], weights: Mapping[str, int], minimums: Mapping[str, int], maximums: Mapping[str, int]
) -> dict[str, Preference]:
    if not weights and not minimums and not maximums:
        return {}  # planners that ask without weights take a cluster without preference for one without bounds
    if not minimums and not maximums:
        of_weight = {weight: Preference(weight) for weight in {0, *weights.values()}}
        return {name: of_weight[weights.get(name, 0)] for name in names}
    preferences = {}
    for name in names:
        minimum, maximum = minimums.get(name, 0), maximums.get(name)
        # A taint may allow less than the policy's minimum.
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
    awaits: Change = _NOT_ROOM,
) -> Division:
    """Return a planner's division as a plugin's answer, replicas on trial included, and complete its explanation.

    With a `topology` (`topology.py`) it is made within the domains. Clusters that get none are left out. `awaits`: what
    can give a place to those that have none.
    """
    planner = partial(_plan_within_bounds, planner)
    if topology is not None:
        planner = partial(plan_over, topology, planner)
    plan = plan_with_trials(planner, demand, offers_of(unit), steps)
    if demand.estimated:
        explanation["estimated"] = dict(demand.estimated)
    if plan.overflow:
        explanation["overflow"] = plan.overflow
    counts = list(map(plan.totals().get, demand.clusters))
    replicas = dict(zip(compress(demand.clusters, counts), filter(None, counts), strict=True))
    if any(step["step"] in _BEYOND_ROOM for step in steps) and (waiting := _waiting(demand, replicas, explanation)):
        explanation["waiting"] = waiting
    return Division(replicas, explanation, plan.because, awaits)


_BEYOND_ROOM = frozenset(("beyondRoom", "stays"))
"""Steps of the planners by room that place what fits nowhere."""


def _waiting(demand: Demand, replicas: Mapping[str, int], explanation: Mapping[str, Any]) -> dict[str, int]:
    """Return per cluster how many replicas are more than run there and fit on its nodes."""
    room, held = (explanation.get("room") or {}).get("replicas") or {}, held_of(demand)
    more = {name: count - held[name] - room[name] for name, count in replicas.items() if name in room}
    return {name: count for name, count in more.items() if count > 0}


def _plan_within_bounds(planner: Planner, demand: Demand, steps: Steps | None = None) -> Plan:
    """Return a planner's plan without what it gives beyond bounds and caps to clusters where no more than that runs.

    The original's arithmetic does so at times: where more runs than a bound allows, and with overflow.
    """
    plan = planner(demand, steps)
    for cluster, bound in bounds_of(replace(demand, estimated={}) if demand.estimated else demand).items():
        count, waiting = plan.replicas.get(cluster, 0), plan.overflow.get(cluster, 0)
        if count + waiting > bound:
            running = demand.current.get(cluster, 0)
            most = max(bound, min(running, demand.limited.get(cluster, running)))
            plan.replicas[cluster] = min(count, most)
            if waiting:
                plan.overflow[cluster] = min(waiting, most - plan.replicas[cluster])
    return plan


def current_replicas(unit: SchedulingUnit) -> dict[str, int]:
    """Return the replicas per cluster that holds the unit; one without a number of its own has all of them."""
    total = unit.desired_replicas or 0
    return {name: total if replicas is None else replicas for name, replicas in unit.current.items()}


def maximums(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> dict[str, int]:
    """Return the upper bound per cluster that has one.

    A cluster with a NoSchedule taint that the unit does not tolerate keeps what it has and gets no more.
    """
    bounds = dict(unit.max_replicas)
    held: dict[str, int] | None = None
    for cluster in _outline(tuple(clusters))[1]:
        for taint in cluster.taints:
            if taint.effect == Effect.NO_SCHEDULE and not unit.tolerates(taint):
                held = current_replicas(unit) if held is None else held
                present = held.get(cluster.name, 0)
                bounds[cluster.name] = min(bounds.get(cluster.name, present), present)
                break
    return bounds


def caps_of(unit: SchedulingUnit) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return what is believed to fit per cluster (negative entries mean unknown), and the caps that the user set."""
    migration, custom = unit.auto_migration, unit.custom_migration
    estimated = {} if migration is None else migration.estimated_capacity
    return (
        {name: capacity for name, capacity in estimated.items() if capacity >= 0},
        {} if custom is None else custom.limited_capacity,
    )


def offers_of(unit: SchedulingUnit) -> Offers:
    """Return the room that has returned to clusters after a migration."""
    return Offers() if unit.auto_migration is None else unit.auto_migration.offers
