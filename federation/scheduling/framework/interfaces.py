"""The four extension points of the scheduler framework (docs/reference/scheduling.md).

Part of the public plugin API. In the order of a scheduling cycle: Filter decides which clusters can take the unit,
Score how well each of them suits, Select which of them are used, Replicas how many replicas each gets. A plugin is a
class with a `NAME`, built with the arguments of its profile (`pluginConfig`), with the methods of at least one of them.

Rules for every method: a pure function of its arguments (no I/O, clock, randomness, logging), fast, deterministic, and
without changes to its arguments. A rejection is a `Status`, not an exception; an exception that escapes counts as this
plugin's failure, and the last placement stays.

A plugin may also have `filter_each` or `score_each`: the same with all clusters at once, and a sequence of results in
the same order (`clustergroup.py` has columns for that). Which of the two is called makes no difference but in cost: a
`filter_each` that depends on resources is called in every cycle, in place of results that are kept by cluster.

A plugin that needs I/O has `filter_clusters`, `score_clusters` (both with all clusters at once), `select_clusters` or
`replicas_of_clusters` instead. It is a generator (`types.Exchange`): it yields requests, is resumed with the responses
in the same order, and returns the statuses or raw scores in the order of the clusters, or what `select` or `replicas`
return. The caller of the engine does the I/O, so that the engine never waits. With `is_ignorable` set on the plugin a
cycle continues without it when it fails (`failurePolicy: Ignore`).
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Protocol

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.types import (
    Cluster,
    ClusterChange,
    ClusterScore,
    Division,
    SchedulingUnit,
    Status,
)

Arguments = dict[str, Any]
"""`pluginConfig[].args` of a SchedulingProfile."""


class Plugin(Protocol):
    """Every plugin. It is created once per profile with `Class.from_args(args)`, or `Class()` without that method."""

    NAME: ClassVar[str]


class FilterPlugin(Plugin, Protocol):
    """Decides whether a cluster can take the unit."""

    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.ANY
    """Changes of a rejected cluster that can make it feasible. An unschedulable unit is scheduled again after them.

    Changes of the unit or its policy need not be named: they always count.
    """
    DEPENDS_ON_CURRENT: ClassVar[bool] = False
    """Whether results differ for clusters that run the unit (`unit.current`). Results for them are cached separately.

    The cache key then need not contain the current clusters, which hardly two units share. The filter must not depend
    on their replica counts or on other clusters.
    """
    IS_LENIENT: ClassVar[bool] = False
    """Whether the filter rejects no cluster when it would reject all remaining ones."""

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return SUCCESS to pass the cluster.

        Called for every joined cluster that all earlier filters passed. UNSCHEDULABLE rejects the cluster and its
        reasons are shown to the user; ERROR fails the decision.
        """
        ...


class ScorePlugin(Plugin, Protocol):
    """Scores how well a feasible cluster suits the unit."""

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return a score, higher is better: 0..100 after `normalise`, which must bring it there if it is not.

        Called for every feasible cluster. A Status that is no success fails the decision.
        """
        ...


class ScoreNormaliser(Protocol):
    """Optional for Score plugins: score normalization, for raw scores that are relative to each other."""

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Return as many scores, each 0..100, in the same order. Called once with all raw scores of this plugin."""
        ...


class SelectPlugin(Plugin, Protocol):
    """Selects and orders clusters."""

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return the selected clusters, in order. Select plugins are chained: each gets the result of the one before.

        It may reorder, drop and change scores, not add clusters. A Status that is no success fails the decision.
        """
        ...


class ReplicasPlugin(Plugin, Protocol):
    """Divides replicas in Divide mode. Only the first one of a profile runs."""

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return the replicas per selected cluster, none negative. Called only when more than 0 are wanted."""
        ...


class Cacheable(Protocol):
    """Optional for Filter and Score plugins: lets the framework reuse their results."""

    DEPENDS_ON_RESOURCES: ClassVar[bool] = True
    """Whether results depend on the cluster's resources, which change with every report, or on `Cluster.source`.

    Without that, results for a cluster are reused until its labels, annotations, taints, API types or readiness change.
    """

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Return everything of the unit that the results depend on; None when they must not be reused.

        Two units with equal keys get the same result for the same cluster, whatever the other clusters are, and the
        same scores from `normalise`. `filter_cache_key` and `score_cache_key` replace it for a plugin whose filter and
        score depend on different fields. A Select plugin may have a `select_cache_key`: units with equal keys get the
        same result for the same scores. Results are reused when every plugin of an extension point has a key. Remarks
        and values written to the state are not reused, so that a plugin that makes any has no key.
        """
        ...
