"""The status of a federated object: what each cluster holds, and whether everything is propagated (spec §10.7).

`ClusterStatus` is the closed set of words; `plan_status` computes the next status and says whether it has to be
written. Pure. Two words differ from KubeAdmiral in when they are used: a cluster that is not ready and not selected any
more keeps its entry (they forget it and leak the object), and an operation that is still under way is PendingCreate or
UpdateTimedOut and not OK. Read `plan.py` for who chooses the word.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from federation.api import conditions, names
from federation.base.clock import to_rfc3339


class ClusterStatus(StrEnum):
    """`status.clusters[].status`."""

    OK = "OK"
    WAITING_FOR_REMOVAL = "WaitingForRemoval"
    WAITING_FOR_CASCADING_DELETION = "WaitingForCascadingDeletion"
    PENDING_CREATE = "PendingCreate"
    CLUSTER_NOT_READY = "ClusterNotReady"
    CLUSTER_TERMINATING = "ClusterTerminating"
    CACHED_RETRIEVAL_FAILED = "CachedRetrievalFailed"
    COMPUTE_RESOURCE_FAILED = "ComputeResourceFailed"
    APPLY_OVERRIDES_FAILED = "ApplyOverridesFailed"
    CREATION_FAILED = "CreationFailed"
    UPDATE_FAILED = "UpdateFailed"
    DELETION_FAILED = "DeletionFailed"
    LABEL_REMOVAL_FAILED = "LabelRemovalFailed"
    RETRIEVAL_FAILED = "RetrievalFailed"
    ALREADY_EXISTS = "AlreadyExists"
    FIELD_RETENTION_FAILED = "FieldRetentionFailed"
    CLIENT_RETRIEVAL_FAILED = "ClientRetrievalFailed"
    MANAGED_LABEL_FALSE = "ManagedLabelFalse"
    FINALIZER_CHECK_FAILED = "FinalizerCheckFailed"
    CREATION_TIMED_OUT = "CreationTimedOut"
    UPDATE_TIMED_OUT = "UpdateTimedOut"
    DELETION_TIMED_OUT = "DeletionTimedOut"
    LABEL_REMOVAL_TIMED_OUT = "LabelRemovalTimedOut"


def clusters_of(federated: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return `status.clusters` by cluster name."""
    return {entry["cluster"]: entry for entry in (federated.get("status") or {}).get("clusters") or ()}


def reason_of(statuses: Mapping[str, str], reason: str = "") -> str:
    """Return the Propagated condition's reason: the given one, else CheckClusters unless every cluster is OK."""
    if reason:
        return reason
    return "" if all(status == ClusterStatus.OK for status in statuses.values()) else names.REASON_CHECK_CLUSTERS


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
) -> dict[str, Any] | None:
    """Return the fields of the next status, None when the present one says it all already.

    `statuses` and `generations` (a member object's generation, 0 when unknown) are by cluster. The result holds
    syncedGeneration, clusters and the complete list of conditions: a merge patch replaces lists as a whole.
    """
    clusters = [
        {"cluster": name, "status": str(statuses[name]), "lastObservedGeneration": generations.get(name, 0)}
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
        {
            "cluster": entry["cluster"],
            "status": entry.get("status", ""),
            "lastObservedGeneration": entry.get("lastObservedGeneration", 0),
        }
        for entry in clusters
    )
    return sorted(found, key=lambda entry: str(entry["cluster"]))


def _next_condition(
    old: Mapping[str, Any] | None, reason: str, message: str, *, stamp: str, is_refreshed: bool
) -> dict[str, Any] | None:
    """Return the new Propagated condition, None when the old one stays; a new reason is a transition too."""
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
