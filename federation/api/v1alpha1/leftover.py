"""Leftover: an object of ours that is still in a member (docs/decisions/0026-leftovers.md). One of our own kinds.

It is the tombstone of an object that was deleted while its member did not answer, the record of an object in a member
that left by force, and the report of a managed object that the host does not know.
"""

from typing import ClassVar

from federation.api.resources import LEFTOVERS
from federation.api.v1alpha1.base import AGE, Column, Definition, Kind, Model
from federation.api.v1alpha1.federatedtypeconfig import SourceType


class LeftoverSpec(Model):
    """The object in the member, and what happens to it once the member answers."""

    action: str
    """Delete, Release (the object stays without our label), ReleaseAdopted (released if it was adopted, else deleted)
    or Keep (nothing happens)."""
    cluster: str
    """The name of the member cluster; empty for a Secret that was deleted and must not return to any of them."""
    cluster_uid: str | None = None
    """The uid of the member's namespace kube-system. Another cluster under the same name is not touched."""
    message: str | None = None
    """More about the reason."""
    name: str
    """The name of the object."""
    namespace: str | None = None
    """The namespace of the object; empty for cluster-scoped kinds."""
    recorded_at: str | None = None
    """When the deletion was asked for. One from before the cluster joined deletes nothing."""
    reason: str
    """SourceDeleted, ClusterRemoved, Kept, Stray, Held or Revoked."""
    resource: SourceType
    """The kind of the object."""
    uid: str | None = None
    """The uid of the object, if it is known. An object with another uid is not touched."""


class Leftover(Kind):
    """Leftover is an object of the federation that is still in a member cluster. Delete it to forget the object."""

    DEFINITION: ClassVar[Definition] = Definition(
        LEFTOVERS,
        "lo",
        has_status=False,
        columns=(
            Column("Cluster", ".spec.cluster"),
            Column("Kind", ".spec.resource.kind"),
            Column("Namespace", ".spec.namespace"),
            Column("Object", ".spec.name"),
            Column("Action", ".spec.action"),
            Column("Reason", ".spec.reason"),
            AGE,
        ),
    )

    spec: LeftoverSpec
