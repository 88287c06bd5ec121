"""The state of one scheduling cycle and the results of its extension points.

The runner creates the results; the engine and the explanation read them. Data that plugins pass on within a cycle is in
`cyclestate.py`. Read `runner.py` next.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from federation.apimachinery.errors import PluginError
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.normalization import Totals
from federation.scheduling.framework.types import SchedulingUnit, Status


@dataclass(frozen=True, slots=True)
class IgnoredPlugin:
    """A failed plugin that the cycle continued without, with its extension point and reasons."""

    point: str
    plugin: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FilterResult:
    """The feasible clusters, and the rejecting filter's status for each of the others.

    `positions` are those of the feasible clusters in the snapshot; the tuple is the same object as long as they are.
    `ignores_current`: the unit's current clusters made no difference, so that most units with its cache key share it.
    """

    feasible: ClusterGroup
    rejected: Mapping[str, Status]
    positions: tuple[int, ...] = ()
    ignores_current: bool = True

    def without(self, rejected: Mapping[str, Status]) -> "FilterResult":
        """Return the result without feasible clusters that a step rejects for one unit, and with their statuses."""
        if not rejected:
            return self
        left = [at for at, cluster in enumerate(self.feasible) if cluster.name not in rejected]
        return FilterResult(
            self.feasible.subset(left),
            {**self.rejected, **rejected},
            tuple([self.positions[at] for at in left]),
            ignores_current=False,
        )


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's raw and normalized scores, in the order of the feasible clusters."""

    plugin: str
    weight: int
    raw: tuple[int, ...]
    normalised: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The feasible clusters with their total scores, and each plugin's part.

    `selected` caches the results of the select plugins by cache key: the clusters in order, and each plugin's result.
    """

    totals: Totals
    parts: tuple[PluginScores, ...]
    selected: dict[Hashable, tuple[ClusterGroup, tuple["SelectResult", ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SelectResult:
    """The result of one select plugin: cluster names in order."""

    plugin: str
    clusters: tuple[str, ...]


@dataclass(slots=True)
class SchedulingCycle:
    """One scheduling cycle: unit, clusters, plugin state, and the extension point and plugin that run now."""

    unit: SchedulingUnit
    clusters: ClusterGroup
    state: CycleState
    point: str = ""
    plugin: str = ""
    selections: list[SelectResult] = field(default_factory=list)
    ignored: list[IgnoredPlugin] = field(default_factory=list)


class PluginFailed(PluginError):
    """A plugin returned ERROR or an invalid result; `status` names the plugin."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"{status.plugin}: {'; '.join(status.reasons)}")
        self.status = status


class UnschedulableError(PluginError):
    """A plugin after the filters returned UNSCHEDULABLE: no cluster can be selected."""

    def __init__(self, status: Status) -> None:
        super().__init__("; ".join(status.reasons))
        self.status = status
