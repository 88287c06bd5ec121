"""Select: the best `spec.maxClusters` clusters, spread over domains according to `spec.topologySpread`.

With topology constraints the best clusters of each domain are selected, in numbers that satisfy the constraints. Divide
mode prefers an even choice and enforces nothing here, because replicas are divided later.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import SelectPlugin
from federation.scheduling.framework.normalization import best_first
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD, choose_clusters
from federation.scheduling.framework.types import ClusterScore, SchedulingMode, SchedulingUnit, Status, unschedulable


class MaxCluster(SelectPlugin):
    """Selects the first `max_clusters` clusters by score, then name; all without a limit."""

    NAME: ClassVar[str] = "MaxCluster"

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return the best clusters."""
        if unit.max_clusters is not None and unit.max_clusters < 0:
            return unschedulable("max cluster is less than 0")
        best = best_first(scored)
        if TOPOLOGY_SPREAD.of(unit) and (unit.max_clusters is not None or unit.mode is SchedulingMode.DUPLICATE):
            chosen, because = choose_clusters(unit, best)
            if not because:
                return chosen
            names = {entry.cluster.name for entry in chosen}
            for entry in scored:
                if entry.cluster.name not in names:
                    state.remark(self.NAME, entry.cluster.name, f"no place within {because}")
            return chosen or unschedulable(f"no cluster has a place within {because}")
        return best if unit.max_clusters is None else best[: unit.max_clusters]

    def select_cache_key(self, unit: SchedulingUnit) -> Hashable:
        """The result depends on the limit only, unless there are topology constraints."""
        return None if TOPOLOGY_SPREAD.of(unit) else ("at most", unit.max_clusters)
