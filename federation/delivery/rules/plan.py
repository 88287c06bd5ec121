"""The terms of the decision table: operations, the state of a cluster, the observed object, and whose it is. Pure.

The decision itself is in `decide.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from federation.api import names
from federation.apimachinery import conditions
from federation.delivery.rules.status import ClusterStatus
from federation.planning.clusters.ruledtaints import ruled_taints, taint_id
from federation.planning.drift.fields import is_applied_by_us
from federation.planning.leftovers.evidence import NO_MEMBERSHIP, Membership, membership_of
from federation.planning.rendering.drift import is_subset
from federation.planning.rendering.memberobject import Rendered


class Operation(StrEnum):
    """Operations on one object in one cluster; the value is part of event reasons."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    RELEASE = "RemoveManagedLabelFrom"


PENDING_STATUS = {
    Operation.CREATE: ClusterStatus.PENDING_CREATE,
    Operation.UPDATE: ClusterStatus.UPDATE_TIMED_OUT,
    Operation.DELETE: ClusterStatus.WAITING_FOR_REMOVAL,
    Operation.RELEASE: ClusterStatus.WAITING_FOR_REMOVAL,
}
"""The status of a cluster while an operation waits or is in flight."""
TIMED_OUT_STATUS = {
    Operation.CREATE: ClusterStatus.CREATION_TIMED_OUT,
    Operation.UPDATE: ClusterStatus.UPDATE_TIMED_OUT,
    Operation.DELETE: ClusterStatus.DELETION_TIMED_OUT,
    Operation.RELEASE: ClusterStatus.LABEL_REMOVAL_TIMED_OUT,
}
"""The status of a cluster that did not answer an operation."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster's state. `joined` means that it may hold objects of ours; `ready` implies `joined`."""

    name: str
    ready: bool = True
    joined: bool = True
    terminating: bool = False
    cascading_delete: bool = False
    has_finalizer: bool = True
    uid: str = ""
    """The uid of the member's namespace kube-system, "" when it is not known."""
    is_drained: bool = False
    """Whether it has the drain taint."""
    membership: Membership = NO_MEMBERSHIP
    """Its present membership, which evidence for a deletion must be about."""


def cluster_state_of(cluster: Mapping[str, Any]) -> ClusterState:
    """Return the state of a FederatedCluster."""
    metadata = cluster["metadata"]
    status: dict[str, Any] = cluster.get("status") or {}
    found = status.get("conditions")
    is_joined = conditions.is_true(found, names.CLUSTER_JOINED)
    return ClusterState(
        name=metadata["name"],
        ready=is_joined and conditions.is_true(found, names.CLUSTER_READY),
        joined=is_joined or bool(status.get("joinPerformed")),
        terminating=bool(metadata.get("deletionTimestamp")),
        cascading_delete=names.CASCADING_DELETE in (metadata.get("annotations") or {}),
        has_finalizer=names.CASCADING_DELETE_FINALIZER in (metadata.get("finalizers") or ()),
        uid=str(status.get("clusterUid") or ""),
        is_drained=_is_drained(cluster),
        membership=membership_of(cluster),
    )


def _is_drained(cluster: Mapping[str, Any]) -> bool:
    """Return whether replicas are to leave the cluster: by a drain, or by a NoExecute taint of a rule."""
    ruled = ruled_taints(cluster)
    taints = (cluster.get("spec") or {}).get("taints") or ()
    return any(
        taint.get("key") == names.TAINT_DRAIN or (taint.get("effect") == "NoExecute" and taint_id(taint) in ruled)
        for taint in taints
    )


@dataclass(frozen=True, slots=True)
class ObservedObject:
    """The object as observed in the cluster; `lookup_failed` means that there is no cache yet."""

    exists: bool = False
    terminating: bool = False
    derived_service_mismatch: bool = False
    lookup_failed: bool = False


ABSENT_OBJECT = ObservedObject()
UNKNOWN_OBJECT = ObservedObject(lookup_failed=True)


class Sight(NamedTuple):
    """Problems of the cache of a kind in a cluster."""

    is_served: bool = True
    """Whether the cluster serves the kind, as far as its last answer tells."""
    unseen_s: float = 0.0
    """For how long its cache has not been complete, since an object was looked for while the cluster was ready."""
    failure: str = ""
    """Why the objects cannot be listed, "" if no list has failed."""


CLEAR_SIGHT = Sight()


class Removal(StrEnum):
    """Treatment of a member object when its federated object is deleted."""

    DELETE = "delete"
    ORPHAN = "orphan"


def to_operation(removal: Removal) -> Operation:
    """Return the operation that removes an object in this way."""
    return Operation.DELETE if removal is Removal.DELETE else Operation.RELEASE


def removal_attempt(uid: str, operation: Operation) -> str:
    """Return what a failure of the operation belongs to: another way to remove the object is tried at once."""
    return f"{operation} {uid}"


def is_removal_by_adoption(federated_annotations: Mapping[str, str]) -> bool:
    """Return True if only the member object shows whether it is deleted or released."""
    orphan = federated_annotations.get(names.INTERNAL_ORPHAN) or federated_annotations.get(names.ORPHAN)
    return orphan == "adopted"


def decide_removal(federated_annotations: Mapping[str, str], member_annotations: Mapping[str, str]) -> Removal:
    """Return DELETE, or ORPHAN to leave the object without our label (docs/reference/sync.md)."""
    orphan = federated_annotations.get(names.INTERNAL_ORPHAN) or federated_annotations.get(names.ORPHAN)
    if orphan == "all" or (orphan == "adopted" and member_annotations.get(names.ADOPTED) == "true"):
        return Removal.ORPHAN
    return Removal.DELETE


def is_managed(live: Mapping[str, Any]) -> bool:
    """Return True if the object carries our managed label."""
    return (live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true"


def is_management_disabled(live: Mapping[str, Any]) -> bool:
    """Return True if the member's administrator set the managed label to "false"."""
    return bool((live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "false")


def has_lost_label(live: Mapping[str, Any], known_uid: str) -> bool:
    """Return True if the object is ours and somebody has removed or changed its managed label.

    The hash that we applied is still on it, with us as its owner: a release removes it, and copies of annotations have
    another owner. `known_uid` is that of the object that we managed last, "" when it is not known.
    """
    metadata = live["metadata"]
    if (metadata.get("labels") or {}).get(names.MANAGED_LABEL) in ("true", "false"):
        return False
    if names.TEMPLATE_HASH not in (metadata.get("annotations") or {}) or known_uid not in ("", metadata.get("uid")):
        return False
    return is_applied_by_us(live, ("metadata", "annotations", names.TEMPLATE_HASH))


def is_converged(desired: Rendered, wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Return True if an apply would change nothing.

    `wanted` is `desired.object` after retention. The hash alone misses edits made in the member; the comparison alone
    misses fields that left the template.
    """
    annotations = live["metadata"].get("annotations") or {}
    return annotations.get(names.TEMPLATE_HASH) == desired.hash and is_subset(wanted, live)


def is_name_collision(federated: Mapping[str, str], live: Mapping[str, Any]) -> bool:
    """Return True if exactly one of the two is a Service derived from a ServiceImport; they only share a name then.

    `federated` are the annotations of the federated object.
    """
    theirs = live["metadata"].get("annotations") or {}
    return (names.DERIVED_SERVICE in theirs) != (names.DERIVED_SERVICE in federated)
