"""Decide what a sweep does with a managed object in a member. Pure.

Nothing is deleted without evidence (`evidence.py`): the placement of its federated object, decided since the cluster
joined, or a record that its source was deleted. Everything else is reported, unless the cluster's annotation `strays`
says otherwise. What a user kept when its cluster left is released.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from federation.api import names
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import departed_clusters, effective_placement
from federation.planning.leftovers.evidence import Evidence, objection
from federation.planning.leftovers.record import Reason, Record, is_managed

_KEPT = frozenset(
    {
        ("", "Namespace"),
        ("", "PersistentVolume"),
        ("", "PersistentVolumeClaim"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
    }
)


class StrayAction(StrEnum):
    """The action on a stray object."""

    DELIVERED = "delivered"
    """A federated object delivers it, or sync removes it already."""
    UNDECIDED = "undecided"
    """Its federated object is not scheduled yet, or does not exist yet: look again."""
    DEPART = "depart"
    """It is not placed in this cluster: sync removes it."""
    DELETE = "delete"
    RELEASE = "release"
    REPORT = "report"


class Policy(StrEnum):
    """Values of a FederatedCluster's annotation `strays`; without it, each case has its own default."""

    REPORT = "report"
    REMOVE = "remove"
    RELEASE = "release"


def policy_of(cluster: Mapping[str, Any]) -> Policy | None:
    """Return the cluster's policy, None without a valid one."""
    text = str((cluster["metadata"].get("annotations") or {}).get(names.STRAYS))
    return Policy(text) if text in Policy._value2member_map_ else None


def is_written_by_us(live: Mapping[str, Any]) -> bool:
    """Return whether the federation wrote the member object itself.

    Members' controllers copy labels: the EndpointSlices of a managed Service carry our label too.
    """
    annotations = live["metadata"].get("annotations") or {}
    return is_managed(live) and names.TEMPLATE_HASH in annotations and controller_of(live) is None


def is_kept(resource: Resource) -> bool:
    """Return whether objects of the kind are deleted in a member only if their source was deleted.

    Other objects or data would go with them.
    """
    return is_kept_kind(resource.group, resource.kind)


def is_kept_kind(group: str, kind: str) -> bool:
    """Return the same for a group and a kind."""
    return (group, kind) in _KEPT


def judge_federated(federated: Mapping[str, Any], cluster: str, policy: Policy | None) -> StrayAction:
    """Return the verdict about an object whose federated object exists."""
    recorded = {entry["cluster"] for entry in (federated.get("status") or {}).get("clusters") or ()}
    placed = effective_placement(federated)
    if cluster in placed | recorded | departed_clusters(federated):
        return StrayAction.DELIVERED
    if federated["metadata"].get("deletionTimestamp"):
        return StrayAction.DEPART
    if not pendingcontrollers.is_ready_for_dispatch(federated):
        return StrayAction.UNDECIDED
    if not placed:
        # No policy has placed it, or its policy is missing: that is no statement about this cluster.
        return StrayAction.RELEASE if policy is Policy.RELEASE else StrayAction.REPORT
    return {None: StrayAction.DEPART, Policy.REMOVE: StrayAction.DEPART, Policy.RELEASE: StrayAction.RELEASE}.get(
        policy, StrayAction.REPORT
    )


def judge_excluded(policy: Policy | None) -> StrayAction:
    """Return the verdict about an object whose source exists and is excluded from federation."""
    return StrayAction.RELEASE if policy is Policy.RELEASE else StrayAction.REPORT


def judge_unknown(resource: Resource, policy: Policy | None, *, is_revoked: bool) -> StrayAction:
    """Return the verdict about an object that has neither a federated object nor a source: their absence says nothing.

    `is_revoked` means that a Secret of its name was deleted on the host.
    """
    if is_revoked:
        return StrayAction.DELETE
    if policy is Policy.REMOVE and not is_kept(resource):
        return StrayAction.DELETE
    return StrayAction.RELEASE if policy is Policy.RELEASE else StrayAction.REPORT


def decided_at(federated: Mapping[str, Any]) -> str:
    """Return when the word that took the object away was given: its deletion, or its last placement; "" if unknown."""
    metadata = federated["metadata"]
    return str(metadata.get("deletionTimestamp") or (metadata.get("annotations") or {}).get(names.DECIDED_AT) or "")


def settle(
    chosen: StrayAction, evidence: Evidence, record: Record | None, policy: Policy | None
) -> tuple[StrayAction, str]:
    """Return what is done after the verdict, and why a deletion became a report, "" if it did not.

    `record` is what the host has recorded about this copy.
    """
    if chosen in (StrayAction.DELIVERED, StrayAction.UNDECIDED):
        return chosen, ""
    if record is not None and record.is_kept:
        return (StrayAction.REPORT if policy is Policy.REPORT else StrayAction.RELEASE), ""
    if chosen not in (StrayAction.DEPART, StrayAction.DELETE):
        return chosen, ""
    if record is not None and record.reason is Reason.HELD:
        return StrayAction.REPORT, ""
    why = objection(evidence)
    return (StrayAction.REPORT, why) if why else (chosen, "")
