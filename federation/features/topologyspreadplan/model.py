"""TopologySpreadPlan: how the shards of a stateful service are spread over zones and nodes. One of our own kinds.

Reference: docs/reference/topologyspreadplan.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import TOPOLOGY_SPREAD_PLANS
from federation.api.v1alpha1.base import AGE, Column, DateTime, Definition, Int64, Kind, Model, NonNegative
from federation.api.v1alpha1.common import Condition

_LABEL_KEY = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
)
_LABEL_VALUE = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
Name = Annotated[str, Field(min_length=1, max_length=253)]
Positive = Annotated[int, Field(ge=1, le=10_000, json_schema_extra={"format": "int32"})]
Shards = Annotated[int, Field(ge=1, le=1_000, json_schema_extra={"format": "int32"})]


class SpreadMode(StrEnum):
    """The behaviour if constraints cannot guarantee the limits, or allow a deadlock."""

    STANDARD = "Standard"
    STRICT = "Strict"
    RELAXED = "Relaxed"


class SpreadZone(Model):
    """A zone that the pods may use."""

    cluster: Name | None = None
    """The member cluster of the zone. Absent means the only cluster with nodes in the zone."""
    name: Annotated[str, Field(max_length=63, pattern=_LABEL_VALUE)]
    """The value of the zone label of its nodes."""
    nodes: NonNegative | None = None
    """The number of its nodes, for `fedctl topology plan FILE`. The control plane counts the nodes itself."""
    weight: Positive | None = None
    """The weight of the zone's share of the pods. With a weight on any zone, absent means 1, every shard is pinned to
    zones, and zones may differ in size. Without weights all zones have equal shares."""


class SpreadSelector(Model):
    """The labels of the service's pods."""

    match_labels: Annotated[dict[str, str], Field(min_length=1, max_length=32)]
    """Labels that the pod template of each StatefulSet of the service has, and no other pod of the namespace."""


class TopologySpreadPlanSpec(Model):
    """The service, its zones, and the limits."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!(self.shardLabel in self.selector.matchLabels)",
                    "message": "must not be one of the labels of the selector, because it differs between shards",
                    "fieldPath": ".shardLabel",
                }
            ]
        }
    )

    clusters: Annotated[list[Name] | None, Field(max_length=100)] = None
    """The member clusters whose nodes and pods count. Absent or empty means all of them."""
    max_pods_per_node: Positive | None = None
    """The most pods of the service on one node. Absent means less than a third of all pods; not more than a third in
    mode Relaxed."""
    max_pods_per_zone: Positive | None = None
    """The most pods of the service in one zone. Absent means less than half of all pods; not more than half in mode
    Relaxed."""
    max_zone_difference: NonNegative | None = None
    """The most pods that one zone may have more than another before violation V6 is reported. Absent means the limit of
    a zone."""
    mode: SpreadMode = SpreadMode.STANDARD
    """Standard reports limits that cannot be guaranteed, and pins StatefulSets to zones if a deadlock is reachable.
    Strict refuses a plan without enough nodes for the limits. Relaxed allows shares of exactly a third and half, and
    raises maxSkew instead of pinning."""
    replicas: Positive | None = None
    """The pods of each shard. Absent means the replicas of the StatefulSets, or 2 without any."""
    selector: SpreadSelector
    """The pods of the service, by the labels in the pod templates of its StatefulSets."""
    shard_label: Annotated[str, Field(max_length=317, pattern=_LABEL_KEY)]
    """The key of the pod label that differs between shards. Each shard is one StatefulSet."""
    shards: Shards | None = None
    """The declared number of shards. Absent means the number of StatefulSets that the selector matches."""
    zone_key: Annotated[str | None, Field(max_length=317, pattern=_LABEL_KEY)] = None
    """The key of the zone label of nodes. Absent means topology.kubernetes.io/zone, or
    failure-domain.beta.kubernetes.io/zone if only that one is present on nodes."""
    zones: Annotated[
        list[SpreadZone],
        Field(
            min_length=1,
            max_length=20,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ]
    """The zones that the pods may use; every one of them should have a pod."""


class SpreadLimits(Model):
    """The most pods of the service on one node and in one zone."""

    node: NonNegative
    """The most pods on one node."""
    zone: NonNegative | None = None
    """The most pods in one zone; absent if there is only one zone."""


class ShardConstraints(Model):
    """The constraints of one StatefulSet."""

    node_max_skew: Int64
    """The maxSkew of the hard constraint over nodes."""
    stateful_set: str
    """The name of the StatefulSet; #3 for shard 3, counted from 0, before it has one."""
    zone_max_skew: Int64 | None = None
    """The maxSkew of the hard constraint over zones; absent if there is only one zone."""
    zones: list[str]
    """The zones of its required node affinity."""


class SpreadVerdict(Model):
    """The result of the search for deadlocks."""

    avoidance: str | None = None
    """How a reachable deadlock is avoided: Pinned to zones, Relaxed maxSkew, or None."""
    message: str | None = None
    """The verdict in one sentence."""
    result: str
    """DeadlockFree, DeadlockPossible, TooLarge to decide, or Refused."""
    states: NonNegative | None = None
    """The number of states that the search without avoidance has seen."""
    worst_case: SpreadLimits | None = None
    """The most pods on one node and in one zone that the constraints allow without avoidance, in any order of
    scheduling."""


class ClusterShare(Model):
    """The share of one member cluster."""

    cluster: str
    """The name of the cluster."""
    pods: NonNegative
    """The number of pods of the service that are assigned to it."""
    replicas: dict[str, int]
    """The number of pods of each StatefulSet."""
    zones: list[str]
    """Its zones."""


class SpreadViolation(Model):
    """A requirement that the live pods violate."""

    count: Int64 | None = None
    """The observed number."""
    domain: str | None = None
    """The node, zone, pod or StatefulSet that it is about; absent for the whole service."""
    limit: Int64 | None = None
    """The allowed number."""
    message: str
    """The violation in one sentence."""
    rule: str
    """V1 to V10."""
    severity: str
    """critical, warning or info."""
    since: DateTime | None = None
    """When it was first observed."""


class TopologySpreadPlanStatus(Model):
    """The plan, and how the live pods differ from it."""

    clusters: list[ClusterShare] | None = None
    """The shares of member clusters; absent if all zones are in one cluster."""
    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """Planned, ConstraintsApplied and SpreadSatisfied."""
    constraints: list[ShardConstraints] | None = None
    """The constraints of each StatefulSet, at most 500."""
    limits: SpreadLimits | None = None
    """The limits for the present number of pods."""
    message: str | None = None
    """The limits that the zones and nodes do not allow or guarantee, in one line."""
    observed_generation: Int64 | None = None
    """The generation of the spec that the status is about."""
    pods: NonNegative | None = None
    """The number of pods that the service should have."""
    shards: NonNegative | None = None
    """The number of shards."""
    verdict: SpreadVerdict | None = None
    """The result of the search for deadlocks."""
    violations: list[SpreadViolation] | None = None
    """The present violations, at most 100."""
    violations_count: NonNegative | None = None
    """The number of present violations."""


class TopologySpreadPlan(Kind):
    """TopologySpreadPlan spreads the shards of a stateful service over zones and nodes, and checks the live pods."""

    DEFINITION: ClassVar[Definition] = Definition(
        TOPOLOGY_SPREAD_PLANS,
        "tsp",
        columns=(
            Column("Shards", ".status.shards", "integer"),
            Column("Pods", ".status.pods", "integer"),
            Column("Verdict", ".status.verdict.result"),
            Column("Avoidance", ".status.verdict.avoidance"),
            Column("Violations", ".status.violationsCount", "integer"),
            AGE,
        ),
    )

    spec: TopologySpreadPlanSpec
    status: TopologySpreadPlanStatus | None = None
