"""Score: prefer clusters that are already well used, to leave others empty. Off by default.

The counterpart of ClusterResourcesLeastAllocated, with the same weights: cpu and memory 1, GPUs 4, everything else 1.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import ScorePlugin, Shaped
from federation.scheduling.framework.scores import SCORE_MAX, resources_in_play
from federation.scheduling.framework.types import NVIDIA_GPU, Cluster, SchedulingUnit, Status

_WEIGHTS = {NVIDIA_GPU: 4}


class ClusterResourcesMostAllocated(ScorePlugin, Shaped):
    """Scores the weighted mean of the used shares, in whole points."""

    NAME: ClassVar[str] = "ClusterResourcesMostAllocated"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        points = weights = 0
        for name in resources_in_play(unit.request):
            weight = _WEIGHTS.get(name, 1)
            weights += weight
            capacity, used = cluster.allocatable.get(name, 0), cluster.used(name) + unit.request.get(name, 0)
            if capacity > 0 and used <= capacity:
                points += weight * max(0, used * SCORE_MAX // capacity)
        return points // weights

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request only."""
        return frozenset(unit.request.items())
