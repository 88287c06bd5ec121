"""The status of a WorkloadSpread from its pods: replicas and free replicas per subset, overall and per version. Pure.

Records of admission (`ledger.py`) are kept while their pods are in flight: a creation until its pod is seen or proven
absent, a deletion until its pod is gone. The age alone ends no record of a creation, because its pod may still come, or
be there unseen. An event reports a record that ends without its pod.

`missingReplicas` counts like OpenKruise: the deletion of a pod above the limit frees a replica. Admission does not use
that number; it computes free replicas from `maxReplicas`, `replicas` and the records.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.features.workloadspread import names
from federation.features.workloadspread.rules.adoption import NO_SUBSET, Groups
from federation.features.workloadspread.rules.ledger import CREATING, DELETING, counted_status, id_of, parse_match
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
"""The age from which the record of a creation ends when its pod is proven absent."""
DELETING_S_MAX = 15.0
"""How long a deletion is recorded whose pod does not go."""
_PROOF_S = 5.0
"""The pause before the next look for a proof of absence."""
IsAbsent = Callable[[str, Any], bool]
"""Returns True if the recorded pod, given by id and time of its record, is proven not to exist, now and later."""


_UNMATCHED = (
    "{} pods of the workload are in no subset: no place was free that fits them, or no decision was made in time"
)


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


def compute_status(spread: Object, groups: Groups, total: int, now: datetime, *, is_absent: IsAbsent) -> SpreadStatus:
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
    follow_ups = FollowUps(now, object_name(spread), is_absent)
    statuses = follow_ups.entry(subsets, checks, overall, old.get("subsetStatuses"), total, are_recorded=False)
    if is_reported:
        statuses = [
            {**status, "unschedulableReplicas": check.waiting} if check.waiting else status
            for status, check in zip(statuses, checks, strict=True)
        ]
    versions = {}
    for version in [*groups, *(version for version in old_versions if version not in groups)]:
        pods = groups.get(version, {})
        entry = follow_ups.entry(
            subsets, checks, pods, old_versions.get(version), total, are_recorded=not is_stateful(spread)
        )
        if version in groups or any(map(_is_used, entry)):
            versions[version] = entry
    status: Object = {"observedGeneration": (spread.get("metadata") or {}).get("generation") or 0}
    status |= {"subsetStatuses": statuses, "versionedSubsetStatuses": versions}
    unmatched = sum(map(is_live, overall.get(NO_SUBSET, ())))
    if unmatched:
        status["unmatchedReplicas"] = unmatched
    if unmatched > (old.get("unmatchedReplicas") or 0):
        follow_ups.events.append(_event("Warning", names.EVENT_PODS_WITHOUT_SUBSET, _UNMATCHED.format(unmatched)))
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
    subset: Mapping[str, Any],
    pods: Iterable[Object],
    old: Mapping[str, Any],
    total: int,
    follow_ups: "FollowUps",
    *,
    are_recorded: bool,
) -> Object:
    """Return the status of one subset without conditions; `old` has the records of admission.

    A pod that is being adopted is recorded until its annotation is seen, unless records are kept elsewhere: another
    instance may not see yet that it is adopted.
    """
    name, limit = name_of(subset), resolve_limit(subset.get("maxReplicas"), total)
    creating, deleting = dict(old.get(CREATING) or {}), old.get(DELETING) or {}
    free = -1 if limit is None else limit
    replicas = 0
    kept: dict[str, Any] = {}
    adopted: dict[str, Any] = {}
    for pod in pods:
        pod_name = object_name(pod)
        time = creating.pop(id_of(pod), None)
        if not is_live(pod):
            continue
        if limit is not None and are_recorded and not follow_ups.is_matched(pod):
            adopted[pod_name] = time or to_rfc3339(follow_ups.now)
            continue
        replicas += 1
        free -= free > 0
        if pod_name in deleting and follow_ups.keep(
            deleting[pod_name], DELETING_S_MAX, names.EVENT_DELETE_POD_FAILED, pod_name
        ):
            kept[pod_name] = deleting[pod_name]
            free += limit is not None and free < limit
    waiting = adopted | {pod_id: time for pod_id, time in creating.items() if follow_ups.keep_creation(time, pod_id)}
    free = max(0, free - len(waiting)) if limit is not None else free
    status = counted_status(name, limit, replicas, free)
    return status | {field: records for field, records in ((CREATING, waiting), (DELETING, kept)) if records}


@dataclass(slots=True)
class FollowUps:
    """The work that counting leaves: the events to record and the delays after which a record expires."""

    now: datetime
    spread: str
    is_absent: IsAbsent
    events: list[SpreadEvent] = field(default_factory=list)
    delays_s: list[float] = field(default_factory=list)

    def is_matched(self, pod: Mapping[str, Any]) -> bool:
        """Return True if the annotation of the pod names the WorkloadSpread."""
        match = parse_match(pod)
        return match is not None and match.spread == self.spread

    def keep_creation(self, time: Any, pod_id: str) -> bool:
        """As `keep`, for the record of a creation: an old one ends only with a proof that the pod is absent."""
        is_old = not 0 < CREATING_S_MAX - age_s(time, self.now) <= 2 * CREATING_S_MAX
        if is_old and not self.is_absent(pod_id, time):
            self.delays_s.append(_PROOF_S)
            return True
        return self.keep(time, CREATING_S_MAX, names.EVENT_CREATE_POD_FAILED, pod_id)

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
        *,
        are_recorded: bool,
    ) -> list[Object]:
        """Return the statuses of all subsets in the order of the spec."""
        entry = []
        for subset, check in zip(subsets, checks, strict=True):
            name = name_of(subset)
            counted, known = pods.get(name, ()), _named(old, name)
            status = count_subset(subset, counted, known, total, self, are_recorded=are_recorded)
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
