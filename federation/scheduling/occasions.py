"""The inputs of an assessment that are not objects: its occasion, and what other workloads mean for it.

`assessment.assess` reads them; a replay gets them from records. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from federation.scheduling.framework.quotaheadroom import QUOTA, Quota
from federation.scheduling.framework.relations import RELATIONS, Relation
from federation.scheduling.framework.types import Assumed, SchedulingUnit
from federation.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """How scheduling units are built."""

    counts_cpu_and_memory: bool = True
    """Whether cpu and memory requests count; KubeAdmiral counts only GPUs and reclaimed Katalyst resources."""
    toleration_s: int = 300
    """How long a policy without its own toleration tolerates a cluster that is not ready or unreachable."""


@dataclass(frozen=True, slots=True)
class Occasion:
    """The inputs of an assessment besides objects: its time, and what the scheduler remembers about the object.

    `is_unschedulable`: its last decision was unsuccessful. `can_place_more`: it left replicas unplaced, or in a group
    from which they may return, and its queueing hint has matched since. `is_plugin_back`: a plugin that it ignored may
    be back. `homes`: clusters that replicas left when they were lost, and may return to. `completes`: its placement
    lacks clusters that are stable now. `away` are the clusters that required partners have left. `assumed`: replicas
    that no report shows. `recorded`: what other workloads meant, for a replay.
    """

    now: datetime
    is_unschedulable: bool = False
    can_place_more: bool = False
    is_plugin_back: bool = False
    homes: frozenset[str] = frozenset()
    completes: bool = False
    away: tuple[str, ...] = ()
    assumed: Assumed | None = None
    recorded: "Surroundings | None" = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The meaning of other workloads for a recorded decision: see `Occasion.away` and the fields of the unit."""

    away: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    quota: Callable[[SchedulingUnit, Snapshot], Quota | None] = lambda *_: None

    def related(self, unit: SchedulingUnit) -> SchedulingUnit:
        """Return the unit with its relations."""
        return RELATIONS.on(unit, self.relations) if self.relations else unit

    def limited(self, unit: SchedulingUnit, snapshot: Snapshot) -> SchedulingUnit:
        """Return the unit with its quota."""
        quota = self.quota(unit, snapshot)
        return unit if quota is None else QUOTA.on(unit, quota)
