"""How a federated object stands in a cluster, by the status that sync reports: the class of each status, and its words.

One table for all who show objects, so that a cluster that does not answer looks like one everywhere, and not like a
refusal. `status.clusters[].status` has the values (docs/reference/sync.md). Pure.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Standing(StrEnum):
    """The meaning of a status for somebody who looks at the object."""

    CURRENT = "current"
    """Nothing is to be done."""
    UNDERWAY = "underway"
    """The control plane is at work, or waits for something that comes by itself or is wanted."""
    SILENT = "silent"
    """The cluster does not answer: what is known is the last known state."""
    REFUSED = "refused"
    """The cluster, its admission or an override refuses it. Somebody has to act."""


_TABLE: Mapping[str, tuple[Standing, str]] = {
    "": (Standing.UNDERWAY, "Not there yet"),
    "OK": (Standing.CURRENT, "Up to date"),
    "Kept": (Standing.CURRENT, "Kept until its source is deleted"),
    "Finished": (Standing.CURRENT, "Finished"),
    "PendingCreate": (Standing.UNDERWAY, "Not there yet"),
    "CachedRetrievalFailed": (Standing.UNDERWAY, "Being read"),
    "WaitingForRemoval": (Standing.UNDERWAY, "Leaving"),
    "WaitingForCascadingDeletion": (Standing.UNDERWAY, "Being deleted"),
    "WaitingForReplicas": (Standing.UNDERWAY, "Waits for pods elsewhere"),
    "WaitingForUpdate": (Standing.UNDERWAY, "Waits for its update"),
    "DeliverySuspended": (Standing.UNDERWAY, "Delivery is suspended"),
    "QuotaExceeded": (Standing.UNDERWAY, "Waits for its quota"),
    "AdmissionPending": (Standing.UNDERWAY, "Waits for admission"),
    "ClusterTerminating": (Standing.UNDERWAY, "Its cluster is being removed"),
    "ClusterNotReady": (Standing.SILENT, "Last known state"),
    "CreationTimedOut": (Standing.SILENT, "No answer to the creation"),
    "UpdateTimedOut": (Standing.SILENT, "No answer to the update"),
    "DeletionTimedOut": (Standing.SILENT, "No answer to the deletion"),
    "LabelRemovalTimedOut": (Standing.SILENT, "No answer to the release"),
    "ComputeResourceFailed": (Standing.REFUSED, "Cannot be rendered"),
    "ApplyOverridesFailed": (Standing.REFUSED, "Override does not apply"),
    "AdmissionRefused": (Standing.REFUSED, "Refused by admission"),
    "AdmissionFailed": (Standing.REFUSED, "Admission failed"),
    "CreationFailed": (Standing.REFUSED, "Creation refused"),
    "UpdateFailed": (Standing.REFUSED, "Update refused"),
    "DeletionFailed": (Standing.REFUSED, "Deletion refused"),
    "LabelRemovalFailed": (Standing.REFUSED, "Release refused"),
    "RetrievalFailed": (Standing.REFUSED, "Cannot be read"),
    "ClientRetrievalFailed": (Standing.REFUSED, "No client for the cluster"),
    "AlreadyExists": (Standing.REFUSED, "Exists already"),
    "ManagedLabelFalse": (Standing.REFUSED, "Not managed on purpose"),
    "EndUnknown": (Standing.REFUSED, "End not known"),
    "KindNotServed": (Standing.REFUSED, "Kind not served"),
    "FieldRetentionFailed": (Standing.REFUSED, "Fields cannot be kept"),
    "FinalizerCheckFailed": (Standing.REFUSED, "Finalizers cannot be checked"),
    "Drifted": (Standing.REFUSED, "Changed there"),
    "CorrectionPaused": (Standing.REFUSED, "Somebody changes it there"),
}


def standing_of(status: str) -> Standing:
    """Return the class of a status; one that this version does not know counts as a refusal."""
    return _TABLE[status][0] if status in _TABLE else Standing.REFUSED


def words_for(status: str) -> str:
    """Return a status in words, or itself if this version does not know it."""
    return _TABLE[status][1] if status in _TABLE else status


def clusters_standing(federated: Mapping[str, Any], standing: Standing) -> list[Mapping[str, Any]]:
    """Return the entries of `status.clusters` of this class, in their order."""
    entries = (federated.get("status") or {}).get("clusters") or ()
    return [entry for entry in entries if standing_of(str(entry.get("status") or "")) is standing]
