"""The status of a federated object: its state per cluster, and the Propagated condition.

`ClusterStatus` is the closed set of values; `plan_status` computes the next status and returns None when nothing
changes. Pure. Two values are used differently than in KubeAdmiral: a cluster that is not ready and no longer selected
keeps its entry, and a pending operation is PendingCreate or UpdateTimedOut instead of OK (docs/reference/sync.md).
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import effective_placement


class ClusterStatus(StrEnum):
    """`status.clusters[].status`."""

    OK = "OK"
    KEPT = "Kept"
    """The object is not placed in the cluster any more and stays: only the deletion of its source removes it."""
    FINISHED = "Finished"
    """The object has finished in the cluster: it is gone and not created again, or takes no change of its spec."""
    END_UNKNOWN = "EndUnknown"
    """The object ran in the cluster and is gone, and nobody saw whether it had finished: it is not created again."""
    WAITING_FOR_REMOVAL = "WaitingForRemoval"
    WAITING_FOR_CASCADING_DELETION = "WaitingForCascadingDeletion"
    PENDING_CREATE = "PendingCreate"
    CLUSTER_NOT_READY = "ClusterNotReady"
    CLUSTER_TERMINATING = "ClusterTerminating"
    CACHED_RETRIEVAL_FAILED = "CachedRetrievalFailed"
    COMPUTE_RESOURCE_FAILED = "ComputeResourceFailed"
    APPLY_OVERRIDES_FAILED = "ApplyOverridesFailed"
    ADMISSION_PENDING = "AdmissionPending"
    ADMISSION_REFUSED = "AdmissionRefused"
    ADMISSION_FAILED = "AdmissionFailed"
    CREATION_FAILED = "CreationFailed"
    UPDATE_FAILED = "UpdateFailed"
    DELETION_FAILED = "DeletionFailed"
    LABEL_REMOVAL_FAILED = "LabelRemovalFailed"
    RETRIEVAL_FAILED = "RetrievalFailed"
    ALREADY_EXISTS = "AlreadyExists"
    KIND_NOT_SERVED = "KindNotServed"
    """The cluster does not serve the kind, or not in the version of the federated type."""
    FIELD_RETENTION_FAILED = "FieldRetentionFailed"
    CLIENT_RETRIEVAL_FAILED = "ClientRetrievalFailed"
    MANAGED_LABEL_FALSE = "ManagedLabelFalse"
    WAITING_FOR_REPLICAS = "WaitingForReplicas"
    """The cluster has other replicas than wanted until enough pods are available elsewhere, or others are gone."""
    WAITING_FOR_UPDATE = "WaitingForUpdate"
    """The cluster keeps its pod template until its update fits into the workload's budget, or is approved."""
    DELIVERY_SUSPENDED = "DeliverySuspended"
    """A suspension holds every write and deletion of the object in the cluster, and one is due."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    """Its content would use more than the quotas of its namespace allow, so the cluster keeps what it has."""
    CORRECTION_PAUSED = "CorrectionPaused"
    """Somebody in the cluster keeps changing a field, and its correction waits (planning/drift/fights.py)."""
    DRIFTED = "Drifted"
    """Somebody in the cluster has changed fields of ours, and they stay, as the object or its kind says."""
    FINALIZER_CHECK_FAILED = "FinalizerCheckFailed"
    CREATION_TIMED_OUT = "CreationTimedOut"
    UPDATE_TIMED_OUT = "UpdateTimedOut"
    DELETION_TIMED_OUT = "DeletionTimedOut"
    LABEL_REMOVAL_TIMED_OUT = "LabelRemovalTimedOut"


def describe_kind(resource: Resource) -> str:
    """Return version and kind of a resource, as manifests name them."""
    return f"{resource.api_version} {resource.kind}"


def describe_unserved(kind: str) -> str:
    """Return why a cluster that does not serve a kind cannot have an object, and what to do."""
    return f"the cluster does not serve {kind}: install its CustomResourceDefinition there, with this version served"


_MESSAGE_LENGTH_MAX = 1024
"""Of the message of one cluster; a member writes it."""
AS_WANTED = frozenset((ClusterStatus.OK, ClusterStatus.KEPT, ClusterStatus.FINISHED))
"""The statuses of clusters in which nothing is to be done."""

OBSTRUCTED = frozenset((ClusterStatus.ALREADY_EXISTS, ClusterStatus.MANAGED_LABEL_FALSE))
"""The statuses of clusters that have an object of the name that is not ours, which only a user can resolve."""


def clusters_of(federated: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return `status.clusters` by cluster name."""
    return {entry["cluster"]: entry for entry in (federated.get("status") or {}).get("clusters") or ()}


def earlier_pods_of(federated: Mapping[str, Any]) -> set[str]:
    """Return the clusters that may run pods of an earlier template, as published."""
    return {name for name, entry in clusters_of(federated).items() if entry.get("earlierPods")}


def stale_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that do not answer: what is known of the object there is its last known state."""
    return _clusters_with(federated, ClusterStatus.CLUSTER_NOT_READY)


def departing_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters that have left the placement and keep pods until as many are available elsewhere."""
    waiting = _clusters_with(federated, ClusterStatus.WAITING_FOR_REPLICAS)
    return waiting - effective_placement(federated)


def outdated_clusters(federated: Mapping[str, Any]) -> frozenset[str]:
    """Return the clusters whose pods do not count as updated: they have an old pod template, or are departing."""
    waiting = (ClusterStatus.WAITING_FOR_UPDATE, ClusterStatus.DELIVERY_SUSPENDED, ClusterStatus.QUOTA_EXCEEDED)
    return _clusters_with(federated, *waiting) | departing_clusters(federated)


def _clusters_with(federated: Mapping[str, Any], *statuses: ClusterStatus) -> frozenset[str]:
    return frozenset(name for name, entry in clusters_of(federated).items() if entry.get("status") in statuses)


def is_fully_observed(
    source: Mapping[str, Any], federated: Mapping[str, Any], members: Mapping[str, Mapping[str, Any]]
) -> bool:
    """Return True if all clusters have the source's newest generation and their controllers have observed it.

    `members` are the member objects by cluster.
    """
    metadata, status = federated["metadata"], federated.get("status") or {}
    template_generation = (federated["spec"]["template"].get("metadata") or {}).get("generation")
    if template_generation != source["metadata"].get("generation"):
        return False
    if status.get("syncedGeneration") != metadata.get("generation"):
        return False
    if not pendingcontrollers.is_ready_for_dispatch(federated):
        return False
    clusters = clusters_of(federated)
    return effective_placement(federated) <= clusters.keys() and all(
        entry.get("status") in (ClusterStatus.KEPT, ClusterStatus.FINISHED)
        or (
            entry.get("status") == ClusterStatus.OK
            and _observed_generation(members.get(name)) >= int(entry.get("lastObservedGeneration") or 0)
        )
        for name, entry in clusters.items()
    )


def _observed_generation(member: Mapping[str, Any] | None) -> int:
    return int(((member or {}).get("status") or {}).get("observedGeneration") or 0)


def reason_of(statuses: Mapping[str, str], reason: str = "") -> str:
    """Return the reason of the Propagated condition: the given one, else CheckClusters unless every cluster is OK."""
    if reason:
        return reason
    return "" if all(status in AS_WANTED for status in statuses.values()) else names.REASON_CHECK_CLUSTERS


def plan_status(
    status: Mapping[str, Any],
    *,
    generation: int,
    statuses: Mapping[str, str],
    generations: Mapping[str, int],
    now: datetime,
    reason: str = "",
    message: str = "",
    resources_updated: bool = False,
    messages: Mapping[str, str] | None = None,
    finished: Mapping[str, Mapping[str, Any]] | None = None,
    started: Mapping[str, Mapping[str, Any]] | None = None,
    earlier_pods: Collection[str] = (),
) -> dict[str, Any] | None:
    """Return the fields of the next status, None when the current status is equal.

    `statuses`, `generations` (of the member objects, 0 when unknown) and `messages` (why a status is not OK) are by
    cluster, and so are `finished`, the evidence of objects that have finished, and `started`, the record of others that
    run to completion. `earlier_pods` are clusters that may run pods of an earlier template. The result contains
    syncedGeneration, clusters and all conditions, because a merge patch replaces lists.
    """
    clusters = [
        _entry(
            name,
            str(statuses[name]),
            generations.get(name, 0),
            (messages or {}).get(name),
            (finished or {}).get(name),
            (started or {}).get(name),
            has_earlier_pods=name in earlier_pods,
        )
        for name in sorted(statuses)
    ]
    clusters_changed = clusters != _normalised(status.get("clusters") or ())
    reason = reason_of(statuses, reason)
    held = list(status.get("conditions") or ())
    condition = _next_condition(
        conditions.find(held, names.PROPAGATED),
        reason,
        message,
        stamp=to_rfc3339(now),
        is_refreshed=resources_updated or clusters_changed,
    )
    if condition is None and not clusters_changed and status.get("syncedGeneration", 0) == generation:
        return None
    if condition is not None:
        others = [entry for entry in held if entry.get("type") != names.PROPAGATED]
        held = [*others, condition]
    return {"syncedGeneration": generation, "clusters": clusters, "conditions": held}


def _normalised(clusters: Any) -> list[dict[str, Any]]:
    found = (
        _entry(
            entry["cluster"],
            entry.get("status", ""),
            entry.get("lastObservedGeneration", 0),
            entry.get("message"),
            entry.get("finished"),
            entry.get("started"),
            has_earlier_pods=bool(entry.get("earlierPods")),
        )
        for entry in clusters
    )
    return sorted(found, key=lambda entry: str(entry["cluster"]))


def _entry(
    cluster: str,
    status: str,
    generation: int,
    message: str | None,
    finished: Mapping[str, Any] | None,
    started: Mapping[str, Any] | None,
    *,
    has_earlier_pods: bool,
) -> dict[str, Any]:
    """Return an entry of `status.clusters`; only one with something to explain has a message."""
    entry: dict[str, Any] = {"cluster": cluster, "status": status, "lastObservedGeneration": generation}
    if message and (status not in AS_WANTED or status == ClusterStatus.FINISHED):
        entry["message"] = message[:_MESSAGE_LENGTH_MAX]
    if has_earlier_pods:
        entry["earlierPods"] = True
    if finished:
        entry["finished"] = dict(finished)
    elif started:
        entry["started"] = dict(started)
    return entry


def _next_condition(
    old: Mapping[str, Any] | None, reason: str, message: str, *, stamp: str, is_refreshed: bool
) -> dict[str, Any] | None:
    """Return the new Propagated condition, None when the old one stays. A changed reason counts as a transition."""
    status = "False" if reason else "True"
    is_transition = old is None or old.get("status") != status or old.get("reason", "") != reason
    if old is not None and not is_transition and not is_refreshed and old.get("message", "") == message:
        return None
    condition = {
        "type": names.PROPAGATED,
        "status": status,
        "reason": reason,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp if is_transition or old is None else old.get("lastTransitionTime", stamp),
    }
    if message:
        condition["message"] = message
    return condition
