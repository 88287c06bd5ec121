"""Compute the status of a UnitedDeployment. Pure.

The status has the fields of both API versions: v1alpha1 has `subsetReplicas` and `updateStatus`, v1beta1 has the same
facts in `subsetStatuses` and `updatedRevision`. `hub_status` reads a status that was written in v1alpha1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.conditions import Condition
from federation.apimachinery.resources import Object
from federation.apimachinery.selectors import format_label_selector
from federation.features.uniteddeployment.names import (
    REASON_REVISION_UPDATED,
    REASON_REVISION_UPDATING,
    REASON_SUBSET_CREATED,
    RESERVED_POD_LABEL,
    UNITED_DEPLOYMENT_UPDATED,
)
from federation.features.uniteddeployment.rules.strategy import strategy_of
from federation.features.uniteddeployment.rules.subsetworkload import SubsetWorkload
from federation.features.uniteddeployment.rules.templaterevisions import RevisionPlan


@dataclass(frozen=True, slots=True)
class SubsetOutcome:
    """The decision about one subset: its next replicas and partition, its conditions and its reserved pods."""

    replicas: int = 0
    partition: int = 0
    conditions: Sequence[Condition] = ()
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all workloads; `replicas` is without reserved pods."""

    replicas: int = 0
    ready: int = 0
    updated: int = 0
    updated_ready: int = 0
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class Observation:
    """The input of a status besides the object: workloads and outcomes by subset, and the conditions to store."""

    revisions: RevisionPlan
    workloads: Mapping[str, SubsetWorkload] = field(default_factory=dict)
    outcomes: Mapping[str, SubsetOutcome] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()


def compute_status(united: Mapping[str, Any], observed: Observation) -> Object:
    """Return the status. Subsets without a place in the spec are listed as long as they have a workload."""
    spec = united.get("spec") or {}
    listed = [subset["name"] for subset in (spec.get("topology") or {}).get("subsets") or ()]
    listed += sorted(observed.workloads.keys() - set(listed))
    totals = sum_workloads(observed)
    revisions = observed.revisions
    is_current = totals.updated_ready >= totals.replicas
    subset_statuses = [_subset_status(name, observed) for name in listed]
    status: Object = {
        "observedGeneration": united["metadata"].get("generation") or 0,
        "replicas": totals.replicas,
        "readyReplicas": totals.ready,
        "updatedReplicas": totals.updated,
        "updatedReadyReplicas": totals.updated_ready,
        "reservedPods": totals.reserved,
        "collisionCount": revisions.collisions,
        "currentRevision": revisions.updated if is_current else revisions.current,
        "updatedRevision": revisions.updated,
        "subsetStatuses": subset_statuses,
        "conditions": list(observed.conditions),
        "labelSelector": scale_selector(spec),
    }
    return status | v1alpha1_fields(status)


def sum_workloads(observed: Observation) -> Totals:
    """Return the sums over all workloads."""
    reserved = {name: observed.outcomes[name].reserved for name in observed.outcomes}
    workloads = observed.workloads
    return Totals(
        replicas=sum(max(0, each.status_replicas - reserved.get(name, 0)) for name, each in workloads.items()),
        ready=sum(each.ready for each in workloads.values()),
        updated=sum(each.updated for each in workloads.values()),
        updated_ready=sum(each.updated_ready for each in workloads.values()),
        reserved=sum(reserved.values()),
    )


def _subset_status(name: str, observed: Observation) -> Object:
    outcome = observed.outcomes.get(name) or SubsetOutcome()
    workload = observed.workloads.get(name)
    status: Object = {
        "name": name,
        "replicas": outcome.replicas,
        "readyReplicas": workload.ready if workload is not None else 0,
        "partition": outcome.partition,
        "reservedPods": outcome.reserved,
    }
    return status | ({"conditions": list(outcome.conditions)} if outcome.conditions else {})


def scale_selector(spec: Mapping[str, Any]) -> str:
    """Return the selector of the pods that autoscalers count; reserved pods are not among them."""
    selector = format_label_selector(spec.get("selector") or {})
    if not strategy_of(spec).reserves_pods:
        return selector
    return ",".join(filter(None, (selector, f"{RESERVED_POD_LABEL}=false")))


def start_conditions(spec: Mapping[str, Any], status: Mapping[str, Any], now: datetime) -> dict[str, list[Condition]]:
    """Return the stored conditions of each subset of the spec.

    A subset that is new in a UnitedDeployment that reserves pods starts unschedulable: its pods are reserved until they
    are ready.
    """
    stored = {entry.get("name"): entry for entry in status.get("subsetStatuses") or ()}
    found: dict[str, list[Condition]] = {}
    for subset in (spec.get("topology") or {}).get("subsets") or ():
        entry = stored.get(subset["name"])
        found[subset["name"]] = list((entry or {}).get("conditions") or ())
        if entry is None and stored and strategy_of(spec).reserves_pods:
            found[subset["name"]] = conditions.set_condition(
                [], type_=names.SUBSET_SCHEDULABLE, status="False", reason=REASON_SUBSET_CREATED, now=now
            )
    return found


def set_revision_condition(status: Mapping[str, Any], revisions: RevisionPlan, now: datetime) -> list[Condition]:
    """Return the conditions with UnitedDeploymentUpdated: False while pods of another revision than the newest run.

    A new revision starts a new transition, also during an update, because the age of the condition tells how long pods
    of old revisions have waited.
    """
    stored = list(status.get("conditions") or ())
    if status.get("updatedRevision") not in (None, "", revisions.updated):
        stored = conditions.remove(stored, UNITED_DEPLOYMENT_UPDATED)
    is_updated = revisions.current == revisions.updated
    return conditions.set_condition(
        stored,
        type_=UNITED_DEPLOYMENT_UPDATED,
        status="True" if is_updated else "False",
        reason=REASON_REVISION_UPDATED if is_updated else REASON_REVISION_UPDATING,
        now=now,
    )


def hub_status(status: Mapping[str, Any] | None) -> Object:
    """Return the status with v1beta1's fields filled from those of v1alpha1, which win."""
    hub = dict(status or {})
    update = hub.get("updateStatus") or {}
    replicas, partitions = hub.get("subsetReplicas") or {}, update.get("currentPartitions") or {}
    entries = {entry["name"]: dict(entry) for entry in hub.get("subsetStatuses") or () if entry.get("name")}
    for name in sorted({*replicas, *partitions} - entries.keys() - {""}):
        entries[name] = {"name": name}
    for name, entry in entries.items():
        if name in replicas:
            entry["replicas"] = replicas[name]
        if name in partitions:
            entry["partition"] = partitions[name]
    if update.get("updatedRevision"):
        hub["updatedRevision"] = update["updatedRevision"]
    if entries:
        hub["subsetStatuses"] = list(entries.values())
    return {key: value for key, value in hub.items() if key not in {"updateStatus", "subsetReplicas"}}


def v1alpha1_fields(status: Mapping[str, Any]) -> Object:
    """Return the fields of v1alpha1 for a status with those of v1beta1; maps without entries are absent."""
    entries = [entry for entry in status.get("subsetStatuses") or () if entry.get("name")]
    update: Object = {"updatedRevision": status.get("updatedRevision") or ""}
    if not entries:
        return {"updateStatus": update}
    update["currentPartitions"] = {entry["name"]: entry.get("partition") or 0 for entry in entries}
    return {
        "subsetReplicas": {entry["name"]: entry.get("replicas") or 0 for entry in entries},
        "updateStatus": update,
    }
