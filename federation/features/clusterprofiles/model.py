"""ClusterProfile of multicluster.x-k8s.io/v1alpha1, the cluster inventory of Kubernetes' multicluster group.

Reference: docs/reference/clusterprofiles.md.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.v1alpha1.base import AGE, AnyObject, Column, DateTime, Definition, Kind, Model
from federation.api.v1alpha1.common import Condition
from federation.features.clusterprofiles.names import CLUSTER_PROFILES

_IMMUTABLE = {
    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "the manager of a cluster is immutable"}]
}


class ClusterManager(Model):
    """The system that manages the cluster."""

    name: str
    """Its name; profiles of this product have "federation"."""


class ClusterProfileSpec(Model):
    """The properties that the manager declares about the cluster."""

    cluster_manager: Annotated[ClusterManager, Field(json_schema_extra=_IMMUTABLE)]
    """The manager of the cluster, who alone writes its profile."""
    display_name: str | None = None
    """The name to show to people."""


class ClusterVersion(Model):
    """The versions that the cluster runs."""

    kubernetes: str | None = None
    """The version of Kubernetes."""


class Property(Model):
    """A characteristic of the cluster."""

    last_observed_time: DateTime | None = None
    """When the characteristic was observed."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """The name, well known or of the manager's own."""
    value: Annotated[str, Field(min_length=1, max_length=1024)]
    """The value."""


class ClusterProfileStatus(Model):
    """The observed state of the cluster."""

    access_providers: list[AnyObject] | None = None
    """How clients get credentials for the cluster, with which it can join here. This product writes none."""
    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The conditions of the cluster: ControlPlaneHealthy and Joined."""
    credential_providers: list[AnyObject] | None = None
    """The earlier name of accessProviders."""
    properties: list[Property] | None = None
    """The characteristics of the cluster."""
    version: ClusterVersion | None = None
    """The versions that the cluster runs."""


class ClusterProfile(Kind):
    """ClusterProfile describes a cluster for tools that work with several."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLUSTER_PROFILES,
        columns=(
            Column("Manager", ".spec.clusterManager.name"),
            Column("Healthy", ".status.conditions[?(@.type=='ControlPlaneHealthy')].status"),
            Column("Version", ".status.version.kubernetes"),
            AGE,
        ),
    )

    spec: ClusterProfileSpec
    status: ClusterProfileStatus | None = None
