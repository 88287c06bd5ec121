"""`spec.failover` of propagation policies: how workloads leave clusters, and how they return. Ours.

Reference: docs/reference/failover.md.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from federation.api.v1alpha1.base import LABEL_KEY, Model, NonNegative


class FailoverMode(StrEnum):
    """Auto lets replicas leave lost and drained clusters; Never keeps them there."""

    AUTO = "Auto"
    NEVER = "Never"


class Returning(StrEnum):
    """Always lets replicas return to clusters that they left when these were lost or drained; Never keeps them away."""

    ALWAYS = "Always"
    NEVER = "Never"


class PurgeMode(StrEnum):
    """Graciously keeps the old copy until the new one is healthy, Directly removes it before the new one is created,
    Never keeps it until a user confirms its removal.
    """

    DIRECTLY = "Directly"
    GRACIOUSLY = "Graciously"
    NEVER = "Never"


class StateRule(Model):
    """A value of the last known status of the old copy, and where the new copy gets it. One target is given."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "[has(self.aliasLabelName), has(self.annotation), has(self.fieldPath)]"
                    ".exists_one(each, each)",
                    "message": "names no target or several; give one of aliasLabelName, annotation and fieldPath",
                }
            ]
        }
    )

    alias_label_name: Annotated[str | None, Field(max_length=317, pattern=LABEL_KEY)] = None
    """The label of the new copy."""
    annotation: Annotated[str | None, Field(max_length=317, pattern=LABEL_KEY)] = None
    """The annotation of the new copy."""
    field_path: Annotated[str | None, Field(max_length=253, pattern=r"^spec(\.[A-Za-z_][A-Za-z0-9_-]*)+$")] = None
    """Dot path of the field of the new copy, such as spec.job.initialSavepointPath."""
    json_path: Annotated[str, Field(min_length=1, max_length=253)]
    """JSONPath of the value within the status of the old copy, such as {.jobStatus.savepointPath}."""


class StatePreservation(Model):
    """The state of the old copy that is handed to the new one."""

    rules: Annotated[list[StateRule], Field(min_length=1, max_length=16)]
    """The values to hand over."""


class ApplicationFailover(Model):
    """Whether and when a workload leaves a cluster in which it is unhealthy although its pods are scheduled."""

    grace_period_seconds: Annotated[int, Field(ge=1, le=86400, json_schema_extra={"format": "int32"})] = 600
    """The longest time that the old copy waits for a healthy new one, with purgeMode Graciously."""
    max_moves: Annotated[int, Field(ge=1, le=10, json_schema_extra={"format": "int32"})] = 3
    """The most clusters that one template leaves. A changed template starts again."""
    purge_mode: PurgeMode = PurgeMode.GRACIOUSLY
    """When the old copy is removed."""
    state_preservation: StatePreservation | None = None
    """Values of the old copy's status that the new copy gets. If either this or `spec.failover.statePreservation` is
    absent, the other one counts for both."""
    toleration_seconds: Annotated[int, Field(ge=1, le=86400, json_schema_extra={"format": "int32"})] = 300
    """How long the workload may be unhealthy in a cluster. Each move doubles it, up to an hour."""


class Failover(Model):
    """Whether and when replicas leave clusters that are lost or drained. An extension of this project."""

    application: ApplicationFailover | None = None
    """Whether and when a workload leaves a cluster in which it is unhealthy; absent means never."""
    grace_seconds: NonNegative | None = None
    """How long after its taint was added replicas leave a cluster that is not ready. Absent means 0, and 600 for
    workloads that do not tolerate two copies: StatefulSets, Jobs with completions, pods with a claim that is
    ReadWriteOnce. Tolerations of the policy count in addition."""
    mode: FailoverMode | None = None
    """Whether replicas leave. Absent means Auto, and Never for workloads that do not tolerate two copies."""
    returns: Returning | None = None
    """Whether replicas return. Absent means Always, and Never where an object that may be in no more clusters
    (`maxClusters`) would leave one in which it runs; a workload that does not tolerate two copies returns in
    any case."""
    state_preservation: StatePreservation | None = None
    """Values of the last known status of a copy that leaves a cluster, also a lost one, for the new copy elsewhere."""
