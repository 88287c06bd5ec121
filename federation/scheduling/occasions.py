"""The inputs of an assessment that are not objects: its occasion, and what other workloads mean for it.

`attempt.assess` reads them; a replay gets them from records. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from federation.scheduling.framework.relations import Relation
from federation.scheduling.framework.types import Quota, SchedulingUnit
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

    See `assess` for their meaning. `away` are the clusters that required partners have left.
    """

    now: datetime
    is_unschedulable: bool = False
    can_place_more: bool = False
    is_plugin_back: bool = False
    homes: frozenset[str] = frozenset()
    completes: bool = False
    away: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The meaning of other workloads for a recorded decision: see `Occasion.away` and the fields of the unit."""

    away: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()
    quota: Callable[[SchedulingUnit, Snapshot], Quota | None] = lambda *_: None

    def related(self, unit: SchedulingUnit) -> SchedulingUnit:
        """Return the unit with its relations."""
        return replace(unit, relations=self.relations) if self.relations else unit

    def limited(self, unit: SchedulingUnit, snapshot: Snapshot) -> SchedulingUnit:
        """Return the unit with its quota."""
        quota = self.quota(unit, snapshot)
        return unit if quota is None else replace(unit, quota=quota)
