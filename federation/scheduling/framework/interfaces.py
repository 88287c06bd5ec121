"""The four extension points: what a scheduler plugin is (spec §6.1).

Part of the public plugin API. In the order of a decision: Filter says which clusters can take the unit, Score how well
each of those suits, Select which of them are taken, Replicas how many replicas each gets. A plugin is a class with a
`NAME`, built with the arguments of its profile (`pluginConfig`), that has the methods of at least one of them.

Rules for every method: a pure function of its arguments (no I/O, clock, randomness, logging), quick, deterministic, and
never changing what it was given. A value that says "no" is a `Status`, not an exception; an exception that escapes is
reported as this plugin's failure and the last placement stays.

A plugin whose answer lies elsewhere implements the `…Clusters` variant as a generator: it yields the requests it wants
made and is resumed with the responses; whoever drives the engine does the I/O. So the engine never waits.
"""

from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.types import (
    Change,
    Cluster,
    ClusterScore,
    Division,
    Exchange,
    SchedulingUnit,
    Status,
)

Arguments = dict[str, Any]
"""`pluginConfig[].args` of a SchedulingProfile."""


class Plugin(Protocol):
    """What every plugin has. It is made once per profile with `Class.from_args(args)`, or `Class()` without that."""

    NAME: ClassVar[str]


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says whether a cluster can take the unit."""

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return SUCCESS to let the cluster pass.

        Called for every joined cluster that all filters before it let pass. UNSCHEDULABLE takes the cluster out of this
        decision and its reasons are shown to the user; ERROR fails the decision.
        """
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Says how well a feasible cluster suits the unit."""

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return a score, higher is better: 0..100 after `normalise`, which must bring it there if it is not.

        Called for every feasible cluster. A Status that is no success fails the decision.
        """
        ...


@runtime_checkable
class ScoreNormaliser(Protocol):
    """An addition to ScorePlugin for those whose raw scores are relative to each other."""

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Return as many scores, each 0..100, in the same order. Called once with all raw scores of this plugin."""
        ...


@runtime_checkable
class SelectPlugin(Plugin, Protocol):
    """Chooses and orders the clusters that are taken."""

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return the clusters to go on with, in order. Select plugins are chained: each gets the one before's answer.

        It may reorder, drop and change scores, not add clusters. A Status that is no success fails the decision.
        """
        ...


@runtime_checkable
class ReplicasPlugin(Plugin, Protocol):
    """Divides replicas in Divide mode. Only the first one of a profile runs."""

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return the replicas per selected cluster, none negative. Called only when more than 0 are wanted."""
        ...


@runtime_checkable
class FilterClustersPlugin(Plugin, Protocol):
    """A filter that answers for all clusters at once, for instance over the network."""

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Sequence[Status]]:
        """Yield requests, get the responses in the same order, return one Status per cluster in the same order."""
        ...


@runtime_checkable
class ScoreClustersPlugin(Plugin, Protocol):
    """A score that answers for all clusters at once."""

    def score_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Sequence[int] | Status]:
        """Yield requests, return one raw score per cluster in the same order, or why there is none."""
        ...


@runtime_checkable
class SelectClustersPlugin(Plugin, Protocol):
    """A selection made elsewhere."""

    def select_clusters(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Exchange[Sequence[ClusterScore] | Status]:
        """Yield requests, return what `select` returns."""
        ...


@runtime_checkable
class ReplicasOfClustersPlugin(Plugin, Protocol):
    """A division made elsewhere."""

    def replicas_of_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Exchange[Division | Status]:
        """Yield requests, return what `replicas` returns."""
        ...


@runtime_checkable
class MayBeIgnored(Protocol):
    """An optional addition to every plugin: whether decisions go on without it when it fails (`failurePolicy: Ignore`).

    Then a failing filter lets every cluster pass, a failing score adds nothing, a failing select passes on what it got,
    and the next replicas plugin divides; the explanation says so. Without it a failure fails the decision.
    """

    is_optional: bool


@runtime_checkable
class Awaiting(Protocol):
    """An optional addition to Filter plugins: which changes of a cluster can turn its rejection there around.

    A unit without a feasible cluster is decided again when one of them happens to a cluster where this plugin rejected
    it, and not for others. Without it every change counts. What the unit or its policy say need not be named: a change
    of those is always followed.
    """

    AWAITS: ClassVar[Change]


@runtime_checkable
class Shaped(Protocol):
    """An optional addition to Filter and Score plugins that lets the engine reuse their answers."""

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Return all of the unit that the answers depend on, besides the cluster; None when they must not be reused.

        Two units with equal shapes get the same answer for the same cluster, whatever the other clusters are, and the
        same scores from `normalise`. A plugin whose filter and score look at different things may have `filter_shape`
        and `score_shape` instead. A Select plugin may have a `select_shape`: then two units with equal ones get the
        same answer for the same scores. Answers are reused where every plugin of an extension point tells its shape;
        what a plugin remarks or writes into the state is not, so that one that does has no shape.
        """
        ...


@runtime_checkable
class MindsCurrent(Protocol):
    """An optional addition to Shaped filters: the answer is another where the unit already is (`unit.current`).

    So that `shape` need not contain where that is, which hardly two units share: answers about clusters that the unit
    is in are kept apart. The filter must not look at how many replicas are there, or at other clusters.
    """

    MINDS_CURRENT: ClassVar[Literal[True]]


@runtime_checkable
class Lenient(Protocol):
    """An optional addition to Filter plugins: when it would take out all clusters that are left, it takes out none."""

    IS_LENIENT: ClassVar[Literal[True]]
