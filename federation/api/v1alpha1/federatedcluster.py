"""FederatedCluster: a member cluster, how to reach it and how it is doing (docs/reference/kinds.md)."""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import FEDERATED_CLUSTERS
from federation.api.v1alpha1.base import Column, DateTime, Definition, Int64, Kind, Model, QuantityText


class SecretReference(Model):
    """A Secret in the system namespace."""

    name: str
    """The name of the Secret."""


class Taint(Model):
    """Keeps objects that do not tolerate it off the cluster."""

    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    key: str
    """The taint key."""
    time_added: DateTime | None = None
    """When the taint was added."""
    value: str | None = None
    """The taint value."""


class FederatedClusterSpec(Model):
    """How a member cluster is reached, and what is kept off it."""

    api_endpoint: str
    """The address of the member's API server: a hostname, hostname:port, IP or IP:port."""
    insecure: bool | None = None
    """Whether the member's serving certificate is not verified."""
    secret_ref: SecretReference
    """The Secret with the credentials for the member."""
    taints: list[Taint] | None = None
    """The cluster's taints."""
    use_service_account: bool | None = None
    """Whether the given credentials are exchanged for a service account of our own in the member at join."""


class ClusterCondition(Model):
    """One aspect of the cluster's state."""

    last_probe_time: DateTime
    """When the condition was last checked."""
    last_transition_time: DateTime
    """When the status last changed."""
    message: str
    """Details of the last transition, for people."""
    reason: str
    """The reason of the last transition, in CamelCase."""
    status: str
    """True, False or Unknown."""
    type: str
    """Joined, Ready or Offline."""


class APIResource(Model):
    """A kind that the member serves."""

    group: str | None = None
    """The API group."""
    kind: str
    """The kind."""
    plural_name: str
    """The plural name."""
    scope: str
    """Namespaced or Cluster."""
    version: str
    """The API version."""


class NodeTaint(Model):
    """A taint that all nodes of a class have."""

    effect: str
    """NoSchedule or NoExecute."""
    key: str
    """The taint key."""
    value: str | None = None
    """The taint value."""


class FreeNodes(Model):
    """Nodes with similar free resources."""

    nodes: Int64
    """The number of nodes."""
    resources: dict[str, QuantityText]
    """What is free on each of them, at least; a resource that is not named is used up."""


class NodeClass(Model):
    """Nodes that Pods cannot tell apart by taints and common labels."""

    free: list[FreeNodes] | None = None
    """What is free on the nodes, most first; nodes without anything free are left out."""
    labels: dict[str, str] | None = None
    """The labels that all nodes of the class have."""
    largest: dict[str, QuantityText] | None = None
    """The most of each resource that any node of the class offers, in use or not."""
    nodes: Int64
    """The number of nodes that Pods can go to."""
    taints: list[NodeTaint] | None = None
    """The taints that keep Pods away from the nodes."""


class Resources(Model):
    """The capacity of the cluster's schedulable nodes."""

    allocatable: dict[str, QuantityText] | None = None
    """The resources of all schedulable nodes."""
    available: dict[str, QuantityText] | None = None
    """What of the allocatable resources no Pod has requested."""
    node_classes: list[NodeClass] | None = None
    """The nodes by class, with what is free on each node, so that it can be told how many replicas of a Pod fit. Never
    more than there is. An extension of this project; at most 16 classes and 64 entries of `free`."""
    omitted_node_labels: list[str] | None = None
    """The keys of node labels that `nodeClasses` does not tell apart, because nearly every node has its own value. An
    extension of this project."""
    schedulable_nodes: Int64 | None = None
    """The number of nodes that Pods can go to."""
    waiting: dict[str, QuantityText] | None = None
    """What Pods without a node request, and as `pods` how many there are. An extension of this project."""


class FederatedClusterStatus(Model):
    """How the cluster is doing."""

    api_resource_types: list[APIResource] | None = None
    """The kinds that the member serves."""
    cluster_uid: str | None = None
    """The uid of the member's namespace kube-system when it joined. A server with another uid is not used. An extension
    of this project."""
    conditions: Annotated[
        list[ClusterCondition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The aspects of the cluster's state."""
    join_performed: bool | None = None
    """Whether the cluster was joined, so that leaving has something to undo."""
    resources: Resources | None = None
    """The capacity of the cluster's schedulable nodes."""


class FederatedCluster(Kind):
    """FederatedCluster is a member cluster of the federation."""

    DEFINITION: ClassVar[Definition] = Definition(
        FEDERATED_CLUSTERS,
        "fcluster",
        columns=(
            Column("ready", ".status.conditions[?(@.type=='Ready')].status"),
            Column("joined", ".status.conditions[?(@.type=='Joined')].status"),
            Column("age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: FederatedClusterSpec | None = None
    status: FederatedClusterStatus | None = None
