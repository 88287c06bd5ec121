"""Replicas: fill one cluster after the other in the order of their priorities (`replicasStrategy: Binpack`).

The order comes from PrioritySort. The arithmetic is `federation.planning.placement.binpack`.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from federation.planning.placement.binpack import plan_binpack
from federation.planning.placement.failback import plan_with_trials
from federation.planning.placement.replicas import Demand, Preference, Steps
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.divide import caps_of, current_replicas, maximums, offers_of
from federation.scheduling.framework.interfaces import ReplicasPlugin
from federation.scheduling.framework.types import Cluster, Division, SchedulingUnit, Status


class PreferenceBinPack(ReplicasPlugin):
    """Fills clusters in their order, minimums first."""

    NAME: ClassVar[str] = "PreferenceBinPack"

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return replicas per cluster; those that get none are left out."""
        bounds = maximums(unit, clusters)
        names = tuple(cluster.name for cluster in clusters)
        estimated, limited = caps_of(unit)
        migration = unit.auto_migration
        steps: Steps = []
        demand = Demand(
            total=unit.desired_replicas or 0,
            clusters=names,
            preferences={name: Preference(0, unit.min_replicas.get(name, 0), bounds.get(name)) for name in names},
            key=unit.key,
            current=current_replicas(unit),
            estimated=estimated,
            limited=limited,
            scheduled={} if migration is None else migration.scheduled_replicas,
            avoid_disruption=unit.avoid_disruption,
            keep_unschedulable=migration is not None and migration.keep_unschedulable,
        )
        plan = plan_with_trials(plan_binpack, demand, offers_of(unit), steps)
        explanation: dict[str, Any] = {"steps": steps}
        if estimated:
            explanation["estimated"] = dict(estimated)
        if plan.overflow:
            explanation["overflow"] = plan.overflow
        totals = plan.totals()
        return Division({name: totals[name] for name in names if totals.get(name)}, explanation)
