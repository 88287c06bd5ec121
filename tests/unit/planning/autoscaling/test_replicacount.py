"""The replicas for one metric: Kubernetes' rules for tolerance, unready pods and pods without metrics."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import to_rfc3339
from federation.planning.autoscaling.measurements import Measurements, PodValues, Totals, Values
from federation.planning.autoscaling.podmetrics import PodMetric, Sample, to_metric
from federation.planning.autoscaling.recommendation import recommend_replicas
from federation.planning.autoscaling.replicacount import (
    MetricsError,
    Proposal,
    Replicas,
    ResourceTarget,
    Tolerances,
    propose_for_average,
    propose_for_value,
    propose_replicas,
)
from federation.planning.autoscaling.scalelimits import Bounds

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
HALF = ResourceTarget("cpu", 50)
REQUEST = {"resources": {"requests": {"cpu": "100m", "memory": "1Ki"}}}


def ago(seconds: float) -> str:
    return to_rfc3339(NOW - timedelta(seconds=seconds))


def a_sample(
    used: int | None = 50,
    *,
    phase: str = "Running",
    ready: str | None = "True",
    ready_s: float = 3600,
    started_s: float | None = 3600,
    measured_s: float = 0,
    **metadata: Any,
) -> Sample:
    """Return a pod that requests 100m of CPU and uses so much of it."""
    status: dict[str, Any] = {"phase": phase}
    if ready is not None:
        status["conditions"] = [{"type": "Ready", "status": ready, "lastTransitionTime": ago(ready_s)}]
    if started_s is not None:
        status["startTime"] = ago(started_s)
    pod = {
        "metadata": {"name": "web", **metadata},
        "spec": {"containers": [{"name": "main", **REQUEST}]},
        "status": status,
    }
    if used is None:
        return Sample(pod)
    return Sample(pod, PodMetric({"main": {"cpu": used}}, NOW - timedelta(seconds=measured_s), 15))


def replicas(current: int, *samples: Sample, target: ResourceTarget = HALF) -> int:
    return propose_replicas(current, samples, target, Tolerances(), NOW).replicas


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([a_sample(50)] * 4, 4),
        ([a_sample(54)] * 4, 4),
        ([a_sample(46)] * 4, 4),
        ([a_sample(75)] * 4, 6),
        ([a_sample(20)] * 4, 2),
        ([a_sample(150)] * 2 + [a_sample(0, phase="Pending")] * 2, 6),
        ([a_sample(75)] * 2 + [a_sample(0, phase="Pending")] * 2, 4),
        ([a_sample(20)] * 2 + [a_sample(0, phase="Pending")] * 2, 1),
        ([a_sample(150)] * 2 + [a_sample(None)] * 2, 6),
        ([a_sample(10)] * 2 + [a_sample(None)] * 2, 4),
        ([a_sample(10)] * 3 + [a_sample(None)], 3),
        ([a_sample(50)] * 2 + [a_sample(None)] * 2, 4),
        ([a_sample(200)] * 2 + [a_sample(900, phase="Failed")], 8),
        ([a_sample(200)] * 2 + [a_sample(900, deletionTimestamp=ago(1))], 8),
        ([a_sample(10)] * 2 + [Sample(a_sample().pod, PodMetric({"main": {}}, NOW))] * 2, 4),
    ],
    ids=[
        "at the target",
        "a little above it",
        "a little below it",
        "half more",
        "less",
        "pending pods are idle on the way up",
        "and turn a scale-up into nothing",
        "and do not count on the way down",
        "pods without metrics are idle on the way up",
        "and fully used on the way down, which turns it into nothing",
        "or makes it smaller",
        "and change nothing at the target",
        "failed pods do not count",
        "pods that are being deleted do not count",
        "a metric without the resource is none",
    ],
)
def test_replicas_bring_the_use_to_the_target(samples: list[Sample], expected: int) -> None:
    assert replicas(4, *samples) == expected


@pytest.mark.parametrize(
    ("young", "is_counted"),
    [
        ({"started_s": 60, "ready_s": 50}, True),
        ({"started_s": 60, "ready_s": 50, "measured_s": 40}, False),
        ({"started_s": 60, "ready_s": 50, "ready": "False"}, False),
        ({"started_s": 600, "ready_s": 590, "ready": "False"}, False),
        ({"started_s": 600, "ready_s": 100, "ready": "False"}, True),
        ({"started_s": None}, False),
        ({"ready": None}, False),
    ],
    ids=[
        "measured after it became ready",
        "measured in part before it became ready",
        "not ready yet",
        "never ready",
        "ready once",
        "without a start time",
        "without the condition",
    ],
)
def test_cpu_of_pods_that_start_does_not_count(young: dict[str, Any], is_counted: bool) -> None:
    found = replicas(2, a_sample(200), a_sample(200, **young))
    assert found == (8 if is_counted else 4)
    memory = Sample(a_sample(**young).pod, PodMetric({"main": {"memory": 1_024_000}}, NOW))
    assert replicas(2, memory, target=ResourceTarget("memory", 50)) == 2, "memory counts at once: 100 % of one pod"


def test_an_average_value_needs_no_requests() -> None:
    bare = a_sample(90)
    bare.pod["spec"]["containers"][0].pop("resources")
    target = ResourceTarget("cpu", 30, is_utilization=False)
    assert propose_replicas(1, [bare], target, Tolerances(), NOW) == Proposal(3, 90, None)
    assert replicas(4, *[bare] * 2, Sample(a_sample().pod), target=target) == 6
    assert replicas(4, *[a_sample(3)] * 2, *[Sample(a_sample().pod)] * 2, target=target) == 3
    with pytest.raises(MetricsError, match="missing request for cpu in container main of Pod web"):
        replicas(1, bare)


def test_one_container_can_be_measured() -> None:
    both = a_sample(0)
    both.pod["spec"]["containers"].append({"name": "sidecar", **REQUEST})
    measured = PodMetric({"main": {"cpu": 10}, "sidecar": {"cpu": 100}}, NOW, 15)
    sample = Sample(both.pod, measured)
    assert propose_replicas(2, [sample], ResourceTarget("cpu", 50, "sidecar"), Tolerances(), NOW) == Proposal(
        2, 100, 100
    )
    assert measured.use_of("cpu") == 110
    assert measured.use_of("memory") is None
    with pytest.raises(MetricsError, match="container other not found in Pod web"):
        replicas(1, sample, target=ResourceTarget("cpu", 50, "other"))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([], "no pods returned"),
        ([a_sample(None)], "did not receive metrics"),
        ([a_sample(0, phase="Pending")], "metrics"),
    ],
)
def test_nothing_follows_from_nothing(samples: list[Sample], message: str) -> None:
    with pytest.raises(MetricsError, match=message):
        replicas(1, *samples)


uses = st.lists(st.one_of(st.none(), st.integers(0, 400)), min_size=1, max_size=12)


@given(uses, st.integers(1, 200))
def test_more_use_never_means_fewer_replicas(used: list[int | None], percent: int) -> None:
    target, current = ResourceTarget("cpu", percent), len(used)
    if all(amount is None for amount in used):
        return
    low = replicas(current, *map(a_sample, used), target=target)
    more = [amount if amount is None else amount + 50 for amount in used]
    assert replicas(current, *map(a_sample, more), target=target) >= low


@given(st.lists(st.integers(0, 400), min_size=1, max_size=12), st.integers(1, 200))
def test_the_new_average_is_at_most_the_target(used: list[int], percent: int) -> None:
    """Of complete metrics of all pods, whose use divides evenly over the new replicas."""
    found = replicas(len(used), *map(a_sample, used), target=ResourceTarget("cpu", percent))
    if found != len(used):
        assert sum(used) <= (found * (percent + 1)) + len(used), "utilizations are whole percents"


def test_tolerances_are_those_of_the_behavior() -> None:
    assert Bounds(1, 9, None).tolerances == Tolerances(0.1, 0.1)
    behavior = {"scaleUp": {"tolerance": "500m"}, "scaleDown": {"tolerance": 0}}
    tolerances = Bounds.of({"maxReplicas": 9, "behavior": behavior}).tolerances
    assert tolerances == Tolerances(0.5, 0.0)
    assert tolerances.cover(1.4)
    assert not tolerances.cover(0.99)
    assert (Bounds.of({"maxReplicas": 9}).low, Bounds.of({"minReplicas": 0}).low) == (1, 0)


# -- all metrics of an autoscaler


def a_metric(name: str = "cpu", **target: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def recommended(*metrics: dict[str, Any], current: int = 2, used: int = 100) -> tuple[int, str, list[Any]]:
    samples = [a_sample(used)] * current
    spec, replicas_ = {"metrics": list(metrics)}, Replicas(current, current)
    found = recommend_replicas(spec, replicas_, Measurements(samples), Tolerances(), NOW)
    return found.replicas, found.what or (found.failure or ("", ""))[1], list(found.metrics)


def test_the_highest_proposal_counts() -> None:
    half, value = a_metric(averageUtilization=50), a_metric(averageValue="20m")
    count, reason, shown = recommended(half, value)
    assert (count, reason) == (10, "cpu resource")
    assert shown == [
        {"type": "Resource", "resource": {"name": "cpu", "current": current}}
        for current in ({"averageValue": "100m", "averageUtilization": 100}, {"averageValue": "100m"})
    ]
    assert recommended(value, half)[:2] == (10, "cpu resource")
    assert recommended(half)[1] == "cpu resource utilization (percentage of request)"


def test_a_metric_that_cannot_be_measured_prevents_a_scale_in() -> None:
    other = {"type": "Pods", "pods": {}}
    half = a_metric(averageUtilization=50)
    assert recommended(half, other)[0] == 4
    count, why, shown = recommended(half, other, used=10)
    assert (count, len(shown)) == (2, 1)
    assert "unable to get metric" in why
    assert recommended(half, used=10)[0] == 1
    for nothing in ([], [other], [a_metric("memory", averageUtilization=50)], [a_metric(averageValue="0")], [{}]):
        count, why, _ = recommended(*nothing)
        assert (count, bool(why)) == (2, True)


def test_the_container_is_shown() -> None:
    source = {"name": "cpu", "container": "main", "target": {"averageUtilization": 50}}
    count, reason, shown = recommended({"type": "ContainerResource", "containerResource": source})
    assert (count, reason) == (4, "cpu container resource utilization (percentage of request)")
    current = {"averageValue": "100m", "averageUtilization": 100}
    assert shown[0]["containerResource"] == {"name": "cpu", "container": "main", "current": current}


# -- objects of metrics.k8s.io


def test_metrics_of_a_server_are_read() -> None:
    usage = {"cpu": "1500000n", "memory": "2Ki"}
    found = to_metric({"timestamp": ago(5), "window": "20s", "containers": [{"name": "main", "usage": usage}]})
    assert found == PodMetric({"main": {"cpu": 2, "memory": 2_048_000}}, NOW - timedelta(seconds=5), 20)
    assert to_metric({"timestamp": ago(0), "containers": None}) == PodMetric({}, NOW)


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": "yesterday"},
        {"timestamp": None},
        {"window": "soon"},
        {"containers": [{"usage": {"cpu": "much"}}]},
        {"containers": ["main"]},
        {"containers": 5},
    ],
)
def test_malformed_metrics_are_none(fields: dict[str, Any]) -> None:
    assert to_metric({"timestamp": ago(0), **fields}) is None


@pytest.mark.parametrize(
    ("amount", "pods", "expected"),
    [
        (200, [a_sample(), a_sample()], 4),
        (200, [a_sample(), a_sample(phase="Pending"), a_sample(ready="False"), a_sample(ready=None)], 2),
        (200, [Sample({"metadata": {"name": "web"}})], 0),
        (105, [a_sample()], 7),
    ],
    ids=["all are ready", "one is ready", "no status", "within the tolerance"],
)
def test_a_value_is_in_proportion_to_the_ready_pods(amount: int, pods: list[Sample], expected: int) -> None:
    assert propose_for_value(7, amount, 100, pods, Tolerances()) == Proposal(expected, amount)


def test_a_value_without_pods_says_nothing() -> None:
    with pytest.raises(MetricsError, match="no pods"):
        propose_for_value(7, 200, 100, [], Tolerances())


@pytest.mark.parametrize(("amount", "expected"), [(300, 3), (310, 3), (500, 5), (501, 6), (100, 1)])
def test_a_value_per_pod_counts_all_pods(amount: int, expected: int) -> None:
    assert propose_for_average(Replicas(9, 3), amount, 100, Tolerances()) == Proposal(expected, -(-amount // 3))


def test_a_value_per_pod_needs_pods() -> None:
    with pytest.raises(MetricsError, match="no pods"):
        propose_for_average(Replicas(9, 0), 300, 100, Tolerances())


# -- custom and external metrics


def custom(type_: str, **target: Any) -> dict[str, Any]:
    described = {"describedObject": {"kind": "Service", "name": "web"}} if type_ == "Object" else {}
    return {"type": type_, type_.lower(): {"metric": {"name": "hits", "selector": None}, "target": target, **described}}


@pytest.mark.parametrize(
    ("metric", "values", "count", "reason", "current"),
    [
        (custom("Pods", averageValue="100m"), PodValues([200, 200]), 4, "pods metric hits", {"averageValue": "200m"}),
        (custom("External", averageValue="1"), Totals([2000, 2000]), 4, "external metric hits", {"averageValue": "2"}),
        (custom("External", value="1"), Totals([1000, 1000]), 4, "external metric hits", {"value": "2"}),
        (custom("Object", value="1"), Totals([3000, 1000]), 4, "Service metric hits", {"value": "2"}),
        (
            custom("Object", type="AverageValue", averageValue="1", value="9"),
            Totals([4000]),
            4,
            "external metric hits",
            {"averageValue": "2"},
        ),
        (
            custom("Object", type="Value", averageValue="9", value="1"),
            Totals([2000]),
            4,
            "Service metric hits",
            {"value": "2"},
        ),
    ],
)
def test_custom_metrics_are_compared_as_their_target_says(
    metric: dict[str, Any], values: Values, count: int, reason: str, current: dict[str, str]
) -> None:
    measured = Measurements([a_sample()] * 2, {0: values})
    found = recommend_replicas({"metrics": [metric]}, Replicas(2, 2), measured, Tolerances(), NOW)
    assert (found.replicas, found.what, found.failure) == (count, reason, None)
    (shown,) = found.metrics
    source = shown[metric["type"].lower()]
    assert (source["metric"], source["current"]) == ({"name": "hits"}, current)
    assert source.get("describedObject") == metric[metric["type"].lower()].get("describedObject")


def test_a_pod_without_a_value_holds_a_change_back() -> None:
    measured = Measurements([a_sample()] * 2, {0: PodValues([300, None])})
    spec = {"metrics": [custom("Pods", averageValue="100m")]}
    assert recommend_replicas(spec, Replicas(2, 2), measured, Tolerances(), NOW).replicas == 3
