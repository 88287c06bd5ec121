"""Filter and score: clusters by their labels and names.

Filter: the cluster must have every label of `spec.clusterSelector` and match at least one of the required affinity
terms (`spec.clusterAffinity`). Score: the normalized sum of the weights of matching preferred terms, which only an
annotation can set. A malformed term matches nothing.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from federation.apimachinery.selectors import SelectorError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin, ScoreNormaliser, ScorePlugin
from federation.scheduling.framework.normalization import normalise_to_max
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_NO_MATCH = unschedulable("cluster(s) didn't match cluster selector")


class ClusterAffinity(FilterPlugin, ScorePlugin, ScoreNormaliser, Cacheable):
    """Accepts clusters with the required labels, and prefers those that match preferred terms."""

    NAME: ClassVar[str] = "ClusterAffinity"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.LABELS
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster that selector or required terms do not match."""
        for key, value in unit.affinity.cluster_selector:
            if cluster.labels.get(key) != value:
                return _NO_MATCH
        if unit.affinity.required is None:
            return SUCCESS
        try:
            return SUCCESS if unit.affinity.required.matches(cluster.name, cluster.labels) else _NO_MATCH
        except SelectorError:
            return _NO_MATCH

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return the sum of the weights of the preferred terms that match."""
        if not unit.affinity.preferred:
            return 0
        try:
            return sum(
                entry.weight for entry in unit.affinity.preferred if entry.term.matches(cluster.name, cluster.labels)
            )
        except SelectorError as error:
            return unschedulable(f"preferred affinity: {error}")

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Scale the scores so that the best is 100."""
        return normalise_to_max(scores)

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on selector and affinity only."""
        return (unit.affinity.cluster_selector, unit.affinity.required, unit.affinity.preferred)
