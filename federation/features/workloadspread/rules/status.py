"""The status of a WorkloadSpread from its pods: replicas and free replicas per subset, overall and per version. Pure.

Records of admission (`ledger.py`) are kept while their pods are in flight: a creation until its pod is seen, a deletion
until its pod is gone. A record that grows too old is removed, and an event reports it.

`missingReplicas` counts like OpenKruise: the deletion of a pod above the limit frees a replica. Admission does not use
that number; it computes free replicas from `maxReplicas`, `replicas` and the records.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.apimachinery.resources import Object
from federation.features.workloadspread import names
from federation.features.workloadspread.rules.adoption import Groups
from federation.features.workloadspread.rules.ledger import CREATING, DELETING, counted_status, parse_match
from federation.features.workloadspread.rules.moments import age_s, shortest_s
from federation.features.workloadspread.rules.references import object_name
from federation.features.workloadspread.rules.rescheduling import Schedulability, check_subset
from federation.features.workloadspread.rules.subsets import (
    critical_s,
    is_federated,
    is_stateful,
    name_of,
    resolve_limit,
    subsets_of,
)
from federation.planning.automigration.podanalysis import is_live

CREATING_S_MAX = 30.0
"""How long admission waits for a pod that it counted."""
DELETING_S_MAX = 15.0
"""How long admission waits for a pod to go."""


@dataclass(frozen=True, slots=True)
class SpreadEvent:
    """An event about the WorkloadSpread; `type_` is Normal or Warning."""

    type_: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class SpreadStatus:
    """The status to write. After the write: the events to record, the pods to delete, and when to reconcile again."""

    status: Object
    events: tuple[SpreadEvent, ...] = ()
    failed: tuple[Object, ...] = ()
    """Pods that waited for a node for too long."""
    requeue_after_s: float | None = None


def compute_status(spread: Object, groups: Groups, total: int, now: datetime) -> SpreadStatus:
    """Return the status of a WorkloadSpread; `groups` is from `adoption.group_pods`.

    `total` is the workload's replicas. InvalidInput when a limit cannot be parsed.
    """
    subsets = subsets_of(spread)
    old = spread.get("status") or {}
    old_versions = old.get("versionedSubsetStatuses") or {}
    overall = _merged(groups)
    is_reported = is_federated(spread) and not is_stateful(spread)
    checks = [
        check_subset(
            overall.get(name_of(subset), ()),
            _named(old.get("subsetStatuses"), name_of(subset)).get("conditions"),
            critical_s=critical_s(spread),
            is_last=subset is subsets[-1],
            now=now,
            is_reported=is_reported,
        )
        for subset in subsets
    ]
    follow_ups = FollowUps(now)
    statuses = follow_ups.entry(subsets, checks, overall, old.get("subsetStatuses"), total)
    if is_reported:
        statuses = [
            {**status, "unschedulableReplicas": check.waiting} if check.waiting else status
            for status, check in zip(statuses, checks, strict=True)
        ]
    versions = {}
    for version in [*groups, *(version for version in old_versions if version not in groups)]:
        entry = follow_ups.entry(subsets, checks, groups.get(version, {}), old_versions.get(version), total)
        if version in groups or any(map(_is_used, entry)):
            versions[version] = entry
    status: Object = {"observedGeneration": (spread.get("metadata") or {}).get("generation") or 0}
    status |= {"subsetStatuses": statuses, "versionedSubsetStatuses": versions}
    recovered = [name_of(subset) for subset, check in zip(subsets, checks, strict=True) if check.is_recovered]
    events = [
        _event("Normal", names.EVENT_RECOVER_SCHEDULABLE, f"subset {name} is schedulable again") for name in recovered
    ]
    return SpreadStatus(
        status,
        tuple(dict.fromkeys([*follow_ups.events, *events])),
        tuple(pod for check in checks for pod in check.failed),
        shortest_s([*follow_ups.delays_s, *(check.requeue_after_s for check in checks)]),
    )


def count_subset(
    subset: Mapping[str, Any], pods: Iterable[Object], old: Mapping[str, Any], total: int, follow_ups: "FollowUps"
) -> Object:
    """Return the status of one subset without conditions; `old` has the records of admission."""
    name, limit = name_of(subset), resolve_limit(subset.get("maxReplicas"), total)
    creating, deleting = dict(old.get(CREATING) or {}), old.get(DELETING) or {}
    free = -1 if limit is None else limit
    replicas = 0
    kept: dict[str, Any] = {}
    for pod in pods:
        match = parse_match(pod)
        pod_name = object_name(pod)
        creating.pop(match.uid if match is not None and match.uid else pod_name, None)
        if not is_live(pod):
            continue
        replicas += 1
        free -= free > 0
        if pod_name in deleting and follow_ups.keep(
            deleting[pod_name], DELETING_S_MAX, names.EVENT_DELETE_POD_FAILED, pod_name
        ):
            kept[pod_name] = deleting[pod_name]
            free += limit is not None and free < limit
    waiting = {
        pod_id: time
        for pod_id, time in creating.items()
        if follow_ups.keep(time, CREATING_S_MAX, names.EVENT_CREATE_POD_FAILED, pod_id)
    }
    free = max(0, free - len(waiting)) if limit is not None else free
    status = counted_status(name, limit, replicas, free)
    return status | {field: records for field, records in ((CREATING, waiting), (DELETING, kept)) if records}


@dataclass(slots=True)
class FollowUps:
    """The work that counting leaves: the events to record and the delays after which a record expires."""

    now: datetime
    events: list[SpreadEvent] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)

    def keep(self, time: Any, seconds_max: float, reason: str, pod_id: str) -> bool:
        """Return True if a record is still young enough; note its expiry, or an event when it is not."""
        left_s = seconds_max - age_s(time, self.now)
        if 0 < left_s <= 2 * seconds_max:  # a record from further ahead is by another clock, and would stay for good
            self.delays_s.append(left_s)
            return True
        verb = "created" if reason == names.EVENT_CREATE_POD_FAILED else "deleted"
        self.events.append(_event("Warning", reason, f"pod {pod_id} was not {verb} within {seconds_max:.0f} seconds"))
        return False

    def entry(
        self,
        subsets: Sequence[Object],
        checks: Sequence[Schedulability],
        pods: Mapping[str, Sequence[Object]],
        old: Sequence[Object] | None,
        total: int,
    ) -> list[Object]:
        """Return the statuses of all subsets in the order of the spec."""
        entry = []
        for subset, check in zip(subsets, checks, strict=True):
            name = name_of(subset)
            status = count_subset(subset, pods.get(name, ()), _named(old, name), total, self)
            entry.append(status | {"conditions": check.conditions} if check.conditions else status)
        return entry


def _event(type_: str, reason: str, message: str) -> SpreadEvent:
    return SpreadEvent(type_, reason, message)


def _merged(groups: Groups) -> dict[str, list[Object]]:
    merged: dict[str, list[Object]] = {}
    for by_subset in groups.values():
        for name, pods in by_subset.items():
            merged.setdefault(name, []).extend(pods)
    return merged


def _named(entry: Iterable[Mapping[str, Any]] | None, name: str) -> Mapping[str, Any]:
    return next((status for status in entry or () if name_of(status) == name), {})


def _is_used(status: Mapping[str, Any]) -> bool:
    return bool(status["replicas"] or status.get(CREATING) or status.get(DELETING))
