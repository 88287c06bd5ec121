"""Find the clusters that replicas may return to after a loss. Pure.

A cluster must be ready and without a taint of ours for `stable_s`, and the copy that it still held must be gone: until
then it would run beside the replicas that replaced it. Then replicas return in batches. A drained cluster is treated
alike from the end of the drain on.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from federation.api import names
from federation.apimachinery.clock import is_ahead
from federation.planning.clusters.ruledtaints import ruled_taints, taint_id
from federation.planning.failover.evictionrecord import EvictionRecord
from federation.planning.failover.halts import state_of
from federation.planning.failover.tolerance import Returning

_OURS = frozenset((names.TAINT_NOT_READY, names.TAINT_UNREACHABLE, names.TAINT_UNSCHEDULABLE, names.TAINT_DRAIN))


@dataclass(frozen=True, slots=True)
class Returns:
    """Replicas that may return now by cluster, 0 for those that have to wait; `wait_s` is until the next ones may."""

    allowed: Mapping[str, int] = field(default_factory=dict)
    wait_s: float | None = None

    @property
    def homes(self) -> frozenset[str]:
        """The clusters that replicas may return to now."""
        return frozenset(name for name, count in self.allowed.items() if count)


def may_return(returning: Returning | None, *, has_state: bool, clusters: int, clusters_max: int | None) -> bool:
    """Return whether an object that is in so many clusters may return to those that it left when they were lost.

    Unless its policy says so, it takes no place from a cluster in which it runs. One with state has left it at home.
    """
    if returning is not None:
        return returning is Returning.ALWAYS
    return has_state or clusters_max is None or clusters < clusters_max


def plan_returns(
    record: EvictionRecord,
    cluster_of: Callable[[str], Mapping[str, Any] | None],
    departed: frozenset[str],
    now: datetime,
    *,
    batch: int,
    stable_s: float,
    interval_s: float,
) -> Returns:
    """Return what may return of an object; clusters that do not exist any more are omitted.

    `departed` are the clusters that may still have the member object although it is not placed there.
    """
    allowed: dict[str, int] = {}
    times = []
    for name, count in record.left.items():
        cluster = cluster_of(name)
        if cluster is None:
            continue
        allowed[name] = 0
        state = state_of(cluster)
        if state is None or not state.is_ready or has_taint_of_ours(cluster) or name in departed:
            continue  # an event says when that changes
        at = state.since + timedelta(seconds=stable_s)
        if record.returned_at is not None and not is_ahead(record.returned_at, now):
            at = max(at, record.returned_at + timedelta(seconds=interval_s))
        if at <= now:
            allowed[name] = min(count, batch)
        else:
            # A time of a wrong clock is corrected meanwhile.
            times.append(min((at - now).total_seconds(), max(stable_s, interval_s)))
    return Returns(allowed, min(times, default=None))


def has_taint_of_ours(cluster: Mapping[str, Any]) -> bool:
    """Return whether the cluster is not healthy, drained or cordoned by the federation, or tainted by a rule."""
    ruled = ruled_taints(cluster)
    taints = (cluster.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") in _OURS or taint_id(taint) in ruled for taint in taints)
