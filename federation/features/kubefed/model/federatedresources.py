"""The federated kinds of types.kubefed.io/v1beta1: a template, its placement, its overrides. The fields are KubeFed's.

All kinds have the same fields, so their models are made from the table of kinds.

Reference: docs/reference/kubefed.md.
"""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, create_model

from federation.api.kubefedkinds import FEDERATED_KINDS, FederatedKind
from federation.api.v1alpha1.base import AGE, AnyObject, AnyValue, Column, DateTime, Definition, Int64, Kind, Model
from federation.api.v1alpha1.common import LabelSelector


class Operation(StrEnum):
    """The operation of an override; the empty one means replace."""

    NONE = ""
    ADD = "add"
    REMOVE = "remove"
    REPLACE = "replace"


class ClusterOverride(Model):
    """One operation of a JSON patch."""

    op: Operation | None = None
    """add, remove or replace; replace by default."""
    path: Annotated[str, Field(pattern=r"^(/([^~]|~[01])*|[A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*)$")]
    """A JSON pointer (RFC 6901) to the field, for example /spec/template/spec/containers/0/image, or spec.replicas."""
    value: AnyValue = None
    """The value to add or to set."""


class OverridesOfCluster(Model):
    """The changes for one cluster."""

    cluster_name: Annotated[str, Field(min_length=1)]
    """The name of the cluster."""
    cluster_overrides: list[ClusterOverride] | None = None
    """The changes, in order."""


class ClusterReference(Model):
    """A cluster."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the cluster."""


class Placement(Model):
    """The clusters of the object."""

    cluster_selector: LabelSelector | None = None
    """The labels of the clusters; an empty one selects all. It has no effect beside a list of clusters."""
    clusters: list[ClusterReference] | None = None
    """The clusters by name; an empty list selects none."""


class FederatedResourceSpec(Model):
    """The object, its clusters and its differences between them."""

    overrides: Annotated[
        list[OverridesOfCluster] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["clusterName"]}),
    ] = None
    """The changes by cluster."""
    placement: Placement | None = None
    """The clusters of the object."""
    retain_replicas: bool | None = None
    """Whether members keep their own number of replicas, for autoscalers in members."""
    template: AnyObject | None = None
    """The object without apiVersion, kind, name and namespace."""


class ClusterStatus(Model):
    """The state of the object in one cluster."""

    name: str
    """The name of the cluster."""
    remote_status: AnyObject | None = None
    """Unused; the object of the host has the merged status."""
    status: str | None = None
    """Why the object is not as desired; absent when it is."""


class Condition(Model):
    """A condition of the object's propagation."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    last_update_time: DateTime | None = None
    """When the condition was last written."""
    message: str | None = None
    """Details of the reason, for people. An extension of this project."""
    reason: str | None = None
    """The reason of the status, in CamelCase."""
    status: str
    """True or False."""
    type: str
    """The type of the condition."""


class FederatedResourceStatus(Model):
    """The state of the object's propagation."""

    clusters: list[ClusterStatus] | None = None
    """The state by cluster."""
    conditions: list[Condition] | None = None
    """The conditions of the propagation."""
    observed_generation: Int64 | None = None
    """The generation that the status is of."""


class _FederatedResource(Kind):
    spec: FederatedResourceSpec
    status: FederatedResourceStatus | None = None


_PROPAGATION = ".status.conditions[?(@.type=='Propagation')]"
_COLUMNS = (
    Column("Propagation", f"{_PROPAGATION}.status"),
    Column("Reason", f"{_PROPAGATION}.reason"),
    Column("Clusters", ".status.clusters[*].name", is_wide=True),
    AGE,
)


def _model(kind: FederatedKind) -> type[Kind]:
    resource, target = kind.resource, kind.target
    short_name = {"Deployment": "fdeploy", "Namespace": "fns", "Service": "fsvc"}.get(target.kind, "")
    model: Any = create_model(
        resource.kind,
        __base__=_FederatedResource,
        __doc__=f"{resource.kind} describes a {target.kind} with its clusters and its differences between them.",
    )
    model.DEFINITION = Definition(resource, short_name, columns=_COLUMNS)
    return model  # type: ignore[no-any-return]  # create_model has no type for a model with a class variable


FEDERATED_RESOURCES: tuple[type[Kind], ...] = tuple(map(_model, FEDERATED_KINDS.values()))
