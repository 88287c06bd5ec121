"""One decision's bookkeeping, and what the extension points come to.

The runner makes them, the engine and the explanation read them. What plugins themselves carry through a decision is in
`cyclestate.py`. Read `runner.py` next.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from federation.base.errors import PluginError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.scores import Totals
from federation.scheduling.framework.types import (
    Cluster,
    SchedulingUnit,
    Status,
)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A plugin that failed and that the decision went on without, where and why."""

    point: str
    plugin: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Filtered:
    """What the filters left, and who took out which cluster why.

    `positions` are those of the feasible clusters in the snapshot: as long as the same ones are, it is the same object.
    `is_usual`: most units of this shape are left with the same clusters, wherever they are now.
    """

    feasible: tuple[Cluster, ...]
    rejected: Mapping[str, Status]
    positions: tuple[int, ...] = ()
    is_usual: bool = True


@dataclass(frozen=True, slots=True)
class PluginScores:
    """One plugin's scores, in the order of the feasible clusters."""

    plugin: str
    weight: int
    raw: tuple[int, ...]
    normalised: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """The feasible clusters with their totals, and how these came about.

    `selected` keeps what select plugins made of them, by shapes of units: clusters in order, and each plugin's answer.
    """

    totals: Totals
    parts: tuple[PluginScores, ...]
    selected: dict[Hashable, tuple[tuple[Cluster, ...], tuple["Selection", ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Selection:
    """The answer of one select plugin: cluster names in order."""

    plugin: str
    clusters: tuple[str, ...]


@dataclass(slots=True)
class Cycle:
    """The question, the plugins' state, and who is being asked right now."""

    unit: SchedulingUnit
    clusters: tuple[Cluster, ...]
    state: CycleState
    point: str = ""
    plugin: str = ""
    selections: list[Selection] = field(default_factory=list)
    ignored: list[Ignored] = field(default_factory=list)


class PluginFailed(PluginError):
    """A plugin answered ERROR, or something that the protocol forbids; `status` names it."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"{status.plugin}: {'; '.join(status.reasons)}")
        self.status = status


class Unselectable(PluginError):
    """A plugin behind the filters answered UNSCHEDULABLE: no cluster can be taken."""

    def __init__(self, status: Status) -> None:
        super().__init__("; ".join(status.reasons))
        self.status = status
