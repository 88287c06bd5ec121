"""Rollout in waves: the field `rollout` of propagation and override policies. An extension of this project.

`planning/waves/waverules.py` reads it, `federatedrollout.py` is the kind that shows its progress.

Reference: docs/reference/rollout.md.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import ConfigDict, Field

from federation.api.v1alpha1.base import LABEL_KEY, Model

ClusterName = Annotated[str, Field(min_length=1, max_length=253)]
WaveName = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")]
MetricName = Annotated[str, Field(max_length=200, pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")]
Pattern = Annotated[str, Field(min_length=1, max_length=256)]
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


class ObjectiveErrors(Model):
    """A counter of requests, or of other events, of which some are bad."""

    bad: Annotated[dict[str, Pattern], Field(min_length=1, max_length=8)]
    """The labels of bad ones: for each a regular expression (RE2) of its whole value, such as 5.. for code."""
    labels: Annotated[dict[str, Pattern] | None, Field(max_length=8)] = None
    """The labels of those that count, good and bad. Absent counts all."""
    metric: MetricName
    """The name of the counter, such as http_requests_total."""


class ObjectiveLatency(Model):
    """A histogram of durations, of which those above a boundary are bad."""

    labels: Annotated[dict[str, Pattern] | None, Field(max_length=8)] = None
    """The labels of those that count, as of errors. Absent counts all."""
    metric: MetricName
    """The name of the histogram without its endings, such as http_request_duration_seconds."""
    seconds: Annotated[str, Field(max_length=16, pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?$")]
    """The longest good duration, as a text such as "0.5". It must be a boundary of the histogram's buckets."""


class ComparedWith(StrEnum):
    """Before is the same cluster with its earlier template; Waiting are clusters that still wait for the new one."""

    BEFORE = "Before"
    WAITING = "Waiting"


class RolloutObjective(Model):
    """A limit of the share of bad samples in the clusters of a wave, since all other parts of its gate hold."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "[has(self.errors), has(self.latency), has(self.template)].exists_one(each, each)",
                    "message": "must have exactly one of errors, latency and template",
                },
                {
                    "rule": "has(self.target) || !has(self.compareWith) || self.compareWith.size() > 0",
                    "message": "limits nothing; give target, or name Before or Waiting in compareWith",
                    "fieldPath": ".compareWith",
                },
            ]
        }
    )

    burn_rate_max: Annotated[int, Field(ge=1, le=1000, json_schema_extra={"format": "int32"})] = 1
    """How many times faster than target allows its budget of bad samples may be used."""
    compare_with: Annotated[
        list[ComparedWith] | None, Field(max_length=2, json_schema_extra={"x-kubernetes-list-type": "set"})
    ] = None
    """What the share of bad samples is compared with, Before and Waiting if absent. The objective fails if it is worse
    than each."""
    errors: ObjectiveErrors | None = None
    """Counts the samples of a counter."""
    increase_max: Annotated[int, Field(ge=0, le=100_000, json_schema_extra={"format": "int32"})] = 50
    """The percentage by which the share of bad samples may exceed what it is compared with."""
    latency: ObjectiveLatency | None = None
    """Counts the samples of a histogram."""
    name: WaveName
    """The name of the objective, unique in the list."""
    samples_min: Annotated[int, Field(ge=1, le=1_000_000_000, json_schema_extra={"format": "int64"})] = 500
    """The samples without which nothing is concluded. The rollout waits for them, without a limit of time."""
    source: WaveName
    """The name of a source of metrics, which the administrator of the control plane has listed."""
    target: Annotated[str | None, Field(max_length=8, pattern=r"^[0-9]{1,2}(\.[0-9]{1,4})?$")] = None
    """The percentage of good samples, as a text such as "99.5". Absent sets no limit of its own."""
    template: WaveName | None = None
    """The name of a query that the administrator has written for the source."""


class RolloutGate(Model):
    """Conditions in the clusters of a wave that must hold before the next wave starts. Every given part must hold."""

    expression: Annotated[str | None, Field(max_length=4096)] = None
    """A CEL expression over the object in the cluster, as `object`, that returns true or false. It must hold in each
    cluster of the wave."""
    http: HTTPCheck | None = None
    """A request that must succeed. It is sent every 10 seconds once the other parts hold."""
    objectives: Annotated[
        list[RolloutObjective] | None,
        Field(
            max_length=5, json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
        ),
    ] = None
    """What Prometheus must have measured in the clusters of the wave, compared with others."""
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
    clusters_at_a_time: Annotated[
        int | None, Field(alias="clustersAtATime", ge=1, le=1000, json_schema_extra={"format": "int32"})
    ] = None
    """The most clusters of the wave that change at a time; the next one starts when the gate holds in one of them, its
    request, objectives and soak aside. Absent changes all of them at once."""
    gate: RolloutGate = RolloutGate()
    """The conditions that must hold before the next wave starts."""
    name: WaveName
    """The name of the wave, unique in the list."""
    pause: bool = False
    """Whether the wave starts only after approval."""
    pause_after: bool = False
    """Whether the wave after it starts only after approval, also if that is the last one, remaining."""
    share: Annotated[int, Field(ge=1, le=100, json_schema_extra={"format": "int32"})] = 100
    """The percentage of the clusters that the wave takes, rounded up, in the order of their names. It counts the
    clusters that the change reaches, that match the wave, and that are in no earlier wave. The others are left to
    later waves."""
    timeout_seconds: Annotated[int, Field(ge=1, le=604_800, json_schema_extra={"format": "int32"})] = 600
    """How long the gate may take until it holds. After that the rollout has failed."""
    when_empty: WhenEmpty = WhenEmpty.HOLD
    """The behaviour if none of its clusters has the workload, and the wave has a gate or a pause."""


class OrderedLabel(Model):
    """A label of clusters by which they change."""

    label: Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
    """The key of the label, such as one with a class, a region or a price. Clusters without it change last."""
    values: Annotated[list[Annotated[str, Field(max_length=63)]] | None, Field(max_length=100)] = None
    """Its values in the order in which their clusters change; clusters with other ones change last. Absent orders
    by numbers, smallest first, and then by text."""


def names_of_waves(others: str) -> ConfigDict:
    """Return the rules about the names of `waves`, after which the wave remaining takes all the others."""
    return ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.waves.all(each, self.waves.exists_one(other, other.name == each.name))",
                    "message": "names a wave twice; give every wave its own name",
                    "fieldPath": ".waves",
                },
                {
                    "rule": "self.waves.all(each, each.name != 'remaining')",
                    "message": f"must not name a wave remaining: that is the last wave, which takes all other {others}",
                    "fieldPath": ".waves",
                },
            ]
        }
    )


class Rollout(Model):
    """The order in which clusters get a new pod template."""

    model_config = names_of_waves("clusters")

    order: Annotated[
        list[OrderedLabel] | None, Field(max_length=8, json_schema_extra={"x-kubernetes-list-type": "atomic"})
    ] = None
    """The order of clusters: in which waves take their share, and in which clusters of a wave change if budgets or
    clustersAtATime hold some. Clusters that are equal in all of it are ordered by name. Absent orders all by name."""
    on_failure: OnFailure = OnFailure.PAUSE
    """The behaviour when a gate fails, does not hold in time, or the rollout is aborted."""
    waves: Annotated[
        list[RolloutWave],
        Field(min_length=1, max_length=20, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
    ]
    """The waves, in order. A cluster belongs to the first wave that takes it. After them, the wave remaining takes all
    other clusters."""
