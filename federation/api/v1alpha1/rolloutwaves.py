"""Rollout in waves: the field `rollout` of propagation and override policies. An extension of this project.

`planning/waves/waverules.py` reads it, `federatedrollout.py` is the kind that shows its progress.

Reference: docs/reference/rollout.md.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from federation.api.v1alpha1.base import Model

ClusterName = Annotated[str, Field(min_length=1, max_length=253)]
WaveName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
_Seconds = Annotated[int, Field(ge=0, le=604_800, json_schema_extra={"format": "int32"})]


class OnFailure(StrEnum):
    """Pause stops and keeps the changed clusters; RollBack returns them to the template that they had before."""

    PAUSE = "Pause"
    ROLL_BACK = "RollBack"


class WhenEmpty(StrEnum):
    """Hold starts no later wave without approval; TakeFirst takes the first clusters of later waves."""

    HOLD = "Hold"
    TAKE_FIRST = "TakeFirst"


class HTTPCheck(Model):
    """A request that the control plane sends. It follows no redirect and reaches no loopback or link-local address."""

    expect_status: Annotated[int, Field(ge=100, le=599, json_schema_extra={"format": "int32"})] = 200
    """The status of the response with which the gate holds."""
    timeout_seconds: Annotated[int, Field(ge=1, le=30, json_schema_extra={"format": "int32"})] = 5
    """The longest time for a response."""
    url: Annotated[str, Field(max_length=2048, pattern=r"^https?://[^/?#@\s]+([/?#]\S*)?$")]
    """The address for a GET request, without a user name. A service that compares error rates, for example."""


class RolloutGate(Model):
    """Conditions in the clusters of a wave that must hold before the next wave starts. Every given part must hold."""

    expression: Annotated[str | None, Field(max_length=4096)] = None
    """A CEL expression over the object in the cluster, as `object`, that returns true or false. It must hold in each
    cluster of the wave."""
    http: HTTPCheck | None = None
    """A request that must succeed. It is sent every 10 seconds once the other parts hold."""
    ready: bool = True
    """Whether all replicas in each cluster of the wave must be updated and ready."""
    soak_seconds: _Seconds = 0
    """How long the gate must hold without interruption."""


class RolloutWave(Model):
    """Clusters that get a new pod template together."""

    broken_seconds: Annotated[int, Field(ge=1, le=604_800, json_schema_extra={"format": "int32"})] = 180
    """How long the gate may take in a cluster where pods crash or cannot start, at most timeoutSeconds. After that the
    rollout has failed."""
    cluster_selector: Annotated[dict[str, str] | None, Field(max_length=32)] = None
    """Labels that the clusters of the wave must carry. Absent matches every cluster."""
    clusters: Annotated[list[ClusterName] | None, Field(max_length=1000)] = None
    """The names of the clusters of the wave. Absent matches every cluster."""
    gate: RolloutGate = RolloutGate()
    """The conditions that must hold before the next wave starts."""
    name: WaveName
    """The name of the wave, unique in the list."""
    pause: bool = False
    """Whether the wave starts only after approval."""
    share: Annotated[int, Field(ge=1, le=100, json_schema_extra={"format": "int32"})] = 100
    """The percentage of the clusters that the wave takes, rounded up, in the order of their names. It counts the
    clusters that the change reaches, that match the wave, and that are in no earlier wave. The others are left to
    later waves."""
    timeout_seconds: Annotated[int, Field(ge=1, le=604_800, json_schema_extra={"format": "int32"})] = 600
    """How long the gate may take until it holds. After that the rollout has failed."""
    when_empty: WhenEmpty = WhenEmpty.HOLD
    """The behaviour if none of its clusters has the workload, and the wave has a gate or a pause."""


class Rollout(Model):
    """The order in which clusters get a new pod template."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.waves.all(each, self.waves.exists_one(other, other.name == each.name))",
                    "message": "names a wave twice; give every wave its own name",
                    "fieldPath": ".waves",
                },
                {
                    "rule": "self.waves.all(each, each.name != 'remaining')",
                    "message": "must not name a wave remaining: that is the last wave, which takes all other clusters",
                    "fieldPath": ".waves",
                },
            ]
        }
    )

    on_failure: OnFailure = OnFailure.PAUSE
    """The behaviour when a gate fails, does not hold in time, or the rollout is aborted."""
    waves: Annotated[
        list[RolloutWave],
        Field(min_length=1, max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ]
    """The waves, in order. A cluster belongs to the first wave that takes it. After them, the wave remaining takes all
    other clusters."""
