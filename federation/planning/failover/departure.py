"""Whether the replicas of an object may leave one cluster now: its taints, the halts, the policy, the budgets. Pure.

A cluster with our taint `drain`, or with a NoExecute taint of a ClusterTaintPolicy or Remedy, is emptied on request:
its pods run, and make room step by step. A cluster with one of our other NoExecute taints is lost: its pods may or may
not run. One that is not ready for a reason of ours is neither, whatever taints it has: only a drain empties it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from federation.api import names
from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.planning.changehold import Hold
from federation.planning.clusters.ruledtaints import ruled_taints, taint_id
from federation.planning.failover.evictionrecord import Stay, StayReason
from federation.planning.failover.halts import state_of
from federation.planning.failover.tolerance import FailoverMode, FailoverRules, Tolerance

_LOST = frozenset((names.TAINT_NOT_READY, names.TAINT_UNREACHABLE))
_NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Evicting:
    """A cluster with a NoExecute taint of ours: since when, whether by a drain, and whether it is ready."""

    name: str
    since: datetime
    is_drained: bool
    is_ready: bool
    lost_at: datetime | None = None
    """When it was lost; None while it is ready."""
    fault: str = ""
    """Why it is not ready although it is not lost, "" for any other cluster."""

    @property
    def is_lost(self) -> bool:
        """Whether replicas leave because the cluster is lost, and not on request."""
        return not (self.is_drained or self.is_ready or self.fault)


def evicting_of(cluster: Mapping[str, Any]) -> Evicting | None:
    """Return what empties a FederatedCluster, None without a NoExecute taint of ours or of a rule.

    A rule drains a cluster that is ready. One that is not ready is lost: halts hold for it.

    A taint without a time was there before every condition that counts.
    """
    ruled = ruled_taints(cluster)
    taints = [
        taint
        for taint in (cluster.get("spec") or {}).get("taints") or ()
        if taint.get("effect") == _NO_EXECUTE
        and (taint.get("key") in _LOST | {names.TAINT_DRAIN} or taint_id(taint) in ruled)
    ]
    if not taints:
        return None
    state = state_of(cluster)
    is_ready = state is not None and state.is_ready
    is_at_fault = state is not None and not is_ready and not state.is_lost
    drained = [taint for taint in taints if taint.get("key") == names.TAINT_DRAIN]
    lost = [taint for taint in taints if taint.get("key") in _LOST]
    if is_ready and not drained:
        drained = [taint for taint in taints if taint.get("key") not in _LOST]
    return Evicting(
        str(cluster["metadata"]["name"]),
        # What a drained cluster that is lost has to wait for counts from its loss, and not from the drain before it.
        max(_since(group) for group in (drained or taints, lost) if group),
        bool(drained),
        is_ready,
        None if is_ready or state is None else state.since,
        state.reason if is_at_fault and state is not None else "",
    )


def stay_of(
    evicting: Evicting,
    tolerance: Tolerance,
    rules: FailoverRules,
    halt: Hold | None,
    now: datetime,
    *,
    settle_s: float,
    blocked: str = "",
    began_at: datetime | None = None,
) -> Stay | None:
    """Return why replicas stay in the cluster, None if they may leave now.

    `settle_s` is how long a lost cluster waits for the loss of further ones, and after `began_at`, when this process
    began to look: its members have to get a chance to answer it. `blocked` says which
    ClusterDisruptionBudget does not allow the drain, "" for none.
    """
    if not tolerance.may_leave:
        return _refusal(tolerance, rules)
    if not evicting.is_drained and evicting.is_ready:
        return Stay(StayReason.READY, "the cluster is ready; its taints are about to be removed")
    if not evicting.is_drained and evicting.fault:
        return Stay(StayReason.HALTED, not_lost(evicting))
    if evicting.is_drained and blocked:
        return Stay(StayReason.BUDGET, blocked)
    if not evicting.is_ready and tolerance.grace_s > 0:
        until = evicting.since + timedelta(seconds=tolerance.grace_s)
        if now < until:
            return Stay(StayReason.GRACE, f"the grace time ends at {to_rfc3339(until)}", until)
    if evicting.is_drained:
        return None
    if halt is not None:
        return Stay(StayReason.HALTED, halt.message, halt.until)
    lost_at = evicting.lost_at or evicting.since
    until = max(lost_at, began_at or lost_at) + timedelta(seconds=settle_s)
    return Stay(StayReason.HALTED, "further clusters may be lost too", until) if now < until else None


def stay_of_volumes(volumes: str) -> Stay:
    """Return why replicas stay whose volumes would stay behind without an approval."""
    return Stay(StayReason.STATE, f"{volumes} do not move with it, and no approval lets it start with empty volumes")


def not_lost(evicting: Evicting) -> str:
    """Return why nothing leaves a cluster that is not ready for a reason of ours."""
    return f"nothing shows that the cluster is lost ({evicting.fault}); to empty it: fedctl drain {evicting.name}"


def _refusal(tolerance: Tolerance, rules: FailoverRules) -> Stay:
    if tolerance.is_kept:
        return Stay(StayReason.KEPT, tolerance.state)
    if rules.mode is FailoverMode.NEVER:
        return Stay(StayReason.NEVER, "its policy says failover.mode: Never")
    return Stay(StayReason.STATE, f"{tolerance.state}; with failover.mode: Auto its policy lets it leave")


def _since(taints: Iterable[Mapping[str, Any]]) -> datetime:
    return min(_time_of(taint.get("timeAdded")) for taint in taints)


def _time_of(text: Any) -> datetime:
    try:
        return from_rfc3339(str(text))
    except ValueError:
        return from_rfc3339("1970-01-01T00:00:00Z")
