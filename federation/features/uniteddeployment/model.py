"""UnitedDeployment: one workload per subset from one template (docs/reference/uniteddeployment.md)."""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.kruise.common import IntOrPercent, NodeSelectorTerm, NodeToleration
from federation.api.resources import UNITED_DEPLOYMENTS
from federation.api.v1alpha1.base import AGE, AnyObject, Column, DateTime, Definition, Int32, Int64, Kind, Model
from federation.api.v1alpha1.common import LabelSelector

_BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_BY_TYPE = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
_OPEN = ConfigDict(extra="allow", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
"""For parts of other kinds: fields that are not named here are stored as they are."""
Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int32"})]


class TemplateMeta(Model):
    """Labels and annotations."""

    model_config = _OPEN

    annotations: dict[str, str] | None = None
    """The annotations."""
    labels: dict[str, str] | None = None
    """The labels."""


class RequiredNodes(Model):
    """Alternative terms, of which one must match a node."""

    model_config = _OPEN

    node_selector_terms: list[NodeSelectorTerm] | None = None
    """The alternatives. The subset's expressions are added to each."""


class NodeAffinity(Model):
    """The nodes that the pods need or prefer."""

    model_config = _OPEN

    required_during_scheduling_ignored_during_execution: RequiredNodes | None = None
    """The nodes that the pods need."""


class Affinity(Model):
    """The nodes and pods that the pods need or prefer to be near to."""

    model_config = _OPEN

    node_affinity: NodeAffinity | None = None
    """The nodes that the pods need or prefer."""


class TemplatePodSpec(Model):
    """The spec of the pods, as of a Pod."""

    model_config = _OPEN

    affinity: Affinity | None = None
    """The nodes and pods that the pods need or prefer to be near to."""
    containers: list[AnyObject] | None = None
    """The containers of the pods."""
    tolerations: list[NodeToleration] | None = None
    """The taints of nodes that the pods tolerate. The subset's tolerations are added."""


class PodTemplate(Model):
    """The template of the pods. Its labels must match spec.selector."""

    model_config = _OPEN

    metadata: TemplateMeta | None = None
    """Labels and annotations of the pods."""
    spec: TemplatePodSpec | None = None
    """The spec of the pods."""


class WorkloadSpec(Model):
    """The spec of the workloads, as in their own kind."""

    model_config = _OPEN

    strategy: AnyObject | None = None
    """How Deployments replace their pods."""
    template: PodTemplate | None = None
    """The template of the pods."""
    update_strategy: AnyObject | None = None
    """How StatefulSets and CloneSets replace their pods."""


class WorkloadTemplate(Model):
    """A template of the workloads, with the spec of their kind."""

    metadata: TemplateMeta | None = None
    """Labels and annotations of the workloads. The labels must match spec.selector."""
    spec: WorkloadSpec
    """The spec of the workloads, as in their own kind, without replicas, selector and partition."""


class SubsetTemplate(Model):
    """The template of the workloads. Exactly one field must be set; it can be replaced by another one later, which
    deletes the workloads of the former kind.
    """

    advanced_stateful_set_template: WorkloadTemplate | None = None
    """Creates a StatefulSet of apps.kruise.io/v1beta1 for each subset. The cluster must serve that kind."""
    clone_set_template: WorkloadTemplate | None = None
    """Creates a CloneSet of apps.kruise.io/v1alpha1 for each subset. The cluster must serve that kind."""
    deployment_template: WorkloadTemplate | None = None
    """Creates a Deployment for each subset."""
    stateful_set_template: WorkloadTemplate | None = None
    """Creates a StatefulSet for each subset."""


class TargetCluster(Model):
    """A cluster of the cluster registry."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the cluster."""
    namespace: str | None = None
    """The namespace of the cluster's object in the registry. Absent for "default". FederatedClusters have no namespace,
    so any namespace of the registry is accepted."""


class ClusterType(Model):
    """The kind of the objects in a cluster registry."""

    api_version: str | None = None
    """The apiVersion of the kind."""
    kind: str | None = None
    """FederatedCluster of this project, or Cluster of Kubernetes' former cluster registry, which stands for it."""


class ClusterRegistry(Model):
    """The clusters that subsets may name as their target."""

    cluster_type: ClusterType | None = None
    """The kind of the cluster objects. Absent for FederatedCluster. A registry of an unknown kind has no
    clusters."""
    namespaces: list[str] | None = None
    """The namespaces that targetCluster may name. Absent for "default"."""
    selector: dict[str, str] | None = None
    """Labels that the clusters must have. Absent for all clusters."""


class SubsetNodeSelector(Model):
    """Nodes, as alternative terms."""

    node_selector_terms: list[NodeSelectorTerm] | None = None
    """The alternatives, of which one must match a node. Their matchFields have no effect."""


class Subset(Model):
    """A part of the replicas: the nodes that they run on, and how many there are."""

    max_replicas: IntOrPercent | None = None
    """The most replicas: an integer, or a percentage of spec.replicas, rounded half up. Absent for any number. At least
    one subset must have no maximum. Cannot be combined with replicas in any subset."""
    min_replicas: IntOrPercent | None = None
    """The fewest replicas: an integer, or a percentage of spec.replicas, rounded half up. Absent for 0. Minimums are
    filled first, in the order of the subsets. Cannot be combined with replicas in any subset."""
    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
    """The name of the subset, unique in the UnitedDeployment. It is part of the names of its workloads."""
    node_selector: SubsetNodeSelector | None = None
    """Another form of nodeSelectorTerm, with alternative terms. Only one of them can be set. It cannot be changed while
    the subset exists. An extension of this project."""
    node_selector_term: NodeSelectorTerm | None = None
    """The nodes that pods of this subset may run on. It cannot be changed while the subset exists. The matchFields have
    no effect."""
    patch: AnyObject | None = None
    """A strategic merge patch of the pod template, for example of the image, resources or environment variables. It is
    applied last and can change everything."""
    replicas: IntOrPercent | None = None
    """The number of replicas: an integer, or a percentage of spec.replicas, rounded half up. Percentages of all subsets
    that add up to 100 are rounded so that they always give the total. Subsets without a number share the rest evenly.
    Not with the schedule strategy Adaptive."""
    target_cluster: TargetCluster | None = None
    """The member cluster that runs the pods of this subset. Absent on a host, the propagation policy chooses the
    clusters; inside a cluster, the field has no effect. It cannot be changed while the subset exists. An extension of
    this project."""
    tolerations: list[NodeToleration] | None = None
    """Tolerations that are added to the pods of this subset. They cannot be changed while the subset exists."""


class AdaptiveStrategy(Model):
    """When a subset counts as unschedulable, and what happens to its pods."""

    reschedule_critical_seconds: Int32 | None = None
    """A subset becomes unschedulable when the scheduler could not place one of its pods for this many seconds after the
    creation of the pod. The default is 30."""
    reserve_unschedulable_pods: bool | None = None
    """Whether pods that cannot be scheduled stay while other subsets run substitutes for them. When such a pod becomes
    ready, its substitute is removed. Only with deploymentTemplate and cloneSetTemplate. The default is false, which
    moves the replicas to other subsets."""
    unschedulable_duration: Int32 | None = None
    """Seconds that a subset stays unschedulable. It gets no more replicas until then. With reserveUnschedulablePods,
    the seconds that a reserved pod must be ready before its substitute is removed. The default is 300."""
    unschedulable_last_seconds: Int32 | None = None
    """Another name of unschedulableDuration, which has precedence. An extension of this project."""


class ScheduleStrategy(Model):
    """Whether replicas move away from a subset that cannot run them."""

    adaptive: AdaptiveStrategy | None = None
    """The parameters of the type Adaptive."""
    type: Annotated[str, Field(json_schema_extra={"enum": ["", "Adaptive", "Fixed"]})] | None = None
    """Fixed, the default, keeps the division whether or not pods can be scheduled. Adaptive moves replicas from a
    subset that cannot run them to others."""


class Topology(Model):
    """The subsets and how they react to pods that cannot be scheduled."""

    cluster_registry: ClusterRegistry | None = None
    """The clusters that targetCluster of the subsets may name. Absent for all FederatedClusters. An extension of this
    project."""
    schedule_strategy: ScheduleStrategy | None = None
    """Whether replicas move away from a subset that cannot run them."""
    subsets: Annotated[list[Subset], Field(json_schema_extra=_BY_NAME)] | None = None
    """The subsets in the order in which they are filled. They are emptied in the opposite order."""


class ManualUpdate(Model):
    """The progress of an update."""

    partitions: dict[str, Count] | None = None
    """The number of pods of each subset that stay on the old revision, by the name of the subset. Without an entry all
    pods of the subset are updated. Deployments have no partition."""


class UpdateStrategy(Model):
    """How pods are updated to a new template."""

    manual_update: ManualUpdate | None = None
    """The parameters of the type Manual."""
    type: Annotated[str, Field(json_schema_extra={"enum": ["", "Manual"]})] | None = None
    """Manual, the only type: partitions decide how many pods of a subset are updated."""


class UnitedDeploymentSpec(Model):
    """The template, the subsets and the number of replicas."""

    replicas: Count | None = None
    """The number of replicas of all subsets together. Without it, the sum of the subsets' replicas if each has an
    integer, otherwise 1."""
    revision_history_limit: Count | None = None
    """The number of old revisions of the template to keep. The default is 10."""
    selector: LabelSelector
    """The labels of the pods. The template's labels must match it."""
    template: SubsetTemplate
    """The template of the workloads."""
    topology: Topology | None = None
    """The subsets and how they react to pods that cannot be scheduled."""
    update_strategy: UpdateStrategy | None = None
    """How pods are updated to a new template."""


class UnitedDeploymentCondition(Model):
    """One aspect of the state."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    message: str | None = None
    """Details of the last transition, for people."""
    reason: str | None = None
    """The reason of the last transition."""
    status: str
    """Whether the condition holds: True, False or Unknown."""
    type: str
    """The aspect. Of the UnitedDeployment: SubsetProvisioned, SubsetUpdated, UnitedDeploymentUpdated. Of a subset:
    Schedulable, Reachable."""


class SubsetStatus(Model):
    """The replicas of one subset."""

    conditions: Annotated[list[UnitedDeploymentCondition], Field(json_schema_extra=_BY_TYPE)] | None = None
    """Aspects of the subset's state. Schedulable is False while the subset gets no more replicas. Reachable
    is False while its cluster cannot be observed; the subset keeps its replicas meanwhile."""
    name: str
    """The name of the subset."""
    partition: Int32 | None = None
    """The number of pods that stay on the old revision."""
    ready_replicas: Int32 | None = None
    """The number of ready pods."""
    replicas: Int32 | None = None
    """The number of replicas that the subset should have."""
    reserved_pods: Int32 | None = None
    """The number of reserved pods: they cannot be scheduled, and other subsets run substitutes for them."""


class UpdateStatus(Model):
    """The progress of an update, as in v1alpha1."""

    current_partitions: dict[str, Int32] | None = None
    """The partition of each subset. In v1beta1: subsetStatuses[].partition."""
    updated_revision: str | None = None
    """The newest revision. In v1beta1: status.updatedRevision."""


class UnitedDeploymentStatus(Model):
    """The replicas of all subsets, and the revisions of the template."""

    collision_count: Int32 | None = None
    """How often the name of a new revision was taken already."""
    conditions: Annotated[list[UnitedDeploymentCondition], Field(json_schema_extra=_BY_TYPE)] | None = None
    """Aspects of the state. SubsetProvisioned and SubsetUpdated are False with the error while workloads cannot be
    created, deleted or updated."""
    current_revision: str | None = None
    """The revision of the template that pods had before the latest update; the newest one when all pods have it."""
    label_selector: str | None = None
    """The selector of the pods that autoscalers count. Reserved pods are not among them."""
    observed_generation: Int64 | None = None
    """The generation that the status was computed for."""
    ready_replicas: Int32 | None = None
    """The number of ready pods."""
    replicas: Int32 | None = None
    """The number of pods, without reserved ones."""
    reserved_pods: Int32 | None = None
    """The number of reserved pods."""
    subset_replicas: dict[str, Int32] | None = None
    """The replicas of each subset, as in v1alpha1. In v1beta1: subsetStatuses[].replicas."""
    subset_statuses: Annotated[list[SubsetStatus], Field(json_schema_extra=_BY_NAME)] | None = None
    """The replicas of each subset, in the order of the spec."""
    update_status: UpdateStatus | None = None
    """The progress of an update, as in v1alpha1."""
    updated_ready_replicas: Int32 | None = None
    """The number of ready pods with the newest revision."""
    updated_replicas: Int32 | None = None
    """The number of pods with the newest revision."""
    updated_revision: str | None = None
    """The newest revision of the template: the name of a ControllerRevision."""


class UnitedDeployment(Kind):
    """UnitedDeployment divides replicas over subsets of nodes and manages one workload for each subset."""

    DEFINITION: ClassVar[Definition] = Definition(
        UNITED_DEPLOYMENTS,
        "ud",
        also_served=("v1alpha1",),
        is_scalable=True,
        columns=(
            Column("DESIRED", ".spec.replicas", "integer"),
            Column("CURRENT", ".status.replicas", "integer"),
            Column("UPDATED", ".status.updatedReplicas", "integer"),
            Column("READY", ".status.readyReplicas", "integer"),
            Column("AGE", AGE.json_path, AGE.type),
        ),
    )

    spec: UnitedDeploymentSpec | None = None
    """The template, the subsets and the number of replicas."""
    status: UnitedDeploymentStatus | None = None
    """The replicas of all subsets, and the revisions of the template. Written by the controller."""
