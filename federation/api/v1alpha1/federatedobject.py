"""FederatedObject and ClusterFederatedObject: template, placement, overrides, status (docs/reference/kinds.md)."""

from typing import ClassVar

from federation.api import names
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
    """The changes of one controller to the template."""

    clusters: list[ClusterPatches]
    """The patches by cluster."""
    controller: str
    """The controller that owns this entry."""


class ClusterReference(Model):
    """A cluster."""

    cluster: str
    """The name of the cluster."""


class ControllerPlacement(Model):
    """The clusters that one controller selects. The object is placed in the union of all entries."""

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
    """The template, its placement and its overrides."""

    follows: list[LeaderReference] | None = None
    """The objects that this object follows."""
    overrides: list[ControllerOverrides] | None = None
    """The overrides per cluster, by controller."""
    placements: list[ControllerPlacement] | None = None
    """The selected clusters, by controller."""
    template: AnyObject
    """The object before overrides."""


class FinishedRun(Model):
    """The evidence that the object ran to completion in a cluster. An extension of this project."""

    run: str
    """The mark that tells this run from another one of the same name."""
    status: AnyObject | None = None
    """The last status of the member object, shortened."""
    succeeded: bool
    """Whether it succeeded or failed."""
    template_hash: str | None = None
    """The hash of the content that ran."""
    time: DateTime
    """When the end was seen."""


class StartedRun(Model):
    """The record that an object which runs to completion was in a cluster. An extension of this project."""

    run: str
    """The mark that tells this run from another one of the same name."""
    uid: str
    """The uid of the member object."""


class ClusterPropagationStatus(Model):
    """The state of the object in one cluster."""

    cluster: str
    """The name of the cluster."""
    earlier_pods: bool | None = None
    """Present while pods of an earlier template may run there, if a quota or a queue counts the object. An
    extension of this project."""
    finished: FinishedRun | None = None
    """Present once the object has finished: it is not created again, and its spec is not changed."""
    last_observed_generation: Int64 | None = None
    """The last observed generation of the member object."""
    message: str | None = None
    """Why the member object is not as desired. An extension of this project."""
    started: StartedRun | None = None
    """Present while an object that runs to completion is there, and until its end is known."""
    status: str
    """OK, or the reason why the member object is not as desired."""


class PropagationCondition(Model):
    """A condition of the object's propagation."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    last_update_time: DateTime | None = None
    """When the condition was last written."""
    message: str | None = None
    """A message about the status. An extension of this project."""
    reason: str | None = None
    """The reason of the status, in CamelCase."""
    status: str
    """True, False or Unknown."""
    type: str
    """The type of the condition."""


class FederatedObjectStatus(Model):
    """The state of the object's propagation."""

    clusters: list[ClusterPropagationStatus] | None = None
    """The state of the object, by cluster."""
    conditions: list[PropagationCondition] | None = None
    """The conditions of the object's propagation."""
    synced_generation: Int64 | None = None
    """The generation of the federated object that was last dispatched to all clusters."""


_APPLIED_POLICY = names.APPLIED_POLICY.replace(".", r"\.")
_PROPAGATED = ".status.conditions[?(@.type=='Propagated')]"
_COLUMNS = (
    Column("Propagated", f"{_PROPAGATED}.status"),
    Column("Reason", f"{_PROPAGATED}.reason"),
    Column("Policy", f".metadata.annotations['{_APPLIED_POLICY}']", is_wide=True),
    Column("Clusters", ".spec.placements[*].placement[*].cluster", is_wide=True),
    Column("Replicas", ".spec.template.spec.replicas", "integer", is_wide=True),
    AGE,
)


class FederatedObject(Kind):
    """FederatedObject is the template, placement and overrides of a namespaced source object."""

    DEFINITION: ClassVar[Definition] = Definition(FEDERATED_OBJECTS, "fo", columns=_COLUMNS)

    spec: FederatedObjectSpec
    status: FederatedObjectStatus | None = None


class ClusterFederatedObject(Kind):
    """ClusterFederatedObject is the template, placement and overrides of a cluster-scoped source object."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_FEDERATED_OBJECTS, "cfo", columns=_COLUMNS)

    spec: FederatedObjectSpec
    status: FederatedObjectStatus | None = None
