"""Decide which pods are reserved: unschedulable pods that stay while other subsets run substitutes. Pure.

A reserved pod carries the label `apps.kruise.io/united-deployment-reserved-pod: "true"`. It counts neither in
status.replicas nor for autoscalers. It stops being reserved after it has been ready for a while; then its substitute is
removed. Only Deployments and CloneSets can reserve pods.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import Condition
from federation.features.uniteddeployment.names import (
    REASON_NO_RESERVED_PODS,
    REASON_RECOVERED_SCALED_UP,
    REASON_RESERVED_PODS,
    RESERVED_POD_LABEL,
)
from federation.features.uniteddeployment.rules.schedulability import is_schedulable_by, mark
from federation.features.uniteddeployment.rules.strategy import Strategy
from federation.features.uniteddeployment.rules.subsetpods import (
    Pod,
    Wait,
    check_deadline,
    check_pending,
    ready_condition,
    revision_of,
    soonest,
)


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision that pods should have, and the time of its appearance."""

    name: str
    changed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PodReservation:
    """Whether a pod is reserved, and when to check it again."""

    is_reserved: bool
    recheck_after_s: float | None = None
    is_update_overdue: bool = False
    """Whether the pod is reserved because it has an old revision for too long."""


@dataclass(frozen=True, slots=True)
class SubsetReservation:
    """The reserved pods of one subset."""

    conditions: list[Condition]
    reserved: int = 0
    overdue_updates: int = 0
    labels: Mapping[str, str] | None = None
    """New values of the reserved label, by pod name, for pods that need another one."""
    was_schedulable: bool = True
    requeue_after_s: float | None = None

    @property
    def is_schedulable(self) -> bool:
        """Whether the subset has no reserved pod."""
        return not self.reserved


def check_reserved(pod: Pod, revision: Revision, strategy: Strategy, now: datetime) -> PodReservation:
    """Decide for one pod from its current label, its revision and its conditions."""
    has_revision = revision_of(pod) == revision.name
    if _label_of(pod) == "true":
        return _check_release(pod, strategy, now, has_revision=has_revision)
    if has_revision:
        wait = check_pending(pod, strategy.reschedule_after_s, now)
    elif pod["metadata"].get("deletionTimestamp"):
        wait = Wait(is_over=False)
    else:
        wait = check_deadline(revision.changed_at, strategy.reschedule_after_s, now)
    if wait.is_over:
        return PodReservation(
            is_reserved=True, recheck_after_s=strategy.unschedulable_s, is_update_overdue=not has_revision
        )
    return PodReservation(is_reserved=False, recheck_after_s=wait.remaining_s)


def _check_release(pod: Pod, strategy: Strategy, now: datetime, *, has_revision: bool) -> PodReservation:
    ready = ready_condition(pod)
    if not has_revision or ready is None or (pod.get("status") or {}).get("phase") != "Running":
        return PodReservation(is_reserved=True, recheck_after_s=strategy.unschedulable_s)
    wait = check_deadline(parse_rfc3339(ready.get("lastTransitionTime")), strategy.unschedulable_s, now)
    return PodReservation(is_reserved=not wait.is_over, recheck_after_s=wait.remaining_s)


def decide_reservations(
    conditions: Sequence[Mapping[str, Any]] | None,
    pods: Sequence[Pod],
    revision: Revision,
    strategy: Strategy,
    now: datetime,
    *,
    replicas: int = 0,
) -> SubsetReservation:
    """Decide for the pods of one subset. In an unschedulable subset, pods without the label are reserved at once.

    An unschedulable subset stays so while it has fewer pods than `replicas`, the number that its workload should have:
    its missing pods would otherwise not be reserved when they appear.
    """
    was_schedulable = is_schedulable_by(conditions)
    labels: dict[str, str] = {}
    delays_s: list[float | None] = []
    reserved = overdue = 0
    for pod in pods:
        label = _label_of(pod)
        if label is None and not was_schedulable:
            checked = PodReservation(is_reserved=True, recheck_after_s=strategy.unschedulable_s)
        else:
            checked = check_reserved(pod, revision, strategy, now)
        reserved += checked.is_reserved
        overdue += checked.is_update_overdue
        delays_s.append(checked.recheck_after_s)
        if label != to_label(is_reserved=checked.is_reserved):
            labels[pod["metadata"]["name"]] = to_label(is_reserved=checked.is_reserved)
    updated = [dict(condition) for condition in conditions or ()]
    if reserved:
        updated = mark(updated, now, REASON_RESERVED_PODS, is_schedulable=False)
    elif was_schedulable or len(pods) >= replicas:
        updated = mark(updated, now, REASON_NO_RESERVED_PODS, is_schedulable=True)
    return SubsetReservation(updated, reserved, overdue, labels, was_schedulable, soonest(delays_s))


def mark_scaled_up(subset: SubsetReservation, replicas: int, next_replicas: int, now: datetime) -> list[Condition]:
    """Return the conditions of a subset after the division.

    A subset that has just recovered and gets more replicas becomes unschedulable again, so that its new pods are
    reserved from the start and the substitutes stay until these pods are ready.
    """
    if subset.is_schedulable and not subset.was_schedulable and next_replicas > replicas:
        return mark(subset.conditions, now, REASON_RECOVERED_SCALED_UP, is_schedulable=False)
    return subset.conditions


def to_label(*, is_reserved: bool) -> str:
    """Return the value of the reserved label."""
    return "true" if is_reserved else "false"


def _label_of(pod: Pod) -> str | None:
    label: str | None = (pod["metadata"].get("labels") or {}).get(RESERVED_POD_LABEL)
    return label
