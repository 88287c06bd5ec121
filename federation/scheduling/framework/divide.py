"""What a unit says about its division, as the planners want to hear it.

Part of the public plugin API: every Replicas plugin starts from the same readings of bounds, capacity and what is
there.
"""

from collections.abc import Mapping, Sequence

from federation.planning.placement.failback import Offers
from federation.scheduling.framework.types import Cluster, Effect, SchedulingUnit


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
    for cluster in clusters:
        if cluster.taints and any(
            taint.effect == Effect.NO_SCHEDULE and not unit.tolerates(taint) for taint in cluster.taints
        ):
            held = current_replicas(unit) if held is None else held
            present = held.get(cluster.name, 0)
            bounds[cluster.name] = min(bounds.get(cluster.name, present), present)
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
