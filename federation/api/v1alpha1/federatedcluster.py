"""FederatedCluster: a member cluster, its address and its state (docs/reference/kinds.md)."""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import FEDERATED_CLUSTERS
from federation.api.v1alpha1.base import Column, DateTime, Definition, Int64, Kind, Model, QuantityText


class SecretReference(Model):
    """A Secret in the system namespace."""

    name: str
    """The name of the Secret."""


class Taint(Model):
    """Repels objects without a matching toleration from the cluster."""

    effect: str
    """NoSchedule, PreferNoSchedule or NoExecute."""
    key: str
    """The taint key."""
    time_added: DateTime | None = None
    """When the taint was added."""
    value: str | None = None
    """The taint value."""


class SyncMode(StrEnum):
    """The side that opens the connection between host and member."""

    PUSH = "Push"
    PULL = "Pull"


class FederatedClusterSpec(Model):
    """The address, credentials and taints of a member cluster."""

    api_endpoint: str
    """The address of the member's API server: a hostname, hostname:port, IP or IP:port."""
    insecure: bool | None = None
    """Whether the member's serving certificate is not verified."""
    secret_ref: SecretReference
    """The Secret with the credentials for the member."""
    sync_mode: SyncMode | None = None
    """Push, the default: the host connects to `apiEndpoint`. Pull: the member's agent connects to the host, and carries
    the host's connections to `apiEndpoint`, as seen from the member. An extension of this project."""
    taints: list[Taint] | None = None
    """The cluster's taints."""
    use_service_account: bool | None = None
    """Whether the control plane uses a service account of its own in the member. Credentials in the Secret create the
    account at join and are removed then."""


class ClusterCondition(Model):
    """A condition of the cluster."""

    last_probe_time: DateTime
    """When the condition was last checked."""
    last_transition_time: DateTime
    """When the status last changed."""
    message: str
    """A message about the last transition."""
    reason: str
    """The reason of the last transition, in CamelCase."""
    status: str
    """True, False or Unknown."""
    type: str
    """Joined, Ready, Offline, Authorized or EvictionAllowed."""


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
    """The free amount per node, a lower bound; a missing resource is used up."""


class NodeClass(Model):
    """Nodes with equal taints and equal common labels."""

    free: list[FreeNodes] | None = None
    """The nodes by free resources, most first; nodes without free resources are omitted."""
    labels: dict[str, str] | None = None
    """The labels that all nodes of the class have."""
    largest: dict[str, QuantityText] | None = None
    """The largest allocatable amount of each resource on any node of the class."""
    nodes: Int64
    """The number of schedulable nodes."""
    taints: list[NodeTaint] | None = None
    """The taints of the nodes that repel Pods."""


class DeviceAttribute(Model):
    """The value of an attribute; one field is set."""

    as_bool: Annotated[bool | None, Field(alias="bool")] = None
    """A truth value."""
    as_int: Annotated[Int64 | None, Field(alias="int")] = None
    """A number."""
    string: str | None = None
    """A text."""
    version: str | None = None
    """A semantic version."""


class DeviceKind(Model):
    """Devices that are equal in driver, attributes and capacities."""

    attributes: dict[str, DeviceAttribute] | None = None
    """The attributes by name with domain, without those that nearly every device has a value of its own of."""
    capacity: dict[str, QuantityText] | None = None
    """The capacities by name with domain."""
    classes: list[str] | None = None
    """The DeviceClasses of the cluster that select these devices."""
    displaces: dict[str, Int64] | None = None
    """For partitions: how many devices of other kinds, by their resource, cannot be used beside one of these."""
    driver: str
    """The driver."""
    resource: str
    """The resource whose amounts are the devices of this kind."""


class Resources(Model):
    """The capacity of the cluster's schedulable nodes."""

    allocatable: dict[str, QuantityText] | None = None
    """The resources of all schedulable nodes."""
    available: dict[str, QuantityText] | None = None
    """The allocatable resources that no Pod has requested."""
    devices: list[DeviceKind] | None = None
    """The devices that drivers report with ResourceSlices, by kind. Amounts are among the resources, by kind and by
    DeviceClass. An extension of this project."""
    node_classes: list[NodeClass] | None = None
    """The nodes by class with their free resources, to count how many replicas of a Pod fit. Amounts are rounded down.
    An extension of this project; at most 16 classes and 64 entries of `free`."""
    omitted_node_labels: list[str] | None = None
    """The keys of node labels that `nodeClasses` ignores, because nearly every node has a value of its own. An
    extension of this project."""
    schedulable_nodes: Int64 | None = None
    """The number of schedulable nodes."""
    waiting: dict[str, QuantityText] | None = None
    """The requests of Pods without a node, and their number as `pods`. An extension of this project."""


class Credential(Model):
    """The service account token that the control plane uses in the member. An extension of this project."""

    expires: DateTime | None = None
    """When the token expires, unless it is renewed before; absent for a token without expiry."""
    service_account: str
    """The name of the service account in the member's system namespace."""


class FederatedClusterStatus(Model):
    """The observed state of the cluster."""

    api_resource_types: list[APIResource] | None = None
    """The kinds that the member serves."""
    cluster_uid: str | None = None
    """The uid of the member's namespace kube-system when it joined. A server with another uid is not used. An extension
    of this project."""
    conditions: Annotated[
        list[ClusterCondition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """The conditions of the cluster."""
    credential: Credential | None = None
    """The service account token in use; absent when the Secret's given credentials are used."""
    join_performed: bool | None = None
    """Whether the cluster has joined, so that leaving must clean it up."""
    kubernetes_version: str | None = None
    """The version of Kubernetes that the member reports, for example v1.35.2. An extension of this project."""
    region: str | None = None
    """The value of the label topology.kubernetes.io/region of the FederatedCluster, or else of the member's nodes:
    several, separated by commas, if they differ. An extension of this project."""
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
            Column("version", ".status.kubernetesVersion"),
            Column("region", ".status.region"),
            Column("nodes", ".status.resources.schedulableNodes", "integer"),
            Column("cpu", ".status.resources.allocatable.cpu"),
            Column("memory", ".status.resources.allocatable.memory"),
            Column("age", ".metadata.creationTimestamp", "date"),
        ),
    )

    spec: FederatedClusterSpec | None = None
    status: FederatedClusterStatus | None = None
