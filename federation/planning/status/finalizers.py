"""Every finalizer that can hold an object of the host: when it ends, and where its wait is reported. Pure.

None of ours ends by a status that somebody has to report: it ends by a decision of the host, by the answer of a member,
or, for a member that does not answer, by a record that finishes the work later. docs/reference/finalizers.md is
generated from this table, and tests/scenarios/test_finalizers.py deletes an object with each of them.

Decision: docs/decisions/0215-no-finalizer-waits-for-a-status.md
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.apimachinery import finalizers


@dataclass(frozen=True, slots=True)
class Finalizer:
    """One finalizer. The texts are Markdown, for the page."""

    name: str
    of: str
    """The objects that have it."""
    ends: str
    """The event after which it is removed."""
    reported: str
    """The places that tell a user what it waits for."""
    remedy: str
    """A way to end it before that."""


OURS = (
    Finalizer(
        names.FEDERATE_FINALIZER,
        "an object that a policy places",
        "its FederatedObject is gone, as the API server says",
        "as in the next row; Events of the FederatedObject are also Events of the object",
        "as in the next row",
    ),
    Finalizer(
        names.SYNC_FINALIZER,
        "FederatedObject, ClusterFederatedObject",
        "each cluster that answers has said that it lacks the object; a cluster that is not Ready, or that has not"
        " answered for 10 s, gets a record that finishes the deletion when it returns (`fedctl leftovers`)",
        "condition `Propagated` with the clusters and the finalizers that hold the object there; after 10 s Event"
        " `DeletionWaits`, for a refusal `EnsureDeletionFailed`, for a hold `DeletionHeld` with its command",
        "remove the finalizer in the member, approve the hold, end the suspension, or `fedctl unjoin --force CLUSTER`",
    ),
    Finalizer(
        names.CASCADING_DELETE_FINALIZER,
        "FederatedCluster",
        "what the member keeps is recorded and has lost our label; with annotation `cascading-delete`, after the member"
        " has none of our objects; with a forced removal, after its objects are recorded",
        "Events `WaitForRelease`, `WaitForCascadingDelete`, `WaitForCascadingDeleteError`",
        "`fedctl unjoin --force CLUSTER`",
    ),
    Finalizer(
        names.CLUSTER_FINALIZER,
        "FederatedCluster",
        "our namespace and account are removed from the member; a cluster that never joined needs no answer",
        "Events `HandleTerminatingClusterFailed`, `HandleTerminatingClusterBlocked`, with the remedy",
        "`fedctl unjoin --force CLUSTER`",
    ),
    Finalizer(
        names.TYPE_CONFIG_FINALIZER,
        "FederatedTypeConfig",
        "no object is federated by it: its objects are deleted, or an annotation orphans or removes their copies",
        "Event `TypeConfigInUse`, with both commands",
        "one of the two annotations. If somebody removes this finalizer by hand, an Event says that deletions of its"
        " objects wait until the configuration is created again",
    ),
)
"""Those that the federation sets."""
OF_HOST = (
    Finalizer(
        finalizers.VOLUME_PROTECTION,
        "PersistentVolume",
        "it is not bound, or the host has no claim that its `claimRef` names; the phase that members reported does not"
        " hold it. On an existing host kube-controller-manager removes it",
        "the claim, which is on the host",
        "delete the claim",
    ),
    Finalizer(
        finalizers.CLAIM_PROTECTION,
        "PersistentVolumeClaim",
        "no pod of the host that names a node uses it. Such a pod is removed 10 s after its grace period",
        "the pod, which is on the host",
        "delete the pod",
    ),
    Finalizer(
        finalizers.FOREGROUND,
        "an object that is deleted with `--cascade=foreground`",
        "no dependent blocks it; its FederatedObject is one",
        "the finalizers of the dependents",
        "as for the dependents",
    ),
    Finalizer(
        finalizers.ORPHAN,
        "an object that is deleted with `--cascade=orphan`",
        "at once: the host removes the owner references of its dependents",
        "-",
        "-",
    ),
    Finalizer(
        finalizers.NAMESPACE_CONTENT,
        "Namespace, in `spec.finalizers`",
        "the host has no object in it; each ends as its own row says",
        "conditions `NamespaceContentRemaining` and `NamespaceFinalizersRemaining` with kinds and finalizers",
        "as for the objects in it",
    ),
    Finalizer(
        finalizers.DEFINITION_CLEANUP,
        "CustomResourceDefinition",
        "the host has no object of the kind; each ends as its own row says",
        "the finalizers of the objects of the kind",
        "as for these objects",
    ),
)
"""Kubernetes' own, which the host sets and removes without a member."""
_KNOWN = frozenset(each.name for each in (*OURS, *OF_HOST))


def foreign_finalizers(source: Mapping[str, Any]) -> list[str]:
    """Return the finalizers that only controllers of a user's own remove."""
    return sorted({*(source["metadata"].get("finalizers") or ())} - _KNOWN)
