"""Count the pods of a workload that a member's scheduler placed, and those that wait for a node for too long. Pure.

A waiting pod is unschedulable once its condition PodScheduled=False, Unschedulable is as old as the threshold. The
count includes the time until the next pod crosses it. Pods that are being deleted or have ended do not count. Input are
full pods or those of `runtime/transforms.py`.

Reference: docs/reference/auto-migration.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from federation.planning.clusters.clusterresources import has_ended

_SCHEDULED = "PodScheduled"
_UNSCHEDULABLE = "Unschedulable"
_COMPARED = ("status", "reason", "message", "lastProbeTime", "lastTransitionTime")


@dataclass(frozen=True, slots=True)
class PodCount:
    """Pods of one workload in one member: all live ones, those with a node, those that wait for too long."""

    total: int = 0
    scheduled: int = 0
    unschedulable: int = 0
    next_crossing_s: float | None = None
    """Seconds until the next waiting pod counts as unschedulable; None when none waits."""


def count_pods(pods: Iterable[Mapping[str, Any]], now: datetime, threshold_s: float) -> PodCount:
    """Count the pods of one workload; a pod exactly at the threshold counts as unschedulable."""
    total = scheduled = unschedulable = 0
    next_crossing_s: float | None = None
    for pod in pods:
        if not is_live(pod):
            continue
        total += 1
        condition = scheduled_condition(pod) or {}
        if condition.get("status") == "True" or (pod.get("spec") or {}).get("nodeName"):
            scheduled += 1
        elif condition.get("status") == "False" and condition.get("reason") == _UNSCHEDULABLE:
            remaining_s = threshold_s - _age_s(condition.get("lastTransitionTime"), now)
            if remaining_s <= 0:
                unschedulable += 1
            elif next_crossing_s is None or remaining_s < next_crossing_s:
                next_crossing_s = remaining_s
    return PodCount(total, scheduled, unschedulable, next_crossing_s)


def count_replica_set(
    replica_set: Mapping[str, Any], waiting: Iterable[Mapping[str, Any]], now: datetime, threshold_s: float
) -> PodCount:
    """Count the pods of a ReplicaSet by its status, which has the live ones, and its pods without a node."""
    found = count_pods(waiting, now, threshold_s)
    total = max((replica_set.get("status") or {}).get("replicas") or 0, found.total)
    return PodCount(total, total - found.total + found.scheduled, found.unschedulable, found.next_crossing_s)


def is_live(pod: Mapping[str, Any]) -> bool:
    """Return True unless the pod has ended or is being deleted."""
    return not (pod.get("metadata") or {}).get("deletionTimestamp") and not has_ended(pod)


def scheduled_condition(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the pod's PodScheduled condition."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == _SCHEDULED:
            found: Mapping[str, Any] = condition
            return found
    return None


def waits_for_node(pod: Mapping[str, Any]) -> bool:
    """Return True for a pending pod that the scheduler has found no node for."""
    metadata, status, condition = pod.get("metadata") or {}, pod.get("status") or {}, scheduled_condition(pod) or {}
    return (
        not metadata.get("deletionTimestamp")
        and status.get("phase") == "Pending"
        and not (pod.get("spec") or {}).get("nodeName")
        and condition.get("status") == "False"
        and condition.get("reason") == "Unschedulable"
    )


def has_scheduling_changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Return True if the PodScheduled condition was added, removed or changed."""
    before, after = scheduled_condition(old), scheduled_condition(new)
    if before is None or after is None:
        return before is not after
    return any((before.get(key) or "") != (after.get(key) or "") for key in _COMPARED)


def _age_s(since: Any, now: datetime) -> float:
    """Return the seconds since a Kubernetes time; infinity for a missing or malformed one."""
    try:
        parsed = datetime.fromisoformat(str(since))
    except ValueError:
        return float("inf")
    return (now - (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC))).total_seconds()
