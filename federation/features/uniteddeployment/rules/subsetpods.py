"""The pods of a subset: revision, readiness, and how long they have waited for a node. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import find
from federation.features.uniteddeployment.names import SUBSET_REVISION_LABEL
from federation.planning.automigration.podanalysis import is_live, waits_for_node

Pod = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Wait:
    """Whether a pod waited too long for a node; otherwise the seconds until then, None when it does not wait."""

    is_over: bool
    remaining_s: float | None = None


def check_pending(pod: Pod, limit_s: float, now: datetime) -> Wait:
    """Check whether an unschedulable pod is older than `limit_s`. The time starts at the creation of the pod."""
    if not waits_for_node(pod):
        return Wait(is_over=False)
    return check_deadline(parse_rfc3339(pod["metadata"].get("creationTimestamp")), limit_s, now)


def check_deadline(since: datetime | None, limit_s: float, now: datetime) -> Wait:
    """Check whether more than `limit_s` have passed since a time; without a time the limit starts now."""
    remaining_s = ((since or now) + timedelta(seconds=limit_s) - now).total_seconds()
    return Wait(is_over=remaining_s < 0, remaining_s=None if remaining_s < 0 else remaining_s)


def soonest(delays_s: Iterable[float | None]) -> float | None:
    """Return the shortest delay, None when there is none."""
    return min((delay_s for delay_s in delays_s if delay_s is not None), default=None)


def revision_of(pod: Pod) -> str:
    """Return the revision in the labels of a pod, "" without one."""
    return str((pod["metadata"].get("labels") or {}).get(SUBSET_REVISION_LABEL) or "")


def ready_condition(pod: Pod) -> Mapping[str, Any] | None:
    """Return the condition Ready of a pod if it is True."""
    condition = find((pod.get("status") or {}).get("conditions"), "Ready")
    return condition if condition is not None and condition.get("status") == "True" else None


def count_updated(pods: Iterable[Pod], revision: str) -> tuple[int, int]:
    """Return how many active pods have the revision, and how many of these are ready."""
    updated = [pod for pod in pods if is_live(pod) and revision_of(pod) == revision]
    return len(updated), sum(ready_condition(pod) is not None for pod in updated)
