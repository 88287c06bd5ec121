"""Adaptive WorkloadSpreads: mark subsets that cannot take pods, and move their waiting pods. Pure.

A subset is unschedulable while it has pods that waited for a node for too long. Admission skips it for five minutes.
The waiting pods are deleted; the workload creates them again, and admission puts them into a later subset. There is one
mark per subset, in the condition `Schedulable`, for all versions. The last subset is never marked, unless the
federation delivers the object: then the mark only reports, and the host may move the replicas to another cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.conditions import Condition
from federation.apimachinery.resources import Object
from federation.features.workloadspread.names import REASON_POD_UNSCHEDULABLE, REASON_SUFFICIENT
from federation.features.workloadspread.rules.moments import age_s, shortest_s
from federation.planning.automigration.podanalysis import waits_for_node

UNSCHEDULABLE_S = 300.0
"""How long admission skips a subset after its pods waited for too long."""


@dataclass(frozen=True, slots=True)
class Schedulability:
    """The conditions of a subset, the pods to delete, and when to look again."""

    conditions: list[Condition]
    failed: tuple[Object, ...] = ()
    waiting: int = 0
    """Pods that waited for too long, deleted or not."""
    is_recovered: bool = False
    requeue_after_s: float | None = None


def check_subset(
    pods: Iterable[Object],
    old: Sequence[Mapping[str, Any]] | None,
    *,
    critical_s: float,
    is_last: bool,
    now: datetime,
    is_reported: bool = False,
) -> Schedulability:
    """Return the schedulability of one subset from its pods of all versions and its old conditions.

    `critical_s` is how long a pod may wait for a node, 0 when pods are never moved: then the condition is removed.
    `is_reported`: the last subset is marked too; its pods are not deleted.
    """
    existing = [dict(condition) for condition in old or ()]
    if not critical_s:
        return Schedulability(conditions.remove(existing, names.SUBSET_SCHEDULABLE))
    if is_last and not is_reported:
        return Schedulability(_marked(existing, now, is_schedulable=True))
    waits = [(pod, remaining_s(pod, critical_s, now)) for pod in pods]
    failed = tuple(pod for pod, wait in waits if wait is not None and wait <= 0)
    requeue_s = shortest_s(wait for _, wait in waits)
    if failed:
        marked = _marked(existing, now, is_schedulable=False)
        return Schedulability(marked, () if is_last else failed, len(failed), requeue_after_s=requeue_s)
    mark = conditions.find(existing, names.SUBSET_SCHEDULABLE)
    is_marked = mark is not None and mark.get("status") == "False"
    left_s = UNSCHEDULABLE_S - age_s(mark.get("lastTransitionTime"), now) if mark is not None and is_marked else 0.0
    if 0 < left_s <= 2 * UNSCHEDULABLE_S:  # a mark from further ahead is by another clock, and would stay for good
        return Schedulability(existing, requeue_after_s=shortest_s((requeue_s, left_s)))
    marked = _marked(existing, now, is_schedulable=True)
    return Schedulability(marked, is_recovered=is_marked, requeue_after_s=requeue_s)


def remaining_s(pod: Mapping[str, Any], limit_s: float, now: datetime) -> float | None:
    """Return the seconds until an unschedulable pod has waited for `limit_s`; None for other pods.

    The wait starts at the creation of the pod.
    """
    return limit_s - age_s(pod["metadata"].get("creationTimestamp"), now) if waits_for_node(pod) else None


def _marked(existing: list[Condition], now: datetime, *, is_schedulable: bool) -> list[Condition]:
    return conditions.set_condition(
        existing,
        type_=names.SUBSET_SCHEDULABLE,
        status="True" if is_schedulable else "False",
        reason=REASON_SUFFICIENT if is_schedulable else REASON_POD_UNSCHEDULABLE,
        now=now,
    )
