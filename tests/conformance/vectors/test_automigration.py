"""Auto-migration's counting against the reference's own answers, and KubeFed's pod analysis as far as it is the same."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.planning.automigration.podanalysis import count_pods, has_scheduling_changed
from federation.planning.automigration.replicasets import template_hash
from federation.planning.placement.replicas import Demand, Preference, plan_replicas

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEED = next(c for c in load("seeds-003-kubeadmiral") if c["name"] == "003-4 automatic migration table")


def with_times(value: Any) -> Any:
    """Return the value with offsets from now as Kubernetes times."""
    if isinstance(value, dict):
        if "now_plus_ns" in value:
            return (NOW + timedelta(microseconds=value["now_plus_ns"] / 1000)).isoformat()
        return {key: with_times(inner) for key, inner in value.items()}
    return [with_times(inner) for inner in value] if isinstance(value, list) else value


@each_case(load("automigration_util"))
def test_pods_are_counted_and_compared_like_the_reference(case: dict[str, Any]) -> None:
    given = filled(with_times(case["input"]), oldPod={}, newPod={}, pods=[], thresholdNs=0)
    expected = filled(case["expected"], changed=False, scheduled=0, unschedulable=0)
    if given["op"] == "conditionChanged":
        assert has_scheduling_changed(given["oldPod"], given["newPod"]) == expected["changed"]
        return
    count = count_pods(given["pods"], NOW, given["thresholdNs"] / 1e9)
    crossing_ns = None if count.next_crossing_s is None else pytest.approx(count.next_crossing_s * 1e9, abs=1000)
    assert (count.scheduled, count.unschedulable) == (expected["scheduled"], expected["unschedulable"])
    assert expected.get("nextCrossInNs") == crossing_ns


@each_case(load("pod_template_equal_ignore_hash"))
def test_templates_are_equal_like_in_the_reference(case: dict[str, Any]) -> None:
    a, b = template_hash(case["input"].get("a") or {}), template_hash(case["input"].get("b") or {})
    assert (a == b) == bool(case["expected"].get("equal"))


@each_case(load("kubefed_pod_analyzer"))
def test_pods_before_their_first_scheduling_attempt_are_neither_scheduled_nor_unschedulable(
    case: dict[str, Any],
) -> None:
    expected = filled(case["expected"], total=0, unschedulable=0, runningAndReady=0, needsRecheck=False)
    count = count_pods(with_times(case["input"].get("pods") or []), NOW, 60)
    assert (count.total, count.unschedulable) == (expected["total"], expected["unschedulable"])
    assert count.scheduled >= expected["runningAndReady"]
    assert (count.next_crossing_s is not None) == expected["needsRecheck"]


def test_the_seeds_table() -> None:
    given = SEED["input"]["manifest"]
    first = given["firstSchedule"]
    capacity = {c: first[c] - stuck for c, stuck in given["unschedulable"].items() if stuck}
    demand = Demand(
        given["replicas"],
        tuple(first),
        {cluster: Preference(weight) for cluster, weight in given["weights"].items()},
        current=first,
        estimated=capacity,
    )
    assert plan_replicas(demand).totals() == SEED["expected"]["afterMigration"]
