"""ReplicaSchedulingPreference: the division of a federated workload's replicas. The fields are KubeFed's.

Reference: docs/reference/kubefed.md.
"""

from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.kubefedkinds import REPLICA_PREFERENCES
from federation.api.v1alpha1.base import AGE, AnyObject, Column, Definition, Kind, Model, NonNegative


class TargetKind(StrEnum):
    """The kind of the divided object; it has the namespace and name of the preference."""

    FEDERATED_DEPLOYMENT = "FederatedDeployment"
    FEDERATED_REPLICA_SET = "FederatedReplicaSet"


class ClusterPreferences(Model):
    """Limits and weight of one cluster."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
                    "message": "minReplicas must not be above maxReplicas",
                }
            ]
        }
    )

    max_replicas: NonNegative | None = None
    """The most replicas for the cluster; absent means no limit."""
    min_replicas: NonNegative | None = None
    """The fewest replicas for the cluster, 0 by default."""
    weight: NonNegative | None = None
    """The share of the replicas relative to the other weights, not below the minimum; 0 by default."""


class ReplicaSchedulingPreferenceSpec(Model):
    """The total and its division."""

    clusters: Annotated[dict[str, ClusterPreferences] | None, Field(json_schema_extra={"maxProperties": 1000})] = None
    """The preferences by cluster; "*" stands for all others. Absent gives every cluster the same weight."""
    intersect_with_cluster_selector: bool = False
    """Whether only clusters that the placement of the federated object selects by label get replicas."""
    rebalance: bool = False
    """Whether running replicas move when the division changes."""
    target_kind: TargetKind
    """FederatedDeployment or FederatedReplicaSet."""
    total_replicas: Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})]
    """The replicas of all clusters together. They replace those of the template."""


class ReplicaSchedulingPreference(Kind):
    """ReplicaSchedulingPreference divides the replicas of the federated workload of the same name."""

    DEFINITION: ClassVar[Definition] = Definition(
        REPLICA_PREFERENCES,
        "rsp",
        columns=(
            Column("Target", ".spec.targetKind"),
            Column("Replicas", ".spec.totalReplicas", "integer"),
            AGE,
        ),
    )

    spec: ReplicaSchedulingPreferenceSpec
    status: AnyObject | None = None
    """Unused; the status is that of the federated object."""
