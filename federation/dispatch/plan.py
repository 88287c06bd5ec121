"""What to do in one cluster: a decision table over desired and observed state (spec §10.2 step 6).

Pure, one cluster at a time: nothing here knows of other clusters, so a dead one can never change what happens in the
others. `decide` chooses the operation, `is_converged` whether an update would change anything. The rows are
KubeAdmiral's in their order, with one deliberate difference (D8): a cluster that is not ready and not selected any
more, but may still hold the object, keeps its entry until it was seen without the object, where they forget it.
Read `executor.py` next for who carries the operations out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.dispatch.status import ClusterStatus
from federation.planning.drift import is_subset
from federation.planning.memberobject import Rendered


class Operation(StrEnum):
    """What may be done to one object in one cluster; the value is the operation's part of event reasons."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"
    RELEASE = "RemoveManagedLabelFrom"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What a decision needs to know of a cluster. `joined`: it may hold objects of ours; `ready` implies it."""

    name: str
    ready: bool = True
    joined: bool = True
    terminating: bool = False
    cascading_delete: bool = False
    has_finalizer: bool = True


@dataclass(frozen=True, slots=True)
class ObjectFacts:
    """What is known of the object in the cluster; `lookup_failed`: nothing, because there is no cache yet."""

    exists: bool = False
    terminating: bool = False
    derived_service_mismatch: bool = False
    lookup_failed: bool = False


ABSENT = ObjectFacts()
UNKNOWN = ObjectFacts(lookup_failed=True)


@dataclass(frozen=True, slots=True)
class Decision:
    """An operation (None: nothing to do) and the status to record if it succeeds (None: no entry for the cluster)."""

    operation: Operation | None
    status: ClusterStatus | None
    recheck_after_s: float | None = None


_NOTHING = Decision(None, None)
_FINALIZER_RECHECK_S = 10.0


def decide(cluster: ClusterFacts, *, is_selected: bool, is_recorded: bool, observed: ObjectFacts) -> Decision:
    """Return what to do in one cluster.

    `is_recorded`: status or the departed-clusters annotation says that the cluster may hold the object.
    """
    if not cluster.ready:
        return Decision(None, ClusterStatus.CLUSTER_NOT_READY) if is_selected or is_recorded else _NOTHING
    if observed.lookup_failed:
        return Decision(None, ClusterStatus.CACHED_RETRIEVAL_FAILED) if is_selected or is_recorded else _NOTHING
    exists = observed.exists and not observed.derived_service_mismatch
    if cluster.terminating and cluster.cascading_delete:
        is_waiting = exists and not observed.terminating
        return Decision(None, ClusterStatus.WAITING_FOR_CASCADING_DELETION) if is_waiting else _NOTHING
    if not is_selected:
        return _decide_unselected(cluster, exists=exists, terminating=observed.terminating)
    if cluster.terminating:
        return Decision(None, ClusterStatus.CLUSTER_TERMINATING)
    if not cluster.has_finalizer:
        return Decision(None, ClusterStatus.FINALIZER_CHECK_FAILED, _FINALIZER_RECHECK_S)
    return Decision(Operation.UPDATE if exists else Operation.CREATE, ClusterStatus.OK)


def _decide_unselected(cluster: ClusterFacts, *, exists: bool, terminating: bool) -> Decision:
    if not exists:
        return _NOTHING
    if terminating:
        return Decision(None, ClusterStatus.WAITING_FOR_REMOVAL)
    if cluster.terminating:
        return _NOTHING
    return Decision(Operation.DELETE, ClusterStatus.WAITING_FOR_REMOVAL)


class Removal(StrEnum):
    """What happens to a member object when its federated object is deleted."""

    DELETE = "delete"
    ORPHAN = "orphan"


def decide_removal(federated_annotations: Mapping[str, str], member_annotations: Mapping[str, str]) -> Removal:
    """Return whether the object is deleted, or stays without our label (annotation orphan, spec §10.8)."""
    orphan = federated_annotations.get(names.INTERNAL_ORPHAN) or federated_annotations.get(names.ORPHAN)
    if orphan == "all" or (orphan == "adopted" and member_annotations.get(names.ADOPTED) == "true"):
        return Removal.ORPHAN
    return Removal.DELETE


def is_managed_refused(live: Mapping[str, Any]) -> bool:
    """Say whether the member's administrator refuses management of this object (managed label "false")."""
    return bool((live["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "false")


def is_converged(desired: Rendered, wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Say whether an apply would change nothing: made from the same content, and still holding all of it.

    `wanted` is `desired.object` after retention. The hash alone would miss edits made in the member, the comparison
    alone would miss fields that left the template.
    """
    annotations = live["metadata"].get("annotations") or {}
    return annotations.get(names.TEMPLATE_HASH) == desired.hash and is_subset(wanted, live)


def is_other_derived_service(federated: Mapping[str, str], live: Mapping[str, Any]) -> bool:
    """Say whether exactly one of the two is a Service derived from a ServiceImport: then they only share a name.

    `federated` are the annotations of the federated object.
    """
    theirs = live["metadata"].get("annotations") or {}
    return (names.DERIVED_SERVICE in theirs) != (names.DERIVED_SERVICE in federated)
