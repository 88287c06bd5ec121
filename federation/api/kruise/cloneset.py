"""CloneSet of apps.kruise.io: pods without identity, updated in place (docs/reference/kruise-workloads.md)."""

from typing import ClassVar

from federation.api.kruise.common import IntOrPercent
from federation.api.kruise.workloadparts import (
    Claims,
    Count,
    OpenModel,
    PodTemplate,
    PodUpdateType,
    WorkloadStatus,
    columns,
)
from federation.api.resources import CLONE_SETS
from federation.api.v1alpha1.base import Column, Definition, Kind
from federation.api.v1alpha1.common import LabelSelector


class CloneSetScaleStrategy(OpenModel):
    """How pods are created and deleted when the number of replicas changes."""

    max_unavailable: IntOrPercent | None = None
    """While pods are added, the most pods that may be unavailable: an integer, or a percentage of the replicas, rounded
    up. No pod is added while as many are unavailable. Absent for any number."""
    pods_to_delete: list[str] | None = None
    """Names of pods to delete. They are replaced unless the number of replicas is lowered, too."""


class CloneSetUpdateStrategy(OpenModel):
    """How pods get a new template."""

    max_surge: IntOrPercent | None = None
    """The most pods above the replicas while pods are replaced: an integer, or a percentage of the replicas, rounded
    up. The default is 0."""
    max_unavailable: IntOrPercent | None = None
    """The most pods that may be unavailable during an update: an integer, or a percentage of the replicas, rounded up,
    but rounded down if maxSurge is not 0. The default is 20%."""
    partition: IntOrPercent | None = None
    """The number of pods that stay on an old revision: an integer, or a percentage of the replicas, rounded up. An
    integer is divided over the clusters, a percentage holds in each cluster. The default is 0."""
    paused: bool | None = None
    """Whether updates stand still."""
    type: PodUpdateType | None = None
    """ReCreate, the default, replaces pods. InPlaceIfPossible changes the image of a running pod if the template
    differs in nothing else, and replaces the pod otherwise. InPlaceOnly never replaces pods."""


class CloneSetSpec(OpenModel):
    """The pods and how they are created, deleted and updated."""

    min_ready_seconds: Count | None = None
    """Seconds that a pod must be ready before it counts as available. The default is 0."""
    replicas: Count = 1
    """The number of pods."""
    revision_history_limit: Count | None = None
    """The number of old revisions of the template to keep. The default is 10."""
    scale_strategy: CloneSetScaleStrategy | None = None
    """How pods are created and deleted when the number of replicas changes."""
    selector: LabelSelector
    """The labels of the pods. The template's labels must match it."""
    template: PodTemplate
    """The pod template."""
    update_strategy: CloneSetUpdateStrategy | None = None
    """How pods get a new template."""
    volume_claim_templates: Claims | None = None
    """The claims of each pod. They are deleted with their pod."""


class CloneSetStatus(WorkloadStatus):
    """The observed pods."""

    expected_updated_replicas: Count | None = None
    """The number of pods that should have the newest revision: the replicas without the partition."""


class CloneSet(Kind):
    """CloneSet runs pods without identity, and can update them in place."""

    DEFINITION: ClassVar[Definition] = Definition(
        CLONE_SETS,
        "clone",
        is_scalable=True,
        columns=(
            *columns(
                Column("Desired", ".spec.replicas", "integer"),
                Column("Updated", ".status.updatedReplicas", "integer"),
                Column("Updated_Ready", ".status.updatedReadyReplicas", "integer"),
                Column("Updated_Available", ".status.updatedAvailableReplicas", "integer"),
                Column("Ready", ".status.readyReplicas", "integer"),
                Column("Total", ".status.replicas", "integer"),
            ),
            Column("Selector", ".status.labelSelector", is_wide=True),
        ),
    )

    spec: CloneSetSpec | None = None
    """The pods and how they are created, deleted and updated."""
    status: CloneSetStatus | None = None
    """The observed pods."""
