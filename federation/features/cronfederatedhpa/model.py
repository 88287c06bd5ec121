"""CronFederatedHPA: scale a workload, or move the limits of its autoscaler, at set times. The fields are Karmada's.

Reference: docs/reference/autoscaling.md.
"""

from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from federation.api.resources import CRON_AUTOSCALERS
from federation.api.v1alpha1.base import AGE, Column, DateTime, Definition, Kind, Model

Replicas = Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra={"format": "int32"})]
Limit = Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra={"format": "int32"})]
History = Annotated[int, Field(ge=0, le=32, json_schema_extra={"format": "int32"})]


class CrossVersionObjectReference(Model):
    """The object to scale, in the same namespace."""

    api_version: Annotated[str, Field(min_length=1, max_length=253)]
    """Its API version."""
    kind: Annotated[str, Field(min_length=1, max_length=63)]
    """Its kind: HorizontalPodAutoscaler, or any kind with a scale subresource."""
    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Its name."""


class CronFederatedHPARule(Model):
    """The action at the times of one schedule."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "has(self.targetReplicas) != (has(self.targetMinReplicas) || has(self.targetMaxReplicas))",
                    "message": "give targetReplicas for a workload, or targetMinReplicas and targetMaxReplicas for a"
                    " HorizontalPodAutoscaler",
                },
                {
                    "rule": "!has(self.targetMinReplicas) || !has(self.targetMaxReplicas)"
                    " || self.targetMinReplicas <= self.targetMaxReplicas",
                    "message": "targetMinReplicas must not be above targetMaxReplicas",
                },
            ]
        }
    )

    failed_history_limit: History = 3
    """How many failed executions the status keeps."""
    name: Annotated[str, Field(min_length=1, max_length=32)]
    """The name of the rule, unique in the object."""
    schedule: Annotated[str, Field(min_length=1, max_length=100)]
    """When it runs, in the five fields of a CronJob's schedule: `0 8 * * 1-5`."""
    successful_history_limit: History = 3
    """How many successful executions the status keeps."""
    suspend: bool = False
    """Whether the rule does not run for now."""
    target_max_replicas: Limit | None = None
    """The new maxReplicas of a HorizontalPodAutoscaler; absent keeps it."""
    target_min_replicas: Limit | None = None
    """The new minReplicas of a HorizontalPodAutoscaler; absent keeps it."""
    target_replicas: Replicas | None = None
    """The new replicas of a workload."""
    time_zone: Annotated[str | None, Field(max_length=64)] = None
    """The time zone of the schedule, for example Europe/Berlin; absent means UTC."""


class CronFederatedHPASpec(Model):
    """The target and the rules."""

    rules: Annotated[
        list[CronFederatedHPARule],
        Field(
            min_length=1,
            max_length=32,
            json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
        ),
    ]
    """The rules. If several are due at once, the last one in this order decides."""
    scale_target_ref: CrossVersionObjectReference
    """The object to scale."""


class SuccessfulExecution(Model):
    """A run of a rule that took effect."""

    applied_max_replicas: Limit | None = None
    """The maxReplicas that it set."""
    applied_min_replicas: Limit | None = None
    """The minReplicas that it set."""
    applied_replicas: Replicas | None = None
    """The replicas that it set."""
    execution_time: DateTime
    """When it ran."""
    schedule_time: DateTime
    """When it was due."""


class FailedExecution(Model):
    """A run of a rule that failed."""

    execution_time: DateTime
    """When it ran."""
    message: str
    """Why it failed."""
    schedule_time: DateTime
    """When it was due."""


class ExecutionHistory(Model):
    """The runs of one rule."""

    failed_executions: list[FailedExecution] | None = None
    """The last failed runs, newest first."""
    next_execution_time: DateTime | None = None
    """When it runs next; absent while it is suspended."""
    rule_name: str
    """The name of the rule."""
    successful_executions: list[SuccessfulExecution] | None = None
    """The last successful runs, newest first."""


class CronFederatedHPAStatus(Model):
    """The runs of all rules."""

    execution_histories: list[ExecutionHistory] | None = None
    """The runs by rule."""


class CronFederatedHPA(Kind):
    """CronFederatedHPA scales a workload, or moves the limits of its autoscaler, at set times."""

    DEFINITION: ClassVar[Definition] = Definition(
        CRON_AUTOSCALERS,
        "cronfhpa",
        columns=(
            Column("Kind", ".spec.scaleTargetRef.kind"),
            Column("Target", ".spec.scaleTargetRef.name"),
            Column("Next", ".status.executionHistories[*].nextExecutionTime"),
            AGE,
        ),
    )

    spec: CronFederatedHPASpec
    status: CronFederatedHPAStatus | None = None
