"""Parts that CloneSet and the StatefulSet of apps.kruise.io share: pod templates, claims, conditions, columns.

The models name the fields that this project uses. All other fields are preserved: members may use them.
"""

from typing import Annotated, Any

from pydantic import ConfigDict, Field

from federation.api.v1alpha1.base import AGE, AnyObject, Column, DateTime, Int64, Model

Count = Annotated[int, Field(ge=0, json_schema_extra={"format": "int32"})]
PodTemplate = AnyObject
Claims = list[AnyObject]
PodUpdateType = Annotated[str, Field(json_schema_extra={"enum": ["", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"]})]
BY_TYPE: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}


class OpenModel(Model):
    """A part with more fields than the model names; they are preserved."""

    model_config = ConfigDict(extra="allow", json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})


class WorkloadCondition(OpenModel):
    """One aspect of the workload's state."""

    last_transition_time: DateTime | None = None
    """When the status last changed."""
    message: str | None = None
    """Details of the last transition, for people."""
    reason: str | None = None
    """The reason of the last transition, in CamelCase."""
    status: str
    """Whether the condition holds: True, False or Unknown."""
    type: str
    """The aspect."""


class WorkloadStatus(OpenModel):
    """The observed pods of a workload."""

    available_replicas: Count | None = None
    """The number of pods that have been ready for minReadySeconds."""
    conditions: Annotated[list[WorkloadCondition], Field(json_schema_extra=BY_TYPE)] | None = None
    """Aspects of the state."""
    current_revision: str | None = None
    """The revision that the last finished update led to."""
    label_selector: str | None = None
    """The selector as text, for the scale subresource."""
    observed_generation: Int64 | None = None
    """The generation that the status was computed for."""
    ready_replicas: Count | None = None
    """The number of ready pods."""
    replicas: Count | None = None
    """The number of pods."""
    update_revision: str | None = None
    """The newest revision of the template."""
    updated_available_replicas: Count | None = None
    """The number of available pods of the newest revision."""
    updated_ready_replicas: Count | None = None
    """The number of ready pods of the newest revision."""
    updated_replicas: Count | None = None
    """The number of pods of the newest revision."""


def columns(*counts: Column) -> tuple[Column, ...]:
    """Return the columns of a workload: its counts, its age, and with `-o wide` its containers and images."""
    return (
        *counts,
        AGE,
        Column("Containers", ".spec.template.spec.containers[*].name", is_wide=True),
        Column("Images", ".spec.template.spec.containers[*].image", is_wide=True),
    )
