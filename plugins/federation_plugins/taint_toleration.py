"""Filter and score: clusters by their taints.

Filter: an untolerated NoSchedule or NoExecute taint rejects the cluster; for the unit's current clusters only NoExecute
counts. A NoExecute taint that was tolerated for a time rejects the cluster when the time is over. Score: fewer
untolerated PreferNoSchedule taints are better.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin, ScoreNormaliser, ScorePlugin
from federation.scheduling.framework.moving import ENDED_TOLERATIONS
from federation.scheduling.framework.normalization import normalise_to_max
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterChange,
    Effect,
    SchedulingUnit,
    Status,
    unschedulable,
)


class TaintToleration(FilterPlugin, ScorePlugin, ScoreNormaliser, Cacheable):
    """Rejects clusters whose taints the unit does not tolerate."""

    NAME: ClassVar[str] = "TaintToleration"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.TAINTS | ClusterChange.READINESS
    DEPENDS_ON_CURRENT: ClassVar[bool] = True
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster with the first untolerated taint as the reason."""
        for taint in cluster.taints:
            is_relevant = taint.effect == Effect.NO_EXECUTE or (
                taint.effect == Effect.NO_SCHEDULE and cluster.name not in unit.current
            )
            if is_relevant and not unit.tolerates(taint):
                return unschedulable(
                    f"cluster(s) had taint {{{taint.key}: {taint.value}}}, that the schedulingUnit didn't tolerate"
                )
        ended = ENDED_TOLERATIONS.of(unit).get(cluster.name)
        if ended is not None:
            return unschedulable(
                f"cluster(s) had taint {{{ended.key}: {ended.value}}}, that the schedulingUnit tolerated until now"
            )
        return SUCCESS

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return the number of untolerated PreferNoSchedule taints."""
        if not cluster.taints:
            return 0
        tolerations = [item for item in unit.tolerations if item.effect in ("", Effect.PREFER_NO_SCHEDULE)]
        return sum(
            taint.effect == Effect.PREFER_NO_SCHEDULE and not any(item.tolerates(taint) for item in tolerations)
            for taint in cluster.taints
        )

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Reverse the counts: no taint is 100, the highest count 0."""
        return normalise_to_max(scores, is_reversed=True)

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on tolerations, and on those that ended."""
        ended = ENDED_TOLERATIONS.of(unit)
        return (unit.tolerations, frozenset(ended.items())) if ended else unit.tolerations
