"""The ledger of a WorkloadSpread: how many pods each subset may still get, and the pods that admission counted. Pure.

`status.versionedSubsetStatuses` has an entry per version of the workload: a list with a status per subset. Admission
records a pod there before the pod exists, so that concurrent creations do not exceed a limit. `status.py` replaces the
records by the pods that it sees. The record of a deletion frees no replica: the deletion can still be refused, or be
over already. Admission waits for a new count instead (`Choice.leaving`).

A status also has `maxReplicas`, the limit as a number. This field is ours. With it the free replicas are computed from
the current spec and the current total, without it they are `missingReplicas` as it was stored.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.conditions import find
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import Object
from federation.features.workloadspread.names import MATCHED_WORKLOAD_SPREAD
from federation.features.workloadspread.rules.moments import age_s
from federation.features.workloadspread.rules.references import controller_owner, object_name
from federation.features.workloadspread.rules.subsets import (
    UNLIMITED,
    find_subset,
    has_simulation,
    is_federated,
    is_stateful,
    is_unrestricted,
    name_of,
    resolve_limit,
    subsets_of,
)
from federation.planning.automigration.podanalysis import is_live

Fits = Callable[[Object], bool]
"""Returns True if a node fits the pod with the changes of a subset."""

CREATING = "creatingPods"
DELETING = "deletingPods"
_RENEWED_S = 15.0
"""A record that is older is written again for another admission of the same pod; less than the slack of a proof of
absence (`incluster/absences.py`).
"""
_ORDINAL = re.compile(r".*-([0-9]+)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Match:
    """The annotation of a managed pod: WorkloadSpread, subset, and the id of a pod that had no name when it came."""

    spread: str
    subset: str
    uid: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """The subset of a new pod, None to admit it unchanged, and the status to write, None to write nothing."""

    subset: Object | None = None
    status: Object | None = None
    uid: str = ""
    """The id under which a pod without a name is recorded; goes into the annotation."""
    leaving: frozenset[str] = frozenset()
    """Pods with recorded deletions; when they are gone, a subset before the chosen one has a free replica."""


def parse_match(pod: Mapping[str, Any]) -> Match | None:
    """Return the content of the pod's annotation, None when it is absent or malformed; keys have any letter case."""
    text = ((pod.get("metadata") or {}).get("annotations") or {}).get(MATCHED_WORKLOAD_SPREAD)
    return _parse_match(text) if isinstance(text, str) else None


def id_of(pod: Mapping[str, Any]) -> str:
    """Return the id by which the creation of an existing pod was recorded."""
    match = parse_match(pod)
    return match.uid if match is not None and match.uid else object_name(pod)


def has_unique_id(pod: Mapping[str, Any]) -> bool:
    """Return True if no other pod is ever recorded by the id of this one: it or its name is generated."""
    match, metadata = parse_match(pod), pod.get("metadata") or {}
    return bool((match is not None and match.uid) or metadata.get("generateName"))


@lru_cache(maxsize=16384)
def _parse_match(text: str) -> Match | None:
    """Return the content of an annotation. Cached, because a reconcile parses those of all pods several times."""
    parsed = parse_object(text)
    if parsed is None:
        return None
    found = {key.lower(): value for key, value in parsed.items() if isinstance(value, str)}
    if not found.get("name") or not found.get("subset"):
        return None
    return Match(found["name"], found["subset"], found.get("uid", ""))


def choose_subset(
    spread: Object,
    pod: Mapping[str, Any],
    *,
    version: str,
    total: int,
    uid: str,
    now: datetime,
    fits: Fits | None = None,
) -> Choice:
    """Return the subset of a pod that is being created: the first one with free replicas that is schedulable.

    `total` is the workload's current replicas, which only percentages use. `uid` is a new id, used when the pod has no
    name yet. `fits` is called for subsets before the last one of an Adaptive WorkloadSpread whose simulation is on.
    A pod that is recorded already keeps its subset; its record is renewed when it is old, so that no earlier proof of
    absence ends it. InvalidInput when a limit cannot be parsed.
    """
    if is_unrestricted(spread):
        return Choice(subsets_of(spread)[0])
    if is_stateful(spread):
        return Choice(_subset_of_ordinal(spread, pod, total))
    entry = entry_of(spread, version, total)
    name = object_name(pod)
    pod_id, own_uid = name or uid, "" if name else uid
    recorded = _recorded_in(entry, pod_id, (CREATING,))
    if recorded is not None and (subset := find_subset(spread, recorded)) is not None:
        time = (_status_of(entry, recorded).get(CREATING) or {}).get(pod_id)
        is_fresh = age_s(time, now) < _RENEWED_S
        renewed = None if is_fresh else _recorded(spread, version, entry, subset, CREATING, pod_id, total, now)
        return Choice(subset, renewed, own_uid)
    chosen = _first_free(spread, entry, total, fits if has_simulation(spread) else None)
    leaving = _leaving(spread, entry, total, chosen)
    if chosen is None:
        return Choice(leaving=leaving)
    if free_replicas(chosen, _status_of(entry, name_of(chosen)), total) == UNLIMITED:
        return Choice(chosen, leaving=leaving)
    status = _recorded(spread, version, entry, chosen, CREATING, pod_id, total, now)
    return Choice(chosen, status, own_uid, leaving)


def creation_records(spread: Mapping[str, Any]) -> dict[str, Any]:
    """Return the time of each record of a creation by the id of the pod, for all versions."""
    return {pod_id: time for _, status in _statuses(spread) for pod_id, time in (status.get(CREATING) or {}).items()}


def without_creations(spread: Object, pod_ids: Container[str], total: int) -> Object | None:
    """Return the status without the records of these pods, None when there are none."""
    if all(pod_id not in pod_ids for pod_id in creation_records(spread)):
        return None
    versions: dict[str, list[Object]] = {}
    for version, status in _statuses(spread):
        records = status.get(CREATING) or {}
        kept = {pod_id: time for pod_id, time in records.items() if pod_id not in pod_ids}
        changed = dict(status)
        if len(kept) < len(records):
            subset = find_subset(spread, name_of(status))
            changed = {key: value for key, value in status.items() if key != CREATING} | (
                {CREATING: kept} if kept else {}
            )
            if subset is not None and status.get("maxReplicas") is not None:
                changed["missingReplicas"] = _missing_replicas(subset, changed, total)
        versions.setdefault(version, []).append(changed)
    return {**(spread.get("status") or {}), "versionedSubsetStatuses": versions}


def record_deletion(
    spread: Object, pod: Mapping[str, Any], *, version: str, total: int, now: datetime
) -> Object | None:
    """Return the status to write before the pod is deleted or evicted; None to write nothing."""
    match = parse_match(pod) if is_live(pod) and controller_owner(pod) is not None else None
    if match is None or match.spread != object_name(spread):
        return None
    subset = find_subset(spread, match.subset)
    if subset is None or is_unrestricted(spread) or is_stateful(spread):
        return None
    entry = entry_of(spread, version, total)
    name = object_name(pod)
    if not name or _recorded_in(entry, name) is not None:
        return None
    if free_replicas(subset, _status_of(entry, match.subset), total) < 0:
        return None
    return _recorded(spread, version, entry, subset, DELETING, name, total, now)


def entry_of(spread: Mapping[str, Any], version: str, total: int) -> list[Object]:
    """Return the entry of a version; subsets that it lacks have no pods yet."""
    stored = ((spread.get("status") or {}).get("versionedSubsetStatuses") or {}).get(version) or ()
    known = {name_of(status) for status in stored}
    missing = [subset for subset in subsets_of(spread) if name_of(subset) not in known]
    return [*stored, *initial_entry(missing, total)]


def initial_entry(subsets: Iterable[Mapping[str, Any]], total: int) -> list[Object]:
    """Return the statuses of subsets without pods; InvalidInput when a limit cannot be parsed."""
    return [counted_status(name_of(subset), resolve_limit(subset.get("maxReplicas"), total)) for subset in subsets]


def counted_status(name: str, limit: int | None, replicas: int = 0, free: int | None = None) -> Object:
    """Return the status of a subset with its number of pods; `free` is the limit unless it is given."""
    if limit is None:
        return {"name": name, "replicas": replicas, "missingReplicas": UNLIMITED}
    return {
        "name": name,
        "replicas": replicas,
        "missingReplicas": limit if free is None else free,
        "maxReplicas": limit,
    }


def free_replicas(subset: Mapping[str, Any], status: Mapping[str, Any], total: int) -> int:
    """Return how many more pods the subset may get, `UNLIMITED` for any number. Recorded deletions free none."""
    return _missing_replicas(subset, {**status, DELETING: None}, total)


def _missing_replicas(subset: Mapping[str, Any], status: Mapping[str, Any], total: int) -> int:
    """Return the free replicas when all recorded deletions are done."""
    if status.get("maxReplicas") is None:
        return status.get("missingReplicas") or 0
    limit = resolve_limit(subset.get("maxReplicas"), total)
    if limit is None:
        return UNLIMITED
    used = (status.get("replicas") or 0) + len(status.get(CREATING) or ()) - len(status.get(DELETING) or ())
    return max(0, min(limit, limit - used))


def is_schedulable(spread: Mapping[str, Any], name: str, entry: Sequence[Mapping[str, Any]] = ()) -> bool:
    """Return False if the subset is marked unschedulable: for all versions, or in the entry of one."""
    overall = (spread.get("status") or {}).get("subsetStatuses") or ()
    for statuses in (overall, entry):
        condition = find(_status_of(statuses, name).get("conditions"), names.SUBSET_SCHEDULABLE)
        if condition is not None and condition.get("status") == "False":
            return False
    return True


def _subset_of_ordinal(spread: Object, pod: Mapping[str, Any], total: int) -> Object | None:
    """Return the subset of a StatefulSet's pod: each schedulable subset takes the next `maxReplicas` ordinals."""
    found = _ORDINAL.fullmatch(object_name(pod))
    ordinal = int(found[1]) if found else -1
    threshold = 0
    for subset in subsets_of(spread):
        if not is_schedulable(spread, name_of(subset)):
            continue
        limit = resolve_limit(subset.get("maxReplicas"), total)
        threshold += 0 if limit is None else limit
        if limit is None or ordinal < threshold:
            return subset
    return None


def _first_free(spread: Object, entry: Sequence[Object], total: int, fits: Fits | None) -> Object | None:
    subsets = subsets_of(spread)
    for subset in subsets:
        free = free_replicas(subset, _status_of(entry, name_of(subset)), total)
        if _is_skipped(spread, subset, entry) or not (free > 0 or free == UNLIMITED):
            continue
        if fits is None or subset is subsets[-1] or fits(subset):
            return subset
    return None


def _is_skipped(spread: Object, subset: Object, entry: Sequence[Object]) -> bool:
    is_taken_anyway = is_federated(spread) and subset is subsets_of(spread)[-1]
    return not is_taken_anyway and not is_schedulable(spread, name_of(subset), entry)


def _leaving(spread: Object, entry: Sequence[Object], total: int, chosen: Object | None) -> frozenset[str]:
    """Return the recorded deletions that will free a replica of a subset before the chosen one."""
    found: set[str] = set()
    for subset in subsets_of(spread):
        if subset is chosen:
            break
        status = _status_of(entry, name_of(subset))
        will_be_free = status.get("maxReplicas") is not None and _missing_replicas(subset, status, total) > 0
        if will_be_free and not _is_skipped(spread, subset, entry):
            found.update(status.get(DELETING) or ())
    return frozenset(found)


def _statuses(spread: Mapping[str, Any]) -> Iterator[tuple[str, Object]]:
    """Yield the statuses of all subsets, each with its version."""
    for version, entry in ((spread.get("status") or {}).get("versionedSubsetStatuses") or {}).items():
        for status in entry or ():
            yield version, status


def _status_of(entry: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    return next((status for status in entry if name_of(status) == name), {})


def _recorded_in(
    entry: Iterable[Mapping[str, Any]], pod_id: str, fields: Sequence[str] = (CREATING, DELETING)
) -> str | None:
    """Return the name of the subset that has a record of the pod."""
    for status in entry:
        if any(pod_id in (status.get(field) or ()) for field in fields):
            return name_of(status)
    return None


def _recorded(
    spread: Object,
    version: str,
    entry: Sequence[Object],
    subset: Object,
    field: str,
    pod_id: str,
    total: int,
    now: datetime,
) -> Object:
    """Return the status of the WorkloadSpread with one more record."""
    changed = []
    for status in entry:
        if name_of(status) == name_of(subset):
            records = {**(status.get(field) or {}), pod_id: to_rfc3339(now)}
            status = _with_records(subset, status, field, records, total)  # noqa: PLW2901  # the same status, changed
        changed.append(status)
    old = spread.get("status") or {}
    return {**old, "versionedSubsetStatuses": {**(old.get("versionedSubsetStatuses") or {}), version: changed}}


def _with_records(subset: Object, status: Object, field: str, records: Object, total: int) -> Object:
    changed = {**status, field: records}
    if status.get("maxReplicas") is None:
        added = len(records) - len(status.get(field) or ())
        changed["missingReplicas"] = (status.get("missingReplicas") or 0) + (-added if field == CREATING else added)
    else:
        changed["missingReplicas"] = _missing_replicas(subset, changed, total)
        changed["maxReplicas"] = resolve_limit(subset.get("maxReplicas"), total)
    return changed
