"""FederatedObject and ClusterFederatedObject: a source object on its way to its clusters (docs/reference/kinds.md)."""

from typing import ClassVar

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.api.v1alpha1.base import AGE, AnyObject, AnyValue, Column, DateTime, Definition, Int64, Kind, Model


class OverridePatch(Model):
    """One operation of a JSON patch."""

    op: str | None = None
    """The operation; replace by default."""
    path: str
    """A JSON pointer to the field."""
    value: AnyValue = None
    """The value of the operation."""


class ClusterPatches(Model):
    """The patches for one cluster."""

    cluster: str
    """The name of the cluster."""
    patches: list[OverridePatch] | None = None
    """The patches, in order."""


class ControllerOverrides(Model):
    """What one controller changes in the template."""

    clusters: list[ClusterPatches]
    """The patches by cluster."""
    controller: str
    """The controller that owns this entry."""


class ClusterReference(Model):
    """A cluster."""

    cluster: str
    """The name of the cluster."""


class ControllerPlacement(Model):
    """Where one controller wants the object. The object goes to the union of all entries."""

    controller: str
    """The controller that owns this entry."""
    placement: list[ClusterReference]
    """The clusters."""


class LeaderReference(Model):
    """An object that this object follows."""

    group: str | None = None
    """The API group of the leader."""
    kind: str
    """The kind of the leader."""
    name: str
    """The name of the leader."""
    namespace: str | None = None
    """The namespace of the leader."""


class FederatedObjectSpec(Model):
    """What goes where, and how it differs."""

    follows: list[LeaderReference] | None = None
    """The objects that this object follows."""
    overrides: list[ControllerOverrides] | None = None
    """How the object differs between clusters, by controller."""
    placements: list[ControllerPlacement] | None = None
    """Where the object goes, by controller."""
    template: AnyObject
    """The object as it goes to the clusters, before overrides."""


class ClusterPropagationStatus(Model):
    """How the object is doing in one cluster."""

    cluster: str
    """The name of the cluster."""
    last_observed_generation: Int64 | None = None
    """The generation of the member object when it was last seen."""
    status: str
    """OK, or what keeps the object from being as wanted."""


class PropagationCondition(Model):
    """One aspect of the object's way to its clusters."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    last_update_time: DateTime | None = None
    """When the condition was last written."""
    message: str | None = None
    """Details for people. An extension of this project."""
    reason: str | None = None
    """The reason of the status, in CamelCase."""
    status: str
    """True, False or Unknown."""
    type: str
    """The aspect."""


class FederatedObjectStatus(Model):
    """How the object's way to its clusters is going."""

    clusters: list[ClusterPropagationStatus] | None = None
    """How the object is doing, by cluster."""
    conditions: list[PropagationCondition] | None = None
    """The aspects of the object's way to its clusters."""
    synced_generation: Int64 | None = None
    """The generation of the federated object that was last dispatched to all clusters."""


_COLUMNS = (Column("Propagated", ".status.conditions[?(@.type=='Propagated')].status"), AGE)


class FederatedObject(Kind):
    """FederatedObject is a namespaced source object on its way to its clusters."""

    DEFINITION: ClassVar[Definition] = Definition(FEDERATED_OBJECTS, "fo", columns=_COLUMNS)

    spec: FederatedObjectSpec
    status: FederatedObjectStatus | None = None


class ClusterFederatedObject(Kind):
    """ClusterFederatedObject is a cluster-scoped source object on its way to its clusters."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_FEDERATED_OBJECTS, "cfo", columns=_COLUMNS)

    spec: FederatedObjectSpec
    status: FederatedObjectStatus | None = None
