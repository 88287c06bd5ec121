"""StatefulSet of apps.kruise.io, the Advanced StatefulSet (docs/reference/kruise-workloads.md)."""

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
from federation.api.resources import ADVANCED_STATEFUL_SETS
from federation.api.v1alpha1.base import Column, Definition, Kind
from federation.api.v1alpha1.common import LabelSelector


class RollingUpdate(OpenModel):
    """The parameters of a rolling update."""

    max_unavailable: IntOrPercent | None = None
    """The most pods that may be unavailable during an update: an integer, or a percentage of the replicas, rounded
    down, but at least 1. Only with the pod management policy Parallel. The default is 1."""
    min_ready_seconds: Count | None = None
    """Seconds that a pod must be ready before it counts as available. The default is 0."""
    partition: Count | None = None
    """The number of pods that stay on the old revision, those with the lowest ordinals. The default is 0."""
    paused: bool | None = None
    """Whether updates stand still."""
    pod_update_policy: PodUpdateType | None = None
    """ReCreate, the default, replaces pods. InPlaceIfPossible changes the image of a running pod if the template
    differs in nothing else, and replaces the pod otherwise. InPlaceOnly never replaces pods."""


class StatefulSetUpdateStrategy(OpenModel):
    """How pods get a new template."""

    rolling_update: RollingUpdate | None = None
    """The parameters of the type RollingUpdate."""
    type: str | None = None
    """RollingUpdate, the default, or OnDelete, which updates only pods that somebody deletes."""


class StatefulSetOrdinals(OpenModel):
    """How pods are numbered."""

    start: Count | None = None
    """The number of the first pod. The default is 0. A StatefulSet that is divided over clusters has another range of
    numbers in each cluster."""


class StatefulSetSpec(OpenModel):
    """The pods, their numbers and claims, and how they are updated."""

    ordinals: StatefulSetOrdinals | None = None
    """How pods are numbered."""
    pod_management_policy: str | None = None
    """OrderedReady, the default, creates and deletes pods one after another; Parallel does not wait."""
    replicas: Count = 1
    """The number of pods."""
    reserve_ordinals: list[IntOrPercent] | None = None
    """Numbers, or ranges of numbers such as 3-5, that no pod has. Pods with higher numbers take their places."""
    revision_history_limit: Count | None = None
    """The number of old revisions of the template to keep. The default is 10."""
    selector: LabelSelector
    """The labels of the pods. The template's labels must match it."""
    service_name: str | None = None
    """The Service that gives the pods their names in DNS."""
    template: PodTemplate
    """The pod template."""
    update_strategy: StatefulSetUpdateStrategy | None = None
    """How pods get a new template."""
    volume_claim_templates: Claims | None = None
    """The claims of each pod. They are kept when their pod is deleted."""


class StatefulSetStatus(WorkloadStatus):
    """The observed pods."""

    current_replicas: Count | None = None
    """The number of pods of the current revision."""


class StatefulSet(Kind):
    """StatefulSet runs pods with numbers and claims of their own, with more ways to update them than apps/v1."""

    DEFINITION: ClassVar[Definition] = Definition(
        ADVANCED_STATEFUL_SETS,
        # Not "sts" as well, which is the short name of apps/v1: kubectl would warn at every use of it.
        "asts",
        is_scalable=True,
        also_served=("v1alpha1",),
        columns=columns(
            Column("Desired", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            Column("Updated", ".status.updatedReplicas", "integer"),
            Column("Ready", ".status.readyReplicas", "integer"),
        ),
    )

    spec: StatefulSetSpec | None = None
    """The pods, their numbers and claims, and how they are updated."""
    status: StatefulSetStatus | None = None
    """The observed pods."""
