"""FederatedRollout: the progress of one workload's rollout in waves, and how to steer it. One of our own kinds.

Reference: docs/reference/rollout.md.
"""

from typing import Annotated, ClassVar

from pydantic import Field

from federation.api.resources import FEDERATED_ROLLOUTS
from federation.api.v1alpha1.base import AGE, AnyObject, Column, DateTime, Definition, Int64, Kind, Model, NonNegative
from federation.api.v1alpha1.common import Condition


class RolloutTarget(Model):
    """The workload on the host."""

    api_version: str
    """The API version of the workload, for example apps/v1."""
    kind: str
    """The kind of the workload, for example Deployment."""
    name: str
    """The name of the workload."""


class ApprovedWave(Model):
    """The approval of a wave, and of all waves before it."""

    revision: Int64
    """The revision of the rollout that is approved, see status.revision. It approves no later rollout."""
    wave: str
    """The name of the wave."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why the rollout goes on although a wave has failed; `fedctl rollout status` and the web UI show it."""


class FederatedRolloutSpec(Model):
    """The workload, and the wishes of its users."""

    abort: Int64 | None = None
    """The revision of the rollout to abort, see status.revision. No other cluster is changed; spec.rollout.onFailure of
    the policy decides about those that are."""
    approved_wave: ApprovedWave | None = None
    """The last wave that may start although its policy pauses before it, or although the rollout has failed."""
    paused: bool = False
    """Whether no other wave starts."""
    roll_back: Int64 | None = None
    """The revision of the rollout to take back, see status.revision: all clusters return to their earlier template."""
    target_ref: RolloutTarget
    """The workload; it has the namespace of the rollout."""


class RolloutWaveStatus(Model):
    """The progress of one wave."""

    clusters: list[str]
    """Its clusters."""
    gate_held_since: DateTime | None = None
    """Since when its gate has held; absent if it does not hold."""
    name: str
    """The name of the wave."""
    started_at: DateTime | None = None
    """When it started; absent before."""
    state: str
    """Pending, WaitingForApproval, Paused, Progressing, Soaking, Complete or Failed."""


class RolloutClusterStatus(Model):
    """The progress in one cluster."""

    broken_since: DateTime | None = None
    """Since when pods crash or cannot start; absent while the gate holds. It is moved forward as startedAt."""
    changed: bool = False
    """Whether the rollout, or an incomplete one before it, may have changed the template in the cluster."""
    disrupted_since: DateTime | None = None
    """Since when the rollout changes the cluster; absent while its pods are ready. Such a cluster counts as unavailable
    for ClusterDisruptionBudgets."""
    good: str
    """The template revision to return to."""
    message: str | None = None
    """Why the cluster waits; absent if it does not."""
    name: str
    """The name of the cluster."""
    ready_replicas: NonNegative = 0
    """The number of ready pods, as far as its kind reports them those of the present template."""
    replicas: NonNegative = 0
    """The wanted number of pods."""
    revision: str | None = None
    """The template revision of the object in the cluster."""
    started_at: DateTime | None = None
    """When the cluster was allowed to get the new template; absent before. It is moved forward by the time that does
    not count against the timeout of its wave."""
    stopped_at: DateTime | None = None
    """Since when no time counts against the timeout: its gate holds, it cannot report, or the rollout is paused."""
    target: str
    """The template revision that the rollout brings."""
    updated_replicas: NonNegative = 0
    """The number of pods of the present template in the cluster."""
    wave: str | None = None
    """The wave of the cluster; absent if the rollout does not change it."""


class RolloutTemplate(Model):
    """A pod template that clusters may have to return to."""

    revision: str
    """The template revision."""
    template: AnyObject
    """The pod template, with the overrides of the clusters that run it."""


class ReplacedTemplate(Model):
    """A pod template that the rollout brings, and the one that clusters had before."""

    earlier: str
    """The template revision that clusters had before."""
    revision: str
    """The template revision that the rollout brings to them."""


class FederatedRolloutStatus(Model):
    """The progress of the rollout."""

    clusters: Annotated[
        list[RolloutClusterStatus] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = None
    """The clusters that have the workload."""
    conditions: Annotated[
        list[Condition] | None,
        Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
    ] = None
    """Progressing, Healthy, Paused and RolledBack."""
    failure: str | None = None
    """Why the rollout stopped or rolled back; absent if it did not."""
    message: str | None = None
    """The reason why the rollout waits; absent if it does not."""
    observed_generation: Int64 | None = None
    """The generation of the spec that the status is about."""
    paused_since: DateTime | None = None
    """Since when the rollout has been paused by its spec or that of the workload. The time does not count against the
    timeout of a wave."""
    policy: str | None = None
    """The policy that the waves are from."""
    progress: str | None = None
    """The number of clusters with the new template, of those that the rollout changes: 2/5."""
    replaced: list[ReplacedTemplate] | None = None
    """The template that the rollout replaces, also in clusters that have left. Clusters that get the
    workload before a wave has succeeded, or after a failure, get the earlier template."""
    revision: NonNegative | None = None
    """The number of rollouts of the workload, this one included; 0 before the first."""
    settled: str | None = None
    """The template revision of the workload's own pod template at the last complete rollout, without overrides."""
    state: str | None = None
    """Complete, Progressing, Stopped, RollingBack or RolledBack."""
    templates: list[RolloutTemplate] | None = None
    """The pod templates that clusters may have to return to, or to get, each once."""
    wave: str | None = None
    """The current wave."""
    waves: list[RolloutWaveStatus] | None = None
    """The waves with clusters, and those that hold others although they have none, in order."""


class FederatedRollout(Kind):
    """FederatedRollout shows and steers the rollout of one workload whose policy has waves."""

    DEFINITION: ClassVar[Definition] = Definition(
        FEDERATED_ROLLOUTS,
        "fro",
        columns=(
            Column("Wave", ".status.wave"),
            Column("Progress", ".status.progress"),
            Column("State", ".status.state"),
            Column("Message", ".status.message", is_wide=True),
            AGE,
        ),
    )

    spec: FederatedRolloutSpec
    status: FederatedRolloutStatus | None = None
