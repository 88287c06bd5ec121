"""Decide which subsets of an adaptive UnitedDeployment are unschedulable, without reserved pods. Pure.

A subset becomes unschedulable when one of its pods waited too long for a node, and schedulable again after a fixed
time. The condition Schedulable of the subset's status stores the decision. `reservation.py` decides for strategies that
reserve pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import Condition, find, set_condition
from federation.features.uniteddeployment.names import REASON_SUBSET_RECOVERED, REASON_SUBSET_RESCHEDULE
from federation.features.uniteddeployment.rules.strategy import Strategy
from federation.features.uniteddeployment.rules.subsetpods import Pod, check_deadline, check_pending, soonest


@dataclass(frozen=True, slots=True)
class Schedulability:
    """The decision for one subset: its conditions, the pods that waited too long, and when to decide again."""

    conditions: list[Condition]
    is_schedulable: bool = True
    pending: int = 0
    requeue_after_s: float | None = None


def decide_schedulability(
    conditions: Sequence[Mapping[str, Any]] | None,
    workload_status: Mapping[str, Any],
    pods: Iterable[Pod],
    strategy: Strategy,
    now: datetime,
) -> Schedulability:
    """Decide for one subset from its earlier conditions, its workload's status and the workload's pods.

    Pods are read only while fewer replicas are ready than exist.
    """
    updated = [dict(condition) for condition in conditions or ()]
    delays_s: list[float | None] = []
    is_schedulable = True
    if not is_schedulable_by(updated):
        condition = find(updated, names.SUBSET_SCHEDULABLE) or {}
        recovery = check_deadline(
            parse_rfc3339(condition.get("lastTransitionTime")) or datetime.min.replace(tzinfo=now.tzinfo),
            strategy.unschedulable_s,
            now,
        )
        is_schedulable = not recovery.remaining_s
        if is_schedulable:
            updated = mark(updated, now, REASON_SUBSET_RECOVERED, is_schedulable=True)
        delays_s.append(recovery.remaining_s or None)
    pending = 0
    if (workload_status.get("readyReplicas") or 0) < (workload_status.get("replicas") or 0):
        waits = [check_pending(pod, strategy.reschedule_after_s, now) for pod in pods]
        pending = sum(wait.is_over for wait in waits)
        delays_s += [wait.remaining_s for wait in waits]
        if pending:
            is_schedulable = False
            updated = mark(updated, now, REASON_SUBSET_RESCHEDULE, is_schedulable=False)
            delays_s.append(strategy.unschedulable_s)
    return Schedulability(updated, is_schedulable, pending, soonest(delays_s))


def is_schedulable_by(conditions: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return False if the condition Schedulable is False."""
    condition = find(conditions, names.SUBSET_SCHEDULABLE)
    return condition is None or condition.get("status") != "False"


def mark(conditions: list[Condition], now: datetime, reason: str, *, is_schedulable: bool) -> list[Condition]:
    """Return the conditions with Schedulable set; the same list when nothing changed."""
    status = "True" if is_schedulable else "False"
    return set_condition(conditions, type_=names.SUBSET_SCHEDULABLE, status=status, reason=reason, now=now)
