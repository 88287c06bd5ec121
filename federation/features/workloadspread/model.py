"""WorkloadSpread: the pods of one workload over ordered subsets of nodes (docs/reference/workloadspread.md)."""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.kruise.common import IntOrPercent, NodeSelectorTerm, NodeToleration, PreferredSchedulingTerm
from federation.api.resources import WORKLOAD_SPREADS
from federation.api.v1alpha1.base import AGE, AnyObject, Column, DateTime, Definition, Int32, Int64, Kind, Model
from federation.api.v1alpha1.common import LabelSelector

_BY_NAME = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
_BY_TYPE = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class TargetReference(Model):
    """A workload in the namespace of the WorkloadSpread. Group, kind and name cannot be changed later."""

    api_version: str
    """The API version of the workload, for example apps/v1."""
    kind: str
    """The kind of the workload: Deployment, ReplicaSet, StatefulSet, Job, CloneSet or a custom kind."""
    name: str
    """The name of the workload."""


class TargetFilter(Model):
    """The pods of the workload that are spread, and how they are counted."""

    replicas_path_list: list[str] | None = None
    """Dotted paths into the workload, for example spec.replicas or spec.groups.0.replicas. The sum of the integers at
    these paths is the number of replicas, of which percentages are taken."""
    selector: LabelSelector | None = None
    """The labels of the pods that are spread; absent for all pods of the workload."""


class Subset(Model):
    """A part of the pods and the nodes that they run on. Subsets are filled in their order."""

    max_replicas: IntOrPercent | None = None
    """The largest number of pods: an integer, or a percentage of the workload's replicas, rounded up. Absent for any
    number. Either all subsets use integers or all use percentages."""
    name: Annotated[str, Field(min_length=1)]
    """The name of the subset, unique in the WorkloadSpread."""
    patch: AnyObject | None = None
    """A strategic merge patch of the pods of this subset, for example of labels, annotations, resources or
    environment variables."""
    preferred_node_selector: list[PreferredSchedulingTerm] | None = None
    """Nodes that the scheduler prefers for pods of this subset. In v1alpha1: preferredNodeSelectorTerms."""
    preferred_node_selector_terms: list[PreferredSchedulingTerm] | None = None
    """The name of preferredNodeSelector in v1alpha1. Use one of the two names."""
    required_node_selector: NodeSelectorTerm | None = None
    """The nodes that pods of this subset may run on. In v1alpha1: requiredNodeSelectorTerm."""
    required_node_selector_term: NodeSelectorTerm | None = None
    """The name of requiredNodeSelector in v1alpha1. Use one of the two names."""
    tolerations: list[NodeToleration] | None = None
    """Tolerations that are added to the pods of this subset."""


class AdaptiveStrategy(Model):
    """How pods leave a subset that cannot run them."""

    disable_simulation_schedule: bool | None = None
    """Whether pods are assigned to subsets without a check that a known node of the subset has room for them."""
    reschedule_critical_seconds: Int32 | None = None
    """A pod that the scheduler could not place for this many seconds is deleted. Its workload creates another one,
    which goes to a later subset: the subset is skipped for five minutes. Absent or 0 keeps pods in their subset."""


class ScheduleStrategy(Model):
    """Whether pods may leave their subset."""

    adaptive: AdaptiveStrategy | None = None
    """The parameters of the type Adaptive."""
    type: Annotated[str, Field(json_schema_extra={"enum": ["", "Adaptive", "Fixed"]})] | None = None
    """Fixed, the default, keeps pods in their subset. Adaptive moves pods from a subset that cannot run them to a later
    one."""


class WorkloadSpreadSpec(Model):
    """How the pods of one workload are spread."""

    schedule_strategy: ScheduleStrategy | None = None
    """Whether pods may leave their subset."""
    subsets: Annotated[list[Subset], Field(json_schema_extra=_BY_NAME)]
    """The subsets in the order in which they are filled. They are emptied in the opposite order."""
    target_filter: TargetFilter | None = None
    """The pods of the workload that are spread; absent for all."""
    target_ref: TargetReference
    """The workload whose pods are spread. No other WorkloadSpread of the namespace may have the same one."""


class SubsetCondition(Model):
    """One aspect of a subset's state."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    message: str | None = None
    """Details of the last transition, for people."""
    observed_generation: Int64 | None = None
    """The generation that the condition was set for."""
    reason: str | None = None
    """The reason of the last transition, in CamelCase."""
    status: str
    """Whether the condition holds: True, False or Unknown."""
    type: str
    """The aspect. Schedulable is False while the scheduler cannot place pods of the subset."""


class SubsetStatus(Model):
    """The pods of one subset."""

    conditions: Annotated[list[SubsetCondition], Field(json_schema_extra=_BY_TYPE)] | None = None
    """Aspects of the subset's state."""
    creating_pods: dict[str, DateTime] | None = None
    """Pods that were admitted and are not observed yet, with the time of their admission. The keys are names of pods,
    or identifiers of pods whose names are generated."""
    deleting_pods: dict[str, DateTime] | None = None
    """Pods whose deletion was admitted and is not observed yet, with the time of that admission."""
    max_replicas: Int32 | None = None
    """The limit of the subset as a number of pods, when the status was computed; absent for any number. This field is
    ours."""
    missing_replicas: Int32
    """The number of pods that the subset can still take; -1 for any number."""
    name: str
    """The name of the subset."""
    replicas: Int32
    """The number of active pods."""
    unschedulable_replicas: Int32 | None = None
    """The number of active pods that the scheduler could not place in time. Only in objects that the federation
    delivers, whose host may move these replicas to another cluster. This field is ours."""


class WorkloadSpreadStatus(Model):
    """The pods of each subset."""

    observed_generation: Int64 | None = None
    """The generation that the status was computed for."""
    pods_resource_version: str | None = None
    """The newest resourceVersion of the pods that the status counts. It is counted again only from pods that are at
    least as new. This field is ours."""
    subset_statuses: list[SubsetStatus] | None = None
    """The pods of every subset, in the order of the spec, whatever their version."""
    unmatched_replicas: Int32 | None = None
    """The number of active pods of the workload that are in no subset; absent for none. This field is ours."""
    versioned_subset_statuses: dict[str, list[SubsetStatus]] | None = None
    """The same per version of the workload. New pods take their place in the entry of their version."""


class WorkloadSpread(Kind):
    """WorkloadSpread spreads the pods of one workload over subsets of nodes, without a change to the workload."""

    DEFINITION: ClassVar[Definition] = Definition(
        WORKLOAD_SPREADS,
        "ws",
        also_served=("v1alpha1",),
        columns=(
            Column("WorkloadName", ".spec.targetRef.name"),
            Column("WorkloadKind", ".spec.targetRef.kind"),
            Column("Adaptive", ".spec.scheduleStrategy.type"),
            AGE,
        ),
    )

    spec: WorkloadSpreadSpec | None = None
    """How the pods of one workload are spread."""
    status: WorkloadSpreadStatus | None = None
    """The pods of each subset. Written by the controller and by the admission of pods."""
