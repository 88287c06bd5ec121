"""PropagationPolicy and ClusterPropagationPolicy: where objects go, and how replicas are divided.

Every field is served by one built-in scheduler plugin. Fields that are ours and not KubeAdmiral's say so: they are
optional, and a manifest without them keeps its meaning.

Reference: docs/reference/kinds.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.api.v1alpha1.base import (
    AGE,
    LABEL_KEY,
    Column,
    Definition,
    Duration,
    Kind,
    Model,
    NonNegative,
    PolicyMeta,
)
from federation.api.v1alpha1.changewaves import ChangeRollout, PolicyStatus
from federation.api.v1alpha1.common import ClusterSelectorTerm, ResourceSelector, Toleration
from federation.api.v1alpha1.failoverrules import Failover
from federation.api.v1alpha1.rolloutwaves import Rollout
from federation.api.v1alpha1.workloadaffinity import ClusterWorkloadAffinity, WorkloadAffinity


class SchedulingMode(StrEnum):
    """Duplicate copies the object with all its replicas into each cluster; Divide splits the replicas."""

    DUPLICATE = "Duplicate"
    DIVIDE = "Divide"


class ReplicasStrategy(StrEnum):
    """Spread divides by weight; Binpack fills one cluster after the other."""

    BINPACK = "Binpack"
    SPREAD = "Spread"


class Preferences(Model):
    """Limits and weight of one cluster in Divide mode."""

    max_replicas: NonNegative | None = None
    """The most replicas for the cluster; absent means no limit."""
    min_replicas: NonNegative | None = None
    """The fewest replicas for the cluster."""
    priority: NonNegative | None = None
    """The priority of the cluster for Binpack; a higher one is filled first."""
    weight: NonNegative | None = None
    """The cluster's share of the replicas relative to the other clusters' weights."""


class ClusterPlacement(Model):
    """One cluster that may be used, and its preferences."""

    cluster: str
    """The name of the FederatedCluster. "*" stands for every cluster that has no entry, also one that joins later; that
    is an extension of this project."""
    preferences: Preferences | None = None
    """Limits and weight of the cluster."""


class AutoMigrationTrigger(Model):
    """When replicas count as failed to schedule."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    pod_unschedulable_for: Duration | None = None
    """How long a Pod must have been unschedulable before its replica is moved to another cluster."""


class Failback(Model):
    """How replicas return to a cluster that has capacity again. An extension of this project."""

    batch_size: Annotated[
        int | str,
        Field(json_schema_extra={"x-kubernetes-int-or-string": True, "pattern": "^[0-9]{1,3}%$"}),
    ] = "25%"
    """The most replicas that return at a time, as a number or as a percentage of all, rounded up. They run in addition
    to the replicas that they replace until they are ready. With 0, replicas do not return."""
    stable_for: Duration = "5m"
    """How long the cluster must have had capacity before the first replica returns."""


class AutoMigration(Model):
    """Moves replicas that a cluster cannot schedule to clusters that can."""

    failback: Failback | None = None
    """How replicas return; absent means the defaults. An extension of this project."""
    keep_unschedulable_replicas: bool = False
    """Whether replicas that cannot be scheduled stay, in addition to those that replace them in other clusters."""
    when: AutoMigrationTrigger = AutoMigrationTrigger(pod_unschedulable_for="1m")
    """When replicas are moved."""


class RescheduleWhen(Model):
    """The changes after which objects are rescheduled. A change of the object itself always counts."""

    cluster_api_resources_changed: Annotated[bool, Field(alias="clusterAPIResourcesChanged")] = False
    """Whether a change of the API resources that a cluster serves triggers rescheduling."""
    cluster_joined: bool = False
    """Whether a cluster that is new since the last decision triggers rescheduling, as soon as it is ready."""
    cluster_labels_changed: bool = False
    """Whether a change of a cluster's labels triggers rescheduling."""
    policy_content_changed: bool = True
    """Whether a change of the policy's content triggers rescheduling."""


class ReplicaRescheduling(Model):
    """How replicas may move."""

    avoid_disruption: bool = True
    """Whether running replicas stay where possible, instead of moving to the exact division."""


class ReschedulePolicy(Model):
    """When and how objects are scheduled again."""

    disable_rescheduling: bool | None = None
    """Whether an object keeps its first placement for ever."""
    replica_rescheduling: Annotated[ReplicaRescheduling, Field(json_schema_extra={"default": {}})] = (
        ReplicaRescheduling()
    )
    """How replicas may move."""
    reschedule_when: RescheduleWhen | None = None
    """The changes that trigger rescheduling."""


class UnsatisfiableAction(StrEnum):
    """Whether replicas that would violate a constraint stay unplaced, or are placed nevertheless."""

    DO_NOT_SCHEDULE = "DoNotSchedule"
    SCHEDULE_ANYWAY = "ScheduleAnyway"


class TopologySpreadConstraint(Model):
    """How replicas are spread over domains: clusters with the same value of a label. An extension of this project."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
                    "message": "can only be given with whenUnsatisfiable: DoNotSchedule; remove it or change that",
                    "fieldPath": ".minDomains",
                }
            ]
        }
    )

    max_skew: Annotated[int, Field(ge=1, json_schema_extra={"format": "int32"})]
    """How many more replicas a domain may have than the domain with the fewest; of objects that are copied, how many
    more clusters."""
    min_domains: Annotated[int | None, Field(ge=1, json_schema_extra={"format": "int32"})] = None
    """The fewest domains. With fewer of them, the lowest number of replicas in a domain counts as 0. Only with
    DoNotSchedule."""
    topology_key: Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
    """The cluster label whose values are the domains."""
    when_unsatisfiable: UnsatisfiableAction
    """Whether replicas that would violate the constraint are placed. DoNotSchedule leaves them unplaced and excludes
    clusters without the label; ScheduleAnyway prefers even domains and places every replica."""


class ClusterSpreadConstraint(Model):
    """How many groups of clusters an object is in. An extension of this project."""

    model_config = ConfigDict(
        json_schema_extra={
            "minProperties": 1,
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.minGroups) || !has(self.maxGroups) || self.minGroups <= self.maxGroups",
                    "message": "is more than maxGroups; lower it, or raise that",
                    "fieldPath": ".minGroups",
                }
            ],
        }
    )

    max_groups: Annotated[int | None, Field(ge=1, le=10000, json_schema_extra={"format": "int32"})] = None
    """The most groups; absent means no limit."""
    min_groups: Annotated[int | None, Field(ge=1, le=10000, json_schema_extra={"format": "int32"})] = None
    """The fewest groups; absent means 1. Fewer replicas than that need fewer groups."""
    topology_key: Annotated[str | None, Field(max_length=317, pattern=LABEL_KEY)] = None
    """The cluster label whose values are the groups; clusters without it get nothing. Absent: each cluster is one."""


class GroupUse(StrEnum):
    """Fallback uses a group only if the groups before it cannot take the whole workload; Overflow lets what has no room
    there flow into it.
    """

    FALLBACK = "Fallback"
    OVERFLOW = "Overflow"


class GroupReturn(StrEnum):
    """Never keeps replicas in the group in which they run; WhenRoom lets them return to an earlier group."""

    NEVER = "Never"
    WHEN_ROOM = "WhenRoom"


class ClusterPreferenceGroup(Model):
    """One of several groups of clusters that are used in their order. An extension of this project.

    All conditions that are given must hold. A cluster belongs to the first group that it matches.
    """

    cluster_affinity: list[ClusterSelectorTerm] | None = None
    """Terms over cluster labels and names, of which at least one must match."""
    cluster_selector: dict[str, str] | None = None
    """Labels that a cluster of the group must carry."""
    clusters: Annotated[list[str] | None, Field(max_length=1000)] = None
    """The names of the FederatedClusters of the group."""
    name: Annotated[str, Field(min_length=1, max_length=63)]
    """The name of the group, for reasons and the console."""
    return_policy: GroupReturn = GroupReturn.NEVER
    """Whether replicas leave this group when an earlier one has room for them again."""
    when: GroupUse = GroupUse.FALLBACK
    """When the group is used; without effect for the first one."""


class PolicyPreemption(StrEnum):
    """Whether a policy takes objects from another one that selects them, too."""

    ALWAYS = "Always"
    NEVER = "Never"


class PolicySuspension(Model):
    """What waits for the objects of the policy."""

    reason: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    """The reason, and the contact for questions. Messages quote it."""
    scheduling: bool = False
    """Whether the objects are not scheduled: new ones are not placed, and placed ones stay where they are."""


class GangRule(StrEnum):
    """Always places an object only where all of its pods have room at the same time; Never places it without that."""

    ALWAYS = "Always"
    NEVER = "Never"


class PropagationPolicySpec(Model):
    """The selection of clusters, and the division of replicas."""

    auto_migration: AutoMigration | None = None
    """Moves replicas that a cluster cannot schedule; absent disables it."""
    change_rollout: ChangeRollout | None = None
    """The waves in which objects get a change of this policy; absent changes all objects at once. An extension of this
    project."""
    cluster_affinity: list[ClusterSelectorTerm] | None = None
    """Terms over cluster labels and names, of which at least one must match."""
    cluster_groups: Annotated[
        list[ClusterPreferenceGroup] | None,
        Field(
            max_length=16,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ] = None
    """Groups of clusters in the order in which they are used; clusters of no group get nothing. An extension of this
    project."""
    cluster_selector: dict[str, str] | None = None
    """Labels that a cluster must carry."""
    disable_follower_scheduling: bool | None = None
    """Whether objects that a workload needs (ConfigMaps, Secrets, …) are not placed in its clusters automatically."""
    failover: Failover | None = None
    """Whether and when replicas leave clusters that are lost or drained. An extension of this project."""
    gang: GangRule | None = None
    """Whether the pods of an object start together in one cluster or not at all. Absent leaves it to the kind: objects
    of several components and Indexed Jobs do. An extension of this project."""
    max_clusters: NonNegative | None = None
    """The most clusters that an object may go to. KubeAdmiral accepts a negative number here and then schedules
    nothing; it is rejected."""
    placement: list[ClusterPlacement] | None = None
    """The clusters that may be used, with their preferences; empty allows all."""
    preemption: PolicyPreemption | None = None
    """Whether the policy, where it comes first, takes objects that another policy has placed and still selects: Always
    (the default) or Never. An extension of this project."""
    priority: Annotated[
        int | None,
        Field(ge=-(10**9), le=10**9, json_schema_extra={"format": "int32"}),
    ] = None
    """Of several policies of a namespace, or cluster-wide ones, that select an object, the one with the highest
    priority applies, then the first by name. Absent means 0. An extension of this project."""
    replicas_strategy: ReplicasStrategy = ReplicasStrategy.SPREAD
    """How replicas are divided in Divide mode."""
    reschedule_policy: Annotated[
        ReschedulePolicy, Field(json_schema_extra={"default": {"rescheduleWhen": {"policyContentChanged": True}}})
    ] = ReschedulePolicy(reschedule_when=RescheduleWhen())
    """When and how objects are scheduled again."""
    resource_selectors: list[ResourceSelector] | None = None
    """The objects that the policy applies to without a label on them. An object's policy label wins over it. An
    extension of this project."""
    rollout: Rollout | None = None
    """The waves in which clusters get a new pod template; absent changes all clusters at once. An extension of this
    project."""
    scheduling_mode: SchedulingMode
    """Whether each cluster gets all replicas or its share."""
    scheduling_priority: Annotated[
        int | None,
        Field(ge=-(10**9), le=10**9, json_schema_extra={"format": "int32"}),
    ] = None
    """The priority of decisions about its objects: with many pending, higher numbers come first. Absent means 0. Among
    equal priorities, a change of one object precedes changes that affect many. No object starves, and no placed object
    is displaced. An extension of this project."""
    scheduling_profile: str | None = None
    """The SchedulingProfile to schedule with; empty uses the default."""
    spread_constraints: Annotated[
        list[ClusterSpreadConstraint] | None,
        Field(
            max_length=8,
            json_schema_extra={
                "x-kubernetes-list-type": "atomic",
                "x-kubernetes-validations": [
                    {
                        "rule": "self.all(each, self.exists_one(other, has(other.topologyKey) == has(each.topologyKey)"
                        " && (!has(each.topologyKey) || other.topologyKey == each.topologyKey)))",
                        "message": "names a topologyKey twice; keep one constraint per topologyKey",
                    }
                ],
            },
        ),
    ] = None
    """How many clusters, zones, regions or other groups of clusters an object is in, at least and at most. An extension
    of this project."""
    sticky_cluster: bool | None = None
    """Whether an object is scheduled only once, for stateful workloads and jobs. KubeAdmiral's older manifests have
    this field; its successor is reschedulePolicy.disableRescheduling, and either switches rescheduling off."""
    suspension: PolicySuspension | None = None
    """Whether decisions about its objects wait. An extension of this project."""
    tolerations: list[Toleration] | None = None
    """The cluster taints that are tolerated."""
    topology_spread: Annotated[
        list[TopologySpreadConstraint] | None,
        Field(
            max_length=8,
            json_schema_extra={
                "x-kubernetes-list-type": "atomic",
                "x-kubernetes-validations": [
                    {
                        "rule": "self.all(each, self.exists_one(other, other.topologyKey == each.topologyKey))",
                        "message": "names a topologyKey twice; keep one constraint per topologyKey",
                    }
                ],
            },
        ),
    ] = None
    """How replicas are spread over domains of clusters such as regions and zones, outermost first: each constraint
    holds within every domain of the one before. An extension of this project."""
    workload_affinity: WorkloadAffinity | None = None
    """Workloads that the object runs together with. When those of a required term move, it follows them. An extension
    of this project."""
    workload_anti_affinity: WorkloadAffinity | None = None
    """Workloads that the object runs apart from; they keep away from it, too. An extension of this project."""


class ClusterPropagationPolicySpec(PropagationPolicySpec):
    """The selection of clusters, and the division of replicas."""

    workload_affinity: ClusterWorkloadAffinity | None = None  # type: ignore[assignment]  # adds namespaces to terms
    """Workloads that the object runs together with. When those of a required term move, it follows them. An extension
    of this project."""
    workload_anti_affinity: ClusterWorkloadAffinity | None = None  # type: ignore[assignment]  # adds namespaces to terms
    """Workloads that the object runs apart from; they keep away from it, too. An extension of this project."""


_COLUMNS = (
    Column("Mode", ".spec.schedulingMode"),
    Column("Strategy", ".spec.replicasStrategy"),
    Column("Profile", ".spec.schedulingProfile"),
    Column("Objects", ".status.refCount", "integer"),
    AGE,
)


class PropagationPolicy(Kind):
    """PropagationPolicy describes where the objects of its namespace go, and how their replicas are divided."""

    DEFINITION: ClassVar[Definition] = Definition(PROPAGATION_POLICIES, "pp", columns=_COLUMNS)

    metadata: PolicyMeta | None = None
    spec: PropagationPolicySpec
    status: PolicyStatus | None = None


class ClusterPropagationPolicy(Kind):
    """ClusterPropagationPolicy describes where objects of any namespace, and objects without one, go."""

    DEFINITION: ClassVar[Definition] = Definition(CLUSTER_PROPAGATION_POLICIES, "cpp", columns=_COLUMNS)

    metadata: PolicyMeta | None = None
    spec: ClusterPropagationPolicySpec
    status: PolicyStatus | None = None
